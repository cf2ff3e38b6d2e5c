// SPDX-License-Identifier: Apache-2.0
// Steps of the suite as calls of the SDK: by its own methods where one says the same, by its way of
// sending requests otherwise.

import { AsyncLocalStorage } from "node:async_hooks";
import { isDeepStrictEqual } from "node:util";
import { Claim, type FailureSaid } from "../claims.js";
import { Client } from "../client.js";
import { Refused } from "../errors.js";
import type { JsonObject } from "../json.js";
import type * as m from "../models.js";
import type { NewHandoff } from "../offers.js";
import { ROUTES } from "../operations.js";
import { NO_RETRY, type Route, type Settings } from "../wire.js";
import { isObject } from "./values.js";

/** What came of a call. Of a success the SDK's methods say no more than that. */
export interface Answer {
  status: number | string;
  body: unknown;
}

export interface Said {
  path: { [name: string]: string };
  query: JsonObject;
  body: JsonObject | undefined;
  raw: string | undefined;
}

/** No method would say just this. */
class Unmapped extends Error {}

type Hand = (caller: Caller, said: Said, body: JsonObject) => Promise<unknown>;

/** A client, the claims that it was given, and how its calls were made. */
export class Caller {
  readonly client: Client;
  readonly typed = new Set<string>();
  readonly low = new Set<string>();
  typedCalls = 0;
  lowCalls = 0;
  readonly #claims = new Map<string, { reply: m.ClaimReply; agent: string }>();
  readonly #sent = new AsyncLocalStorage<{ last?: string }>();

  constructor(settings: Settings) {
    const recording: typeof fetch = (input, init) => {
      const call = this.#sent.getStore();
      if (call && typeof init?.body === "string") call.last = init.body;
      return fetch(input, init);
    };
    this.client = new Client({ ...settings, retry: NO_RETRY, fetch: recording });
  }

  async call(
    name: string,
    operation: { method: string; path: string },
    said: Said,
  ): Promise<Answer> {
    if (said.raw === undefined) {
      try {
        const answer = await this.#typed(name, said);
        this.typedCalls += 1;
        this.typed.add(name);
        return answer;
      } catch (error) {
        // A TypeError is the SDK's own word that it would not send this.
        if (!(error instanceof Unmapped) && !(error instanceof TypeError)) throw error;
      }
    }
    this.lowCalls += 1;
    this.low.add(name);
    return this.#low(operation, said);
  }

  async #typed(name: string, said: Said): Promise<Answer> {
    const call: { last?: string } = {};
    const body = said.body ?? {};
    const made = this.#sent.run(call, () => this.#by(name, said, body));
    const answer = await made.then((value) => ({ status: "2xx", body: value }), refused);
    const sent = call.last === undefined ? {} : (JSON.parse(call.last) as JsonObject);
    const other = Object.keys(body).filter((it) => !isDeepStrictEqual(sent[it], body[it]));
    if (other.length > 0) throw new Error(`the method for ${name} sent something else as ${other}`);
    return answer;
  }

  async #by(name: string, said: Said, body: JsonObject): Promise<unknown> {
    const hand = BY_HAND[name];
    if (hand) return hand(this, said, body);
    const route = (ROUTES as { [name: string]: Route<unknown> })[name];
    if (!route) throw new Unmapped();
    const [noun, method] = route.at ?? [];
    if (!noun || !method) throw new Unmapped();
    const where = (this.client as unknown as { [noun: string]: object })[noun] as {
      [method: string]: (...given: unknown[]) => Promise<unknown>;
    };
    const placed = [...route.path.matchAll(/\{(\w+)\}/g)].map((it) => said.path[it[1] ?? ""]);
    const unknown = Object.keys(said.query).some((it) => !route.members.includes(it));
    if (unknown) throw new Unmapped();
    const reply = await where[method]?.(...placed, route.method === "GET" ? said.query : body);
    this.#keep(name, reply, body);
    return reply;
  }

  #keep(name: string, reply: unknown, body: JsonObject): void {
    const agent = String(body.agent);
    const claims =
      name === "handoff_claim"
        ? (reply as m.Claims).claims
        : name === "handoff_claim_one"
          ? [reply]
          : [];
    for (const one of claims as m.ClaimReply[])
      this.#claims.set(one.claim_id, { reply: one, agent });
  }

  /** The claim that a step shows: one that was given, perhaps with another fence or for another
   * handoff. */
  held(said: Said, body: JsonObject): Claim {
    const known = this.#claims.get(String(body.claim_id));
    if (!known || !Number.isInteger(body.fence)) throw new Unmapped();
    const shown = { ...known.reply, handoff_id: said.path.id ?? "", fence: Number(body.fence) };
    return new Claim(this.client, shown, known.agent);
  }

  async #low(operation: { method: string; path: string }, said: Said): Promise<Answer> {
    const route = { name: operation.path, ...operation } as Route<unknown>;
    const waits = Number(said.body?.wait_ms ?? said.body?.timeout_ms ?? 0);
    const empty = operation.method === "GET" ? undefined : "{}";
    const content = said.raw ?? (said.body === undefined ? empty : JSON.stringify(said.body));
    try {
      const options = { waitMs: Number.isFinite(waits) ? waits : 0 };
      const wire = this.client.wire;
      const text = await wire.exchange(route, said.path, said.query, content, options);
      return { status: "2xx", body: JSON.parse(text) };
    } catch (error) {
      return refused(error);
    }
  }
}

