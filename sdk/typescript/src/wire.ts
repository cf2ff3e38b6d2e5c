// SPDX-License-Identifier: Apache-2.0
// How a call becomes a request, what an answer means, and when to try again.

import * as errors from "./errors.js";
import { type JsonObject, plain } from "./json.js";
import { Key } from "./keys.js";

const URL_DEFAULT = "http://127.0.0.1:8788";
/** How long one request waits at the broker; longer waits are several requests. */
export const WAIT_MS_MAX = 20_000;
/** How long something is tried by a program that wants to end: a lease ends the rest. */
const BRIEF_MS = 1_000;
/** Asking again with a new signature is all that these need. */
const SIGN_AGAIN = new Set(["signature_too_early", "signature_expired", "signature_replayed"]);
/** How a request fails that was never sent. */
const NEVER_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** One operation of the API; `T` is what it answers. */
export interface Route<T> {
  name: string;
  method: string;
  path: string;
  /** The noun of the client and its method, if it has one. */
  at: readonly [string, string] | null;
  members: readonly string[];
  /** Members that name who asks: the client's own agent, unless they are given. */
  own: readonly string[];
  /** Those of them that the API does not do without. */
  needs: readonly string[];
  /** The member by which the broker knows a repeat, if there is one. */
  key: string | null;
  /** Only for the compiler: what it answers. */
  readonly answers?: T;
}

/** How a call is made, as far as that is not what is sent. */
export interface Options {
  /** Ends the call; what it throws is the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** A body of which some members are filled in by the client. */
export type Without<T, K extends string> = T extends unknown
  ? Omit<T, K> & Partial<Pick<T, K & keyof T>>
  : never;

export type Send = <T>(
  route: Route<T>,
  path: { [name: string]: string },
  said?: object,
  options?: Options & Inner,
) => Promise<T>;

/** What only the SDK says of a call. */
export interface Inner {
  /** How long the broker may wait before it answers. */
  waitMs?: number;
  /** For a program that wants to end. */
  brief?: boolean;
  /** How long to go on, if that is not what the client was told. */
  patienceMs?: number;
  /** How long one answer may take, if that is not what the client was told. */
  answerMs?: number;
}

/** How long to go on trying when the broker is away or asks for patience: pauses are random, grow
 * from `baseMs` to `capMs`, and are never shorter than what the broker asks for. */
export interface Retry {
  forMs: number;
  baseMs: number;
  capMs: number;
}

export const RETRY: Retry = { forMs: 30_000, baseMs: 100, capMs: 5_000 };
/** Fails at the first obstacle. */
export const NO_RETRY: Retry = { ...RETRY, forMs: 0 };

export interface Settings {
  /** Where the broker is; `TASUKI_URL`, or the one on this machine. */
  url?: string | undefined;
  /** In whose name things are done where nothing else is said. */
  agent?: string | undefined;
  /** Shows who asks; `TASUKI_TOKEN`. */
  token?: string | undefined;
  /** The same by a signature: a key, or the path of a key file; `TASUKI_KEY`. */
  key?: Key | string | undefined;
  /** The id of the broker's key: what is signed is for no other. `TASUKI_BROKER`, or what the key
   * file says; else the broker is asked once and believed. */
  broker?: string | undefined;
  /** What the broker may take beyond a wait before an answer counts as lost. */
  timeoutMs?: number | undefined;
  retry?: Retry | undefined;
  /** Another way to send requests. */
  fetch?: typeof fetch | undefined;
}

/** One way to the broker. */
export class Wire {
  readonly baseUrl: string;
  readonly retry: Retry;
  readonly timeoutMs: number;
  readonly #agent: string | undefined;
  readonly #token: string | undefined;
  readonly #key: Key | string | undefined;
  readonly #fetch: typeof fetch;
  readonly #broker: string | undefined;
  #loaded: Promise<Key | undefined> | undefined;
  #met: Promise<string | undefined> | undefined;

  constructor(given: Settings) {
    const env = globalThis.process?.env ?? {};
    this.baseUrl = (given.url || env.TASUKI_URL || URL_DEFAULT).replace(/\/+$/, "");
    if (!/^https?:\/\/[^/]+/.test(this.baseUrl)) {
      throw new TypeError(`${this.baseUrl} is no address of a broker, such as ${URL_DEFAULT}`);
    }
    this.#key = given.key ?? (given.token ? undefined : env.TASUKI_KEY || undefined);
    this.#token = given.token ?? (this.#key ? undefined : env.TASUKI_TOKEN || undefined);
    this.#agent = given.agent ?? (this.#key instanceof Key ? this.#key.agent : undefined);
    this.#broker = given.broker || env.TASUKI_BROKER || undefined;
    this.timeoutMs = span(given.timeoutMs, "timeoutMs") ?? 10_000;
    this.retry = given.retry ?? RETRY;
    this.#fetch = given.fetch ?? globalThis.fetch;
  }

