// SPDX-License-Identifier: Apache-2.0
//! Memories and shared contexts, as they are sent.

use tasuki_core::secrets::Finding;
use tasuki_protocol as wire;

use crate as engine;

/// How much of a text stands in for a summary that nobody wrote.
const SUMMARY_CHARS_MAX: usize = 400;

pub fn memory(seen: &engine::SeenMemory, detail: wire::Detail) -> wire::Memory {
    let (document, revision) = (&seen.kept.document, &seen.kept.revision);
    let content = seen.content.as_ref();
    let summarised = content.filter(|_| detail != wire::Detail::Stub);
    let full = content.filter(|_| detail == wire::Detail::Full);
    let summary = summarised.and_then(|content| {
        let given = content.summary.clone();
        given.or_else(|| full.is_none().then(|| first_words(&content.text)))
    });
    wire::Memory {
        memory_id: document.id.clone(),
        revision: revision.number,
        latest: document.revision,
        scope: document.scope.clone(),
        pinned: document.pinned,
        priority: document.priority,
        line: content.map(|content| content.line()),
        title: summarised.and_then(|content| content.title.clone()),
        summary,
        text: full.map(|content| content.text.clone()),
        tags: summarised.map(|content| content.tags.clone()).unwrap_or_default(),
        content: revision.content,
        superseded_by: document.superseded_by.clone(),
        deleted: document.deleted.as_ref().map(|deleted| wire::Tombstone {
            at: deleted.at,
            by: deleted.by.clone(),
            reason: seen.deleted_because.clone(),
        }),
        erased: revision.erased,
        created_by: document.created_by.clone(),
        created_at: document.created_at,
        written_by: revision.written_by.clone(),
        written_at: revision.written_at,
        score: seen.score,
        warnings: Vec::new(),
    }
}

fn first_words(text: &str) -> String {
    match text.char_indices().nth(SUMMARY_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

pub fn warnings(findings: &[Finding]) -> Vec<wire::Warning> {
    let warning = |finding: &Finding| wire::Warning {
        path: finding.path.clone(),
        kind: finding.kind.to_string(),
    };
    findings.iter().map(warning).collect()
}

pub fn context(seen: &engine::SeenContext) -> wire::SharedContext {
    let document = seen.document.as_ref();
    let queue = seen.queue.iter().map(|(task, handoff)| wire::QueuedTask {
        task_id: task.id,
        owner: task.owner.clone(),
        handoff_id: handoff.as_ref().map(|handoff| handoff.id),
        to: handoff.as_ref().map(|handoff| handoff.to.clone()),
        status: handoff.as_ref().map(|handoff| handoff.status().to_string()),
        opened_at: task.opened_at,
    });
    wire::SharedContext {
        project: seen.project.clone(),
        revision: seen.revision.as_ref().map_or(0, |revision| revision.number),
        latest: document.map_or(0, |document| document.revision),
        state: seen.context.state.clone(),
        constraints: seen.context.constraints.clone(),
        decisions: seen.context.decisions.clone(),
        erased: seen.erased,
        changed_by: seen.revision.as_ref().map(|revision| revision.written_by.clone()),
        changed_at: seen.revision.as_ref().map(|revision| revision.written_at),
        task_queue: queue.collect(),
        warnings: warnings(&seen.warnings),
    }
}
