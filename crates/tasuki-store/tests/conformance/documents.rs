// SPDX-License-Identifier: Apache-2.0
//! Memories and shared contexts: revisions, races, finding them again, and erasing what they said.

use tasuki_core::commands::{self, DocumentWish, Erasable, Erase, RegistryWish, Settle, Write};
use tasuki_core::document::ranking::{Question, rank};
use tasuki_core::document::{Content, Document, Kind, Priority, Scope};
use tasuki_core::event::Actor;
use tasuki_core::registry::{Quotas, Tenant};
use tasuki_core::{Body, Command, DocumentId, HandoffId, Position};
use tasuki_store::{DocumentFilter, Done, Error, KeptDocument};

use crate::stage::{Backend, Stage, code};
use crate::support::{agent, body, complete, key};

fn id(name: &str) -> DocumentId {
    name.parse().unwrap()
}

fn content(text: &str, tags: &[&str]) -> Content {
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    Content { title: None, summary: None, text: text.into(), tags }
}

fn web() -> Scope {
    Scope::Project("web".parse().unwrap())
}

fn write_of(content: Body) -> Write {
    Write {
        kind: Kind::Memory,
        scope: Some(web()),
        content,
        expected: None,
        pinned: None,
        priority: None,
        settles: None,
    }
}

impl Stage {
    async fn change_document(
        &self,
        by: &str,
        name: &str,
        wish: DocumentWish,
    ) -> Result<Done, Error> {
        self.run(Command::by(agent(by), commands::ChangeDocument { id: id(name), wish })).await
    }

    async fn put(&self, name: &str, write: Write) -> Result<Done, Error> {
        let by = if name.starts_with("acme/") { "acme/coder" } else { "coder" };
        self.change_document(by, name, DocumentWish::Write(Box::new(write))).await
    }

    async fn remember(&self, name: &str, text: &str, tags: &[&str]) {
        let write = write_of(content(text, tags).body().unwrap());
        self.put(name, Write { expected: Some(0), ..write }).await.unwrap();
    }

    async fn edit(&self, name: &str, text: &str) -> Result<Done, Error> {
        self.put(name, write_of(content(text, &[]).body().unwrap())).await
    }

    async fn kept(&self, name: &str, revision: Option<u32>) -> Option<KeptDocument> {
        self.store.documents(vec![(id(name), revision)]).await.unwrap().pop().unwrap()
    }

    async fn text(&self, name: &str, revision: Option<u32>) -> Option<String> {
        let body = self.kept(name, revision).await?.body?;
        Some(Content::of(&body).unwrap().text)
    }

    async fn listed(&self, filter: DocumentFilter) -> Vec<String> {
        let filter = DocumentFilter { max: 100, ..filter };
        let found = self.store.list_documents(filter.clone()).await;
        if filter.bytes_max.is_none() {
            let counted = self.store.count_documents(filter).await.unwrap();
            assert_eq!(counted, found.as_ref().unwrap().len(), "what is listed is counted");
        }
        found.unwrap().iter().map(|kept| kept.document.id.to_string()).collect()
    }

    async fn found(&self, question: &str, filter: DocumentFilter) -> Vec<(String, i64)> {
        let question = Question::of(question);
        let found = self.store.search_documents(question.clone(), filter).await.unwrap();
        let ranked = rank(&question, found);
        ranked.into_iter().map(|(document, score)| (document.id.to_string(), score)).collect()
    }

    async fn names(&self, question: &str) -> Vec<String> {
        let found = self.found(question, DocumentFilter::default()).await;
        found.into_iter().map(|(name, _)| name).collect()
    }

    async fn erase(&self, what: Erasable) -> Result<Done, Error> {
        let erase = Erase { what, reason: body("by request") };
        self.run(Command::by(agent("admin"), erase)).await
    }

    async fn erase_revision(&self, name: &str, revision: u32) -> Result<Done, Error> {
        let at = self.kept(name, Some(revision)).await.unwrap().revision.body_pos;
        self.erase(Erasable::Revision { id: id(name), revision, at }).await
    }

    /// A handoff at its end, and where its envelope and result are.
    async fn ended(&self) -> (HandoffId, Vec<Position>) {
        let handoff = self.offered().await;
        let proof = self.claim(handoff, "coder").await;
        let done = self.act(handoff, proof, complete("done")).await.unwrap();
        let handoff = &done.handoffs[0];
        (handoff.id, vec![handoff.envelope_pos, handoff.last_pos])
    }

