// SPDX-License-Identifier: Apache-2.0
// Made by tools/generate.mjs from api/openapi.json. Do not edit.

// What the broker takes and gives, by the API's own names.

/* biome-ignore-all lint: generated */

/** An agent stands by what it did, in a way that anybody can check who has its public key. */
export interface Acknowledged {
  /** `accepted`, `completed` or `failed`. */
  act: string;
  /** The address of the result or the failure. */
  body?: Hash | null;
  claim_id: ClaimId;
  fence: Fence;
  signed: Signed;
}

/** What the sender did, or wants done. */
export type Action = "request" | "completed" | "failed" | "needs_review" | "changes_requested" | "escalated" | (string & {});

/** Who caused an event. */
export type Actor = string;

/** Other tasks that come first. */
export interface After {
  /** How many of them must have a result. */
  need: number;
  tasks: TaskId[];
}

/** An agent as others may see it. */
export interface Agent {
  agent_id: AgentId;
  /** How many handoffs it holds, as far as this broker saw. */
  holding: number;
  keys: EnrolledKey[];
  last_seen?: Timestamp | null;
  /** Whether it was heard of within the last minute. */
  live: boolean;
  manifest?: unknown;
  /** The address of the manifest, which its signature covers. */
  manifest_hash?: Hash | null;
  observed?: Observed[];
  /** What it may do; shown to itself and to administrators. */
  rules?: Rule[] | null;
  signed?: Signed | null;
  since: Timestamp;
  standing: Standing;
  /** Which one of its manifests this is, from 1; 0 if it has none. */
  version: number;
}

/** An agent's name, after its tenant and a slash if that is not the default one. */
export type AgentId = string;

export interface Agents {
  agents: Agent[];
}

export interface Alert {
  /** What to do. */
  action: string;
  ended_at?: Timestamp | null;
  rule: string;
  /** `info`, `warning` or `critical`. */
  severity: string;
  /** Whether a silence keeps people from being told. */
  silenced: boolean;
  /** Since when it holds, or held. */
  since: Timestamp;
  /** `pending` until it has held for as long as its rule says, then `firing`, then `resolved`. */
  state: string;
  summary: string;
  /** `agent:` or `capability:` and the name; absent where the rule is about everything together. */
  target?: string | null;
  /** What people were told last. */
  told?: AlertTold | null;
  /** What was found last. */
  value: string;
}

/** An alert that began or ended. */
export interface AlertMoved {
  fires: boolean;
  /** When it began or ended, by the times of the log. */
  moved_at: Timestamp;
  rule: string;
  /** Since when it fires, or fired. */
  since: Timestamp;
  /** As metrics call it: `agent:` or `capability:` and the name. */
  target?: string | null;
  /** What was found. */
  value: string;
}

export interface AlertRule {
  /** What to do. */
  action: string;
  /** Whether the broker finds out by itself; the others only Prometheus can. */
  built_in: boolean;
  /** Whether each target is looked at by itself. */
  by_target: boolean;
  /** The same as an expression of Prometheus. */
  expression: string;
  /** For how long it has to hold. */
  for_ms: number;
  name: string;
  /** `info`, `warning` or `critical`. */
  severity: string;
  summary: string;
}

/** The rules, as they are evaluated and as Prometheus would. */
export interface AlertRules {
  rules: AlertRule[];
}

/** What became of a notice that was sent to try it out. */
export interface AlertTested {
  webhooks: WebhookTested[];
}

export interface AlertTold {
  problem?: string | null;
  /** Whether every webhook took it. */
  sent: boolean;
  /** `firing` or `resolved`. */
  state: string;
  tries: number;
}

/** What holds now, and what people were told. */
export interface Alerts {
  /** Those that are on or pending first, then those that ended last. */
  alerts: Alert[];
  silences: Silence[];
}

/** Sends a dead letter on its way again with a new envelope, linked to the old one. */
export interface Amend {
  /** Adds to what binds, as a list or a map. */
  add_constraints?: unknown;
  /** What was considered and not taken, and why not. */
  alternatives?: string[];
  /** What this receiver must do. */
  ask?: string | null;
  /** What was taken for granted and not checked. */
  assumptions?: string[];
  /**
   * What the task may spend from here on, instead of what it might before. What binds the tasks
   * above it still does.
   */
  budget?: Budget | null;
  by: AgentId;
  /**
   * What binds everybody from here on. Without it, what bound before still does. A list says
   * all of it: one that leaves out or rewords what bound before is refused. A plain map, such
   * as `{"language": "python", "max_tokens": 4000}`, adds to it.
   */
  constraints?: unknown;
  /** Memories that are passed along, in full or in short; `/v1/assemble` makes them. */
  context?: ContextItem[];
  /** The address of the list of what was passed, as `/v1/assemble` gives it. */
  context_manifest?: Hash | null;
  /** Decisions that are new. */
  decisions?: SaidDecision[];
  /** Cases that were seen and left for later. */
  deferred?: string[];
  /** What is wanted back; a result that does not fit is refused. */
  expected_output?: ExpectedOutput | null;
  /**
   * How long it may take this time. Without it as long as before, and what expired gets at
   * least the broker's own span.
   */
  expires_in_ms?: number | null;
  /** References that could not be resolved. */
  gaps?: (string | NewGap)[];
  /** What was done and is not in the history yet. */
  history?: NewStep[];
  /** Ends constraints. Only who issued one, or the task's coordinator, can do that. */
  lift_constraints?: Lift[];
  /** Memories that the receiver can fetch. */
  memory_refs?: MemoryRef[];
  /** Questions that are new and that somebody must decide. */
  open_decisions?: (string | Question)[];
  /** Another payload; the same one without it. */
  payload?: Payload | null;
  /** Lets the claim count only once the receiver has repeated what binds it. */
  read_back?: boolean;
  /** What was chosen, as `/v1/assemble` gives it. */
  reading?: Reading | null;
  /** References of gaps that are resolved now. */
  resolved_gaps?: string[];
  /** How far the task is: what is done, what remains. */
  state?: TaskProgress | null;
  /** What the task is about now, in a few sentences. */
  summary?: string | null;
  /** How often, how long and within what time it is tried. */
  terms?: TermsPatch | null;
  /** Another receiver; the same one without it. */
  to?: Target | null;
  /** What was tried and did not work, so that nobody tries it again. */
  tried?: string[];
}

/**
 * Answers the question that a dead letter stopped at: the decision goes into the task's log,
 * and the work goes on with it.
 */
export interface Answer {
  by: AgentId;
  /** What was decided. */
  decision: SaidDecision;
  /**
   * How long it may take this time. Without it as long as before, and what expired gets at
   * least the broker's own span.
   */
  expires_in_ms?: number | null;
}

/** Answers the question that a handoff waits with. */
export interface AnswerQuestion {
  /** Any JSON that fits what the question asks for. */
  answer: unknown;
  by: AgentId;
  /** The address of the question that is answered; without it, the one that is open. */
  question?: Hash | null;
}

/** An envelope in whichever major it is served. */
export type AnyEnvelope = Envelope | Flat;

/** A hop as it is made today, or in the flat form of major 1. */
export type AnyFollowUp = FollowUp | Flat;

/** An offer as it is made today, or in the flat form of major 1. */
export type AnyOffer = Offer | Flat;

/** Who decides. */
export interface Approve {
  by: AgentId;
}

/** A piece of work that was attached while the work went on. */
export interface Artifact {
  /** The address of it. */
  artifact: Hash;
  at: Timestamp;
  /** The attempt in which it was attached. */
  attempt: number;
  by: AgentId;
  bytes: number;
  /** The piece itself, where there is room for it. */
  content?: unknown;
  name: ArtifactName;
  /** What it is, such as `text/markdown`. */
  type: string;
  /** Which one of its name it is, from 1. */
  version: number;
}

/** What a piece of work is called that a holder attaches before the result is there. */
export type ArtifactName = string;

export interface Artifacts {
  artifacts: Artifact[];
}

/** Asks a question and waits for the answer without holding the claim. */
export interface Ask {
  /** How long it may wait for its answer; without it, until the hard deadline of the attempt. */
  answer_ms?: number | null;
  /**
   * The asker comes for the answer by the handoff's id only (`POST /v1/handoffs/{id}/claim`),
   * so that no other process of the same name takes it along with other work.
   */
  by_id?: boolean;
  claim_id: ClaimId;
  /**
   * The answer that holds if nobody gives one within `answer_ms`. Without it the attempt fails
   * then.
   */
  default?: unknown;
  /** More about it, for programs. */
  details?: Object;
  fence: Fence;
  /**
   * For how long the answer is kept for the asker alone; without it, for as long as its lease
   * was.
   */
  keep_ms?: number | null;
  /** `input`: something that the asker must know. `authorization`: leave to do something. */
  kind?: QuestionKind;
  /**
   * The JSON Schema that the answer must fit. Without one, an answer to `authorization` is an
   * object with a boolean `granted`, and an answer to `input` is any JSON.
   */
  schema?: unknown;
  /** The question, for whoever reads it. */
  text: string;
}

/** Where a handoff is after its holder asked. */
export interface AskReply {
  correlation_id?: CorrelationId | null;
  handoff_id: HandoffId;
  /** The address of the question. */
  question: Hash;
  state: string;
  status: string;
  task_id: TaskId;
}

/** What a holder asked, and on which terms. */
export interface Asked {
  /** By when it must be answered; without it, until the hard deadline. */
  answer_by?: Timestamp | null;
  /** Whether the asker comes for the answer by the handoff's id only. */
  by_id?: boolean;
  fence: Fence;
  /** Whether the question says what holds if nobody answers in time. */
  has_default?: boolean;
  /** For how long the answer is kept for the asker alone. */
  keep_ms: number;
  question: Hash;
  question_kind: QuestionKind;
}

/** That a holder asks something. `GET /v1/questions` has the question itself. */
export interface Asks {
  /** How much time is left to answer. */
  answer_left_ms: number;
  asked_by: AgentId;
  kind: QuestionKind;
  /** The address of the question. */
  question: Hash;
}

/** Asks for what a receiver should get to read, within its token budget. Nothing is stored. */
export interface Assemble {
  /** Adds to what binds, as a list or a map. */
  add_constraints?: unknown;
  /** What was considered and not taken, and why not. */
  alternatives?: string[];
  /** What this receiver must do. */
  ask?: string | null;
  /** What was taken for granted and not checked. */
  assumptions?: string[];
  /**
   * What binds everybody from here on. Without it, what bound before still does. A list says
   * all of it: one that leaves out or rewords what bound before is refused. A plain map, such
   * as `{"language": "python", "max_tokens": 4000}`, adds to it.
   */
  constraints?: unknown;
  /** Memories that are passed along, in full or in short; `/v1/assemble` makes them. */
  context?: ContextItem[];
  /** The address of the list of what was passed, as `/v1/assemble` gives it. */
  context_manifest?: Hash | null;
  /** Decisions that are new. */
  decisions?: SaidDecision[];
  /** Cases that were seen and left for later. */
  deferred?: string[];
  /** What is wanted back; a result that does not fit is refused. */
  expected_output?: ExpectedOutput | null;
  /** Who sends it. A task is handed on by its owner. */
  from_agent: AgentId;
  /** References that could not be resolved. */
  gaps?: (string | NewGap)[];
  /** What was done and is not in the history yet. */
  history?: NewStep[];
  /** Whether pinned memories travel, whole. */
  include_pins?: boolean;
  /**
   * How many of the memories that changed last are considered; those that answer the ask best
   * are considered too.
   */
  include_recent?: number;
  /** The user's own words, where there is no task yet. */
  intent?: string | null;
  /** Ends constraints. Only who issued one, or the task's coordinator, can do that. */
  lift_constraints?: Lift[];
  /** How many tokens it may be; without it, the receiver's context window. */
  max_tokens?: number | null;
  /** Memories that the receiver can fetch. */
  memory_refs?: MemoryRef[];
  /** Questions that are new and that somebody must decide. */
  open_decisions?: (string | Question)[];
  /** What is to be sent with it, so that room is kept for it. */
  payload?: Payload | null;
  /** Where to look for memories, besides those of the sender and of the task. */
  project?: Project | null;
  /** Lets the claim count only once the receiver has repeated what binds it. */
  read_back?: boolean;
  /** What was chosen, as `/v1/assemble` gives it. */
  reading?: Reading | null;
  /** What of that the receiver needs for its system prompt, and for its work. */
  reserved_system_prompt?: number | null;
  /** Tokens that the receiver needs for its own steps and its answer. */
  reserved_work?: number | null;
  /** References of gaps that are resolved now. */
  resolved_gaps?: string[];
  /** What the receiver is, which says what it wants to see. */
  role?: string | null;
  /** How far the task is: what is done, what remains. */
  state?: TaskProgress | null;
  /** How memories are chosen and shortened. */
  strategy?: Strategy;
  /** What the task is about now, in a few sentences. */
  summary?: string | null;
  /** The task that is handed on: its intent, and what it has inherited, is in it. */
  task_id?: TaskId | null;
  /** Who is to read it: its manifest says how much it can read, in which tokens, in which role. */
  to_agent?: AgentId | null;
  /** The receiver's tokenizer or model, such as `o200k_base`. */
  tokenizer?: string | null;
  /** What was tried and did not work, so that nobody tries it again. */
  tried?: string[];
}

/** What was put together, and what was left out. */
export interface AssembleReply {
  /** What an envelope with it will carry. */
  envelope: EnvelopePreview;
  /** How many tokens that is, as JSON. */
  envelope_tokens: number;
  envelope_version: string;
  /** The ids of all memories that it has or refers to. */
  memory_refs: string[];
  /** What to send in an offer, so that its envelope has this. */
  offer: Said;
  /** What a model reads, as Markdown. */
  prompt: string;
  receipt: Receipt;
  /** How many tokens the prompt is. */
  token_count: number;
}

/** Attaches a piece of work that is there already. */
export interface Attach {
  claim_id: ClaimId;
  /** The piece itself: any JSON. */
  content: unknown;
  fence: Fence;
  /** What it is called; another one of the same name takes its place. */
  name: ArtifactName;
  /** What it is, such as `text/markdown`. */
  type: string;
}

/** A piece of work that is there before the result is. */
export interface Attached {
  artifact: Hash;
  bytes: number;
  fence: Fence;
  name: ArtifactName;
  /** What it is, such as `text/markdown`. */
  type: string;
  /** Which one of its name it is, from 1. */
  version: number;
}

export interface Attempt {
  agent: AgentId;
  claimed_at: Timestamp;
  ended?: string | null;
  ended_at?: Timestamp | null;
  fence: Fence;
  /** A report came after the end: refused, and kept in the audit log. */
  late?: boolean;
  number: number;
  started_at?: Timestamp | null;
}

/** The first entry that is not as it should be. */
export interface BadEntry {
  /** The how-manieth event of its task, from 0. */
  index?: number | null;
  problem: string;
  task_id?: TaskId | null;
}

/** The answers of a batch, in the order of its parts: each is a result or an error. */
export interface BatchOfMoved {
  results: PartOfMoved[];
}

/** The answers of a batch, in the order of its parts: each is a result or an error. */
export interface BatchOfOfferReply {
  results: PartOfOfferReply[];
}

export interface Beat {
  correlation_id?: CorrelationId | null;
  handoff_id: HandoffId;
  lease_left_ms: number;
  /** Messages to the holder that it has not acknowledged yet. */
  messages?: HolderMessage[];
  /**
   * The dead letter above it that somebody has to decide on before anything more comes of this
   * work. A result is kept.
   */
  on_hold?: HandoffId | null;
  /** What the task is built on and no longer holds. */
  taints?: HandoffId[];
  work_left_ms: number;
}

/** What becomes of tasks below one that ends. */
export type Below = "refuse" | "let_go" | (string & {});

/** Begins anew from a hop of a task, as a task of its own. */
export interface Branch {
  /** Who begins it, and owns it until somebody claims it. */
  by: AgentId;
  /** The hop whose content the first envelope carries. */
  hop: number;
  /** Makes it safe to repeat: the same request with the same key is carried out once. */
  idempotency_key?: IdempotencyKey | null;
  /** Another target than the hop's own. */
  to?: Target | null;
}

/** Where a task that begins anew comes from. */
export interface BranchOf {
  /** The envelope of that hop. */
  envelope: Hash;
  hop: number;
  task_id: TaskId;
}

/** What a task and everything below it may still spend. */
export interface Budget {
  /** Money. */
  cost?: Cost | null;
  /** Tokens that models read and write. */
  tokens?: number | null;
}

/** What a task has come to when another goes on that waited for it. */
export type CameTo = "failed" | "cancelled" | "dead_lettered" | (string & {}) | "completed" | "retracted" | "open" | (string & {});

/** The name of something that agents of one tenant can do. */
export type Capability = string;

/** Who can be reached here, for programs that look around. */
export interface Catalogue {
  agents: CatalogueEntry[];
  /** The key with which the broker signs what it delivers. */
  broker_key?: PublicKey | null;
}

export interface CatalogueEntry {
  agent_id: AgentId;
  capabilities: Capability[];
  /** What the manifest names. The broker never asks there. */
  discovery_endpoint?: string | null;
  live: boolean;
  /** Where the agent's page is on this broker. */
  url: string;
}

export interface ChainEvent {
  /** Absent if there was none, or if it was erased. */
  body?: Object | null;
  hash: Hash;
  position: Position;
  /** The exact bytes that the hash covers. */
  record: Record;
}

export interface ChainFile {
  /** The first signed checkpoint of the whole log that covers all of it. */
  checkpoint?: LogCheckpoint | null;
  exported_at: Timestamp;
  /** `tasuki-chain`. */
  format: string;
  /** The public keys of those who signed something in here. */
  keys?: ChainSigner[];
  /** The broker's word that the chains ended so. */
  seal?: ChainSeal | null;
  /** The task that was asked for. */
  task_id: TaskId;
  /** That task first, then those below it. */
  tasks: TaskChain[];
  version: number;
}

