// SPDX-License-Identifier: Apache-2.0
// Everything that can go wrong, in one family. Each error has `code`, `hint` and `retryable`,
// whether the broker said so or the SDK found out by itself. Codes of the broker have a page each
// under `/docs/errors/<code>` (`docUrl`).

import type { Handoff } from "./handoffs.js";

/** What an error can say beside its message. */
export interface Facts {
  code?: string;
  hint?: string;
  retryable?: boolean;
  details?: { [name: string]: unknown };
  requestId?: string;
  docUrl?: string;
  status?: number;
  cause?: unknown;
}

/** The base of them all. */
export class TasukiError extends Error {
  readonly code: string;
  hint: string;
  readonly retryable: boolean;
  readonly details: { [name: string]: unknown };
  readonly requestId: string | undefined;
  readonly docUrl: string | undefined;
  readonly status: number | undefined;
  /** Whether an earlier try of the same call may have been carried out: its answer was lost. */
  inDoubt = false;
  /** What was said, without code and hint. */
  readonly reason: string;

  constructor(message: string, facts: Facts = {}) {
    const code = facts.code ?? "error";
    const hint = facts.hint ?? "";
    super(hint ? `${message} [${code}] (${hint})` : `${message} [${code}]`, { cause: facts.cause });
    this.name = new.target.name;
    this.reason = message;
    this.code = code;
    this.hint = hint;
    this.retryable = facts.retryable ?? false;
    this.details = facts.details ?? {};
    this.requestId = facts.requestId;
    this.docUrl = facts.docUrl;
    this.status = facts.status;
  }
}

/** What does not fit in a request, and where. */
export interface Fault {
  path: string;
  [name: string]: unknown;
}

/** The broker said no. */
export class Refused extends TasukiError {
  /** What does not fit, each with its path. */
  get faults(): Fault[] {
    return Array.isArray(this.details.faults) ? (this.details.faults as Fault[]) : [];
  }
}

/** What was sent is malformed or does not fit (400, 413, 415, 422). */
export class InvalidRequest extends Refused {}
/** The request does not show who it is from, or not well enough (401). */
export class Unauthenticated extends Refused {}
/** The caller may not do this (403). */
export class NotPermitted extends Refused {}
/** There is no such thing, or none that the caller may see (404, 410). */
export class NotFound extends Refused {}
/** It does not go together with the present state (409). */
export class Conflict extends Refused {}
/** The claim is over: somebody else may have the work by now. Stop working on it. */
export class LeaseLost extends Conflict {
  constructor(message: string, facts: Facts = {}) {
    super(message, { code: "stale_claim", ...facts });
  }
}
/** Too much at once (429). */
export class Overloaded extends Refused {}
/** The broker could not do it just now (5xx). */
export class Unavailable extends Refused {}

/** The broker did not answer, however often it was asked. */
export class Unreachable extends TasukiError {
  constructor(message: string, facts: Facts = {}) {
    super(message, { code: "unreachable", retryable: true, ...facts });
  }
}

/** Something answered, and it is not a broker: a proxy in between, or another program. */
export class NotABroker extends Unreachable {
  constructor(message: string, facts: Facts = {}) {
    super(message, { code: "not_a_broker", ...facts });
  }
}

/** Something did not happen in time. It may still happen: nothing was cancelled. */
export class TimedOut extends TasukiError {
  /** What was waited for, where that is one handoff. */
  handoff: Handoff | undefined;

  constructor(message: string, facts: Facts = {}) {
    super(message, { code: "timed_out", retryable: true, ...facts });
  }
}

/** There was nothing to claim in time. */
export class NoWork extends TimedOut {
  constructor(message: string, facts: Facts = {}) {
    super(message, { code: "no_work", ...facts });
  }
}

/** A stream of events cannot promise that it told everything; go on after `resumeAfter`. */
export class EventsMissed extends TasukiError {
  readonly resumeAfter: string;

