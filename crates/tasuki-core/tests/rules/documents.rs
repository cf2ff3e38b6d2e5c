// SPDX-License-Identifier: Apache-2.0
//! Memories and shared contexts: revisions, races, what is settled, and what may be erased.

use tasuki_core::commands::{self, DocumentWish, Erasable, Erase, Settle, Write};
use tasuki_core::document::{Document, Kind, Priority, Scope};
use tasuki_core::{Body, Command, DocumentId, Position, Refusal};

use crate::support::{Stage, agent, body, complete, key};

fn id(name: &str) -> DocumentId {
    name.parse().unwrap()
}

fn write(text: &str) -> Write {
    Write {
        kind: Kind::Memory,
        scope: Some(Scope::Project("web".parse().unwrap())),
        content: body(text),
        expected: None,
        pinned: None,
        priority: None,
        settles: None,
    }
}

fn create(text: &str) -> Write {
    Write { expected: Some(0), ..write(text) }
}

impl Stage {
    fn change(&mut self, name: &str, wish: DocumentWish) -> Result<bool, Refusal> {
        let command = Command::by(agent("coder"), commands::ChangeDocument { id: id(name), wish });
        self.run(command).map(|outcome| outcome.repeated)
    }

    fn put(&mut self, name: &str, write: Write) -> Result<bool, Refusal> {
        self.change(name, DocumentWish::Write(Box::new(write)))
    }

    fn document(&self, name: &str) -> &Document {
        &self.world.documents[&id(name)]
    }

    fn erase(&mut self, name: &str, revision: u32, at: Position) -> Result<bool, Refusal> {
        let what = Erasable::Revision { id: id(name), revision, at };
        let erase = Erase { what, reason: body("by request") };
        self.run(Command::by(agent("admin"), erase)).map(|outcome| outcome.repeated)
    }
}

#[test]
fn every_edit_is_a_new_revision() {
    let mut stage = Stage::new();
    assert_eq!(stage.put("ms-1", create("one")), Ok(false));
    assert_eq!(stage.put("ms-1", write("two")), Ok(false));
    assert_eq!(stage.document("ms-1").revision, 2);
    assert_eq!(stage.put("ms-1", write("two")), Ok(true), "nothing changed");
    assert_eq!(stage.put("ms-2", write("one")), Err(Refusal::MemoryNotFound(id("ms-2"))));
}

#[test]
fn of_two_writers_who_saw_the_same_revision_one_wins() {
    let mut stage = Stage::new();
    stage.put("ms-1", create("one")).unwrap();
    let saw = |text| Write { expected: Some(1), ..write(text) };
    assert_eq!(stage.put("ms-1", saw("mine")), Ok(false));
    let lost = Refusal::RevisionConflict { id: id("ms-1"), expected: 1, current: 2 };
    assert_eq!(stage.put("ms-1", saw("yours")), Err(lost));
    assert_eq!(stage.put("ms-1", saw("mine")), Ok(true), "its reply may have been lost");
    let taken = Refusal::RevisionConflict { id: id("ms-1"), expected: 0, current: 2 };
    assert_eq!(stage.put("ms-1", create("mine")), Err(taken));
}

#[test]
fn a_create_with_a_key_is_safe_to_repeat() {
    let mut stage = Stage::new();
    let keyed = |name: &str, text: &str, request: &str| {
        let wish = DocumentWish::Write(Box::new(create(text)));
        let change = commands::ChangeDocument { id: id(name), wish };
        Command::by(agent("coder"), change).with_key(key("k", request))
    };
    assert!(!stage.run(keyed("ms-1", "one", "a")).unwrap().repeated);
    // The broker made up another name on the second try, and answers with the first.
    let outcome = stage.run(keyed("ms-2", "one", "a")).unwrap();
    assert_eq!((outcome.document, outcome.repeated), (Some(id("ms-1")), true));
    let conflict = stage.run(keyed("ms-3", "two", "b"));
    assert!(matches!(conflict, Err(Refusal::IdempotencyConflict { .. })));
}

#[test]
fn marks_stay_through_edits_and_make_no_revision() {
    let mut stage = Stage::new();
    stage.put("ms-1", create("one")).unwrap();
    let mark = DocumentWish::Mark { pinned: Some(true), priority: Some(Priority::High) };
    assert_eq!(stage.change("ms-1", mark.clone()), Ok(false));
    assert_eq!(stage.change("ms-1", mark), Ok(true));
    stage.put("ms-1", write("two")).unwrap();
    let document = stage.document("ms-1");
    assert_eq!((document.revision, document.pinned), (2, true));
    assert_eq!(document.priority, Priority::High);
}