export interface ChainSeal {
  key: PublicKey;
  signature: Signature;
}

export interface ChainSigner {
  agent: AgentId;
  key: PublicKey;
}

/** What was found in a file. */
export interface ChainVerdict {
  bodies: number;
  /** Bodies that were erased on purpose, by task and place. */
  erased: ErasedBody[];
  events: number;
  first_bad?: BadEntry | null;
  /** Every hop whose envelope is there. */
  hops: TaskHop[];
  intact: boolean;
  /** The key that sealed the file. */
  sealed_by?: PublicKey | null;
  /** Signatures that are right, and those for which the file has no key. */
  signatures: number;
  signatures_unchecked: number;
  tasks: number;
}

/** A change of who is known, as it is in the log. */
export type Change = {
  agent: AgentId;
  change: "manifest_published";
  manifest: Hash;
  signed?: Signed | null;
  version: number;
} | {
  agent: AgentId;
  change: "standing_set";
  standing: Standing;
} | {
  agent: AgentId;
  change: "key_enrolled";
  key: PublicKey;
  /** The join token that was spent. */
  token?: TokenId | null;
} | {
  agent: AgentId;
  change: "key_rotated";
  new: PublicKey;
  old: KeyId;
  until: Timestamp;
} | {
  agent: AgentId;
  change: "key_revoked";
  key: KeyId;
} | {
  agent: AgentId;
  change: "rules_set";
  rules: Rule[];
} | Token & {
  change: "token_issued";
} | {
  change: "token_revoked";
  token: TokenId;
} | Tenant & {
  change: "tenant_set";
} | {
  change: "limits_set";
  limits?: Limits | null;
  target: Target;
} | {
  change: "target_paused";
  target: Target;
  until?: Timestamp | null;
} | {
  change: "target_resumed";
  target: Target;
} | {
  change: "pipeline_declared";
  pipeline: Pipeline;
} | {
  agent: AgentId;
  change: "subscribed";
  channel: ChannelId;
} | {
  agent: AgentId;
  change: "unsubscribed";
  channel: ChannelId;
} | {
  agent: AgentId;
  change: "access_denied";
  /** The error's code. */
  code: string;
  /** What it tried: an operation, and what that was about. Up to 0.1 a method and a path. */
  operation: string;
} | AlertMoved & {
  change: "alert_moved";
} | NoticeTaken & {
  change: "notice_taken";
} | NoticeTold & {
  change: "notice_told";
} | Silenced & {
  change: "alert_silenced";
};

export interface Channel {
  channel: ChannelId;
  subscribers: Subscriber[];
}

/** The name on which something is told to many. */
export type ChannelId = string;

/** Asks for work. */
export interface Claim {
  /** Who asks. */
  agent: AgentId;
  /** What the agent can do, besides what is addressed to it by name. */
  capabilities?: Capability[];
  /** A lease other than the one in the handoff's terms. */
  lease_ms?: number | null;
  /** Which majors of the envelope the agent takes; without any, what its manifest says. */
  majors?: number[];
  /** How many to claim at most. */
  max?: number;
  /** Makes the claim safe to repeat after a lost reply. */
  request_id?: RequestId | null;
  /** How long to wait if there is nothing yet; at most 60 seconds. */
  wait_ms?: number;
}

/** The random half of a claim: only its holder knows it. */
export type ClaimId = string;

/** Claims one handoff by its id. */
export interface ClaimOne {
  /** Who asks. */
  agent: AgentId;
  /** What it can do; work that is offered to one of these is found too. */
  capabilities?: Capability[];
  /** How long the claim holds without a heartbeat. */
  lease_ms?: number | null;
  /** Which majors of the envelope the agent takes; without any, what its manifest says. */
  majors?: number[];
  /** Makes the claim safe to repeat. */
  request_id?: RequestId | null;
  /** How long to wait for the answer to a question that this agent asked; at most 60 seconds. */
  wait_ms?: number;
}

/** A claim: show `claim_id` and `fence` with every later call. */
export interface ClaimReply {
  /** Pieces of work that are there already. */
  artifacts?: Artifact[];
  /** Which attempt this is, from 1. */
  attempt: number;
  /** What the task, with everything below it, may still spend, if that is bounded. */
  budget?: Budget | null;
  claim_id: ClaimId;
  correlation_id?: CorrelationId | null;
  /** The broker's word that it gave this to its holder. */
  delivery?: Delivery | null;
  /**
   * What attempts before this one said and why they ended, the last one last. It is data that
   * others wrote, as the envelope is.
   */
  earlier_attempts?: EarlierAttempt[];
  /** The envelope, exactly as it was stored. */
  envelope: AnyEnvelope;
  /** The address of the envelope. */
  envelope_hash: Hash;
  fence: Fence;
  /** What the work has to do without because of those tasks, besides the gaps of the envelope. */
  gaps?: JoinGap[];
  handoff_id: HandoffId;
  /**
   * What the tasks have come to that this work waited for, in the order in which `after` names
   * them.
   */
  joined?: JoinedResult[];
  /** How much of the lease is left, counted from before the request was sent. */
  lease_left_ms: number;
  lease_ms: number;
  /** How many of these texts there was no room for. */
  left_out?: number;
  /** Messages that no holder has taken note of yet. */
  messages?: HolderMessage[];
  /** Questions that holders of this work asked, with their answers, the last one last. */
  questions?: HolderQuestion[];
  /**
   * What the task is built on and no longer holds, also if that came out after the envelope was
   * made.
   */
  taints?: HandoffId[];
  task_id: TaskId;
  /** How much of the attempt's time is left, whatever heartbeats are sent. */
  work_left_ms: number;
}

export interface Claimed {
  agent: AgentId;
  /** Which attempt this is, from 1. */
  attempt: number;
  claim_id: ClaimId;
  fence: Fence;
  /** No heartbeat moves the claim past this. */
  hard_until: Timestamp;
  lease_ms: number;
  /** The agent that it is let through for, to see how it fares. */
  probes?: Target | null;
  request_id?: RequestId | null;
}

export interface Claims {
  claims: ClaimReply[];
}

/** Says that a task may go on although something that it is built on no longer holds. */
export interface ClearTaint {
  /** The task's coordinator. */
  by: AgentId;
  /** Why; it stands in the log. */
  reason: string;
  /** The handoff whose result no longer holds. */
  source: HandoffId;
}

/** Why nobody has to decide on a dead letter any more. */
export type Closed = "task_cancelled" | "task_completed" | (string & {}) | "task_offered_anew" | (string & {});

export interface Complete {
  /** `completed`, or what should follow: `needs_review`, `changes_requested`, `escalated`. */
  action?: Action;
  claim_id: ClaimId;
  /** Of each criterion of the expected output: whether it is met, and what shows it. */
  criteria?: CriterionReport[];
  fence: Fence;
  /** Handoffs that are created in the same atomic step. */
  follow_ups?: AnyFollowUp[];
  /** References that the work had to do without. */
  gaps?: string[];
  /** For monitoring; no model reads it. */
  metadata?: Object;
  /** What came of it: an object with a `type`. */
  payload: Payload;
  /**
   * Gaps that came with the work and are none any more. All others are in the result, whether
   * they are repeated here or not.
   */
  resolved_gaps?: string[];
  /** The holder's signature over its result. */
  signed?: Signed | null;
  /** What the attempt used. It makes the budget of its task, and of those above it, less. */
  usage?: WorkUsage | null;
}

/** Completes many at once. Each stands on its own; all are synced together. */
export interface CompleteBatch {
  /** Each is carried out on its own. */
  completions: CompleteOf[];
}

export interface CompleteOf {
  /** `completed`, or what should follow: `needs_review`, `changes_requested`, `escalated`. */
  action?: Action;
  claim_id: ClaimId;
  /** Of each criterion of the expected output: whether it is met, and what shows it. */
  criteria?: CriterionReport[];
  fence: Fence;
  /** Handoffs that are created in the same atomic step. */
  follow_ups?: AnyFollowUp[];
  /** References that the work had to do without. */
  gaps?: string[];
  handoff_id: HandoffId;
  /** For monitoring; no model reads it. */
  metadata?: Object;
  /** What came of it: an object with a `type`. */
  payload: Payload;
  /**
   * Gaps that came with the work and are none any more. All others are in the result, whether
   * they are repeated here or not.
   */
  resolved_gaps?: string[];
  /** The holder's signature over its result. */
  signed?: Signed | null;
  /** What the attempt used. It makes the budget of its task, and of those above it, less. */
  usage?: WorkUsage | null;
}

/** Ends a task with a result, while nobody else works on it. Its owner does so. */
export interface CompleteTask {
  /** What becomes of tasks below it that are not at their end. */
  below?: Below;
  /** Its owner. */
  by: AgentId;
  /** For monitoring only. */
  metadata?: Object;
  /** What came of it: an object with a `type`. */
  payload: Payload;
}

export interface Constraint {
  /** Whether it binds; a preference does not. */
  hard: boolean;
  /** The SHA-256 of the text in Unicode's composed form (NFC). */
  id: Hash;
  /** Who said so. It and the task's coordinator may lift the constraint, and nobody else. */
  issuer: AgentId;
  kind: ConstraintKind;
  text: string;
}

export type ConstraintKind = "must" | "must_not" | "budget" | "format" | "security" | "preference" | (string & {});

export interface ContextItem {
  /** What it is about, in one line. */
  about?: string | null;
  /** Who wrote it. */
  by?: string | null;
  /** Parts of it, in the order in which they stand in it. */
  excerpts?: Excerpt[];
  form: Form;
  id: string;
  /** What it is: `log`, `code`, `decision`. */
  kind?: string | null;
  /** What is said before its parts, such as the names of a table's columns. */
  lead?: string | null;
  /** How many parts it has. */
  of?: number | null;
  /** It is never left out, whatever the budget of who reads it. */
  pinned?: boolean;
  revision?: number | null;
  /** All of it, or its summary. */
  text?: string | null;
  title?: string | null;
  /** How many tokens all of it is. */
  tokens?: number | null;
  /** Who stands behind what it says, if not an agent. */
  trust?: Trust | null;
}

export interface Contract {
  /** What must be done before it can be claimed. */
  after?: After | null;
  /** Who may approve it, if it waits for that; without names, whoever is permitted to. */
  approvers?: AgentId[];
  /** What the task may spend from here on, it and everything below it. */
  budget?: Budget | null;
  /** How many tokens the work may use. */
  budget_tokens?: number | null;
  /** What is to be done. The receiver's manifest says what goes in and what comes out. */
  capability?: Capability | null;
  /** The name by which the sender finds everything that belongs together. */
  correlation_id?: CorrelationId | null;
  /** Whom the sender asked, if nothing is sent there at present. */
  diverted_from?: Target | null;
  /** The address of what is wanted back, which is in the envelope. */
  expected_output?: Hash | null;
  /** Who is asked next, in this order, if the receiver cannot or will not do it. */
  fallbacks?: Target[];
  /**
   * How full the receiver's budget was, and how much of what there was got in, as the sender
   * was told when it put the envelope together.
   */
  fill?: Fill | null;
  /** Whether the envelope names references that the work has to do without. */
  has_gaps?: boolean;
  /** Which majors of the envelope the sender can give; without any, the broker's own. */
  majors?: number[];
  /** The address of the JSON Schema that the result must fit, which is in the envelope. */
  output_schema?: Hash | null;
  /** What the receiver must repeat before its claim counts: the address of what binds it. */
  read_back?: Hash | null;
  /** How the receiver was chosen, if the broker chose it. */
  routed?: Why | null;
  /** Where in a declared route this is. */
  stage?: StageRef | null;
}

/** Whether the sender gives the task away or waits for its result. */
export type Control = "passed" | "awaited" | (string & {});

/** Who decides about a task: an agent, or one whose manifest names a role. */
export type Coordinator = {
  agent: AgentId;
} | {
  role: string;
};

/** Links everything that belongs to one request of the outside world. */
export type CorrelationId = string;

/** An amount of money, to the millionth. */
export type Cost = number;

/** Says on which other terms an agent would take a handoff. */
export interface Counter {
  /** Who asks. */
  agent: AgentId;
  /** The tokens that it would need. */
  budget_tokens?: number | null;
  /** What it can do; work that is offered to one of these is found too. */
  capabilities?: Capability[];
  /** Why; it stands in the log. */
  reason: string;
  /** What should be different; the rest stays as it was offered. */
  terms?: TermsPatch;
}

/** On which other terms an agent would take a handoff. */
export interface CounterOffer {
  agent: AgentId;
  budget_tokens?: number | null;
  terms: Terms;
}

export interface Countered {
  agent: AgentId;
  budget_tokens?: number | null;
  reason: Hash;
  terms: Terms;
}

/** An agent's word on one criterion. */
export interface CriterionReport {
  /** The criterion, word for word. */
  criterion: string;
  /** What shows it. */
  evidence?: string | null;
  met: boolean;
}

/** A place in the log. Only the broker can read it; give it back as it is. */
export type Cursor = string;

export interface DeadLetter {
  /** How much time is left for somebody to claim it. */
  ack_left_ms?: number | null;
  /** Pieces of work that are there before the result is. */
  artifacts?: ArtifactName[];
  attempts: Attempt[];
  /** What was agreed besides the terms. */
  contract?: Contract;
  control: Control;
  /** The name by which the sender finds everything that belongs together. */
  correlation_id?: CorrelationId | null;
  /** On which other terms agents would take it. */
  counters?: CounterOffer[];
  dead_letter?: DeadLetterReason | null;
  declined_by?: AgentId[];
  /** Why agents declined it, where they said so. */
  declines?: DeclineReason[];
  delivered_at?: Timestamp | null;
  discarded_because?: string | null;
  /** When a scheduled handoff becomes claimable. */
  due_at?: Timestamp | null;
  ended_at?: Timestamp | null;
  envelope: Hash;
  envelope_content?: Envelope | null;
  expires_at: Timestamp;
  /** Attempts that ended in a declared failure. */
  failures: number;
  from_agent: AgentId;
  handoff_id: HandoffId;
  holder?: Holder | null;
  hop: number;
  /** For whom an answer is kept. */
  kept_for?: KeptFor | null;
  /** Constraints that were lifted since the envelope was made; they do not bind the next one. */
  lifted?: LiftedConstraint[];
  /** Leases that were lost. */
  losses: number;
  offered_at: Timestamp;
  ordering_key?: OrderingKey | null;
  priority: number;
  /** What its holder asks and waits for. */
  question?: Asks | null;
  redrive_of?: HandoffId | null;
  /** Why an approver said no. */
  rejected_because?: string | null;
  /** What the attempts reported. */
  reports: Report[];
  /** The address of the result. */
  result?: Hash | null;
  /** Whether its result was taken back. */
  retracted?: boolean;
  /** Who decides on this dead letter just now. */
  reviewer?: AgentId | null;
  state: string;
  /**
   * What the sender may rely on: `stored`, `delivered`, `claimed`, `in_progress`, `done`,
   * `failed`, `cancelled`, `rejected` or `dead_lettered`. Only what has a result is `done`.
   */
  status: string;
  task_id: TaskId;
  terms: Terms;
  to: Target;
  /** Targets that could not or would not do it, the first one first. */
  tried?: Target[];
  /**
   * Memories that the receiver fetched because the envelope had passed less of them: what was
   * trimmed and missed.
   */
  trim_regret?: DocumentId[];
  /** Who waits for whom in the circle that this call closed. */
  waits_in_circle?: string | null;
}

export interface DeadLetterGroup {
  count: number;
  fingerprint: Hash;
  /** Some of them, the newest first. */
  handoffs: HandoffId[];
  hint?: string | null;
  message?: string | null;
  reason: string;
  to: Target;
  type?: string | null;
}

export interface DeadLetterReason {
  /**
   * Why nobody has to decide on it any more: `task_offered_anew`, `task_cancelled` or
   * `task_completed`.
   */
  closed?: string | null;
  discarded?: boolean;
  reason: string;
  redriven_to?: HandoffId | null;
}

export type DeadReason = "attempts_exhausted" | "permanent_failure" | "poison" | "declined" | "expired" | "rejected" | "unacknowledged" | "hop_limit" | "cycle" | "budget_exhausted" | "deadlock" | (string & {});

/** Who decides, and why. */
export interface Decide {
  by: AgentId;
  /** Why; it stands in the log. */
  reason?: string | null;
}

/** What is decided about many dead letters. */
export interface DecideMany {
  by: AgentId;
  /** What was decided. */
  decision: Ruling;
  /** Only say which ones it would be. */
  dry_run?: boolean;
  /**
   * How long those that go on may take this time. Without it as long as before, and what
   * expired gets at least the broker's own span.
   */
  expires_in_ms?: number | null;
  /** Which ones, by what they died of. */
  fingerprint?: Hash | null;
  /** Which ones, by their ids. */
  handoffs?: HandoffId[];
}

export interface DecidedMany {
  dry_run: boolean;
  results: DecidedOne[];
}

export interface DecidedOne {
  error?: Problem | null;
  /** The dead letter. */
  handoff_id: HandoffId;
  /** Where it goes on, or where it stays. */
  to_handoff?: HandoffId | null;
}

export interface Decision {
  by: AgentId;
  decision: string;
  hop: number;
  /** The address of what was decided, by whom. */
  id: Hash;
  /** What it is about. A key that is settled is decided anew only by superseding. */
  key?: string | null;
  /** The open decision that this one settles. */
  resolves?: Hash | null;
  /** The decision that this one replaces. */
  supersedes?: Hash | null;
  why?: string | null;
}

/** The question that a decision settles, in a few words that everybody uses for it. */
export type DecisionKey = string;

/** Declines: with the claim as its holder, or without one before claiming. */
export interface Decline {
  /** Who asks. */
  agent: AgentId;
  claim_id?: ClaimId | null;
  fence?: Fence | null;
  /** Why; it stands in the log. */
  reason?: string | null;
}

export interface DeclineReason {
  agent: AgentId;
  reason: string;
}

