// SPDX-License-Identifier: Apache-2.0
// How the adapters of all frameworks hand work over: the claim that a run works on, calls and
// transfers from its tools, and one policy for what goes wrong. `serving.ts` is the other half.
//
// - `LeaseLost` always comes out: it ends the run, and what it waits for.
// - A call that failed, was refused or took too long becomes text for the model, or an exception
//   (`onError: "raise"`). The text alone would let a chain "complete" with an error inside it, so
//   the result of a served run is then marked: `needs_review`, with what failed among its gaps. So
//   is one that was built on a result that was marked itself.

import { AsyncLocalStorage } from "node:async_hooks";
import type { Claim } from "../claims.js";
import { Client } from "../client.js";
import * as errors from "../errors.js";
import { Handoff, type Waiting } from "../handoffs.js";
import { hex, type JsonObject, sha256 } from "../json.js";
import type * as m from "../models.js";
import type { FollowUp, NewHandoff } from "../offers.js";

const NAME_CHARS_MAX = 64;
const KEY_CHARS_MAX = 200;
const GAP_CHARS_MAX = 500;
/** How much of a conversation goes along, and how long a token is at least on average. */
const HISTORY_TOKENS_MAX = 2000;
const TOKEN_CHARS = 4;
/** A conversation takes no larger part of what the work may use. */
const HISTORY_PART = 4;

/** Who said what, in the order in which it was said. */
export type Conversation = readonly { from: string; said: string }[];

/** How a tool hands work over. */
export interface Sending {
  /** What its model reads about it. */
  description?: string;
  /** Whether `to` is a capability: any agent that has it may take the work. */
  byCapability?: boolean;
  /** The way to the broker where there is no claim; without it, one from the environment. */
  client?: Client;
  /** In whose name, where there is no claim. */
  fromAgent?: string;
  /** How long to wait for a result. */
  timeoutMs?: number;
  /** What becomes of a failure: text for the model, or an exception. */
  onError?: "text" | "raise";
  /** What binds from here on, besides what binds already. */
  constraints?: NewHandoff["constraints"];
  /** How much of the conversation goes along, where there is one. */
  historyTokens?: number;
}

/** What a served run of a framework's agent has to do with the broker. */
export class Run {
  /** What went wrong below it. It marks the result. */
  readonly gaps: string[] = [];
  /** Decisions that go along with whatever is handed on from here. */
  readonly decisions: m.SaidDecision[] = [];
  /** To whom the task passes when the run ends. */
  readonly passed: FollowUp[] = [];
  /** What attempts before this one asked, and was answered. */
  readonly answered: m.HolderQuestion[];
  readonly #calls = new Map<string, string[]>();

  constructor(readonly claim: Claim) {
    this.answered = claim.questions.filter((one) => one.answered_at);
  }

  /** Says that something is missing, or is not as it should be: the result says so. */
  gap(text: string): void {
    this.gaps.push(text.slice(0, GAP_CHARS_MAX));
  }

  /** Notes a decision: whoever gets work from this run from now on is bound by it. */
  decide(decision: string, why?: string): void {
    this.decisions.push(why ? { decision, why } : { decision });
  }

  /** The name of a call. The same tool call, executed again, is the same step; so is the same call
   * of a run that is done again after a crash, although its model made up a new id for it. The same
   * words on purpose a second time are the next step. */
  step(digest: string, key: string | undefined): string | undefined {
    if (key === undefined) return undefined;
    const keys = this.#calls.get(digest) ?? [];
    this.#calls.set(digest, keys);
    if (!keys.includes(key)) keys.push(key);
    return `${digest}:${keys.indexOf(key) + 1}`;
  }
}

const runs = new AsyncLocalStorage<Run>();

/** Does something as part of a run: its tools find the claim. */
export function within<T>(run: Run, work: () => Promise<T>): Promise<T> {
  return runs.run(run, work);
}

/** The run that this code is part of, in a tool of the program's own. */
export function currentRun(): Run | undefined {
  return runs.getStore();
}

/** The claim that this run works on, in a tool of the program's own. */
export function currentClaim(): Claim | undefined {
  return runs.getStore()?.claim;
}