  /** The key of this client, read once. */
  key(): Promise<Key | undefined> {
    const key = this.#key;
    this.#loaded ??= typeof key === "string" ? Key.load(key) : Promise.resolve(key);
    return this.#loaded;
  }

  /** The key that the broker says it has, asked once. One of before has none, and wants none named. */
  async #asked(): Promise<string | undefined> {
    this.#met ??= (async () => {
      const signal = AbortSignal.timeout(this.timeoutMs);
      const response = await this.#fetch(`${this.baseUrl}/healthz`, { redirect: "manual", signal });
      const said: unknown = await response.json();
      const named = (said as { broker_key_id?: unknown } | null)?.broker_key_id;
      return typeof named === "string" ? named : undefined;
    })();
    try {
      return await this.#met;
    } catch (error) {
      this.#met = undefined;
      throw error;
    }
  }

  get agent(): string | undefined {
    return this.#agent;
  }

  /** The agent in whose name something is done. */
  async who(named: string | undefined, what: string): Promise<string> {
    const name = named ?? this.#agent ?? (await this.key())?.agent;
    if (!name) throw new TypeError(`say ${what}, or give the client an agent`);
    return name;
  }

  /** Makes a call, and repeats it as long as that is safe and sensible. */
  readonly send: Send = async <T>(
    route: Route<T>,
    path: { [name: string]: string },
    said?: object,
    options: Options & Inner = {},
  ): Promise<T> => {
    if (route.method === "GET") {
      return decode(
        route,
        await this.exchange(route, path, said as JsonObject, undefined, options),
      );
    }
    const body = await this.#filled(route, (said ?? {}) as JsonObject);
    return decode(
      route,
      await this.exchange(route, path, undefined, JSON.stringify(body), options),
    );
  };

  async #filled(route: Route<unknown>, said: JsonObject): Promise<JsonObject> {
    for (const name of Object.keys(said)) {
      if (!route.members.includes(name)) throw new TypeError(unexpected(name, route));
    }
    const body = plain(said) as JsonObject;
    for (const name of route.own) {
      if (body[name] !== undefined) continue;
      if (route.needs.includes(name)) body[name] = await this.who(undefined, name);
      else if (this.#agent && name !== "agent") body[name] = this.#agent;
    }
    if (route.key && body[route.key] === undefined) body[route.key] = newKey();
    return body;
  }

  /** The same, with the body and the answer as they are. */
  async exchange(
    route: Route<unknown>,
    path: { [name: string]: string },
    query: JsonObject | undefined,
    content: string | undefined,
    options: Options & Inner = {},
  ): Promise<string> {
    const tries = new Tries(this, route, options);
    for (;;) {
      options.signal?.throwIfAborted();
      let pause: number;
      try {
        const [response, text] = await this.request(route, path, query, content, options);
        const again = tries.answer(response, text);
        if (again === undefined) return text;
        pause = again;
      } catch (error) {
        options.signal?.throwIfAborted();
        if (error instanceof errors.TasukiError) throw error;
        pause = tries.fault(error);
      }
      await sleep(pause, options.signal);
    }
  }

  /** One request, with the proof of who sends it: made anew for each try, because a signature
   * counts once. A stream is left to be read; of all else the text is here. */
  async request(
    route: Route<unknown>,
    path: { [name: string]: string },
    query: JsonObject | undefined,
    content: string | undefined,
    options: Options & Inner & { stream?: boolean } = {},
  ): Promise<[Response, string]> {
    const place = route.path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = path[name];
      if (!value) throw new TypeError(`${route.name} needs its ${name}`);
      return encodeURIComponent(value);
    });
    const url = new URL(this.baseUrl + place);
    for (const [name, value] of Object.entries(query ?? {})) {
      if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
    }
    // As RFC 3986 writes a space; both ends must read the same text.
    url.search = url.search.replaceAll("+", "%20");
    const headers: { [name: string]: string } = {
      accept: options.stream ? "text/event-stream, application/x-ndjson" : "application/json",
      "user-agent": "tasuki-typescript",
    };
    if (content !== undefined) headers["content-type"] = "application/json";
    const key = await this.key();
    if (key) {
      const audience = this.#broker ?? key.broker ?? (await this.#asked());
      Object.assign(headers, await key.headers(route.method, url, content, audience));
    } else if (this.#token) headers.authorization = `Bearer ${this.#token}`;
    const answer = options.answerMs ?? this.timeoutMs;
    const limit = options.brief ? Math.min(answer, 2 * BRIEF_MS) : answer + (options.waitMs ?? 0);
    const both = joined(options.signal, limit);
    try {
      const response = await this.#fetch(url, {
        method: route.method,
        headers,
        body: content ?? null,
        redirect: "manual",
        signal: both.signal,
      });
      if (options.stream && response.ok) {
        both.inTime();
        return [response, ""];
      }
      const text = await response.text();
      both.done();
      return [response, text];
    } catch (error) {
      both.done();
      throw error;
    }
  }
}

