# SPDX-License-Identifier: Apache-2.0
# Made by tools/generate.py from api/openapi.json. Do not edit.

"""What the broker takes and gives. A member that a newer broker adds is kept: see
`model_extra`. So is a word that is new where there is a list of known ones."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field


class Model(BaseModel):
    """The base of all of them."""

    model_config = ConfigDict(extra="allow", populate_by_name=True, defer_build=True)


Action: TypeAlias = Literal[
    "request", "completed", "failed", "needs_review", "changes_requested", "escalated"
]
Below: TypeAlias = Literal["refuse", "let_go"]
CameTo: TypeAlias = Literal[
    "failed", "cancelled", "dead_lettered", "completed", "retracted", "open"
]
Closed: TypeAlias = Literal["task_cancelled", "task_completed", "task_offered_anew"]
ConstraintKind: TypeAlias = Literal[
    "must", "must_not", "budget", "format", "security", "preference"
]
Control: TypeAlias = Literal["passed", "awaited"]
DeadReason: TypeAlias = Literal[
    "attempts_exhausted",
    "permanent_failure",
    "poison",
    "declined",
    "expired",
    "rejected",
    "unacknowledged",
    "hop_limit",
    "cycle",
    "budget_exhausted",
    "deadlock",
]
Detail: TypeAlias = Literal["full", "stub", "summary"]
Effect: TypeAlias = Literal["allow", "deny"]
FailureClass: TypeAlias = Literal["retryable", "permanent", "unknown"]
Form: TypeAlias = Literal["stub", "summary", "full"]
Format: TypeAlias = Literal["text", "markdown", "json"]
Freshness: TypeAlias = Literal["pinned", "latest", "both"]
Kind: TypeAlias = Literal["memory", "context", "chain"]
LossCause: TypeAlias = Literal["silence", "hard_deadline", "restored", "revoked"]
Mode: TypeAlias = Literal["all", "any"]
OnParentEnd: TypeAlias = Literal["cancel", "let_go"]
Permission: TypeAlias = Literal[
    "write_memory",
    "write_shared_context",
    "send",
    "claim",
    "complete",
    "read",
    "redrive",
    "approve",
    "operate",
    "administer",
]
Policy: TypeAlias = Literal["any", "least_loaded", "most_reliable", "round_robin", "sticky"]
PopulationKind: TypeAlias = Literal[
    "illegibility_drift",
    "routing_concentration",
    "acceptance_bias",
    "ping_pong",
    "graph_drift",
    "numeric_parallelism",
]
Priority: TypeAlias = Literal["high", "normal", "low"]
PromptStyle: TypeAlias = Literal["markdown", "xml", "messages"]
Purpose: TypeAlias = Literal["bearer", "join"]
QuestionKind: TypeAlias = Literal["input", "authorization"]
Reason: TypeAlias = Literal["only_choice", "best", "turn", "key", "no_key", "last_resort"]
Role: TypeAlias = Literal["viewer", "worker", "reviewer", "operator", "admin"]
Rung: TypeAlias = Literal["full", "listed", "stub", "summary"]
Standing: TypeAlias = Literal["active", "deregistered", "draining"]
Strategy: TypeAlias = Literal["full", "lazy", "summary_refs", "priority"]
TaintPolicy: TypeAlias = Literal["flag", "block"]
Trust: TypeAlias = Literal["environment", "tool", "agent", "operator"]
Until: TypeAlias = Literal["claimed", "input_required", "settled"]
WarningCode: TypeAlias = Literal[
    "raw_log",
    "finished_reasoning",
    "copy_of_source",
    "large_base",
    "against_project",
    "same_intent",
    "pin_over_cap",
    "inexact_count",
]

Actor: TypeAlias = str
AgentId: TypeAlias = str
AnyEnvelope: TypeAlias = "Envelope | Flat"
AnyFollowUp: TypeAlias = "FollowUp | Flat"
AnyOffer: TypeAlias = "Offer | Flat"
ArtifactName: TypeAlias = str
Capability: TypeAlias = str
ChannelId: TypeAlias = str
ClaimId: TypeAlias = str
CorrelationId: TypeAlias = str
Cost: TypeAlias = float
Cursor: TypeAlias = str
DecisionKey: TypeAlias = str
DocumentId: TypeAlias = str
Fence: TypeAlias = int
HandoffId: TypeAlias = str
Hash: TypeAlias = str
IdempotencyKey: TypeAlias = str
KeyId: TypeAlias = str
Need: TypeAlias = str | dict[str, Any]
Nothing: TypeAlias = dict[str, Any]
Object: TypeAlias = dict[str, Any]
OrderingKey: TypeAlias = str
Payload: TypeAlias = dict[str, Any]
Position: TypeAlias = int
Project: TypeAlias = str
PublicKey: TypeAlias = str
RequestId: TypeAlias = str
Resource: TypeAlias = str
Ruling: TypeAlias = str | dict[str, Any]
Signature: TypeAlias = str
TaskId: TypeAlias = str
TenantId: TypeAlias = str
Timestamp: TypeAlias = datetime
TokenId: TypeAlias = str
Tokenizer: TypeAlias = str


class Warning(Model):
    """Something that looks like a secret and was stored all the same."""

    kind: str
    """What it looks like, such as `assignment`."""
    path: str


class Acknowledged(Model):
    """An agent stands by what it did, in a way that anybody can check who has its public key."""

    act: str
    """`accepted`, `completed` or `failed`."""
    body: Hash | None = None
    """The address of the result or the failure."""
    claim_id: ClaimId
    fence: Fence
    signed: Signed


class After(Model):
    """Other tasks that come first."""

    need: int
    """How many of them must have a result."""
    tasks: list[TaskId]


class Agent(Model):
    """An agent as others may see it."""

    agent_id: AgentId
    holding: int
    """How many handoffs it holds, as far as this broker saw."""
    keys: list[EnrolledKey]
    last_seen: Timestamp | None = None
    live: bool
    """Whether it was heard of within the last minute."""
    manifest: Any = None
    manifest_hash: Hash | None = None
    """The address of the manifest, which its signature covers."""
    observed: list[Observed] = Field(default_factory=list)
    rules: list[Rule] | None = Field(default_factory=list)
    """What it may do; shown to itself and to administrators."""
    signed: Signed | None = None
    since: Timestamp
    standing: Standing | str
    version: int
    """Which one of its manifests this is, from 1; 0 if it has none."""


class Agents(Model):
    agents: list[Agent]


class Alert(Model):
    action: str
    """What to do."""
    ended_at: Timestamp | None = None
    rule: str
    severity: str
    """`info`, `warning` or `critical`."""
    silenced: bool
    """Whether a silence keeps people from being told."""
    since: Timestamp
    """Since when it holds, or held."""
    state: str
    """`pending` until it has held for as long as its rule says, then `firing`, then
    `resolved`."""
    summary: str
    target: str | None = None
    """`agent:` or `capability:` and the name; absent where the rule is about everything
    together."""
    told: AlertTold | None = None
    """What people were told last."""
    value: str
    """What was found last."""


class AlertMoved(Model):
    """An alert that began or ended."""

    fires: bool
    moved_at: Timestamp
    """When it began or ended, by the times of the log."""
    rule: str
    since: Timestamp
    """Since when it fires, or fired."""
    target: str | None = None
    """As metrics call it: `agent:` or `capability:` and the name."""
    value: str
    """What was found."""


class AlertRule(Model):
    action: str
    """What to do."""
    built_in: bool
    """Whether the broker finds out by itself; the others only Prometheus can."""
    by_target: bool
    """Whether each target is looked at by itself."""
    expression: str
    """The same as an expression of Prometheus."""
    for_ms: int
    """For how long it has to hold."""
    name: str
    severity: str
    """`info`, `warning` or `critical`."""
    summary: str


class AlertRules(Model):
    """The rules, as they are evaluated and as Prometheus would."""

    rules: list[AlertRule]


class AlertTested(Model):
    """What became of a notice that was sent to try it out."""

    webhooks: list[WebhookTested]


class AlertTold(Model):
    problem: str | None = None
    sent: bool
    """Whether every webhook took it."""
    state: str
    """`firing` or `resolved`."""
    tries: int


class Alerts(Model):
    """What holds now, and what people were told."""

    alerts: list[Alert]
    """Those that are on or pending first, then those that ended last."""
    silences: list[Silence]


class Amend(Model):
    """Sends a dead letter on its way again with a new envelope, linked to the old one."""

    add_constraints: Any = None
    """Adds to what binds, as a list or a map."""
    alternatives: list[str] = Field(default_factory=list)
    """What was considered and not taken, and why not."""
    ask: str | None = None
    """What this receiver must do."""
    assumptions: list[str] = Field(default_factory=list)
    """What was taken for granted and not checked."""
    budget: Budget | None = None
    """What the task may spend from here on, instead of what it might before. What binds the
    tasks above it still does."""
    by: AgentId
    constraints: Any = None
    """What binds everybody from here on. Without it, what bound before still does. A list says
    all of it: one that leaves out or rewords what bound before is refused. A plain map,
    such as `{"language": "python", "max_tokens": 4000}`, adds to it."""
    context: list[ContextItem] = Field(default_factory=list)
    """Memories that are passed along, in full or in short; `/v1/assemble` makes them."""
    context_manifest: Hash | None = None
    """The address of the list of what was passed, as `/v1/assemble` gives it."""
    decisions: list[SaidDecision] = Field(default_factory=list)
    """Decisions that are new."""
    deferred: list[str] = Field(default_factory=list)
    """Cases that were seen and left for later."""
    expected_output: ExpectedOutput | None = None
    """What is wanted back; a result that does not fit is refused."""
    expires_in_ms: int | None = None
    """How long it may take this time. Without it as long as before, and what expired gets at
    least the broker's own span."""
    gaps: list[str | NewGap] = Field(default_factory=list)
    """References that could not be resolved."""
    history: list[NewStep] = Field(default_factory=list)
    """What was done and is not in the history yet."""
    lift_constraints: list[Lift] = Field(default_factory=list)
    """Ends constraints. Only who issued one, or the task's coordinator, can do that."""
    memory_refs: list[MemoryRef] = Field(default_factory=list)
    """Memories that the receiver can fetch."""
    open_decisions: list[str | Question] = Field(default_factory=list)
    """Questions that are new and that somebody must decide."""
    payload: dict[str, Any] | None = Field(default_factory=dict)
    """Another payload; the same one without it."""
    read_back: bool | None = None
    """Lets the claim count only once the receiver has repeated what binds it."""
    reading: Reading | None = None
    """What was chosen, as `/v1/assemble` gives it."""
    resolved_gaps: list[str] = Field(default_factory=list)
    """References of gaps that are resolved now."""
    state: TaskProgress | None = None
    """How far the task is: what is done, what remains."""
    summary: str | None = None
    """What the task is about now, in a few sentences."""
    terms: TermsPatch | None = None
    """How often, how long and within what time it is tried."""
    to: Target | None = None
    """Another receiver; the same one without it."""
    tried: list[str] = Field(default_factory=list)
    """What was tried and did not work, so that nobody tries it again."""


class Answer(Model):
    """Answers the question that a dead letter stopped at: the decision goes into the task's
    log, and the work goes on with it."""

    by: AgentId
    decision: SaidDecision
    """What was decided."""
    expires_in_ms: int | None = None
    """How long it may take this time. Without it as long as before, and what expired gets at
    least the broker's own span."""


class AnswerQuestion(Model):
    """Answers the question that a handoff waits with."""

    answer: Any
    """Any JSON that fits what the question asks for."""
    by: AgentId
    question: Hash | None = None
    """The address of the question that is answered; without it, the one that is open."""


class Approve(Model):
    """Who decides."""

    by: AgentId


class Artifact(Model):
    """A piece of work that was attached while the work went on."""

    artifact: Hash
    """The address of it."""
    at: Timestamp
    attempt: int
    """The attempt in which it was attached."""
    by: AgentId
    bytes: int
    content: Any = None
    """The piece itself, where there is room for it."""
    name: ArtifactName
    type: str
    """What it is, such as `text/markdown`."""
    version: int
    """Which one of its name it is, from 1."""


class Artifacts(Model):
    artifacts: list[Artifact]


class Ask(Model):
    """Asks a question and waits for the answer without holding the claim."""

    answer_ms: int | None = None
    """How long it may wait for its answer; without it, until the hard deadline of the attempt."""
    by_id: bool | None = None
    """The asker comes for the answer by the handoff's id only (`POST
    /v1/handoffs/{id}/claim`), so that no other process of the same name takes it along with
    other work."""
    claim_id: ClaimId
    default: Any = None
    """The answer that holds if nobody gives one within `answer_ms`. Without it the attempt
    fails then."""
    details: dict[str, Any] = Field(default_factory=dict)
    """More about it, for programs."""
    fence: Fence
    keep_ms: int | None = None
    """For how long the answer is kept for the asker alone; without it, for as long as its
    lease was."""
    kind: QuestionKind | str = "input"
    """`input`: something that the asker must know. `authorization`: leave to do something."""
    schema_: Any = Field(default=None, alias="schema")
    """The JSON Schema that the answer must fit. Without one, an answer to `authorization` is
    an object with a boolean `granted`, and an answer to `input` is any JSON."""
    text: str
    """The question, for whoever reads it."""


class AskReply(Model):
    """Where a handoff is after its holder asked."""

    correlation_id: CorrelationId | None = None
    handoff_id: HandoffId
    question: Hash
    """The address of the question."""
    state: str
    status: str
    task_id: TaskId


class Asked(Model):
    """What a holder asked, and on which terms."""

    answer_by: Timestamp | None = None
    """By when it must be answered; without it, until the hard deadline."""
    by_id: bool | None = None
    """Whether the asker comes for the answer by the handoff's id only."""
    fence: Fence
    has_default: bool | None = None
    """Whether the question says what holds if nobody answers in time."""
    keep_ms: int
    """For how long the answer is kept for the asker alone."""
    question: Hash
    question_kind: QuestionKind | str


class Asks(Model):
    """That a holder asks something. `GET /v1/questions` has the question itself."""

    answer_left_ms: int
    """How much time is left to answer."""
    asked_by: AgentId
    kind: QuestionKind | str
    question: Hash
    """The address of the question."""


class Assemble(Model):
    """Asks for what a receiver should get to read, within its token budget. Nothing is stored."""

    add_constraints: Any = None
    """Adds to what binds, as a list or a map."""
    alternatives: list[str] = Field(default_factory=list)
    """What was considered and not taken, and why not."""
    ask: str | None = None
    """What this receiver must do."""
    assumptions: list[str] = Field(default_factory=list)
    """What was taken for granted and not checked."""
    constraints: Any = None
    """What binds everybody from here on. Without it, what bound before still does. A list says
    all of it: one that leaves out or rewords what bound before is refused. A plain map,
    such as `{"language": "python", "max_tokens": 4000}`, adds to it."""
    context: list[ContextItem] = Field(default_factory=list)
    """Memories that are passed along, in full or in short; `/v1/assemble` makes them."""
    context_manifest: Hash | None = None
    """The address of the list of what was passed, as `/v1/assemble` gives it."""
    decisions: list[SaidDecision] = Field(default_factory=list)
    """Decisions that are new."""
    deferred: list[str] = Field(default_factory=list)
    """Cases that were seen and left for later."""
    expected_output: ExpectedOutput | None = None
    """What is wanted back; a result that does not fit is refused."""
    from_agent: AgentId
    """Who sends it. A task is handed on by its owner."""
    gaps: list[str | NewGap] = Field(default_factory=list)
    """References that could not be resolved."""
    history: list[NewStep] = Field(default_factory=list)
    """What was done and is not in the history yet."""
    include_pins: bool = True
    """Whether pinned memories travel, whole."""
    include_recent: int = 20
    """How many of the memories that changed last are considered; those that answer the ask
    best are considered too."""
    intent: str | None = None
    """The user's own words, where there is no task yet."""
    lift_constraints: list[Lift] = Field(default_factory=list)
    """Ends constraints. Only who issued one, or the task's coordinator, can do that."""
    max_tokens: int | None = None
    """How many tokens it may be; without it, the receiver's context window."""
    memory_refs: list[MemoryRef] = Field(default_factory=list)
    """Memories that the receiver can fetch."""
    open_decisions: list[str | Question] = Field(default_factory=list)
    """Questions that are new and that somebody must decide."""
    payload: dict[str, Any] | None = Field(default_factory=dict)
    """What is to be sent with it, so that room is kept for it."""
    project: Project | None = None
    """Where to look for memories, besides those of the sender and of the task."""
    read_back: bool | None = None
    """Lets the claim count only once the receiver has repeated what binds it."""
    reading: Reading | None = None
    """What was chosen, as `/v1/assemble` gives it."""
    reserved_system_prompt: int | None = None
    """What of that the receiver needs for its system prompt, and for its work."""
    reserved_work: int | None = None
    """Tokens that the receiver needs for its own steps and its answer."""
    resolved_gaps: list[str] = Field(default_factory=list)
    """References of gaps that are resolved now."""
    role: str | None = None
    """What the receiver is, which says what it wants to see."""
    state: TaskProgress | None = None
    """How far the task is: what is done, what remains."""
    strategy: Strategy | str = "priority"
    """How memories are chosen and shortened."""
    summary: str | None = None
    """What the task is about now, in a few sentences."""
    task_id: TaskId | None = None
    """The task that is handed on: its intent, and what it has inherited, is in it."""
    to_agent: AgentId | None = None
    """Who is to read it: its manifest says how much it can read, in which tokens, in which
    role."""
    tokenizer: str | None = None
    """The receiver's tokenizer or model, such as `o200k_base`."""
    tried: list[str] = Field(default_factory=list)
    """What was tried and did not work, so that nobody tries it again."""


class AssembleReply(Model):
    """What was put together, and what was left out."""

    envelope: EnvelopePreview
    """What an envelope with it will carry."""
    envelope_tokens: int
    """How many tokens that is, as JSON."""
    envelope_version: str
    memory_refs: list[str]
    """The ids of all memories that it has or refers to."""
    offer: Said
    """What to send in an offer, so that its envelope has this."""
    prompt: str
    """What a model reads, as Markdown."""
    receipt: Receipt
    token_count: int
    """How many tokens the prompt is."""


