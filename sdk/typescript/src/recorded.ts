// SPDX-License-Identifier: Apache-2.0
/** What earlier attempts at some work started as its steps. */

import type { Client } from "./client.js";
import { Handoff } from "./handoffs.js";
import type * as m from "./models.js";
import { ROUTES } from "./operations.js";
import type { Wire } from "./wire.js";

/** How often work may have been redriven, as far as its steps are looked for. */
const REDRIVES_MAX = 16;
/** What has ended without a result: a redriven work does it again. */
const FRUITLESS = new Set(["failed", "aborted", "cancelled"]);

/** The steps below a handoff, and below those that it is a redrive of. They are looked for once. */
export class Recorded {
  readonly #client: Client;
  readonly #wire: Wire;
  readonly #handoffId: string;
  readonly #taskId: string;
  #found?: Map<string, m.Handoff>;
  #before?: string[];
  #tried = false;

  constructor(client: Client, wire: Wire, handoffId: string, taskId: string) {
    this.#client = client;
    this.#wire = wire;
    this.#handoffId = handoffId;
    this.#taskId = taskId;
  }

  /** What the envelope of a step says of it, in every SDK. */
  name(step: string, handoffId = this.#handoffId): string {
    return `${handoffId}:step:${step}`;
  }

  /** What an earlier attempt started as this step. A first attempt need not look, unless the broker
   * says that there is something (`conflict`). */
  async find(step: string, conflict = false): Promise<Handoff | undefined> {
    this.#before ??= await this.#lookBack();
    if (!this.#tried && this.#before.length === 0 && !conflict) return undefined;
    this.#found ??= await this.#all();
    for (const [at, handoffId] of [this.#handoffId, ...this.#before].entries()) {
      // The second form is that of older versions.
      for (const name of [this.name(step, handoffId), `${handoffId}:${step}`]) {
        const found = this.#found.get(name);
        if (!found || (at > 0 && !isFruitful(found))) continue;
        const told = { ...found, status: "stored", listening: true };
        return new Handoff(this.#wire, told as unknown as m.OfferReply);
      }
    }
    return undefined;
  }

  /** Which works this one takes the place of, and whether there were attempts before this one. */
  async #lookBack(): Promise<string[]> {
    const before: string[] = [];
    let shown = await this.#wire.send(ROUTES.handoff_show, { id: this.#handoffId });
    this.#tried = shown.attempts.length > 1;
    while (shown.redrive_of && before.length < REDRIVES_MAX) {
      before.push(shown.redrive_of);
      shown = await this.#wire.send(ROUTES.handoff_show, { id: shown.redrive_of });
    }
    return before;
  }

  /** What the envelopes of the tasks below name as steps, the newest first. */
  async #all(): Promise<Map<string, m.Handoff>> {
    const found = new Map<string, m.Handoff>();
    let before: string | undefined;
    for (;;) {
      const page = await this.#client.tasks.list({ parent: this.#taskId, before });
      for (const child of page.tasks) {
        const first = (await this.#client.tasks.show(child.task_id)).handoffs[0];
        if (!first) continue;
        const envelope = await this.#client.handoffs.envelope(first.handoff_id);
        const step = (envelope.metadata as { step?: unknown } | undefined)?.step;
        if (typeof step === "string" && !found.has(step)) found.set(step, first);
      }
      before = page.tasks.at(-1)?.task_id;
      if (!before) return found;
    }
  }
}

/** Whether it has a result, or may still have one. */
function isFruitful(handoff: m.Handoff): boolean {
  if (handoff.state === "dead_lettered") return Boolean(handoff.dead_letter?.redriven_to);
  return !FRUITLESS.has(handoff.state) && !handoff.retracted;
}
