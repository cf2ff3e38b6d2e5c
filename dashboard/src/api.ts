// SPDX-License-Identifier: Apache-2.0
// How the pages talk to the broker they came from. Everything goes to the same origin, below the
// same prefix.

/** What the broker says when it refuses or fails. */
export interface Problem {
  code: string;
  message: string;
  hint: string;
  retryable?: boolean;
  request_id?: string;
  details?: Record<string, unknown>;
}

export class Failed extends Error {
  readonly status: number;
  readonly problem: Problem;
  constructor(status: number, problem: Problem) {
    super(problem.message);
    this.status = status;
    this.problem = problem;
  }
}

/** What stands before /ui/, where a proxy serves the broker below a path of its own. */
export const prefix = location.pathname.replace(/\/ui(\/.*)?$/, "");

export type Query = Record<string, string | number | boolean | null | undefined>;

export function address(path: string, query: Query = {}): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") pairs.set(name, String(value));
  }
  const text = pairs.toString();
  return prefix + path + (text ? `?${text}` : "");
}

/** Called when the broker no longer knows who asks. */
let onSignedOut: () => void = () => {};
export function whenSignedOut(then: () => void): void {
  onSignedOut = then;
}

const TIMEOUT_MS = 30_000;

async function ask(method: string, path: string, query: Query, body: unknown, signal?: AbortSignal): Promise<Response> {
  const patience = AbortSignal.timeout(TIMEOUT_MS);
  let reply: Response;
  try {
    reply = await fetch(address(path, query), {
      method,
      credentials: "same-origin",
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, patience]) : patience,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Failed(0, {
      code: "unreachable",
      message: "the broker does not answer",
      hint: "is it running? this page tries again by itself",
      retryable: true,
    });
  }
  if (!reply.ok) throw await failure(reply);
  return reply;
}

/** What the broker says about why it did not do it. */
export async function failure(reply: Response): Promise<Failed> {
  if (reply.status === 401) onSignedOut();
  const problem = (json(await reply.text()) as Problem | null) ?? {
    code: `http_${reply.status}`,
    message: `the broker answered ${reply.status}`,
    hint: "look at its log",
  };
  return new Failed(reply.status, problem);
}

function json(text: string): unknown {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

export async function call<T>(
  method: string,
  path: string,
  query: Query = {},
  body?: unknown,
  signal?: AbortSignal,
): Promise<T> {
  const reply = await ask(method, path, query, body, signal);
  return json(await reply.text()) as T;
}

/** What is told as text and not as JSON. */
export async function text(path: string, signal?: AbortSignal): Promise<string> {
  return await (await ask("GET", path, {}, undefined, signal)).text();
}

export const get = <T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> =>
  call<T>("GET", path, query, undefined, signal);

export const post = <T>(path: string, body: unknown = {}): Promise<T> =>
  call<T>("POST", path, {}, body);

/** A part of a path, as it must be written there. */
export const part = (text: string): string => encodeURIComponent(text);
