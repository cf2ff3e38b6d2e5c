// SPDX-License-Identifier: Apache-2.0
// `MemorySpine`: for programs that were written for its interface, which keep its names.

import { Client } from "./client.js";
import * as errors from "./errors.js";
import type { Handoff } from "./handoffs.js";
import { address, type JsonObject } from "./json.js";
import type * as m from "./models.js";
import { newKey, type Settings } from "./wire.js";

const ID = /\bms-(\d+)\b(?:\s*(?:through|to|until|-|–|…|\.\.)\s*ms-(\d+)\b)?/g;
/** How many memories one range may name. More is likely a mistake in the text. */
const RANGE_MAX = 1000;

export interface HandoffRequest {
  target_agent: string;
  task_summary: string;
  include_recent?: number;
  include_pins?: boolean;
  constraints?: JsonObject | string[];
  execution_history?: JsonObject[];
}

/** An envelope that was put together and not sent yet. */
export interface AssembledHandoff {
  /** The major of the envelope's version, which alone decides who can read it. */
  envelope_version: string;
  token_count: number;
  memory_refs: string[];
  target_agent: string | undefined;
  intent: string;
  /** All that the broker answered: the prompt, the receipt, what to send. */
  assembled: m.AssembleReply;
  /** What tells it from every other one. */
  key: string;
  /** Where it was sent, by the id of the handoff. */
  sent: Map<string, string>;
}

/** Who has taken a handoff. */
export interface Acknowledgment {
  handoff_id: string;
  task_id: string;
  agent: string;
  status: string;
}

/** Assembles, delivers, publishes and parks envelopes. */
export class MemorySpine {
  readonly client: Client;
  readonly agent: string;

  constructor(
    endpoint?: string,
    private readonly options: Settings & { project?: string } = {},
  ) {
    this.agent = options.agent ?? "memory-spine";
    this.client = new Client({ ...options, url: endpoint, agent: this.agent });
  }

  /** Puts together what `target_agent` needs: the task, memories, what was done, what binds.
   * Memories that the text or the history name (`ms-4821 through ms-4825`) are looked up; those
   * that are not there become gaps. `max_tokens` in the constraints is the budget. */
  async agent_handoff(request: HandoffRequest): Promise<AssembledHandoff> {
    if (!request.task_summary?.trim()) {
      throw new TypeError("say task_summary: what the user asked for, in words");
    }
    const history = request.execution_history ?? [];
    const told = history.map((step) => step.memory_id).filter((id) => id !== undefined);
    const named = [...namedMemories(request.task_summary), ...told.map(String)];
    const target = request.target_agent === "broadcast" ? undefined : request.target_agent;
    const body: JsonObject = {
      to_agent: target,
      intent: request.task_summary,
      project: this.options.project,
      include_recent: request.include_recent ?? 20,
      include_pins: request.include_pins ?? true,
      constraints: request.constraints,
      history: history.map(step),
      memory_refs: [...new Set(named)].map((id) => ({ id })),
    };
    const reply = await this.client.assemble(body as unknown as Omit<m.Assemble, "from_agent">);
    return {
      envelope_version: reply.envelope_version.split(".")[0] ?? "",
      token_count: reply.token_count,
      memory_refs: reply.memory_refs,
      target_agent: target,
      intent: request.task_summary,
      assembled: reply,
      key: newKey(),
      sent: new Map(),
    };
  }

  /** Sends an envelope and waits until it is accepted. Throws `TimedOut` if it is not; it is stored
   * then, and delivering the same envelope again waits for the same handoff. */
  async deliver_handoff(
    envelope: AssembledHandoff,
    target: string,
    timeoutMs = 15_000,
  ): Promise<Acknowledgment> {
    const handoff = await this.#offer(envelope, target);
    const claimed = await handoff.acknowledged({ timeoutMs });
    return {
      handoff_id: handoff.id,
      task_id: handoff.taskId,
      agent: claimed.attempts?.at(-1)?.agent ?? target,
      status: claimed.status,
    };
  }

  /** Stores the envelope for every receiver before it returns; repeating it stores nothing twice. */
  async publish(channel: string, envelope: AssembledHandoff, receivers: string[]) {
    const listed = [...new Set(receivers)].sort();
    const published = await this.client.channels.publish(channel, {
      ...(envelope.assembled.offer as JsonObject),
      receivers: listed,
      intent: envelope.intent,
      payload: { type: "handoff", channel },
      idempotency_key: await keyOf(envelope, "channel", channel, ...listed),
    } as unknown as m.Publication);
    for (const [receiver, told] of Object.entries(published.handoffs)) {
      envelope.sent.set((told as { handoff_id: string }).handoff_id, receiver);
    }
    return published;
  }

  /** Puts an envelope that nobody took among the dead letters, where somebody has to decide on it.
   * Returns the id of the dead letter, or of the handoff that somebody took after all. */
  async park_envelope(envelope: AssembledHandoff, reason: string): Promise<string> {
    if (envelope.sent.size === 0) await this.#offer(envelope, envelope.target_agent ?? this.agent);
    for (const [id, target] of [...envelope.sent]) {
      const { state } = await this.client.handoffs.show(id);
      if (state === "pending" || state === "scheduled")
        await this.#park(envelope, id, target, reason);
    }
    return [...envelope.sent.keys()].at(-1) ?? "";
  }

  async #offer(envelope: AssembledHandoff, target: string): Promise<Handoff> {
    const handoff = await this.client.handoff({
      to: target,
      intent: envelope.intent,
      payload: { type: "handoff" },
      correlation_id: envelope.key,
      idempotency_key: await keyOf(envelope, "to", target),
      assembled: envelope.assembled,
    });
    envelope.sent.set(handoff.id, target);
    return handoff;
  }

  /** Nobody speaks for the one who is not there: the sender takes its own offer back, claims the
   * work from itself, and says why it came to nothing. */
  async #park(envelope: AssembledHandoff, id: string, target: string, reason: string) {
    try {
      await this.client.handoffs.cancel(id, { reason });
    } catch (error) {
      if (error instanceof errors.Conflict) return; // Somebody took it after all.
      throw error;
    }
    const own = await this.#offer(envelope, this.agent);
    await using claim = await this.client.claimHandoff(own.id, { agent: this.agent });
    const hint = `deliver it to ${target} once it is there`;
    await claim.fail(reason, { class: "permanent", type: "parked", hint });
  }
}

/** The same envelope for the same place is the same handoff, however often it is sent. */
async function keyOf(envelope: AssembledHandoff, ...where: string[]): Promise<string> {
  return `${envelope.key}:${(await address(where)).slice(7, 23)}`;
}

function namedMemories(text: string): string[] {
  const found: string[] = [];
  for (const [, first = "", second] of text.matchAll(ID)) {
    const last = second ?? first;
    const count = Number(last) - Number(first) + 1;
    if (count > 0 && count <= RANGE_MAX) {
      for (let at = 0; at < count; at += 1) {
        found.push(`ms-${String(Number(first) + at).padStart(first.length, "0")}`);
      }
    } else found.push(`ms-${first}`, `ms-${last}`);
  }
  return found;
}

function step(given: JsonObject): JsonObject {
  const { action, decision, why, memory_id, agent } = given;
  // The broker writes down who says something; who did it is then part of what is said.
  const who = agent ? `${String(agent)}: ` : "";
  return { action: `${who}${String(action ?? "")}`, decision, why, memory_id };
}