#[test]
fn what_was_superseded_or_deleted_is_not_written_any_more() {
    let mut stage = Stage::new();
    for name in ["ms-1", "ms-2", "ms-3"] {
        stage.put(name, create(name)).unwrap();
    }
    let by = |name| DocumentWish::Supersede { successor: id(name) };
    assert_eq!(stage.change("ms-1", by("ms-2")), Ok(false));
    assert_eq!(stage.change("ms-1", by("ms-2")), Ok(true));
    let superseded = Refusal::MemorySuperseded { id: id("ms-1"), by: id("ms-2") };
    assert_eq!(stage.put("ms-1", write("x")), Err(superseded.clone()));
    assert_eq!(stage.change("ms-2", by("ms-1")), Err(superseded), "no circles");
    assert!(stage.change("ms-3", by("ms-3")).is_err(), "not by itself");

    let delete = || DocumentWish::Delete { reason: body("wrong") };
    assert_eq!(stage.change("ms-3", delete()), Ok(false));
    assert_eq!(stage.change("ms-3", delete()), Ok(true));
    assert_eq!(stage.put("ms-3", write("x")), Err(Refusal::MemoryDeleted(id("ms-3"))));
    assert!(stage.document("ms-3").deleted.is_some());
}

#[test]
fn what_is_settled_stays_so_until_it_is_superseded() {
    let mut stage = Stage::new();
    let decide = |text: &str, supersedes| Write {
        kind: Kind::Context,
        settles: Some(Settle { key: "database".parse().unwrap(), supersedes }),
        ..write(text)
    };
    assert_eq!(stage.put("context:web", decide("sqlite", None)), Ok(false));
    let settled = Refusal::DecisionSettled { key: "database".parse().unwrap(), decision: 1 };
    assert_eq!(stage.put("context:web", decide("postgres", None)), Err(settled.clone()));
    assert_eq!(stage.put("context:web", decide("postgres", Some(7))), Err(settled));
    assert_eq!(stage.put("context:web", decide("postgres", Some(1))), Ok(false));
    assert_eq!(stage.document("context:web").settled[&"database".parse().unwrap()], 2);
}

#[test]
fn no_memory_takes_the_name_of_a_shared_context() {
    let mut stage = Stage::new();
    let refused = stage.put("context:web", create("x"));
    assert!(matches!(refused, Err(Refusal::InvalidDocument(_))));
}

#[test]
fn another_tenants_memory_is_not_there() {
    let mut stage = Stage::new();
    stage.put("ms-1", create("one")).unwrap();
    let wish = DocumentWish::Delete { reason: body("mine now") };
    let command =
        Command::by(agent("acme/coder"), commands::ChangeDocument { id: id("ms-1"), wish });
    assert_eq!(stage.run(command), Err(Refusal::MemoryNotFound(id("ms-1"))));
}

#[test]
fn erasing_is_done_once_and_names_what_it_erased() {
    let mut stage = Stage::new();
    stage.put("ms-1", create("one")).unwrap();
    let at = stage.document("ms-1").content_pos;
    assert_eq!(stage.erase("ms-1", 1, Position(99)), Err(Refusal::BodyNotFound(Position(99))));
    assert_eq!(stage.erase("ms-1", 2, at), Err(Refusal::BodyNotFound(at)), "another revision");
    assert_eq!(stage.erase("ms-1", 1, at), Ok(false));
    assert_eq!(stage.erase("ms-1", 1, at), Ok(true));
    assert!(stage.document("ms-1").erased);
    // The same words may be written again.
    let again: Body = body("one");
    assert_eq!(stage.put("ms-1", Write { content: again, ..write("one") }), Ok(false));
    assert!(!stage.document("ms-1").erased);
}

#[test]
fn what_was_passed_on_is_erased_only_when_its_task_is_at_its_end() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let at = stage.world.handoffs[&handoff].envelope_pos;
    let task = stage.world.handoffs[&handoff].task_id;
    let erase = |by: &str, at| {
        let what = Erasable::Handoff { id: handoff, at: vec![at] };
        Command::by(agent(by), Erase { what, reason: body("by request") })
    };
    assert_eq!(stage.run(erase("admin", at)), Err(Refusal::StillNeeded(task)));
    let proof = stage.claim(handoff, "coder");
    stage.act(handoff, proof, complete("done")).unwrap();
    assert_eq!(stage.run(erase("acme/x", at)), Err(Refusal::HandoffNotFound(handoff)));
    let elsewhere = Position(at.0 + 1);
    assert_eq!(stage.run(erase("admin", elsewhere)), Err(Refusal::BodyNotFound(elsewhere)));
    assert!(!stage.run(erase("admin", at)).unwrap().repeated);
    assert!(stage.run(erase("admin", at)).unwrap().repeated);
}
