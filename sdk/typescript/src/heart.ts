// SPDX-License-Identifier: Apache-2.0
// Heartbeats: keep one claim alive until it is reported on, and notice when it is lost. They come
// from the event loop, so work that blocks it for longer than the lease belongs into a worker
// thread.

import * as errors from "./errors.js";
import type * as m from "./models.js";
import { ROUTES } from "./operations.js";
import type { Wire } from "./wire.js";

/** What the broker says when a claim is over. */
const OVER = new Set(["stale_claim", "task_finished", "wrong_state", "handoff_not_found"]);

export class Heart {
  readonly #lost = new AbortController();
  #held: { claim_id: string; fence: number };
  #leaseMs: number;
  #leaseEnd: number;
  #workEnd: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running = false;
  #done = false;
  #asking = false;
  #messages: m.HolderMessage[];
  #heard: number;
  #acknowledge: number | undefined;
  readonly #hearers: ((message: m.HolderMessage) => void)[] = [];

  constructor(
    private readonly wire: Wire,
    private readonly claim: m.ClaimReply,
  ) {
    this.#held = { claim_id: claim.claim_id, fence: claim.fence };
    this.#leaseMs = claim.lease_ms;
    this.#leaseEnd = performance.now() + claim.lease_left_ms;
    this.#workEnd = performance.now() + claim.work_left_ms;
    this.#messages = [...(claim.messages ?? [])];
    this.#heard = Math.max(0, ...this.#messages.map((it) => it.number));
  }

  /** Aborted once the claim is over although nothing was reported; its reason says why. */
  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  /** Whether the lease may have run out: the broker was not heard for as long as it lasts. */
  get inDoubt(): boolean {
    return performance.now() > this.#leaseEnd;
  }

  start(): void {
    if (this.#running || this.#done) return;
    this.#running = true;
    this.#next(Math.min(this.#leaseMs, Math.max(0, this.#leaseEnd - performance.now())) / 3);
  }

  /** Whether the claim was given up for an answer: there is nothing to keep, and nothing to lose. */
  pause(asking: boolean): void {
    this.#asking = asking;
  }

  /** The answer brought a new claim. */
  resume(claim: m.ClaimReply): void {
    this.#held = { claim_id: claim.claim_id, fence: claim.fence };
    this.#leaseMs = claim.lease_ms;
    this.#leaseEnd = performance.now() + claim.lease_left_ms;
    this.#workEnd = performance.now() + claim.work_left_ms;
    this.#asking = false;
    this.#hear(claim.messages ?? []);
  }

  /** The claim was reported on: what a beat on its way hears now means nothing. */
  finish(): void {
    this.#done = true;
    clearTimeout(this.#timer);
  }

  /** The claim is over, as somebody found out. */
  lose(error: errors.TasukiError): void {
    if (this.#done || this.signal.aborted) return;
    this.#done = true;
    clearTimeout(this.#timer);
    const hint = "stop working on it; claim again if you want more work";
    const lost =
      error instanceof errors.LeaseLost ? error : new errors.LeaseLost(error.reason, { hint });
    this.#lost.abort(lost);
  }

  /** Messages that came since this was asked last. Asking acknowledges them. */
  messages(): m.HolderMessage[] {
    const fresh = this.#messages;
    this.#messages = [];
    this.#acknowledge = fresh.at(-1)?.number ?? this.#acknowledge;
    return fresh;
  }

  hear(tell: (message: m.HolderMessage) => void): void {
    this.#hearers.push(tell);
    this.#passOn();
  }

  #hear(messages: m.HolderMessage[]): void {
    for (const message of messages) {
      if (message.number <= this.#heard) continue;
      this.#heard = message.number;
      this.#messages.push(message);
    }
    this.#passOn();
  }

  #passOn(): void {
    if (this.#hearers.length === 0) return;
    for (const message of this.messages()) {
      for (const tell of this.#hearers) tell(message);
    }
  }

  #next(ms: number): void {
    if (this.#done) return;
    this.#timer = setTimeout(() => void this.#keep(), ms);
    // A claim that was forgotten does not keep its process from ending.
    this.#timer.unref?.();
  }

  async #keep(): Promise<void> {
    if (this.#done) return;
    if (this.#asking) return this.#next(Math.min(this.#leaseMs / 3, 1000));
    if (performance.now() > this.#workEnd) {
      return this.lose(new errors.TasukiError("the time for this attempt is over"));
    }
    const began = performance.now();
    try {
      await this.#beat(began);
      this.#next(Math.max(0, began + this.#leaseMs / 3 - performance.now()));
    } catch (error) {
      this.#unheard(error as Error);
    }
  }

  async #beat(began: number): Promise<void> {
    const acknowledge = this.#acknowledge;
    const body = { ...this.#held, ...(acknowledge === undefined ? {} : { acknowledge }) };
    const answerMs = Math.max(200, Math.min(this.wire.timeoutMs, this.#leaseMs / 3));
    const path = { id: this.claim.handoff_id };
    const how = { patienceMs: 0, answerMs };
    const beat = await this.wire.send(ROUTES.handoff_heartbeat, path, body, how);
    if (this.#acknowledge === acknowledge) this.#acknowledge = undefined;
    this.#hear(beat.messages ?? []);
    // Counted from before the request: by the broker's clock the lease began no earlier.
    this.#leaseEnd = began + beat.lease_left_ms;
    this.#workEnd = began + beat.work_left_ms;
  }

  /** Only the broker's own word ends a claim: whatever else happens on the way there may have
   * passed by the next beat. */
  #unheard(error: Error): void {
    if (!this.#asking && error instanceof errors.Refused && !error.retryable) {
      const passed = this.inDoubt && !error.code.startsWith("signature_");
      if (OVER.has(error.code) || passed) this.lose(error);
    }
    this.#next(this.#leaseMs / 10);
  }
}