class Attach(Model):
    """Attaches a piece of work that is there already."""

    claim_id: ClaimId
    content: Any
    """The piece itself: any JSON."""
    fence: Fence
    name: ArtifactName
    """What it is called; another one of the same name takes its place."""
    type: str
    """What it is, such as `text/markdown`."""


class Attached(Model):
    """A piece of work that is there before the result is."""

    artifact: Hash
    bytes: int
    fence: Fence
    name: ArtifactName
    type: str
    """What it is, such as `text/markdown`."""
    version: int
    """Which one of its name it is, from 1."""


class Attempt(Model):
    agent: AgentId
    claimed_at: Timestamp
    ended: str | None = None
    ended_at: Timestamp | None = None
    fence: Fence
    late: bool | None = None
    """A report came after the end: refused, and kept in the audit log."""
    number: int
    started_at: Timestamp | None = None


class BadEntry(Model):
    """The first entry that is not as it should be."""

    index: int | None = None
    """The how-manieth event of its task, from 0."""
    problem: str
    task_id: TaskId | None = None


class BatchOfMoved(Model):
    """The answers of a batch, in the order of its parts: each is a result or an error."""

    results: list[PartOfMoved]


class BatchOfOfferReply(Model):
    """The answers of a batch, in the order of its parts: each is a result or an error."""

    results: list[PartOfOfferReply]


class Beat(Model):
    correlation_id: CorrelationId | None = None
    handoff_id: HandoffId
    lease_left_ms: int
    messages: list[HolderMessage] = Field(default_factory=list)
    """Messages to the holder that it has not acknowledged yet."""
    on_hold: HandoffId | None = None
    """The dead letter above it that somebody has to decide on before anything more comes of
    this work. A result is kept."""
    taints: list[HandoffId] = Field(default_factory=list)
    """What the task is built on and no longer holds."""
    work_left_ms: int


class Branch(Model):
    """Begins anew from a hop of a task, as a task of its own."""

    by: AgentId
    """Who begins it, and owns it until somebody claims it."""
    hop: int
    """The hop whose content the first envelope carries."""
    idempotency_key: IdempotencyKey | None = None
    """Makes it safe to repeat: the same request with the same key is carried out once."""
    to: Target | None = None
    """Another target than the hop's own."""


class BranchOf(Model):
    """Where a task that begins anew comes from."""

    envelope: Hash
    """The envelope of that hop."""
    hop: int
    task_id: TaskId


class Budget(Model):
    """What a task and everything below it may still spend."""

    cost: Cost | None = None
    """Money."""
    tokens: int | None = None
    """Tokens that models read and write."""


class Catalogue(Model):
    """Who can be reached here, for programs that look around."""

    agents: list[CatalogueEntry]
    broker_key: PublicKey | None = None
    """The key with which the broker signs what it delivers."""


class CatalogueEntry(Model):
    agent_id: AgentId
    capabilities: list[Capability]
    discovery_endpoint: str | None = None
    """What the manifest names. The broker never asks there."""
    live: bool
    url: str
    """Where the agent's page is on this broker."""


class ChainEvent(Model):
    body: dict[str, Any] | None = Field(default_factory=dict)
    """Absent if there was none, or if it was erased."""
    hash: Hash
    position: Position
    record: Record
    """The exact bytes that the hash covers."""


class ChainFile(Model):
    checkpoint: LogCheckpoint | None = None
    """The first signed checkpoint of the whole log that covers all of it."""
    exported_at: Timestamp
    format: str
    """`tasuki-chain`."""
    keys: list[ChainSigner] = Field(default_factory=list)
    """The public keys of those who signed something in here."""
    seal: ChainSeal | None = None
    """The broker's word that the chains ended so."""
    task_id: TaskId
    """The task that was asked for."""
    tasks: list[TaskChain]
    """That task first, then those below it."""
    version: int


class ChainSeal(Model):
    key: PublicKey
    signature: Signature


class ChainSigner(Model):
    agent: AgentId
    key: PublicKey


class ChainVerdict(Model):
    """What was found in a file."""

    bodies: int
    erased: list[ErasedBody]
    """Bodies that were erased on purpose, by task and place."""
    events: int
    first_bad: BadEntry | None = None
    hops: list[TaskHop]
    """Every hop whose envelope is there."""
    intact: bool
    sealed_by: PublicKey | None = None
    """The key that sealed the file."""
    signatures: int
    """Signatures that are right, and those for which the file has no key."""
    signatures_unchecked: int
    tasks: int


class Change(Model):
    """A change of who is known, as it is in the log."""

    agent: AgentId | None = None
    change: str | None = None
    manifest: Hash | None = None
    signed: Signed | None = None
    version: int | None = None
    standing: Standing | str | None = None
    key: PublicKey | None = None
    token: TokenId | None = None
    """The join token that was spent."""
    new: PublicKey | None = None
    old: KeyId | None = None
    until: Timestamp | None = None
    rules: list[Rule] = Field(default_factory=list)
    ended_at: Timestamp | None = None
    """Spent or revoked."""
    expires_at: Timestamp | None = None
    id: TokenId | None = None
    issued_at: Timestamp | None = None
    made_by: AgentId | None = None
    """Who made it; absent if the broker did."""
    made_from: Origin | None = None
    """What its maker showed. What was made with something ends with it."""
    purpose: Purpose | str | None = None
    secret: Hash | None = None
    """The hash of the secret."""
    quotas: Quotas | None = None
    limits: Limits | None = None
    target: Target | None = None
    pipeline: Pipeline | None = None
    channel: ChannelId | None = None
    code: str | None = None
    """The error's code."""
    operation: str | None = None
    """What it tried: an operation, and what that was about. Up to 0.1 a method and a path."""
    fires: bool | None = None
    moved_at: Timestamp | None = None
    """When it began or ended, by the times of the log."""
    rule: str | None = None
    since: Timestamp | None = None
    """Since when it fires, or fired."""
    value: str | None = None
    """What was found."""
    by: str | None = None
    problem: str | None = None
    """Why it was not sent everywhere."""
    sent: bool | None = None
    tries: int | None = None
    reason: Hash | None = None


class Channel(Model):
    channel: ChannelId
    subscribers: list[Subscriber]


class Claim(Model):
    """Asks for work."""

    agent: AgentId
    """Who asks."""
    capabilities: list[Capability] = Field(default_factory=list)
    """What the agent can do, besides what is addressed to it by name."""
    lease_ms: int | None = None
    """A lease other than the one in the handoff's terms."""
    majors: list[int] = Field(default_factory=list)
    """Which majors of the envelope the agent takes; without any, what its manifest says."""
    max: int = 1
    """How many to claim at most."""
    request_id: RequestId | None = None
    """Makes the claim safe to repeat after a lost reply."""
    wait_ms: int = 0
    """How long to wait if there is nothing yet; at most 60 seconds."""


class ClaimOne(Model):
    """Claims one handoff by its id."""

    agent: AgentId
    """Who asks."""
    capabilities: list[Capability] = Field(default_factory=list)
    """What it can do; work that is offered to one of these is found too."""
    lease_ms: int | None = None
    """How long the claim holds without a heartbeat."""
    majors: list[int] = Field(default_factory=list)
    """Which majors of the envelope the agent takes; without any, what its manifest says."""
    request_id: RequestId | None = None
    """Makes the claim safe to repeat."""
    wait_ms: int = 0
    """How long to wait for the answer to a question that this agent asked; at most 60 seconds."""


class ClaimReply(Model):
    """A claim: show `claim_id` and `fence` with every later call."""

    artifacts: list[Artifact] = Field(default_factory=list)
    """Pieces of work that are there already."""
    attempt: int
    """Which attempt this is, from 1."""
    budget: Budget | None = None
    """What the task, with everything below it, may still spend, if that is bounded."""
    claim_id: ClaimId
    correlation_id: CorrelationId | None = None
    delivery: Delivery | None = None
    """The broker's word that it gave this to its holder."""
    earlier_attempts: list[EarlierAttempt] = Field(default_factory=list)
    """What attempts before this one said and why they ended, the last one last. It is data
    that others wrote, as the envelope is."""
    envelope: AnyEnvelope
    """The envelope, exactly as it was stored."""
    envelope_hash: Hash
    """The address of the envelope."""
    fence: Fence
    gaps: list[JoinGap] = Field(default_factory=list)
    """What the work has to do without because of those tasks, besides the gaps of the
    envelope."""
    handoff_id: HandoffId
    joined: list[JoinedResult] = Field(default_factory=list)
    """What the tasks have come to that this work waited for, in the order in which `after`
    names them."""
    lease_left_ms: int
    """How much of the lease is left, counted from before the request was sent."""
    lease_ms: int
    left_out: int | None = None
    """How many of these texts there was no room for."""
    messages: list[HolderMessage] = Field(default_factory=list)
    """Messages that no holder has taken note of yet."""
    questions: list[HolderQuestion] = Field(default_factory=list)
    """Questions that holders of this work asked, with their answers, the last one last."""
    taints: list[HandoffId] = Field(default_factory=list)
    """What the task is built on and no longer holds, also if that came out after the envelope
    was made."""
    task_id: TaskId
    work_left_ms: int
    """How much of the attempt's time is left, whatever heartbeats are sent."""


class Claimed(Model):
    agent: AgentId
    attempt: int
    """Which attempt this is, from 1."""
    claim_id: ClaimId
    fence: Fence
    hard_until: Timestamp
    """No heartbeat moves the claim past this."""
    lease_ms: int
    probes: Target | None = None
    """The agent that it is let through for, to see how it fares."""
    request_id: RequestId | None = None


class Claims(Model):
    claims: list[ClaimReply]


class ClearTaint(Model):
    """Says that a task may go on although something that it is built on no longer holds."""

    by: AgentId
    """The task's coordinator."""
    reason: str
    """Why; it stands in the log."""
    source: HandoffId
    """The handoff whose result no longer holds."""


class Complete(Model):
    action: Action | str = "completed"
    """`completed`, or what should follow: `needs_review`, `changes_requested`, `escalated`."""
    claim_id: ClaimId
    criteria: list[CriterionReport] = Field(default_factory=list)
    """Of each criterion of the expected output: whether it is met, and what shows it."""
    fence: Fence
    follow_ups: list[AnyFollowUp] = Field(default_factory=list)
    """Handoffs that are created in the same atomic step."""
    gaps: list[str] = Field(default_factory=list)
    """References that the work had to do without."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """For monitoring; no model reads it."""
    payload: dict[str, Any]
    """What came of it: an object with a `type`."""
    resolved_gaps: list[str] = Field(default_factory=list)
    """Gaps that came with the work and are none any more. All others are in the result,
    whether they are repeated here or not."""
    signed: Signed | None = None
    """The holder's signature over its result."""
    usage: WorkUsage | None = None
    """What the attempt used. It makes the budget of its task, and of those above it, less."""


class CompleteBatch(Model):
    """Completes many at once. Each stands on its own; all are synced together."""

    completions: list[CompleteOf]
    """Each is carried out on its own."""


class CompleteOf(Model):
    action: Action | str = "completed"
    """`completed`, or what should follow: `needs_review`, `changes_requested`, `escalated`."""
    claim_id: ClaimId
    criteria: list[CriterionReport] = Field(default_factory=list)
    """Of each criterion of the expected output: whether it is met, and what shows it."""
    fence: Fence
    follow_ups: list[AnyFollowUp] = Field(default_factory=list)
    """Handoffs that are created in the same atomic step."""
    gaps: list[str] = Field(default_factory=list)
    """References that the work had to do without."""
    handoff_id: HandoffId
    metadata: dict[str, Any] = Field(default_factory=dict)
    """For monitoring; no model reads it."""
    payload: dict[str, Any]
    """What came of it: an object with a `type`."""
    resolved_gaps: list[str] = Field(default_factory=list)
    """Gaps that came with the work and are none any more. All others are in the result,
    whether they are repeated here or not."""
    signed: Signed | None = None
    """The holder's signature over its result."""
    usage: WorkUsage | None = None
    """What the attempt used. It makes the budget of its task, and of those above it, less."""


class CompleteTask(Model):
    """Ends a task with a result, while nobody else works on it. Its owner does so."""

    below: Below | str = "refuse"
    """What becomes of tasks below it that are not at their end."""
    by: AgentId
    """Its owner."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """For monitoring only."""
    payload: dict[str, Any]
    """What came of it: an object with a `type`."""


class Constraint(Model):
    hard: bool
    """Whether it binds; a preference does not."""
    id: Hash
    """The SHA-256 of the text in Unicode's composed form (NFC)."""
    issuer: AgentId
    """Who said so. It and the task's coordinator may lift the constraint, and nobody else."""
    kind: ConstraintKind | str
    text: str


class ContextItem(Model):
    about: str | None = None
    """What it is about, in one line."""
    by: str | None = None
    """Who wrote it."""
    excerpts: list[Excerpt] = Field(default_factory=list)
    """Parts of it, in the order in which they stand in it."""
    form: Form | str
    id: str
    kind: str | None = None
    """What it is: `log`, `code`, `decision`."""
    lead: str | None = None
    """What is said before its parts, such as the names of a table's columns."""
    of: int | None = None
    """How many parts it has."""
    pinned: bool | None = None
    """It is never left out, whatever the budget of who reads it."""
    revision: int | None = None
    text: str | None = None
    """All of it, or its summary."""
    title: str | None = None
    tokens: int | None = None
    """How many tokens all of it is."""
    trust: Trust | str | None = None
    """Who stands behind what it says, if not an agent."""


class Contract(Model):
    after: After | None = None
    """What must be done before it can be claimed."""
    approvers: list[AgentId] = Field(default_factory=list)
    """Who may approve it, if it waits for that; without names, whoever is permitted to."""
    budget: Budget | None = None
    """What the task may spend from here on, it and everything below it."""
    budget_tokens: int | None = None
    """How many tokens the work may use."""
    capability: Capability | None = None
    """What is to be done. The receiver's manifest says what goes in and what comes out."""
    correlation_id: CorrelationId | None = None
    """The name by which the sender finds everything that belongs together."""
    diverted_from: Target | None = None
    """Whom the sender asked, if nothing is sent there at present."""
    expected_output: Hash | None = None
    """The address of what is wanted back, which is in the envelope."""
    fallbacks: list[Target] = Field(default_factory=list)
    """Who is asked next, in this order, if the receiver cannot or will not do it."""
    fill: Fill | None = None
    """How full the receiver's budget was, and how much of what there was got in, as the sender
    was told when it put the envelope together."""
    has_gaps: bool | None = None
    """Whether the envelope names references that the work has to do without."""
    majors: list[int] = Field(default_factory=list)
    """Which majors of the envelope the sender can give; without any, the broker's own."""
    output_schema: Hash | None = None
    """The address of the JSON Schema that the result must fit, which is in the envelope."""
    read_back: Hash | None = None
    """What the receiver must repeat before its claim counts: the address of what binds it."""
    routed: Why | None = None
    """How the receiver was chosen, if the broker chose it."""
    stage: StageRef | None = None
    """Where in a declared route this is."""


class Coordinator(Model):
    """Who decides about a task: an agent, or one whose manifest names a role."""

    agent: AgentId | None = None
    role: str | None = None


class Counter(Model):
    """Says on which other terms an agent would take a handoff."""

    agent: AgentId
    """Who asks."""
    budget_tokens: int | None = None
    """The tokens that it would need."""
    capabilities: list[Capability] = Field(default_factory=list)
    """What it can do; work that is offered to one of these is found too."""
    reason: str
    """Why; it stands in the log."""
    terms: TermsPatch | None = None
    """What should be different; the rest stays as it was offered."""


class CounterOffer(Model):
    """On which other terms an agent would take a handoff."""

    agent: AgentId
    budget_tokens: int | None = None
    terms: Terms


class Countered(Model):
    agent: AgentId
    budget_tokens: int | None = None
    reason: Hash
    terms: Terms


class CriterionReport(Model):
    """An agent's word on one criterion."""

    criterion: str
    """The criterion, word for word."""
    evidence: str | None = None
    """What shows it."""
    met: bool


class DeadLetter(Model):
    ack_left_ms: int | None = None
    """How much time is left for somebody to claim it."""
    artifacts: list[ArtifactName] = Field(default_factory=list)
    """Pieces of work that are there before the result is."""
    attempts: list[Attempt]
    contract: Contract | None = None
    """What was agreed besides the terms."""
    control: Control | str
    correlation_id: CorrelationId | None = None
    """The name by which the sender finds everything that belongs together."""
    counters: list[CounterOffer] = Field(default_factory=list)
    """On which other terms agents would take it."""
    dead_letter: DeadLetterReason | None = None
    declined_by: list[AgentId] = Field(default_factory=list)
    declines: list[DeclineReason] = Field(default_factory=list)
    """Why agents declined it, where they said so."""
    delivered_at: Timestamp | None = None
    discarded_because: str | None = None
    due_at: Timestamp | None = None
    """When a scheduled handoff becomes claimable."""
    ended_at: Timestamp | None = None
    envelope: Hash
    envelope_content: Envelope | None = None
    expires_at: Timestamp
    failures: int
    """Attempts that ended in a declared failure."""
    from_agent: AgentId
    handoff_id: HandoffId
    holder: Holder | None = None
    hop: int
    kept_for: KeptFor | None = None
    """For whom an answer is kept."""
    lifted: list[LiftedConstraint] = Field(default_factory=list)
    """Constraints that were lifted since the envelope was made; they do not bind the next one."""
    losses: int
    """Leases that were lost."""
    offered_at: Timestamp
    ordering_key: OrderingKey | None = None
    priority: int
    question: Asks | None = None
    """What its holder asks and waits for."""
    redrive_of: HandoffId | None = None
    rejected_because: str | None = None
    """Why an approver said no."""
    reports: list[Report]
    """What the attempts reported."""
    result: Hash | None = None
    """The address of the result."""
    retracted: bool | None = None
    """Whether its result was taken back."""
    reviewer: AgentId | None = None
    """Who decides on this dead letter just now."""
    state: str
    status: str
    """What the sender may rely on: `stored`, `delivered`, `claimed`, `in_progress`, `done`,
    `failed`, `cancelled`, `rejected` or `dead_lettered`. Only what has a result is `done`."""
    task_id: TaskId
    terms: Terms
    to: Target
    tried: list[Target] = Field(default_factory=list)
    """Targets that could not or would not do it, the first one first."""
    trim_regret: list[DocumentId] = Field(default_factory=list)
    """Memories that the receiver fetched because the envelope had passed less of them: what
    was trimmed and missed."""
    waits_in_circle: str | None = None
    """Who waits for whom in the circle that this call closed."""