/** Says who wants something gone, and why. */
export interface Delete {
  by: AgentId;
  /** Why; it stands in the log. */
  reason: string;
}

/** The broker's signature over a delivery, and the time that it covers. */
export interface Delivery {
  at: Timestamp;
  signed: Signed;
}

export interface Demoted {
  /** Where all of it is. */
  fetch: string;
  id: string;
  /** Its short name in the text. */
  name?: string;
  /** How many parts of a long text were kept, of how many. */
  parts?: unknown[] | null;
  reason: TrimReason;
  revision: number;
  rung: Rung;
}

/** How much of a memory is wanted. */
export type Detail = "full" | (string & {}) | "stub" | "summary" | (string & {});

/** The name of a memory, such as ms-4821, or of a project's shared context. */
export type DocumentId = string;

export interface Dropped {
  /** Where it is. Absent for lines of the envelope, which the receiver has. */
  fetch?: string | null;
  id: string;
  /** By which the receiver can ask for it. */
  name?: string;
  reason: TrimReason;
  revision: number;
  /** How many tokens it is in full. */
  tokens: number;
}

/** An earlier attempt, and what it left behind. */
export interface EarlierAttempt {
  agent: AgentId;
  attempt: number;
  claimed_at: Timestamp;
  /** How it ended, such as `failed_retryable` or `lost_silence`. */
  ended?: string | null;
  ended_at?: Timestamp | null;
  /** Why it failed, in its own words. */
  failure?: FailureReport | null;
  /** What it said of its progress, the last one last. */
  notes?: ProgressNote[];
}

/** Makes a new revision of a memory. What is not given stays as it is. */
export interface EditMemory {
  by: AgentId;
  /** 0 to 9; higher ones are claimed first. */
  priority?: Priority | null;
  /** The revision that the writer has seen: if there is another by now, nothing is written. */
  revision?: number | null;
  /** Who shares it. */
  scope?: Scope | null;
  /** The same in short. */
  summary?: string | null;
  /** Words to find it by; `kind:log` says what kind it is. */
  tags?: string[] | null;
  /** The whole text. */
  text?: string | null;
  /** An empty title or summary takes it away. */
  title?: string | null;
}

export type Effect = "allow" | "deny" | (string & {});

/** Enrolls a key by the word of an administrator. */
export interface Enroll {
  /** The public key. */
  key: PublicKey;
  /** What the agent may do from now on; as before if nothing is said. */
  rules?: Rule[] | null;
}

/** A public key of an agent. */
export interface EnrolledKey {
  /** From when on it no longer counts: at once if it was revoked, later if it was replaced. */
  ends_at?: Timestamp | null;
  enrolled_at: Timestamp;
  key: PublicKey;
  key_id: KeyId;
}

/**
 * What travels with one hop of a task. Members that this version does not know are kept and
 * passed on.
 */
export interface Envelope {
  action?: Action;
  /** The tasks whose results come with it: it waits until so many of them have one. */
  after?: After | null;
  /** What was considered and not taken, and why not. */
  alternatives?: string[];
  /** What this receiver must do. */
  ask?: string | null;
  /** Whom the sender asked for, where the broker chose the receiver. */
  asked_to?: Target | null;
  assumptions?: string[];
  /** What the task, with everything below it, could still spend when this was made. */
  budget?: Budget | null;
  /** Binds every agent of the chain. Inherited. */
  constraints?: Constraint[];
  /** Memories that are here already, as much of them as there was room for. */
  context?: ContextItem[];
  /** The address of the list of everything that could have been passed. */
  context_manifest?: Hash | null;
  control: Control;
  correlation_id?: CorrelationId | null;
  created_at: Timestamp;
  /** When the work must be finished. */
  deadline?: Timestamp | null;
  /** What was decided, the oldest first. Inherited. */
  decisions?: Decision[];
  /** Cases that were seen and left for later. */
  deferred?: string[];
  /** `major.minor`; only the major decides compatibility. */
  envelope_version: string;
  expected_output?: ExpectedOutput | null;
  from_agent: AgentId;
  /** References that could not be resolved. Inherited until somebody resolves them. */
  gaps?: Gap[];
  /** What was done by whom, the oldest first. Inherited. */
  history?: Step[];
  /** How many hops came before this one, counted by the broker. */
  hop: number;
  idempotency_key?: IdempotencyKey | null;
  /** The user's own words, the same bytes at every hop. */
  intent: string;
  /** Constraints that no longer bind, with who lifted them and why. Inherited. */
  lifted?: Lifted[];
  /** Memories to read, not copied. */
  memory_refs?: MemoryRef[];
  /** For monitoring only; never shown to the receiving model. */
  metadata?: Object;
  /** Questions that nobody has decided yet. Inherited until somebody does. */
  open_decisions?: OpenDecision[];
  parent_task_id?: TaskId | null;
  /** The hops before this one. */
  path?: Passed[];
  payload: Payload;
  /** The address of the envelope before this one. */
  previous?: Hash | null;
  /** How many tokens what a receiver reads may have. Inherited. */
  prompt_tokens?: number | null;
  /** What assembly chose, so that every reader gets the text that the sender saw. */
  reading?: Reading | null;
  /** The sender's signature over what is its own in here. */
  signed?: Signed | null;
  state?: TaskProgress | null;
  /** What the task is about now, in a few sentences. */
  summary?: string | null;
  /** What this is built on and no longer holds. */
  taints?: Taint[];
  task_id: TaskId;
  to: Target;
  /** What was tried and did not work. */
  tried?: string[];
}

export interface EnvelopePreview {
  /** What was considered and not taken, and why not. */
  alternatives?: string[];
  /** What this receiver must do. */
  ask?: string | null;
  assumptions?: string[];
  /** Binds every agent of the chain. Inherited. */
  constraints?: Constraint[];
  /** Memories that are here already, as much of them as there was room for. */
  context?: ContextItem[];
  /** The address of the list of everything that could have been passed. */
  context_manifest?: Hash | null;
  /** What was decided, the oldest first. Inherited. */
  decisions?: Decision[];
  /** Cases that were seen and left for later. */
  deferred?: string[];
  expected_output?: ExpectedOutput | null;
  /** References that could not be resolved. Inherited until somebody resolves them. */
  gaps?: Gap[];
  /** What was done by whom, the oldest first. Inherited. */
  history?: Step[];
  intent: string;
  /** Constraints that no longer bind, with who lifted them and why. Inherited. */
  lifted?: Lifted[];
  /** Memories to read, not copied. */
  memory_refs?: MemoryRef[];
  /** Questions that nobody has decided yet. Inherited until somebody does. */
  open_decisions?: OpenDecision[];
  /** How many tokens what a receiver reads may have. Inherited. */
  prompt_tokens?: number | null;
  /** What assembly chose, so that every reader gets the text that the sender saw. */
  reading?: Reading | null;
  state?: TaskProgress | null;
  /** What the task is about now, in a few sentences. */
  summary?: string | null;
  /** What was tried and did not work. */
  tried?: string[];
}

/** Removes the text of a revision, or of all of them, for good. */
export interface EraseMemory {
  by: AgentId;
  /** Why; it stands in the log. */
  reason: string;
  /** Only this revision; all of them without it. */
  revision?: number | null;
}

/** A body that was removed from the store. Its hash stays in the event it came with. */
export interface Erased {
  body: Hash;
  /** How many bytes were freed, and whose they were. */
  bytes: number;
  document?: DocumentId | null;
  /** The event that the body came with. */
  position: Position;
  reason: Hash;
  revision?: number | null;
  tenant: TenantId;
}

export interface ErasedBody {
  index: number;
  task_id: TaskId;
}

/** An audit event where it stands in the log. */
export interface Event {
  body?: Object | null;
  hash: Hash;
  /** Where it stands. */
  position: Cursor;
  record: Record;
}

export interface Events {
  events: Event[];
}

/** A part of a text, as it stands there. */
export interface Excerpt {
  /** What it belongs to, such as the file of a diff's hunk. */
  label?: string | null;
  /** Its place among the parts of the text, from 1. */
  part: number;
  text: string;
}

/** What is wanted back. What of it can be checked is checked when the work is completed. */
export interface ExpectedOutput {
  /** What a good result is like. The completion says of each whether it is met, and how. */
  criteria?: string[];
  /** What the text of the result must be. */
  format?: Format | null;
  length?: Length | null;
  /** The member of the payload that `format` and `length` are about; `text` without it. */
  member?: string | null;
  /** A JSON Schema that the payload of the result must fit. */
  schema?: unknown;
}

export interface Fail {
  /** What was attempted when it failed. */
  attempted?: string | null;
  /** How often the agent tried before it gave up. */
  attempts?: number | null;
  /** What led to it, the nearest cause first. */
  causes?: string[];
  claim_id: ClaimId;
  /** Whether trying again may help. */
  class: FailureClass;
  /** More about it, for programs. */
  details?: Object;
  fence: Fence;
  /** What might fix it; a permanent failure must say it. */
  hint?: string | null;
  /** What went wrong. */
  message: string;
  /** When to try again at the earliest; for retryable failures only. */
  retry_after_ms?: number | null;
  /** The holder's signature over its failure. */
  signed?: Signed | null;
  /** A short name for the kind of error, such as `rate_limited`. */
  type: string;
  /** What the attempt used. It makes the budget of its task, and of those above it, less. */
  usage?: WorkUsage | null;
}

export type FailureClass = "retryable" | "permanent" | "unknown" | (string & {});

/** Why an attempt failed. */
export interface FailureReport {
  action: Action;
  /** What was attempted when it failed. */
  attempted?: string | null;
  /** How often the agent tried before it gave up. */
  attempts?: number | null;
  /** What led to it, the nearest cause first. */
  causes?: string[];
  class: FailureClass;
  details?: Object;
  handoff_id: HandoffId;
  /** What might fix it. */
  hint?: string | null;
  message: string;
  retry_after_ms?: number | null;
  /** A short name for the kind of error, such as `rate_limited`. */
  type: string;
  /** What the attempt used. */
  usage?: WorkUsage | null;
}

/**
 * The number that makes a stale claim powerless: it only rises, across restarts, restores and
 * failovers, because its upper bits are the store's epoch.
 */
export type Fence = number;

/** What a receipt of assembly says, for those who watch. */
export interface Fill {
  budget: number;
  completeness_per_mille: number;
  token_count: number;
}

export interface Finding {
  /** The number of the entry, counted from the first of the log. */
  position: Position;
  problem: string;
  task_id?: TaskId | null;
}

/**
 * An envelope, or a hop, of major 1. What a sender of a hop leaves out is the broker's to
 * know.
 */
export interface Flat {
  /** `completed`, `failed`, `needs_review` or `escalated`. */
  action: string;
  /** Everything else, by the names that major 2 has for it; `items` is its `context`. */
  context: Object;
  /** `1.` and a minor. */
  envelope_version: string;
  from_agent?: AgentId | null;
  metadata?: Object;
  payload: Payload;
  task_id?: TaskId | null;
}

/**
 * One hop: to whom, what, and on which terms. A completion may carry several, which are made
 * in the same atomic step.
 */
export interface FollowUp {
  /** What the receiver should do with it; a first offer is a `request`. */
  action?: Action;
  /** Adds to what binds, as a list or a map. */
  add_constraints?: unknown;
  /** Tasks that must have a result before this can be claimed. */
  after?: After | null;
  /** What was considered and not taken, and why not. */
  alternatives?: string[];
  /**
   * Who may approve it: nobody else then, and each of them is told that it waits. Neither the
   * sender nor the receiver.
   */
  approvers?: AgentId[];
  /** What this receiver must do. */
  ask?: string | null;
  /** What was taken for granted and not checked. */
  assumptions?: string[];
  /**
   * What the task, with everything below it, may spend from here on. Every result and failure
   * that reports its usage makes it less; a task with nothing left takes no more hops.
   */
  budget?: Budget | null;
  /** How many tokens the work may use. */
  budget_tokens?: number | null;
  /**
   * What is to be done, where `to` names an agent: its manifest says what goes in and comes
   * out.
   */
  capability?: Capability | null;
  /**
   * What binds everybody from here on. Without it, what bound before still does. A list says
   * all of it: one that leaves out or rewords what bound before is refused. A plain map, such
   * as `{"language": "python", "max_tokens": 4000}`, adds to it.
   */
  constraints?: unknown;
  /** Memories that are passed along, in full or in short; `/v1/assemble` makes them. */
  context?: ContextItem[];
  /** The address of the list of what was passed, as `/v1/assemble` gives it. */
  context_manifest?: Hash | null;
  /** `passed` transfers the task; `awaited` calls: the work is a task below the sender's own. */
  control?: Control;
  /** When the work must be finished; past it the handoff is dead-lettered. */
  deadline?: Timestamp | null;
  /** Decisions that are new. */
  decisions?: SaidDecision[];
  /** Cases that were seen and left for later. */
  deferred?: string[];
  /**
   * The version that the sender speaks. Members that are not known here are kept if it is a
   * newer minor, and are a mistake otherwise.
   */
  envelope_version?: string | null;
  /** What is wanted back; a result that does not fit is refused. */
  expected_output?: ExpectedOutput | null;
  /** The same as a span from now. The earlier of the two counts; 24 hours by default. */
  expires_in_ms?: number | null;
  /**
   * Who is asked next, in this order, if the receiver cannot or will not do it: by name, or
   * anybody with a capability.
   */
  fallbacks?: Target[];
  /** References that could not be resolved. */
  gaps?: (string | NewGap)[];
  /** What was done and is not in the history yet. */
  history?: NewStep[];
  /** Ends constraints. Only who issued one, or the task's coordinator, can do that. */
  lift_constraints?: Lift[];
  /** Which majors of the envelope the sender can give. */
  majors?: number[];
  /** Memories that the receiver can fetch. */
  memory_refs?: MemoryRef[];
  /** For monitoring only. */
  metadata?: Object;
  /** Hold it back until somebody other than the sender approves. */
  needs_approval?: boolean;
  /**
   * Of a call: what becomes of it when the caller's own work ends without a result. `cancel` by
   * default; with `let_go` it goes on.
   */
  on_parent_end?: OnParentEnd | null;
  /** Questions that are new and that somebody must decide. */
  open_decisions?: (string | Question)[];
  /** Handoffs with the same key are worked on one after the other. */
  ordering_key?: OrderingKey | null;
  /** A JSON Schema that the result must fit: `expected_output.schema` in short. */
  output_schema?: unknown;
  /** What to work on: an object with a `type`. */
  payload: Payload;
  /** 0 to 9; higher is claimed first. 5 by default. */
  priority?: number | null;
  /** Lets the claim count only once the receiver has repeated what binds it. */
  read_back?: boolean;
  /** What was chosen, as `/v1/assemble` gives it. */
  reading?: Reading | null;
  /** References of gaps that are resolved now. */
  resolved_gaps?: string[];
  /** How one of the agents with the capability is chosen. Without it, all of them may claim. */
  route?: Route | null;
  /** The sender's signature over what it says, which travels in the envelope. */
  signed?: Signed | null;
  /** Do not let it be claimed before this much time has passed. */
  start_in_ms?: number | null;
  /** How far the task is: what is done, what remains. */
  state?: TaskProgress | null;
  /** What the task is about now, in a few sentences. */
  summary?: string | null;
  /** How often, how long and within what time it is tried. */
  terms?: TermsPatch | null;
  /** An agent by name, or any agent with a capability. */
  to: Target;
  /** What was tried and did not work, so that nobody tries it again. */
  tried?: string[];
}

/** The envelope that the first one of a task follows, where the task was opened below another. */
export interface Follows {
  envelope: Hash;
  /** The handoff that it came with. */
  handoff: HandoffId;
  hop: number;
}

/** How much of a memory is in an envelope. */
export type Form = "stub" | "summary" | "full" | (string & {});

export type Format = "text" | "markdown" | "json" | (string & {});

/** Which revision a reference means. */
export type Freshness = "pinned" | "latest" | "both" | (string & {});

export interface Gap {
  by: AgentId;
  hop: number;
  reason?: string | null;
  /** What could not be resolved: the id of a memory, a path, a name. */
  reference: string;
}

/** Collects what the tasks below one have come to. */
export interface Gather {
  /** Only members before this task: where the page before ended. */
  before?: TaskId | null;
  /** How many members are listed, up to 1000. */
  limit?: number | null;
  /** How many must have a result. */
  need?: Need;
  /** How long to wait for enough of them, at most 60 seconds. */
  wait_ms?: number;
}

export interface Gathered {
  completed: number;
  correlation_id?: CorrelationId | null;
  /** Ended without a result. */
  failed: number;
  members: GatheredMember[];
  /** As was asked for; never fewer because there are not so many. */
  need: number;
  next?: TaskId | null;
  /** Neither: still under way. */
  open: number;
  /**
   * Whether as many as needed can still have a result. A quorum above the number of receivers,
   * or of those that are left, cannot.
   */
  reachable: boolean;
  receivers: number;
  /** Whether as many as needed have a result. */
  satisfied: boolean;
  task_id: TaskId;
}

export interface GatheredMember {
  handoff_id?: HandoffId | null;
  output?: ResultReport | null;
  /** `completed`, `open`, `dead_lettered`, `failed` or `cancelled`. */
  state: string;
  task_id: TaskId;
  to?: Target | null;
}

/** Dead letters by what they died of, the largest group first. */
export interface Groups {
  groups: DeadLetterGroup[];
}

