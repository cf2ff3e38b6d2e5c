# SPDX-License-Identifier: Apache-2.0
# Made by tools/generate.py from api/openapi.json. Do not edit.

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
    query=("capability", "limit", "live", "reliability", "role", "tag", "version"),
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
        "version",
    ),
)
AGENT_SET_RULES: Route[m.Agent] = Route(
    "POST", "/v1/agents/{id}/rules", m.Agent, query=(), body=("rules",)
)
AGENT_SHOW: Route[m.Agent] = Route("GET", "/v1/agents/{id}", m.Agent, query=(), body=())
ASSEMBLE: Route[m.AssembleReply] = Route(
    "POST",
    "/v1/assemble",
    m.AssembleReply,
    query=(),
    body=(
        "add_constraints",
        "ask",
        "assumptions",
        "constraints",
        "context",
        "context_manifest",
        "decisions",
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
        "project",
        "read_back",
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
AUDIT_VERIFY: Route[m.Verdict] = Route("GET", "/v1/audit/verify", m.Verdict, query=(), body=())
CONTEXT_DECIDE: Route[m.SharedContext] = Route(
    "POST",
    "/v1/projects/{project}/decisions",
    m.SharedContext,
    query=(),
    body=("by", "decision", "key", "supersedes", "why"),
)
CONTEXT_SHOW: Route[m.SharedContext] = Route(
    "GET", "/v1/projects/{project}/context", m.SharedContext, query=(), body=()
)
CONTEXT_WRITE: Route[m.SharedContext] = Route(
    "PUT",
    "/v1/projects/{project}/context",
    m.SharedContext,
    query=(),
    body=("by", "constraints", "revision", "state"),
)
DEAD_LETTER_DISCARD: Route[m.Moved] = Route(
    "POST", "/v1/dead-letters/{id}/discard", m.Moved, query=(), body=("by", "reason")
)
DEAD_LETTER_LIST: Route[m.Handoffs] = Route(
    "GET", "/v1/dead-letters", m.Handoffs, query=("all", "before", "limit"), body=()
)
DEAD_LETTER_REDRIVE: Route[m.OfferReply] = Route(
    "POST", "/v1/dead-letters/{id}/redrive", m.OfferReply, query=(), body=("by",)
)
DEAD_LETTER_SHOW: Route[m.DeadLetter] = Route(
    "GET", "/v1/dead-letters/{id}", m.DeadLetter, query=(), body=()
)
EVENT_STREAM: Route[object] = Route(
    "GET", "/v1/events", object, query=("after", "handoff", "task"), body=()
)
HANDOFF_ABORT: Route[m.Moved] = Route(
    "POST", "/v1/handoffs/{id}/abort", m.Moved, query=(), body=("by", "reason")
)
HANDOFF_APPROVE: Route[m.Moved] = Route(
    "POST", "/v1/handoffs/{id}/approve", m.Moved, query=(), body=("by",)
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
    body=("agent", "capabilities", "lease_ms", "majors", "request_id"),
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
        "signed",
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
        "claim_id",
        "class",
        "details",
        "fence",
        "hint",
        "message",
        "retry_after_ms",
        "signed",
        "type",
    ),
)
HANDOFF_HEARTBEAT: Route[m.Beat] = Route(
    "POST", "/v1/handoffs/{id}/heartbeat", m.Beat, query=(), body=("claim_id", "fence")
)
HANDOFF_LIST: Route[m.Handoffs] = Route(
    "GET",
    "/v1/handoffs",
    m.Handoffs,
    query=("before", "from_agent", "limit", "state", "task", "to_agent", "to_capability"),
    body=(),
)
HANDOFF_OFFER: Route[m.OfferReply] = Route(
    "POST",
    "/v1/handoffs",
    m.OfferReply,
    query=(),
    body=(
        "action",
        "add_constraints",
        "ask",
        "assumptions",
        "budget_tokens",
        "capability",
        "constraints",
        "context",
        "context_manifest",
        "control",
        "correlation_id",
        "deadline",
        "decisions",
        "envelope_version",
        "expected_output",
        "expires_in_ms",
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
        "open_decisions",
        "ordering_key",
        "output_schema",
        "payload",
        "priority",
        "read_back",
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
    "GET", "/v1/handoffs/{id}/prompt", m.Prompt, query=("tokenizer",), body=()
)
HANDOFF_REJECT: Route[m.Moved] = Route(
    "POST", "/v1/handoffs/{id}/reject", m.Moved, query=(), body=("by",)
)
HANDOFF_RELEASE: Route[m.Moved] = Route(
    "POST", "/v1/handoffs/{id}/release", m.Moved, query=(), body=("claim_id", "fence")
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
HANDOFF_WAIT: Route[m.Waited] = Route(
    "POST",
    "/v1/wait",
    m.Waited,
    query=(),
    body=("handoffs", "mode", "tasks", "timeout_ms", "until"),
)
HEALTH: Route[m.Health] = Route("GET", "/healthz", m.Health, query=(), body=())
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
    "GET", "/v1/memories/{id}", m.Memory, query=("detail", "revision"), body=()
)
MEMORY_SUPERSEDE: Route[m.Memory] = Route(
    "POST", "/v1/memories/{id}/supersede", m.Memory, query=(), body=("by", "successor")
)
MEMORY_UNPIN: Route[m.Memory] = Route(
    "POST", "/v1/memories/{id}/unpin", m.Memory, query=(), body=("by",)
)
READY: Route[m.Health] = Route("GET", "/readyz", m.Health, query=(), body=())
SECURITY_SHOW: Route[m.Refusals] = Route("GET", "/v1/security", m.Refusals, query=(), body=())
STATS_SHOW: Route[m.Stats] = Route("GET", "/v1/stats", m.Stats, query=(), body=())
TASK_CANCEL: Route[m.Task] = Route(
    "POST", "/v1/tasks/{id}/cancel", m.Task, query=(), body=("by", "reason")
)
TASK_EVENTS: Route[m.Events] = Route("GET", "/v1/tasks/{id}/events", m.Events, query=(), body=())
TASK_LIST: Route[m.Tasks] = Route(
    "GET", "/v1/tasks", m.Tasks, query=("before", "limit", "owner", "parent", "state"), body=()
)
TASK_OPEN: Route[m.Task] = Route(
    "POST",
    "/v1/tasks",
    m.Task,
    query=(),
    body=("correlation_id", "from_agent", "idempotency_key", "intent", "parent_task_id"),
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