class DeadLetterGroup(Model):
    count: int
    fingerprint: Hash
    handoffs: list[HandoffId]
    """Some of them, the newest first."""
    hint: str | None = None
    message: str | None = None
    reason: str
    to: Target
    type: str | None = None


class DeadLetterReason(Model):
    closed: str | None = None
    """Why nobody has to decide on it any more: `task_offered_anew`, `task_cancelled` or
    `task_completed`."""
    discarded: bool | None = None
    reason: str
    redriven_to: HandoffId | None = None


class Decide(Model):
    """Who decides, and why."""

    by: AgentId
    reason: str | None = None
    """Why; it stands in the log."""


class DecideMany(Model):
    """What is decided about many dead letters."""

    by: AgentId
    decision: Ruling
    """What was decided."""
    dry_run: bool | None = None
    """Only say which ones it would be."""
    expires_in_ms: int | None = None
    """How long those that go on may take this time. Without it as long as before, and what
    expired gets at least the broker's own span."""
    fingerprint: Hash | None = None
    """Which ones, by what they died of."""
    handoffs: list[HandoffId] = Field(default_factory=list)
    """Which ones, by their ids."""


class DecidedMany(Model):
    dry_run: bool
    results: list[DecidedOne]


class DecidedOne(Model):
    error: Problem | None = None
    handoff_id: HandoffId
    """The dead letter."""
    to_handoff: HandoffId | None = None
    """Where it goes on, or where it stays."""


class Decision(Model):
    by: AgentId
    decision: str
    hop: int
    id: Hash
    """The address of what was decided, by whom."""
    key: str | None = None
    """What it is about. A key that is settled is decided anew only by superseding."""
    resolves: Hash | None = None
    """The open decision that this one settles."""
    supersedes: Hash | None = None
    """The decision that this one replaces."""
    why: str | None = None


class Decline(Model):
    """Declines: with the claim as its holder, or without one before claiming."""

    agent: AgentId
    """Who asks."""
    claim_id: ClaimId | None = None
    fence: Fence | None = None
    reason: str | None = None
    """Why; it stands in the log."""


class DeclineReason(Model):
    agent: AgentId
    reason: str


class Delete(Model):
    """Says who wants something gone, and why."""

    by: AgentId
    reason: str
    """Why; it stands in the log."""


class Delivery(Model):
    """The broker's signature over a delivery, and the time that it covers."""

    at: Timestamp
    signed: Signed


class Demoted(Model):
    fetch: str
    """Where all of it is."""
    id: str
    name: str | None = None
    """Its short name in the text."""
    parts: list[Any] | None = Field(default_factory=list)
    """How many parts of a long text were kept, of how many."""
    reason: TrimReason
    revision: int
    rung: Rung | str


class Dropped(Model):
    fetch: str | None = None
    """Where it is. Absent for lines of the envelope, which the receiver has."""
    id: str
    name: str | None = None
    """By which the receiver can ask for it."""
    reason: TrimReason
    revision: int
    tokens: int
    """How many tokens it is in full."""


class EarlierAttempt(Model):
    """An earlier attempt, and what it left behind."""

    agent: AgentId
    attempt: int
    claimed_at: Timestamp
    ended: str | None = None
    """How it ended, such as `failed_retryable` or `lost_silence`."""
    ended_at: Timestamp | None = None
    failure: FailureReport | None = None
    """Why it failed, in its own words."""
    notes: list[ProgressNote] = Field(default_factory=list)
    """What it said of its progress, the last one last."""


class EditMemory(Model):
    """Makes a new revision of a memory. What is not given stays as it is."""

    by: AgentId
    priority: Priority | str | None = None
    """0 to 9; higher ones are claimed first."""
    revision: int | None = None
    """The revision that the writer has seen: if there is another by now, nothing is written."""
    scope: Scope | None = None
    """Who shares it."""
    summary: str | None = None
    """The same in short."""
    tags: list[str] | None = Field(default_factory=list)
    """Words to find it by; `kind:log` says what kind it is."""
    text: str | None = None
    """The whole text."""
    title: str | None = None
    """An empty title or summary takes it away."""


class Enroll(Model):
    """Enrolls a key by the word of an administrator."""

    key: PublicKey
    """The public key."""
    rules: list[Rule] | None = Field(default_factory=list)
    """What the agent may do from now on; as before if nothing is said."""


class EnrolledKey(Model):
    """A public key of an agent."""

    ends_at: Timestamp | None = None
    """From when on it no longer counts: at once if it was revoked, later if it was replaced."""
    enrolled_at: Timestamp
    key: PublicKey
    key_id: KeyId


class Envelope(Model):
    """What travels with one hop of a task. Members that this version does not know are kept
    and passed on."""

    action: Action | str = "request"
    after: After | None = None
    """The tasks whose results come with it: it waits until so many of them have one."""
    alternatives: list[str] = Field(default_factory=list)
    """What was considered and not taken, and why not."""
    ask: str | None = None
    """What this receiver must do."""
    asked_to: Target | None = None
    """Whom the sender asked for, where the broker chose the receiver."""
    assumptions: list[str] = Field(default_factory=list)
    budget: Budget | None = None
    """What the task, with everything below it, could still spend when this was made."""
    constraints: list[Constraint] = Field(default_factory=list)
    """Binds every agent of the chain. Inherited."""
    context: list[ContextItem] = Field(default_factory=list)
    """Memories that are here already, as much of them as there was room for."""
    context_manifest: Hash | None = None
    """The address of the list of everything that could have been passed."""
    control: Control | str
    correlation_id: CorrelationId | None = None
    created_at: Timestamp
    deadline: Timestamp | None = None
    """When the work must be finished."""
    decisions: list[Decision] = Field(default_factory=list)
    """What was decided, the oldest first. Inherited."""
    deferred: list[str] = Field(default_factory=list)
    """Cases that were seen and left for later."""
    envelope_version: str
    """`major.minor`; only the major decides compatibility."""
    expected_output: ExpectedOutput | None = None
    from_agent: AgentId
    gaps: list[Gap] = Field(default_factory=list)
    """References that could not be resolved. Inherited until somebody resolves them."""
    history: list[Step] = Field(default_factory=list)
    """What was done by whom, the oldest first. Inherited."""
    hop: int
    """How many hops came before this one, counted by the broker."""
    idempotency_key: IdempotencyKey | None = None
    intent: str
    """The user's own words, the same bytes at every hop."""
    lifted: list[Lifted] = Field(default_factory=list)
    """Constraints that no longer bind, with who lifted them and why. Inherited."""
    memory_refs: list[MemoryRef] = Field(default_factory=list)
    """Memories to read, not copied."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """For monitoring only; never shown to the receiving model."""
    open_decisions: list[OpenDecision] = Field(default_factory=list)
    """Questions that nobody has decided yet. Inherited until somebody does."""
    parent_task_id: TaskId | None = None
    path: list[Passed] = Field(default_factory=list)
    """The hops before this one."""
    payload: dict[str, Any]
    previous: Hash | None = None
    """The address of the envelope before this one."""
    prompt_tokens: int | None = None
    """How many tokens what a receiver reads may have. Inherited."""
    reading: Reading | None = None
    """What assembly chose, so that every reader gets the text that the sender saw."""
    signed: Signed | None = None
    """The sender's signature over what is its own in here."""
    state: TaskProgress | None = None
    summary: str | None = None
    """What the task is about now, in a few sentences."""
    taints: list[Taint] = Field(default_factory=list)
    """What this is built on and no longer holds."""
    task_id: TaskId
    to: Target
    tried: list[str] = Field(default_factory=list)
    """What was tried and did not work."""


class EnvelopePreview(Model):
    alternatives: list[str] = Field(default_factory=list)
    """What was considered and not taken, and why not."""
    ask: str | None = None
    """What this receiver must do."""
    assumptions: list[str] = Field(default_factory=list)
    constraints: list[Constraint] = Field(default_factory=list)
    """Binds every agent of the chain. Inherited."""
    context: list[ContextItem] = Field(default_factory=list)
    """Memories that are here already, as much of them as there was room for."""
    context_manifest: Hash | None = None
    """The address of the list of everything that could have been passed."""
    decisions: list[Decision] = Field(default_factory=list)
    """What was decided, the oldest first. Inherited."""
    deferred: list[str] = Field(default_factory=list)
    """Cases that were seen and left for later."""
    expected_output: ExpectedOutput | None = None
    gaps: list[Gap] = Field(default_factory=list)
    """References that could not be resolved. Inherited until somebody resolves them."""
    history: list[Step] = Field(default_factory=list)
    """What was done by whom, the oldest first. Inherited."""
    intent: str
    lifted: list[Lifted] = Field(default_factory=list)
    """Constraints that no longer bind, with who lifted them and why. Inherited."""
    memory_refs: list[MemoryRef] = Field(default_factory=list)
    """Memories to read, not copied."""
    open_decisions: list[OpenDecision] = Field(default_factory=list)
    """Questions that nobody has decided yet. Inherited until somebody does."""
    prompt_tokens: int | None = None
    """How many tokens what a receiver reads may have. Inherited."""
    reading: Reading | None = None
    """What assembly chose, so that every reader gets the text that the sender saw."""
    state: TaskProgress | None = None
    summary: str | None = None
    """What the task is about now, in a few sentences."""
    tried: list[str] = Field(default_factory=list)
    """What was tried and did not work."""


class EraseMemory(Model):
    """Removes the text of a revision, or of all of them, for good."""

    by: AgentId
    reason: str
    """Why; it stands in the log."""
    revision: int | None = None
    """Only this revision; all of them without it."""


class Erased(Model):
    """A body that was removed from the store. Its hash stays in the event it came with."""

    body: Hash
    bytes: int
    """How many bytes were freed, and whose they were."""
    document: DocumentId | None = None
    position: Position
    """The event that the body came with."""
    reason: Hash
    revision: int | None = None
    tenant: TenantId


class ErasedBody(Model):
    index: int
    task_id: TaskId


class Event(Model):
    """An audit event where it stands in the log."""

    body: dict[str, Any] | None = Field(default_factory=dict)
    hash: Hash
    position: Cursor
    """Where it stands."""
    record: Record


class Events(Model):
    events: list[Event]


class Excerpt(Model):
    """A part of a text, as it stands there."""

    label: str | None = None
    """What it belongs to, such as the file of a diff's hunk."""
    part: int
    """Its place among the parts of the text, from 1."""
    text: str


class ExpectedOutput(Model):
    """What is wanted back. What of it can be checked is checked when the work is completed."""

    criteria: list[str] = Field(default_factory=list)
    """What a good result is like. The completion says of each whether it is met, and how."""
    format: Format | str | None = None
    """What the text of the result must be."""
    length: Length | None = None
    member: str | None = None
    """The member of the payload that `format` and `length` are about; `text` without it."""
    schema_: Any = Field(default=None, alias="schema")
    """A JSON Schema that the payload of the result must fit."""


class Fail(Model):
    attempted: str | None = None
    """What was attempted when it failed."""
    attempts: int | None = None
    """How often the agent tried before it gave up."""
    causes: list[str] = Field(default_factory=list)
    """What led to it, the nearest cause first."""
    claim_id: ClaimId
    class_: FailureClass | str = Field(alias="class")
    """Whether trying again may help."""
    details: dict[str, Any] = Field(default_factory=dict)
    """More about it, for programs."""
    fence: Fence
    hint: str | None = None
    """What might fix it; a permanent failure must say it."""
    message: str
    """What went wrong."""
    retry_after_ms: int | None = None
    """When to try again at the earliest; for retryable failures only."""
    signed: Signed | None = None
    """The holder's signature over its failure."""
    type: str
    """A short name for the kind of error, such as `rate_limited`."""
    usage: WorkUsage | None = None
    """What the attempt used. It makes the budget of its task, and of those above it, less."""


class FailureReport(Model):
    """Why an attempt failed."""

    action: Action | str
    attempted: str | None = None
    """What was attempted when it failed."""
    attempts: int | None = None
    """How often the agent tried before it gave up."""
    causes: list[str] = Field(default_factory=list)
    """What led to it, the nearest cause first."""
    class_: FailureClass | str = Field(alias="class")
    details: dict[str, Any] = Field(default_factory=dict)
    handoff_id: HandoffId
    hint: str | None = None
    """What might fix it."""
    message: str
    retry_after_ms: int | None = None
    type: str
    """A short name for the kind of error, such as `rate_limited`."""
    usage: WorkUsage | None = None
    """What the attempt used."""


class Fill(Model):
    """What a receipt of assembly says, for those who watch."""

    budget: int
    completeness_per_mille: int
    token_count: int


class Finding(Model):
    position: Position
    """The number of the entry, counted from the first of the log."""
    problem: str
    task_id: TaskId | None = None


class Flat(Model):
    """An envelope, or a hop, of major 1. What a sender of a hop leaves out is the broker's to
    know."""

    action: str
    """`completed`, `failed`, `needs_review` or `escalated`."""
    context: dict[str, Any]
    """Everything else, by the names that major 2 has for it; `items` is its `context`."""
    envelope_version: str
    """`1.` and a minor."""
    from_agent: AgentId | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    payload: dict[str, Any]
    task_id: TaskId | None = None


class FollowUp(Model):
    """One hop: to whom, what, and on which terms. A completion may carry several, which are
    made in the same atomic step."""

    action: Action | str = "request"
    """What the receiver should do with it; a first offer is a `request`."""
    add_constraints: Any = None
    """Adds to what binds, as a list or a map."""
    after: After | None = None
    """Tasks that must have a result before this can be claimed."""
    alternatives: list[str] = Field(default_factory=list)
    """What was considered and not taken, and why not."""
    approvers: list[AgentId] = Field(default_factory=list)
    """Who may approve it: nobody else then, and each of them is told that it waits. Neither
    the sender nor the receiver."""
    ask: str | None = None
    """What this receiver must do."""
    assumptions: list[str] = Field(default_factory=list)
    """What was taken for granted and not checked."""
    budget: Budget | None = None
    """What the task, with everything below it, may spend from here on. Every result and
    failure that reports its usage makes it less; a task with nothing left takes no more
    hops."""
    budget_tokens: int | None = None
    """How many tokens the work may use."""
    capability: Capability | None = None
    """What is to be done, where `to` names an agent: its manifest says what goes in and comes
    out."""
    constraints: Any = None
    """What binds everybody from here on. Without it, what bound before still does. A list says
    all of it: one that leaves out or rewords what bound before is refused. A plain map,
    such as `{"language": "python", "max_tokens": 4000}`, adds to it."""
    context: list[ContextItem] = Field(default_factory=list)
    """Memories that are passed along, in full or in short; `/v1/assemble` makes them."""
    context_manifest: Hash | None = None
    """The address of the list of what was passed, as `/v1/assemble` gives it."""
    control: Control | str = "passed"
    """`passed` transfers the task; `awaited` calls: the work is a task below the sender's own."""
    deadline: Timestamp | None = None
    """When the work must be finished; past it the handoff is dead-lettered."""
    decisions: list[SaidDecision] = Field(default_factory=list)
    """Decisions that are new."""
    deferred: list[str] = Field(default_factory=list)
    """Cases that were seen and left for later."""
    envelope_version: str | None = None
    """The version that the sender speaks. Members that are not known here are kept if it is a
    newer minor, and are a mistake otherwise."""
    expected_output: ExpectedOutput | None = None
    """What is wanted back; a result that does not fit is refused."""
    expires_in_ms: int | None = None
    """The same as a span from now. The earlier of the two counts; 24 hours by default."""
    fallbacks: list[Target] = Field(default_factory=list)
    """Who is asked next, in this order, if the receiver cannot or will not do it: by name, or
    anybody with a capability."""
    gaps: list[str | NewGap] = Field(default_factory=list)
    """References that could not be resolved."""
    history: list[NewStep] = Field(default_factory=list)
    """What was done and is not in the history yet."""
    lift_constraints: list[Lift] = Field(default_factory=list)
    """Ends constraints. Only who issued one, or the task's coordinator, can do that."""
    majors: list[int] = Field(default_factory=list)
    """Which majors of the envelope the sender can give."""
    memory_refs: list[MemoryRef] = Field(default_factory=list)
    """Memories that the receiver can fetch."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """For monitoring only."""
    needs_approval: bool | None = None
    """Hold it back until somebody other than the sender approves."""
    on_parent_end: OnParentEnd | str | None = None
    """Of a call: what becomes of it when the caller's own work ends without a result. `cancel`
    by default; with `let_go` it goes on."""
    open_decisions: list[str | Question] = Field(default_factory=list)
    """Questions that are new and that somebody must decide."""
    ordering_key: OrderingKey | None = None
    """Handoffs with the same key are worked on one after the other."""
    output_schema: Any = None
    """A JSON Schema that the result must fit: `expected_output.schema` in short."""
    payload: dict[str, Any]
    """What to work on: an object with a `type`."""
    priority: int | None = None
    """0 to 9; higher is claimed first. 5 by default."""
    read_back: bool | None = None
    """Lets the claim count only once the receiver has repeated what binds it."""
    reading: Reading | None = None
    """What was chosen, as `/v1/assemble` gives it."""
    resolved_gaps: list[str] = Field(default_factory=list)
    """References of gaps that are resolved now."""
    route: Route | None = None
    """How one of the agents with the capability is chosen. Without it, all of them may claim."""
    signed: Signed | None = None
    """The sender's signature over what it says, which travels in the envelope."""
    start_in_ms: int | None = None
    """Do not let it be claimed before this much time has passed."""
    state: TaskProgress | None = None
    """How far the task is: what is done, what remains."""
    summary: str | None = None
    """What the task is about now, in a few sentences."""
    terms: TermsPatch | None = None
    """How often, how long and within what time it is tried."""
    to: Target
    """An agent by name, or any agent with a capability."""
    tried: list[str] = Field(default_factory=list)
    """What was tried and did not work, so that nobody tries it again."""