export interface Handoff {
  /** How much time is left for somebody to claim it. */
  ack_left_ms?: number | null;
  /** Pieces of work that are there before the result is. */
  artifacts?: ArtifactName[];
  attempts: Attempt[];
  /** What was agreed besides the terms. */
  contract?: Contract;
  control: Control;
  /** The name by which the sender finds everything that belongs together. */
  correlation_id?: CorrelationId | null;
  /** On which other terms agents would take it. */
  counters?: CounterOffer[];
  dead_letter?: DeadLetterReason | null;
  declined_by?: AgentId[];
  delivered_at?: Timestamp | null;
  /** When a scheduled handoff becomes claimable. */
  due_at?: Timestamp | null;
  ended_at?: Timestamp | null;
  envelope: Hash;
  expires_at: Timestamp;
  /** Attempts that ended in a declared failure. */
  failures: number;
  from_agent: AgentId;
  handoff_id: HandoffId;
  holder?: Holder | null;
  hop: number;
  /** For whom an answer is kept. */
  kept_for?: KeptFor | null;
  /** Constraints that were lifted since the envelope was made; they do not bind the next one. */
  lifted?: LiftedConstraint[];
  /** Leases that were lost. */
  losses: number;
  offered_at: Timestamp;
  ordering_key?: OrderingKey | null;
  priority: number;
  /** What its holder asks and waits for. */
  question?: Asks | null;
  redrive_of?: HandoffId | null;
  /** The address of the result. */
  result?: Hash | null;
  /** Whether its result was taken back. */
  retracted?: boolean;
  /** Who decides on this dead letter just now. */
  reviewer?: AgentId | null;
  state: string;
  /**
   * What the sender may rely on: `stored`, `delivered`, `claimed`, `in_progress`, `done`,
   * `failed`, `cancelled`, `rejected` or `dead_lettered`. Only what has a result is `done`.
   */
  status: string;
  task_id: TaskId;
  terms: Terms;
  to: Target;
  /** Targets that could not or would not do it, the first one first. */
  tried?: Target[];
  /**
   * Memories that the receiver fetched because the envelope had passed less of them: what was
   * trimmed and missed.
   */
  trim_regret?: DocumentId[];
}

/** A handoff's id. Sorts by the time it was made. */
export type HandoffId = string;

/** A handoff, and its result if it has one. */
export interface HandoffWithResult {
  /** How much time is left for somebody to claim it. */
  ack_left_ms?: number | null;
  /** Pieces of work that are there before the result is. */
  artifacts?: ArtifactName[];
  attempts: Attempt[];
  /** What was agreed besides the terms. */
  contract?: Contract;
  control: Control;
  /** The name by which the sender finds everything that belongs together. */
  correlation_id?: CorrelationId | null;
  /** On which other terms agents would take it. */
  counters?: CounterOffer[];
  dead_letter?: DeadLetterReason | null;
  declined_by?: AgentId[];
  delivered_at?: Timestamp | null;
  /** When a scheduled handoff becomes claimable. */
  due_at?: Timestamp | null;
  ended_at?: Timestamp | null;
  envelope: Hash;
  expires_at: Timestamp;
  /** Attempts that ended in a declared failure. */
  failures: number;
  from_agent: AgentId;
  handoff_id: HandoffId;
  holder?: Holder | null;
  hop: number;
  /** For whom an answer is kept. */
  kept_for?: KeptFor | null;
  /** Constraints that were lifted since the envelope was made; they do not bind the next one. */
  lifted?: LiftedConstraint[];
  /** Leases that were lost. */
  losses: number;
  offered_at: Timestamp;
  ordering_key?: OrderingKey | null;
  /**
   * The result itself. Where many would be too much for one reply, the later ones are left out:
   * `result` is there without it, and the handoff by itself shows it.
   */
  output?: ResultReport | null;
  priority: number;
  /** What its holder asks and waits for. */
  question?: Asks | null;
  redrive_of?: HandoffId | null;
  /** The address of the result. */
  result?: Hash | null;
  /** Whether its result was taken back. */
  retracted?: boolean;
  /** Who decides on this dead letter just now. */
  reviewer?: AgentId | null;
  state: string;
  /**
   * What the sender may rely on: `stored`, `delivered`, `claimed`, `in_progress`, `done`,
   * `failed`, `cancelled`, `rejected` or `dead_lettered`. Only what has a result is `done`.
   */
  status: string;
  task_id: TaskId;
  terms: Terms;
  to: Target;
  /** Targets that could not or would not do it, the first one first. */
  tried?: Target[];
  /**
   * Memories that the receiver fetched because the envelope had passed less of them: what was
   * trimmed and missed.
   */
  trim_regret?: DocumentId[];
  /** What it waits for, and why; shown for one handoff by itself. */
  waits_for?: WaitsFor[];
}

export interface Handoffs {
  handoffs: Handoff[];
  /** Give this as `before` to get the next page. */
  next?: HandoffId | null;
}

/** What a task hangs from. */
export interface Hangs {
  /** The tasks above it, the nearest first. */
  above: TaskId[];
  /** No hop of it may end later than this. */
  deadline?: Timestamp | null;
  /** The dead letter above it that somebody has to decide on before it goes on. */
  on_hold?: HandoffId | null;
  /** What becomes of it when that ends without a result. */
  on_parent_end?: OnParentEnd;
  /** The hop of the task above it that it was opened for, if one was under way. */
  under?: HandoffId | null;
}

export type Hash = string;

export interface Health {
  /** The id of the broker's key: the audience that signed requests name. */
  broker_key_id?: KeyId | null;
  reason?: string | null;
  status: string;
}

/** Extends the lease, and says which messages were taken note of. */
export interface Heartbeat {
  /** Messages up to this number were taken note of; they do not come again. */
  acknowledge?: number | null;
  claim_id: ClaimId;
  fence: Fence;
}

/** What shows that somebody holds a claim. */
export interface Held {
  claim_id: ClaimId;
  fence: Fence;
}

/** Who holds the claim. The claim id is the holder's secret. */
export interface Holder {
  agent: AgentId;
  fence: Fence;
  lease_left_ms: number;
  work_left_ms: number;
}

/** A word to whoever holds the work. */
export interface HolderMessage {
  acknowledged_at?: Timestamp | null;
  /** Who took note of it, and when. */
  acknowledged_by?: AgentId | null;
  at: Timestamp;
  by: AgentId;
  details?: Object;
  /** From 1, in the order in which they were sent. */
  number: number;
  /** The message itself; missing if it was erased. */
  text?: string | null;
}

export interface HolderMessages {
  correlation_id?: CorrelationId | null;
  messages: HolderMessage[];
}

/** A question of a holder, and what became of it. */
export interface HolderQuestion {
  answer?: unknown;
  /** By when it must be answered. */
  answer_by?: Timestamp | null;
  answered_at?: Timestamp | null;
  /** Who answered; nobody if the asker's default took the place of an answer. */
  answered_by?: AgentId | null;
  asked_at: Timestamp;
  asked_by: AgentId;
  /** The attempt in which it was asked. */
  attempt: number;
  /** The answer that holds if nobody gives one in time. */
  default?: unknown;
  details?: Object;
  handoff_id: HandoffId;
  kind: QuestionKind;
  /** The address of the question. */
  question: Hash;
  /** What the answer must fit. */
  schema?: unknown;
  task_id: TaskId;
  /** The question itself; missing if it was erased. */
  text?: string | null;
}

/** Makes a create safe to repeat: the same key and body give the first reply again. */
export type IdempotencyKey = string;

/** Keeps a chain that another broker exported, for reading. */
export interface ImportChain {
  by: AgentId;
  /** The exact text of the file, since its hashes cover bytes. */
  file: string;
  /** Who may read it: those who read the project; without one, whoever imports it. */
  project?: Project | null;
}

/** An imported chain. It is no task here. */
export interface ImportedChain {
  chain_id: DocumentId;
  events?: number | null;
  imported_at: Timestamp;
  imported_by: Actor;
  scope: Scope;
  /** The task that it is about, at the broker that exported it; absent if it was erased. */
  task_id?: TaskId | null;
  tasks?: number | null;
}

/** An imported chain. It is no task here. */
export interface ImportedChainWithFile {
  chain_id: DocumentId;
  events?: number | null;
  /** The exact text of the file. */
  file?: string | null;
  imported_at: Timestamp;
  imported_by: Actor;
  scope: Scope;
  /** The task that it is about, at the broker that exported it; absent if it was erased. */
  task_id?: TaskId | null;
  tasks?: number | null;
  verdict?: ChainVerdict | null;
}

export interface ImportedChains {
  chains: ImportedChain[];
  /** Give this as `before` to get the next page. */
  next?: Cursor | null;
}

/** Issues a token. */
export interface IssueToken {
  /** For whom a bearer token speaks; who may enroll with a join token. */
  agent_id: AgentId;
  /** The same, from now. */
  expires_in_ms?: number | null;
  /** What it is for: to join, or to act. */
  purpose: Purpose;
  /** What it allows at most; for a join token, what the agent may do once it is enrolled. */
  rules: Rule[];
}

/** A token without its secret. */
export interface IssuedToken {
  agent_id: AgentId;
  /** When it was spent or revoked, by itself or with the token that it was made from. */
  ended_at?: Timestamp | null;
  expires_at?: Timestamp | null;
  issued_at: Timestamp;
  /** Who made it; absent if the broker did. */
  made_by?: AgentId | null;
  /** The key or the token that it was made with. What was made with a token ends with it. */
  made_from?: Origin | null;
  purpose: Purpose;
  rules: Rule[];
  /** The token itself. It is shown this once. */
  text: string;
  token_id: TokenId;
}

/** Enrolls a key with a join token. Needs no other proof of who asks. */
export interface Join {
  /** Its name. */
  agent_id: AgentId;
  /** The public key. */
  key: PublicKey;
  /** A signature by the key over the agent's name and the key. */
  proof: Signature;
  /** The invitation. */
  token: string;
}

/** Something that work has to do without. */
export interface JoinGap {
  reason: string;
  reference: string;
}

/** What one of the tasks has come to that work waited for. */
export interface JoinedResult {
  came_to: CameTo;
  /** Its last handoff. */
  handoff_id?: HandoffId | null;
  /** The result itself, where there was room for it. It is data that others wrote. */
  output?: { [name: string]: any } | null;
  /** The address of its result. */
  result?: Hash | null;
  task_id: TaskId;
}

/** One of the tasks that were waited for. */
export interface JoinedTask {
  came_to: CameTo;
  /** Its last handoff, if it was handed on at all. */
  handoff_id?: HandoffId | null;
  /** The address of its result. */
  result?: Hash | null;
  /** Where the result is kept. */
  result_at?: Position | null;
  task_id: TaskId;
}

export interface Kept {
  id: string;
  /** Its short name in the text, such as `m3`. */
  name?: string;
  pinned?: boolean;
  revision: number;
  rung: Rung;
}

/** Who alone may claim, because it asked. */
export interface KeptFor {
  agent: AgentId;
  /** For how long. */
  left_ms: number;
}

/** An idempotency key and the request it stands for. */
export interface Key {
  key: IdempotencyKey;
  /** The hash of the request's body: the same key with another body is a conflict. */
  request: Hash;
}

/** A public key's id: the beginning of its hash. */
export type KeyId = string;

/** What a document is for. */
export type Kind = "memory" | "context" | "chain" | (string & {});

/** In seconds, as the bounds of the histogram tell it. */
export interface Latency {
  count: number;
  p50?: number | null;
  p95?: number | null;
  p99?: number | null;
}

/** What was left out before there was anything to render: of what an envelope only refers to. */
export interface LeftOut {
  items: number;
  /** How many of each kind. */
  kinds?: { [name: string]: number };
  /** Lines of the state and the history. */
  lines?: number;
  tokens: number;
}

export interface Length {
  chars_max?: number | null;
  chars_min?: number | null;
  words_max?: number | null;
}

export interface Lift {
  id: Hash;
  reason: string;
}

/** Ends a constraint of a task, from its next envelope on. */
export interface LiftConstraint {
  /** Who issued it, or the coordinator of the task. */
  by: AgentId;
  /** The id of the constraint. */
  constraint: Hash;
  /** Why; it stands in the log. */
  reason: string;
}

export interface Lifted {
  by: AgentId;
  /** The hop from which on it no longer binds. */
  hop: number;
  id: Hash;
  reason: string;
  text: string;
}

/** A constraint that does not bind the next envelope any more. */
export interface LiftedConstraint {
  by: AgentId;
  constraint: Hash;
}

/** When a breaker opens, and for how long. */
export interface Limits {
  /** How many handoffs in a row must use up their tries before nothing more is sent. */
  failures: number;
  /** How long nothing is sent, in milliseconds. */
  open_ms: number;
}

export interface LogCheckpoint {
  at: Timestamp;
  /** In hex. */
  key: string;
  log_hash: Hash;
  position: Position;
  signature: string;
}

export type LossCause = "silence" | "hard_deadline" | "restored" | "revoked" | (string & {});

export interface Memories {
  memories: Memory[];
  /** Where the next page begins. */
  next?: Cursor | null;
}

export interface Memory {
  /** The address of the revision's text. */
  content: Hash;
  created_at: Timestamp;
  created_by: Actor;
  deleted?: Tombstone | null;
  /** Whether the text of this revision was erased. */
  erased?: boolean;
  latest: number;
  /** One line: its title, or its first words. */
  line?: string | null;
  memory_id: DocumentId;
  pinned: boolean;
  priority: Priority;
  /** The revision that is shown, and the last one there is. */
  revision: number;
  scope: Scope;
  /** How well it answers the question, if one was asked. */
  score?: number | null;
  summary?: string | null;
  superseded_by?: DocumentId | null;
  tags?: string[];
  text?: string | null;
  title?: string | null;
  warnings?: Warning[];
  written_at: Timestamp;
  written_by: Actor;
}

export interface MemoryRef {
  freshness?: Freshness;
  id: string;
  revision?: number | null;
  title?: string | null;
}

export interface Message {
  from_agent: AgentId;
  /** The user's own words. */
  intent: string;
  /** What was told, as one of the receivers got it. */
  payload?: Payload | null;
  position: Cursor;
  published_at: Timestamp;
  task_id: TaskId;
}

/** What was told on a channel. */
export interface Messages {
  messages: Message[];
  /**
   * Said where messages before these may be missing: after a restore, or a failover of the
   * database that lost some.
   */
  missed?: Missed | null;
  /** Give this as `after` to read on. */
  next: Cursor;
}

/**
 * Told on the stream of events, as an event `missed`, where it cannot be promised that a
 * follower was told everything: old history was dropped, or a failover of the database lost
 * the log's end.
 */
export interface Missed {
  /** Up to where it was told. */
  after: Cursor;
  /**
   * It goes on after this. What is known from events between it and `after` has to be read
   * anew.
   */
  resume_after: Cursor;
}

export type Mode = "all" | "any" | (string & {});

/** Where a handoff is after a call. */
export interface Moved {
  correlation_id?: CorrelationId | null;
  handoff_id: HandoffId;
  state: string;
  status: string;
  task_id: TaskId;
}

/** How many must have a result. */
export type Need = "all" | "any" | (string & {}) | {
  quorum: number;
};

/** Adds to a project's decision log. */
export interface NewDecision {
  by: AgentId;
  /** What was decided. */
  decision: string;
  /** The question that it settles. */
  key: DecisionKey;
  /** The number of the decision that no longer holds. */
  supersedes?: number | null;
  /** What speaks for it. */
  why?: string | null;
}

export interface NewGap {
  reason?: string | null;
  reference: string;
}

/** Keeps a memory. */
export interface NewMemory {
  by: AgentId;
  /** The name it is to have, such as `ms-4821`; the broker chooses one without it. */
  id?: DocumentId | null;
  /** Makes it safe to repeat: the same request with the same key is carried out once. */
  idempotency_key?: IdempotencyKey | null;
  /** Pinned memories always travel. */
  pinned?: boolean;
  /** 0 to 9; higher ones are claimed first. */
  priority?: Priority;
  /** What it is about: a project, a task or an agent. The writer itself without it. */
  scope?: Scope | null;
  /** A few sentences for whoever has no room for all of it. */
  summary?: string | null;
  /** Words to find it by; `kind:log` says what kind it is. */
  tags?: string[];
  /** The whole text. */
  text: string;
  /** A line that says what it is about. */
  title?: string | null;
}

export interface NewStep {
  action: string;
  decision?: string | null;
  memory_id?: string | null;
  why?: string | null;
}

/** Nothing needs to be said beyond the path. */
export type Nothing = { [name: string]: never };

/** A broker tells people of an alert from here on, and no other until then. */
export interface NoticeTaken {
  by: string;
  rule: string;
  /** As metrics call it: `agent:` or `capability:` and the name. */
  target?: string | null;
  until: Timestamp;
}

/** People were told of an alert, or could not be. */
export interface NoticeTold {
  fires: boolean;
  /** Why it was not sent everywhere. */
  problem?: string | null;
  rule: string;
  sent: boolean;
  since: Timestamp;
  /** As metrics call it: `agent:` or `capability:` and the name. */
  target?: string | null;
  tries: number;
}

/** An object that keeps whatever members it was given, for parts whose shape is the sender's. */
export type Object = { [name: string]: any };

/** How an agent fares in one capability, beside what it promises. */
export interface Observed {
  /** Whether it falls short of that. */
  breaks_sla: boolean;
  /** Absent for work that named none. */
  capability?: Capability | null;
  /** What the manifest promises. */
  declared_sla?: number | null;
  /** Results that took longer than the agent's own `timeout_seconds`. */
  late: number;
  /** Attempts that were lost by silence or took longer than they might. */
  losses: number;
  mean_ms: number;
  recent_successes: number;
  /** Of the last attempts, at most 64: how many there were and how many ended in a result. */
  recent_tries: number;
  successes: number;
  tries: number;
}

