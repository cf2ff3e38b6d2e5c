// SPDX-License-Identifier: Apache-2.0
// What a sender says, as the API takes it: by the API's own names, with what may be given in short
// written out.

import { type JsonObject, payload } from "./json.js";
import { authored } from "./keys.js";
import type * as m from "./models.js";
import type { Wire } from "./wire.js";

/** An offer, with some of its parts in short. */
export type NewHandoff = Omit<
  m.Offer,
  | "from_agent"
  | "to"
  | "payload"
  | "fallbacks"
  | "memory_refs"
  | "coordinator"
  | "route"
  | "signed"
  | "deadline"
> & {
  from_agent?: string;
  /** An agent by its name, or `{ capability }` for any agent that can. */
  to: string | m.Target;
  /** What the receiver works on: an object, a text, or whatever JSON has. */
  payload?: unknown;
  /** Who is asked next, in this order: names of agents, or `{ capability }`. */
  fallbacks?: (string | m.Target)[];
  /** Memories that belong to the work: ids, or references with a revision. */
  memory_refs?: (string | m.MemoryRef)[];
  /** Who decides when things go wrong: an agent, or `{ role }`. */
  coordinator?: string | m.Coordinator | null;
  /** How one of the agents with the capability is chosen. */
  route?: m.Policy | m.Route | null;
  deadline?: Date | string | null;
  /** What `assemble` answered: all that it put together goes along. */
  assembled?: m.AssembleReply;
};

/** A handoff that comes to be in the same atomic step in which another is completed. */
export type FollowUp = Omit<NewHandoff, "from_agent" | "intent" | "task_id" | "idempotency_key">;

/** The parts of an offer, written out. */
export function written(given: FollowUp | NewHandoff): JsonObject {
  const { assembled, to, ...rest } = given as NewHandoff;
  const body: JsonObject = { ...(assembled?.offer as JsonObject | undefined), ...rest };
  if (!to) throw new TypeError('say `to`: an agent, or { capability: "…" } for any agent that can');
  body.to = target(to);
  body.payload = payload(given.payload, "request");
  if (given.fallbacks) body.fallbacks = given.fallbacks.map(target);
  if (given.memory_refs) {
    body.memory_refs = given.memory_refs.map((it) => (typeof it === "string" ? { id: it } : it));
  }
  if (typeof given.coordinator === "string") body.coordinator = { agent: given.coordinator };
  if (typeof given.route === "string") body.route = { policy: given.route };
  return body;
}

function target(to: string | m.Target): m.Target {
  return typeof to === "string" ? { agent: to } : to;
}

/** The body of an offer; with a key, the sender signs what it says. */
export async function offered(wire: Wire, given: NewHandoff): Promise<JsonObject> {
  const body = written(given);
  body.from_agent = await wire.who(given.from_agent, "from_agent");
  const key = await wire.key();
  // Words that the broker carries are not the sender's to sign.
  if (key && given.intent) body.signed = await key.statement("envelope", await authored(body));
  return body;
}