    async fn quota(&self, bytes: u64) {
        let quotas = Quotas { stored_bytes: Some(bytes), ..Quotas::default() };
        let wish = RegistryWish::SetTenant(Tenant { id: "default".parse().unwrap(), quotas });
        self.run(Command::registry(Actor::Broker, None, wish)).await.unwrap();
    }
}

pub(crate) async fn every_edit_is_a_revision_that_can_be_read(stage: Stage) {
    stage.remember("ms-4821", "the first words", &["style"]).await;
    let done = stage.edit("ms-4821", "other words").await.unwrap();
    let document = done.document.unwrap();
    assert_eq!((document.revision, &document.scope), (2, &web()));
    assert_eq!(stage.text("ms-4821", None).await.unwrap(), "other words");
    assert_eq!(stage.text("ms-4821", Some(1)).await.unwrap(), "the first words");
    assert!(stage.kept("ms-4821", Some(3)).await.is_none());
    assert!(stage.kept("ms-4822", None).await.is_none());
    let kept = stage.kept("ms-4821", Some(1)).await.unwrap();
    assert_eq!(*kept.document, *document, "the document is shown as it is now");
    assert_eq!((kept.revision.number, kept.revision.content), (1, kept.body.unwrap().hash));
    assert_eq!(code(stage.edit("ms-1", "x").await), "memory_not_found");
    stage.verified().await;
}

pub(crate) async fn of_many_who_write_what_they_saw_one_wins(stage: Stage) {
    stage.remember("ms-1", "start", &[]).await;
    let tries = (0..16).map(|writer| {
        let stage = stage.clone();
        let content = content(&format!("by {writer}"), &[]).body().unwrap();
        let write = Write { expected: Some(1), ..write_of(content) };
        tokio::spawn(async move { stage.put("ms-1", write).await })
    });
    let mut won = Vec::new();
    for one in futures::future::join_all(tries).await {
        match one.unwrap() {
            Ok(done) => won.push(done.document.unwrap().revision),
            lost => assert_eq!(code(lost), "revision_conflict"),
        }
    }
    assert_eq!(won, [2]);
    stage.verified().await;
}

pub(crate) async fn a_memory_is_made_once_for_a_key(stage: Stage) {
    let write = write_of(content("once", &[]).body().unwrap());
    let write = Write { expected: Some(0), ..write };
    let put = |stage: &Stage, name: &str| {
        let wish = DocumentWish::Write(Box::new(write.clone()));
        let change = Command::by(agent("coder"), commands::ChangeDocument { id: id(name), wish });
        let (stage, change) = (stage.clone(), change.with_key(key("k-1", "request")));
        async move { stage.run(change).await }
    };
    assert!(!put(&stage, "ms-1").await.unwrap().outcome.repeated);
    // The broker makes up another name each time, and the first one stands.
    let again = put(&stage, "ms-2").await.unwrap();
    assert!(again.outcome.repeated);
    assert_eq!(again.document.unwrap().id, id("ms-1"));
    assert!(stage.kept("ms-2", None).await.is_none());
    let stage = if stage.backend == Backend::Volatile { stage } else { stage.restart().await };
    let again = put(&stage, "ms-3").await.unwrap();
    assert_eq!(again.document.unwrap().id, id("ms-1"));
}