class Follows(Model):
    """The envelope that the first one of a task follows, where the task was opened below
    another."""

    envelope: Hash
    handoff: HandoffId
    """The handoff that it came with."""
    hop: int


class Gap(Model):
    by: AgentId
    hop: int
    reason: str | None = None
    reference: str
    """What could not be resolved: the id of a memory, a path, a name."""


class Gather(Model):
    """Collects what the tasks below one have come to."""

    before: TaskId | None = None
    """Only members before this task: where the page before ended."""
    limit: int | None = None
    """How many members are listed, up to 1000."""
    need: Need = "all"
    """How many must have a result."""
    wait_ms: int = 0
    """How long to wait for enough of them, at most 60 seconds."""


class Gathered(Model):
    completed: int
    correlation_id: CorrelationId | None = None
    failed: int
    """Ended without a result."""
    members: list[GatheredMember]
    need: int
    """As was asked for; never fewer because there are not so many."""
    next: TaskId | None = None
    open: int
    """Neither: still under way."""
    reachable: bool
    """Whether as many as needed can still have a result. A quorum above the number of
    receivers, or of those that are left, cannot."""
    receivers: int
    satisfied: bool
    """Whether as many as needed have a result."""
    task_id: TaskId


class GatheredMember(Model):
    handoff_id: HandoffId | None = None
    output: ResultReport | None = None
    state: str
    """`completed`, `open`, `dead_lettered`, `failed` or `cancelled`."""
    task_id: TaskId
    to: Target | None = None


class Groups(Model):
    """Dead letters by what they died of, the largest group first."""

    groups: list[DeadLetterGroup]


class Handoff(Model):
    ack_left_ms: int | None = None
    """How much time is left for somebody to claim it."""
    artifacts: list[ArtifactName] = Field(default_factory=list)
    """Pieces of work that are there before the result is."""
    attempts: list[Attempt]
    contract: Contract | None = None
    """What was agreed besides the terms."""
    control: Control | str
    correlation_id: CorrelationId | None = None
    """The name by which the sender finds everything that belongs together."""
    counters: list[CounterOffer] = Field(default_factory=list)
    """On which other terms agents would take it."""
    dead_letter: DeadLetterReason | None = None
    declined_by: list[AgentId] = Field(default_factory=list)
    delivered_at: Timestamp | None = None
    due_at: Timestamp | None = None
    """When a scheduled handoff becomes claimable."""
    ended_at: Timestamp | None = None
    envelope: Hash
    expires_at: Timestamp
    failures: int
    """Attempts that ended in a declared failure."""
    from_agent: AgentId
    handoff_id: HandoffId
    holder: Holder | None = None
    hop: int
    kept_for: KeptFor | None = None
    """For whom an answer is kept."""
    lifted: list[LiftedConstraint] = Field(default_factory=list)
    """Constraints that were lifted since the envelope was made; they do not bind the next one."""
    losses: int
    """Leases that were lost."""
    offered_at: Timestamp
    ordering_key: OrderingKey | None = None
    priority: int
    question: Asks | None = None
    """What its holder asks and waits for."""
    redrive_of: HandoffId | None = None
    result: Hash | None = None
    """The address of the result."""
    retracted: bool | None = None
    """Whether its result was taken back."""
    reviewer: AgentId | None = None
    """Who decides on this dead letter just now."""
    state: str
    status: str
    """What the sender may rely on: `stored`, `delivered`, `claimed`, `in_progress`, `done`,
    `failed`, `cancelled`, `rejected` or `dead_lettered`. Only what has a result is `done`."""
    task_id: TaskId
    terms: Terms
    to: Target
    tried: list[Target] = Field(default_factory=list)
    """Targets that could not or would not do it, the first one first."""
    trim_regret: list[DocumentId] = Field(default_factory=list)
    """Memories that the receiver fetched because the envelope had passed less of them: what
    was trimmed and missed."""


class HandoffWithResult(Model):
    """A handoff, and its result if it has one."""

    ack_left_ms: int | None = None
    """How much time is left for somebody to claim it."""
    artifacts: list[ArtifactName] = Field(default_factory=list)
    """Pieces of work that are there before the result is."""
    attempts: list[Attempt]
    contract: Contract | None = None
    """What was agreed besides the terms."""
    control: Control | str
    correlation_id: CorrelationId | None = None
    """The name by which the sender finds everything that belongs together."""
    counters: list[CounterOffer] = Field(default_factory=list)
    """On which other terms agents would take it."""
    dead_letter: DeadLetterReason | None = None
    declined_by: list[AgentId] = Field(default_factory=list)
    delivered_at: Timestamp | None = None
    due_at: Timestamp | None = None
    """When a scheduled handoff becomes claimable."""
    ended_at: Timestamp | None = None
    envelope: Hash
    expires_at: Timestamp
    failures: int
    """Attempts that ended in a declared failure."""
    from_agent: AgentId
    handoff_id: HandoffId
    holder: Holder | None = None
    hop: int
    kept_for: KeptFor | None = None
    """For whom an answer is kept."""
    lifted: list[LiftedConstraint] = Field(default_factory=list)
    """Constraints that were lifted since the envelope was made; they do not bind the next one."""
    losses: int
    """Leases that were lost."""
    offered_at: Timestamp
    ordering_key: OrderingKey | None = None
    output: ResultReport | None = None
    """The result itself. Where many would be too much for one reply, the later ones are left
    out: `result` is there without it, and the handoff by itself shows it."""
    priority: int
    question: Asks | None = None
    """What its holder asks and waits for."""
    redrive_of: HandoffId | None = None
    result: Hash | None = None
    """The address of the result."""
    retracted: bool | None = None
    """Whether its result was taken back."""
    reviewer: AgentId | None = None
    """Who decides on this dead letter just now."""
    state: str
    status: str
    """What the sender may rely on: `stored`, `delivered`, `claimed`, `in_progress`, `done`,
    `failed`, `cancelled`, `rejected` or `dead_lettered`. Only what has a result is `done`."""
    task_id: TaskId
    terms: Terms
    to: Target
    tried: list[Target] = Field(default_factory=list)
    """Targets that could not or would not do it, the first one first."""
    trim_regret: list[DocumentId] = Field(default_factory=list)
    """Memories that the receiver fetched because the envelope had passed less of them: what
    was trimmed and missed."""
    waits_for: list[WaitsFor] = Field(default_factory=list)
    """What it waits for, and why; shown for one handoff by itself."""


class Handoffs(Model):
    handoffs: list[Handoff]
    next: HandoffId | None = None
    """Give this as `before` to get the next page."""


class Hangs(Model):
    """What a task hangs from."""

    above: list[TaskId]
    """The tasks above it, the nearest first."""
    deadline: Timestamp | None = None
    """No hop of it may end later than this."""
    on_hold: HandoffId | None = None
    """The dead letter above it that somebody has to decide on before it goes on."""
    on_parent_end: OnParentEnd | str | None = None
    """What becomes of it when that ends without a result."""
    under: HandoffId | None = None
    """The hop of the task above it that it was opened for, if one was under way."""


class Health(Model):
    broker_key_id: KeyId | None = None
    """The id of the broker's key: the audience that signed requests name."""
    reason: str | None = None
    status: str


class Heartbeat(Model):
    """Extends the lease, and says which messages were taken note of."""

    acknowledge: int | None = None
    """Messages up to this number were taken note of; they do not come again."""
    claim_id: ClaimId
    fence: Fence


class Held(Model):
    """What shows that somebody holds a claim."""

    claim_id: ClaimId
    fence: Fence


class Holder(Model):
    """Who holds the claim. The claim id is the holder's secret."""

    agent: AgentId
    fence: Fence
    lease_left_ms: int
    work_left_ms: int


class HolderMessage(Model):
    """A word to whoever holds the work."""

    acknowledged_at: Timestamp | None = None
    acknowledged_by: AgentId | None = None
    """Who took note of it, and when."""
    at: Timestamp
    by: AgentId
    details: dict[str, Any] = Field(default_factory=dict)
    number: int
    """From 1, in the order in which they were sent."""
    text: str | None = None
    """The message itself; missing if it was erased."""


class HolderMessages(Model):
    correlation_id: CorrelationId | None = None
    messages: list[HolderMessage]


class HolderQuestion(Model):
    """A question of a holder, and what became of it."""

    answer: Any = None
    answer_by: Timestamp | None = None
    """By when it must be answered."""
    answered_at: Timestamp | None = None
    answered_by: AgentId | None = None
    """Who answered; nobody if the asker's default took the place of an answer."""
    asked_at: Timestamp
    asked_by: AgentId
    attempt: int
    """The attempt in which it was asked."""
    default: Any = None
    """The answer that holds if nobody gives one in time."""
    details: dict[str, Any] = Field(default_factory=dict)
    handoff_id: HandoffId
    kind: QuestionKind | str
    question: Hash
    """The address of the question."""
    schema_: Any = Field(default=None, alias="schema")
    """What the answer must fit."""
    task_id: TaskId
    text: str | None = None
    """The question itself; missing if it was erased."""


class ImportChain(Model):
    """Keeps a chain that another broker exported, for reading."""

    by: AgentId
    file: str
    """The exact text of the file, since its hashes cover bytes."""
    project: Project | None = None
    """Who may read it: those who read the project; without one, whoever imports it."""


class ImportedChain(Model):
    """An imported chain. It is no task here."""

    chain_id: DocumentId
    events: int | None = None
    imported_at: Timestamp
    imported_by: Actor
    scope: Scope
    task_id: TaskId | None = None
    """The task that it is about, at the broker that exported it; absent if it was erased."""
    tasks: int | None = None


class ImportedChainWithFile(Model):
    """An imported chain. It is no task here."""

    chain_id: DocumentId
    events: int | None = None
    file: str | None = None
    """The exact text of the file."""
    imported_at: Timestamp
    imported_by: Actor
    scope: Scope
    task_id: TaskId | None = None
    """The task that it is about, at the broker that exported it; absent if it was erased."""
    tasks: int | None = None
    verdict: ChainVerdict | None = None


class ImportedChains(Model):
    chains: list[ImportedChain]
    next: Cursor | None = None
    """Give this as `before` to get the next page."""


class IssueToken(Model):
    """Issues a token."""

    agent_id: AgentId
    """For whom a bearer token speaks; who may enroll with a join token."""
    expires_in_ms: int | None = None
    """The same, from now."""
    purpose: Purpose | str
    """What it is for: to join, or to act."""
    rules: list[Rule]
    """What it allows at most; for a join token, what the agent may do once it is enrolled."""


class IssuedToken(Model):
    """A token without its secret."""

    agent_id: AgentId
    ended_at: Timestamp | None = None
    """When it was spent or revoked, by itself or with the token that it was made from."""
    expires_at: Timestamp | None = None
    issued_at: Timestamp
    made_by: AgentId | None = None
    """Who made it; absent if the broker did."""
    made_from: Origin | None = None
    """The key or the token that it was made with. What was made with a token ends with it."""
    purpose: Purpose | str
    rules: list[Rule]
    text: str
    """The token itself. It is shown this once."""
    token_id: TokenId


class Join(Model):
    """Enrolls a key with a join token. Needs no other proof of who asks."""

    agent_id: AgentId
    """Its name."""
    key: PublicKey
    """The public key."""
    proof: Signature
    """A signature by the key over the agent's name and the key."""
    token: str
    """The invitation."""


class JoinGap(Model):
    """Something that work has to do without."""

    reason: str
    reference: str


class JoinedResult(Model):
    """What one of the tasks has come to that work waited for."""

    came_to: CameTo | str
    handoff_id: HandoffId | None = None
    """Its last handoff."""
    output: dict[str, Any] | None = Field(default_factory=dict)
    """The result itself, where there was room for it. It is data that others wrote."""
    result: Hash | None = None
    """The address of its result."""
    task_id: TaskId


class JoinedTask(Model):
    """One of the tasks that were waited for."""

    came_to: CameTo | str
    handoff_id: HandoffId | None = None
    """Its last handoff, if it was handed on at all."""
    result: Hash | None = None
    """The address of its result."""
    result_at: Position | None = None
    """Where the result is kept."""
    task_id: TaskId


class Kept(Model):
    id: str
    name: str | None = None
    """Its short name in the text, such as `m3`."""
    pinned: bool | None = None
    revision: int
    rung: Rung | str


class KeptFor(Model):
    """Who alone may claim, because it asked."""

    agent: AgentId
    left_ms: int
    """For how long."""


class Key(Model):
    """An idempotency key and the request it stands for."""

    key: IdempotencyKey
    request: Hash
    """The hash of the request's body: the same key with another body is a conflict."""


class Latency(Model):
    """In seconds, as the bounds of the histogram tell it."""

    count: int
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class LeftOut(Model):
    """What was left out before there was anything to render: of what an envelope only refers
    to."""

    items: int
    kinds: dict[str, Any] = Field(default_factory=dict)
    """How many of each kind."""
    lines: int | None = None
    """Lines of the state and the history."""
    tokens: int


class Length(Model):
    chars_max: int | None = None
    chars_min: int | None = None
    words_max: int | None = None


class Lift(Model):
    id: Hash
    reason: str


class LiftConstraint(Model):
    """Ends a constraint of a task, from its next envelope on."""

    by: AgentId
    """Who issued it, or the coordinator of the task."""
    constraint: Hash
    """The id of the constraint."""
    reason: str
    """Why; it stands in the log."""


class Lifted(Model):
    by: AgentId
    hop: int
    """The hop from which on it no longer binds."""
    id: Hash
    reason: str
    text: str


class LiftedConstraint(Model):
    """A constraint that does not bind the next envelope any more."""

    by: AgentId
    constraint: Hash


class Limits(Model):
    """When a breaker opens, and for how long."""

    failures: int
    """How many handoffs in a row must use up their tries before nothing more is sent."""
    open_ms: int
    """How long nothing is sent, in milliseconds."""


class LogCheckpoint(Model):
    at: Timestamp
    key: str
    """In hex."""
    log_hash: Hash
    position: Position
    signature: str


class Memories(Model):
    memories: list[Memory]
    next: Cursor | None = None
    """Where the next page begins."""


class Memory(Model):
    content: Hash
    """The address of the revision's text."""
    created_at: Timestamp
    created_by: Actor
    deleted: Tombstone | None = None
    erased: bool | None = None
    """Whether the text of this revision was erased."""
    latest: int
    line: str | None = None
    """One line: its title, or its first words."""
    memory_id: DocumentId
    pinned: bool
    priority: Priority | str
    revision: int
    """The revision that is shown, and the last one there is."""
    scope: Scope
    score: int | None = None
    """How well it answers the question, if one was asked."""
    summary: str | None = None
    superseded_by: DocumentId | None = None
    tags: list[str] = Field(default_factory=list)
    text: str | None = None
    title: str | None = None
    warnings: list[Warning] = Field(default_factory=list)
    written_at: Timestamp
    written_by: Actor


class MemoryRef(Model):
    freshness: Freshness | str = "latest"
    id: str
    revision: int | None = None
    title: str | None = None


class Message(Model):
    from_agent: AgentId
    intent: str
    """The user's own words."""
    payload: dict[str, Any] | None = Field(default_factory=dict)
    """What was told, as one of the receivers got it."""
    position: Cursor
    published_at: Timestamp
    task_id: TaskId


class Messages(Model):
    """What was told on a channel."""

    messages: list[Message]
    missed: Missed | None = None
    """Said where messages before these may be missing: after a restore, or a failover of the
    database that lost some."""
    next: Cursor
    """Give this as `after` to read on."""


class Missed(Model):
    """Told on the stream of events, as an event `missed`, where it cannot be promised that a
    follower was told everything: old history was dropped, or a failover of the database
    lost the log's end."""

    after: Cursor
    """Up to where it was told."""
    resume_after: Cursor
    """It goes on after this. What is known from events between it and `after` has to be read
    anew."""


class Moved(Model):
    """Where a handoff is after a call."""

    correlation_id: CorrelationId | None = None
    handoff_id: HandoffId
    state: str
    status: str
    task_id: TaskId


class NewDecision(Model):
    """Adds to a project's decision log."""

    by: AgentId
    decision: str
    """What was decided."""
    key: DecisionKey
    """The question that it settles."""
    supersedes: int | None = None
    """The number of the decision that no longer holds."""
    why: str | None = None
    """What speaks for it."""


class NewGap(Model):
    reason: str | None = None
    reference: str


class NewMemory(Model):
    """Keeps a memory."""

    by: AgentId
    id: DocumentId | None = None
    """The name it is to have, such as `ms-4821`; the broker chooses one without it."""
    idempotency_key: IdempotencyKey | None = None
    """Makes it safe to repeat: the same request with the same key is carried out once."""
    pinned: bool | None = None
    """Pinned memories always travel."""
    priority: Priority | str = "normal"
    """0 to 9; higher ones are claimed first."""
    scope: Scope | None = None
    """What it is about: a project, a task or an agent. The writer itself without it."""
    summary: str | None = None
    """A few sentences for whoever has no room for all of it."""
    tags: list[str] = Field(default_factory=list)
    """Words to find it by; `kind:log` says what kind it is."""
    text: str
    """The whole text."""
    title: str | None = None
    """A line that says what it is about."""


class NewStep(Model):
    action: str
    decision: str | None = None
    memory_id: str | None = None
    why: str | None = None


