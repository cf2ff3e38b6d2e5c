// SPDX-License-Identifier: Apache-2.0
// Tasuki: the handoff broker for AI agents. `Client` hands work over and takes it; `worker` makes
// an agent of a function.

export { type Call, Claim, type Completion, type FailureSaid, type Question } from "./claims.js";
export { Client, type Taking, type Wanted } from "./client.js";
export { type AssembledHandoff, type HandoffRequest, MemorySpine } from "./compat.js";
export * from "./errors.js";
export { Handoff, type Waiting } from "./handoffs.js";
export { address, canonical } from "./json.js";
export { authored, Key, type Signed, verify } from "./keys.js";
export type * as models from "./models.js";
export type { FollowUp, NewHandoff } from "./offers.js";
export { type Classify, type FailureClass, failureClass } from "./report.js";
export { NO_RETRY, type Options, RETRY, type Retry, type Settings } from "./wire.js";
export { type Handler, run, Worker, type WorkerSettings, worker } from "./worker.js";
