// SPDX-License-Identifier: Apache-2.0
// Agents as functions: claim work, run a function on it, and report what came of it, several at a
// time, until asked to stop.

import type { Claim } from "./claims.js";
import { Client, isAway, type Wanted } from "./client.js";
import * as errors from "./errors.js";
import type { Classify } from "./report.js";
import { newKey, pauseOf, sleep, span } from "./wire.js";

/** How long one request for work waits. */
const POLL_MS = 20_000;

/** What it returns completes the claim; what it throws is reported as a failure. */
export type Handler = (claim: Claim) => unknown;

export interface WorkerSettings extends Wanted {
  /** A client to share; one of its own otherwise. */
  client?: Client;
  /** How many pieces of work at a time. */
  concurrency?: number;
  /** How long work under way may go on after a stop. */
  graceMs?: number;
  /** Ends after there was nothing to do for so long. */
  idleMs?: number;
  classify?: Classify;
  /** Stops it. */
  signal?: AbortSignal;
  /** Where it says what it does; `console.error` if this is true, nowhere if it is false. */
  log?: boolean | ((line: string) => void);
}

/**
 * A function that works on claims. `run()` goes on until `stop()`, `signal`, SIGTERM or Ctrl-C.
 * Stopping takes no new work, lets what is under way finish for `graceMs`, and gives back the rest;
 * a second stop does not wait. A lost claim ends the work: its `signal` is aborted, and nothing more
 * is reported.
 */
export class Worker {
  readonly #stopping = new AbortController();
  readonly #hurry = new AbortController();
  readonly #running = new Map<Claim, Promise<void>>();
  readonly #concurrency: number;
  readonly #log: (line: string) => void;
  #busy = performance.now();

