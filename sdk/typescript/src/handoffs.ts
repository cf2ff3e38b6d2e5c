// SPDX-License-Identifier: Apache-2.0
// Handoffs as their sender sees them.

import * as errors from "./errors.js";
import type * as m from "./models.js";
import { ROUTES } from "./operations.js";
import { Deadline, type Options, sleep, span, type Wire } from "./wire.js";

/** How often it is looked whether somebody has decided on a dead letter. */
const DECIDED_MS = 1_000;

/** How long to wait. Without it, until there is an end: every handoff has one. */
export interface Waiting extends Options {
  timeoutMs?: number | undefined;
}

/** One hop of a task to one receiver, from the sender's side. */
export class Handoff {
  readonly id: string;
  readonly taskId: string;
  /** Whether anybody is there who takes such work. If not, it is stored and waits. */
  readonly listening: boolean;

  constructor(
    private readonly wire: Wire,
    /** What the broker answered to the offer. */
    readonly offered: m.OfferReply,
  ) {
    this.id = offered.handoff_id;
    this.taskId = offered.task_id;
    this.listening = offered.listening;
  }

  /** How it stands. */
  status(options?: Options): Promise<m.HandoffWithResult> {
    return this.wire.send(ROUTES.handoff_show, { id: this.id }, undefined, options);
  }

  /** Waits until somebody has claimed it, 15 s unless told otherwise. `TimedOut` says that nobody
   * did, and the offer stays; `HandoffFailed` that it ended before anybody did. */
  async acknowledged({ timeoutMs = 15_000, signal }: Waiting = {}): Promise<m.HandoffWithResult> {
    const found = await waitFor(this.wire, [this.id], { until: "claimed" }, { timeoutMs, signal });
    if (found.open_handoffs.length > 0) throw await this.#late("is not claimed", signal);
    const claimed = found.handoffs[0];
    if (!claimed?.attempts?.length) throw await this.#failed(claimed, "nobody has claimed it");
    return claimed;
  }

  /** Waits for what came of this hop. Throws `HandoffFailed` if there is no result. */
  async result({ timeoutMs, signal }: Waiting = {}): Promise<m.ResultReport> {
    const found = await waitFor(this.wire, [this.id], { until: "settled" }, { timeoutMs, signal });
    if (found.open_handoffs.length > 0) throw await this.#late("has no result yet", signal);
    const ended = found.handoffs[0];
    const next = ended?.dead_letter?.redriven_to;
    if (next) return this.#sentAgain(next).result({ timeoutMs, signal });
    if (ended?.output) return ended.output;
    throw await this.#failed(ended);
  }

  /** Waits until the whole task has ended, over however many hops and dead letters, and returns
   * the result of its last one. */
  async final({ timeoutMs, signal }: Waiting = {}): Promise<m.ResultReport> {
    const deadline = new Deadline(span(timeoutMs, "timeoutMs"));
    for (;;) {
      const waitMs = deadline.nextWait;
      const body = { tasks: [this.taskId], timeout_ms: waitMs };
      const found = await this.wire.send(ROUTES.handoff_wait, {}, body, { waitMs, signal });
      if (found.open_tasks.length === 0 || deadline.over) {
        const task = await this.wire.send(ROUTES.task_show, { id: this.taskId }, undefined, {
          signal,
        });
        const last = task.handoffs.reduce((a, b) =>
          b.hop > a.hop || (b.hop === a.hop && b.offered_at > a.offered_at) ? b : a,
        );
        const shown = await this.wire.send(ROUTES.handoff_show, { id: last.handoff_id });
        const letter = shown.dead_letter;
        // A dead letter holds its task up until somebody decides.
        if (letter && !letter.redriven_to && !letter.discarded && !letter.closed) {
          if (deadline.over) throw await this.#late("has not ended yet", signal, shown);
          await sleep(Math.min(DECIDED_MS, deadline.left), signal);
          continue;
        }
        if (found.open_tasks.length > 0) throw await this.#late("has not ended yet", signal, shown);
        if (shown.output) return shown.output;
        throw await this.#failed(shown);
      }
    }
  }