pub(crate) async fn marks_and_tombstones_show_in_listings(stage: Stage) {
    for (name, tag) in [("ms-1", "style"), ("ms-2", "style"), ("ms-3", "build")] {
        stage.remember(name, name, &[tag]).await;
    }
    stage.remember("acme/ms-1", "another tenant's", &["style"]).await;
    let pin = DocumentWish::Mark { pinned: Some(true), priority: Some(Priority::High) };
    let pinned = stage.change_document("coder", "ms-1", pin).await.unwrap().document.unwrap();
    assert_eq!((pinned.pinned, pinned.priority, pinned.revision), (true, Priority::High, 1));
    let all = DocumentFilter::default;
    assert_eq!(stage.listed(all()).await, ["ms-1", "ms-3", "ms-2"], "what changed last is first");
    let tag = Some("style".to_owned());
    assert_eq!(stage.listed(DocumentFilter { tag, ..all() }).await, ["ms-1", "ms-2"]);
    let pinned = Some(false);
    assert_eq!(stage.listed(DocumentFilter { pinned, ..all() }).await, ["ms-3", "ms-2"]);
    let scope = Some(Scope::Agent(agent("coder")));
    assert!(stage.listed(DocumentFilter { scope, ..all() }).await.is_empty());
    let tenant = "acme".parse().unwrap();
    assert_eq!(stage.listed(DocumentFilter { tenant, ..all() }).await, ["acme/ms-1"]);
    let bytes_of = async |name: &str| {
        let kept = stage.kept(name, None).await.unwrap();
        kept.body.unwrap().text().len()
    };
    let two = bytes_of("ms-1").await + bytes_of("ms-3").await;
    let bytes_max = Some(two);
    assert_eq!(stage.listed(DocumentFilter { bytes_max, ..all() }).await, ["ms-1", "ms-3"]);
    let bytes_max = Some(two - 1);
    assert_eq!(stage.listed(DocumentFilter { bytes_max, ..all() }).await, ["ms-1"]);

    let successor = id("ms-2");
    stage.change_document("coder", "ms-3", DocumentWish::Supersede { successor }).await.unwrap();
    let delete = DocumentWish::Delete { reason: body("wrong") };
    stage.change_document("coder", "ms-1", delete).await.unwrap();
    assert_eq!(stage.listed(all()).await, ["ms-2"]);
    let both = DocumentFilter { superseded: true, deleted: true, ..all() };
    assert_eq!(stage.listed(both).await, ["ms-1", "ms-3", "ms-2"]);
    let before = stage.kept("ms-3", None).await.unwrap().document.last_pos;
    let page = DocumentFilter { superseded: true, before: Some(before), ..all() };
    assert_eq!(stage.listed(page).await, ["ms-2"]);
    let tombstone = stage.kept("ms-1", None).await.unwrap();
    let deleted = tombstone.document.deleted.clone().unwrap();
    let reason = stage.store.bodies(vec![deleted.reason_pos]).await.unwrap();
    assert_eq!(reason, [Some(body("wrong"))]);
    assert_eq!(code(stage.edit("ms-1", "x").await), "memory_deleted");
    assert_eq!(code(stage.edit("ms-3", "x").await), "memory_superseded");
    stage.verified().await;
}

/// The numbers are the same wherever this runs, so every store ranks alike.
pub(crate) async fn a_search_ranks_alike_on_every_store(stage: Stage) {
    for (name, text) in [
        ("ms-1", "deploy the shop with the blue script"),
        ("ms-2", "deploy deploy deploy, and never on a friday"),
        ("ms-3", "the shop sells shoes; its basket is in src/basket.rs"),
        ("ms-4", "nothing of the kind"),
    ] {
        stage.remember(name, text, &[]).await;
    }
    stage.remember("acme/ms-9", "deploy the other shop", &[]).await;
    let found = stage.found("deploy the shop", DocumentFilter::default()).await;
    let expected = [("ms-1", 136_532), ("ms-2", 102_303), ("ms-3", 53_538)];
    let found: Vec<_> = found.iter().map(|(name, score)| (name.as_str(), *score)).collect();
    assert_eq!(found, expected);
    assert_eq!(stage.names("basket.rs").await, ["ms-3"]);
    assert!(stage.names("elephant").await.is_empty());

    // What it said before counts no longer, and neither does what was taken away.
    stage.edit("ms-1", "elephants only").await.unwrap();
    assert_eq!(stage.names("deploy").await, ["ms-2"]);
    assert_eq!(stage.names("elephants").await, ["ms-1"]);
    assert_eq!(stage.names("an elephant").await, ["ms-1"], "in any of its forms");
    let delete = DocumentWish::Delete { reason: body("wrong") };
    stage.change_document("coder", "ms-2", delete).await.unwrap();
    assert!(stage.names("deploy").await.is_empty());
    let successor = id("ms-3");
    stage.change_document("coder", "ms-1", DocumentWish::Supersede { successor }).await.unwrap();
    assert!(stage.names("elephants").await.is_empty());
    let superseded = DocumentFilter { superseded: true, ..Default::default() };
    assert_eq!(stage.found("elephants", superseded).await.len(), 1);
    let question = Question::of("the");
    let all = stage.store.search_documents(question, DocumentFilter::default()).await.unwrap();
    assert_eq!(all.statistics.documents, 3, "ms-1, ms-3 and ms-4");
}

