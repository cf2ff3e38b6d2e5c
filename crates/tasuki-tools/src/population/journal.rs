// SPDX-License-Identifier: Apache-2.0
//! What a broker would write into its log, in its stored form.

use std::fs::File;
use std::io::{BufWriter, Write};

use tasuki_core::population::Collected;
use tasuki_core::{HandoffId, Position, TaskId, Timestamp};

/// What was written goes straight to whoever reads it.
pub(super) struct Journal<'a> {
    pub(super) collected: &'a mut Collected,
    /// Every record, if somebody wants to see them.
    pub(super) kept: Option<Vec<String>>,
    /// An export of it, if somebody wants one.
    pub(super) export: Option<BufWriter<File>>,
    position: u64,
}

type Ids = (TaskId, HandoffId);

struct Offer<'t> {
    kind: &'t str,
    sender: usize,
    to: &'t str,
    hop: usize,
    contract: &'t str,
    payload: &'t str,
}

impl Default for Offer<'_> {
    fn default() -> Self {
        Self { kind: "call_offered", sender: 0, to: "", hop: 0, contract: "", payload: "" }
    }
}

const HASH: &str = "sha256:ac638f49389ccb8866e8bf554a3110a52c849ea6a318cba1e0c77e8755057543";
const TERMS: &str = r#""terms":{"lease_ms":30000,"work_ms":3600000,"attempts":3,"losses":3,"backoff_ms":30000},"expires_at":"2030-01-16T08:00:00.000Z""#;

impl<'a> Journal<'a> {
    pub(super) fn new(collected: &'a mut Collected, keeps: bool) -> Self {
        Self { collected, kept: keeps.then(Vec::new), export: None, position: 0 }
    }