  /** Takes it back. */
  cancel(body: { by?: string; reason?: string } = {}, options?: Options): Promise<m.Moved> {
    return this.wire.send(ROUTES.handoff_cancel, { id: this.id }, body, options);
  }

  /** Answers the question that its holder waits with. */
  answer(answer: unknown, more: { by?: string; question?: string } = {}): Promise<m.Moved> {
    return this.wire.send(ROUTES.question_answer, { id: this.id }, { ...more, answer });
  }

  /** Sends a word to whoever holds the work; it comes with the holder's next heartbeat. */
  async message(text: string, more: { by?: string; details?: m.Object } = {}) {
    const path = { id: this.id };
    return (await this.wire.send(ROUTES.handoff_message, path, { ...more, text })).messages;
  }

  /** What exactly the receiver gets. */
  envelope(options?: Options): Promise<m.Envelope> {
    return this.wire.send(ROUTES.handoff_envelope, { id: this.id }, undefined, options);
  }

  #sentAgain(id: string): Handoff {
    return new Handoff(this.wire, { ...this.offered, handoff_id: id });
  }

  async #failed(ended: m.HandoffWithResult | undefined, more = ""): Promise<errors.HandoffFailed> {
    const state = ended?.state ?? "unknown";
    let failure: errors.FailureReport = {};
    if (state === "dead_lettered") {
      const letter = await this.wire.send(ROUTES.dead_letter_show, { id: this.id });
      failure = (letter.reports?.at(-1)?.report ?? {}) as errors.FailureReport;
    }
    const reason = ended?.dead_letter ? ` (${ended.dead_letter.reason})` : "";
    const said = [more, failure.message].filter(Boolean).map((words) => `: ${words}`);
    const decide = state === "dead_lettered" ? "somebody has to redrive or discard it" : "";
    return new errors.HandoffFailed(`${this.id} is ${state}${reason}${said.join("")}`, {
      handoffId: this.id,
      state,
      failure,
      hint: failure.hint ?? decide,
    });
  }

  async #late(what: string, signal?: AbortSignal, shown?: m.HandoffWithResult) {
    const now = shown ?? (await this.status({ signal }));
    const late = new errors.TimedOut(`${this.id} ${what}: ${why(now)}`, {
      hint: "ask again: it goes on, and its result is kept",
      details: { state: now.state },
    });
    late.handoff = this;
    return late;
  }
}

/** Why a handoff is not further than it is, in words. */
export function why(now: m.HandoffWithResult): string {
  const to = now.to as { agent?: string; capability?: string };
  const whom = to.agent ?? `anybody with the capability ${to.capability}`;
  const holder = now.attempts?.at(-1);
  switch (now.state) {
    case "pending":
      return now.status === "delivered"
        ? `${whom} has seen it and not claimed it`
        : `it waits for ${whom}`;
    case "scheduled":
      return `it waits for its next attempt (${now.attempts?.length ?? 0} so far)`;
    case "awaiting_approval":
      return "it waits for approval";
    case "input_required":
      return `${holder?.agent ?? whom} asked a question, which waits for an answer`;
    case "claimed":
    case "in_progress":
      return `${holder?.agent ?? whom} works on it`;
    case "dead_lettered":
      return `it is a dead letter (${now.dead_letter?.reason}): somebody has to decide`;
    default:
      return `it is ${now.state}`;
  }
}

/** Waits for handoffs, in as many requests as it takes. */
export async function waitFor(
  wire: Wire,
  handoffs: string[],
  how: { until?: m.Until; mode?: m.Mode },
  { timeoutMs, signal }: Waiting,
): Promise<m.Waited> {
  const deadline = new Deadline(span(timeoutMs, "timeoutMs"));
  for (;;) {
    const waitMs = deadline.nextWait;
    const body = { handoffs, ...how, timeout_ms: waitMs };
    const found = await wire.send(ROUTES.handoff_wait, {}, body, { waitMs, signal });
    if (found.done || deadline.over) return found;
  }
}