class NoticeTaken(Model):
    """A broker tells people of an alert from here on, and no other until then."""

    by: str
    rule: str
    target: str | None = None
    """As metrics call it: `agent:` or `capability:` and the name."""
    until: Timestamp


class NoticeTold(Model):
    """People were told of an alert, or could not be."""

    fires: bool
    problem: str | None = None
    """Why it was not sent everywhere."""
    rule: str
    sent: bool
    since: Timestamp
    target: str | None = None
    """As metrics call it: `agent:` or `capability:` and the name."""
    tries: int


class Observed(Model):
    """How an agent fares in one capability, beside what it promises."""

    breaks_sla: bool
    """Whether it falls short of that."""
    capability: Capability | None = None
    """Absent for work that named none."""
    declared_sla: float | None = None
    """What the manifest promises."""
    late: int
    """Results that took longer than the agent's own `timeout_seconds`."""
    losses: int
    """Attempts that were lost by silence or took longer than they might."""
    mean_ms: int
    recent_successes: int
    recent_tries: int
    """Of the last attempts, at most 64: how many there were and how many ended in a result."""
    successes: int
    tries: int


class Offer(Model):
    """Offers work to an agent, or to any agent with a capability."""

    action: Action | str = "request"
    """What the receiver should do with it; a first offer is a `request`."""
    add_constraints: Any = None
    """Adds to what binds, as a list or a map."""
    after: After | None = None
    """Tasks that must have a result before this can be claimed."""
    alternatives: list[str] = Field(default_factory=list)
    """What was considered and not taken, and why not."""
    approvers: list[AgentId] = Field(default_factory=list)
    """Who may approve it: nobody else then, and each of them is told that it waits. Neither
    the sender nor the receiver."""
    ask: str | None = None
    """What this receiver must do."""
    assumptions: list[str] = Field(default_factory=list)
    """What was taken for granted and not checked."""
    budget: Budget | None = None
    """What the task, with everything below it, may spend from here on. Every result and
    failure that reports its usage makes it less; a task with nothing left takes no more
    hops."""
    budget_tokens: int | None = None
    """How many tokens the work may use."""
    capability: Capability | None = None
    """What is to be done, where `to` names an agent: its manifest says what goes in and comes
    out."""
    constraints: Any = None
    """What binds everybody from here on. Without it, what bound before still does. A list says
    all of it: one that leaves out or rewords what bound before is refused. A plain map,
    such as `{"language": "python", "max_tokens": 4000}`, adds to it."""
    context: list[ContextItem] = Field(default_factory=list)
    """Memories that are passed along, in full or in short; `/v1/assemble` makes them."""
    context_manifest: Hash | None = None
    """The address of the list of what was passed, as `/v1/assemble` gives it."""
    control: Control | str = "passed"
    """`passed` transfers the task; `awaited` calls: the work is a task below the sender's own."""
    coordinator: Coordinator | None = None
    """Who decides about a new task when things go wrong, and is told of every failure."""
    correlation_id: CorrelationId | None = None
    """A name by which the sender finds everything that belongs together."""
    deadline: Timestamp | None = None
    """When the work must be finished; past it the handoff is dead-lettered."""
    decisions: list[SaidDecision] = Field(default_factory=list)
    """Decisions that are new."""
    deferred: list[str] = Field(default_factory=list)
    """Cases that were seen and left for later."""
    envelope_version: str | None = None
    """The version that the sender speaks. Members that are not known here are kept if it is a
    newer minor, and are a mistake otherwise."""
    expected_output: ExpectedOutput | None = None
    """What is wanted back; a result that does not fit is refused."""
    expires_in_ms: int | None = None
    """The same as a span from now. The earlier of the two counts; 24 hours by default."""
    fallbacks: list[Target] = Field(default_factory=list)
    """Who is asked next, in this order, if the receiver cannot or will not do it: by name, or
    anybody with a capability."""
    from_agent: AgentId
    """Who sends it. A task is handed on by its owner."""
    gaps: list[str | NewGap] = Field(default_factory=list)
    """References that could not be resolved."""
    history: list[NewStep] = Field(default_factory=list)
    """What was done and is not in the history yet."""
    idempotency_key: IdempotencyKey | None = None
    """The same key with the same body gives the first reply again; with another body, a
    conflict."""
    intent: str | None = None
    """The user's own words. Needed for a new task; from then on the broker carries them."""
    lift_constraints: list[Lift] = Field(default_factory=list)
    """Ends constraints. Only who issued one, or the task's coordinator, can do that."""
    majors: list[int] = Field(default_factory=list)
    """Which majors of the envelope the sender can give."""
    memory_refs: list[MemoryRef] = Field(default_factory=list)
    """Memories that the receiver can fetch."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """For monitoring only."""
    needs_approval: bool | None = None
    """Hold it back until somebody other than the sender approves."""
    on_parent_end: OnParentEnd | str | None = None
    """Of a call: what becomes of it when the caller's own work ends without a result. `cancel`
    by default; with `let_go` it goes on."""
    open_decisions: list[str | Question] = Field(default_factory=list)
    """Questions that are new and that somebody must decide."""
    ordering_key: OrderingKey | None = None
    """Handoffs with the same key are worked on one after the other."""
    output_schema: Any = None
    """A JSON Schema that the result must fit: `expected_output.schema` in short."""
    payload: dict[str, Any]
    """What to work on: an object with a `type`."""
    priority: int | None = None
    """0 to 9; higher is claimed first. 5 by default."""
    project: Project | None = None
    """What a new task belongs to. Tasks below it belong there too."""
    read_back: bool | None = None
    """Lets the claim count only once the receiver has repeated what binds it."""
    reading: Reading | None = None
    """What was chosen, as `/v1/assemble` gives it."""
    resolved_gaps: list[str] = Field(default_factory=list)
    """References of gaps that are resolved now."""
    route: Route | None = None
    """How one of the agents with the capability is chosen. Without it, all of them may claim."""
    signed: Signed | None = None
    """The sender's signature over what it says, which travels in the envelope."""
    start_in_ms: int | None = None
    """Do not let it be claimed before this much time has passed."""
    state: TaskProgress | None = None
    """How far the task is: what is done, what remains."""
    summary: str | None = None
    """What the task is about now, in a few sentences."""
    task_id: TaskId | None = None
    """The task to hand on (`control: passed`) or to do the work for (`control: awaited`).
    Without it a new task is opened."""
    terms: TermsPatch | None = None
    """How often, how long and within what time it is tried."""
    to: Target
    """An agent by name, or any agent with a capability."""
    tried: list[str] = Field(default_factory=list)
    """What was tried and did not work, so that nobody tries it again."""


class OfferBatch(Model):
    """Offers many at once. Each stands on its own; all are synced together."""

    offers: list[AnyOffer]
    """Each is carried out on its own."""


class OfferReply(Model):
    """What was stored. The same request with the same idempotency key gets these same facts
    again."""

    correlation_id: CorrelationId | None = None
    envelope: Hash
    expires_at: Timestamp
    handoff_id: HandoffId
    hop: int
    listening: bool
    """Whether somebody is there who takes work for it. If not, it waits."""
    offered_at: Timestamp
    paused: PausedUntil | None = None
    """Somebody paused its target: it waits until that is over."""
    routed: Why | None = None
    """How the agent was chosen."""
    status: str
    """Always `stored`: synced to disk, not yet fetched by anybody."""
    task_id: TaskId
    to: Target
    """Who is to do the work; the agent that was chosen, if one was."""
    warnings: list[ReceiptWarning] = Field(default_factory=list)
    """What its sender may want to do otherwise: nothing of it keeps the offer back."""


class Offered(Model):
    """The facts a handoff starts with."""

    amends: HandoffId | None = None
    """The dead letter that this handoff takes the place of, with an envelope of its own."""
    blocked: bool | None = None
    """Whether it has to be approved for no other reason than what its task is built on."""
    contract: Contract | None = None
    envelope: Hash
    expires_at: Timestamp
    from_: AgentId = Field(alias="from")
    hop: int
    key: Key | None = None
    lifted: list[Hash] = Field(default_factory=list)
    """Constraints that this hop lifts; the envelope says why."""
    needs_approval: bool | None = None
    not_before: Timestamp | None = None
    opens: Opened | None = None
    """Present if this offer also opened its task."""
    ordering_key: OrderingKey | None = None
    priority: int
    probe: bool | None = None
    """Whether it is let through to see how its target fares."""
    redrive_of: Redrive | None = None
    """The dead letter that this handoff sends on its way again, and where its envelope is
    kept."""
    terms: Terms
    to: Target


class OpenDecision(Model):
    by: AgentId
    id: Hash
    """The SHA-256 of the question."""
    options: list[str] = Field(default_factory=list)
    question: str


class OpenQuestion(Model):
    """A question that waits for its answer, with what somebody must know to answer it."""

    answer: Any = None
    answer_by: Timestamp | None = None
    """By when it must be answered."""
    answer_left_ms: int
    """How much time is left to answer: until `answer_by` or the hard deadline of the attempt."""
    answered_at: Timestamp | None = None
    answered_by: AgentId | None = None
    """Who answered; nobody if the asker's default took the place of an answer."""
    asked_at: Timestamp
    asked_by: AgentId
    attempt: int
    """The attempt in which it was asked."""
    correlation_id: CorrelationId | None = None
    default: Any = None
    """The answer that holds if nobody gives one in time."""
    details: dict[str, Any] = Field(default_factory=dict)
    from_agent: AgentId
    handoff_id: HandoffId
    kind: QuestionKind | str
    question: Hash
    """The address of the question."""
    schema_: Any = Field(default=None, alias="schema")
    """What the answer must fit."""
    task_id: TaskId
    text: str | None = None
    """The question itself; missing if it was erased."""
    to: Target


class OpenSession(Model):
    """Opens a session."""

    expires_in_ms: int | None = None
    """How long it lasts; eight hours without it, and at most."""


class OpenTask(Model):
    """Opens a task that its owner keeps for now."""

    coordinator: Coordinator | None = None
    """Who decides about it when things go wrong, and is told of every failure; its owner
    without it."""
    correlation_id: CorrelationId | None = None
    """A name by which the sender finds everything that belongs together."""
    from_agent: AgentId
    """Who opens the task and owns it until somebody claims it."""
    idempotency_key: IdempotencyKey | None = None
    """Makes it safe to repeat: the same request with the same key is carried out once."""
    intent: str | None = None
    """The user's own words. They reach every agent of the chain unchanged. Below another task
    they are that one's, and need not be said."""
    on_parent_end: OnParentEnd | str | None = None
    """What becomes of it when the task above it ends without a result. `cancel` by default;
    with `let_go` it goes on."""
    parent_task_id: TaskId | None = None
    """The task this one is part of; `from_agent` must own it. What binds that one binds this
    one too, and it ends no later."""
    project: Project | None = None
    """What the task belongs to; without it, what its parent belongs to."""


class Opened(Model):
    """The facts a task starts with."""

    branch_of: BranchOf | None = None
    """The hop of another task from which this one begins anew."""
    channel: ChannelId | None = None
    """The channel on which it was told to many."""
    coordinator: AgentId | None = None
    """Who decides about it when things go wrong; without one, its opener does."""
    correlation_id: CorrelationId | None = None
    follows: Follows | None = None
    """The envelope that its first one follows."""
    hangs: Hangs | None = None
    """What it owes to the tasks above it."""
    intent: Hash
    key: Key | None = None
    owner: AgentId
    parent_task_id: TaskId | None = None
    project: Project | None = None


class Origin(Model):
    """What something was made with."""

    key: KeyId | None = None
    token: TokenId | None = None


class Overview(Model):
    """The numbers of the whole log, and how things stand now; of a tenant, of its own targets."""

    completeness: float | None = None
    """How much of what there was to pass got into envelopes, from 0 to 1, where senders were
    told."""
    dead_lettered: int
    delivery: Latency
    """From an offer to its first claim."""
    ended: int
    """How many handoffs came to their end, and how many of them as dead letters."""
    failure_rate: float | None = None
    """The share of handoffs that ended as dead letters."""
    firing: int
    """Alerts that are on."""
    hop_depth: float | None = None
    """How many hops chains had on average when their task was completed; of all tenants
    together."""
    now: Timestamp
    targets: list[TargetOverview]
    """Targets with something that waits, is worked on, failed or is not sent to, those first
    that need somebody most."""
    token_utilisation: float | None = None
    """How full token budgets were, from 0 to 1, where senders were told."""


class PartOfMoved(Model):
    correlation_id: CorrelationId | None = None
    handoff_id: HandoffId | None = None
    state: str | None = None
    status: str | None = None
    task_id: TaskId | None = None
    error: Problem | None = None


class PartOfOfferReply(Model):
    correlation_id: CorrelationId | None = None
    envelope: Hash | None = None
    expires_at: Timestamp | None = None
    handoff_id: HandoffId | None = None
    hop: int | None = None
    listening: bool | None = None
    """Whether somebody is there who takes work for it. If not, it waits."""
    offered_at: Timestamp | None = None
    paused: PausedUntil | None = None
    """Somebody paused its target: it waits until that is over."""
    routed: Why | None = None
    """How the agent was chosen."""
    status: str | None = None
    """Always `stored`: synced to disk, not yet fetched by anybody."""
    task_id: TaskId | None = None
    to: Target | None = None
    """Who is to do the work; the agent that was chosen, if one was."""
    warnings: list[ReceiptWarning] = Field(default_factory=list)
    """What its sender may want to do otherwise: nothing of it keeps the offer back."""
    error: Problem | None = None


class Passed(Model):
    """One hop of the way."""

    from_: AgentId = Field(alias="from")
    hop: int
    payload: Hash
    """The address of what was passed."""
    to: Target


class PauseTarget(Model):
    """Lets nothing be claimed of an agent or a capability. Offers to it are taken and wait."""

    for_ms: int | None = None
    """The same as a span from now."""
    target: Target
    until: Timestamp | None = None
    """When it ends by itself; without either of the two, when somebody resumes it."""


class PausedUntil(Model):
    """Until when nothing is claimed of a target."""

    since: Timestamp
    until: Timestamp | None = None
    """Without it, until somebody resumes it."""


class Peek(Model):
    """Looks at what waits, without claiming."""

    agent: AgentId
    """Who asks."""
    capabilities: list[Capability] = Field(default_factory=list)
    """What it can do; work that is offered to one of these is found too."""
    majors: list[int] = Field(default_factory=list)
    """Which majors of the envelope the agent takes; without any, what its manifest says."""
    max: int = 1
    """How many at most."""


class Peeked(Model):
    waiting: list[Waiting]


class Pipeline(Model):
    first: str
    """The stage that a task begins with."""
    name: str
    stages: list[PipelineStage]
    version: int
    """Rises with every change, so that a chain can tell by which one it runs."""


class PipelineFan(Model):
    """Several stages at once, each with a task of its own below this one."""

    deadline_ms: int | None = None
    """When it goes on in any case, with what there is by then."""
    join: str
    """The stage that goes on with what they found."""
    need: int | None = None
    """How many of them must have a result; all without it."""
    stages: list[str]


class PipelineMember(Model):
    """What a member of the payload must be."""

    at_least: float | None = None
    at_most: float | None = None
    equals: Any = None
    exists: bool | None = None
    one_of: list[Any] = Field(default_factory=list)
    path: str
    """Where it is, as a JSON pointer."""


class PipelineRule(Model):
    when: PipelineWhen | None = None
    """When it fits; always without it."""
    to: str | None = None
    fan: PipelineFan | None = None


class PipelineStage(Model):
    ack_ms: int | None = None
    """How long it may wait to be claimed."""
    ask: str | None = None
    """What this stage must do, in words."""
    attempts: int | None = None
    """How many attempts may fail."""
    budget_tokens: int | None = None
    """How many tokens its work may use."""
    fallbacks: list[Target] = Field(default_factory=list)
    """Who is asked next if that one cannot or will not do it."""
    name: str
    needs_approval: bool | None = None
    """Whether somebody has to approve before it begins."""
    next: list[PipelineRule]
    """What comes next: the first rule that fits. The last one must fit everything."""
    timeout_ms: int | None = None
    """How long one attempt may take."""
    to: Target


class PipelineWhen(Model):
    action: list[Action | str] = Field(default_factory=list)
    """One of these actions."""
    payload: list[PipelineMember] = Field(default_factory=list)
    """All of these members of the payload."""


class Pipelines(Model):
    """A file of pipelines."""

    pipelines: list[Pipeline]


class PopulationBehind(Model):
    handoff_id: HandoffId
    position: Position
    task_id: TaskId


class PopulationFinding(Model):
    agents: list[str]
    """The agents that it is about, the one that acts first; none if it is about all of them."""
    behind: list[PopulationBehind]
    """The last handoffs behind it."""
    effect: float
    """How large it is, in the unit beside it."""
    kind: PopulationKind | str
    n: int
    """How many choices, messages, hops or values of theirs there were."""
    p: float
    """How often chance alone gives something as strong anywhere in a population like this, as
    a share."""
    since: Timestamp | None = None
    """From where on it is so, as far as that can be told."""
    summary: str
    """One sentence."""
    unit: str


class PopulationGroup(Model):
    agents: list[str]
    findings: int
    """How many findings link them."""
    kind: PopulationKind | str


class PopulationLooked(Model):
    false_alarm_rate: float
    """How often an honest population may raise an alarm of this kind, as a share."""
    kind: PopulationKind | str
    n: int
    """How many choices, messages, chains or values were looked at."""
    permutations: int
    """How often the data were shuffled; 0 if the test needs none."""
    tested: int
    """How many agents, pairs or measures were tested at once."""
    unjudged: str | None = None
    """Why nothing could be judged, if so."""