/** Offers work to an agent, or to any agent with a capability. */
export interface Offer {
  /** What the receiver should do with it; a first offer is a `request`. */
  action?: Action;
  /** Adds to what binds, as a list or a map. */
  add_constraints?: unknown;
  /** Tasks that must have a result before this can be claimed. */
  after?: After | null;
  /** What was considered and not taken, and why not. */
  alternatives?: string[];
  /**
   * Who may approve it: nobody else then, and each of them is told that it waits. Neither the
   * sender nor the receiver.
   */
  approvers?: AgentId[];
  /** What this receiver must do. */
  ask?: string | null;
  /** What was taken for granted and not checked. */
  assumptions?: string[];
  /**
   * What the task, with everything below it, may spend from here on. Every result and failure
   * that reports its usage makes it less; a task with nothing left takes no more hops.
   */
  budget?: Budget | null;
  /** How many tokens the work may use. */
  budget_tokens?: number | null;
  /**
   * What is to be done, where `to` names an agent: its manifest says what goes in and comes
   * out.
   */
  capability?: Capability | null;
  /**
   * What binds everybody from here on. Without it, what bound before still does. A list says
   * all of it: one that leaves out or rewords what bound before is refused. A plain map, such
   * as `{"language": "python", "max_tokens": 4000}`, adds to it.
   */
  constraints?: unknown;
  /** Memories that are passed along, in full or in short; `/v1/assemble` makes them. */
  context?: ContextItem[];
  /** The address of the list of what was passed, as `/v1/assemble` gives it. */
  context_manifest?: Hash | null;
  /** `passed` transfers the task; `awaited` calls: the work is a task below the sender's own. */
  control?: Control;
  /** Who decides about a new task when things go wrong, and is told of every failure. */
  coordinator?: Coordinator | null;
  /** A name by which the sender finds everything that belongs together. */
  correlation_id?: CorrelationId | null;
  /** When the work must be finished; past it the handoff is dead-lettered. */
  deadline?: Timestamp | null;
  /** Decisions that are new. */
  decisions?: SaidDecision[];
  /** Cases that were seen and left for later. */
  deferred?: string[];
  /**
   * The version that the sender speaks. Members that are not known here are kept if it is a
   * newer minor, and are a mistake otherwise.
   */
  envelope_version?: string | null;
  /** What is wanted back; a result that does not fit is refused. */
  expected_output?: ExpectedOutput | null;
  /** The same as a span from now. The earlier of the two counts; 24 hours by default. */
  expires_in_ms?: number | null;
  /**
   * Who is asked next, in this order, if the receiver cannot or will not do it: by name, or
   * anybody with a capability.
   */
  fallbacks?: Target[];
  /** Who sends it. A task is handed on by its owner. */
  from_agent: AgentId;
  /** References that could not be resolved. */
  gaps?: (string | NewGap)[];
  /** What was done and is not in the history yet. */
  history?: NewStep[];
  /** The same key with the same body gives the first reply again; with another body, a conflict. */
  idempotency_key?: IdempotencyKey | null;
  /** The user's own words. Needed for a new task; from then on the broker carries them. */
  intent?: string | null;
  /** Ends constraints. Only who issued one, or the task's coordinator, can do that. */
  lift_constraints?: Lift[];
  /** Which majors of the envelope the sender can give. */
  majors?: number[];
  /** Memories that the receiver can fetch. */
  memory_refs?: MemoryRef[];
  /** For monitoring only. */
  metadata?: Object;
  /** Hold it back until somebody other than the sender approves. */
  needs_approval?: boolean;
  /**
   * Of a call: what becomes of it when the caller's own work ends without a result. `cancel` by
   * default; with `let_go` it goes on.
   */
  on_parent_end?: OnParentEnd | null;
  /** Questions that are new and that somebody must decide. */
  open_decisions?: (string | Question)[];
  /** Handoffs with the same key are worked on one after the other. */
  ordering_key?: OrderingKey | null;
  /** A JSON Schema that the result must fit: `expected_output.schema` in short. */
  output_schema?: unknown;
  /** What to work on: an object with a `type`. */
  payload: Payload;
  /** 0 to 9; higher is claimed first. 5 by default. */
  priority?: number | null;
  /** What a new task belongs to. Tasks below it belong there too. */
  project?: Project | null;
  /** Lets the claim count only once the receiver has repeated what binds it. */
  read_back?: boolean;
  /** What was chosen, as `/v1/assemble` gives it. */
  reading?: Reading | null;
  /** References of gaps that are resolved now. */
  resolved_gaps?: string[];
  /** How one of the agents with the capability is chosen. Without it, all of them may claim. */
  route?: Route | null;
  /** The sender's signature over what it says, which travels in the envelope. */
  signed?: Signed | null;
  /** Do not let it be claimed before this much time has passed. */
  start_in_ms?: number | null;
  /** How far the task is: what is done, what remains. */
  state?: TaskProgress | null;
  /** What the task is about now, in a few sentences. */
  summary?: string | null;
  /**
   * The task to hand on (`control: passed`) or to do the work for (`control: awaited`). Without
   * it a new task is opened.
   */
  task_id?: TaskId | null;
  /** How often, how long and within what time it is tried. */
  terms?: TermsPatch | null;
  /** An agent by name, or any agent with a capability. */
  to: Target;
  /** What was tried and did not work, so that nobody tries it again. */
  tried?: string[];
}

/** Offers many at once. Each stands on its own; all are synced together. */
export interface OfferBatch {
  /** Each is carried out on its own. */
  offers: AnyOffer[];
}

/**
 * What was stored. The same request with the same idempotency key gets these same facts
 * again.
 */
export interface OfferReply {
  correlation_id?: CorrelationId | null;
  envelope: Hash;
  expires_at: Timestamp;
  handoff_id: HandoffId;
  hop: number;
  /** Whether somebody is there who takes work for it. If not, it waits. */
  listening: boolean;
  offered_at: Timestamp;
  /** Somebody paused its target: it waits until that is over. */
  paused?: PausedUntil | null;
  /** How the agent was chosen. */
  routed?: Why | null;
  /** Always `stored`: synced to disk, not yet fetched by anybody. */
  status: string;
  task_id: TaskId;
  /** Who is to do the work; the agent that was chosen, if one was. */
  to: Target;
  /** What its sender may want to do otherwise: nothing of it keeps the offer back. */
  warnings?: ReceiptWarning[];
}

/** The facts a handoff starts with. */
export interface Offered {
  /** The dead letter that this handoff takes the place of, with an envelope of its own. */
  amends?: HandoffId | null;
  /** Whether it has to be approved for no other reason than what its task is built on. */
  blocked?: boolean;
  contract?: Contract;
  envelope: Hash;
  expires_at: Timestamp;
  from: AgentId;
  hop: number;
  key?: Key | null;
  /** Constraints that this hop lifts; the envelope says why. */
  lifted?: Hash[];
  needs_approval?: boolean;
  not_before?: Timestamp | null;
  /** Present if this offer also opened its task. */
  opens?: Opened | null;
  ordering_key?: OrderingKey | null;
  priority: number;
  /** Whether it is let through to see how its target fares. */
  probe?: boolean;
  /** The dead letter that this handoff sends on its way again, and where its envelope is kept. */
  redrive_of?: Redrive | null;
  terms: Terms;
  to: Target;
}

/** What becomes of a task when the one above it ends without it. */
export type OnParentEnd = "cancel" | "let_go" | (string & {});

export interface OpenDecision {
  by: AgentId;
  /** The SHA-256 of the question. */
  id: Hash;
  options?: string[];
  question: string;
}

/** A question that waits for its answer, with what somebody must know to answer it. */
export interface OpenQuestion {
  answer?: unknown;
  /** By when it must be answered. */
  answer_by?: Timestamp | null;
  /** How much time is left to answer: until `answer_by` or the hard deadline of the attempt. */
  answer_left_ms: number;
  answered_at?: Timestamp | null;
  /** Who answered; nobody if the asker's default took the place of an answer. */
  answered_by?: AgentId | null;
  asked_at: Timestamp;
  asked_by: AgentId;
  /** The attempt in which it was asked. */
  attempt: number;
  correlation_id?: CorrelationId | null;
  /** The answer that holds if nobody gives one in time. */
  default?: unknown;
  details?: Object;
  from_agent: AgentId;
  handoff_id: HandoffId;
  kind: QuestionKind;
  /** The address of the question. */
  question: Hash;
  /** What the answer must fit. */
  schema?: unknown;
  task_id: TaskId;
  /** The question itself; missing if it was erased. */
  text?: string | null;
  to: Target;
}

/** Opens a session. */
export interface OpenSession {
  /** How long it lasts; eight hours without it, and at most. */
  expires_in_ms?: number | null;
}

/** Opens a task that its owner keeps for now. */
export interface OpenTask {
  /**
   * Who decides about it when things go wrong, and is told of every failure; its owner without
   * it.
   */
  coordinator?: Coordinator | null;
  /** A name by which the sender finds everything that belongs together. */
  correlation_id?: CorrelationId | null;
  /** Who opens the task and owns it until somebody claims it. */
  from_agent: AgentId;
  /** Makes it safe to repeat: the same request with the same key is carried out once. */
  idempotency_key?: IdempotencyKey | null;
  /**
   * The user's own words. They reach every agent of the chain unchanged. Below another task
   * they are that one's, and need not be said.
   */
  intent?: string | null;
  /**
   * What becomes of it when the task above it ends without a result. `cancel` by default; with
   * `let_go` it goes on.
   */
  on_parent_end?: OnParentEnd | null;
  /**
   * The task this one is part of; `from_agent` must own it. What binds that one binds this one
   * too, and it ends no later.
   */
  parent_task_id?: TaskId | null;
  /** What the task belongs to; without it, what its parent belongs to. */
  project?: Project | null;
}

/** The facts a task starts with. */
export interface Opened {
  /** The hop of another task from which this one begins anew. */
  branch_of?: BranchOf | null;
  /** The channel on which it was told to many. */
  channel?: ChannelId | null;
  /** Who decides about it when things go wrong; without one, its opener does. */
  coordinator?: AgentId | null;
  correlation_id?: CorrelationId | null;
  /** The envelope that its first one follows. */
  follows?: Follows | null;
  /** What it owes to the tasks above it. */
  hangs?: Hangs | null;
  intent: Hash;
  key?: Key | null;
  owner: AgentId;
  parent_task_id?: TaskId | null;
  project?: Project | null;
}

/** Handoffs to one target with the same key are worked on one after the other, in offer order. */
export type OrderingKey = string;

/** What something was made with. */
export type Origin = {
  key: KeyId;
} | {
  token: TokenId;
};

/** The numbers of the whole log, and how things stand now; of a tenant, of its own targets. */
export interface Overview {
  /**
   * How much of what there was to pass got into envelopes, from 0 to 1, where senders were
   * told.
   */
  completeness?: number | null;
  dead_lettered: number;
  /** From an offer to its first claim. */
  delivery: Latency;
  /** How many handoffs came to their end, and how many of them as dead letters. */
  ended: number;
  /** The share of handoffs that ended as dead letters. */
  failure_rate?: number | null;
  /** Alerts that are on. */
  firing: number;
  /** How many hops chains had on average when their task was completed; of all tenants together. */
  hop_depth?: number | null;
  now: Timestamp;
  /**
   * Targets with something that waits, is worked on, failed or is not sent to, those first that
   * need somebody most.
   */
  targets: TargetOverview[];
  /** How full token budgets were, from 0 to 1, where senders were told. */
  token_utilisation?: number | null;
}

export type PartOfMoved = Moved | {
  error: Problem;
};

export type PartOfOfferReply = OfferReply | {
  error: Problem;
};

/** One hop of the way. */
export interface Passed {
  from: AgentId;
  hop: number;
  /** The address of what was passed. */
  payload: Hash;
  to: Target;
}

/** Lets nothing be claimed of an agent or a capability. Offers to it are taken and wait. */
export interface PauseTarget {
  /** The same as a span from now. */
  for_ms?: number | null;
  target: Target;
  /** When it ends by itself; without either of the two, when somebody resumes it. */
  until?: Timestamp | null;
}

/** Until when nothing is claimed of a target. */
export interface PausedUntil {
  since: Timestamp;
  /** Without it, until somebody resumes it. */
  until?: Timestamp | null;
}

/** An object that names its type, never a bare string. */
export interface Payload {
  type: string;
  [name: string]: any;
}

/** Looks at what waits, without claiming. */
export interface Peek {
  /** Who asks. */
  agent: AgentId;
  /** What it can do; work that is offered to one of these is found too. */
  capabilities?: Capability[];
  /** Which majors of the envelope the agent takes; without any, what its manifest says. */
  majors?: number[];
  /** How many at most. */
  max?: number;
}

export interface Peeked {
  waiting: Waiting[];
}

/** Something that a rule is about. */
export type Permission = "write_memory" | "write_shared_context" | (string & {}) | "send" | "claim" | "complete" | "read" | "redrive" | "approve" | "operate" | "administer" | (string & {});

export interface Pipeline {
  /** The stage that a task begins with. */
  first: string;
  name: string;
  stages: PipelineStage[];
  /** Rises with every change, so that a chain can tell by which one it runs. */
  version: number;
}

/** Several stages at once, each with a task of its own below this one. */
export interface PipelineFan {
  /** When it goes on in any case, with what there is by then. */
  deadline_ms?: number | null;
  /** The stage that goes on with what they found. */
  join: string;
  /** How many of them must have a result; all without it. */
  need?: number | null;
  stages: string[];
}

/** What a member of the payload must be. */
export interface PipelineMember {
  at_least?: number | null;
  at_most?: number | null;
  equals?: unknown;
  exists?: boolean | null;
  one_of?: unknown[];
  /** Where it is, as a JSON pointer. */
  path: string;
}

export type PipelineRule = {
  to: string;
} | {
  fan: PipelineFan;
} & {
  /** When it fits; always without it. */
  when?: PipelineWhen | null;
};

export interface PipelineStage {
  /** How long it may wait to be claimed. */
  ack_ms?: number | null;
  /** What this stage must do, in words. */
  ask?: string | null;
  /** How many attempts may fail. */
  attempts?: number | null;
  /** How many tokens its work may use. */
  budget_tokens?: number | null;
  /** Who is asked next if that one cannot or will not do it. */
  fallbacks?: Target[];
  name: string;
  /** Whether somebody has to approve before it begins. */
  needs_approval?: boolean;
  /** What comes next: the first rule that fits. The last one must fit everything. */
  next: PipelineRule[];
  /** How long one attempt may take. */
  timeout_ms?: number | null;
  to: Target;
}

export interface PipelineWhen {
  /** One of these actions. */
  action?: Action[];
  /** All of these members of the payload. */
  payload?: PipelineMember[];
}

/** A file of pipelines. */
export interface Pipelines {
  pipelines: Pipeline[];
}

/** How an agent is chosen for a capability. */
export type Policy = "any" | "least_loaded" | "most_reliable" | "round_robin" | "sticky" | (string & {});

export interface PopulationBehind {
  handoff_id: HandoffId;
  position: Position;
  task_id: TaskId;
}

export interface PopulationFinding {
  /** The agents that it is about, the one that acts first; none if it is about all of them. */
  agents: string[];
  /** The last handoffs behind it. */
  behind: PopulationBehind[];
  /** How large it is, in the unit beside it. */
  effect: number;
  kind: PopulationKind;
  /** How many choices, messages, hops or values of theirs there were. */
  n: number;
  /**
   * How often chance alone gives something as strong anywhere in a population like this, as a
   * share.
   */
  p: number;
  /** From where on it is so, as far as that can be told. */
  since?: Timestamp | null;
  /** One sentence. */
  summary: string;
  unit: string;
}

export interface PopulationGroup {
  agents: string[];
  /** How many findings link them. */
  findings: number;
  kind: PopulationKind;
}

/** What is looked for. */
export type PopulationKind = "illegibility_drift" | "routing_concentration" | "acceptance_bias" | "ping_pong" | "graph_drift" | "numeric_parallelism" | (string & {});

export interface PopulationLooked {
  /** How often an honest population may raise an alarm of this kind, as a share. */
  false_alarm_rate: number;
  kind: PopulationKind;
  /** How many choices, messages, chains or values were looked at. */
  n: number;
  /** How often the data were shuffled; 0 if the test needs none. */
  permutations: number;
  /** How many agents, pairs or measures were tested at once. */
  tested: number;
  /** Why nothing could be judged, if so. */
  unjudged?: string | null;
}

/** What agents did in a span of the log, and what of it is unusual. */
export interface PopulationReport {
  /** How many agents took part, as far as they are told apart. */
  agents: number;
  /** What counts as usual; without it, agents are compared with each other alone. */
  baseline?: PopulationSpan | null;
  /** Whether somebody chose the baseline; else it is the first third of what was kept. */
  baseline_chosen: boolean;
  /** What was not told apart or left out because there was too much of it. */
  bounds_reached?: string[];
  /** What was compared with it. */
  current: PopulationSpan;
  /** How many events were read. */
  events: number;
  /** How often an honest population may raise any alarm at all, as a share. */
  false_alarm_rate: number;
  /** The strongest first, of each kind. */
  findings: PopulationFinding[];
  /** Agents whose findings hang together, by kind. */
  groups?: PopulationGroup[];
  /** How many handoffs they offered. */
  handoffs: number;
  /** How many of them were kept to be looked at. */
  kept: number;
  /** One of so many handoffs was kept; 1 means all of them. */
  kept_every: number;
  /** What was looked for, whether it could be judged, and how. */
  looked: PopulationLooked[];
  /** The seed of the permutations. */
  seed: number;
}

export interface PopulationSpan {
  from: Timestamp;
  handoffs: number;
  until: Timestamp;
}

/** Where a store keeps an event and the body that came with it. Unique; says nothing else. */
export type Position = number;

/** How readily a memory travels when there is not room for all. */
export type Priority = "high" | "normal" | "low" | (string & {});

/** What every error looks like. */
export interface Problem {
  /** Stable; has a page of its own under `/docs/errors/`. */
  code: string;
  details?: Object;
  /** What to do next. */
  hint: string;
  /** What failed and why. */
  message: string;
  request_id?: string;
  /** Whether the same request may succeed later. */
  retryable: boolean;
}

export interface Progress {
  claim_id: ClaimId;
  fence: Fence;
  /** What was done, or is being done. */
  note?: string | null;
  /** 0 to 100. */
  percent?: number | null;
}

export interface ProgressNote {
  at: Timestamp;
  note: string;
  percent?: number | null;
}

