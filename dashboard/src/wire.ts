// SPDX-License-Identifier: Apache-2.0
// The broker's JSON, as the SDK's generated models describe it.
export type {
  Agent, Agents, AlertRules, Alerts, Attempt, ChainEvent, Constraint, ContextItem, DeadLetter, DeadLetterGroup, Decision, DecidedMany,
  Envelope, Events, Groups, Handoff, Handoffs, HandoffWithResult, HolderMessages, OpenQuestion, Pipeline, Pipelines,
  PopulationFinding, PopulationReport, Prompt, Questions, ReadyView, Stats, TargetHealth, TargetsHealth, Task, TaskChain, Tasks, TaskWithParts, Tokens,
  Verdict, WaitsFor, Artifacts,
} from "../../sdk/typescript/src/models.ts";
