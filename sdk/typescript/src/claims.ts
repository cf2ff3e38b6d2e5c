// SPDX-License-Identifier: Apache-2.0
// Work as its receiver sees it: a claim, kept alive while it is worked on.

import type { Client } from "./client.js";
import * as errors from "./errors.js";
import { Handoff, type Waiting } from "./handoffs.js";
import { Heart } from "./heart.js";
import { address, payload as asPayload, constraintId, type JsonObject, plain } from "./json.js";
import type * as m from "./models.js";
import { type FollowUp, type NewHandoff, offered, written } from "./offers.js";
import { ROUTES } from "./operations.js";
import { Recorded } from "./recorded.js";
import {
  type Classify,
  failure,
  failureAddress,
  reduced,
  resultAddress,
  Steps,
  used,
} from "./report.js";
import { newKey, type Options, type Route, span, type Wire } from "./wire.js";

/** What is said of a result beside the payload. */
export interface Completion {
  action?: m.Action;
  /** Handoffs that come to be in the same atomic step. */
  follow_ups?: FollowUp[];
  criteria?: m.CriterionReport[];
  gaps?: string[];
  /** Makes the budget of the task, and of those above it, less. */
  usage?: Partial<m.WorkUsage>;
  metadata?: m.Object;
}

export type FailureSaid = Partial<Omit<m.Fail, "claim_id" | "fence" | "signed" | "message">>;

export type Call = Omit<NewHandoff, "intent" | "task_id" | "control" | "from_agent"> & {
  /** Names this step: after a crash the same step finds what was started before and its result,
   * whatever words it is asked in this time. */
  step?: string;
};

export interface Question {
  kind?: m.QuestionKind;
  /** What the answer must fit. */
  schema?: m.Object;
  details?: m.Object;
  /** How long to wait; then `default` is the answer, or the attempt has failed. */
  answer_ms?: number;
  default?: unknown;
  /** How long the answer waits for this process before anybody may go on. */
  keep_ms?: number;
}

const GONE = new Set(["already_claimed", "wrong_state", "not_target", "kept_for_asker"]);

/**
 * Work that is this agent's until it says what became of it.
 *
 * Heartbeats keep the lease. `signal` is aborted when the claim is lost: pass it to what you await.
 * With `await using`, a claim that was left without a word is given back, with a warning: only the
 * program knows whether it is done.
 */
export class Claim {
  readonly handoffId: string;
  readonly taskId: string;
  /** The how manieth try this is. */
  readonly attempt: number;
  /** The envelope exactly as it came. */
  readonly envelope: m.Envelope;
  readonly envelopeHash: string;
  /** Handoffs on which this is built and whose results no longer hold. */
  readonly taints: m.ClaimReply["taints"];
  claimId: string;
  /** Higher than that of every earlier claim. Pass it on with what you write elsewhere. */
  fence: number;
  /** Questions that holders of this work asked, with their answers. */
  questions: m.HolderQuestion[];
  /** What attempts before this one said, and why they ended. */
  earlierAttempts: m.EarlierAttempt[];
  readonly #wire: Wire;
  readonly #heart: Heart;
  readonly #steps: Steps;
  #recorded: Recorded;
  #reported = false;
  #usage: m.WorkUsage | undefined;

  constructor(
    readonly client: Client,
    /** What the broker answered. */
    readonly reply: m.ClaimReply,
    /** Who claimed it. */
    readonly agent: string,
    private readonly classify?: Classify,
  ) {
    this.#wire = client.wire;
    this.#heart = new Heart(client.wire, reply);
    this.#steps = new Steps(reply.handoff_id);
    this.#recorded = new Recorded(client, client.wire, reply.handoff_id, reply.task_id);
    this.handoffId = reply.handoff_id;
    this.taskId = reply.task_id;
    this.claimId = reply.claim_id;
    this.fence = reply.fence;
    this.attempt = reply.attempt;
    this.taints = reply.taints;
    this.envelopeHash = reply.envelope_hash;
    this.envelope = reply.envelope as m.Envelope;
    this.questions = reply.questions ?? [];
    this.earlierAttempts = reply.earlier_attempts ?? [];
  }

  /** The user's own words. */
  get intent(): string {
    return this.envelope.intent;
  }

  /** What to work on. */
  // biome-ignore lint/suspicious/noExplicitAny: its shape is the sender's
  get payload(): { type: string; [name: string]: any } {
    return this.envelope.payload as { type: string };
  }