/** The tries of one call: told what happened, it says how long to pause, or throws. */
export class Tries {
  #tries = 0;
  #inDoubt = false;
  readonly #began = performance.now();
  readonly #forMs: number;

  constructor(
    private readonly wire: Wire,
    private readonly route: Route<unknown>,
    options: Inner = {},
  ) {
    const most = options.patienceMs ?? wire.retry.forMs;
    this.#forMs = options.brief ? Math.min(most, BRIEF_MS) : most;
  }

  /** After no answer, or one that cannot be read. */
  fault(error: unknown): number {
    const cause = (error as { cause?: { code?: string; message?: string } }).cause;
    const neverSent = NEVER_SENT.has(cause?.code ?? "");
    this.#inDoubt ||= !neverSent;
    const why = cause?.message || cause?.code || (error as Error).message;
    return this.#next(
      new errors.Unreachable(`cannot reach the broker at ${this.wire.baseUrl}: ${why}`, {
        hint: "start it with `tasuki serve`, or name another with TASUKI_URL",
        cause: error,
      }),
      true,
      0,
    );
  }

  /** After an answer: nothing if it is the one, else a pause. */
  answer(response: Response, text: string): number | undefined {
    const kind = response.headers.get("content-type") ?? "";
    if (response.ok && !kind.includes("html")) return undefined;
    const baseUrl = this.wire.baseUrl;
    const final = response.ok
      ? errors.notABroker(response.status, baseUrl)
      : errors.refusal(response.status, parsed(text), baseUrl);
    const unknown = final instanceof errors.NotABroker || final.code === "outcome_unknown";
    this.#inDoubt ||= unknown;
    // Conflicts may pass, too, but when is a matter of what others do: the program decides.
    const again = (final.retryable && response.status !== 409) || SIGN_AGAIN.has(final.code);
    const told = Number(response.headers.get("retry-after") ?? 0) * 1000;
    return this.#next(final, again, Number.isFinite(told) ? told : 0);
  }

  #next(final: errors.TasukiError, again: boolean, least: number): number {
    this.#tries += 1;
    const pause = Math.max(least, pauseOf(this.wire.retry, this.#tries));
    if (again && performance.now() - this.#began + pause <= this.#forMs) return pause;
    final.inDoubt = this.#inDoubt && this.route.method !== "GET";
    throw final;
  }
}

/** How long to wait after so many tries. */
export function pauseOf(retry: Retry, tries: number): number {
  return Math.random() * Math.min(retry.capMs, retry.baseMs * 2 ** Math.min(tries, 30));
}

function decode<T>(route: Route<T>, text: string): T {
  const value = parsed(text);
  if (typeof value !== "object" || value === null) throw strange(route);
  return value as T;
}

/** The error for an answer that is not what it should be. */
export function strange(route: Route<unknown>): errors.TasukiError {
  const what = `the answer of ${route.method} ${route.path} does not fit its description`;
  return new errors.TasukiError(what, {
    code: "unexpected_answer",
    hint: "the broker may be too old for this SDK: compare their versions",
  });
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unexpected(name: string, route: Route<unknown>): string {
  const squashed = (text: string) => text.toLowerCase().replaceAll("_", "");
  const meant = route.members.find((it) => squashed(it).startsWith(squashed(name)));
  const hint = meant ? `; did you mean ${meant}?` : "";
  return `${route.name} takes no ${name}${hint}`;
}

/** A span of milliseconds that a program gave. */
export function span(value: number | undefined, what: string): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !(value >= 0)) {
    throw new TypeError(`${what} is a number of milliseconds, not ${String(value)}`);
  }
  return value;
}

/** Waits; a signal ends it at once. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** A signal that ends with another one, or after a while. Left as it is found: a signal that lives
 * as long as a program does not collect listeners. */
function joined(signal: AbortSignal | undefined, ms: number) {
  const both = new AbortController();
  const stop = () => both.abort(signal?.reason);
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop, { once: true });
  const late = () => both.abort(new DOMException(`no answer in ${ms} ms`, "TimeoutError"));
  const timer = setTimeout(late, Math.min(ms, 2 ** 31 - 1));
  const done = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  };
  return { signal: both.signal, done, inTime: () => clearTimeout(timer) };
}

/** A span that runs out, or does not if there is none. */
export class Deadline {
  readonly #end: number;

  constructor(ms: number | undefined) {
    this.#end = ms === undefined ? Number.POSITIVE_INFINITY : performance.now() + ms;
  }

  get left(): number {
    return Math.max(0, this.#end - performance.now());
  }

  get over(): boolean {
    return this.left <= 0;
  }

  /** How long the next request may wait at the broker. */
  get nextWait(): number {
    return Math.round(Math.min(WAIT_MS_MAX, this.left));
  }
}

/** An idempotency key that nobody else has. */
export function newKey(): string {
  return crypto.randomUUID().replaceAll("-", "");
}
