# SPDX-License-Identifier: Apache-2.0
# Made by tools/generate.py from api/operations.json. Do not edit.

"""Where each operation of the API is, what it takes, and what it gives."""

from __future__ import annotations

from . import models as m
from ._wire import Route

AGENT_CATALOGUE: Route[m.Catalogue] = Route(
    "GET", "/.well-known/agents.json", m.Catalogue, query=(), body=()
)
AGENT_DEREGISTER: Route[m.Agent] = Route(
    "POST", "/v1/agents/{id}/deregister", m.Agent, query=(), body=()
)
AGENT_DRAIN: Route[m.Agent] = Route("POST", "/v1/agents/{id}/drain", m.Agent, query=(), body=())
AGENT_JOIN: Route[m.Agent] = Route(
    "POST", "/v1/join", m.Agent, query=(), body=("agent_id", "key", "proof", "token")
)
AGENT_LIST: Route[m.Agents] = Route(
    "GET",
    "/v1/agents",
    m.Agents,
    query=("capability", "limit", "live", "reliability", "role", "tag", "tenant", "version"),
    body=(),
)
AGENT_PUBLISH: Route[m.Agent] = Route(
    "POST", "/v1/agents", m.Agent, query=(), body=("manifest", "signed", "version")
)
AGENT_RESUME: Route[m.Agent] = Route("POST", "/v1/agents/{id}/resume", m.Agent, query=(), body=())
AGENT_SEARCH: Route[m.Agents] = Route(
    "POST",
    "/v1/discover",
    m.Agents,
    query=(),
    body=(
        "capability",
        "input",
        "limit",
        "live",
        "output",
        "reliability",
        "role",
        "tags",
        "tenant",
        "version",
    ),
)
AGENT_SET_BREAKER: Route[m.TargetHealth] = Route(
    "POST", "/v1/agents/{id}/breaker", m.TargetHealth, query=(), body=("limits",)
)
AGENT_SET_RULES: Route[m.Agent] = Route(
    "POST", "/v1/agents/{id}/rules", m.Agent, query=(), body=("rules",)
)
AGENT_SHOW: Route[m.Agent] = Route("GET", "/v1/agents/{id}", m.Agent, query=(), body=())
ALERT_LIST: Route[m.Alerts] = Route("GET", "/v1/alerts", m.Alerts, query=(), body=())
ALERT_RULES: Route[m.AlertRules] = Route("GET", "/v1/alerts/rules", m.AlertRules, query=(), body=())
ALERT_SILENCE: Route[m.Alerts] = Route(
    "POST", "/v1/alerts/silence", m.Alerts, query=(), body=("for_ms", "reason", "rule", "target")
)
ALERT_TEST: Route[m.AlertTested] = Route(
    "POST", "/v1/alerts/test", m.AlertTested, query=(), body=()
)
ASSEMBLE: Route[m.AssembleReply] = Route(
    "POST",
    "/v1/assemble",
    m.AssembleReply,
    query=(),
    body=(
        "add_constraints",
        "alternatives",
        "ask",
        "assumptions",
        "constraints",
        "context",
        "context_manifest",
        "decisions",
        "deferred",
        "expected_output",
        "from_agent",
        "gaps",
        "history",
        "include_pins",
        "include_recent",
        "intent",
        "lift_constraints",
        "max_tokens",
        "memory_refs",
        "open_decisions",
        "payload",
        "project",
        "read_back",
        "reading",
        "reserved_system_prompt",
        "reserved_work",
        "resolved_gaps",
        "role",
        "state",
        "strategy",
        "summary",
        "task_id",
        "to_agent",
        "tokenizer",
        "tried",
    ),
)
AUDIT_EXPORT: Route[object] = Route("GET", "/v1/audit/export", object, query=("after",), body=())
AUDIT_VERIFY: Route[m.Verdict] = Route(
    "GET", "/v1/audit/verify", m.Verdict, query=("full",), body=()
)
CHAIN_IMPORT: Route[m.ImportedChain] = Route(
    "POST", "/v1/chains", m.ImportedChain, query=(), body=("by", "file", "project")
)
CHAIN_LIST: Route[m.ImportedChains] = Route(
    "GET", "/v1/chains", m.ImportedChains, query=("before", "limit"), body=()
)
CHAIN_SHOW: Route[m.ImportedChainWithFile] = Route(
    "GET", "/v1/chains/{id}", m.ImportedChainWithFile, query=(), body=()
)
CHANGE_STREAM: Route[object] = Route("GET", "/v1/changes", object, query=(), body=())
CHANNEL_MESSAGES: Route[m.Messages] = Route(
    "GET", "/v1/channels/{name}/messages", m.Messages, query=("after", "limit"), body=()
)
CHANNEL_PUBLISH: Route[m.Published] = Route(
    "POST",
    "/v1/channels/{name}/publish",
    m.Published,
    query=(),
    body=(
        "action",
        "add_constraints",
        "alternatives",
        "approvers",
        "ask",
        "assumptions",
        "constraints",
        "context",
        "context_manifest",
        "coordinator",
        "correlation_id",
        "deadline",
        "decisions",
        "deferred",
        "expected_output",
        "expires_in_ms",
        "from_agent",
        "gaps",
        "history",
        "idempotency_key",
        "intent",
        "lift_constraints",
        "memory_refs",
        "metadata",
        "needs_approval",
        "open_decisions",
        "ordering_key",
        "payload",
        "priority",
        "project",
        "read_back",
        "reading",
        "receivers",
        "resolved_gaps",
        "state",
        "summary",
        "terms",
        "tried",
    ),
)
CHANNEL_SHOW: Route[m.Channel] = Route("GET", "/v1/channels/{name}", m.Channel, query=(), body=())
CHANNEL_SUBSCRIBE: Route[m.Channel] = Route(
    "POST", "/v1/channels/{name}/subscribe", m.Channel, query=(), body=("agent",)
)
CHANNEL_UNSUBSCRIBE: Route[m.Channel] = Route(
    "POST", "/v1/channels/{name}/unsubscribe", m.Channel, query=(), body=("agent",)
)
CONTEXT_DECIDE: Route[m.SharedContext] = Route(
    "POST",
    "/v1/projects/{project}/decisions",
    m.SharedContext,
    query=(),
    body=("by", "decision", "key", "supersedes", "why"),
)
CONTEXT_SHOW: Route[m.SharedContext] = Route(
    "GET", "/v1/projects/{project}/context", m.SharedContext, query=("revision",), body=()
)
CONTEXT_WRITE: Route[m.SharedContext] = Route(
    "PUT",
    "/v1/projects/{project}/context",
    m.SharedContext,
    query=(),
    body=("by", "constraints", "revision", "state"),
)
DEAD_LETTER_AMEND: Route[m.OfferReply] = Route(
    "POST",
    "/v1/dead-letters/{id}/amend",
    m.OfferReply,
    query=(),
    body=(
        "add_constraints",
        "alternatives",
        "ask",
        "assumptions",
        "budget",
        "by",
        "constraints",
        "context",
        "context_manifest",
        "decisions",
        "deferred",
        "expected_output",
        "expires_in_ms",
        "gaps",
        "history",
        "lift_constraints",
        "memory_refs",
        "open_decisions",
        "payload",
        "read_back",
        "reading",
        "resolved_gaps",
        "state",
        "summary",
        "terms",
        "to",
        "tried",
    ),
)
DEAD_LETTER_ANSWER: Route[m.OfferReply] = Route(
    "POST",
    "/v1/dead-letters/{id}/answer",
    m.OfferReply,
    query=(),
    body=("by", "decision", "expires_in_ms"),
)
DEAD_LETTER_DECIDE_MANY: Route[m.DecidedMany] = Route(
    "POST",
    "/v1/dead-letters/decide",
    m.DecidedMany,
    query=(),
    body=("by", "decision", "dry_run", "expires_in_ms", "fingerprint", "handoffs"),
)
DEAD_LETTER_DISCARD: Route[m.Moved] = Route(
    "POST", "/v1/dead-letters/{id}/discard", m.Moved, query=(), body=("by", "reason")
)
DEAD_LETTER_GROUPS: Route[m.Groups] = Route(
    "GET", "/v1/dead-letters/groups", m.Groups, query=(), body=()
)
DEAD_LETTER_LIST: Route[m.Handoffs] = Route(
    "GET", "/v1/dead-letters", m.Handoffs, query=("all", "before", "limit"), body=()
)
DEAD_LETTER_REDRIVE: Route[m.OfferReply] = Route(
    "POST", "/v1/dead-letters/{id}/redrive", m.OfferReply, query=(), body=("by", "expires_in_ms")
)
DEAD_LETTER_REROUTE: Route[m.OfferReply] = Route(
    "POST",
    "/v1/dead-letters/{id}/reroute",
    m.OfferReply,
    query=(),
    body=("by", "expires_in_ms", "to"),
)
DEAD_LETTER_SHOW: Route[m.DeadLetter] = Route(
    "GET", "/v1/dead-letters/{id}", m.DeadLetter, query=(), body=()
)
DEAD_LETTER_TAKE: Route[m.Handoff] = Route(
    "POST", "/v1/dead-letters/{id}/take", m.Handoff, query=(), body=("by", "for_ms")
)
EVENT_STREAM: Route[object] = Route(
    "GET", "/v1/events", object, query=("after", "follow", "handoff", "task"), body=()
)
HANDOFF_ABORT: Route[m.Moved] = Route(
    "POST", "/v1/handoffs/{id}/abort", m.Moved, query=(), body=("by", "reason")
)
HANDOFF_APPROVE: Route[m.Moved] = Route(
    "POST", "/v1/handoffs/{id}/approve", m.Moved, query=(), body=("by",)
)
HANDOFF_ARTIFACTS: Route[m.Artifacts] = Route(
    "GET", "/v1/handoffs/{id}/artifacts", m.Artifacts, query=("name",), body=()
)
HANDOFF_ASK: Route[m.AskReply] = Route(
    "POST",
    "/v1/handoffs/{id}/ask",
    m.AskReply,
    query=(),
    body=(
        "answer_ms",
        "by_id",
        "claim_id",
        "default",
        "details",
        "fence",
        "keep_ms",
        "kind",
        "schema",
        "text",
    ),
)
HANDOFF_ATTACH: Route[m.Moved] = Route(
    "POST",
    "/v1/handoffs/{id}/artifacts",
    m.Moved,
    query=(),
    body=("claim_id", "content", "fence", "name", "type"),
)
HANDOFF_CANCEL: Route[m.Moved] = Route(
    "POST", "/v1/handoffs/{id}/cancel", m.Moved, query=(), body=("by", "reason")
)
HANDOFF_CLAIM: Route[m.Claims] = Route(
    "POST",
    "/v1/claims",
    m.Claims,
    query=(),
    body=("agent", "capabilities", "lease_ms", "majors", "max", "request_id", "wait_ms"),
)
HANDOFF_CLAIM_ONE: Route[m.ClaimReply] = Route(
    "POST",
    "/v1/handoffs/{id}/claim",
    m.ClaimReply,
    query=(),
    body=("agent", "capabilities", "lease_ms", "majors", "request_id", "wait_ms"),
)
HANDOFF_COMPLETE: Route[m.Moved] = Route(
    "POST",
    "/v1/handoffs/{id}/complete",
    m.Moved,
    query=(),
    body=(
        "action",
        "claim_id",
        "criteria",
        "fence",
        "follow_ups",
        "gaps",
        "metadata",
        "payload",
        "resolved_gaps",
        "signed",
        "usage",
    ),
)
HANDOFF_COMPLETE_BATCH: Route[m.BatchOfMoved] = Route(
    "POST", "/v1/completions", m.BatchOfMoved, query=(), body=("completions",)
)
HANDOFF_COUNTER: Route[m.Handoff] = Route(
    "POST",
    "/v1/handoffs/{id}/counter",
    m.Handoff,
    query=(),
    body=("agent", "budget_tokens", "capabilities", "reason", "terms"),
)
HANDOFF_DECLINE: Route[m.Moved] = Route(
    "POST",
    "/v1/handoffs/{id}/decline",
    m.Moved,
    query=(),
    body=("agent", "claim_id", "fence", "reason"),
)
HANDOFF_ENVELOPE: Route[m.Envelope] = Route(
    "GET", "/v1/handoffs/{id}/envelope", m.Envelope, query=(), body=()
)
HANDOFF_ERASE: Route[m.Moved] = Route(
    "POST", "/v1/handoffs/{id}/erase", m.Moved, query=(), body=("by", "reason")
)
HANDOFF_FAIL: Route[m.Moved] = Route(
    "POST",
    "/v1/handoffs/{id}/fail",
    m.Moved,
    query=(),
    body=(
        "attempted",
        "attempts",
        "causes",
        "claim_id",
        "class",
        "details",
        "fence",
        "hint",
        "message",
        "retry_after_ms",
        "signed",
        "type",
        "usage",
    ),
)
HANDOFF_HEARTBEAT: Route[m.Beat] = Route(
    "POST",
    "/v1/handoffs/{id}/heartbeat",
    m.Beat,
    query=(),
    body=("acknowledge", "claim_id", "fence"),
)
HANDOFF_LIST: Route[m.Handoffs] = Route(
    "GET",
    "/v1/handoffs",
    m.Handoffs,
    query=("before", "from_agent", "limit", "state", "task", "to_agent", "to_capability"),
    body=(),
)
HANDOFF_MESSAGE: Route[m.HolderMessages] = Route(
    "POST", "/v1/handoffs/{id}/messages", m.HolderMessages, query=(), body=("by", "details", "text")
)
HANDOFF_MESSAGES: Route[m.HolderMessages] = Route(
    "GET", "/v1/handoffs/{id}/messages", m.HolderMessages, query=(), body=()
)
HANDOFF_OFFER: Route[m.OfferReply] = Route(
    "POST",
    "/v1/handoffs",
    m.OfferReply,
    query=(),
    body=(
        "action",
        "add_constraints",
        "after",
        "alternatives",
        "approvers",
        "ask",
        "assumptions",
        "budget",
        "budget_tokens",
        "capability",
        "constraints",
        "context",
        "context_manifest",
        "control",
        "coordinator",
        "correlation_id",
        "deadline",
        "decisions",
        "deferred",
        "envelope_version",
        "expected_output",
        "expires_in_ms",
        "fallbacks",
        "from_agent",
        "gaps",
        "history",
        "idempotency_key",
        "intent",
        "lift_constraints",
        "majors",
        "memory_refs",
        "metadata",
        "needs_approval",
        "on_parent_end",
        "open_decisions",
        "ordering_key",
        "output_schema",
        "payload",
        "priority",
        "project",
        "read_back",
        "reading",
        "resolved_gaps",
        "route",
        "signed",
        "start_in_ms",
        "state",
        "summary",
        "task_id",
        "terms",
        "to",
        "tried",
    ),
)
HANDOFF_OFFER_BATCH: Route[m.BatchOfOfferReply] = Route(
    "POST", "/v1/handoffs/batch", m.BatchOfOfferReply, query=(), body=("offers",)
)
HANDOFF_PEEK: Route[m.Peeked] = Route(
    "POST", "/v1/claims/peek", m.Peeked, query=(), body=("agent", "capabilities", "majors", "max")
)
HANDOFF_PROGRESS: Route[m.Moved] = Route(
    "POST",
    "/v1/handoffs/{id}/progress",
    m.Moved,
    query=(),
    body=("claim_id", "fence", "note", "percent"),
)
HANDOFF_PROMPT: Route[m.Prompt] = Route(
    "GET",
    "/v1/handoffs/{id}/prompt",
    m.Prompt,
    query=("all", "form", "max_tokens", "payload_apart", "tokenizer"),
    body=(),
)
HANDOFF_PUT_BACK: Route[m.Moved] = Route(
    "POST",
    "/v1/handoffs/{id}/put-back",
    m.Moved,
    query=(),
    body=("claim_id", "fence", "for_ms", "reason", "until"),
)
HANDOFF_READY: Route[m.ReadyView] = Route(
    "GET",
    "/v1/ready",
    m.ReadyView,
    query=("from_agent", "limit", "to_agent", "to_capability"),
    body=(),
)
HANDOFF_REJECT: Route[m.Moved] = Route(
    "POST", "/v1/handoffs/{id}/reject", m.Moved, query=(), body=("by", "reason")
)
HANDOFF_RELEASE: Route[m.Moved] = Route(
    "POST", "/v1/handoffs/{id}/release", m.Moved, query=(), body=("claim_id", "fence")
)
HANDOFF_RESERVE: Route[m.Reservations] = Route(
    "POST",
    "/v1/handoffs/{id}/reserve",
    m.Reservations,
    query=(),
    body=("claim_id", "fence", "resources"),
)
HANDOFF_RETRACT: Route[m.Handoff] = Route(
    "POST", "/v1/handoffs/{id}/retract", m.Handoff, query=(), body=("by", "policy", "reason")
)
HANDOFF_SEND: Route[m.Sent] = Route(
    "POST",
    "/v1/handoffs/send",
    m.Sent,
    query=(),
    body=(
        "action",
        "add_constraints",
        "after",
        "alternatives",
        "approvers",
        "ask",
        "assumptions",
        "budget",
        "budget_tokens",
        "capability",
        "constraints",
        "context",
        "context_manifest",
        "control",
        "coordinator",
        "correlation_id",
        "deadline",
        "decisions",
        "deferred",
        "envelope_version",
        "expected_output",
        "expires_in_ms",
        "fallbacks",
        "from_agent",
        "gaps",
        "history",
        "idempotency_key",
        "intent",
        "lift_constraints",
        "majors",
        "memory_refs",
        "metadata",
        "needs_approval",
        "on_parent_end",
        "open_decisions",
        "ordering_key",
        "output_schema",
        "payload",
        "priority",
        "project",
        "read_back",
        "reading",
        "resolved_gaps",
        "route",
        "signed",
        "start_in_ms",
        "state",
        "summary",
        "task_id",
        "terms",
        "timeout_ms",
        "to",
        "tried",
        "until",
    ),
)
HANDOFF_SETTLE: Route[m.Handoff] = Route(
    "POST", "/v1/handoffs/{id}/settle", m.Handoff, query=(), body=("accept", "agent", "by")
)
HANDOFF_SHOW: Route[m.HandoffWithResult] = Route(
    "GET", "/v1/handoffs/{id}", m.HandoffWithResult, query=("until", "wait_ms"), body=()
)
HANDOFF_START: Route[m.Moved] = Route(
    "POST",
    "/v1/handoffs/{id}/start",
    m.Moved,
    query=(),
    body=("claim_id", "fence", "read_back", "signed"),
)
HANDOFF_UNRESERVE: Route[m.Reservations] = Route(
    "POST",
    "/v1/handoffs/{id}/unreserve",
    m.Reservations,
    query=(),
    body=("claim_id", "fence", "resources"),
)
HANDOFF_WAIT: Route[m.Waited] = Route(
    "POST",
    "/v1/wait",
    m.Waited,
    query=(),
    body=("handoffs", "mode", "tasks", "timeout_ms", "until"),
)
HEALTH: Route[m.Health] = Route("GET", "/healthz", m.Health, query=(), body=())
HEALTH_TARGETS: Route[m.TargetsHealth] = Route(
    "GET", "/v1/health/targets", m.TargetsHealth, query=(), body=()
)
KEY_ENROLL: Route[m.Agent] = Route(
    "POST", "/v1/agents/{id}/keys", m.Agent, query=(), body=("key", "rules")
)
KEY_REVOKE: Route[m.Agent] = Route(
    "POST", "/v1/agents/{id}/keys/{key}/revoke", m.Agent, query=(), body=()
)
KEY_ROTATE: Route[m.Agent] = Route(
    "POST",
    "/v1/agents/{id}/keys/rotate",
    m.Agent,
    query=(),
    body=("grace_ms", "key", "old", "proof"),
)
MEMORY_ADD: Route[m.Memory] = Route(
    "POST",
    "/v1/memories",
    m.Memory,
    query=(),
    body=(
        "by",
        "id",
        "idempotency_key",
        "pinned",
        "priority",
        "scope",
        "summary",
        "tags",
        "text",
        "title",
    ),
)
MEMORY_DELETE: Route[m.Memory] = Route(
    "DELETE", "/v1/memories/{id}", m.Memory, query=(), body=("by", "reason")
)
MEMORY_EDIT: Route[m.Memory] = Route(
    "PATCH",
    "/v1/memories/{id}",
    m.Memory,
    query=(),
    body=("by", "priority", "revision", "scope", "summary", "tags", "text", "title"),
)
MEMORY_ERASE: Route[m.Memory] = Route(
    "POST", "/v1/memories/{id}/erase", m.Memory, query=(), body=("by", "reason", "revision")
)
MEMORY_LIST: Route[m.Memories] = Route(
    "GET",
    "/v1/memories",
    m.Memories,
    query=(
        "agent",
        "before",
        "deleted",
        "detail",
        "limit",
        "pinned",
        "project",
        "q",
        "superseded",
        "tag",
        "task",
    ),
    body=(),
)
MEMORY_PIN: Route[m.Memory] = Route(
    "POST", "/v1/memories/{id}/pin", m.Memory, query=(), body=("by",)
)
MEMORY_SHOW: Route[m.Memory] = Route(
    "GET", "/v1/memories/{id}", m.Memory, query=("detail", "handoff", "revision"), body=()
)
MEMORY_SUPERSEDE: Route[m.Memory] = Route(
    "POST", "/v1/memories/{id}/supersede", m.Memory, query=(), body=("by", "successor")
)
MEMORY_UNPIN: Route[m.Memory] = Route(
    "POST", "/v1/memories/{id}/unpin", m.Memory, query=(), body=("by",)
)
METRICS_SHOW: Route[object] = Route("GET", "/metrics", object, query=(), body=())
OVERVIEW_SHOW: Route[m.Overview] = Route("GET", "/v1/overview", m.Overview, query=(), body=())
PIPELINE_LIST: Route[m.Pipelines] = Route("GET", "/v1/pipelines", m.Pipelines, query=(), body=())
PIPELINE_START: Route[m.OfferReply] = Route(
    "POST",
    "/v1/pipelines/{name}/start",
    m.OfferReply,
    query=(),
    body=(
        "add_constraints",
        "alternatives",
        "ask",
        "assumptions",
        "constraints",
        "context",
        "context_manifest",
        "coordinator",
        "correlation_id",
        "deadline",
        "decisions",
        "deferred",
        "expected_output",
        "from_agent",
        "gaps",
        "history",
        "idempotency_key",
        "intent",
        "lift_constraints",
        "memory_refs",
        "open_decisions",
        "payload",
        "project",
        "read_back",
        "reading",
        "resolved_gaps",
        "state",
        "summary",
        "tried",
    ),
)
POPULATION_SHOW: Route[m.PopulationReport] = Route(
    "GET",
    "/v1/population",
    m.PopulationReport,
    query=("baseline_from", "baseline_until", "no_baseline"),
    body=(),
)
QUESTION_ANSWER: Route[m.Moved] = Route(
    "POST", "/v1/handoffs/{id}/answer", m.Moved, query=(), body=("answer", "by", "question")
)
QUESTION_LIST: Route[m.Questions] = Route(
    "GET",
    "/v1/questions",
    m.Questions,
    query=("before", "from_agent", "kind", "limit", "task"),
    body=(),
)
READY: Route[m.Health] = Route("GET", "/readyz", m.Health, query=(), body=())
RESERVATION_LIST: Route[m.Reservations] = Route(
    "GET", "/v1/reservations", m.Reservations, query=(), body=()
)
SECURITY_SHOW: Route[m.Refusals] = Route("GET", "/v1/security", m.Refusals, query=(), body=())
SESSION_CLOSE: Route[m.Nothing] = Route("DELETE", "/v1/session", m.Nothing, query=(), body=())
SESSION_OPEN: Route[m.IssuedToken] = Route(
    "POST", "/v1/session", m.IssuedToken, query=(), body=("expires_in_ms",)
)
SESSION_SHOW: Route[m.Session] = Route("GET", "/v1/session", m.Session, query=(), body=())
STATS_SHOW: Route[m.Stats] = Route("GET", "/v1/stats", m.Stats, query=(), body=())
TARGET_PAUSE: Route[m.TargetHealth] = Route(
    "POST", "/v1/targets/pause", m.TargetHealth, query=(), body=("for_ms", "target", "until")
)
TARGET_RESUME: Route[m.TargetHealth] = Route(
    "POST", "/v1/targets/resume", m.TargetHealth, query=(), body=("target",)
)
TASK_BRANCH: Route[m.OfferReply] = Route(
    "POST",
    "/v1/tasks/{id}/branch",
    m.OfferReply,
    query=(),
    body=("by", "hop", "idempotency_key", "to"),
)
TASK_CANCEL: Route[m.Task] = Route(
    "POST", "/v1/tasks/{id}/cancel", m.Task, query=(), body=("by", "reason")
)
TASK_CLEAR_TAINT: Route[m.Task] = Route(
    "POST", "/v1/tasks/{id}/clear-taint", m.Task, query=(), body=("by", "reason", "source")
)
TASK_COMPLETE: Route[m.Task] = Route(
    "POST", "/v1/tasks/{id}/complete", m.Task, query=(), body=("below", "by", "metadata", "payload")
)
TASK_EVENTS: Route[m.Events] = Route("GET", "/v1/tasks/{id}/events", m.Events, query=(), body=())
TASK_EXPORT: Route[m.ChainFile] = Route(
    "GET", "/v1/tasks/{id}/export", m.ChainFile, query=(), body=()
)
TASK_JOIN: Route[m.Gathered] = Route(
    "POST", "/v1/tasks/{id}/join", m.Gathered, query=(), body=("before", "limit", "need", "wait_ms")
)
TASK_LIFT: Route[m.Task] = Route(
    "POST", "/v1/tasks/{id}/lift", m.Task, query=(), body=("by", "constraint", "reason")
)
TASK_LIST: Route[m.Tasks] = Route(
    "GET",
    "/v1/tasks",
    m.Tasks,
    query=("before", "correlation_id", "limit", "owner", "parent", "project", "state"),
    body=(),
)
TASK_OPEN: Route[m.Task] = Route(
    "POST",
    "/v1/tasks",
    m.Task,
    query=(),
    body=(
        "coordinator",
        "correlation_id",
        "from_agent",
        "idempotency_key",
        "intent",
        "on_parent_end",
        "parent_task_id",
        "project",
    ),
)
TASK_SHOW: Route[m.TaskWithParts] = Route(
    "GET", "/v1/tasks/{id}", m.TaskWithParts, query=(), body=()
)
TENANT_LIST: Route[m.Tenants] = Route("GET", "/v1/tenants", m.Tenants, query=(), body=())
TENANT_SET: Route[m.TenantInfo] = Route(
    "POST",
    "/v1/tenants/{id}",
    m.TenantInfo,
    query=(),
    body=("in_flight", "requests_per_second", "stored_bytes"),
)
TOKEN_ISSUE: Route[m.IssuedToken] = Route(
    "POST",
    "/v1/tokens",
    m.IssuedToken,
    query=(),
    body=("agent_id", "expires_in_ms", "purpose", "rules"),
)
TOKEN_LIST: Route[m.Tokens] = Route("GET", "/v1/tokens", m.Tokens, query=(), body=())
TOKEN_REVOKE: Route[m.TokenInfo] = Route(
    "POST", "/v1/tokens/{id}/revoke", m.TokenInfo, query=(), body=()
)