function refused(error: unknown): Answer {
  if (!(error instanceof Refused)) throw error;
  const { code, hint, retryable, details } = error;
  const body = {
    code,
    message: error.reason,
    hint,
    retryable,
    details,
    request_id: error.requestId,
  };
  return { status: error.status ?? 0, body };
}

/** Members of a body without those that show the claim. */
function rest(body: JsonObject, ...names: string[]): JsonObject {
  const { claim_id, fence, ...left } = body;
  if (Object.keys(left).some((it) => !names.includes(it))) throw new Unmapped();
  if (Object.values(left).some((it) => it === null)) throw new Unmapped();
  return left;
}

function typedPayload(body: JsonObject): JsonObject {
  if (!isObject(body.payload) || typeof body.payload.type !== "string") throw new Unmapped();
  return body.payload;
}

const BY_HAND: { [name: string]: Hand } = {
  handoff_offer: async (caller, _, body) => {
    typedPayload(body);
    if (typeof body.from_agent !== "string" || !isObject(body.to)) throw new Unmapped();
    if (body.fallbacks !== undefined && !Array.isArray(body.fallbacks)) throw new Unmapped();
    if (body.memory_refs !== undefined && !Array.isArray(body.memory_refs)) throw new Unmapped();
    return (await caller.client.handoff(body as unknown as NewHandoff)).offered;
  },
  handoff_start: (caller, said, body) => {
    rest(body);
    return caller.held(said, body).start();
  },
  handoff_progress: (caller, said, body) => {
    const { note, percent } = rest(body, "note", "percent");
    return caller.held(said, body).progress(note as string, percent as number);
  },
  handoff_complete: (caller, said, body) => {
    const result = typedPayload(body);
    if (body.action === "completed") throw new Unmapped();
    const names = ["payload", "action", "criteria", "gaps", "metadata"];
    const { payload: _, ...more } = rest(body, ...names);
    return caller.held(said, body).complete(result, more);
  },
  handoff_fail: (caller, said, body) => {
    const names = [
      "class",
      "type",
      "message",
      "hint",
      "attempted",
      "attempts",
      "causes",
      "details",
    ];
    const { message, ...more } = rest(body, ...names, "retry_after_ms");
    if (more.class === undefined || more.type === undefined) throw new Unmapped();
    return caller.held(said, body).fail(message as string, more as FailureSaid);
  },
  handoff_release: (caller, said, body) => {
    rest(body);
    return caller.held(said, body).release();
  },
  handoff_attach: (caller, said, body) => {
    const { name, content, type } = rest(body, "name", "content", "type");
    return caller.held(said, body).attach(name as string, content, type as string);
  },
  handoff_put_back: (caller, said, body) => {
    return caller.held(said, body).putBack(rest(body, "for_ms", "until", "reason"));
  },
  assemble: (caller, _, body) => caller.client.assemble(body as unknown as m.Assemble),
  // Heartbeats are the SDK's own business, and `ask` waits for its answer as well.
  handoff_heartbeat: () => Promise.reject(new Unmapped()),
  handoff_ask: () => Promise.reject(new Unmapped()),
};
