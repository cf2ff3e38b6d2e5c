// SPDX-License-Identifier: Apache-2.0
// The client: handing work over, taking it, and everything around.

import { Claim } from "./claims.js";
import * as errors from "./errors.js";
import { Handoff, type Waiting, waitFor, why } from "./handoffs.js";
import type { JsonObject } from "./json.js";
import type * as m from "./models.js";
import { type NewHandoff, offered } from "./offers.js";
import { Nouns, ROUTES } from "./operations.js";
import type { Classify } from "./report.js";
import {
  Deadline,
  type Inner,
  newKey,
  type Options,
  parsed,
  pauseOf,
  type Settings,
  sleep,
  span,
  strange,
  Tries,
  Wire,
} from "./wire.js";

/** Which work is wanted. */
export interface Wanted {
  agent?: string;
  capabilities?: string[];
  lease_ms?: number;
}

/** How long it is waited for, and how failures are told apart. */
export interface Taking extends Options {
  /** How long to wait for work; 30 s for `claim`, 0 for `tryClaim`. */
  waitMs?: number;
  classify?: Classify | undefined;
}

const ENDED = new Set(["completed", "failed", "cancelled", "dead_lettered"]);

/**
 * A way to a broker. The first argument of a call is what is sent, by the API's own names; the last
 * is how: a `signal`, a timeout. Every operation of the API is there, by its noun
 * (`client.tasks.show(id)`); what needs more than one request has a method of its own.
 *
 * Calls are repeated with growing pauses when the broker does not answer or asks for patience.
 * That is safe: creates carry an idempotency key and claims a request id.
 */
export class Client extends Nouns {
  readonly wire: Wire;

  constructor(settings: Settings | string = {}) {
    const wire = new Wire(typeof settings === "string" ? { url: settings } : settings);
    super(wire.send);
    this.wire = wire;
  }

  get url(): string {
    return this.wire.baseUrl;
  }

  /** Offers work, to an agent or to any agent with a capability. Returns once it is stored. */
  async handoff(offer: NewHandoff, options?: Options): Promise<Handoff> {
    const body = await offered(this.wire, offer);
    return new Handoff(this.wire, await this.wire.send(ROUTES.handoff_offer, {}, body, options));
  }

  /** Has somebody do something, and waits for the result. Throws `TimedOut` after `timeoutMs`; the
   * work goes on all the same. */
  async call(offer: NewHandoff, how: Waiting = {}): Promise<m.ResultReport> {
    span(how.timeoutMs, "timeoutMs");
    const called = await this.handoff({ ...offer, control: "awaited" }, { signal: how.signal });
    return called.result(how);
  }

  /** Offers work and waits until somebody has accepted it (or `until` there is a result). What
   * nobody claims in time (15 s) goes to the next of `fallbacks`, and then to the dead letters. */
  async send(offer: NewHandoff & { until?: m.Until }, how: Waiting = {}): Promise<m.Sent> {
    const { until = "claimed", ...rest } = offer;
    const timeoutMs = span(how.timeoutMs, "timeoutMs") ?? 15_000;
    const body = { ...(await offered(this.wire, rest)), until, timeout_ms: timeoutMs };
    const keyed = { idempotency_key: newKey(), ...body };
    const deadline = new Deadline(timeoutMs);
    const options = { waitMs: timeoutMs, signal: how.signal };
    let sent = await this.wire.send(ROUTES.handoff_send, {}, keyed, options);
    if (!sent.reached && !ENDED.has(sent.state) && deadline.left > 1000) {
      const left = { timeoutMs: deadline.left, signal: how.signal };
      await waitFor(this.wire, [sent.handoff_id], { until }, left);
      sent = await this.wire.send(ROUTES.handoff_send, {}, keyed, options);
    }
    if (sent.reached) return sent;
    const handoff = new Handoff(this.wire, sent as unknown as m.OfferReply);
    if (ENDED.has(sent.state) && (sent.attempts?.length || sent.declined_by?.length)) {
      await handoff.result(how);
    }
    const now = await handoff.status();
    const late = new errors.TimedOut(
      `${sent.handoff_id} did not come as far as ${until} in ${timeoutMs} ms: ${why(now)}`,
    );
    late.handoff = handoff;
    throw late;
  }