/** A name that every model provider takes, from the name of an agent or a capability. */
export function toolName(to: string, before = "handoff_to"): string {
  const name = `${before}_${to}`.replace(/[^A-Za-z0-9_]+/g, "_").slice(0, NAME_CHARS_MAX);
  return name.replace(/_+$/, "");
}

export const TRANSFER = "transfer_to";
export const ASK_NAME = "ask_the_sender";
export const ASK_DESCRIPTION =
  "Ask whoever this work is from, where only they can know. Waits for the answer.";

/** What a model reads about the tool that calls. */
export function described(to: string): string {
  return `Hand a part of the work to ${to}, and get its result. Say all that it needs to know.`;
}

/** What a model reads about the tool that ends the turn. */
export function describedTransfer(to: string): string {
  return `Hand the work over to ${to}, who goes on with it. Say all that it needs to know.`;
}

/** The schema of a tool that takes one text. */
export function takes<Name extends string>(name: Name) {
  const text = { type: "string" as const, description: "All that is needed to know." };
  return {
    type: "object" as const,
    properties: { [name]: text } as Record<Name, typeof text>,
    required: [name],
    additionalProperties: false as const,
  };
}

/** The end of a conversation, as data: as much of it as there is room for, the newest whole. */
export function quoted(said: Conversation, most: number, claim?: Claim): Conversation {
  const budget = claim?.envelope.budget?.tokens;
  const tokens = Math.min(most, budget ? Math.floor(budget / HISTORY_PART) : most);
  let room = tokens * TOKEN_CHARS;
  const kept = [];
  for (const one of said.toReversed()) {
    if (one.said.length > room) break;
    room -= one.said.length;
    kept.unshift(one);
  }
  const left = said.length - kept.length;
  if (left === 0) return kept;
  const told = `${left} earlier messages are left out: there is no room for them`;
  return [{ from: "tasuki", said: told }, ...kept];
}

/** What is sent, and what names it. */
async function hopOf(to: string, task: string, said: Conversation, sending: Sending) {
  const run = currentRun();
  const payload: JsonObject = { type: "request", text: task };
  if (said.length > 0) {
    payload.conversation = quoted(said, sending.historyTokens ?? HISTORY_TOKENS_MAX, run?.claim);
  }
  const capability = Boolean(sending.byCapability);
  const hop: FollowUp = { to: capability ? { capability: to } : to, payload };
  if (run?.decisions.length) hop.decisions = [...run.decisions];
  if (sending.constraints) hop[run ? "add_constraints" : "constraints"] = sending.constraints;
  const bytes = new TextEncoder().encode(JSON.stringify([to, capability, task]));
  return { hop, digest: hex(await sha256(bytes)).slice(0, 24) };
}

/** Hands something over and does not wait. Below a claim, intent and constraints travel along
 * whether anybody thinks of them or not. */
async function begin(
  to: string,
  task: string,
  key: string | undefined,
  said: Conversation,
  sending: Sending,
  control: m.Control,
): Promise<Handoff> {
  const run = currentRun();
  const { hop, digest } = await hopOf(to, task, said, sending);
  if (run) {
    const step = run.step(digest, key);
    return run.claim.startCall({ ...hop, ask: task, ...(step ? { step } : {}) });
  }
  const client = sending.client ?? new Client();
  const named = key && `${key}:${digest}`.slice(-KEY_CHARS_MAX);
  return client.handoff({
    ...hop,
    intent: task,
    control,
    from_agent: sending.fromAgent ?? client.wire.agent ?? "program",
    ...(named ? { idempotency_key: named } : {}),
  });
}

/** What a tool call is, for all frameworks. */
export interface Asking {
  to: string;
  task: string;
  /** What names the call (a tool-call id), so that what is executed again creates nothing twice. */
  key: string | undefined;
  said?: Conversation;
  signal?: AbortSignal | undefined;
}

/** The id of something that was handed over, whose result a later process may ask for. */
export async function begun({ to, task, key, said = [] }: Asking, sending: Sending) {
  return (await begin(to, task, key, said, sending, "passed")).id;
}

