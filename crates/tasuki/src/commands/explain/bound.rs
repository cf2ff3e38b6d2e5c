// SPDX-License-Identifier: Apache-2.0
//! Whether everything that binds got from hop to hop, word for word.

use std::collections::HashMap;

use serde::Serialize;
use tasuki_core::assembly::Tokenizer;
use tasuki_core::envelope::Envelope;
use tasuki_core::envelope::chain::{self, HopReport};
use tasuki_core::envelope::diff::diff;
use tasuki_core::envelope::parts::Lifted;
use tasuki_core::{Body, Hash};
use tasuki_protocol as wire;

use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::printable;

#[derive(Serialize)]
pub(super) struct Bound {
    /// Every link, the intent and every constraint that was not lifted. None where no envelope is
    /// there to tell by.
    pub(super) intact: Option<bool>,
    same_intent: bool,
    /// Whether what came before the first of these hops was erased, or is not to be seen.
    cut: bool,
    binding: usize,
    /// With who lifted them, why, and at which hop.
    lifted: Vec<Lifted>,
    /// Those that do not bind the next hop any more.
    lifted_since: Vec<wire::LiftedConstraint>,
    hops: Vec<Hop>,
}

#[derive(Serialize)]
struct Hop {
    #[serde(flatten)]
    report: HopReport,
    whole: bool,
    /// Texts of constraints that this hop brought.
    added: Vec<String>,
    /// Texts of constraints that this hop lifted.
    lifted: Vec<String>,
}

/// The envelopes that led to a handoff, its own the last, as each names the one before it. The
/// first may be of a task above. What was erased is not there: then the chain begins later, and this
/// says so.
pub(super) async fn chain_to(
    client: &Client,
    shown: &wire::TaskWithParts,
    handoff: &wire::Handoff,
) -> anyhow::Result<(Vec<(Envelope, Body)>, bool)> {
    let mut known: HashMap<Hash, &wire::Handoff> = HashMap::new();
    let mut above: Vec<wire::TaskWithParts> = Vec::new();
    let mut cut = false;
    let mut parent = shown.task.parent_task_id;
    while let Some(task) = parent {
        let reply = match client.get(&format!("/v1/tasks/{task}"), &[]).await {
            Ok(reply) => reply,
            Err(error) if is_gone(&error) => {
                cut = true;
                break;
            }
            Err(error) => return Err(error),
        };
        let task: wire::TaskWithParts = serde_json::from_str(&reply)?;
        parent = task.task.parent_task_id;
        above.push(task);
    }
    let all = shown.handoffs.iter().chain(above.iter().flat_map(|task| &task.handoffs));
    known.extend(all.map(|one| (one.envelope, one)));
    known.insert(handoff.envelope, handoff);

    let mut chain = Vec::new();
    let mut wanted = Some(handoff.envelope);
    while let Some(one) = wanted.and_then(|hash| known.remove(&hash)) {
        let path = format!("/v1/handoffs/{}/envelope", one.handoff_id);
        let text = match client.get(&path, &[]).await {
            Ok(text) => text,
            Err(error) if is_gone(&error) => {
                cut = true;
                break;
            }
            Err(error) => return Err(error),
        };
        let envelope: Envelope = serde_json::from_str(&text)?;
        let body = Body::stored(text).ok_or_else(|| anyhow::anyhow!("the envelope is no JSON"))?;
        wanted = envelope.previous;
        chain.push((envelope, body));
    }
    chain.reverse();
    Ok((chain, cut))
}

/// Whether something was erased or is not to be seen, which is no failure.
fn is_gone(error: &anyhow::Error) -> bool {
    let failure = error.downcast_ref::<Failure>();
    failure.is_some_and(|failure| matches!(failure.exit, Exit::Refused | Exit::NotFound))
}

impl Bound {
    pub(super) fn of(
        chain: &[(Envelope, Body)],
        cut: bool,
        handoff: Option<&wire::Handoff>,
    ) -> Self {
        let mut hops: Vec<Hop> = Vec::with_capacity(chain.len());
        for (place, mut report) in chain::report(chain).into_iter().enumerate() {
            let (here, _) = &chain[place];
            let (added, lifted) = match place.checked_sub(1).map(|before| &chain[before].0) {
                Some(before) => {
                    let change = diff(before, here, Tokenizer::UNKNOWN);
                    (change.constraints.added, change.lifted.added)
                }
                // Nobody can tell what this hop added to what is gone.
                None if cut => {
                    report.linked = true;
                    (Vec::new(), Vec::new())
                }
                None => {
                    let texts = here.parts.constraints.iter().map(|one| one.text.clone());
                    let lifted = here.parts.lifted.iter().map(|one| one.text.clone());
                    (texts.collect(), lifted.collect())
                }
            };
            hops.push(Hop { whole: report.is_whole(), report, added, lifted });
        }
        let last = chain.last().map(|(envelope, _)| &envelope.parts);
        Self {
            intact: (!hops.is_empty()).then(|| hops.iter().all(|hop| hop.whole)),
            same_intent: hops.iter().all(|hop| hop.report.same_intent),
            binding: last.map_or(0, |it| it.constraints.iter().filter(|one| one.hard).count()),
            lifted: last.map(|parts| parts.lifted.clone()).unwrap_or_default(),
            lifted_since: handoff.map(|one| one.lifted.clone()).unwrap_or_default(),
            cut,
            hops,
        }
    }

    pub(super) fn text(&self) -> String {
        let count = self.hops.len();
        let mut text = match self.intact {
            None => "There is no envelope to tell by.\n".to_owned(),
            Some(true) => format!(
                "Yes: {} that bind, word for word, and the same intent, along {count} hop{}.\n",
                self.binding,
                if count == 1 { "" } else { "s" }
            ),
            Some(false) => "NO. Something that binds is not as it was:\n".to_owned(),
        };
        if self.cut {
            text += "What came before was erased, or is not yours to see.\n";
        }
        for hop in &self.hops {
            let HopReport { hop: number, from_agent, .. } = &hop.report;
            let mut line = |what: &str, said: &str| {
                text += &format!("hop {number} ({from_agent}) {what}{}\n", printable(said));
            };
            hop.added.iter().for_each(|one| line("added: ", one));
            hop.lifted.iter().for_each(|one| line("lifted: ", one));
            hop.report.lost_constraints.iter().for_each(|one| line("LOST: ", one));
            hop.report.altered_constraints.iter().for_each(|one| line("ALTERED: ", one));
            if !hop.report.same_intent {
                line("has ANOTHER INTENT", "");
            }
            if !hop.report.linked {
                line("is NOT LINKED to the envelope before it", "");
            }
        }
        for one in &self.lifted {
            let said = format!("{} lifted it: {} ({})", one.by, one.text, one.reason);
            text += &format!("{}\n", printable(&said));
        }
        for one in &self.lifted_since {
            text +=
                &format!("lifted since, from the next hop on, by {}: {}\n", one.by, one.constraint);
        }
        text
    }
}