/** The name of a project within a tenant. */
export type Project = string;

/** Something that holds for all work of a project. */
export interface ProjectConstraint {
  kind: ConstraintKind;
  text: string;
}

/** One entry of the decision log. */
export interface ProjectDecision {
  at: Timestamp;
  by: AgentId;
  decision: string;
  /** The question that it settles. */
  key: DecisionKey;
  /** Its number in the log, from 1. */
  number: number;
  superseded_by?: number | null;
  supersedes?: number | null;
  why?: string | null;
}

/** Where a project stands. */
export interface ProjectState {
  branch?: string | null;
  files?: string[];
  recent_changes?: string[];
  summary?: string | null;
}

/** An envelope as a model reads it. */
export interface Prompt {
  /**
   * How many tokens of it are the assembled text, which is the same for every reader with room
   * for it; the rest is about this handoff and this claim.
   */
  assembled_tokens: number;
  /** How many tokens it could have; absent if nothing bounds it. */
  bound?: number | null;
  /** Whether that is the count itself and not an upper bound. */
  exact: boolean;
  /**
   * Where the rest of what the envelope did not pass whole is. Fetches from here are counted as
   * the handoff's `trim_regret`.
   */
  fetch?: string[];
  /** What is not in the text. */
  left_out?: LeftOut;
  /** The same as a message for the system and one for the user, if `form` is `messages`. */
  messages?: PromptMessage[];
  /** The ids of what is not in it at all. */
  missing?: string[];
  /** What each short name in the text stands for. */
  names?: { [name: string]: string };
  prompt: string;
  /** Whether the assembled text is less than what its sender saw, for lack of room. */
  shortened?: boolean;
  /** How many texts about the handoff and the claim are cut or left out. */
  texts_left_out?: number;
  token_count: number;
  /** What it was counted in. */
  tokenizer: Tokenizer;
}

/** One message of a prompt. */
export interface PromptMessage {
  content: string;
  /** `system` or `user`. */
  role: string;
}

/** How a prompt is written down. */
export type PromptStyle = "markdown" | "xml" | "messages" | (string & {});

/** An Ed25519 public key, in base64url without padding. */
export type PublicKey = string;

/** Tells something to many: each receiver gets a handoff of its own, all in one step. */
export interface Publication {
  /** What the receiver should do with it; a first offer is a `request`. */
  action?: Action;
  /** Adds to what binds, as a list or a map. */
  add_constraints?: unknown;
  /** What was considered and not taken, and why not. */
  alternatives?: string[];
  /** Who may approve it: nobody else then. Neither the sender nor a receiver. */
  approvers?: AgentId[];
  /** What this receiver must do. */
  ask?: string | null;
  /** What was taken for granted and not checked. */
  assumptions?: string[];
  /**
   * What binds everybody from here on. Without it, what bound before still does. A list says
   * all of it: one that leaves out or rewords what bound before is refused. A plain map, such
   * as `{"language": "python", "max_tokens": 4000}`, adds to it.
   */
  constraints?: unknown;
  /** Memories that are passed along, in full or in short; `/v1/assemble` makes them. */
  context?: ContextItem[];
  /** The address of the list of what was passed, as `/v1/assemble` gives it. */
  context_manifest?: Hash | null;
  /** Who decides if it fails; without it, who opened the task. */
  coordinator?: Coordinator | null;
  /** A name by which the sender finds everything that belongs together. */
  correlation_id?: CorrelationId | null;
  /** When it must be claimed and done at the latest. */
  deadline?: Timestamp | null;
  /** Decisions that are new. */
  decisions?: SaidDecision[];
  /** Cases that were seen and left for later. */
  deferred?: string[];
  /** What is wanted back; a result that does not fit is refused. */
  expected_output?: ExpectedOutput | null;
  /** The same, from now. */
  expires_in_ms?: number | null;
  /** Who sends it. A task is handed on by its owner. */
  from_agent: AgentId;
  /** References that could not be resolved. */
  gaps?: (string | NewGap)[];
  /** What was done and is not in the history yet. */
  history?: NewStep[];
  /** The same key with the same body gives the first reply again. */
  idempotency_key?: IdempotencyKey | null;
  /** The user's own words. */
  intent: string;
  /** Ends constraints. Only who issued one, or the task's coordinator, can do that. */
  lift_constraints?: Lift[];
  /** Memories that the receiver can fetch. */
  memory_refs?: MemoryRef[];
  /** For monitoring; no model reads it. */
  metadata?: Object;
  /** It waits until somebody other than its sender approves it. */
  needs_approval?: boolean;
  /** Questions that are new and that somebody must decide. */
  open_decisions?: (string | Question)[];
  /** Handoffs with the same key are worked on one after the other. */
  ordering_key?: OrderingKey | null;
  /** What to work on: an object with a `type`. */
  payload: Payload;
  /** 0 to 9; higher ones are claimed first. */
  priority?: number | null;
  /** What the task belongs to. */
  project?: Project | null;
  /** Lets the claim count only once the receiver has repeated what binds it. */
  read_back?: boolean;
  /** What was chosen, as `/v1/assemble` gives it. */
  reading?: Reading | null;
  /** Who gets it; without them, whoever subscribes to the channel. */
  receivers?: AgentId[] | null;
  /** References of gaps that are resolved now. */
  resolved_gaps?: string[];
  /** How far the task is: what is done, what remains. */
  state?: TaskProgress | null;
  /** What the task is about now, in a few sentences. */
  summary?: string | null;
  /** How often, how long and within what time it is tried. */
  terms?: TermsPatch | null;
  /** What was tried and did not work, so that nobody tries it again. */
  tried?: string[];
}

/** Publishes an agent's manifest, its first or a new one. */
export interface Publish {
  /** The manifest; its JSON Schema is `/v1/schemas/manifest.json`. */
  manifest: unknown;
  /** The agent's signature over the manifest; needed if the agent has a key. */
  signed?: Signed | null;
  /** Publish only if the manifest so far has this version; 0 if there must be none. */
  version?: number | null;
}

export interface Published {
  channel: ChannelId;
  correlation_id?: CorrelationId | null;
  handoffs: Told[];
  position: Cursor;
  /** Whether this had been told before, by a request with the same key. */
  repeated: boolean;
  /** The task of whoever publishes; each receiver has one below it. */
  task_id: TaskId;
}

export type Purpose = "bearer" | "join" | (string & {});

/** Gives claimed work back until a time. */
export interface PutBack {
  claim_id: ClaimId;
  fence: Fence;
  /** For how long nobody can claim it. */
  for_ms?: number | null;
  /** Why; it stands in the log. */
  reason?: string | null;
  /** When it can be claimed again; give this or `for_ms`. */
  until?: Timestamp | null;
}

export interface Question {
  options?: string[];
  question: string;
}

/** What a question wants. */
export type QuestionKind = "input" | "authorization" | (string & {});

export interface Questions {
  /** Give this as `before` to get the next page. */
  next?: HandoffId | null;
  questions: OpenQuestion[];
}

export interface QueuedTask {
  handoff_id?: HandoffId | null;
  opened_at: Timestamp;
  owner: AgentId;
  /** Where the handoff under way is. */
  status?: string | null;
  task_id: TaskId;
  to?: Target | null;
}

/** What a tenant may use. Without a number there is no limit. */
export interface Quotas {
  /** Handoffs that are not at their end. */
  in_flight?: number | null;
  /** Requests per second, with a second's worth at once. */
  requests_per_second?: number | null;
  /** Bytes of envelopes, results and other bodies. */
  stored_bytes?: number | null;
}

/** What a receiver repeats before its claim counts. */
export interface ReadBack {
  /** The ids of all constraints. */
  constraints: Hash[];
  /** The address of the expected output, if there is one. */
  expected_output?: Hash | null;
}

/**
 * What assembly chose. The items themselves, and the parts of them, are the envelope's
 * `context`.
 */
export interface Reading {
  /** What the whole prompt may have, with what a claim adds. */
  budget?: number | null;
  /** What was left out then. */
  left_out?: LeftOut;
  /** What the broker's lines begin with. */
  mark: string;
  /**
   * The steps that were taken, in order: `l3` is the fourth line of the brief, `s2`, `u2`, `w2`
   * the line, the summary and the whole of item m2, `p2.5` its fifth part.
   */
  order: string[];
  strategy: Strategy;
  /** How many tokens the text is. */
  token_count: number;
  /** What it was counted in. */
  tokenizer: Tokenizer;
}

/** What can be started now, and what holds back the rest. */
export interface ReadyView {
  /** Work that waits for something else, newest first. */
  held: Waits[];
  /** Work that somebody may claim at this moment, newest first. */
  ready: Waits[];
}

/** What decided. */
export type Reason = "only_choice" | "best" | "turn" | "key" | "no_key" | "last_resort" | (string & {});

/** How a budget was spent. `kept`, `demoted` and `dropped` together are all that was given. */
export interface Receipt {
  /** What the receiver can take in all; absent if there is no limit. */
  budget?: number | null;
  /** A budget that would have kept everything, reserves included. */
  budget_for_everything: number;
  /**
   * How much of what was asked for, and of what there is where it was looked, was read, in
   * thousandths.
   */
  completeness_per_mille: number;
  /** Less than that. */
  demoted: Demoted[];
  /** Nothing. */
  dropped: Dropped[];
  /** Whether that is the count itself and not an upper bound. */
  exact: boolean;
  /** As much as the strategy passes of an item. */
  kept: Kept[];
  /** The address of the list of everything that there is. */
  manifest_hash: Hash;
  /** How many items there are where it was looked that nobody looked at. */
  not_considered?: number;
  /** What is kept free for what a claim adds: who sends it, the payload, earlier attempts. */
  reserved_claim?: number;
  reserved_system_prompt: number;
  reserved_work: number;
  strategy: Strategy;
  /** How many tokens the rendered text is. */
  token_count: number;
  tokenizer: Tokenizer;
  /** What could not be read. */
  unresolved: Unresolved[];
  /** How much of what the reserves leave is used, in thousandths; 0 without a limit. */
  utilisation_per_mille: number;
  warnings: ReceiptWarning[];
}

export interface ReceiptWarning {
  code: WarningCode;
  id?: string | null;
  text: string;
}

/**
 * One fact with who, when and where in its task's chain. This is the exact form that is
 * stored, hashed and exported; its golden file is `tests/golden/events.jsonl`.
 */
export type Record = (Opened & {
  kind: "task_opened";
} | {
  kind: "task_cancelled";
  reason?: Hash | null;
} | {
  kind: "task_completed";
  result?: Hash | null;
} | {
  kind: "task_held";
  letter: HandoffId;
} | {
  deadline?: Timestamp | null;
  kind: "task_resumed";
  under?: HandoffId | null;
} | Offered & {
  kind: "transfer_offered";
} | Offered & {
  kind: "call_offered";
} | Countered & {
  kind: "countered";
} | {
  agent: AgentId;
  budget_tokens?: number | null;
  kind: "counter_accepted";
  terms: Terms;
} | {
  agent: AgentId;
  kind: "counter_refused";
} | {
  kind: "approved";
} | {
  agent: AgentId;
  kind: "delivered";
} | {
  kind: "readied";
} | {
  kind: "wait_over";
} | {
  kind: "joined";
  members: JoinedTask[];
} | {
  kind: "passed_to";
  task: TaskId;
} | Claimed & {
  kind: "claimed";
} | {
  kind: "started";
} | Acknowledged & {
  kind: "acknowledged";
} | {
  kind: "progressed";
  note?: Hash | null;
  percent?: number | null;
} | Asked & {
  kind: "asked";
} | {
  answer: Hash;
  kept_until: Timestamp;
  kind: "answered";
} | {
  kept_until: Timestamp;
  kind: "answer_defaulted";
} | {
  kind: "keep_ended";
} | {
  kind: "message_sent";
  message: Hash;
  number: number;
} | {
  fence: Fence;
  kind: "messages_acknowledged";
  up_to: number;
} | Attached & {
  kind: "attached";
} | {
  fence: Fence;
  kind: "put_back";
  reason?: Hash | null;
  until: Timestamp;
} | {
  /** Calls that were made in the same step. */
  calls?: HandoffId[];
  fence: Fence;
  kind: "completed";
  /** The transfer by which the task goes on; without it the task is completed too. */
  next?: HandoffId | null;
  /** The target that had failed before and works again. */
  recovers?: Target | null;
  result: Hash;
} | SpentBy & {
  kind: "spent";
} | {
  class: FailureClass;
  failure: Hash;
  fence: Fence;
  kind: "attempt_failed";
} | {
  agent: AgentId;
  kind: "declined";
  reason?: Hash | null;
} | {
  fence: Fence;
  kind: "released";
} | {
  cause: LossCause;
  fence: Fence;
  kind: "lease_lost";
} | {
  due: Timestamp;
  kind: "retry_scheduled";
} | {
  kind: "expired";
} | {
  /** The agent with which it used up its tries. */
  against?: Target | null;
  /** Why an approver said no; it is the body. */
  because?: Hash | null;
  kind: "dead_lettered";
  /** By which numbers that counts, if not by the usual ones. */
  limits?: Limits | null;
  reason: DeadReason;
} | {
  because: Closed;
  kind: "letter_closed";
} | {
  /** The agent with which it used up its tries. */
  against?: Target | null;
  kind: "escalated";
  /** By which numbers that counts, if not by the usual ones. */
  limits?: Limits | null;
  reason: DeadReason;
  to: Target;
} | {
  kind: "retracted";
  reason: Hash;
} | {
  kind: "tainted";
  policy: TaintPolicy;
  source: HandoffId;
} | {
  kind: "taint_cleared";
  reason: Hash;
  /** Whether the handoff under way was kept back by this alone, and is no longer. */
  releases?: boolean;
  source: HandoffId;
} | {
  kind: "cancelled";
  reason?: Hash | null;
} | {
  kind: "aborted";
  reason?: Hash | null;
} | {
  claim_id: ClaimId;
  fence: Fence;
  kind: "late_report";
  report: Hash;
} | {
  /** The address of what the reviewer changed; without it, nothing. */
  changed?: Hash | null;
  kind: "redriven";
  to: HandoffId;
} | {
  by: AgentId;
  kind: "review_taken";
  until: Timestamp;
} | {
  kind: "review_released";
} | {
  fence: Fence;
  kind: "reserved";
  resources: Resource[];
} | {
  kind: "unreserved";
  resources: Resource[];
} | {
  kind: "discarded";
  reason: Hash;
} | {
  epoch: number;
  kind: "epoch_raised";
} | Change & {
  kind: "registry_changed";
} | Written & {
  kind: "document_written";
} | {
  id: DocumentId;
  kind: "document_marked";
  pinned: boolean;
  priority: Priority;
} | {
  by: DocumentId;
  id: DocumentId;
  kind: "document_superseded";
} | {
  id: DocumentId;
  kind: "document_deleted";
  reason: Hash;
} | Erased & {
  kind: "erased";
} | {
  constraint: Hash;
  kind: "constraint_lifted";
  reason: Hash;
} | {
  agent: AgentId;
  kind: "trim_fetched";
  memory: DocumentId;
} | {
  fence: Fence;
  kind: "claim_told";
  told: Hash;
}) & {
  actor: Actor;
  at: Timestamp;
  handoff_id?: HandoffId | null;
  /** The how-manieth event of its task this is, from 0. */
  index: number;
  task_id: TaskId;
  /**
   * Whose turn it is by this in the queue that the handoff enters; without it, the position of
   * the event is.
   */
  turn?: Position | null;
  /** The version of this stored form. */
  v: number;
};

export interface Redrive {
  envelope_at: Position;
  handoff_id: HandoffId;
  /** Whether the dead letter had opened its task. */
  opened_task?: boolean;
}

/** Sends a dead letter on its way again. */
export interface RedriveLetter {
  by: AgentId;
  /**
   * How long it may take this time. Without it as long as before, and what expired gets at
   * least the broker's own span.
   */
  expires_in_ms?: number | null;
}

/** A request that nobody stood behind. */
export interface Refusal {
  at: Timestamp;
  code: string;
  from: string;
  /** The key or token that was named, whoever named it. */
  named?: string | null;
  path: string;
}

export interface Refusals {
  /** How many there were since the broker began; the last of them are listed. */
  count: number;
  refusals: Refusal[];
}

/** Says no to work that waits for approval. */
export interface Reject {
  by: AgentId;
  /** Why; it stands in the log, and the sender reads it. */
  reason: string;
}

export interface Report {
  attempt: number;
  ended: string;
  report: Object;
}

/** Makes a claim safe to repeat: the same agent and request id give the same claim again. */
export type RequestId = string;

/** Sends a dead letter to another target. */
export interface Reroute {
  by: AgentId;
  /**
   * How long it may take this time. Without it as long as before, and what expired gets at
   * least the broker's own span.
   */
  expires_in_ms?: number | null;
  /** An agent by name, or any agent with a capability. */
  to: Target;
}

export interface Reservation {
  agent: AgentId;
  /** The fence of the claim: what guards the resource can refuse an older one. */
  fence: Fence;
  handoff_id: HandoffId;
  resources: Resource[];
}

export interface Reservations {
  reservations: Reservation[];
}

/** Takes resources for the holder of a claim, or gives them up. */
export interface Reserve {
  claim_id: ClaimId;
  fence: Fence;
  /** Paths and patterns of paths: `*` within a step, `**` for any number of steps. */
  resources: Resource[];
}

/** A path or a pattern of paths, such as src/api/** or docs/*.md. */
export type Resource = string;

/** What a completed handoff produced. */
export interface ResultReport {
  /** `completed`, or what the sender should do with it: `needs_review`, `changes_requested`. */
  action: Action;
  /** What the agent says of it, which nobody checked. */
  declared?: CriterionReport[];
  /** References that it had to work without. */
  gaps?: string[];
  handoff_id: HandoffId;
  metadata?: Object;
  payload: Payload;
  /** Those of them that its maker named, where the broker added others that came with the work. */
  said_gaps?: string[] | null;
  /** What the attempt used. */
  usage?: WorkUsage | null;
  /** What the broker checked of it. */
  verified?: string[];
}