  /** Offers many things at once, each on its own: what is refused does not hinder the rest. */
  async handoffMany(offers: NewHandoff[]): Promise<(Handoff | errors.Refused)[]> {
    const bodies = await Promise.all(offers.map((it) => offered(this.wire, it)));
    const keyed = bodies.map((it) => ({ idempotency_key: newKey(), ...it }));
    const { results } = await this.wire.send(ROUTES.handoff_offer_batch, {}, { offers: keyed });
    return results.map((part) => {
      if (!("error" in part)) return new Handoff(this.wire, part as m.OfferReply);
      return errors.refusal(409, part.error, this.url) as errors.Refused;
    });
  }

  /** Waits for all of some handoffs, or for any. What is still open then is in the answer. */
  wait(
    handoffs: (Handoff | string)[],
    how: { until?: m.Until; mode?: m.Mode } = {},
    waiting: Waiting = {},
  ): Promise<m.Waited> {
    const ids = handoffs.map((it) => (typeof it === "string" ? it : it.id));
    return waitFor(this.wire, ids, how, waiting);
  }

  /** The results of some handoffs, in the same order. The first without one throws. */
  async results(handoffs: Handoff[], how: Waiting = {}): Promise<m.ResultReport[]> {
    const deadline = new Deadline(span(how.timeoutMs, "timeoutMs"));
    const found: m.ResultReport[] = [];
    for (const handoff of handoffs) {
      const timeoutMs = how.timeoutMs === undefined ? undefined : deadline.left;
      found.push(await handoff.result({ ...how, timeoutMs }));
    }
    return found;
  }

  /** Puts together what a receiver gets to read, within its token budget. Nothing is stored:
   * `handoff({ assembled, to, intent })` sends it. */
  assemble(body: Omit<m.Assemble, "from_agent"> & { from_agent?: string }, options?: Options) {
    return this.wire.send(ROUTES.assemble, {}, body, options);
  }

  /** Takes work, and keeps it alive until it is reported on: `await using claim = await
   * client.claim()`. Throws `NoWork` if there is none in time (30 s). */
  async claim(wanted: Wanted = {}, how: Taking = {}): Promise<Claim> {
    const deadline = new Deadline(span(how.waitMs, "waitMs") ?? 30_000);
    for (;;) {
      const found = await this.tryClaim(wanted, { ...how, waitMs: deadline.nextWait });
      if (found) return found;
      if (deadline.over) {
        const agent = wanted.agent ?? this.wire.agent ?? "this agent";
        throw new errors.NoWork(`there was nothing for ${agent} to do in time`, {
          hint: "ask again; `waitMs: Infinity` waits for as long as it takes",
        });
      }
    }
  }

  /** Takes work if there is any within `waitMs`. */
  async tryClaim(wanted: Wanted = {}, how: Taking = {}): Promise<Claim | undefined> {
    const [claim] = await this.takeSome(wanted, 1, newKey(), { waitMs: 0, ...how }, how.classify);
    return claim?.begin();
  }

  /** Takes this very handoff. */
  async claimHandoff(id: string, wanted: Wanted = {}, how: Taking = {}): Promise<Claim> {
    const agent = await this.wire.who(wanted.agent, "agent");
    const body = { ...wanted, agent, majors: [2] };
    const reply = await this.wire.send(ROUTES.handoff_claim_one, { id }, body, how);
    return new Claim(this, reply, agent, how.classify).begin();
  }

  /** One piece of work after the other, for ever, or until there was none for `idleMs`, or until
   * `signal`. A broker that is away is waited for. What was not reported when the loop goes on is
   * given back, with a warning and a growing pause: it is likely to come again. */
  async *claims(
    wanted: Wanted = {},
    how: Options & { idleMs?: number; classify?: Classify } = {},
  ): AsyncGenerator<Claim, void, void> {
    let deadline = new Deadline(span(how.idleMs, "idleMs"));
    let forgotten = 0;
    while (!how.signal?.aborted) {
      let found: Claim | undefined;
      try {
        found = await this.tryClaim(wanted, { ...how, waitMs: deadline.nextWait });
      } catch (error) {
        if (how.signal?.aborted) return;
        if (!isAway(error) || deadline.over) throw error;
        await sleep(pauseOf(this.wire.retry, 5), how.signal);
        continue;
      }
      if (!found) {
        if (deadline.over) return;
        continue;
      }
      let silent = false;
      try {
        yield found;
      } finally {
        silent = !found.reported && !found.lost;
        await found.leave();
      }
      deadline = new Deadline(how.idleMs);
      forgotten = silent ? forgotten + 1 : 0;
      if (forgotten) {
        const { baseMs, capMs } = this.wire.retry;
        await sleep(Math.min(capMs, baseMs * 2 ** Math.min(forgotten, 30)), how.signal);
      }
    }
  }

