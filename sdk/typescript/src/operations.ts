// SPDX-License-Identifier: Apache-2.0
// Made by tools/generate.mjs from api/operations.json. Do not edit.

/* biome-ignore-all lint: generated */

import type * as m from "./models.js";
import type { Options, Route, Send, Without } from "./wire.js";

/** Where each operation of the API is, and what it takes. */
export const ROUTES = {
  agent_catalogue: {"name":"agent_catalogue","method":"GET","path":"/.well-known/agents.json","at":["agents","catalogue"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Catalogue>,
  agent_deregister: {"name":"agent_deregister","method":"POST","path":"/v1/agents/{id}/deregister","at":["agents","deregister"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Agent>,
  agent_drain: {"name":"agent_drain","method":"POST","path":"/v1/agents/{id}/drain","at":["agents","drain"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Agent>,
  agent_join: {"name":"agent_join","method":"POST","path":"/v1/join","at":["agents","join"],"members":["agent_id","key","proof","token"],"own":[],"needs":[],"key":null} as Route<m.Agent>,
  agent_list: {"name":"agent_list","method":"GET","path":"/v1/agents","at":["agents","list"],"members":["capability","limit","live","reliability","role","tag","tenant","version"],"own":[],"needs":[],"key":null} as Route<m.Agents>,
  agent_publish: {"name":"agent_publish","method":"POST","path":"/v1/agents","at":["agents","publish"],"members":["manifest","signed","version"],"own":[],"needs":[],"key":null} as Route<m.Agent>,
  agent_resume: {"name":"agent_resume","method":"POST","path":"/v1/agents/{id}/resume","at":["agents","resume"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Agent>,
  agent_search: {"name":"agent_search","method":"POST","path":"/v1/discover","at":["agents","search"],"members":["capability","input","limit","live","output","reliability","role","tags","tenant","version"],"own":[],"needs":[],"key":null} as Route<m.Agents>,
  agent_set_breaker: {"name":"agent_set_breaker","method":"POST","path":"/v1/agents/{id}/breaker","at":["agents","setBreaker"],"members":["limits"],"own":[],"needs":[],"key":null} as Route<m.TargetHealth>,
  agent_set_rules: {"name":"agent_set_rules","method":"POST","path":"/v1/agents/{id}/rules","at":["agents","setRules"],"members":["rules"],"own":[],"needs":[],"key":null} as Route<m.Agent>,
  agent_show: {"name":"agent_show","method":"GET","path":"/v1/agents/{id}","at":["agents","show"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Agent>,
  alert_list: {"name":"alert_list","method":"GET","path":"/v1/alerts","at":["alerts","list"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Alerts>,
  alert_rules: {"name":"alert_rules","method":"GET","path":"/v1/alerts/rules","at":["alerts","rules"],"members":[],"own":[],"needs":[],"key":null} as Route<m.AlertRules>,
  alert_silence: {"name":"alert_silence","method":"POST","path":"/v1/alerts/silence","at":["alerts","silence"],"members":["for_ms","reason","rule","target"],"own":[],"needs":[],"key":null} as Route<m.Alerts>,
  alert_test: {"name":"alert_test","method":"POST","path":"/v1/alerts/test","at":["alerts","test"],"members":[],"own":[],"needs":[],"key":null} as Route<m.AlertTested>,
  assemble: {"name":"assemble","method":"POST","path":"/v1/assemble","at":null,"members":["add_constraints","alternatives","ask","assumptions","constraints","context","context_manifest","decisions","deferred","expected_output","from_agent","gaps","history","include_pins","include_recent","intent","lift_constraints","max_tokens","memory_refs","open_decisions","payload","project","read_back","reading","reserved_system_prompt","reserved_work","resolved_gaps","role","state","strategy","summary","task_id","to_agent","tokenizer","tried"],"own":["from_agent"],"needs":["from_agent"],"key":null} as Route<m.AssembleReply>,
  audit_export: {"name":"audit_export","method":"GET","path":"/v1/audit/export","at":null,"members":["after"],"own":[],"needs":[],"key":null} as Route<undefined>,
  audit_verify: {"name":"audit_verify","method":"GET","path":"/v1/audit/verify","at":["audit","verify"],"members":["full"],"own":[],"needs":[],"key":null} as Route<m.Verdict>,
  chain_import: {"name":"chain_import","method":"POST","path":"/v1/chains","at":["chains","import"],"members":["by","file","project"],"own":["by"],"needs":["by"],"key":null} as Route<m.ImportedChain>,
  chain_list: {"name":"chain_list","method":"GET","path":"/v1/chains","at":["chains","list"],"members":["before","limit"],"own":[],"needs":[],"key":null} as Route<m.ImportedChains>,
  chain_show: {"name":"chain_show","method":"GET","path":"/v1/chains/{id}","at":["chains","show"],"members":[],"own":[],"needs":[],"key":null} as Route<m.ImportedChainWithFile>,
  change_stream: {"name":"change_stream","method":"GET","path":"/v1/changes","at":null,"members":[],"own":[],"needs":[],"key":null} as Route<undefined>,
  channel_messages: {"name":"channel_messages","method":"GET","path":"/v1/channels/{name}/messages","at":["channels","messages"],"members":["after","limit"],"own":[],"needs":[],"key":null} as Route<m.Messages>,
  channel_publish: {"name":"channel_publish","method":"POST","path":"/v1/channels/{name}/publish","at":["channels","publish"],"members":["action","add_constraints","alternatives","approvers","ask","assumptions","constraints","context","context_manifest","coordinator","correlation_id","deadline","decisions","deferred","expected_output","expires_in_ms","from_agent","gaps","history","idempotency_key","intent","lift_constraints","memory_refs","metadata","needs_approval","open_decisions","ordering_key","payload","priority","project","read_back","reading","receivers","resolved_gaps","state","summary","terms","tried"],"own":["from_agent"],"needs":["from_agent"],"key":"idempotency_key"} as Route<m.Published>,
  channel_show: {"name":"channel_show","method":"GET","path":"/v1/channels/{name}","at":["channels","show"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Channel>,
  channel_subscribe: {"name":"channel_subscribe","method":"POST","path":"/v1/channels/{name}/subscribe","at":["channels","subscribe"],"members":["agent"],"own":["agent"],"needs":["agent"],"key":null} as Route<m.Channel>,
  channel_unsubscribe: {"name":"channel_unsubscribe","method":"POST","path":"/v1/channels/{name}/unsubscribe","at":["channels","unsubscribe"],"members":["agent"],"own":["agent"],"needs":["agent"],"key":null} as Route<m.Channel>,
  context_decide: {"name":"context_decide","method":"POST","path":"/v1/projects/{project}/decisions","at":["projects","decide"],"members":["by","decision","key","supersedes","why"],"own":["by"],"needs":["by"],"key":null} as Route<m.SharedContext>,
  context_show: {"name":"context_show","method":"GET","path":"/v1/projects/{project}/context","at":["projects","show"],"members":["revision"],"own":[],"needs":[],"key":null} as Route<m.SharedContext>,
  context_write: {"name":"context_write","method":"PUT","path":"/v1/projects/{project}/context","at":["projects","write"],"members":["by","constraints","revision","state"],"own":["by"],"needs":["by"],"key":null} as Route<m.SharedContext>,
  dead_letter_amend: {"name":"dead_letter_amend","method":"POST","path":"/v1/dead-letters/{id}/amend","at":["deadLetters","amend"],"members":["add_constraints","alternatives","ask","assumptions","budget","by","constraints","context","context_manifest","decisions","deferred","expected_output","expires_in_ms","gaps","history","lift_constraints","memory_refs","open_decisions","payload","read_back","reading","resolved_gaps","state","summary","terms","to","tried"],"own":["by"],"needs":["by"],"key":null} as Route<m.OfferReply>,
  dead_letter_answer: {"name":"dead_letter_answer","method":"POST","path":"/v1/dead-letters/{id}/answer","at":["deadLetters","answer"],"members":["by","decision","expires_in_ms"],"own":["by"],"needs":["by"],"key":null} as Route<m.OfferReply>,
  dead_letter_decide_many: {"name":"dead_letter_decide_many","method":"POST","path":"/v1/dead-letters/decide","at":["deadLetters","decideMany"],"members":["by","decision","dry_run","expires_in_ms","fingerprint","handoffs"],"own":["by"],"needs":["by"],"key":null} as Route<m.DecidedMany>,
  dead_letter_discard: {"name":"dead_letter_discard","method":"POST","path":"/v1/dead-letters/{id}/discard","at":["deadLetters","discard"],"members":["by","reason"],"own":["by"],"needs":["by"],"key":null} as Route<m.Moved>,
  dead_letter_groups: {"name":"dead_letter_groups","method":"GET","path":"/v1/dead-letters/groups","at":["deadLetters","groups"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Groups>,
  dead_letter_list: {"name":"dead_letter_list","method":"GET","path":"/v1/dead-letters","at":["deadLetters","list"],"members":["all","before","limit"],"own":[],"needs":[],"key":null} as Route<m.Handoffs>,
  dead_letter_redrive: {"name":"dead_letter_redrive","method":"POST","path":"/v1/dead-letters/{id}/redrive","at":["deadLetters","redrive"],"members":["by","expires_in_ms"],"own":["by"],"needs":["by"],"key":null} as Route<m.OfferReply>,
  dead_letter_reroute: {"name":"dead_letter_reroute","method":"POST","path":"/v1/dead-letters/{id}/reroute","at":["deadLetters","reroute"],"members":["by","expires_in_ms","to"],"own":["by"],"needs":["by"],"key":null} as Route<m.OfferReply>,
  dead_letter_show: {"name":"dead_letter_show","method":"GET","path":"/v1/dead-letters/{id}","at":["deadLetters","show"],"members":[],"own":[],"needs":[],"key":null} as Route<m.DeadLetter>,
  dead_letter_take: {"name":"dead_letter_take","method":"POST","path":"/v1/dead-letters/{id}/take","at":["deadLetters","take"],"members":["by","for_ms"],"own":["by"],"needs":["by"],"key":null} as Route<m.Handoff>,
  event_stream: {"name":"event_stream","method":"GET","path":"/v1/events","at":null,"members":["after","follow","handoff","task"],"own":[],"needs":[],"key":null} as Route<undefined>,
  handoff_abort: {"name":"handoff_abort","method":"POST","path":"/v1/handoffs/{id}/abort","at":["handoffs","abort"],"members":["by","reason"],"own":["by"],"needs":["by"],"key":null} as Route<m.Moved>,
  handoff_approve: {"name":"handoff_approve","method":"POST","path":"/v1/handoffs/{id}/approve","at":["handoffs","approve"],"members":["by"],"own":["by"],"needs":["by"],"key":null} as Route<m.Moved>,
  handoff_artifacts: {"name":"handoff_artifacts","method":"GET","path":"/v1/handoffs/{id}/artifacts","at":["handoffs","artifacts"],"members":["name"],"own":[],"needs":[],"key":null} as Route<m.Artifacts>,
  handoff_ask: {"name":"handoff_ask","method":"POST","path":"/v1/handoffs/{id}/ask","at":["handoffs","ask"],"members":["answer_ms","by_id","claim_id","default","details","fence","keep_ms","kind","schema","text"],"own":[],"needs":[],"key":null} as Route<m.AskReply>,
  handoff_attach: {"name":"handoff_attach","method":"POST","path":"/v1/handoffs/{id}/artifacts","at":["handoffs","attach"],"members":["claim_id","content","fence","name","type"],"own":[],"needs":[],"key":null} as Route<m.Moved>,
  handoff_cancel: {"name":"handoff_cancel","method":"POST","path":"/v1/handoffs/{id}/cancel","at":["handoffs","cancel"],"members":["by","reason"],"own":["by"],"needs":["by"],"key":null} as Route<m.Moved>,
  handoff_claim: {"name":"handoff_claim","method":"POST","path":"/v1/claims","at":["handoffs","claim"],"members":["agent","capabilities","lease_ms","majors","max","request_id","wait_ms"],"own":["agent"],"needs":["agent"],"key":"request_id"} as Route<m.Claims>,
  handoff_claim_one: {"name":"handoff_claim_one","method":"POST","path":"/v1/handoffs/{id}/claim","at":["handoffs","claimOne"],"members":["agent","capabilities","lease_ms","majors","request_id","wait_ms"],"own":["agent"],"needs":["agent"],"key":"request_id"} as Route<m.ClaimReply>,
  handoff_complete: {"name":"handoff_complete","method":"POST","path":"/v1/handoffs/{id}/complete","at":["handoffs","complete"],"members":["action","claim_id","criteria","fence","follow_ups","gaps","metadata","payload","resolved_gaps","signed","usage"],"own":[],"needs":[],"key":null} as Route<m.Moved>,
  handoff_complete_batch: {"name":"handoff_complete_batch","method":"POST","path":"/v1/completions","at":["handoffs","completeBatch"],"members":["completions"],"own":[],"needs":[],"key":null} as Route<m.BatchOfMoved>,
  handoff_counter: {"name":"handoff_counter","method":"POST","path":"/v1/handoffs/{id}/counter","at":["handoffs","counter"],"members":["agent","budget_tokens","capabilities","reason","terms"],"own":["agent"],"needs":["agent"],"key":null} as Route<m.Handoff>,
  handoff_decline: {"name":"handoff_decline","method":"POST","path":"/v1/handoffs/{id}/decline","at":["handoffs","decline"],"members":["agent","claim_id","fence","reason"],"own":["agent"],"needs":["agent"],"key":null} as Route<m.Moved>,
  handoff_envelope: {"name":"handoff_envelope","method":"GET","path":"/v1/handoffs/{id}/envelope","at":["handoffs","envelope"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Envelope>,
  handoff_erase: {"name":"handoff_erase","method":"POST","path":"/v1/handoffs/{id}/erase","at":["handoffs","erase"],"members":["by","reason"],"own":["by"],"needs":["by"],"key":null} as Route<m.Moved>,
  handoff_fail: {"name":"handoff_fail","method":"POST","path":"/v1/handoffs/{id}/fail","at":["handoffs","fail"],"members":["attempted","attempts","causes","claim_id","class","details","fence","hint","message","retry_after_ms","signed","type","usage"],"own":[],"needs":[],"key":null} as Route<m.Moved>,
  handoff_heartbeat: {"name":"handoff_heartbeat","method":"POST","path":"/v1/handoffs/{id}/heartbeat","at":["handoffs","heartbeat"],"members":["acknowledge","claim_id","fence"],"own":[],"needs":[],"key":null} as Route<m.Beat>,
  handoff_list: {"name":"handoff_list","method":"GET","path":"/v1/handoffs","at":["handoffs","list"],"members":["before","from_agent","limit","state","task","to_agent","to_capability"],"own":[],"needs":[],"key":null} as Route<m.Handoffs>,
  handoff_message: {"name":"handoff_message","method":"POST","path":"/v1/handoffs/{id}/messages","at":["handoffs","message"],"members":["by","details","text"],"own":["by"],"needs":["by"],"key":null} as Route<m.HolderMessages>,
  handoff_messages: {"name":"handoff_messages","method":"GET","path":"/v1/handoffs/{id}/messages","at":["handoffs","messages"],"members":[],"own":[],"needs":[],"key":null} as Route<m.HolderMessages>,
  handoff_offer: {"name":"handoff_offer","method":"POST","path":"/v1/handoffs","at":["handoffs","offer"],"members":["action","add_constraints","after","alternatives","approvers","ask","assumptions","budget","budget_tokens","capability","constraints","context","context_manifest","control","coordinator","correlation_id","deadline","decisions","deferred","envelope_version","expected_output","expires_in_ms","fallbacks","from_agent","gaps","history","idempotency_key","intent","lift_constraints","majors","memory_refs","metadata","needs_approval","on_parent_end","open_decisions","ordering_key","output_schema","payload","priority","project","read_back","reading","resolved_gaps","route","signed","start_in_ms","state","summary","task_id","terms","to","tried"],"own":["from_agent"],"needs":["from_agent"],"key":"idempotency_key"} as Route<m.OfferReply>,
  handoff_offer_batch: {"name":"handoff_offer_batch","method":"POST","path":"/v1/handoffs/batch","at":["handoffs","offerBatch"],"members":["offers"],"own":[],"needs":[],"key":null} as Route<m.BatchOfOfferReply>,
  handoff_peek: {"name":"handoff_peek","method":"POST","path":"/v1/claims/peek","at":["handoffs","peek"],"members":["agent","capabilities","majors","max"],"own":["agent"],"needs":["agent"],"key":null} as Route<m.Peeked>,
  handoff_progress: {"name":"handoff_progress","method":"POST","path":"/v1/handoffs/{id}/progress","at":["handoffs","progress"],"members":["claim_id","fence","note","percent"],"own":[],"needs":[],"key":null} as Route<m.Moved>,
  handoff_prompt: {"name":"handoff_prompt","method":"GET","path":"/v1/handoffs/{id}/prompt","at":["handoffs","prompt"],"members":["all","form","max_tokens","payload_apart","tokenizer"],"own":[],"needs":[],"key":null} as Route<m.Prompt>,
  handoff_put_back: {"name":"handoff_put_back","method":"POST","path":"/v1/handoffs/{id}/put-back","at":["handoffs","putBack"],"members":["claim_id","fence","for_ms","reason","until"],"own":[],"needs":[],"key":null} as Route<m.Moved>,
  handoff_ready: {"name":"handoff_ready","method":"GET","path":"/v1/ready","at":["handoffs","ready"],"members":["from_agent","limit","to_agent","to_capability"],"own":[],"needs":[],"key":null} as Route<m.ReadyView>,
  handoff_reject: {"name":"handoff_reject","method":"POST","path":"/v1/handoffs/{id}/reject","at":["handoffs","reject"],"members":["by","reason"],"own":["by"],"needs":["by"],"key":null} as Route<m.Moved>,
  handoff_release: {"name":"handoff_release","method":"POST","path":"/v1/handoffs/{id}/release","at":["handoffs","release"],"members":["claim_id","fence"],"own":[],"needs":[],"key":null} as Route<m.Moved>,
  handoff_reserve: {"name":"handoff_reserve","method":"POST","path":"/v1/handoffs/{id}/reserve","at":["handoffs","reserve"],"members":["claim_id","fence","resources"],"own":[],"needs":[],"key":null} as Route<m.Reservations>,
  handoff_retract: {"name":"handoff_retract","method":"POST","path":"/v1/handoffs/{id}/retract","at":["handoffs","retract"],"members":["by","policy","reason"],"own":["by"],"needs":["by"],"key":null} as Route<m.Handoff>,
  handoff_send: {"name":"handoff_send","method":"POST","path":"/v1/handoffs/send","at":["handoffs","send"],"members":["action","add_constraints","after","alternatives","approvers","ask","assumptions","budget","budget_tokens","capability","constraints","context","context_manifest","control","coordinator","correlation_id","deadline","decisions","deferred","envelope_version","expected_output","expires_in_ms","fallbacks","from_agent","gaps","history","idempotency_key","intent","lift_constraints","majors","memory_refs","metadata","needs_approval","on_parent_end","open_decisions","ordering_key","output_schema","payload","priority","project","read_back","reading","resolved_gaps","route","signed","start_in_ms","state","summary","task_id","terms","timeout_ms","to","tried","until"],"own":["from_agent"],"needs":["from_agent"],"key":"idempotency_key"} as Route<m.Sent>,
  handoff_settle: {"name":"handoff_settle","method":"POST","path":"/v1/handoffs/{id}/settle","at":["handoffs","settle"],"members":["accept","agent","by"],"own":["by"],"needs":["by"],"key":null} as Route<m.Handoff>,
  handoff_show: {"name":"handoff_show","method":"GET","path":"/v1/handoffs/{id}","at":["handoffs","show"],"members":["until","wait_ms"],"own":[],"needs":[],"key":null} as Route<m.HandoffWithResult>,
  handoff_start: {"name":"handoff_start","method":"POST","path":"/v1/handoffs/{id}/start","at":["handoffs","start"],"members":["claim_id","fence","read_back","signed"],"own":[],"needs":[],"key":null} as Route<m.Moved>,
  handoff_unreserve: {"name":"handoff_unreserve","method":"POST","path":"/v1/handoffs/{id}/unreserve","at":["handoffs","unreserve"],"members":["claim_id","fence","resources"],"own":[],"needs":[],"key":null} as Route<m.Reservations>,
  handoff_wait: {"name":"handoff_wait","method":"POST","path":"/v1/wait","at":["handoffs","wait"],"members":["handoffs","mode","tasks","timeout_ms","until"],"own":[],"needs":[],"key":null} as Route<m.Waited>,
  health: {"name":"health","method":"GET","path":"/healthz","at":["health","alive"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Health>,
  health_targets: {"name":"health_targets","method":"GET","path":"/v1/health/targets","at":["health","targets"],"members":[],"own":[],"needs":[],"key":null} as Route<m.TargetsHealth>,
  key_enroll: {"name":"key_enroll","method":"POST","path":"/v1/agents/{id}/keys","at":["keys","enroll"],"members":["key","rules"],"own":[],"needs":[],"key":null} as Route<m.Agent>,
  key_revoke: {"name":"key_revoke","method":"POST","path":"/v1/agents/{id}/keys/{key}/revoke","at":["keys","revoke"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Agent>,
  key_rotate: {"name":"key_rotate","method":"POST","path":"/v1/agents/{id}/keys/rotate","at":["keys","rotate"],"members":["grace_ms","key","old","proof"],"own":[],"needs":[],"key":null} as Route<m.Agent>,
  memory_add: {"name":"memory_add","method":"POST","path":"/v1/memories","at":["memories","add"],"members":["by","id","idempotency_key","pinned","priority","scope","summary","tags","text","title"],"own":["by"],"needs":["by"],"key":"idempotency_key"} as Route<m.Memory>,
  memory_delete: {"name":"memory_delete","method":"DELETE","path":"/v1/memories/{id}","at":["memories","delete"],"members":["by","reason"],"own":["by"],"needs":["by"],"key":null} as Route<m.Memory>,
  memory_edit: {"name":"memory_edit","method":"PATCH","path":"/v1/memories/{id}","at":["memories","edit"],"members":["by","priority","revision","scope","summary","tags","text","title"],"own":["by"],"needs":["by"],"key":null} as Route<m.Memory>,
  memory_erase: {"name":"memory_erase","method":"POST","path":"/v1/memories/{id}/erase","at":["memories","erase"],"members":["by","reason","revision"],"own":["by"],"needs":["by"],"key":null} as Route<m.Memory>,
  memory_list: {"name":"memory_list","method":"GET","path":"/v1/memories","at":["memories","list"],"members":["agent","before","deleted","detail","limit","pinned","project","q","superseded","tag","task"],"own":[],"needs":[],"key":null} as Route<m.Memories>,
  memory_pin: {"name":"memory_pin","method":"POST","path":"/v1/memories/{id}/pin","at":["memories","pin"],"members":["by"],"own":["by"],"needs":["by"],"key":null} as Route<m.Memory>,
  memory_show: {"name":"memory_show","method":"GET","path":"/v1/memories/{id}","at":["memories","show"],"members":["detail","handoff","revision"],"own":[],"needs":[],"key":null} as Route<m.Memory>,
  memory_supersede: {"name":"memory_supersede","method":"POST","path":"/v1/memories/{id}/supersede","at":["memories","supersede"],"members":["by","successor"],"own":["by"],"needs":["by"],"key":null} as Route<m.Memory>,
  memory_unpin: {"name":"memory_unpin","method":"POST","path":"/v1/memories/{id}/unpin","at":["memories","unpin"],"members":["by"],"own":["by"],"needs":["by"],"key":null} as Route<m.Memory>,
  metrics_show: {"name":"metrics_show","method":"GET","path":"/metrics","at":null,"members":[],"own":[],"needs":[],"key":null} as Route<undefined>,
  overview_show: {"name":"overview_show","method":"GET","path":"/v1/overview","at":["overview","show"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Overview>,
  pipeline_list: {"name":"pipeline_list","method":"GET","path":"/v1/pipelines","at":["pipelines","list"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Pipelines>,
  pipeline_start: {"name":"pipeline_start","method":"POST","path":"/v1/pipelines/{name}/start","at":["pipelines","start"],"members":["add_constraints","alternatives","ask","assumptions","constraints","context","context_manifest","coordinator","correlation_id","deadline","decisions","deferred","expected_output","from_agent","gaps","history","idempotency_key","intent","lift_constraints","memory_refs","open_decisions","payload","project","read_back","reading","resolved_gaps","state","summary","tried"],"own":["from_agent"],"needs":["from_agent"],"key":"idempotency_key"} as Route<m.OfferReply>,
  population_show: {"name":"population_show","method":"GET","path":"/v1/population","at":["populations","show"],"members":["baseline_from","baseline_until","no_baseline"],"own":[],"needs":[],"key":null} as Route<m.PopulationReport>,
  question_answer: {"name":"question_answer","method":"POST","path":"/v1/handoffs/{id}/answer","at":["questions","answer"],"members":["answer","by","question"],"own":["by"],"needs":["by"],"key":null} as Route<m.Moved>,
  question_list: {"name":"question_list","method":"GET","path":"/v1/questions","at":["questions","list"],"members":["before","from_agent","kind","limit","task"],"own":[],"needs":[],"key":null} as Route<m.Questions>,
  ready: {"name":"ready","method":"GET","path":"/readyz","at":["health","ready"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Health>,
  reservation_list: {"name":"reservation_list","method":"GET","path":"/v1/reservations","at":["reservations","list"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Reservations>,
  security_show: {"name":"security_show","method":"GET","path":"/v1/security","at":["security","show"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Refusals>,
  session_close: {"name":"session_close","method":"DELETE","path":"/v1/session","at":["sessions","close"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Nothing>,
  session_open: {"name":"session_open","method":"POST","path":"/v1/session","at":["sessions","open"],"members":["expires_in_ms"],"own":[],"needs":[],"key":null} as Route<m.IssuedToken>,
  session_show: {"name":"session_show","method":"GET","path":"/v1/session","at":["sessions","show"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Session>,
  stats_show: {"name":"stats_show","method":"GET","path":"/v1/stats","at":["stats","show"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Stats>,
  target_pause: {"name":"target_pause","method":"POST","path":"/v1/targets/pause","at":["targets","pause"],"members":["for_ms","target","until"],"own":[],"needs":[],"key":null} as Route<m.TargetHealth>,
  target_resume: {"name":"target_resume","method":"POST","path":"/v1/targets/resume","at":["targets","resume"],"members":["target"],"own":[],"needs":[],"key":null} as Route<m.TargetHealth>,
  task_branch: {"name":"task_branch","method":"POST","path":"/v1/tasks/{id}/branch","at":["tasks","branch"],"members":["by","hop","idempotency_key","to"],"own":["by"],"needs":["by"],"key":"idempotency_key"} as Route<m.OfferReply>,
  task_cancel: {"name":"task_cancel","method":"POST","path":"/v1/tasks/{id}/cancel","at":["tasks","cancel"],"members":["by","reason"],"own":["by"],"needs":["by"],"key":null} as Route<m.Task>,
  task_clear_taint: {"name":"task_clear_taint","method":"POST","path":"/v1/tasks/{id}/clear-taint","at":["tasks","clearTaint"],"members":["by","reason","source"],"own":["by"],"needs":["by"],"key":null} as Route<m.Task>,
  task_complete: {"name":"task_complete","method":"POST","path":"/v1/tasks/{id}/complete","at":["tasks","complete"],"members":["below","by","metadata","payload"],"own":["by"],"needs":["by"],"key":null} as Route<m.Task>,
  task_events: {"name":"task_events","method":"GET","path":"/v1/tasks/{id}/events","at":["tasks","events"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Events>,
  task_export: {"name":"task_export","method":"GET","path":"/v1/tasks/{id}/export","at":null,"members":[],"own":[],"needs":[],"key":null} as Route<m.ChainFile>,
  task_join: {"name":"task_join","method":"POST","path":"/v1/tasks/{id}/join","at":["tasks","join"],"members":["before","limit","need","wait_ms"],"own":[],"needs":[],"key":null} as Route<m.Gathered>,
  task_lift: {"name":"task_lift","method":"POST","path":"/v1/tasks/{id}/lift","at":["tasks","lift"],"members":["by","constraint","reason"],"own":["by"],"needs":["by"],"key":null} as Route<m.Task>,
  task_list: {"name":"task_list","method":"GET","path":"/v1/tasks","at":["tasks","list"],"members":["before","correlation_id","limit","owner","parent","project","state"],"own":[],"needs":[],"key":null} as Route<m.Tasks>,
  task_open: {"name":"task_open","method":"POST","path":"/v1/tasks","at":["tasks","open"],"members":["coordinator","correlation_id","from_agent","idempotency_key","intent","on_parent_end","parent_task_id","project"],"own":["from_agent"],"needs":["from_agent"],"key":"idempotency_key"} as Route<m.Task>,
  task_show: {"name":"task_show","method":"GET","path":"/v1/tasks/{id}","at":["tasks","show"],"members":[],"own":[],"needs":[],"key":null} as Route<m.TaskWithParts>,
  tenant_list: {"name":"tenant_list","method":"GET","path":"/v1/tenants","at":["tenants","list"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Tenants>,
  tenant_set: {"name":"tenant_set","method":"POST","path":"/v1/tenants/{id}","at":["tenants","set"],"members":["in_flight","requests_per_second","stored_bytes"],"own":[],"needs":[],"key":null} as Route<m.TenantInfo>,
  token_issue: {"name":"token_issue","method":"POST","path":"/v1/tokens","at":["tokens","issue"],"members":["agent_id","expires_in_ms","purpose","rules"],"own":[],"needs":[],"key":null} as Route<m.IssuedToken>,
  token_list: {"name":"token_list","method":"GET","path":"/v1/tokens","at":["tokens","list"],"members":[],"own":[],"needs":[],"key":null} as Route<m.Tokens>,
  token_revoke: {"name":"token_revoke","method":"POST","path":"/v1/tokens/{id}/revoke","at":["tokens","revoke"],"members":[],"own":[],"needs":[],"key":null} as Route<m.TokenInfo>,
} as const;

/** What can be done with agents. */
export class Agents {
  constructor(private readonly call: Send) {}

  /** Who can be reached here, for programs that look around. */
  catalogue(options?: Options): Promise<m.Catalogue> {
    return this.call(ROUTES.agent_catalogue, {}, undefined, options);
  }

  /** Take an agent out; what it holds waits for somebody else. */
  deregister(id: string, options?: Options): Promise<m.Agent> {
    return this.call(ROUTES.agent_deregister, { id }, undefined, options);
  }

  /** Let an agent finish what it has; nothing new is routed to it. */
  drain(id: string, options?: Options): Promise<m.Agent> {
    return this.call(ROUTES.agent_drain, { id }, undefined, options);
  }

  /** Enroll a key with a join token. */
  join(body: m.Join, options?: Options): Promise<m.Agent> {
    return this.call(ROUTES.agent_join, {}, body, options);
  }

  /** Find agents by capability, tag, version, presence and how they fare. */
  list(query: { capability?: m.Capability | null; limit?: number | null; live?: boolean | null; reliability?: number | null; role?: string | null; tag?: string | null; tenant?: m.TenantId | null; version?: string | null } = {}, options?: Options): Promise<m.Agents> {
    return this.call(ROUTES.agent_list, {}, query, options);
  }

  /** Publish an agent's manifest, its first or a new one. */
  publish(body: m.Publish, options?: Options): Promise<m.Agent> {
    return this.call(ROUTES.agent_publish, {}, body, options);
  }

  /** Let a drained agent have work again. */
  resume(id: string, options?: Options): Promise<m.Agent> {
    return this.call(ROUTES.agent_resume, { id }, undefined, options);
  }

  /** Find agents, also by what goes in and what comes out. */
  search(body: m.Search = {}, options?: Options): Promise<m.Agents> {
    return this.call(ROUTES.agent_search, {}, body, options);
  }

  /** Set after how many failures nothing more goes to an agent, and for how long. */
  setBreaker(id: string, body: m.SetBreaker = {}, options?: Options): Promise<m.TargetHealth> {
    return this.call(ROUTES.agent_set_breaker, { id }, body, options);
  }

  /** Say what an agent may do. */
  setRules(id: string, body: m.SetRules, options?: Options): Promise<m.Agent> {
    return this.call(ROUTES.agent_set_rules, { id }, body, options);
  }

  /** Show an agent, its manifest and its keys. */
  show(id: string, options?: Options): Promise<m.Agent> {
    return this.call(ROUTES.agent_show, { id }, undefined, options);
  }
}

/** What can be done with alerts. */
export class Alerts {
  constructor(private readonly call: Send) {}

  /** List alerts that are on, pending or ended last, what people were told, and silences. */
  list(options?: Options): Promise<m.Alerts> {
    return this.call(ROUTES.alert_list, {}, undefined, options);
  }

  /** List the rules of alerts, each with the expression that Prometheus would evaluate. */
  rules(options?: Options): Promise<m.AlertRules> {
    return this.call(ROUTES.alert_rules, {}, undefined, options);
  }

  /** Keep people from being told of alerts for a while, with a reason, or end that. */
  silence(body: m.SilenceAlert, options?: Options): Promise<m.Alerts> {
    return this.call(ROUTES.alert_silence, {}, body, options);
  }

  /** Send a notice to every webhook to try it out. */
  test(options?: Options): Promise<m.AlertTested> {
    return this.call(ROUTES.alert_test, {}, undefined, options);
  }
}

/** What can be done with audit. */
export class Audit {
  constructor(private readonly call: Send) {}

  /** Check what is new in the audit log, or all of it, and name the first bad entry. */
  verify(query: { full?: boolean } = {}, options?: Options): Promise<m.Verdict> {
    return this.call(ROUTES.audit_verify, {}, query, options);
  }
}

/** What can be done with chains. */
export class Chains {
  constructor(private readonly call: Send) {}

  /** Keep a chain that another broker exported, for reading. */
  import(body: Without<m.ImportChain, "by">, options?: Options): Promise<m.ImportedChain> {
    return this.call(ROUTES.chain_import, {}, body, options);
  }

  /** List imported chains, the last one first. */
  list(query: { before?: m.Cursor | null; limit?: number | null } = {}, options?: Options): Promise<m.ImportedChains> {
    return this.call(ROUTES.chain_list, {}, query, options);
  }

  /** Show an imported chain with its file, and whether it is whole. */
  show(id: string, options?: Options): Promise<m.ImportedChainWithFile> {
    return this.call(ROUTES.chain_show, { id }, undefined, options);
  }
}

/** What can be done with channels. */
export class Channels {
  constructor(private readonly call: Send) {}

  /** Read what was told on a channel, from a place in it on. */
  messages(name: string, query: { after?: m.Cursor | null; limit?: number | null } = {}, options?: Options): Promise<m.Messages> {
    return this.call(ROUTES.channel_messages, { name }, query, options);
  }

  /** Tell something to many: one handoff for each, all in one step. */
  publish(name: string, body: Without<m.Publication, "from_agent" | "idempotency_key">, options?: Options): Promise<m.Published> {
    return this.call(ROUTES.channel_publish, { name }, body, options);
  }

  /** Show who hears what is told on a channel. */
  show(name: string, options?: Options): Promise<m.Channel> {
    return this.call(ROUTES.channel_show, { name }, undefined, options);
  }

  /** Hear what is told on a channel from now on. */
  subscribe(name: string, body: Without<m.Subscribe, "agent"> = {}, options?: Options): Promise<m.Channel> {
    return this.call(ROUTES.channel_subscribe, { name }, body, options);
  }

  /** Hear no longer what is told on a channel. */
  unsubscribe(name: string, body: Without<m.Subscribe, "agent"> = {}, options?: Options): Promise<m.Channel> {
    return this.call(ROUTES.channel_unsubscribe, { name }, body, options);
  }
}

/** What can be done with dead letters. */
export class DeadLetters {
  constructor(private readonly call: Send) {}

  /** Send a dead letter on its way again with a new envelope, linked to the old one. */
  amend(id: string, body: Without<m.Amend, "by"> = {}, options?: Options): Promise<m.OfferReply> {
    return this.call(ROUTES.dead_letter_amend, { id }, body, options);
  }

  /** Answer what a dead letter stopped at, and let the work go on with the decision. */
  answer(id: string, body: Without<m.Answer, "by">, options?: Options): Promise<m.OfferReply> {
    return this.call(ROUTES.dead_letter_answer, { id }, body, options);
  }

  /** Decide on many dead letters at once, or see which ones it would be. */
  decideMany(body: Without<m.DecideMany, "by">, options?: Options): Promise<m.DecidedMany> {
    return this.call(ROUTES.dead_letter_decide_many, {}, body, options);
  }

  /** Put a dead letter away, with a reason. */
  discard(id: string, body: Without<m.Decide, "by"> = {}, options?: Options): Promise<m.Moved> {
    return this.call(ROUTES.dead_letter_discard, { id }, body, options);
  }

  /** Show dead letters by what they died of. */
  groups(options?: Options): Promise<m.Groups> {
    return this.call(ROUTES.dead_letter_groups, {}, undefined, options);
  }

  /** List dead letters that wait for a decision, newest first. */
  list(query: { all?: boolean; before?: m.HandoffId | null; limit?: number | null } = {}, options?: Options): Promise<m.Handoffs> {
    return this.call(ROUTES.dead_letter_list, {}, query, options);
  }

  /** Send a dead letter on its way again, as a new linked handoff. */
  redrive(id: string, body: Without<m.RedriveLetter, "by"> = {}, options?: Options): Promise<m.OfferReply> {
    return this.call(ROUTES.dead_letter_redrive, { id }, body, options);
  }

  /** Send a dead letter to another target. */
  reroute(id: string, body: Without<m.Reroute, "by">, options?: Options): Promise<m.OfferReply> {
    return this.call(ROUTES.dead_letter_reroute, { id }, body, options);
  }

  /** Show a dead letter with its envelope and what its attempts reported. */
  show(id: string, options?: Options): Promise<m.DeadLetter> {
    return this.call(ROUTES.dead_letter_show, { id }, undefined, options);
  }

  /** Keep others from deciding on a dead letter for a while, or give it back. */
  take(id: string, body: Without<m.TakeReview, "by">, options?: Options): Promise<m.Handoff> {
    return this.call(ROUTES.dead_letter_take, { id }, body, options);
  }
}

/** What can be done with handoffs. */
export class Handoffs {
  constructor(private readonly call: Send) {}

  /** End a handoff and its task as failed. */
  abort(id: string, body: Without<m.Decide, "by"> = {}, options?: Options): Promise<m.Moved> {
    return this.call(ROUTES.handoff_abort, { id }, body, options);
  }

  /** Approve a handoff that waits for it. */
  approve(id: string, body: Without<m.Approve, "by"> = {}, options?: Options): Promise<m.Moved> {
    return this.call(ROUTES.handoff_approve, { id }, body, options);
  }

  /** List what was attached to a handoff; with a name, that piece with its content. */
  artifacts(id: string, query: { name?: m.ArtifactName | null } = {}, options?: Options): Promise<m.Artifacts> {
    return this.call(ROUTES.handoff_artifacts, { id }, query, options);
  }

  /** Ask a question and wait for the answer without holding the claim. */
  ask(id: string, body: m.Ask, options?: Options): Promise<m.AskReply> {
    return this.call(ROUTES.handoff_ask, { id }, body, options);
  }

  /** Attach a piece of work that is there already. */
  attach(id: string, body: m.Attach, options?: Options): Promise<m.Moved> {
    return this.call(ROUTES.handoff_attach, { id }, body, options);
  }

  /** Cancel a handoff that is not at its end. */
  cancel(id: string, body: Without<m.Decide, "by"> = {}, options?: Options): Promise<m.Moved> {
    return this.call(ROUTES.handoff_cancel, { id }, body, options);
  }

  /** Claim the next work for an agent, waiting for it if there is none. */
  claim(body: Without<m.Claim, "agent" | "request_id"> = {}, options?: Options): Promise<m.Claims> {
    return this.call(ROUTES.handoff_claim, {}, body, options);
  }

  /** Claim one handoff by its id; one of any number of racers wins. */
  claimOne(id: string, body: Without<m.ClaimOne, "agent" | "request_id"> = {}, options?: Options): Promise<m.ClaimReply> {
    return this.call(ROUTES.handoff_claim_one, { id }, body, options);
  }

  /** Complete a handoff, and create the next ones in the same atomic step. */
  complete(id: string, body: m.Complete, options?: Options): Promise<m.Moved> {
    return this.call(ROUTES.handoff_complete, { id }, body, options);
  }

  /** Complete many at once; each answers for itself, all are synced together. */
  completeBatch(body: m.CompleteBatch, options?: Options): Promise<m.BatchOfMoved> {
    return this.call(ROUTES.handoff_complete_batch, {}, body, options);
  }

  /** Say on which other terms an agent would take a handoff. */
  counter(id: string, body: Without<m.Counter, "agent">, options?: Options): Promise<m.Handoff> {
    return this.call(ROUTES.handoff_counter, { id }, body, options);
  }

  /** Decline a handoff, claimed or not. */
  decline(id: string, body: Without<m.Decline, "agent"> = {}, options?: Options): Promise<m.Moved> {
    return this.call(ROUTES.handoff_decline, { id }, body, options);
  }

  /** Read the envelope of a handoff, exactly as it was stored. */
  envelope(id: string, options?: Options): Promise<m.Envelope> {
    return this.call(ROUTES.handoff_envelope, { id }, undefined, options);
  }

  /** Remove everything that a handoff carried, for good. */
  erase(id: string, body: Without<m.Delete, "by">, options?: Options): Promise<m.Moved> {
    return this.call(ROUTES.handoff_erase, { id }, body, options);
  }

  /** Report that an attempt failed, and whether trying again may help. */
  fail(id: string, body: m.Fail, options?: Options): Promise<m.Moved> {
    return this.call(ROUTES.handoff_fail, { id }, body, options);
  }

  /** Extend the lease; kept in memory, the one call whose 200 does not mean synced. */
  heartbeat(id: string, body: m.Heartbeat, options?: Options): Promise<m.Beat> {
    return this.call(ROUTES.handoff_heartbeat, { id }, body, options);
  }

  /** List handoffs, newest first. */
  list(query: { before?: m.HandoffId | null; from_agent?: m.AgentId | null; limit?: number | null; state?: string | null; task?: m.TaskId | null; to_agent?: m.AgentId | null; to_capability?: m.Capability | null } = {}, options?: Options): Promise<m.Handoffs> {
    return this.call(ROUTES.handoff_list, {}, query, options);
  }

  /** Send a word to whoever holds the work; it comes with the next heartbeat. */
  message(id: string, body: Without<m.SendMessage, "by">, options?: Options): Promise<m.HolderMessages> {
    return this.call(ROUTES.handoff_message, { id }, body, options);
  }

  /** List the messages to a handoff's holders, and who took note of them. */
  messages(id: string, options?: Options): Promise<m.HolderMessages> {
    return this.call(ROUTES.handoff_messages, { id }, undefined, options);
  }

  /** Offer work to an agent, or to any agent with a capability. */
  offer(body: Without<m.AnyOffer, "from_agent" | "idempotency_key">, options?: Options): Promise<m.OfferReply> {
    return this.call(ROUTES.handoff_offer, {}, body, options);
  }

  /** Offer many at once; each answers for itself, all are synced together. */
  offerBatch(body: m.OfferBatch, options?: Options): Promise<m.BatchOfOfferReply> {
    return this.call(ROUTES.handoff_offer_batch, {}, body, options);
  }

  /** Look at what waits for an agent without claiming it. */
  peek(body: Without<m.Peek, "agent"> = {}, options?: Options): Promise<m.Peeked> {
    return this.call(ROUTES.handoff_peek, {}, body, options);
  }

  /** Report progress, which also extends the lease. */
  progress(id: string, body: m.Progress, options?: Options): Promise<m.Moved> {
    return this.call(ROUTES.handoff_progress, { id }, body, options);
  }

  /** Read the envelope of a handoff as a model does, with how many tokens that is. */
  prompt(id: string, query: { all?: boolean; form?: m.PromptStyle | null; max_tokens?: number | null; payload_apart?: boolean; tokenizer?: string | null } = {}, options?: Options): Promise<m.Prompt> {
    return this.call(ROUTES.handoff_prompt, { id }, query, options);
  }

  /** Give claimed work back until a time, without using up an attempt. */
  putBack(id: string, body: m.PutBack, options?: Options): Promise<m.Moved> {
    return this.call(ROUTES.handoff_put_back, { id }, body, options);
  }

  /** Show what can be started now, and what holds back the rest. */
  ready(query: { from_agent?: m.AgentId | null; limit?: number | null; to_agent?: m.AgentId | null; to_capability?: m.Capability | null } = {}, options?: Options): Promise<m.ReadyView> {
    return this.call(ROUTES.handoff_ready, {}, query, options);
  }

  /** Reject a handoff that waits for approval. */
  reject(id: string, body: Without<m.Reject, "by">, options?: Options): Promise<m.Moved> {
    return this.call(ROUTES.handoff_reject, { id }, body, options);
  }

  /** Give a claimed handoff back unfinished. */
  release(id: string, body: m.Held, options?: Options): Promise<m.Moved> {
    return this.call(ROUTES.handoff_release, { id }, body, options);
  }

  /** Take files or other resources for the holder, as long as its claim holds. */
  reserve(id: string, body: m.Reserve, options?: Options): Promise<m.Reservations> {
    return this.call(ROUTES.handoff_reserve, { id }, body, options);
  }

  /** Take back what a completed handoff produced; what is built on it is tainted. */
  retract(id: string, body: Without<m.Retract, "by">, options?: Options): Promise<m.Handoff> {
    return this.call(ROUTES.handoff_retract, { id }, body, options);
  }

  /** Offer work and wait until the receiver has accepted it, or until there is a result. */
  send(body: Without<m.Send, "from_agent" | "idempotency_key">, options?: Options): Promise<m.Sent> {
    return this.call(ROUTES.handoff_send, {}, body, options);
  }

  /** Accept or refuse an agent's counter-offer. */
  settle(id: string, body: Without<m.Settle, "by">, options?: Options): Promise<m.Handoff> {
    return this.call(ROUTES.handoff_settle, { id }, body, options);
  }

  /** Show a handoff; with wait_ms, once it has come far enough. */
  show(id: string, query: { until?: m.Until | null; wait_ms?: number | null } = {}, options?: Options): Promise<m.HandoffWithResult> {
    return this.call(ROUTES.handoff_show, { id }, query, options);
  }

  /** Say that work on a claimed handoff has begun. */
  start(id: string, body: m.Start, options?: Options): Promise<m.Moved> {
    return this.call(ROUTES.handoff_start, { id }, body, options);
  }

  /** Give resources up before the claim ends. */
  unreserve(id: string, body: m.Reserve, options?: Options): Promise<m.Reservations> {
    return this.call(ROUTES.handoff_unreserve, { id }, body, options);
  }

  /** Wait for many handoffs and tasks at once. */
  wait(body: m.Wait = {}, options?: Options): Promise<m.Waited> {
    return this.call(ROUTES.handoff_wait, {}, body, options);
  }
}

/** What can be done with health. */
export class Health {
  constructor(private readonly call: Send) {}

  /** Whether the process is up. */
  alive(options?: Options): Promise<m.Health> {
    return this.call(ROUTES.health, {}, undefined, options);
  }

  /** Show how targets fare: failures in a row, breakers, hops, and how full budgets were. */
  targets(options?: Options): Promise<m.TargetsHealth> {
    return this.call(ROUTES.health_targets, {}, undefined, options);
  }

  /** Whether a command sent now would be taken (503 if not). */
  ready(options?: Options): Promise<m.Health> {
    return this.call(ROUTES.ready, {}, undefined, options);
  }
}

/** What can be done with keys. */
export class Keys {
  constructor(private readonly call: Send) {}

  /** Enroll a key by the word of an administrator. */
  enroll(id: string, body: m.Enroll, options?: Options): Promise<m.Agent> {
    return this.call(ROUTES.key_enroll, { id }, body, options);
  }

  /** Revoke a key at once; with its last key an agent loses what it holds. */
  revoke(id: string, key: string, options?: Options): Promise<m.Agent> {
    return this.call(ROUTES.key_revoke, { id, key }, undefined, options);
  }

  /** Replace a key; the old one still counts for a while. */
  rotate(id: string, body: m.Rotate, options?: Options): Promise<m.Agent> {
    return this.call(ROUTES.key_rotate, { id }, body, options);
  }
}

/** What can be done with memories. */
export class Memories {
  constructor(private readonly call: Send) {}

  /** Keep a memory. */
  add(body: Without<m.NewMemory, "by" | "idempotency_key">, options?: Options): Promise<m.Memory> {
    return this.call(ROUTES.memory_add, {}, body, options);
  }

  /** Delete a memory, which leaves a tombstone. */
  delete(id: string, body: Without<m.Delete, "by">, options?: Options): Promise<m.Memory> {
    return this.call(ROUTES.memory_delete, { id }, body, options);
  }

  /** Make a new revision of a memory. */
  edit(id: string, body: Without<m.EditMemory, "by"> = {}, options?: Options): Promise<m.Memory> {
    return this.call(ROUTES.memory_edit, { id }, body, options);
  }

  /** Remove the text of a revision, or of all of them, for good. */
  erase(id: string, body: Without<m.EraseMemory, "by">, options?: Options): Promise<m.Memory> {
    return this.call(ROUTES.memory_erase, { id }, body, options);
  }

  /** List memories, what changed last first; with q, search them, the best answer first. */
  list(query: { agent?: m.AgentId | null; before?: m.Cursor | null; deleted?: boolean; detail?: m.Detail | null; limit?: number | null; pinned?: boolean | null; project?: m.Project | null; q?: string | null; superseded?: boolean; tag?: string | null; task?: m.TaskId | null } = {}, options?: Options): Promise<m.Memories> {
    return this.call(ROUTES.memory_list, {}, query, options);
  }

  /** Pin a memory, so that it always travels. */
  pin(id: string, body: Without<m.Approve, "by"> = {}, options?: Options): Promise<m.Memory> {
    return this.call(ROUTES.memory_pin, { id }, body, options);
  }

  /** Show a memory at its last revision or at any other, in as much detail as wanted. */
  show(id: string, query: { detail?: m.Detail | null; handoff?: m.HandoffId | null; revision?: number | null } = {}, options?: Options): Promise<m.Memory> {
    return this.call(ROUTES.memory_show, { id }, query, options);
  }

  /** Say that another memory has taken the place of this one. */
  supersede(id: string, body: Without<m.Supersede, "by">, options?: Options): Promise<m.Memory> {
    return this.call(ROUTES.memory_supersede, { id }, body, options);
  }

  /** Let a memory travel only where there is room for it. */
  unpin(id: string, body: Without<m.Approve, "by"> = {}, options?: Options): Promise<m.Memory> {
    return this.call(ROUTES.memory_unpin, { id }, body, options);
  }
}

/** What can be done with overview. */
export class Overview {
  constructor(private readonly call: Send) {}

  /**
   * Show at a glance how everything goes: latency, completeness, failures, and targets that
   * need somebody.
   */
  show(options?: Options): Promise<m.Overview> {
    return this.call(ROUTES.overview_show, {}, undefined, options);
  }
}

/** What can be done with pipelines. */
export class Pipelines {
  constructor(private readonly call: Send) {}

  /** Show the routes that are declared. */
  list(options?: Options): Promise<m.Pipelines> {
    return this.call(ROUTES.pipeline_list, {}, undefined, options);
  }

  /** Begin a task along a declared route. */
  start(name: string, body: Without<m.StartPipeline, "from_agent" | "idempotency_key">, options?: Options): Promise<m.OfferReply> {
    return this.call(ROUTES.pipeline_start, { name }, body, options);
  }
}

/** What can be done with populations. */
export class Populations {
  constructor(private readonly call: Send) {}

  /** Show what agents did lately and what of it is unusual; analysed at most once a minute. */
  show(query: { baseline_from?: m.Timestamp | null; baseline_until?: m.Timestamp | null; no_baseline?: boolean } = {}, options?: Options): Promise<m.PopulationReport> {
    return this.call(ROUTES.population_show, {}, query, options);
  }
}

/** What can be done with projects. */
export class Projects {
  constructor(private readonly call: Send) {}

  /** Add a decision to the log of a project. */
  decide(project: string, body: Without<m.NewDecision, "by">, options?: Options): Promise<m.SharedContext> {
    return this.call(ROUTES.context_decide, { project }, body, options);
  }

  /** Show the shared context of a project, with the tasks that are open. */
  show(project: string, query: { revision?: number | null } = {}, options?: Options): Promise<m.SharedContext> {
    return this.call(ROUTES.context_show, { project }, query, options);
  }

  /** Say where a project stands and what holds for all its work. */
  write(project: string, body: Without<m.WriteContext, "by"> = {}, options?: Options): Promise<m.SharedContext> {
    return this.call(ROUTES.context_write, { project }, body, options);
  }
}

/** What can be done with questions. */
export class Questions {
  constructor(private readonly call: Send) {}

  /** Answer the question that a handoff waits with. */
  answer(id: string, body: Without<m.AnswerQuestion, "by">, options?: Options): Promise<m.Moved> {
    return this.call(ROUTES.question_answer, { id }, body, options);
  }

  /** List questions that wait for an answer. */
  list(query: { before?: m.HandoffId | null; from_agent?: m.AgentId | null; kind?: m.QuestionKind | null; limit?: number | null; task?: m.TaskId | null } = {}, options?: Options): Promise<m.Questions> {
    return this.call(ROUTES.question_list, {}, query, options);
  }
}

/** What can be done with reservations. */
export class Reservations {
  constructor(private readonly call: Send) {}

  /** Show what holders have for themselves. */
  list(options?: Options): Promise<m.Reservations> {
    return this.call(ROUTES.reservation_list, {}, undefined, options);
  }
}

/** What can be done with security. */
export class Security {
  constructor(private readonly call: Send) {}

  /** Show requests that nobody stood behind. */
  show(options?: Options): Promise<m.Refusals> {
    return this.call(ROUTES.security_show, {}, undefined, options);
  }
}

/** What can be done with sessions. */
export class Sessions {
  constructor(private readonly call: Send) {}

  /** Close the session that asks for it. */
  close(options?: Options): Promise<m.Nothing> {
    return this.call(ROUTES.session_close, {}, undefined, options);
  }

  /**
   * Open a session: a token with the rights of the one that is shown, which ends soon and with
   * it.
   */
  open(body: m.OpenSession = {}, options?: Options): Promise<m.IssuedToken> {
    return this.call(ROUTES.session_open, {}, body, options);
  }

  /** Show who asks, and what it may ask for at all. */
  show(options?: Options): Promise<m.Session> {
    return this.call(ROUTES.session_show, {}, undefined, options);
  }
}

/** What can be done with stats. */
export class Stats {
  constructor(private readonly call: Send) {}

  /** Show what the broker holds. */
  show(options?: Options): Promise<m.Stats> {
    return this.call(ROUTES.stats_show, {}, undefined, options);
  }
}

/** What can be done with targets. */
export class Targets {
  constructor(private readonly call: Send) {}

  /** Let nothing be claimed of an agent or a capability, until a time or until it is resumed. */
  pause(body: m.PauseTarget, options?: Options): Promise<m.TargetHealth> {
    return this.call(ROUTES.target_pause, {}, body, options);
  }

  /** Let work be claimed of an agent or a capability again. */
  resume(body: m.ResumeTarget, options?: Options): Promise<m.TargetHealth> {
    return this.call(ROUTES.target_resume, {}, body, options);
  }
}

/** What can be done with tasks. */
export class Tasks {
  constructor(private readonly call: Send) {}

  /** Begin anew from a hop, as a task of its own. */
  branch(id: string, body: Without<m.Branch, "by" | "idempotency_key">, options?: Options): Promise<m.OfferReply> {
    return this.call(ROUTES.task_branch, { id }, body, options);
  }

  /** Cancel a task and the handoff under way. */
  cancel(id: string, body: Without<m.Decide, "by"> = {}, options?: Options): Promise<m.Task> {
    return this.call(ROUTES.task_cancel, { id }, body, options);
  }

  /** Say that a task may go on although something that it is built on no longer holds. */
  clearTaint(id: string, body: Without<m.ClearTaint, "by">, options?: Options): Promise<m.Task> {
    return this.call(ROUTES.task_clear_taint, { id }, body, options);
  }

  /** End a task that is one's own with a result, while nobody else works on it. */
  complete(id: string, body: Without<m.CompleteTask, "by">, options?: Options): Promise<m.Task> {
    return this.call(ROUTES.task_complete, { id }, body, options);
  }

  /** Show everything that happened to a task. */
  events(id: string, options?: Options): Promise<m.Events> {
    return this.call(ROUTES.task_events, { id }, undefined, options);
  }

  /** Collect what the tasks below one have come to, waiting for enough of them. */
  join(id: string, body: m.Gather = {}, options?: Options): Promise<m.Gathered> {
    return this.call(ROUTES.task_join, { id }, body, options);
  }

  /** Lift a constraint of a task, from its next envelope on, whoever holds the task. */
  lift(id: string, body: Without<m.LiftConstraint, "by">, options?: Options): Promise<m.Task> {
    return this.call(ROUTES.task_lift, { id }, body, options);
  }

  /** List tasks, newest first. */
  list(query: { before?: m.TaskId | null; correlation_id?: m.CorrelationId | null; limit?: number | null; owner?: m.AgentId | null; parent?: m.TaskId | null; project?: m.Project | null; state?: string | null } = {}, options?: Options): Promise<m.Tasks> {
    return this.call(ROUTES.task_list, {}, query, options);
  }

  /** Open a task without handing it to anybody yet. */
  open(body: Without<m.OpenTask, "from_agent" | "idempotency_key"> = {}, options?: Options): Promise<m.Task> {
    return this.call(ROUTES.task_open, {}, body, options);
  }

  /** Show a task, its owner, its handoffs and the tasks below it. */
  show(id: string, options?: Options): Promise<m.TaskWithParts> {
    return this.call(ROUTES.task_show, { id }, undefined, options);
  }
}

/** What can be done with tenants. */
export class Tenants {
  constructor(private readonly call: Send) {}

  /** List tenants and what they may use. */
  list(options?: Options): Promise<m.Tenants> {
    return this.call(ROUTES.tenant_list, {}, undefined, options);
  }

  /** Say what a tenant may use. */
  set(id: string, body: m.Quotas = {}, options?: Options): Promise<m.TenantInfo> {
    return this.call(ROUTES.tenant_set, { id }, body, options);
  }
}

/** What can be done with tokens. */
export class Tokens {
  constructor(private readonly call: Send) {}

  /** Issue a token; its text is shown this once. */
  issue(body: m.IssueToken, options?: Options): Promise<m.IssuedToken> {
    return this.call(ROUTES.token_issue, {}, body, options);
  }

  /** List tokens, newest first, without their secrets. */
  list(options?: Options): Promise<m.Tokens> {
    return this.call(ROUTES.token_list, {}, undefined, options);
  }

  /** Revoke a token at once. */
  revoke(id: string, options?: Options): Promise<m.TokenInfo> {
    return this.call(ROUTES.token_revoke, { id }, undefined, options);
  }
}

/** Every operation of the API, by its noun. */
export class Nouns {
  readonly agents: Agents;
  readonly alerts: Alerts;
  readonly audit: Audit;
  readonly chains: Chains;
  readonly channels: Channels;
  readonly deadLetters: DeadLetters;
  readonly handoffs: Handoffs;
  readonly health: Health;
  readonly keys: Keys;
  readonly memories: Memories;
  readonly overview: Overview;
  readonly pipelines: Pipelines;
  readonly populations: Populations;
  readonly projects: Projects;
  readonly questions: Questions;
  readonly reservations: Reservations;
  readonly security: Security;
  readonly sessions: Sessions;
  readonly stats: Stats;
  readonly targets: Targets;
  readonly tasks: Tasks;
  readonly tenants: Tenants;
  readonly tokens: Tokens;

  constructor(send: Send) {
    this.agents = new Agents(send);
    this.alerts = new Alerts(send);
    this.audit = new Audit(send);
    this.chains = new Chains(send);
    this.channels = new Channels(send);
    this.deadLetters = new DeadLetters(send);
    this.handoffs = new Handoffs(send);
    this.health = new Health(send);
    this.keys = new Keys(send);
    this.memories = new Memories(send);
    this.overview = new Overview(send);
    this.pipelines = new Pipelines(send);
    this.populations = new Populations(send);
    this.projects = new Projects(send);
    this.questions = new Questions(send);
    this.reservations = new Reservations(send);
    this.security = new Security(send);
    this.sessions = new Sessions(send);
    this.stats = new Stats(send);
    this.targets = new Targets(send);
    this.tasks = new Tasks(send);
    this.tenants = new Tenants(send);
    this.tokens = new Tokens(send);
  }
}