/** Lets work be claimed of an agent or a capability again. */
export interface ResumeTarget {
  target: Target;
}

/** Takes back what a completed handoff produced. */
export interface Retract {
  by: AgentId;
  /**
   * What becomes of work that was built on it: `flag` tells everybody, `block` holds it back
   * until somebody has approved.
   */
  policy?: TaintPolicy;
  /** Why; it stands in the log. */
  reason: string;
}

export type Role = "viewer" | "worker" | "reviewer" | "operator" | "admin" | (string & {});

/** Replaces a key by a new one. */
export interface Rotate {
  /** How long the old key still counts. */
  grace_ms?: number;
  /** The public key. */
  key: PublicKey;
  /** The id of the key that is replaced. */
  old: KeyId;
  /** A signature by the new key over the agent's name and the key. */
  proof: Signature;
}

/** How an agent is chosen for a capability. */
export interface Route {
  /** What a `sticky` choice sticks to. */
  key?: string | null;
  policy: Policy;
}

/** A rule as it is written: it may name a role for the permissions that the role has. */
export interface Rule {
  effect?: Effect;
  /** What is allowed or denied. There are some, or a role. */
  permissions?: Permission[];
  /**
   * Patterns of projects; a rule with other patterns than `*` says nothing about work that
   * belongs to no project.
   */
  projects?: string[];
  /** Stands for the permissions of this role; answers have those. */
  role?: Role | null;
  /**
   * Patterns of agents' and capabilities' names, without their tenant: `*` stands for any
   * characters, `?` for one.
   */
  targets?: string[];
}

/** What a coordinator may decide. */
export type Ruling = "retry" | {
  reroute: Target;
} | {
  abort: string;
};

/** How much of an item is passed. */
export type Rung = "full" | (string & {}) | "listed" | "stub" | "summary" | (string & {});

export interface Said {
  /** Adds to what binds, as a list or a map. */
  add_constraints?: unknown;
  /** What was considered and not taken, and why not. */
  alternatives?: string[];
  /** What this receiver must do. */
  ask?: string | null;
  /** What was taken for granted and not checked. */
  assumptions?: string[];
  /**
   * What binds everybody from here on. Without it, what bound before still does. A list says
   * all of it: one that leaves out or rewords what bound before is refused. A plain map, such
   * as `{"language": "python", "max_tokens": 4000}`, adds to it.
   */
  constraints?: unknown;
  /** Memories that are passed along, in full or in short; `/v1/assemble` makes them. */
  context?: ContextItem[];
  /** The address of the list of what was passed, as `/v1/assemble` gives it. */
  context_manifest?: Hash | null;
  /** Decisions that are new. */
  decisions?: SaidDecision[];
  /** Cases that were seen and left for later. */
  deferred?: string[];
  /** What is wanted back; a result that does not fit is refused. */
  expected_output?: ExpectedOutput | null;
  /** References that could not be resolved. */
  gaps?: (string | NewGap)[];
  /** What was done and is not in the history yet. */
  history?: NewStep[];
  /** Ends constraints. Only who issued one, or the task's coordinator, can do that. */
  lift_constraints?: Lift[];
  /** Memories that the receiver can fetch. */
  memory_refs?: MemoryRef[];
  /** Questions that are new and that somebody must decide. */
  open_decisions?: (string | Question)[];
  /** Lets the claim count only once the receiver has repeated what binds it. */
  read_back?: boolean;
  /** What was chosen, as `/v1/assemble` gives it. */
  reading?: Reading | null;
  /** References of gaps that are resolved now. */
  resolved_gaps?: string[];
  /** How far the task is: what is done, what remains. */
  state?: TaskProgress | null;
  /** What the task is about now, in a few sentences. */
  summary?: string | null;
  /** What was tried and did not work, so that nobody tries it again. */
  tried?: string[];
}

export interface SaidDecision {
  decision: string;
  key?: string | null;
  /** The open decision that this settles. */
  resolves?: Hash | null;
  supersedes?: Hash | null;
  why?: string | null;
}

/** What a document is about, which decides who may write it. */
export type Scope = {
  project: Project;
} | {
  task: TaskId;
} | {
  agent: AgentId;
};

/** Looks for agents. What is silent does not matter. */
export interface Search {
  /** What it must be able to do. */
  capability?: Capability | null;
  /** A JSON Schema of what would be sent: the capability must take it. */
  input?: unknown;
  /** How many at most, up to 1000. */
  limit?: number | null;
  /** Only those who are there, or only those who are not. */
  live?: boolean | null;
  /** A JSON Schema of what is needed: what the capability gives must fit it. */
  output?: unknown;
  /** The least share of the last attempts that ended in a result, in percent. */
  reliability?: number | null;
  /** What the receiver is, which says what it wants to see. */
  role?: string | null;
  /** Words to find it by; `kind:log` says what kind it is. */
  tags?: string[];
  /**
   * Whose agents; those of one's own tenant without it. Only an administrator of the default
   * tenant looks elsewhere.
   */
  tenant?: TenantId | null;
  /** Which versions of it will do. */
  version?: string | null;
}

/** Offers work and waits until the receiver has accepted it, or until there is a result. */
export interface Send {
  /** What the receiver should do with it; a first offer is a `request`. */
  action?: Action;
  /** Adds to what binds, as a list or a map. */
  add_constraints?: unknown;
  /** Tasks that must have a result before this can be claimed. */
  after?: After | null;
  /** What was considered and not taken, and why not. */
  alternatives?: string[];
  /**
   * Who may approve it: nobody else then, and each of them is told that it waits. Neither the
   * sender nor the receiver.
   */
  approvers?: AgentId[];
  /** What this receiver must do. */
  ask?: string | null;
  /** What was taken for granted and not checked. */
  assumptions?: string[];
  /**
   * What the task, with everything below it, may spend from here on. Every result and failure
   * that reports its usage makes it less; a task with nothing left takes no more hops.
   */
  budget?: Budget | null;
  /** How many tokens the work may use. */
  budget_tokens?: number | null;
  /**
   * What is to be done, where `to` names an agent: its manifest says what goes in and comes
   * out.
   */
  capability?: Capability | null;
  /**
   * What binds everybody from here on. Without it, what bound before still does. A list says
   * all of it: one that leaves out or rewords what bound before is refused. A plain map, such
   * as `{"language": "python", "max_tokens": 4000}`, adds to it.
   */
  constraints?: unknown;
  /** Memories that are passed along, in full or in short; `/v1/assemble` makes them. */
  context?: ContextItem[];
  /** The address of the list of what was passed, as `/v1/assemble` gives it. */
  context_manifest?: Hash | null;
  /** `passed` transfers the task; `awaited` calls: the work is a task below the sender's own. */
  control?: Control;
  /** Who decides about a new task when things go wrong, and is told of every failure. */
  coordinator?: Coordinator | null;
  /** A name by which the sender finds everything that belongs together. */
  correlation_id?: CorrelationId | null;
  /** When the work must be finished; past it the handoff is dead-lettered. */
  deadline?: Timestamp | null;
  /** Decisions that are new. */
  decisions?: SaidDecision[];
  /** Cases that were seen and left for later. */
  deferred?: string[];
  /**
   * The version that the sender speaks. Members that are not known here are kept if it is a
   * newer minor, and are a mistake otherwise.
   */
  envelope_version?: string | null;
  /** What is wanted back; a result that does not fit is refused. */
  expected_output?: ExpectedOutput | null;
  /** The same as a span from now. The earlier of the two counts; 24 hours by default. */
  expires_in_ms?: number | null;
  /**
   * Who is asked next, in this order, if the receiver cannot or will not do it: by name, or
   * anybody with a capability.
   */
  fallbacks?: Target[];
  /** Who sends it. A task is handed on by its owner. */
  from_agent: AgentId;
  /** References that could not be resolved. */
  gaps?: (string | NewGap)[];
  /** What was done and is not in the history yet. */
  history?: NewStep[];
  /** The same key with the same body gives the first reply again; with another body, a conflict. */
  idempotency_key?: IdempotencyKey | null;
  /** The user's own words. Needed for a new task; from then on the broker carries them. */
  intent?: string | null;
  /** Ends constraints. Only who issued one, or the task's coordinator, can do that. */
  lift_constraints?: Lift[];
  /** Which majors of the envelope the sender can give. */
  majors?: number[];
  /** Memories that the receiver can fetch. */
  memory_refs?: MemoryRef[];
  /** For monitoring only. */
  metadata?: Object;
  /** Hold it back until somebody other than the sender approves. */
  needs_approval?: boolean;
  /**
   * Of a call: what becomes of it when the caller's own work ends without a result. `cancel` by
   * default; with `let_go` it goes on.
   */
  on_parent_end?: OnParentEnd | null;
  /** Questions that are new and that somebody must decide. */
  open_decisions?: (string | Question)[];
  /** Handoffs with the same key are worked on one after the other. */
  ordering_key?: OrderingKey | null;
  /** A JSON Schema that the result must fit: `expected_output.schema` in short. */
  output_schema?: unknown;
  /** What to work on: an object with a `type`. */
  payload: Payload;
  /** 0 to 9; higher is claimed first. 5 by default. */
  priority?: number | null;
  /** What a new task belongs to. Tasks below it belong there too. */
  project?: Project | null;
  /** Lets the claim count only once the receiver has repeated what binds it. */
  read_back?: boolean;
  /** What was chosen, as `/v1/assemble` gives it. */
  reading?: Reading | null;
  /** References of gaps that are resolved now. */
  resolved_gaps?: string[];
  /** How one of the agents with the capability is chosen. Without it, all of them may claim. */
  route?: Route | null;
  /** The sender's signature over what it says, which travels in the envelope. */
  signed?: Signed | null;
  /** Do not let it be claimed before this much time has passed. */
  start_in_ms?: number | null;
  /** How far the task is: what is done, what remains. */
  state?: TaskProgress | null;
  /** What the task is about now, in a few sentences. */
  summary?: string | null;
  /**
   * The task to hand on (`control: passed`) or to do the work for (`control: awaited`). Without
   * it a new task is opened.
   */
  task_id?: TaskId | null;
  /** How often, how long and within what time it is tried. */
  terms?: TermsPatch | null;
  /**
   * How long to wait, 15 seconds by default. Work that nobody has claimed by then goes to the
   * next of `fallbacks`, or to the dead letters, unless the terms give another `ack_ms`.
   */
  timeout_ms?: number;
  /** An agent by name, or any agent with a capability. */
  to: Target;
  /** What was tried and did not work, so that nobody tries it again. */
  tried?: string[];
  /** What to wait for: `claimed` or `settled`. */
  until?: Until;
}

/** Sends a word to whoever holds the work. */
export interface SendMessage {
  by: AgentId;
  /** More of it, for programs. */
  details?: Object;
  text: string;
}

/** What has become of it. */
export interface Sent {
  /** How much time is left for somebody to claim it. */
  ack_left_ms?: number | null;
  /** Pieces of work that are there before the result is. */
  artifacts?: ArtifactName[];
  attempts: Attempt[];
  /** What was agreed besides the terms. */
  contract?: Contract;
  control: Control;
  /** The name by which the sender finds everything that belongs together. */
  correlation_id?: CorrelationId | null;
  /** On which other terms agents would take it. */
  counters?: CounterOffer[];
  dead_letter?: DeadLetterReason | null;
  declined_by?: AgentId[];
  delivered_at?: Timestamp | null;
  /** When a scheduled handoff becomes claimable. */
  due_at?: Timestamp | null;
  ended_at?: Timestamp | null;
  envelope: Hash;
  expires_at: Timestamp;
  /** Attempts that ended in a declared failure. */
  failures: number;
  from_agent: AgentId;
  handoff_id: HandoffId;
  holder?: Holder | null;
  hop: number;
  /** For whom an answer is kept. */
  kept_for?: KeptFor | null;
  /** Constraints that were lifted since the envelope was made; they do not bind the next one. */
  lifted?: LiftedConstraint[];
  /** Whether somebody is there who takes work for it. If not, it is stored and waits. */
  listening: boolean;
  /** Leases that were lost. */
  losses: number;
  offered_at: Timestamp;
  ordering_key?: OrderingKey | null;
  /** The result, if there is one. */
  output?: ResultReport | null;
  priority: number;
  /** What its holder asks and waits for. */
  question?: Asks | null;
  /** Whether it came as far as was waited for, by somebody who accepted it or with a result. */
  reached: boolean;
  redrive_of?: HandoffId | null;
  /** The address of the result. */
  result?: Hash | null;
  /** Whether its result was taken back. */
  retracted?: boolean;
  /** Who decides on this dead letter just now. */
  reviewer?: AgentId | null;
  state: string;
  /**
   * What the sender may rely on: `stored`, `delivered`, `claimed`, `in_progress`, `done`,
   * `failed`, `cancelled`, `rejected` or `dead_lettered`. Only what has a result is `done`.
   */
  status: string;
  task_id: TaskId;
  terms: Terms;
  to: Target;
  /** Targets that could not or would not do it, the first one first. */
  tried?: Target[];
  /**
   * Memories that the receiver fetched because the envelope had passed less of them: what was
   * trimmed and missed.
   */
  trim_regret?: DocumentId[];
}

/** Who asks, and what it may ask for. */
export interface Session {
  /** Who asks; absent where the broker does not ask who anybody is. */
  agent_id?: AgentId | null;
  /** Whether the broker asks who its callers are. */
  authentication: boolean;
  now: Timestamp;
  /** The operations that may be asked for at all. Towards which target is another matter. */
  operations: string[];
  tenant: TenantId;
  version: string;
}

/** When the breaker of an agent opens. */
export interface SetBreaker {
  /** Without them, the broker's own hold again. */
  limits?: Limits | null;
}

export interface SetRules {
  /** All rules from now on. */
  rules: Rule[];
}

/** Accepts or refuses a counter-offer. */
export interface Settle {
  /** Whether the terms that were asked for are taken. */
  accept: boolean;
  /** Whose counter-offer it is. */
  agent: AgentId;
  /** The sender of the handoff. */
  by: AgentId;
}

/** A decision by its number in the log. The words are in the body. */
export interface Settled {
  decision: number;
  key: DecisionKey;
  supersedes?: number | null;
}

/** What all agents of a project read. */
export interface SharedContext {
  changed_at?: Timestamp | null;
  changed_by?: Actor | null;
  constraints: ProjectConstraint[];
  decisions: ProjectDecision[];
  /** Whether the text of this revision was erased. */
  erased?: boolean;
  /** The last revision that there is. */
  latest?: number;
  project: Project;
  /** 0 if nobody has written it yet. */
  revision: number;
  state: ProjectState;
  /**
   * Open tasks that the reader may see, newest first. This is a view: tasks change hands by
   * handoffs only.
   */
  task_queue: QueuedTask[];
  warnings?: Warning[];
}

/** An Ed25519 signature, in base64url without padding. */
export type Signature = string;

/** Whose signature something bears. */
export interface Signed {
  key_id: KeyId;
  signature: Signature;
}

export interface Silence {
  /** Who silenced it: `agent:` and a name, or `broker` where nobody is asked who it is. */
  by: string;
  reason: string;
  rule?: string | null;
  since: Timestamp;
  target?: string | null;
  until: Timestamp;
}

/** Keeps people from being told of alerts for a while. */
export interface SilenceAlert {
  /** For how long from now, in milliseconds; 0 ends a silence. */
  for_ms: number;
  /** Why; it stands in the log. */
  reason: string;
  /** Of this rule; without one, of all. */
  rule?: string | null;
  /** About this target, as alerts name it; without one, about all. */
  target?: string | null;
}

/** Nobody is told of some alerts until then; the body is the reason. */
export interface Silenced {
  reason: Hash;
  /** Without one, all rules. */
  rule?: string | null;
  /** Without one, all targets. */
  target?: string | null;
  until: Timestamp;
}

/** What was spent so far. */
export interface Spent {
  cost: Cost;
  tokens: number;
}

/** What an attempt used. */
export interface SpentBy {
  /** The handoff that was worked on. */
  by: HandoffId;
  cost: Cost;
  tokens: number;
}

/** Where in a pipeline a handoff is. */
export interface StageRef {
  /** Whether it is one of several at once, so that nothing follows from it alone. */
  branch?: boolean;
  pipeline: string;
  stage: string;
  version: number;
}

/** Whether an agent gets work. */
export type Standing = "active" | "deregistered" | (string & {}) | "draining" | (string & {});

/** Says that work has begun. */
export interface Start {
  claim_id: ClaimId;
  fence: Fence;
  /** What binds the receiver, repeated, where the handoff asks for it. */
  read_back?: ReadBack | null;
  /** The holder's signature over its acceptance. */
  signed?: Signed | null;
}