  /** Claims as much as there is, up to `max`. The request has an id, so a lost answer is asked for
   * again and the same work comes; what was granted to a caller that was interrupted is given
   * back. */
  async takeSome(
    wanted: Wanted,
    max: number,
    requestId: string,
    how: Options & Inner = {},
    classify?: Classify,
  ): Promise<Claim[]> {
    const agent = await this.wire.who(wanted.agent, "agent");
    const waitMs = span(how.waitMs, "waitMs") ?? 0;
    const body = { ...wanted, agent, majors: [2], max, request_id: requestId };
    const made = (found: m.Claims) =>
      found.claims.map((it) => new Claim(this, it, agent, classify));
    try {
      const asked = { ...body, wait_ms: waitMs };
      return made(await this.wire.send(ROUTES.handoff_claim, {}, asked, { ...how, waitMs }));
    } catch (error) {
      if (how.signal?.aborted) {
        const again = this.wire.send(
          ROUTES.handoff_claim,
          {},
          { ...body, wait_ms: 0 },
          { brief: true },
        );
        const granted = await again.then(made, () => []);
        await Promise.allSettled(granted.map((it) => it.release({ brief: true })));
      }
      throw error;
    }
  }

  /** What happens, as it happens. A broken stream goes on where it ended. Throws `EventsMissed`
   * where the broker cannot promise that everything was told. */
  async *events(
    query: { after?: string; task?: string; handoff?: string } = {},
    options: Options = {},
  ): AsyncGenerator<m.Event, void, void> {
    const route = ROUTES.event_stream;
    let after = query.after;
    let tries = new Tries(this.wire, route);
    while (!options.signal?.aborted) {
      try {
        const how = { ...options, stream: true, answerMs: 60_000 };
        const asked = { ...query, after };
        const [response, text] = await this.wire.request(route, {}, asked, undefined, how);
        if (!response.ok) {
          await sleep(tries.answer(response, text) ?? 0, options.signal);
          continue;
        }
        let missed = false;
        for await (const line of lines(response)) {
          if (line.startsWith("event:")) missed = line.slice(6).trim() === "missed";
          if (!line.startsWith("data:")) continue;
          const told = parsed(line.slice(5));
          if (!told) throw strange(route);
          if (missed) throw new errors.EventsMissed(told as { resume_after: string });
          const event = told as m.Event;
          after = String(event.position);
          tries = new Tries(this.wire, route);
          yield event;
        }
        await sleep(tries.fault(new Error("the stream ended")), options.signal);
      } catch (error) {
        if (options.signal?.aborted) return;
        if (error instanceof errors.TasukiError) throw error;
        await sleep(tries.fault(error), options.signal);
      }
    }
  }

  /** The log, line by line, as `tasuki audit verify --file` reads it. */
  async *exportLog(query: { after?: string } = {}, options: Options = {}): AsyncGenerator<string> {
    const how = { ...options, stream: true, answerMs: 600_000 };
    const route = ROUTES.audit_export;
    const [response, text] = await this.wire.request(route, {}, query, undefined, how);
    if (!response.ok) throw errors.refusal(response.status, parsed(text), this.url);
    yield* lines(response);
  }

  /** A task and those below it, as one file that can be verified anywhere. */
  exportTask(id: string, options: Options = {}): Promise<string> {
    return this.wire.exchange(ROUTES.task_export, { id }, undefined, undefined, options);
  }

  /** Enrolls a key with a join token. */
  async join(
    token: string,
    key: { public: string; possession(agent: string): Promise<string> },
    agent: string,
  ) {
    const body: JsonObject = { agent_id: agent, key: key.public, token };
    body.proof = await key.possession(agent);
    return this.wire.send(ROUTES.agent_join, {}, body);
  }
}

/** Whether the broker may be back in a moment. */
export function isAway(error: unknown): error is errors.TasukiError {
  const kinds = [errors.Unreachable, errors.Unavailable, errors.Overloaded];
  return kinds.some((kind) => error instanceof kind);
}

async function* lines(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body ?? []) {
    rest += decoder.decode(chunk as Uint8Array, { stream: true });
    const whole = rest.split("\n");
    rest = whole.pop() ?? "";
    yield* whole;
  }
  if (rest) yield rest;
}
