// SPDX-License-Identifier: Apache-2.0
// What an agent's program did, as the broker wants to hear it: failures from exceptions, and what a
// signature covers.

import * as errors from "./errors.js";
import { address, canonical, hex, type JsonObject, plain, sha256 } from "./json.js";
import type * as m from "./models.js";

export type FailureClass = "retryable" | "permanent" | "unknown";
/** Says of which class an exception is; `undefined` leaves it to the SDK. */
export type Classify = (error: unknown) => FailureClass | undefined;

const TEXT_CHARS_MAX = 4000;
const CAUSES_MAX = 8;
const PAUSE_MS_MAX = 7 * 86_400_000;
/** What somebody else's service answers when trying again may help. */
const RETRY_STATUS = new Set([408, 409, 425, 429, 500, 502, 503, 504, 529]);
const RETRY_CODES = new Set(["ECONNRESET", "ECONNREFUSED", "ETIMEDOUT", "EPIPE", "EAI_AGAIN"]);

/**
 * Of which class an exception is. What the program says itself (`Retryable`, `Permanent`,
 * `classify`) comes first, then what the error of a service says about itself (`status`, as the
 * clients of model providers have it, or `retryable`), then its kind.
 */
export function failureClass(error: unknown, classify?: Classify): FailureClass {
  const told = classify?.(error);
  if (told) return told;
  if (error instanceof errors.Retryable) return "retryable";
  if (error instanceof errors.Permanent) return "permanent";
  // Its own retries are used up: trying again here would multiply them, level by level.
  if (error instanceof errors.HandoffFailed) return "permanent";
  if (error instanceof errors.TasukiError) return error.retryable ? "retryable" : "unknown";
  const about = (error ?? {}) as { [name: string]: unknown };
  const status = about.status ?? about.statusCode;
  if (typeof status === "number" && status >= 400) {
    return RETRY_STATUS.has(status) ? "retryable" : "permanent";
  }
  const code = about.code ?? (about.cause as { code?: unknown } | undefined)?.code;
  if (typeof code === "string" && RETRY_CODES.has(code)) return "retryable";
  if (about.name === "TimeoutError") return "retryable";
  if (error instanceof TypeError && error.message === "fetch failed") return "retryable";
  const mistakes = [TypeError, RangeError, ReferenceError, SyntaxError, URIError];
  if (mistakes.some((kind) => error instanceof kind)) return "permanent";
  return "unknown";
}

/** What to report of an exception. Whatever it is made of, there is something to report. */
export function failure(error: unknown, classify?: Classify): JsonObject {
  const kind = failureClass(error, classify);
  const said = error instanceof errors.Retryable || error instanceof errors.Permanent;
  const facts: errors.FailureFacts = said ? error.facts : {};
  const name = error instanceof Error ? error.name : typeof error;
  const place = placeOf(error);
  const hint =
    facts.hint ??
    (error instanceof errors.TasukiError && error.hint ? error.hint : undefined) ??
    (kind === "permanent"
      ? `fix what threw ${name}${place && ` in ${place}`}, then redrive it`
      : undefined);
  const report: JsonObject = {
    class: kind,
    type: facts.type ?? snake(name),
    message: short(error instanceof Error ? error.message || name : String(error)),
    hint: hint && short(hint),
    attempted: facts.attempted && short(facts.attempted),
    details: { ...sendable(facts.details), ...(place ? { raised_in: place } : {}) },
    causes: causes(error),
  };
  if (kind === "retryable" && facts.retryAfterMs !== undefined) {
    report.retry_after_ms = Math.min(Math.max(0, Math.round(facts.retryAfterMs)), PAUSE_MS_MAX);
  }
  return plain(report) as JsonObject;
}

/** The least that there is to say, for when the whole of it is refused. */
export function reduced(report: JsonObject): JsonObject {
  const least: JsonObject = {
    class: report.class,
    type: "error",
    message: short(String(report.message), 500),
  };
  if (report.class === "permanent") least.hint = short(String(report.hint ?? "see its log"), 500);
  return least;
}

function sendable(details: JsonObject | undefined): JsonObject {
  try {
    return plain(details ?? {}) as JsonObject;
  } catch (error) {
    return { left_out: `the details cannot be sent: ${(error as Error).message}` };
  }
}

function causes(error: unknown): string[] {
  const found: string[] = [];
  let cause = (error as { cause?: unknown } | undefined)?.cause;
  while (cause !== undefined && found.length < CAUSES_MAX) {
    found.push(
      short(cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause), 500),
    );
    cause = (cause as { cause?: unknown } | undefined)?.cause;
  }
  return found;
}

/** The file and the line of the program's own that threw. */
function placeOf(error: unknown): string {
  const lines = (error instanceof Error ? (error.stack ?? "") : "").split("\n").slice(1);
  const own = lines.find((line) => !line.includes("node:") && !line.includes("/node_modules/"));
  const found = own?.match(/([^/\\(]+:\d+):\d+\)?$/);
  return found?.[1] ?? "";
}

function short(text: string, most = TEXT_CHARS_MAX): string {
  const whole = text.toWellFormed();
  return whole.length <= most ? whole : `${whole.slice(0, most - 1)}…`;
}

const snake = (name: string) =>
  name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .slice(0, 64);

/** What an attempt used, in the words that the broker keeps. */
export function used(usage: Partial<m.WorkUsage> | undefined): JsonObject | undefined {
  return usage && { input_tokens: 0, output_tokens: 0, ...usage };
}

/** The address of what a holder says of its result, which is what its signature covers. */
export function resultAddress(handoffId: string, said: JsonObject): Promise<string> {
  const criteria = (said.criteria as unknown[] | undefined) ?? [];
  const gaps = (said.gaps as unknown[] | undefined) ?? [];
  return address({
    handoff_id: handoffId,
    action: said.action ?? "completed",
    payload: said.payload,
    metadata: said.metadata ?? {},
    declared: criteria.length > 0 ? criteria : undefined,
    gaps: gaps.length > 0 ? gaps : undefined,
    usage: said.usage,
  });
}

/** The same for a failure. */
export function failureAddress(handoffId: string, said: JsonObject): Promise<string> {
  const { causes: list, ...rest } = said;
  const told = Array.isArray(list) && list.length > 0 ? { causes: list } : {};
  const details = said.details ?? {};
  return address({ ...rest, ...told, details, handoff_id: handoffId, action: "failed" });
}

/**
 * The idempotency keys of what is made while a handoff is worked on. A key follows from the handoff
 * and from what is sent, not from chance: if the work is lost and done again, the same step is the
 * same step. A step that is done twice on purpose is told apart by its number.
 */
export class Steps {
  readonly #taken = new Map<string, Set<number>>();

  constructor(private readonly handoffId: string) {}

  async take(body: JsonObject): Promise<{ key: string; giveBack: () => void }> {
    const bytes = new TextEncoder().encode(canonical(body));
    const digest = hex(await sha256(bytes)).slice(0, 32);
    const taken = this.#taken.get(digest) ?? new Set();
    this.#taken.set(digest, taken);
    let number = 1;
    while (taken.has(number)) number += 1;
    taken.add(number);
    const key = `${this.handoffId}:${digest}:${number}`;
    return { key, giveBack: () => taken.delete(number) };
  }
}