  /** What binds everybody who works on this task. */
  get constraints(): m.Constraint[] {
    return this.envelope.constraints ?? [];
  }

  /** Aborted once the claim is over although nothing was reported: the lease ran out, the task was
   * cancelled, the time for the attempt is over. */
  get signal(): AbortSignal {
    return this.#heart.signal;
  }

  get lost(): boolean {
    return this.signal.aborted;
  }

  /** Whether the broker was not heard for as long as the lease lasts. */
  get inDoubt(): boolean {
    return this.#heart.inDoubt;
  }

  /** Whether it was said what became of it. */
  get reported(): boolean {
    return this.#reported;
  }

  /** Throws `LeaseLost` if the claim is lost. For the middle of long work. */
  check(): void {
    this.signal.throwIfAborted();
  }

  /** Begins the heartbeats and says that the work has begun. What hands out claims does this. */
  async begin(): Promise<this> {
    this.#heart.start();
    try {
      await this.start();
    } catch (error) {
      this.#heart.finish();
      throw error;
    }
    return this;
  }

  /** Says that the work has begun, and repeats what binds: the ids are made anew from the texts
   * that came, so that they prove what was received. With a key, the agent signs that it accepts
   * this very envelope. */
  async start(): Promise<m.Moved> {
    const ids = await Promise.all(this.constraints.map((it) => constraintId(it.text)));
    const expected = this.envelope.expected_output;
    const repeated = {
      constraints: ids,
      expected_output: expected ? await address(expected) : null,
    };
    const unordered = { ...repeated, constraints: [...new Set(ids)].sort() };
    const signed = await this.#signed("accepted", () => address(unordered));
    return this.#act(ROUTES.handoff_start, { read_back: repeated, signed });
  }

  /** Reports progress. It is kept in the log, and extends the lease. */
  progress(note?: string, percent?: number): Promise<m.Moved> {
    this.check();
    return this.#act(ROUTES.handoff_progress, { note, percent });
  }

  /** Words to the holder since this was asked last. Asking acknowledges them. */
  messages(): m.HolderMessage[] {
    return this.#heart.messages();
  }

  /** Calls something with each word to the holder. Those are acknowledged. */
  onMessage(tell: (message: m.HolderMessage) => void): void {
    this.#heart.hear(tell);
  }