    fn write(
        &mut self,
        at: Timestamp,
        ids: (TaskId, Option<HandoffId>),
        event: &str,
        body: Option<&str>,
    ) {
        self.position += 1;
        let handoff = ids.1.map(|id| format!(r#""handoff_id":"{id}","#)).unwrap_or_default();
        let record = format!(
            r#"{{"v":1,"task_id":"{}","index":0,{handoff}"at":"{at}","actor":"broker",{event}}}"#,
            ids.0
        );
        // What is written here is well formed, or the test of it fails.
        let taken = self.collected.note(Position(self.position), &record, body);
        debug_assert!(taken.is_ok(), "{record}");
        if let Some(export) = &mut self.export {
            let body = body.map(|body| format!(r#","body":{body}"#)).unwrap_or_default();
            let position = self.position;
            // What cannot be written now cannot be written later either, which is said at the end.
            let _ = writeln!(
                export,
                r#"{{"event":{{"position":{position},"previous":null,"hash":"{HASH}","record":{record}{body}}}}}"#
            );
        }
        if let Some(kept) = &mut self.kept {
            kept.push(record);
        }
    }

    pub(super) fn manifest(
        &mut self,
        at: Timestamp,
        agent: usize,
        capability: usize,
        sticky: bool,
    ) {
        let event = format!(
            r#""kind":"registry_changed","change":"manifest_published","agent":"a{agent}","manifest":"{HASH}","version":1"#
        );
        let tags = if sticky { r#","tags":["sticky-sessions"]"# } else { "" };
        let body = format!(
            r#"{{"agent_id":"a{agent}","capabilities":[{{"name":"c{capability}"}}]{tags}}}"#
        );
        self.write(at, (TaskId::STORE, None), &event, Some(&body));
    }

    fn claimed(&mut self, at: Timestamp, ids: Ids, agent: usize) {
        let event = format!(
            r#""kind":"claimed","agent":"a{agent}","claim_id":"{}","fence":1,"attempt":1,"lease_ms":30000,"hard_until":"2030-01-16T08:00:00.000Z""#,
            tasuki_core::ClaimId(1)
        );
        self.write(at, (ids.0, Some(ids.1)), &event, None);
    }

    fn completed(&mut self, at: Timestamp, ids: Ids) {
        let event = format!(r#""kind":"completed","fence":1,"result":"{HASH}""#);
        let body = r#"{"payload":{"type":"done"}}"#;
        self.write(at, (ids.0, Some(ids.1)), &event, Some(body));
    }

    fn offered(&mut self, at: Timestamp, ids: Ids, offer: &Offer<'_>) {
        let Offer { kind, sender, to, hop, contract, payload } = offer;
        let event = format!(
            r#""kind":"{kind}","from":"a{sender}","to":{to},"envelope":"{HASH}","hop":{hop},"priority":5,{TERMS},"contract":{{{contract}}}"#
        );
        let body = format!(r#"{{"payload":{payload}}}"#);
        self.write(at, (ids.0, Some(ids.1)), &event, Some(&body));
    }

    /// Work for whoever can do it.
    pub(super) fn queued(
        &mut self,
        at: Timestamp,
        ids: Ids,
        sender: usize,
        capability: usize,
        claimer: usize,
        text: &str,
    ) {
        let to = format!(r#"{{"capability":"c{capability}"}}"#);
        let payload = format!(r#"{{"type":"work","text":"{text}"}}"#);
        self.offered(at, ids, &Offer { sender, to: &to, payload: &payload, ..Offer::default() });
        self.claimed(at, ids, claimer);
        self.completed(at, ids);
    }

    /// Work for one agent.
    #[allow(clippy::too_many_arguments, reason = "they are the parts of one line")]
    pub(super) fn named(
        &mut self,
        at: Timestamp,
        ids: Ids,
        sender: usize,
        (capability, receiver): (usize, usize),
        text: &str,
        session: Option<u128>,
        refused: bool,
    ) {
        let to = format!(r#"{{"agent":"a{receiver}"}}"#);
        let payload = format!(r#"{{"type":"work","text":"{text}"}}"#);
        let session = session.map(|id| format!(r#","correlation_id":"s{id}""#)).unwrap_or_default();
        let contract = format!(r#""capability":"c{capability}"{session}"#);
        let offer =
            Offer { sender, to: &to, contract: &contract, payload: &payload, ..Offer::default() };
        self.offered(at, ids, &offer);
        if refused {
            let event = format!(r#""kind":"declined","agent":"a{receiver}""#);
            self.write(at, (ids.0, Some(ids.1)), &event, None);
            return;
        }
        self.claimed(at, ids, receiver);
        self.completed(at, ids);
    }

    /// A hop of a task, with or without something new to show for it.
    pub(super) fn passed(
        &mut self,
        at: Timestamp,
        ids: Ids,
        (from, to): (usize, usize),
        hop: usize,
        attaches: bool,
    ) {
        let to_agent = format!(r#"{{"agent":"a{to}"}}"#);
        let (kind, payload) = ("transfer_offered", r#"{"type":"review"}"#);
        let offer = Offer { kind, sender: from, to: &to_agent, hop, contract: "", payload };
        self.offered(at, ids, &offer);
        self.claimed(at, ids, to);
        if attaches {
            let artifact = format!("sha256:{:064x}", { ids.1.0 });
            let event = format!(
                r#""kind":"attached","fence":1,"name":"draft","type":"text/plain","version":1,"artifact":"{artifact}","bytes":1"#
            );
            self.write(at, (ids.0, Some(ids.1)), &event, None);
        }
        self.completed(at, ids);
    }

    /// A declared number of an agent.
    pub(super) fn price(&mut self, at: Timestamp, ids: Ids, agent: usize, price: f64) {
        let payload = format!(r#"{{"type":"quote","price":{price:.4}}}"#);
        let to = r#"{"agent":"desk"}"#;
        self.offered(at, ids, &Offer { sender: agent, to, payload: &payload, ..Offer::default() });
        self.claimed_by_desk(at, ids);
    }

    fn claimed_by_desk(&mut self, at: Timestamp, ids: Ids) {
        let event = format!(
            r#""kind":"claimed","agent":"desk","claim_id":"{}","fence":1,"attempt":1,"lease_ms":30000,"hard_until":"2030-01-16T08:00:00.000Z""#,
            tasuki_core::ClaimId(1)
        );
        self.write(at, (ids.0, Some(ids.1)), &event, None);
        self.completed(at, ids);
    }
}