class PopulationReport(Model):
    """What agents did in a span of the log, and what of it is unusual."""

    agents: int
    """How many agents took part, as far as they are told apart."""
    baseline: PopulationSpan | None = None
    """What counts as usual; without it, agents are compared with each other alone."""
    baseline_chosen: bool
    """Whether somebody chose the baseline; else it is the first third of what was kept."""
    bounds_reached: list[str] = Field(default_factory=list)
    """What was not told apart or left out because there was too much of it."""
    current: PopulationSpan
    """What was compared with it."""
    events: int
    """How many events were read."""
    false_alarm_rate: float
    """How often an honest population may raise any alarm at all, as a share."""
    findings: list[PopulationFinding]
    """The strongest first, of each kind."""
    groups: list[PopulationGroup] = Field(default_factory=list)
    """Agents whose findings hang together, by kind."""
    handoffs: int
    """How many handoffs they offered."""
    kept: int
    """How many of them were kept to be looked at."""
    kept_every: int
    """One of so many handoffs was kept; 1 means all of them."""
    looked: list[PopulationLooked]
    """What was looked for, whether it could be judged, and how."""
    seed: int
    """The seed of the permutations."""


class PopulationSpan(Model):
    from_: Timestamp = Field(alias="from")
    handoffs: int
    until: Timestamp


class Problem(Model):
    """What every error looks like."""

    code: str
    """Stable; has a page of its own under `/docs/errors/`."""
    details: dict[str, Any] = Field(default_factory=dict)
    hint: str
    """What to do next."""
    message: str
    """What failed and why."""
    request_id: str | None = None
    retryable: bool
    """Whether the same request may succeed later."""


class Progress(Model):
    claim_id: ClaimId
    fence: Fence
    note: str | None = None
    """What was done, or is being done."""
    percent: int | None = None
    """0 to 100."""


class ProgressNote(Model):
    at: Timestamp
    note: str
    percent: int | None = None


class ProjectConstraint(Model):
    """Something that holds for all work of a project."""

    kind: ConstraintKind | str
    text: str


class ProjectDecision(Model):
    """One entry of the decision log."""

    at: Timestamp
    by: AgentId
    decision: str
    key: DecisionKey
    """The question that it settles."""
    number: int
    """Its number in the log, from 1."""
    superseded_by: int | None = None
    supersedes: int | None = None
    why: str | None = None


class ProjectState(Model):
    """Where a project stands."""

    branch: str | None = None
    files: list[str] = Field(default_factory=list)
    recent_changes: list[str] = Field(default_factory=list)
    summary: str | None = None


class Prompt(Model):
    """An envelope as a model reads it."""

    assembled_tokens: int
    """How many tokens of it are the assembled text, which is the same for every reader with
    room for it; the rest is about this handoff and this claim."""
    bound: int | None = None
    """How many tokens it could have; absent if nothing bounds it."""
    exact: bool
    """Whether that is the count itself and not an upper bound."""
    fetch: list[str] = Field(default_factory=list)
    """Where the rest of what the envelope did not pass whole is. Fetches from here are counted
    as the handoff's `trim_regret`."""
    left_out: LeftOut | None = None
    """What is not in the text."""
    messages: list[PromptMessage] = Field(default_factory=list)
    """The same as a message for the system and one for the user, if `form` is `messages`."""
    missing: list[str] = Field(default_factory=list)
    """The ids of what is not in it at all."""
    names: dict[str, Any] = Field(default_factory=dict)
    """What each short name in the text stands for."""
    prompt: str
    shortened: bool | None = None
    """Whether the assembled text is less than what its sender saw, for lack of room."""
    texts_left_out: int | None = None
    """How many texts about the handoff and the claim are cut or left out."""
    token_count: int
    tokenizer: Tokenizer
    """What it was counted in."""

    def __str__(self) -> str:
        return self.prompt


class PromptMessage(Model):
    """One message of a prompt."""

    content: str
    role: str
    """`system` or `user`."""


class Publication(Model):
    """Tells something to many: each receiver gets a handoff of its own, all in one step."""

    action: Action | str = "request"
    """What the receiver should do with it; a first offer is a `request`."""
    add_constraints: Any = None
    """Adds to what binds, as a list or a map."""
    alternatives: list[str] = Field(default_factory=list)
    """What was considered and not taken, and why not."""
    approvers: list[AgentId] = Field(default_factory=list)
    """Who may approve it: nobody else then. Neither the sender nor a receiver."""
    ask: str | None = None
    """What this receiver must do."""
    assumptions: list[str] = Field(default_factory=list)
    """What was taken for granted and not checked."""
    constraints: Any = None
    """What binds everybody from here on. Without it, what bound before still does. A list says
    all of it: one that leaves out or rewords what bound before is refused. A plain map,
    such as `{"language": "python", "max_tokens": 4000}`, adds to it."""
    context: list[ContextItem] = Field(default_factory=list)
    """Memories that are passed along, in full or in short; `/v1/assemble` makes them."""
    context_manifest: Hash | None = None
    """The address of the list of what was passed, as `/v1/assemble` gives it."""
    coordinator: Coordinator | None = None
    """Who decides if it fails; without it, who opened the task."""
    correlation_id: CorrelationId | None = None
    """A name by which the sender finds everything that belongs together."""
    deadline: Timestamp | None = None
    """When it must be claimed and done at the latest."""
    decisions: list[SaidDecision] = Field(default_factory=list)
    """Decisions that are new."""
    deferred: list[str] = Field(default_factory=list)
    """Cases that were seen and left for later."""
    expected_output: ExpectedOutput | None = None
    """What is wanted back; a result that does not fit is refused."""
    expires_in_ms: int | None = None
    """The same, from now."""
    from_agent: AgentId
    """Who sends it. A task is handed on by its owner."""
    gaps: list[str | NewGap] = Field(default_factory=list)
    """References that could not be resolved."""
    history: list[NewStep] = Field(default_factory=list)
    """What was done and is not in the history yet."""
    idempotency_key: IdempotencyKey | None = None
    """The same key with the same body gives the first reply again."""
    intent: str
    """The user's own words."""
    lift_constraints: list[Lift] = Field(default_factory=list)
    """Ends constraints. Only who issued one, or the task's coordinator, can do that."""
    memory_refs: list[MemoryRef] = Field(default_factory=list)
    """Memories that the receiver can fetch."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """For monitoring; no model reads it."""
    needs_approval: bool | None = None
    """It waits until somebody other than its sender approves it."""
    open_decisions: list[str | Question] = Field(default_factory=list)
    """Questions that are new and that somebody must decide."""
    ordering_key: OrderingKey | None = None
    """Handoffs with the same key are worked on one after the other."""
    payload: dict[str, Any]
    """What to work on: an object with a `type`."""
    priority: int | None = None
    """0 to 9; higher ones are claimed first."""
    project: Project | None = None
    """What the task belongs to."""
    read_back: bool | None = None
    """Lets the claim count only once the receiver has repeated what binds it."""
    reading: Reading | None = None
    """What was chosen, as `/v1/assemble` gives it."""
    receivers: list[AgentId] | None = Field(default_factory=list)
    """Who gets it; without them, whoever subscribes to the channel."""
    resolved_gaps: list[str] = Field(default_factory=list)
    """References of gaps that are resolved now."""
    state: TaskProgress | None = None
    """How far the task is: what is done, what remains."""
    summary: str | None = None
    """What the task is about now, in a few sentences."""
    terms: TermsPatch | None = None
    """How often, how long and within what time it is tried."""
    tried: list[str] = Field(default_factory=list)
    """What was tried and did not work, so that nobody tries it again."""


class Publish(Model):
    """Publishes an agent's manifest, its first or a new one."""

    manifest: Any
    """The manifest; its JSON Schema is `/v1/schemas/manifest.json`."""
    signed: Signed | None = None
    """The agent's signature over the manifest; needed if the agent has a key."""
    version: int | None = None
    """Publish only if the manifest so far has this version; 0 if there must be none."""


class Published(Model):
    channel: ChannelId
    correlation_id: CorrelationId | None = None
    handoffs: list[Told]
    position: Cursor
    repeated: bool
    """Whether this had been told before, by a request with the same key."""
    task_id: TaskId
    """The task of whoever publishes; each receiver has one below it."""


class PutBack(Model):
    """Gives claimed work back until a time."""

    claim_id: ClaimId
    fence: Fence
    for_ms: int | None = None
    """For how long nobody can claim it."""
    reason: str | None = None
    """Why; it stands in the log."""
    until: Timestamp | None = None
    """When it can be claimed again; give this or `for_ms`."""


class Question(Model):
    options: list[str] = Field(default_factory=list)
    question: str


class Questions(Model):
    next: HandoffId | None = None
    """Give this as `before` to get the next page."""
    questions: list[OpenQuestion]


class QueuedTask(Model):
    handoff_id: HandoffId | None = None
    opened_at: Timestamp
    owner: AgentId
    status: str | None = None
    """Where the handoff under way is."""
    task_id: TaskId
    to: Target | None = None


class Quotas(Model):
    """What a tenant may use. Without a number there is no limit."""

    in_flight: int | None = None
    """Handoffs that are not at their end."""
    requests_per_second: int | None = None
    """Requests per second, with a second's worth at once."""
    stored_bytes: int | None = None
    """Bytes of envelopes, results and other bodies."""


class ReadBack(Model):
    """What a receiver repeats before its claim counts."""

    constraints: list[Hash]
    """The ids of all constraints."""
    expected_output: Hash | None = None
    """The address of the expected output, if there is one."""


class Reading(Model):
    """What assembly chose. The items themselves, and the parts of them, are the envelope's
    `context`."""

    budget: int | None = None
    """What the whole prompt may have, with what a claim adds."""
    left_out: LeftOut | None = None
    """What was left out then."""
    mark: str
    """What the broker's lines begin with."""
    order: list[str]
    """The steps that were taken, in order: `l3` is the fourth line of the brief, `s2`, `u2`,
    `w2` the line, the summary and the whole of item m2, `p2.5` its fifth part."""
    strategy: Strategy | str
    token_count: int
    """How many tokens the text is."""
    tokenizer: Tokenizer
    """What it was counted in."""


class ReadyView(Model):
    """What can be started now, and what holds back the rest."""

    held: list[Waits]
    """Work that waits for something else, newest first."""
    ready: list[Waits]
    """Work that somebody may claim at this moment, newest first."""


class Receipt(Model):
    """How a budget was spent. `kept`, `demoted` and `dropped` together are all that was given."""

    budget: int | None = None
    """What the receiver can take in all; absent if there is no limit."""
    budget_for_everything: int
    """A budget that would have kept everything, reserves included."""
    completeness_per_mille: int
    """How much of what was asked for, and of what there is where it was looked, was read, in
    thousandths."""
    demoted: list[Demoted]
    """Less than that."""
    dropped: list[Dropped]
    """Nothing."""
    exact: bool
    """Whether that is the count itself and not an upper bound."""
    kept: list[Kept]
    """As much as the strategy passes of an item."""
    manifest_hash: Hash
    """The address of the list of everything that there is."""
    not_considered: int | None = None
    """How many items there are where it was looked that nobody looked at."""
    reserved_claim: int = 0
    """What is kept free for what a claim adds: who sends it, the payload, earlier attempts."""
    reserved_system_prompt: int
    reserved_work: int
    strategy: Strategy | str
    token_count: int
    """How many tokens the rendered text is."""
    tokenizer: Tokenizer
    unresolved: list[Unresolved]
    """What could not be read."""
    utilisation_per_mille: int
    """How much of what the reserves leave is used, in thousandths; 0 without a limit."""
    warnings: list[ReceiptWarning]


class ReceiptWarning(Model):
    code: WarningCode | str
    id: str | None = None
    text: str


class Record(Model):
    """One fact with who, when and where in its task's chain. This is the exact form that is
    stored, hashed and exported; its golden file is `tests/golden/events.jsonl`."""

    actor: Actor
    at: Timestamp
    handoff_id: HandoffId | None = None
    index: int
    """The how-manieth event of its task this is, from 0."""
    task_id: TaskId
    turn: Position | None = None
    """Whose turn it is by this in the queue that the handoff enters; without it, the position
    of the event is."""
    v: int
    """The version of this stored form."""
    branch_of: BranchOf | None = None
    """The hop of another task from which this one begins anew."""
    channel: ChannelId | None = None
    """The channel on which it was told to many."""
    coordinator: AgentId | None = None
    """Who decides about it when things go wrong; without one, its opener does."""
    correlation_id: CorrelationId | None = None
    follows: Follows | None = None
    """The envelope that its first one follows."""
    hangs: Hangs | None = None
    """What it owes to the tasks above it."""
    intent: Hash | None = None
    key: Key | None = None
    owner: AgentId | None = None
    parent_task_id: TaskId | None = None
    project: Project | None = None
    kind: str | None = None
    reason: Hash | None = None
    result: Hash | None = None
    letter: HandoffId | None = None
    deadline: Timestamp | None = None
    under: HandoffId | None = None
    amends: HandoffId | None = None
    """The dead letter that this handoff takes the place of, with an envelope of its own."""
    blocked: bool | None = None
    """Whether it has to be approved for no other reason than what its task is built on."""
    contract: Contract | None = None
    envelope: Hash | None = None
    expires_at: Timestamp | None = None
    from_: AgentId | None = Field(default=None, alias="from")
    hop: int | None = None
    lifted: list[Hash] = Field(default_factory=list)
    """Constraints that this hop lifts; the envelope says why."""
    needs_approval: bool | None = None
    not_before: Timestamp | None = None
    opens: Opened | None = None
    """Present if this offer also opened its task."""
    ordering_key: OrderingKey | None = None
    priority: int | None = None
    probe: bool | None = None
    """Whether it is let through to see how its target fares."""
    redrive_of: Redrive | None = None
    """The dead letter that this handoff sends on its way again, and where its envelope is
    kept."""
    terms: Terms | None = None
    to: Target | None = None
    agent: AgentId | None = None
    budget_tokens: int | None = None
    members: list[JoinedTask] = Field(default_factory=list)
    task: TaskId | None = None
    attempt: int | None = None
    """Which attempt this is, from 1."""
    claim_id: ClaimId | None = None
    fence: Fence | None = None
    hard_until: Timestamp | None = None
    """No heartbeat moves the claim past this."""
    lease_ms: int | None = None
    probes: Target | None = None
    """The agent that it is let through for, to see how it fares."""
    request_id: RequestId | None = None
    act: str | None = None
    """`accepted`, `completed` or `failed`."""
    body: Hash | None = None
    """The address of the result or the failure."""
    signed: Signed | None = None
    note: Hash | None = None
    percent: int | None = None
    answer_by: Timestamp | None = None
    """By when it must be answered; without it, until the hard deadline."""
    by_id: bool | None = None
    """Whether the asker comes for the answer by the handoff's id only."""
    has_default: bool | None = None
    """Whether the question says what holds if nobody answers in time."""
    keep_ms: int | None = None
    """For how long the answer is kept for the asker alone."""
    question: Hash | None = None
    question_kind: QuestionKind | str | None = None
    answer: Hash | None = None
    kept_until: Timestamp | None = None
    message: Hash | None = None
    number: int | None = None
    up_to: int | None = None
    artifact: Hash | None = None
    bytes: int | None = None
    name: ArtifactName | None = None
    type: str | None = None
    """What it is, such as `text/markdown`."""
    version: int | None = None
    """Which one of its name it is, from 1."""
    until: Timestamp | None = None
    calls: list[HandoffId] = Field(default_factory=list)
    """Calls that were made in the same step."""
    next: HandoffId | None = None
    """The transfer by which the task goes on; without it the task is completed too."""
    recovers: Target | None = None
    """The target that had failed before and works again."""
    by: HandoffId | None = None
    """The handoff that was worked on."""
    cost: Cost | None = None
    tokens: int | None = None
    class_: FailureClass | str | None = Field(default=None, alias="class")
    failure: Hash | None = None
    cause: LossCause | str | None = None
    due: Timestamp | None = None
    against: Target | None = None
    """The agent with which it used up its tries."""
    because: Hash | None = None
    """Why an approver said no; it is the body."""
    limits: Limits | None = None
    """By which numbers that counts, if not by the usual ones."""
    policy: TaintPolicy | str | None = None
    source: HandoffId | None = None
    releases: bool | None = None
    """Whether the handoff under way was kept back by this alone, and is no longer."""
    report: Hash | None = None
    changed: Hash | None = None
    """The address of what the reviewer changed; without it, nothing."""
    resources: list[Resource] = Field(default_factory=list)
    epoch: int | None = None
    change: str | None = None
    manifest: Hash | None = None
    standing: Standing | str | None = None
    token: TokenId | None = None
    """The join token that was spent."""
    new: PublicKey | None = None
    old: KeyId | None = None
    rules: list[Rule] = Field(default_factory=list)
    ended_at: Timestamp | None = None
    """Spent or revoked."""
    id: TokenId | None = None
    issued_at: Timestamp | None = None
    made_by: AgentId | None = None
    """Who made it; absent if the broker did."""
    made_from: Origin | None = None
    """What its maker showed. What was made with something ends with it."""
    purpose: Purpose | str | None = None
    secret: Hash | None = None
    """The hash of the secret."""
    quotas: Quotas | None = None
    target: Target | None = None
    pipeline: Pipeline | None = None
    code: str | None = None
    """The error's code."""
    operation: str | None = None
    """What it tried: an operation, and what that was about. Up to 0.1 a method and a path."""
    fires: bool | None = None
    moved_at: Timestamp | None = None
    """When it began or ended, by the times of the log."""
    rule: str | None = None
    since: Timestamp | None = None
    """Since when it fires, or fired."""
    value: str | None = None
    """What was found."""
    problem: str | None = None
    """Why it was not sent everywhere."""
    sent: bool | None = None
    tries: int | None = None
    content: Hash | None = None
    document: Kind | str | None = None
    pinned: bool | None = None
    revision: int | None = None
    scope: Scope | None = None
    settles: Settled | None = None
    """The decision that this revision of a shared context adds to its log."""
    position: Position | None = None
    """The event that the body came with."""
    tenant: TenantId | None = None
    constraint: Hash | None = None
    memory: DocumentId | None = None
    told: Hash | None = None


class Redrive(Model):
    envelope_at: Position
    handoff_id: HandoffId
    opened_task: bool | None = None
    """Whether the dead letter had opened its task."""