  /** Adds to what this attempt used. Goes along with whatever is reported of it, a failure too. */
  usage(used: Partial<m.WorkUsage>): void {
    const before = this.#usage;
    this.#usage = {
      ...before,
      ...JSON.parse(JSON.stringify(used)),
      input_tokens: (before?.input_tokens ?? 0) + (used.input_tokens ?? 0),
      output_tokens: (before?.output_tokens ?? 0) + (used.output_tokens ?? 0),
    };
  }

  /** Leaves a piece of work that is there already, under a name. It outlives this claim. */
  attach(name: string, content: unknown, type?: string): Promise<m.Moved> {
    this.check();
    return this.#act(ROUTES.handoff_attach, { name, content: plain(content, "/content"), type });
  }

  /**
   * Asks the sender, or a person, and returns the answer. While it waits no lease runs and no
   * attempt is used up. The answer comes with a new claim and a new fence, which this object has
   * from then on.
   */
  async ask(text: string, question: Question = {}): Promise<unknown> {
    this.check();
    this.#heart.pause(true);
    let asked: m.AskReply;
    try {
      const body = { ...question, text, by_id: true, ...this.#held };
      asked = await this.#wire.send(ROUTES.handoff_ask, { id: this.handoffId }, body);
    } catch (error) {
      this.#heart.pause(false);
      throw this.#noticed(error);
    }
    await this.#resume();
    return this.questions.findLast((it) => it.question === asked.question)?.answer;
  }

  async #resume(): Promise<void> {
    const body = { agent: this.agent, majors: [2], request_id: newKey(), wait_ms: 20_000 };
    const path = { id: this.handoffId };
    for (;;) {
      try {
        const reply = await this.#wire.send(ROUTES.handoff_claim_one, path, body, {
          waitMs: body.wait_ms,
        });
        this.claimId = reply.claim_id;
        this.fence = reply.fence;
        this.questions = reply.questions ?? [];
        this.earlierAttempts = reply.earlier_attempts ?? [];
        this.#heart.resume(reply);
        await this.start();
        return;
      } catch (error) {
        if (!(error instanceof errors.Refused) || !GONE.has(error.code)) throw this.#noticed(error);
        if (error.code === "wrong_state" && error.details.state === "input_required") continue;
        const why = `the question of ${this.handoffId} was not answered: ${error.reason}`;
        const hint = "stop working on it; claim again if you want more work";
        throw this.#noticed(new errors.LeaseLost(why, { hint }));
      }
    }
  }

  /** Says that the work is done and what came of it: an object, a text, or whatever JSON has. A
   * result that does not fit what was expected is refused, and the claim goes on. */
  async complete(result?: unknown, more: Completion = {}): Promise<m.Moved> {
    const body: JsonObject = {
      ...more,
      action: more.action === "completed" ? undefined : more.action,
      payload: asPayload(result),
      usage: used(more.usage ?? this.#usage),
      follow_ups: more.follow_ups?.map((it) => written(it)),
    };
    body.signed = await this.#signed("completed", () => resultAddress(this.handoffId, body));
    return this.#end(ROUTES.handoff_complete, body);
  }

  /** Completes with `result` and hands the task on, in one atomic step. */
  handOn(next: FollowUp, result?: unknown, more: Completion = {}): Promise<m.Moved> {
    return this.complete(result, { ...more, follow_ups: [...(more.follow_ups ?? []), next] });
  }

  /** Says that the work failed: `retryable` will be tried again, `permanent` will not, and must
   * have a `hint` at what would fix it. */
  fail(message: string, said: FailureSaid = {}): Promise<m.Moved> {
    const usage = used(said.usage ?? this.#usage);
    return this.#fail({ class: "unknown", type: "error", ...said, usage, message });
  }

  /** Reports an exception as a failure of the class that fits it. */
  async failWith(error: unknown): Promise<void> {
    const said = { ...failure(error, this.classify), usage: used(this.#usage) };
    try {
      await this.#fail(said);
    } catch (refused) {
      if (!(refused instanceof errors.InvalidRequest)) throw refused;
      await this.#fail(reduced(said));
    }
  }

  async #fail(said: JsonObject): Promise<m.Moved> {
    const signed = await this.#signed("failed", () => failureAddress(this.handoffId, said));
    return this.#end(ROUTES.handoff_fail, { ...said, signed });
  }

  /** Gives the work back unfinished, for somebody else. */
  release(options: { brief?: boolean } = {}): Promise<m.Moved> {
    return this.#end(ROUTES.handoff_release, {}, options.brief);
  }

  /** Says that this agent will not do it. It does not get it again. */
  decline(reason?: string): Promise<m.Moved> {
    return this.#end(ROUTES.handoff_decline, { agent: this.agent, reason });
  }

  /** Gives the work back, to be claimed again after a while or at a time. That is no failure. */
  putBack(when: { for_ms?: number; until?: Date | string; reason?: string }): Promise<m.Moved> {
    return this.#end(ROUTES.handoff_put_back, when);
  }

  /** Takes files or other resources for this claim. They are free again when it ends. */
  async reserve(...resources: string[]): Promise<m.Reservation[]> {
    const path = { id: this.handoffId };
    const body = { ...this.#held, resources };
    return (await this.#wire.send(ROUTES.handoff_reserve, path, body, { signal: this.signal }))
      .reservations;
  }

  /** Has somebody else do a part, and waits for the result. The task stays this agent's. Ends when
   * this claim is lost. */
  async call(call: Call, how: Waiting = {}): Promise<m.ResultReport> {
    span(how.timeoutMs, "timeoutMs");
    const ends = how.signal ? either(this.signal, how.signal) : this.signal;
    return this.cameOf(await this.startCall(call, { signal: ends }), { ...how, signal: ends });
  }

  /** What came of a call that was started. Ends when this claim is lost. */
  async cameOf(started: Handoff, how: Waiting = {}): Promise<m.ResultReport> {
    try {
      return await started.result({ ...how, signal: how.signal ?? this.signal });
    } catch (error) {
      // It may have been cancelled because this claim is over, which the next heartbeat tells later.
      if (error instanceof errors.HandoffFailed && error.state === "cancelled") {
        await this.#stillHeld(how.signal);
      }
      throw error;
    }
  }

  async #stillHeld(signal?: AbortSignal): Promise<void> {
    const shown = await this.#wire.send(ROUTES.handoff_show, { id: this.handoffId }, undefined, {
      signal,
    });
    const held = shown.state === "claimed" || shown.state === "in_progress";
    if (held && shown.attempts.at(-1)?.fence === this.fence) return;
    const why = `the claim of ${this.handoffId} is over: it is ${shown.state}`;
    const hint = "stop working on it; claim again if you want more work";
    throw this.#noticed(new errors.LeaseLost(why, { hint }));
  }

  /** The same without waiting. If this work is lost and done again, the same call finds what was
   * started before, instead of starting it a second time. */
  async startCall({ step, ...call }: Call, options: Options = {}): Promise<Handoff> {
    this.check();
    const how: Options = { signal: options.signal ?? this.signal };
    const given: NewHandoff = {
      ...call,
      from_agent: this.agent,
      task_id: this.taskId,
      control: "awaited",
    };
    const before = step && !call.idempotency_key ? await this.#recorded.find(step) : undefined;
    if (before) return before;
    const named = step && this.#recorded.name(step);
    if (named) given.metadata = { ...call.metadata, step: named };
    const body = await offered(this.#wire, given);
    const taken = call.idempotency_key || step ? undefined : await this.#steps.take(body);
    body.idempotency_key ??= named || taken?.key;
    try {
      const stored = await this.#wire.send(ROUTES.handoff_offer, {}, body, how);
      return new Handoff(this.#wire, stored);
    } catch (error) {
      taken?.giveBack();
      const other = error instanceof errors.Conflict && error.code === "idempotency_conflict";
      if (step && other) {
        this.#recorded = new Recorded(this.client, this.#wire, this.handoffId, this.taskId);
        const started = await this.#recorded.find(step, true);
        if (started) return started;
      }
      if (error instanceof errors.Conflict && error.code === "task_finished") {
        throw this.#noticed(new errors.LeaseLost(error.reason, { hint: error.hint, cause: error }));
      }
      throw error;
    }
  }

  /** Fetches more of a memory than the envelope passed; the broker counts what was missed. */
  memory(id: string, query: { revision?: number; detail?: m.Detail } = {}): Promise<m.Memory> {
    return this.client.memories.show(id, { ...query, handoff: this.handoffId });
  }

  /** The envelope as a model reads it, with the payload as quoted data. */
  prompt(
    query: { tokenizer?: string; max_tokens?: number; payload_apart?: boolean } = {},
  ): Promise<m.Prompt> {
    return this.client.handoffs.prompt(this.handoffId, query);
  }

  /** Leaves it: what was not reported is given back, with a warning. */
  async leave(): Promise<void> {
    if (this.#reported || this.lost) return this.#heart.finish();
    await this.release();
    globalThis.process?.emitWarning?.(
      `${this.handoffId} was left without complete() or fail(), and was released`,
      "UnreportedClaim",
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }

  get #held() {
    return { claim_id: this.claimId, fence: this.fence };
  }

  async #signed(act: string, body: () => Promise<string>) {
    const key = await this.#wire.key();
    if (!key) return undefined;
    const held = [this.handoffId, this.envelopeHash, this.claimId, String(this.fence)];
    return key.statement("acknowledgment", ...held, act, await body());
  }

  async #act(route: Route<m.Moved>, body: object, brief = false): Promise<m.Moved> {
    try {
      const said = { ...body, ...this.#held };
      return await this.#wire.send(route, { id: this.handoffId }, said, { brief });
    } catch (error) {
      throw this.#noticed(error);
    }
  }

  async #end(route: Route<m.Moved>, body: object, brief = false): Promise<m.Moved> {
    // Sent even if the claim is lost: the broker refuses it, and keeps it in the log as late.
    const moved = await this.#act(route, body, brief);
    this.#reported = true;
    this.#heart.finish();
    return moved;
  }

  #noticed(error: unknown): unknown {
    if (error instanceof errors.LeaseLost) this.#heart.lose(error);
    return error;
  }
}

function either(one: AbortSignal, other: AbortSignal): AbortSignal {
  const both = new AbortController();
  for (const signal of [one, other]) {
    if (signal.aborted) both.abort(signal.reason);
    signal.addEventListener("abort", () => both.abort(signal.reason), {
      once: true,
      signal: both.signal,
    });
  }
  return both.signal;
}