  constructor(
    readonly handler: Handler,
    private readonly settings: WorkerSettings,
  ) {
    if (typeof handler !== "function") {
      throw new TypeError("a worker needs a function that takes a claim: worker({ agent }, fn)");
    }
    this.#concurrency = settings.concurrency ?? 1;
    if (!Number.isInteger(this.#concurrency) || this.#concurrency < 1) {
      throw new TypeError(`concurrency is a whole number from 1, not ${settings.concurrency}`);
    }
    for (const name of ["graceMs", "idleMs", "lease_ms"] as const) span(settings[name], name);
    const log = settings.log ?? false;
    this.#log = typeof log === "function" ? log : log ? console.error : () => {};
  }

  /** Asks it to stop. A second time: at once. */
  stop(): void {
    if (this.#stopping.signal.aborted) this.#hurry.abort();
    this.#stopping.abort();
  }

  /** Works until it is asked to stop, or until there was nothing to do for `idleMs`. */
  async run(): Promise<void> {
    const client = this.settings.client ?? new Client();
    const stop = () => this.stop();
    const process = globalThis.process;
    process?.on?.("SIGTERM", stop).on("SIGINT", stop);
    this.settings.signal?.addEventListener("abort", stop, { once: true });
    if (this.settings.signal?.aborted) stop();
    try {
      this.#log(`${this.settings.agent ?? "worker"}: asks ${client.url} for work`);
      await this.#work(client);
    } finally {
      await this.#drain();
      process?.off?.("SIGTERM", stop).off("SIGINT", stop);
      this.settings.signal?.removeEventListener("abort", stop);
    }
  }

  async #work(client: Client): Promise<void> {
    const idleMs = this.settings.idleMs ?? Number.POSITIVE_INFINITY;
    this.#busy = performance.now();
    while (!this.#stopping.signal.aborted) {
      if (this.#running.size > 0) this.#busy = performance.now();
      const left = this.#busy + idleMs - performance.now();
      if (left <= 0) return;
      const free = this.#concurrency - this.#running.size;
      if (free === 0) {
        await first([...this.#running.values()], this.#stopping.signal);
        continue;
      }
      for (const claim of await this.#ask(client, free, Math.min(POLL_MS, Math.ceil(left)))) {
        this.#busy = performance.now();
        const done = this.#one(claim).finally(() => this.#running.delete(claim));
        this.#running.set(claim, done);
      }
    }
  }

  /** Asks for work until the broker has answered, always with the same request id: what was granted
   * in an answer that was lost comes with the next one. */
  async #ask(client: Client, free: number, waitMs: number): Promise<Claim[]> {
    const { agent, capabilities, lease_ms, classify } = this.settings;
    const signal = this.#stopping.signal;
    const wanted = JSON.parse(JSON.stringify({ agent, capabilities, lease_ms })) as Wanted;
    const id = newKey();
    for (let tries = 1; ; tries += 1) {
      try {
        return await client.takeSome(wanted, free, id, { waitMs, signal, patienceMs: 0 }, classify);
      } catch (error) {
        if (signal.aborted) return [];
        if (!isAway(error)) throw error;
        this.#log(`no work: ${error.message}`);
        await sleep(Math.max(100, pauseOf(client.wire.retry, tries)), signal).catch(() => {});
      }
    }
  }

  async #one(claim: Claim): Promise<void> {
    try {
      await claim.begin();
      // A function cannot be ended from outside; but nobody waits for one that has lost its claim.
      const lost = aborted(claim.signal).then(() => claim.check());
      const value = await Promise.race([this.handler(claim), lost]);
      if (!claim.reported) await this.#complete(claim, value);
    } catch (error) {
      if (claim.lost || claim.reported) {
        this.#log(`${claim.handoffId} is lost: ${(error as Error).message}`);
        return;
      }
      this.#log(
        `${claim.handoffId} failed: ${error instanceof Error ? error.stack : String(error)}`,
      );
      await claim.failWith(error).catch((unheard: Error) => {
        // Without a report the lease runs out by itself.
        this.#log(`cannot report what became of ${claim.handoffId}: ${unheard.message}`);
      });
    }
  }

  async #complete(claim: Claim, value: unknown): Promise<void> {
    try {
      await claim.complete(value);
    } catch (error) {
      if (error instanceof TypeError) {
        throw new errors.Permanent(
          `the result of ${this.handler.name || "the worker"}: ${error.message}`,
          {
            hint: "return what JSON has: objects, lists, texts, numbers",
            type: "result_is_not_json",
            cause: error,
          },
        );
      }
      if (error instanceof errors.InvalidRequest) {
        throw new errors.Permanent(`the result was refused: ${error.reason}`, {
          hint: error.hint || "return what the sender expects",
          type: error.code,
          details: error.details,
          cause: error,
        });
      }
      throw error;
    }
  }

  async #drain(): Promise<void> {
    const grace = sleep(this.settings.graceMs ?? 30_000, this.#hurry.signal).catch(() => {});
    await Promise.race([Promise.all(this.#running.values()), grace]);
    this.#hurry.abort();
    const left = [...this.#running.keys()].filter((it) => !it.reported);
    await Promise.allSettled(left.map((it) => it.release({ brief: true })));
  }
}

/** Makes an agent of a function: `await worker({ agent: "reviewer" }, async (claim) => …).run()`. */
export function worker(settings: WorkerSettings, handler: Handler): Worker {
  return new Worker(handler, settings);
}

/** Runs several workers until one is stopped or all have nothing to do; a stop ends all of them. */
export async function run(...workers: Worker[]): Promise<void> {
  const all = workers.map((one) => one.run());
  try {
    await Promise.all(all);
  } finally {
    for (const one of workers) one.stop();
    await Promise.allSettled(all);
  }
}

/** Waits for the first of some, or for a signal. Leaves no listener behind on one that lives long. */
async function first(all: Promise<void>[], signal: AbortSignal): Promise<void> {
  const done = new AbortController();
  const stopped = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true, signal: done.signal });
  });
  await Promise.race([...all, stopped]);
  done.abort();
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