class RedriveLetter(Model):
    """Sends a dead letter on its way again."""

    by: AgentId
    expires_in_ms: int | None = None
    """How long it may take this time. Without it as long as before, and what expired gets at
    least the broker's own span."""


class Refusal(Model):
    """A request that nobody stood behind."""

    at: Timestamp
    code: str
    from_: str = Field(alias="from")
    named: str | None = None
    """The key or token that was named, whoever named it."""
    path: str


class Refusals(Model):
    count: int
    """How many there were since the broker began; the last of them are listed."""
    refusals: list[Refusal]


class Reject(Model):
    """Says no to work that waits for approval."""

    by: AgentId
    reason: str
    """Why; it stands in the log, and the sender reads it."""


class Report(Model):
    attempt: int
    ended: str
    report: dict[str, Any]


class Reroute(Model):
    """Sends a dead letter to another target."""

    by: AgentId
    expires_in_ms: int | None = None
    """How long it may take this time. Without it as long as before, and what expired gets at
    least the broker's own span."""
    to: Target
    """An agent by name, or any agent with a capability."""


class Reservation(Model):
    agent: AgentId
    fence: Fence
    """The fence of the claim: what guards the resource can refuse an older one."""
    handoff_id: HandoffId
    resources: list[Resource]


class Reservations(Model):
    reservations: list[Reservation]


class Reserve(Model):
    """Takes resources for the holder of a claim, or gives them up."""

    claim_id: ClaimId
    fence: Fence
    resources: list[Resource]
    """Paths and patterns of paths: `*` within a step, `**` for any number of steps."""


class ResultReport(Model):
    """What a completed handoff produced."""

    action: Action | str
    """`completed`, or what the sender should do with it: `needs_review`, `changes_requested`."""
    declared: list[CriterionReport] = Field(default_factory=list)
    """What the agent says of it, which nobody checked."""
    gaps: list[str] = Field(default_factory=list)
    """References that it had to work without."""
    handoff_id: HandoffId
    metadata: dict[str, Any] = Field(default_factory=dict)
    payload: dict[str, Any]
    said_gaps: list[str] | None = Field(default_factory=list)
    """Those of them that its maker named, where the broker added others that came with the
    work."""
    usage: WorkUsage | None = None
    """What the attempt used."""
    verified: list[str] = Field(default_factory=list)
    """What the broker checked of it."""


class ResumeTarget(Model):
    """Lets work be claimed of an agent or a capability again."""

    target: Target


class Retract(Model):
    """Takes back what a completed handoff produced."""

    by: AgentId
    policy: TaintPolicy | str = "flag"
    """What becomes of work that was built on it: `flag` tells everybody, `block` holds it back
    until somebody has approved."""
    reason: str
    """Why; it stands in the log."""


class Rotate(Model):
    """Replaces a key by a new one."""

    grace_ms: int = 3600000
    """How long the old key still counts."""
    key: PublicKey
    """The public key."""
    old: KeyId
    """The id of the key that is replaced."""
    proof: Signature
    """A signature by the new key over the agent's name and the key."""


class Route(Model):
    """How an agent is chosen for a capability."""

    key: str | None = None
    """What a `sticky` choice sticks to."""
    policy: Policy | str


class Rule(Model):
    """A rule as it is written: it may name a role for the permissions that the role has."""

    effect: Effect | str = "allow"
    permissions: list[Permission | str] = Field(default_factory=list)
    """What is allowed or denied. There are some, or a role."""
    projects: list[str] = Field(default_factory=list)
    """Patterns of projects; a rule with other patterns than `*` says nothing about work that
    belongs to no project."""
    role: Role | str | None = None
    """Stands for the permissions of this role; answers have those."""
    targets: list[str] = Field(default_factory=list)
    """Patterns of agents' and capabilities' names, without their tenant: `*` stands for any
    characters, `?` for one."""


class Said(Model):
    add_constraints: Any = None
    """Adds to what binds, as a list or a map."""
    alternatives: list[str] = Field(default_factory=list)
    """What was considered and not taken, and why not."""
    ask: str | None = None
    """What this receiver must do."""
    assumptions: list[str] = Field(default_factory=list)
    """What was taken for granted and not checked."""
    constraints: Any = None
    """What binds everybody from here on. Without it, what bound before still does. A list says
    all of it: one that leaves out or rewords what bound before is refused. A plain map,
    such as `{"language": "python", "max_tokens": 4000}`, adds to it."""
    context: list[ContextItem] = Field(default_factory=list)
    """Memories that are passed along, in full or in short; `/v1/assemble` makes them."""
    context_manifest: Hash | None = None
    """The address of the list of what was passed, as `/v1/assemble` gives it."""
    decisions: list[SaidDecision] = Field(default_factory=list)
    """Decisions that are new."""
    deferred: list[str] = Field(default_factory=list)
    """Cases that were seen and left for later."""
    expected_output: ExpectedOutput | None = None
    """What is wanted back; a result that does not fit is refused."""
    gaps: list[str | NewGap] = Field(default_factory=list)
    """References that could not be resolved."""
    history: list[NewStep] = Field(default_factory=list)
    """What was done and is not in the history yet."""
    lift_constraints: list[Lift] = Field(default_factory=list)
    """Ends constraints. Only who issued one, or the task's coordinator, can do that."""
    memory_refs: list[MemoryRef] = Field(default_factory=list)
    """Memories that the receiver can fetch."""
    open_decisions: list[str | Question] = Field(default_factory=list)
    """Questions that are new and that somebody must decide."""
    read_back: bool | None = None
    """Lets the claim count only once the receiver has repeated what binds it."""
    reading: Reading | None = None
    """What was chosen, as `/v1/assemble` gives it."""
    resolved_gaps: list[str] = Field(default_factory=list)
    """References of gaps that are resolved now."""
    state: TaskProgress | None = None
    """How far the task is: what is done, what remains."""
    summary: str | None = None
    """What the task is about now, in a few sentences."""
    tried: list[str] = Field(default_factory=list)
    """What was tried and did not work, so that nobody tries it again."""


class SaidDecision(Model):
    decision: str
    key: str | None = None
    resolves: Hash | None = None
    """The open decision that this settles."""
    supersedes: Hash | None = None
    why: str | None = None


class Scope(Model):
    """What a document is about, which decides who may write it."""

    project: Project | None = None
    task: TaskId | None = None
    agent: AgentId | None = None


class Search(Model):
    """Looks for agents. What is silent does not matter."""

    capability: Capability | None = None
    """What it must be able to do."""
    input: Any = None
    """A JSON Schema of what would be sent: the capability must take it."""
    limit: int | None = None
    """How many at most, up to 1000."""
    live: bool | None = None
    """Only those who are there, or only those who are not."""
    output: Any = None
    """A JSON Schema of what is needed: what the capability gives must fit it."""
    reliability: int | None = None
    """The least share of the last attempts that ended in a result, in percent."""
    role: str | None = None
    """What the receiver is, which says what it wants to see."""
    tags: list[str] = Field(default_factory=list)
    """Words to find it by; `kind:log` says what kind it is."""
    tenant: TenantId | None = None
    """Whose agents; those of one's own tenant without it. Only an administrator of the default
    tenant looks elsewhere."""
    version: str | None = None
    """Which versions of it will do."""


class Send(Model):
    """Offers work and waits until the receiver has accepted it, or until there is a result."""

    action: Action | str = "request"
    """What the receiver should do with it; a first offer is a `request`."""
    add_constraints: Any = None
    """Adds to what binds, as a list or a map."""
    after: After | None = None
    """Tasks that must have a result before this can be claimed."""
    alternatives: list[str] = Field(default_factory=list)
    """What was considered and not taken, and why not."""
    approvers: list[AgentId] = Field(default_factory=list)
    """Who may approve it: nobody else then, and each of them is told that it waits. Neither
    the sender nor the receiver."""
    ask: str | None = None
    """What this receiver must do."""
    assumptions: list[str] = Field(default_factory=list)
    """What was taken for granted and not checked."""
    budget: Budget | None = None
    """What the task, with everything below it, may spend from here on. Every result and
    failure that reports its usage makes it less; a task with nothing left takes no more
    hops."""
    budget_tokens: int | None = None
    """How many tokens the work may use."""
    capability: Capability | None = None
    """What is to be done, where `to` names an agent: its manifest says what goes in and comes
    out."""
    constraints: Any = None
    """What binds everybody from here on. Without it, what bound before still does. A list says
    all of it: one that leaves out or rewords what bound before is refused. A plain map,
    such as `{"language": "python", "max_tokens": 4000}`, adds to it."""
    context: list[ContextItem] = Field(default_factory=list)
    """Memories that are passed along, in full or in short; `/v1/assemble` makes them."""
    context_manifest: Hash | None = None
    """The address of the list of what was passed, as `/v1/assemble` gives it."""
    control: Control | str = "passed"
    """`passed` transfers the task; `awaited` calls: the work is a task below the sender's own."""
    coordinator: Coordinator | None = None
    """Who decides about a new task when things go wrong, and is told of every failure."""
    correlation_id: CorrelationId | None = None
    """A name by which the sender finds everything that belongs together."""
    deadline: Timestamp | None = None
    """When the work must be finished; past it the handoff is dead-lettered."""
    decisions: list[SaidDecision] = Field(default_factory=list)
    """Decisions that are new."""
    deferred: list[str] = Field(default_factory=list)
    """Cases that were seen and left for later."""
    envelope_version: str | None = None
    """The version that the sender speaks. Members that are not known here are kept if it is a
    newer minor, and are a mistake otherwise."""
    expected_output: ExpectedOutput | None = None
    """What is wanted back; a result that does not fit is refused."""
    expires_in_ms: int | None = None
    """The same as a span from now. The earlier of the two counts; 24 hours by default."""
    fallbacks: list[Target] = Field(default_factory=list)
    """Who is asked next, in this order, if the receiver cannot or will not do it: by name, or
    anybody with a capability."""
    from_agent: AgentId
    """Who sends it. A task is handed on by its owner."""
    gaps: list[str | NewGap] = Field(default_factory=list)
    """References that could not be resolved."""
    history: list[NewStep] = Field(default_factory=list)
    """What was done and is not in the history yet."""
    idempotency_key: IdempotencyKey | None = None
    """The same key with the same body gives the first reply again; with another body, a
    conflict."""
    intent: str | None = None
    """The user's own words. Needed for a new task; from then on the broker carries them."""
    lift_constraints: list[Lift] = Field(default_factory=list)
    """Ends constraints. Only who issued one, or the task's coordinator, can do that."""
    majors: list[int] = Field(default_factory=list)
    """Which majors of the envelope the sender can give."""
    memory_refs: list[MemoryRef] = Field(default_factory=list)
    """Memories that the receiver can fetch."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """For monitoring only."""
    needs_approval: bool | None = None
    """Hold it back until somebody other than the sender approves."""
    on_parent_end: OnParentEnd | str | None = None
    """Of a call: what becomes of it when the caller's own work ends without a result. `cancel`
    by default; with `let_go` it goes on."""
    open_decisions: list[str | Question] = Field(default_factory=list)
    """Questions that are new and that somebody must decide."""
    ordering_key: OrderingKey | None = None
    """Handoffs with the same key are worked on one after the other."""
    output_schema: Any = None
    """A JSON Schema that the result must fit: `expected_output.schema` in short."""
    payload: dict[str, Any]
    """What to work on: an object with a `type`."""
    priority: int | None = None
    """0 to 9; higher is claimed first. 5 by default."""
    project: Project | None = None
    """What a new task belongs to. Tasks below it belong there too."""
    read_back: bool | None = None
    """Lets the claim count only once the receiver has repeated what binds it."""
    reading: Reading | None = None
    """What was chosen, as `/v1/assemble` gives it."""
    resolved_gaps: list[str] = Field(default_factory=list)
    """References of gaps that are resolved now."""
    route: Route | None = None
    """How one of the agents with the capability is chosen. Without it, all of them may claim."""
    signed: Signed | None = None
    """The sender's signature over what it says, which travels in the envelope."""
    start_in_ms: int | None = None
    """Do not let it be claimed before this much time has passed."""
    state: TaskProgress | None = None
    """How far the task is: what is done, what remains."""
    summary: str | None = None
    """What the task is about now, in a few sentences."""
    task_id: TaskId | None = None
    """The task to hand on (`control: passed`) or to do the work for (`control: awaited`).
    Without it a new task is opened."""
    terms: TermsPatch | None = None
    """How often, how long and within what time it is tried."""
    timeout_ms: int = 15000
    """How long to wait, 15 seconds by default. Work that nobody has claimed by then goes to
    the next of `fallbacks`, or to the dead letters, unless the terms give another `ack_ms`."""
    to: Target
    """An agent by name, or any agent with a capability."""
    tried: list[str] = Field(default_factory=list)
    """What was tried and did not work, so that nobody tries it again."""
    until: Until | str = "claimed"
    """What to wait for: `claimed` or `settled`."""


class SendMessage(Model):
    """Sends a word to whoever holds the work."""

    by: AgentId
    details: dict[str, Any] = Field(default_factory=dict)
    """More of it, for programs."""
    text: str


class Sent(Model):
    """What has become of it."""

    ack_left_ms: int | None = None
    """How much time is left for somebody to claim it."""
    artifacts: list[ArtifactName] = Field(default_factory=list)
    """Pieces of work that are there before the result is."""
    attempts: list[Attempt]
    contract: Contract | None = None
    """What was agreed besides the terms."""
    control: Control | str
    correlation_id: CorrelationId | None = None
    """The name by which the sender finds everything that belongs together."""
    counters: list[CounterOffer] = Field(default_factory=list)
    """On which other terms agents would take it."""
    dead_letter: DeadLetterReason | None = None
    declined_by: list[AgentId] = Field(default_factory=list)
    delivered_at: Timestamp | None = None
    due_at: Timestamp | None = None
    """When a scheduled handoff becomes claimable."""
    ended_at: Timestamp | None = None
    envelope: Hash
    expires_at: Timestamp
    failures: int
    """Attempts that ended in a declared failure."""
    from_agent: AgentId
    handoff_id: HandoffId
    holder: Holder | None = None
    hop: int
    kept_for: KeptFor | None = None
    """For whom an answer is kept."""
    lifted: list[LiftedConstraint] = Field(default_factory=list)
    """Constraints that were lifted since the envelope was made; they do not bind the next one."""
    listening: bool
    """Whether somebody is there who takes work for it. If not, it is stored and waits."""
    losses: int
    """Leases that were lost."""
    offered_at: Timestamp
    ordering_key: OrderingKey | None = None
    output: ResultReport | None = None
    """The result, if there is one."""
    priority: int
    question: Asks | None = None
    """What its holder asks and waits for."""
    reached: bool
    """Whether it came as far as was waited for, by somebody who accepted it or with a result."""
    redrive_of: HandoffId | None = None
    result: Hash | None = None
    """The address of the result."""
    retracted: bool | None = None
    """Whether its result was taken back."""
    reviewer: AgentId | None = None
    """Who decides on this dead letter just now."""
    state: str
    status: str
    """What the sender may rely on: `stored`, `delivered`, `claimed`, `in_progress`, `done`,
    `failed`, `cancelled`, `rejected` or `dead_lettered`. Only what has a result is `done`."""
    task_id: TaskId
    terms: Terms
    to: Target
    tried: list[Target] = Field(default_factory=list)
    """Targets that could not or would not do it, the first one first."""
    trim_regret: list[DocumentId] = Field(default_factory=list)
    """Memories that the receiver fetched because the envelope had passed less of them: what
    was trimmed and missed."""


class Session(Model):
    """Who asks, and what it may ask for."""

    agent_id: AgentId | None = None
    """Who asks; absent where the broker does not ask who anybody is."""
    authentication: bool
    """Whether the broker asks who its callers are."""
    now: Timestamp
    operations: list[str]
    """The operations that may be asked for at all. Towards which target is another matter."""
    tenant: TenantId
    version: str


class SetBreaker(Model):
    """When the breaker of an agent opens."""

    limits: Limits | None = None
    """Without them, the broker's own hold again."""


class SetRules(Model):
    rules: list[Rule]
    """All rules from now on."""


class Settle(Model):
    """Accepts or refuses a counter-offer."""

    accept: bool
    """Whether the terms that were asked for are taken."""
    agent: AgentId
    """Whose counter-offer it is."""
    by: AgentId
    """The sender of the handoff."""


class Settled(Model):
    """A decision by its number in the log. The words are in the body."""

    decision: int
    key: DecisionKey
    supersedes: int | None = None


class SharedContext(Model):
    """What all agents of a project read."""

    changed_at: Timestamp | None = None
    changed_by: Actor | None = None
    constraints: list[ProjectConstraint]
    decisions: list[ProjectDecision]
    erased: bool | None = None
    """Whether the text of this revision was erased."""
    latest: int = 0
    """The last revision that there is."""
    project: Project
    revision: int
    """0 if nobody has written it yet."""
    state: ProjectState
    task_queue: list[QueuedTask]
    """Open tasks that the reader may see, newest first. This is a view: tasks change hands by
    handoffs only."""
    warnings: list[Warning] = Field(default_factory=list)


class Signed(Model):
    """Whose signature something bears."""

    key_id: KeyId
    signature: Signature


class Silence(Model):
    by: str
    """Who silenced it: `agent:` and a name, or `broker` where nobody is asked who it is."""
    reason: str
    rule: str | None = None
    since: Timestamp
    target: str | None = None
    until: Timestamp


class SilenceAlert(Model):
    """Keeps people from being told of alerts for a while."""

    for_ms: int
    """For how long from now, in milliseconds; 0 ends a silence."""
    reason: str
    """Why; it stands in the log."""
    rule: str | None = None
    """Of this rule; without one, of all."""
    target: str | None = None
    """About this target, as alerts name it; without one, about all."""


class Silenced(Model):
    """Nobody is told of some alerts until then; the body is the reason."""

    reason: Hash
    rule: str | None = None
    """Without one, all rules."""
    target: str | None = None
    """Without one, all targets."""
    until: Timestamp


class Spent(Model):
    """What was spent so far."""

    cost: Cost
    tokens: int