pub(crate) async fn a_settled_decision_is_not_decided_twice(stage: Stage) {
    let decide = |text: &str, supersedes| {
        let stage = stage.clone();
        let write = Write {
            kind: Kind::Context,
            settles: Some(Settle { key: "database".parse().unwrap(), supersedes }),
            ..write_of(body(text))
        };
        async move { stage.put("context:web", write).await }
    };
    decide("sqlite", None).await.unwrap();
    assert_eq!(code(decide("postgres", None).await), "decision_settled");
    let done = decide("postgres", Some(1)).await.unwrap();
    let document = done.document.unwrap();
    assert_eq!((document.revision, document.decisions), (2, 2));
    let kind = Some(Kind::Context);
    assert_eq!(stage.listed(DocumentFilter { kind, ..Default::default() }).await, ["context:web"]);
    assert!(stage.names("postgres").await.is_empty(), "only memories are searched");
}

pub(crate) async fn what_was_erased_is_gone_and_the_log_still_verifies(stage: Stage) {
    stage.remember("ms-1", "a phone number", &["people"]).await;
    stage.edit("ms-1", "another phone number").await.unwrap();
    let (handoff, bodies) = stage.ended().await;
    let before = stage.store.verify().await.unwrap();

    stage.erase_revision("ms-1", 1).await.unwrap();
    assert!(stage.erase_revision("ms-1", 1).await.unwrap().outcome.repeated);
    assert_eq!(stage.text("ms-1", Some(1)).await, None);
    assert!(stage.kept("ms-1", Some(1)).await.unwrap().revision.erased);
    assert_eq!(stage.names("another").await, ["ms-1"], "the last revision is still found");
    stage.erase_revision("ms-1", 2).await.unwrap();
    assert!(stage.kept("ms-1", None).await.unwrap().document.erased);
    assert!(stage.names("phone").await.is_empty());
    let tag = Some("people".to_owned());
    assert!(stage.listed(DocumentFilter { tag, ..Default::default() }).await.is_empty());

    let what = Erasable::Handoff { id: handoff, at: bodies.clone() };
    stage.erase(what).await.unwrap();
    assert_eq!(stage.store.bodies(bodies).await.unwrap(), [None, None]);
    assert_eq!(stage.story(handoff).await.last(), Some(&"erased"));
    let verdict = stage.store.verify().await.unwrap();
    assert_eq!((verdict.first_bad.as_ref(), verdict.erased), (None, 4));
    assert_eq!(verdict.bodies, before.bodies, "four are gone, and four reasons came");
    if stage.backend == Backend::Volatile {
        return;
    }
    let stage = stage.restart().await;
    stage.verified().await;
    let new = stage.store.verify_new().await.unwrap();
    let verdict = stage.store.verify().await.unwrap();
    assert_eq!((new.erased, new.bodies), (verdict.erased, verdict.bodies), "gone since then");
    assert_eq!(stage.text("ms-1", Some(2)).await, None);
    stage.edit("ms-1", "no number at all").await.unwrap();
    assert_eq!(stage.names("number").await, ["ms-1"]);
}

pub(crate) async fn erased_bytes_are_given_back_to_their_tenant(stage: Stage) {
    let large = "word ".repeat(2000);
    stage.remember("ms-1", &large, &[]).await;
    stage.quota(15_000).await;
    let more = write_of(content(&large, &[]).body().unwrap());
    let more = Write { expected: Some(0), ..more };
    assert_eq!(code(stage.put("ms-2", more.clone()).await), "quota_exceeded");
    stage.erase_revision("ms-1", 1).await.unwrap();
    stage.put("ms-2", more.clone()).await.unwrap();
    assert_eq!(code(stage.put("ms-3", more.clone()).await), "quota_exceeded");
    if stage.backend == Backend::Volatile {
        return;
    }
    let stage = stage.restart().await;
    assert_eq!(code(stage.put("ms-3", more.clone()).await), "quota_exceeded");
    stage.erase_revision("ms-2", 1).await.unwrap();
    stage.put("ms-3", more).await.unwrap();
}

pub(crate) async fn documents_outlive_a_restart(stage: Stage) {
    stage.remember("ms-1", "to be remembered", &["style"]).await;
    stage.edit("ms-1", "to be remembered for long").await.unwrap();
    let before: Document = (*stage.kept("ms-1", None).await.unwrap().document).clone();
    if stage.backend == Backend::Volatile {
        return;
    }
    let stage = stage.restart().await;
    assert_eq!(*stage.kept("ms-1", None).await.unwrap().document, before);
    assert_eq!(stage.text("ms-1", Some(1)).await.unwrap(), "to be remembered");
    assert_eq!(stage.names("long").await, ["ms-1"]);
    assert_eq!(stage.edit("ms-1", "more").await.unwrap().document.unwrap().revision, 3);
    stage.verified().await;
}