/** Begins a task along a declared route. */
export interface StartPipeline {
  /** Adds to what binds, as a list or a map. */
  add_constraints?: unknown;
  /** What was considered and not taken, and why not. */
  alternatives?: string[];
  /** What this receiver must do. */
  ask?: string | null;
  /** What was taken for granted and not checked. */
  assumptions?: string[];
  /**
   * What binds everybody from here on. Without it, what bound before still does. A list says
   * all of it: one that leaves out or rewords what bound before is refused. A plain map, such
   * as `{"language": "python", "max_tokens": 4000}`, adds to it.
   */
  constraints?: unknown;
  /** Memories that are passed along, in full or in short; `/v1/assemble` makes them. */
  context?: ContextItem[];
  /** The address of the list of what was passed, as `/v1/assemble` gives it. */
  context_manifest?: Hash | null;
  /** Who decides if it fails; without it, who opened the task. */
  coordinator?: Coordinator | null;
  /** A name by which the sender finds everything that belongs together. */
  correlation_id?: CorrelationId | null;
  /** When it must be claimed and done at the latest. */
  deadline?: Timestamp | null;
  /** Decisions that are new. */
  decisions?: SaidDecision[];
  /** Cases that were seen and left for later. */
  deferred?: string[];
  /** What is wanted back; a result that does not fit is refused. */
  expected_output?: ExpectedOutput | null;
  /** Who sends it. A task is handed on by its owner. */
  from_agent: AgentId;
  /** References that could not be resolved. */
  gaps?: (string | NewGap)[];
  /** What was done and is not in the history yet. */
  history?: NewStep[];
  /** Makes it safe to repeat: the same request with the same key is carried out once. */
  idempotency_key?: IdempotencyKey | null;
  /** The user's own words. */
  intent: string;
  /** Ends constraints. Only who issued one, or the task's coordinator, can do that. */
  lift_constraints?: Lift[];
  /** Memories that the receiver can fetch. */
  memory_refs?: MemoryRef[];
  /** Questions that are new and that somebody must decide. */
  open_decisions?: (string | Question)[];
  /** What to work on: an object with a `type`. */
  payload: Payload;
  /** What the task belongs to. */
  project?: Project | null;
  /** Lets the claim count only once the receiver has repeated what binds it. */
  read_back?: boolean;
  /** What was chosen, as `/v1/assemble` gives it. */
  reading?: Reading | null;
  /** References of gaps that are resolved now. */
  resolved_gaps?: string[];
  /** How far the task is: what is done, what remains. */
  state?: TaskProgress | null;
  /** What the task is about now, in a few sentences. */
  summary?: string | null;
  /** What was tried and did not work, so that nobody tries it again. */
  tried?: string[];
}

/** How many there are in a state, and how old the oldest of them is. */
export interface StateCount {
  count: number;
  /** How long ago that is. */
  oldest_age_ms?: number | null;
  /** When the oldest of them was offered or opened. */
  oldest_at?: Timestamp | null;
  state: string;
}

/**
 * How much there is: of the whole store for whoever looks after all of it, and otherwise of
 * the caller's tenant.
 */
export interface Stats {
  commands?: number;
  commits?: number;
  disk_full: boolean;
  events?: number;
  /**
   * How many handoffs are in each state that is not the end, and dead letters that nobody has
   * decided on.
   */
  handoffs?: StateCount[];
  /** Where the log ends. */
  head?: Cursor;
  idempotency_keys?: number;
  /** About how much memory the live handoffs take. */
  live_bytes?: number;
  live_handoffs: number;
  /** Events for each commit since the start: above 1 where commits are shared. */
  mean_batch?: number;
  now: Timestamp;
  projection_lag?: number;
  /** How much memory the process takes, where the system can say. */
  resident_bytes?: number | null;
  /** Bytes of bodies that the tenant has stored. */
  stored_bytes?: number | null;
  /** How many tasks are not at their end. */
  tasks?: StateCount[];
  /** Whose figures these are; absent if they are those of the whole store. */
  tenant?: TenantId | null;
  version: string;
  waiting_handoffs?: number;
}

export interface Step {
  action: string;
  agent: AgentId;
  at: Timestamp;
  decision?: string | null;
  memory_id?: string | null;
  why?: string | null;
}

/** How items are chosen. */
export type Strategy = "full" | "lazy" | "summary_refs" | "priority" | (string & {});

/** Begins or ends hearing what is told on a channel. */
export interface Subscribe {
  /** Who asks. */
  agent: AgentId;
}

export interface Subscriber {
  agent: AgentId;
  /** What was told after this reached it. */
  since: Cursor;
}

/** Says that another memory has taken the place of this one. */
export interface Supersede {
  by: AgentId;
  /** The memory that takes its place. */
  successor: DocumentId;
}

/** Something that the task is built on and that no longer holds. */
export interface Taint {
  policy: TaintPolicy;
  /** The handoff that failed, or whose result was taken back. */
  source: HandoffId;
  /** The task that is tainted by it: this one, or one above it. */
  task_id: TaskId;
}

/** What becomes of work that is built on something that no longer holds. */
export type TaintPolicy = "flag" | "block" | (string & {});

export interface TaintedBy {
  policy: TaintPolicy;
  /** The handoff that failed, or whose result was taken back. */
  source: HandoffId;
}

/** Keeps others from deciding on a dead letter for a while. */
export interface TakeReview {
  by: AgentId;
  /** For how long, at most a day; 0 gives it back. */
  for_ms: number;
}

/** Who is to do the work. */
export type Target = {
  agent: AgentId;
} | {
  capability: Capability;
};

export interface TargetHealth {
  /** `closed`, `open` or `half_open`. */
  breaker: string;
  /** How complete what was passed was on average, in thousandths, where senders said so. */
  completeness_per_mille?: number | null;
  /** Handoffs in a row that used up their tries. */
  exhausted_in_row: number;
  /** Attempts in a row that failed or were lost. */
  failures_in_row: number;
  /** How many offers came after 0, 1, 2 … hops; the last number is for all beyond. */
  hops: number[];
  /** By which numbers its failures count. */
  limits: Limits;
  live: boolean;
  offers: number;
  /** Somebody paused it: nothing is claimed of it. */
  paused?: PausedUntil | null;
  /**
   * When something is sent there again; half open, when the one that was let through is over at
   * the latest.
   */
  reset_in_ms?: number | null;
  target: Target;
  /** How much of the budgets was used, in thousandths, where senders said so. */
  utilisation_per_mille?: number | null;
}

export interface TargetOverview {
  /** `closed`, `open` or `half_open`. */
  breaker: string;
  dead_letters: number;
  failures_in_row: number;
  inflight: number;
  /** Whether somebody listens for it. Where something waits and nobody does, nobody takes it. */
  live: boolean;
  oldest_ms: number;
  /** How many wait to be claimed, and for how long the oldest of them. */
  queue: number;
  target: Target;
}

/** How targets fare. */
export interface TargetsHealth {
  targets: TargetHealth[];
}

export interface Task {
  /** What it and everything below it may still spend, where that is bounded. */
  budget?: Budget | null;
  /** The channel on which it was told to many. */
  channel?: ChannelId | null;
  /** Who decides about it when things go wrong, if that is not its opener. */
  coordinator?: AgentId | null;
  correlation_id?: CorrelationId | null;
  /** When all of it must be finished, by what it hangs from. */
  deadline?: Timestamp | null;
  ended_at?: Timestamp | null;
  /** How many events there are, and the hash of the last. */
  events: number;
  head: Hash;
  /** The address of the intent: the same at every hop. */
  intent: Hash;
  /** The handoff that is not at its end yet. */
  live_handoff?: HandoffId | null;
  /** The dead letter above it that somebody has to decide on before it goes on. */
  on_hold?: HandoffId | null;
  /** What becomes of it when the task above it ends without a result. */
  on_parent_end?: OnParentEnd | null;
  opened_at: Timestamp;
  opened_by: AgentId;
  owner: AgentId;
  parent_task_id?: TaskId | null;
  /** What it belongs to. */
  project?: Project | null;
  /** What it and everything below it has spent, as far as anybody said. */
  spent?: Spent | null;
  state: string;
  /** What it is built on and no longer holds. */
  taints?: TaintedBy[];
  task_id: TaskId;
}

export interface TaskChain {
  events: ChainEvent[];
  task_id: TaskId;
}

/** What one hop did to what it was given. */
export interface TaskHop {
  /** Texts of constraints that are not what their id says. */
  altered_constraints: string[];
  bytes: number;
  constraints: number;
  /** Of the facts in the envelope before: how many there were, and how many are still here. */
  facts: number;
  facts_kept: number;
  from_agent: string;
  gaps: number;
  hop: number;
  /** Whether it names the envelope before it, and has the same intent. */
  linked: boolean;
  /** Texts of constraints that bound before, bind no longer, and were not lifted. */
  lost_constraints: string[];
  same_intent: boolean;
  task_id: TaskId;
}

/** A task's id. Sorts by the time it was made. */
export type TaskId = string;

/** How far the task has come. */
export interface TaskProgress {
  done?: string[];
  progress?: string | null;
  remaining?: string[];
}

/** What came of a task, as its owner says who ended it. */
export interface TaskResult {
  metadata?: Object;
  payload: Payload;
  task_id: TaskId;
}

/** A task with its handoffs and the tasks below it. */
export interface TaskWithParts {
  /** What it and everything below it may still spend, where that is bounded. */
  budget?: Budget | null;
  /** The channel on which it was told to many. */
  channel?: ChannelId | null;
  children: Task[];
  /** Who decides about it when things go wrong, if that is not its opener. */
  coordinator?: AgentId | null;
  correlation_id?: CorrelationId | null;
  /** When all of it must be finished, by what it hangs from. */
  deadline?: Timestamp | null;
  ended_at?: Timestamp | null;
  /** How many events there are, and the hash of the last. */
  events: number;
  /** Newest first. */
  handoffs: Handoff[];
  head: Hash;
  /** The address of the intent: the same at every hop. */
  intent: Hash;
  /** The handoff that is not at its end yet. */
  live_handoff?: HandoffId | null;
  /** The dead letter above it that somebody has to decide on before it goes on. */
  on_hold?: HandoffId | null;
  /** What becomes of it when the task above it ends without a result. */
  on_parent_end?: OnParentEnd | null;
  opened_at: Timestamp;
  opened_by: AgentId;
  /** The result that its owner ended it with. */
  output?: TaskResult | null;
  owner: AgentId;
  parent_task_id?: TaskId | null;
  /** What it belongs to. */
  project?: Project | null;
  /** What it and everything below it has spent, as far as anybody said. */
  spent?: Spent | null;
  state: string;
  /** What it is built on and no longer holds. */
  taints?: TaintedBy[];
  task_id: TaskId;
}

export interface Tasks {
  next?: TaskId | null;
  tasks: Task[];
}

export interface Tenant {
  id: TenantId;
  quotas: Quotas;
}

/** A party whose agents, work and memories no other tenant sees. */
export type TenantId = string;

/** A tenant and what it may use. */
export interface TenantInfo {
  quotas: Quotas;
  tenant_id: TenantId;
}

export interface Tenants {
  tenants: TenantInfo[];
}

export interface Terms {
  /** How long it may wait to be claimed before it goes to the next one, or to the dead letters. */
  ack_ms?: number | null;
  /** How many attempts may end in a declared failure before the handoff is dead-lettered. */
  attempts?: number;
  /** The longest pause before a retry; 0 retries at once. */
  backoff_ms?: number;
  /** How long a claim holds without a heartbeat. */
  lease_ms?: number;
  /** How many leases in a row may be lost without progress before it is quarantined as poison. */
  losses?: number;
  /** How long one attempt may take in all, however many heartbeats it sends. */
  work_ms?: number;
}

/** Terms that differ from the broker's defaults. */
export interface TermsPatch {
  /** How long it may wait to be claimed before it goes to the next one, or to the dead letters. */
  ack_ms?: number | null;
  /** How many attempts may fail before it is dead-lettered. */
  attempts?: number | null;
  /** The longest pause before a retry. */
  backoff_ms?: number | null;
  /** How long a claim holds without a heartbeat. */
  lease_ms?: number | null;
  /** How many leases in a row may be lost without progress before it is quarantined. */
  losses?: number | null;
  /** How long one attempt may take in all. */
  work_ms?: number | null;
}

export type Timestamp = string;

/**
 * What somebody may show instead of a signature, or to enroll a key with. The secret itself
 * is known only to whom it was given.
 */
export interface Token {
  /** For whom it speaks, or who may enroll with it. */
  agent: AgentId;
  /** Spent or revoked. */
  ended_at?: Timestamp | null;
  expires_at?: Timestamp | null;
  id: TokenId;
  issued_at: Timestamp;
  /** Who made it; absent if the broker did. */
  made_by?: AgentId | null;
  /** What its maker showed. What was made with something ends with it. */
  made_from?: Origin | null;
  purpose: Purpose;
  /** What it allows at most; for a join token, what the agent will be allowed. */
  rules: Rule[];
  /** The hash of the secret. */
  secret: Hash;
}

/** A token's id, which is no secret. */
export type TokenId = string;

/** A token without its secret. */
export interface TokenInfo {
  agent_id: AgentId;
  /** When it was spent or revoked, by itself or with the token that it was made from. */
  ended_at?: Timestamp | null;
  expires_at?: Timestamp | null;
  issued_at: Timestamp;
  /** Who made it; absent if the broker did. */
  made_by?: AgentId | null;
  /** The key or the token that it was made with. What was made with a token ends with it. */
  made_from?: Origin | null;
  purpose: Purpose;
  rules: Rule[];
  token_id: TokenId;
}

/**
 * The receiver's tokenizer: o200k_base or cl100k_base, which are counted exactly; a family of
 * models (llama, qwen, deepseek, mistral, cohere, gemma, claude, gemini), which is estimated
 * on the safe side; o200k_base with a factor that you have measured, such as o200k_base*1.18;
 * or unknown.
 */
export type Tokenizer = string;

export interface Tokens {
  tokens: TokenInfo[];
}

export interface Told {
  handoff_id: HandoffId;
  listening: boolean;
  task_id: TaskId;
  to: Target;
}

export interface Tombstone {
  at: Timestamp;
  by: Actor;
  reason?: string | null;
}

/** Why something was not passed whole. */
export type TrimReason = {
  why: "budget";
} | {
  of: string;
  why: "duplicate";
} | {
  why: "role";
};

/** Who stands behind a part, from the least to the most trusted. */
export type Trust = "environment" | "tool" | "agent" | "operator" | (string & {});

/** A reference that could not be followed. */
export interface Unresolved {
  id: string;
  reason: string;
}

export type Until = "claimed" | "input_required" | "settled" | (string & {});

export interface Verdict {
  bodies: number;
  checkpoints: number;
  /** Bodies that were erased on purpose: the log says by whom and why. */
  erased?: number;
  events: number;
  first_bad?: Finding | null;
  /** Whether every entry is as it should be. */
  intact: boolean;
  /** The keys that signed, in hex. */
  keys: string[];
  tasks: number;
  /** How many of the last events no checkpoint covers yet. */
  unsealed: number;
  /**
   * Entries up to this number were found intact by an earlier check and not looked at again;
   * absent if this check looked at all of them.
   */
  verified_before?: Position | null;
}

/** Waits for handoffs and tasks. */
export interface Wait {
  /** Handoffs to wait for. */
  handoffs?: HandoffId[];
  /** Whether one or all of them must have got there. */
  mode?: Mode;
  /** Tasks to wait for. */
  tasks?: TaskId[];
  /** How long to wait, at most 60 seconds; the answer then says what is still open. */
  timeout_ms?: number;
  /** How far they must have got. */
  until?: Until;
}

export interface Waited {
  /** Whether what was waited for came about; if not, the time was up. */
  done: boolean;
  handoffs: HandoffWithResult[];
  /** Those that have not come far enough. */
  open_handoffs: HandoffId[];
  open_tasks: TaskId[];
  tasks: Task[];
}

export interface Waiting {
  correlation_id?: CorrelationId | null;
  envelope: AnyEnvelope;
  handoff_id: HandoffId;
  priority: number;
  task_id: TaskId;
}

export interface Waits {
  correlation_id?: CorrelationId | null;
  from_agent: AgentId;
  handoff_id: HandoffId;
  state: string;
  task_id: TaskId;
  to: Target;
  waits_for: WaitsFor[];
}

/** What work waits for, and why. */
export type WaitsFor = {
  approvers?: AgentId[];
  kind: "approval";
  /** What its task is built on and no longer holds, if that is why. */
  taints?: HandoffId[];
} | {
  kind: "task";
  /** How many of the tasks that it waits for must have one. */
  need: number;
  /** Where it is. */
  state: string;
  task_id: TaskId;
} | {
  kind: "time";
  until: Timestamp;
} | {
  /** `open` or `half_open`. */
  breaker: string;
  kind: "breaker";
  target: Target;
  until?: Timestamp | null;
} | {
  kind: "paused";
  target: Target;
  until?: Timestamp | null;
} | {
  handoff_id: HandoffId;
  kind: "letter";
} | {
  kind: "claim";
  /** Whether anybody is there who takes work for it. */
  listening: boolean;
  target: Target;
} | {
  agent: AgentId;
  kind: "holder";
} | {
  kind: "decision";
  reason: string;
};

/** Something that looks like a secret and was stored all the same. */
export interface Warning {
  /** What it looks like, such as `assignment`. */
  kind: string;
  path: string;
}

export type WarningCode = "raw_log" | "finished_reasoning" | "copy_of_source" | (string & {}) | "large_base" | "against_project" | "same_intent" | "pin_over_cap" | "inexact_count" | (string & {});

export interface WebhookTested {
  problem?: string | null;
  sent: boolean;
  url: string;
}

/** How a choice came about, for the audit log. */
export interface Why {
  /** How many were passed over because they are full. */
  avoided_full?: number;
  /** How many were passed over because they break their word. */
  avoided_sla?: number;
  /** How many agents have the capability. */
  candidates: number;
  /** How many of them are live and not draining. */
  live: number;
  policy: Policy;
  reason: Reason;
}

/** What an attempt used, as its agent says. */
export interface WorkUsage {
  cost?: Cost | null;
  input_tokens?: number;
  /** Which model used them. */
  model?: string | null;
  output_tokens?: number;
}

/** Changes what a project's shared context says of its state or its constraints. */
export interface WriteContext {
  by: AgentId;
  /** What holds for all work of the project; as before if nothing is said. */
  constraints?: ProjectConstraint[] | null;
  /**
   * The revision that the writer has seen, 0 for none: if there is another by now, nothing is
   * written.
   */
  revision?: number | null;
  /** Where the project stands; as before if nothing is said. */
  state?: ProjectState | null;
}

/** The facts of a new revision. */
export interface Written {
  content: Hash;
  document: Kind;
  id: DocumentId;
  key?: Key | null;
  pinned?: boolean;
  priority?: Priority;
  revision: number;
  scope: Scope;
  /** The decision that this revision of a shared context adds to its log. */
  settles?: Settled | null;
}