class SpentBy(Model):
    """What an attempt used."""

    by: HandoffId
    """The handoff that was worked on."""
    cost: Cost
    tokens: int


class StageRef(Model):
    """Where in a pipeline a handoff is."""

    branch: bool | None = None
    """Whether it is one of several at once, so that nothing follows from it alone."""
    pipeline: str
    stage: str
    version: int


class Start(Model):
    """Says that work has begun."""

    claim_id: ClaimId
    fence: Fence
    read_back: ReadBack | None = None
    """What binds the receiver, repeated, where the handoff asks for it."""
    signed: Signed | None = None
    """The holder's signature over its acceptance."""


class StartPipeline(Model):
    """Begins a task along a declared route."""

    add_constraints: Any = None
    """Adds to what binds, as a list or a map."""
    alternatives: list[str] = Field(default_factory=list)
    """What was considered and not taken, and why not."""
    ask: str | None = None
    """What this receiver must do."""
    assumptions: list[str] = Field(default_factory=list)
    """What was taken for granted and not checked."""
    constraints: Any = None
    """What binds everybody from here on. Without it, what bound before still does. A list says
    all of it: one that leaves out or rewords what bound before is refused. A plain map,
    such as `{"language": "python", "max_tokens": 4000}`, adds to it."""
    context: list[ContextItem] = Field(default_factory=list)
    """Memories that are passed along, in full or in short; `/v1/assemble` makes them."""
    context_manifest: Hash | None = None
    """The address of the list of what was passed, as `/v1/assemble` gives it."""
    coordinator: Coordinator | None = None
    """Who decides if it fails; without it, who opened the task."""
    correlation_id: CorrelationId | None = None
    """A name by which the sender finds everything that belongs together."""
    deadline: Timestamp | None = None
    """When it must be claimed and done at the latest."""
    decisions: list[SaidDecision] = Field(default_factory=list)
    """Decisions that are new."""
    deferred: list[str] = Field(default_factory=list)
    """Cases that were seen and left for later."""
    expected_output: ExpectedOutput | None = None
    """What is wanted back; a result that does not fit is refused."""
    from_agent: AgentId
    """Who sends it. A task is handed on by its owner."""
    gaps: list[str | NewGap] = Field(default_factory=list)
    """References that could not be resolved."""
    history: list[NewStep] = Field(default_factory=list)
    """What was done and is not in the history yet."""
    idempotency_key: IdempotencyKey | None = None
    """Makes it safe to repeat: the same request with the same key is carried out once."""
    intent: str
    """The user's own words."""
    lift_constraints: list[Lift] = Field(default_factory=list)
    """Ends constraints. Only who issued one, or the task's coordinator, can do that."""
    memory_refs: list[MemoryRef] = Field(default_factory=list)
    """Memories that the receiver can fetch."""
    open_decisions: list[str | Question] = Field(default_factory=list)
    """Questions that are new and that somebody must decide."""
    payload: dict[str, Any]
    """What to work on: an object with a `type`."""
    project: Project | None = None
    """What the task belongs to."""
    read_back: bool | None = None
    """Lets the claim count only once the receiver has repeated what binds it."""
    reading: Reading | None = None
    """What was chosen, as `/v1/assemble` gives it."""
    resolved_gaps: list[str] = Field(default_factory=list)
    """References of gaps that are resolved now."""
    state: TaskProgress | None = None
    """How far the task is: what is done, what remains."""
    summary: str | None = None
    """What the task is about now, in a few sentences."""
    tried: list[str] = Field(default_factory=list)
    """What was tried and did not work, so that nobody tries it again."""


class StateCount(Model):
    """How many there are in a state, and how old the oldest of them is."""

    count: int
    oldest_age_ms: int | None = None
    """How long ago that is."""
    oldest_at: Timestamp | None = None
    """When the oldest of them was offered or opened."""
    state: str


class Stats(Model):
    """How much there is: of the whole store for whoever looks after all of it, and otherwise
    of the caller's tenant."""

    commands: int | None = None
    commits: int | None = None
    disk_full: bool
    events: int | None = None
    handoffs: list[StateCount] = Field(default_factory=list)
    """How many handoffs are in each state that is not the end, and dead letters that nobody
    has decided on."""
    head: Cursor | None = None
    """Where the log ends."""
    idempotency_keys: int | None = None
    live_bytes: int | None = None
    """About how much memory the live handoffs take."""
    live_handoffs: int
    mean_batch: float | None = None
    """Events for each commit since the start: above 1 where commits are shared."""
    now: Timestamp
    projection_lag: int | None = None
    resident_bytes: int | None = None
    """How much memory the process takes, where the system can say."""
    stored_bytes: int | None = None
    """Bytes of bodies that the tenant has stored."""
    tasks: list[StateCount] = Field(default_factory=list)
    """How many tasks are not at their end."""
    tenant: TenantId | None = None
    """Whose figures these are; absent if they are those of the whole store."""
    version: str
    waiting_handoffs: int | None = None


class Step(Model):
    action: str
    agent: AgentId
    at: Timestamp
    decision: str | None = None
    memory_id: str | None = None
    why: str | None = None


class Subscribe(Model):
    """Begins or ends hearing what is told on a channel."""

    agent: AgentId
    """Who asks."""


class Subscriber(Model):
    agent: AgentId
    since: Cursor
    """What was told after this reached it."""


class Supersede(Model):
    """Says that another memory has taken the place of this one."""

    by: AgentId
    successor: DocumentId
    """The memory that takes its place."""


class Taint(Model):
    """Something that the task is built on and that no longer holds."""

    policy: TaintPolicy | str
    source: HandoffId
    """The handoff that failed, or whose result was taken back."""
    task_id: TaskId
    """The task that is tainted by it: this one, or one above it."""


class TaintedBy(Model):
    policy: TaintPolicy | str
    source: HandoffId
    """The handoff that failed, or whose result was taken back."""


class TakeReview(Model):
    """Keeps others from deciding on a dead letter for a while."""

    by: AgentId
    for_ms: int
    """For how long, at most a day; 0 gives it back."""


class Target(Model):
    """Who is to do the work."""

    agent: AgentId | None = None
    capability: Capability | None = None


class TargetHealth(Model):
    breaker: str
    """`closed`, `open` or `half_open`."""
    completeness_per_mille: int | None = None
    """How complete what was passed was on average, in thousandths, where senders said so."""
    exhausted_in_row: int
    """Handoffs in a row that used up their tries."""
    failures_in_row: int
    """Attempts in a row that failed or were lost."""
    hops: list[int]
    """How many offers came after 0, 1, 2 … hops; the last number is for all beyond."""
    limits: Limits
    """By which numbers its failures count."""
    live: bool
    offers: int
    paused: PausedUntil | None = None
    """Somebody paused it: nothing is claimed of it."""
    reset_in_ms: int | None = None
    """When something is sent there again; half open, when the one that was let through is over
    at the latest."""
    target: Target
    utilisation_per_mille: int | None = None
    """How much of the budgets was used, in thousandths, where senders said so."""


class TargetOverview(Model):
    breaker: str
    """`closed`, `open` or `half_open`."""
    dead_letters: int
    failures_in_row: int
    inflight: int
    live: bool
    """Whether somebody listens for it. Where something waits and nobody does, nobody takes it."""
    oldest_ms: int
    queue: int
    """How many wait to be claimed, and for how long the oldest of them."""
    target: Target


class TargetsHealth(Model):
    """How targets fare."""

    targets: list[TargetHealth]


class Task(Model):
    budget: Budget | None = None
    """What it and everything below it may still spend, where that is bounded."""
    channel: ChannelId | None = None
    """The channel on which it was told to many."""
    coordinator: AgentId | None = None
    """Who decides about it when things go wrong, if that is not its opener."""
    correlation_id: CorrelationId | None = None
    deadline: Timestamp | None = None
    """When all of it must be finished, by what it hangs from."""
    ended_at: Timestamp | None = None
    events: int
    """How many events there are, and the hash of the last."""
    head: Hash
    intent: Hash
    """The address of the intent: the same at every hop."""
    live_handoff: HandoffId | None = None
    """The handoff that is not at its end yet."""
    on_hold: HandoffId | None = None
    """The dead letter above it that somebody has to decide on before it goes on."""
    on_parent_end: OnParentEnd | str | None = None
    """What becomes of it when the task above it ends without a result."""
    opened_at: Timestamp
    opened_by: AgentId
    owner: AgentId
    parent_task_id: TaskId | None = None
    project: Project | None = None
    """What it belongs to."""
    spent: Spent | None = None
    """What it and everything below it has spent, as far as anybody said."""
    state: str
    taints: list[TaintedBy] = Field(default_factory=list)
    """What it is built on and no longer holds."""
    task_id: TaskId


class TaskChain(Model):
    events: list[ChainEvent]
    task_id: TaskId


class TaskHop(Model):
    """What one hop did to what it was given."""

    altered_constraints: list[str]
    """Texts of constraints that are not what their id says."""
    bytes: int
    constraints: int
    facts: int
    """Of the facts in the envelope before: how many there were, and how many are still here."""
    facts_kept: int
    from_agent: str
    gaps: int
    hop: int
    linked: bool
    """Whether it names the envelope before it, and has the same intent."""
    lost_constraints: list[str]
    """Texts of constraints that bound before, bind no longer, and were not lifted."""
    same_intent: bool
    task_id: TaskId


class TaskProgress(Model):
    """How far the task has come."""

    done: list[str] = Field(default_factory=list)
    progress: str | None = None
    remaining: list[str] = Field(default_factory=list)


class TaskResult(Model):
    """What came of a task, as its owner says who ended it."""

    metadata: dict[str, Any] = Field(default_factory=dict)
    payload: dict[str, Any]
    task_id: TaskId


class TaskWithParts(Model):
    """A task with its handoffs and the tasks below it."""

    budget: Budget | None = None
    """What it and everything below it may still spend, where that is bounded."""
    channel: ChannelId | None = None
    """The channel on which it was told to many."""
    children: list[Task]
    coordinator: AgentId | None = None
    """Who decides about it when things go wrong, if that is not its opener."""
    correlation_id: CorrelationId | None = None
    deadline: Timestamp | None = None
    """When all of it must be finished, by what it hangs from."""
    ended_at: Timestamp | None = None
    events: int
    """How many events there are, and the hash of the last."""
    handoffs: list[Handoff]
    """Newest first."""
    head: Hash
    intent: Hash
    """The address of the intent: the same at every hop."""
    live_handoff: HandoffId | None = None
    """The handoff that is not at its end yet."""
    on_hold: HandoffId | None = None
    """The dead letter above it that somebody has to decide on before it goes on."""
    on_parent_end: OnParentEnd | str | None = None
    """What becomes of it when the task above it ends without a result."""
    opened_at: Timestamp
    opened_by: AgentId
    output: TaskResult | None = None
    """The result that its owner ended it with."""
    owner: AgentId
    parent_task_id: TaskId | None = None
    project: Project | None = None
    """What it belongs to."""
    spent: Spent | None = None
    """What it and everything below it has spent, as far as anybody said."""
    state: str
    taints: list[TaintedBy] = Field(default_factory=list)
    """What it is built on and no longer holds."""
    task_id: TaskId


class Tasks(Model):
    next: TaskId | None = None
    tasks: list[Task]


class Tenant(Model):
    id: TenantId
    quotas: Quotas


class TenantInfo(Model):
    """A tenant and what it may use."""

    quotas: Quotas
    tenant_id: TenantId


class Tenants(Model):
    tenants: list[TenantInfo]


class Terms(Model):
    ack_ms: int | None = None
    """How long it may wait to be claimed before it goes to the next one, or to the dead
    letters."""
    attempts: int = 3
    """How many attempts may end in a declared failure before the handoff is dead-lettered."""
    backoff_ms: int = 30000
    """The longest pause before a retry; 0 retries at once."""
    lease_ms: int = 30000
    """How long a claim holds without a heartbeat."""
    losses: int = 3
    """How many leases in a row may be lost without progress before it is quarantined as
    poison."""
    work_ms: int = 3600000
    """How long one attempt may take in all, however many heartbeats it sends."""


class TermsPatch(Model):
    """Terms that differ from the broker's defaults."""

    ack_ms: int | None = None
    """How long it may wait to be claimed before it goes to the next one, or to the dead
    letters."""
    attempts: int | None = None
    """How many attempts may fail before it is dead-lettered."""
    backoff_ms: int | None = None
    """The longest pause before a retry."""
    lease_ms: int | None = None
    """How long a claim holds without a heartbeat."""
    losses: int | None = None
    """How many leases in a row may be lost without progress before it is quarantined."""
    work_ms: int | None = None
    """How long one attempt may take in all."""


class Token(Model):
    """What somebody may show instead of a signature, or to enroll a key with. The secret
    itself is known only to whom it was given."""

    agent: AgentId
    """For whom it speaks, or who may enroll with it."""
    ended_at: Timestamp | None = None
    """Spent or revoked."""
    expires_at: Timestamp | None = None
    id: TokenId
    issued_at: Timestamp
    made_by: AgentId | None = None
    """Who made it; absent if the broker did."""
    made_from: Origin | None = None
    """What its maker showed. What was made with something ends with it."""
    purpose: Purpose | str
    rules: list[Rule]
    """What it allows at most; for a join token, what the agent will be allowed."""
    secret: Hash
    """The hash of the secret."""


class TokenInfo(Model):
    """A token without its secret."""

    agent_id: AgentId
    ended_at: Timestamp | None = None
    """When it was spent or revoked, by itself or with the token that it was made from."""
    expires_at: Timestamp | None = None
    issued_at: Timestamp
    made_by: AgentId | None = None
    """Who made it; absent if the broker did."""
    made_from: Origin | None = None
    """The key or the token that it was made with. What was made with a token ends with it."""
    purpose: Purpose | str
    rules: list[Rule]
    token_id: TokenId


class Tokens(Model):
    tokens: list[TokenInfo]


class Told(Model):
    handoff_id: HandoffId
    listening: bool
    task_id: TaskId
    to: Target


class Tombstone(Model):
    at: Timestamp
    by: Actor
    reason: str | None = None


class TrimReason(Model):
    """Why something was not passed whole."""

    why: str
    of: str | None = None


class Unresolved(Model):
    """A reference that could not be followed."""

    id: str
    reason: str


class Verdict(Model):
    bodies: int
    checkpoints: int
    erased: int = 0
    """Bodies that were erased on purpose: the log says by whom and why."""
    events: int
    first_bad: Finding | None = None
    intact: bool
    """Whether every entry is as it should be."""
    keys: list[str]
    """The keys that signed, in hex."""
    tasks: int
    unsealed: int
    """How many of the last events no checkpoint covers yet."""
    verified_before: Position | None = None
    """Entries up to this number were found intact by an earlier check and not looked at again;
    absent if this check looked at all of them."""


class Wait(Model):
    """Waits for handoffs and tasks."""

    handoffs: list[HandoffId] = Field(default_factory=list)
    """Handoffs to wait for."""
    mode: Mode | str = "all"
    """Whether one or all of them must have got there."""
    tasks: list[TaskId] = Field(default_factory=list)
    """Tasks to wait for."""
    timeout_ms: int = 15000
    """How long to wait, at most 60 seconds; the answer then says what is still open."""
    until: Until | str = "settled"
    """How far they must have got."""


class Waited(Model):
    done: bool
    """Whether what was waited for came about; if not, the time was up."""
    handoffs: list[HandoffWithResult]
    open_handoffs: list[HandoffId]
    """Those that have not come far enough."""
    open_tasks: list[TaskId]
    tasks: list[Task]


class Waiting(Model):
    correlation_id: CorrelationId | None = None
    envelope: AnyEnvelope
    handoff_id: HandoffId
    priority: int
    task_id: TaskId


class Waits(Model):
    correlation_id: CorrelationId | None = None
    from_agent: AgentId
    handoff_id: HandoffId
    state: str
    task_id: TaskId
    to: Target
    waits_for: list[WaitsFor]


class WaitsFor(Model):
    """What work waits for, and why."""

    approvers: list[AgentId] = Field(default_factory=list)
    kind: str
    taints: list[HandoffId] = Field(default_factory=list)
    """What its task is built on and no longer holds, if that is why."""
    need: int | None = None
    """How many of the tasks that it waits for must have one."""
    state: str | None = None
    """Where it is."""
    task_id: TaskId | None = None
    until: Timestamp | None = None
    breaker: str | None = None
    """`open` or `half_open`."""
    target: Target | None = None
    handoff_id: HandoffId | None = None
    listening: bool | None = None
    """Whether anybody is there who takes work for it."""
    agent: AgentId | None = None
    reason: str | None = None


class WebhookTested(Model):
    problem: str | None = None
    sent: bool
    url: str


class Why(Model):
    """How a choice came about, for the audit log."""

    avoided_full: int | None = None
    """How many were passed over because they are full."""
    avoided_sla: int | None = None
    """How many were passed over because they break their word."""
    candidates: int
    """How many agents have the capability."""
    live: int
    """How many of them are live and not draining."""
    policy: Policy | str
    reason: Reason | str


class WorkUsage(Model):
    """What an attempt used, as its agent says."""

    cost: Cost | None = None
    input_tokens: int = 0
    model: str | None = None
    """Which model used them."""
    output_tokens: int = 0


class WriteContext(Model):
    """Changes what a project's shared context says of its state or its constraints."""

    by: AgentId
    constraints: list[ProjectConstraint] | None = Field(default_factory=list)
    """What holds for all work of the project; as before if nothing is said."""
    revision: int | None = None
    """The revision that the writer has seen, 0 for none: if there is another by now, nothing
    is written."""
    state: ProjectState | None = None
    """Where the project stands; as before if nothing is said."""


class Written(Model):
    """The facts of a new revision."""

    content: Hash
    document: Kind | str
    id: DocumentId
    key: Key | None = None
    pinned: bool | None = None
    priority: Priority | str = "normal"
    revision: int
    scope: Scope
    settles: Settled | None = None
    """The decision that this revision of a shared context adds to its log."""