  constructor(told: { resume_after: string }) {
    super("the stream may have missed events", {
      code: "events_missed",
      hint: `read again what follows ${told.resume_after}`,
      details: { ...told },
    });
    this.resumeAfter = told.resume_after;
  }
}

/** The last report of a failure, as its agent made it. */
export interface FailureReport {
  class?: string;
  type?: string;
  message?: string;
  hint?: string;
  [name: string]: unknown;
}

/** A handoff ended without a result: failed, dead-lettered or cancelled. */
export class HandoffFailed extends TasukiError {
  readonly handoffId: string;
  readonly state: string;
  readonly failure: FailureReport;

  constructor(
    message: string,
    about: Facts & { handoffId: string; state: string; failure?: FailureReport },
  ) {
    super(message, { code: "handoff_failed", ...about });
    this.handoffId = about.handoffId;
    this.state = about.state;
    this.failure = about.failure ?? {};
  }
}

/** What an agent can say of a failure. */
export interface FailureFacts {
  type?: string;
  hint?: string;
  attempted?: string;
  retryAfterMs?: number;
  details?: { [name: string]: unknown };
  cause?: unknown;
}

/** Thrown in an agent: it went wrong this time, and may go well the next. */
export class Retryable extends Error {
  constructor(
    message: string,
    readonly facts: FailureFacts = {},
  ) {
    super(message, { cause: facts.cause });
    this.name = "Retryable";
  }
}

/** Thrown in an agent: it will go wrong every time, until somebody does what `hint` says. */
export class Permanent extends Error {
  constructor(
    message: string,
    readonly facts: FailureFacts & { hint: string },
  ) {
    super(message, { cause: facts.cause });
    this.name = "Permanent";
  }
}

const BY_STATUS = new Map<number, typeof Refused>([
  [401, Unauthenticated],
  [403, NotPermitted],
  [404, NotFound],
  [409, Conflict],
  [410, NotFound],
  [429, Overloaded],
]);
/** What something in between says when trying again may help: it is not the broker's word. */
const PASSING = new Set([401, 404, 407, 408, 421, 425, 429]);

interface Problem {
  code: string;
  message: string;
  retryable: boolean;
  hint?: unknown;
  details?: unknown;
  request_id?: unknown;
}

function isProblem(value: unknown): value is Problem {
  if (typeof value !== "object" || value === null) return false;
  const told = value as Partial<Problem>;
  return (
    typeof told.code === "string" &&
    typeof told.message === "string" &&
    typeof told.retryable === "boolean"
  );
}

/** The error for an answer that is not a success. What is not a broker's problem object says
 * nothing about the request, whatever its status. */
export function refusal(status: number, problem: unknown, baseUrl: string): Refused | NotABroker {
  if (!isProblem(problem)) return notABroker(status, baseUrl);
  const known = BY_STATUS.get(status) ?? (status >= 500 ? Unavailable : InvalidRequest);
  const kind = problem.code === "stale_claim" ? LeaseLost : known;
  const facts: Facts = {
    code: problem.code,
    hint: typeof problem.hint === "string" ? problem.hint : "",
    retryable: problem.retryable,
    docUrl: `${baseUrl}/docs/errors/${problem.code}`,
    status,
  };
  if (typeof problem.details === "object" && problem.details !== null) {
    facts.details = problem.details as { [name: string]: unknown };
  }
  if (typeof problem.request_id === "string") facts.requestId = problem.request_id;
  return new kind(problem.message, facts);
}

/** The error for an answer that no broker gives. */
export function notABroker(status: number, baseUrl: string): NotABroker {
  return new NotABroker(`the answer of ${baseUrl} is not a broker's (HTTP ${status})`, {
    hint: "a proxy may be in between, or the address may be another program's",
    retryable: status < 400 || PASSING.has(status) || status >= 500,
    status,
  });
}