/** Has somebody else do something, and returns what a model reads of the result. */
export async function ask(
  { to, task, key, said = [], signal }: Asking,
  sending: Sending,
): Promise<string> {
  const run = currentRun();
  const how = waiting(sending, signal);
  try {
    const called = await begin(to, task, key, said, sending, "awaited");
    const result = await (run ? run.claim.cameOf(called, how) : called.result(how));
    return heard(textOf(result, to));
  } catch (error) {
    return missing(to, error, sending.onError);
  }
}

/** What a model reads of a handoff that was made without waiting, perhaps by another process. */
export async function outcome(id: string, client: Client, how: Waiting = {}): Promise<string> {
  const run = currentRun();
  const told = { handoff_id: id, listening: true } as m.OfferReply;
  const handoff = new Handoff((run?.claim.client ?? client).wire, told);
  try {
    const result = await (run ? run.claim.cameOf(handoff, how) : handoff.result(how));
    return heard(textOf(result, id));
  } catch (error) {
    return missing(id, error);
  }
}

function waiting(sending: Sending, signal: AbortSignal | undefined): Waiting {
  return {
    ...(sending.timeoutMs === undefined ? {} : { timeoutMs: sending.timeoutMs }),
    ...(signal ? { signal } : {}),
  };
}

/** What a model reads of a call that came to nothing, and the mark on what is made of it. */
function missing(to: string, error: unknown, onError: "text" | "raise" = "text"): string {
  const kinds = [errors.HandoffFailed, errors.TimedOut, errors.Refused];
  const ours = kinds.some((kind) => error instanceof kind) && !(error instanceof errors.LeaseLost);
  if (!ours) throw error;
  const failed = error as errors.TasukiError;
  currentRun()?.gap(`${to}: ${failed.reason}`);
  if (onError === "raise") throw error;
  return `${to} has no result for this. ${failed.message}`;
}

/** What a model reads of a result. One that is marked is not taken for a whole one. */
function textOf(result: m.ResultReport, to: string): string {
  const payload = result.payload as { text?: unknown };
  const text = typeof payload.text === "string" ? payload.text : JSON.stringify(payload);
  const gaps = result.gaps ?? [];
  if (result.action === "completed" && gaps.length === 0) return text;
  const why = gaps.join("; ") || String(result.action).replaceAll("_", " ");
  currentRun()?.gap(`${to}: ${why}`);
  return `${text}\n\n(This is not the whole result: ${why}.)`;
}

/** The same, and what was said to the holder meanwhile: its model reads it with the next answer of
 * a tool. */
function heard(text: string): string {
  const words = currentClaim()?.messages() ?? [];
  const said = words.filter((one) => one.text).map((one) => one.text);
  return [text, ...said.map((one) => `A message to you, from whom the work is: ${one}`)].join(
    "\n\n",
  );
}

/** Below a claim: when the run ends, the task passes to somebody else, in the same atomic step.
 * Elsewhere there is no task to pass on, and this says so. */
export async function passOn(
  { to, task, said = [] }: Omit<Asking, "key">,
  sending: Sending,
): Promise<boolean> {
  const run = currentRun();
  if (!run) return false;
  const { hop } = await hopOf(to, task, said, sending);
  const next = { ...hop, ask: task };
  const known = run.passed.some((one) => JSON.stringify(one) === JSON.stringify(next));
  if (!known) run.passed.push(next);
  return true;
}

/** Asks whoever the work is from, and returns the answer. The claim is given up meanwhile. */
export async function question(text: string): Promise<string> {
  const run = currentRun();
  if (!run) return "There is nobody to ask: this work is from no one else.";
  const answer = await answered(run, text);
  return typeof answer === "string" ? answer : JSON.stringify(answer);
}

/** Asks for leave to do something, and returns whether it was granted. */
export async function leave(text: string, details: m.Object): Promise<boolean> {
  const run = currentRun();
  if (!run) return false;
  const answer = await answered(run, text, details);
  return (answer as { granted?: unknown } | undefined)?.granted === true;
}

/** An attempt that ended while it waited, or after it, need not ask again. */
async function answered(run: Run, text: string, details?: m.Object): Promise<unknown> {
  const before = run.answered.findIndex((one) => one.text === text);
  if (before >= 0) return run.answered.splice(before, 1)[0]?.answer;
  return run.claim.ask(text, details ? { kind: "authorization", details } : {});
}
