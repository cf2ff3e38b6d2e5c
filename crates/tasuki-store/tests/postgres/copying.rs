// SPDX-License-Identifier: Apache-2.0
//! Moving everything from one store to the other, and back.

use futures::future::join_all;
use scratch_postgres::shared;
use tasuki_core::commands::{self, DocumentWish, Erasable, Erase, Write};
use tasuki_core::document::ranking::Question;
use tasuki_core::document::{Content, Kind, Scope};
use tasuki_core::{Command, DocumentId};
use tasuki_store::postgres::{from_sqlite, to_sqlite};
use tasuki_store::{DocumentFilter, HandoffFilter, PostgresError, TaskFilter};

use crate::stage::{Backend, Stage, code};
use crate::support::{agent, body, complete, to, to_any};
use crate::work::{self, Told};
use crate::{broker_with, options};

/// Something of everything: finished, waiting, held, scheduled, dead and reviewed work.
async fn lived_in(stage: &Stage) {
    let told = Told::default();
    join_all((0..4).map(|n| work::lives(stage.clone(), n, 5, &told))).await;
    stage.offered().await;
    let held = stage.offer_to(to("tester"), |_| {}).await;
    stage.claim(held, "tester").await;
    let later = stage.now().plus_ms(60_000);
    stage.offer_to(to_any("review"), |offer| offer.not_before = Some(later)).await;
    for key in ["a", "a", "b"] {
        let ordered = |offer: &mut tasuki_core::commands::Offer| {
            offer.ordering_key = Some(key.parse().unwrap());
        };
        stage.offer_to(to_any("review"), ordered).await;
    }
    let (dead, redriven) = (stage.offered().await, stage.offered().await);
    stage.kill(dead).await;
    stage.kill(redriven).await;
    stage.redrive(redriven).await.unwrap();
    remembered(stage).await;
}

/// A memory with two revisions, of which the first was erased.
async fn remembered(stage: &Stage) {
    let id: DocumentId = "ms-1".parse().unwrap();
    for (expected, text) in [(Some(0), "the first words"), (None, "other words")] {
        let content = Content { text: text.into(), ..Content::default() }.body().unwrap();
        let write = Write {
            kind: Kind::Memory,
            scope: Some(Scope::Project("web".parse().unwrap())),
            content,
            expected,
            pinned: None,
            priority: None,
            settles: None,
        };
        let wish = DocumentWish::Write(Box::new(write));
        stage
            .run(Command::by(agent("coder"), commands::ChangeDocument { id: id.clone(), wish }))
            .await
            .unwrap();
    }
    let first = stage.store.documents(vec![(id.clone(), Some(1))]).await.unwrap().pop().unwrap();
    let what = Erasable::Revision { id, revision: 1, at: first.unwrap().revision.body_pos };
    let erase = Erase { what, reason: body("by request") };
    stage.run(Command::by(agent("admin"), erase)).await.unwrap();
}

/// What is left of it, and how it is found.
async fn memory(stage: &Stage) -> (Option<String>, Option<String>, u64, usize) {
    let id: DocumentId = "ms-1".parse().unwrap();
    let wanted = vec![(id.clone(), Some(1)), (id, None)];
    let kept = stage.store.documents(wanted).await.unwrap();
    let text = |kept: &Option<tasuki_store::KeptDocument>| {
        let body = kept.as_ref().unwrap().body.as_ref()?;
        Some(Content::of(body).unwrap().text)
    };
    let question = Question::of("words");
    let found = stage.store.search_documents(question, DocumentFilter::default()).await.unwrap();
    (text(&kept[0]), text(&kept[1]), found.statistics.length_total, found.found.len())
}

async fn everything(
    stage: &Stage,
) -> (Vec<String>, Vec<std::sync::Arc<tasuki_core::Task>>, Vec<std::sync::Arc<tasuki_core::Handoff>>)
{
    let log = stage.log().await.into_iter().map(|entry| entry.encoded).collect();
    let tasks = stage.store.list_tasks(TaskFilter { max: 10_000, ..Default::default() });
    let handoffs = stage.store.list_handoffs(HandoffFilter { max: 10_000, ..Default::default() });
    (log, tasks.await.unwrap(), handoffs.await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_moves_to_postgres_and_back_is_the_same_store() {
    let sqlite = Stage::open(Backend::Sqlite).await;
    lived_in(&sqlite).await;
    let stale = sqlite.offered().await;
    let stale = (stale, sqlite.claim(stale, "coder").await);
    let (log, tasks, _) = everything(&sqlite).await;
    let waiting = sqlite.store.stats().waiting_handoffs;
    let remembered = memory(&sqlite).await;
    assert_eq!(remembered, (None, Some("other words".into()), 2, 1));
    sqlite.store.close().await;

    let url = shared().database().await;
    let mut told = Vec::new();
    let tell = &mut |done| told.push(done);
    let moved = Box::pin(from_sqlite(&sqlite.dir, options(&url), sqlite.clock.clone(), tell)).await;
    assert_eq!(moved.unwrap().events, log.len() as u64);
    assert_eq!(told.last(), Some(&(log.len() as u64)), "progress is told");
    let postgres = broker_with(options(&url), Some(&sqlite)).await;
    let (copied, copied_tasks, _) = everything(&postgres).await;
    assert_eq!(copied[..log.len()], log[..], "every event with its bytes");
    assert!(copied.len() > log.len(), "and that claims from before are stale");
    assert_eq!(copied_tasks.len(), tasks.len());
    assert_eq!(code(postgres.act(stale.0, stale.1, complete("late")).await), "stale_claim");
    // The two claims that went stale wait again.
    assert_eq!(postgres.store.stats().waiting_handoffs, waiting + 2);
    let again = postgres.offer(to("coder"));
    let key = crate::support::key("worker-1-1", "request");
    assert!(postgres.send_keyed(again, key).await.unwrap().outcome.repeated, "keys moved too");
    let next = postgres.claim_next("coder", 1).await;
    assert_eq!(next.len(), 1, "and work goes on");
    assert_eq!(memory(&postgres).await, remembered);
    postgres.verified().await;
    let (log, tasks, handoffs) = everything(&postgres).await;
    postgres.store.close().await;

    let dir = sqlite.base.path().join("back");
    let moved = to_sqlite(options(&url), &dir, sqlite.clock.clone(), &mut |_| ()).await.unwrap();
    assert_eq!(moved.events, log.len() as u64);
    let back = sqlite.go_on_in(&dir).await;
    let (copied, copied_tasks, copied_handoffs) = everything(&back).await;
    assert_eq!(copied[..log.len()], log[..]);
    assert_eq!(copied_tasks.len(), tasks.len());
    assert_eq!(copied_handoffs.len(), handoffs.len());
    assert_eq!(memory(&back).await, remembered);
    back.verified().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_ever_copied_over_something() {
    let url = shared().database().await;
    let stage = broker_with(options(&url), None).await;
    stage.offered().await;
    let sqlite = Stage::open(Backend::Sqlite).await;
    sqlite.offered().await;
    sqlite.store.close().await;
    let moved =
        Box::pin(from_sqlite(&sqlite.dir, options(&url), sqlite.clock.clone(), &mut |_| ())).await;
    let error = moved.unwrap_err().to_string();
    assert_eq!(error, PostgresError::NotEmpty.to_string());
    let moved = to_sqlite(options(&url), &sqlite.dir, sqlite.clock.clone(), &mut |_| ()).await;
    assert!(moved.unwrap_err().to_string().contains("copy the log"));
    stage.verified().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_not_what_the_log_says_are_named() {
    let url = scratch_postgres::shared().database().await;
    let stage = crate::broker(&url, None).await;
    let held = stage.offered().await;
    stage.claim(held, "coder").await;
    let waits = stage.offered().await;
    stage.store.close().await;
    let compare = async |name: &str| {
        let beside = stage.base.path().join(name);
        let compared = tasuki_store::postgres::compare_rows(
            crate::options(&url),
            &beside,
            stage.clock.clone(),
        );
        compared.await.unwrap()
    };
    assert_eq!(compare("intact").await, []);
    let name = url.rsplit('/').next().unwrap();
    let change =
        "UPDATE handoff SET data = replace(data, 'coder', 'mallory') WHERE state = 'pending'";
    scratch_postgres::shared().run_sql(name, change).await;
    let found = compare("changed").await;
    let named: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(named, [format!("handoff {waits} was changed")]);
    scratch_postgres::shared().run_sql(name, "DELETE FROM handoff WHERE state = 'claimed'").await;
    let found = compare("deleted").await;
    assert!(found.iter().any(|it| it.row == held.to_string() && it.problem == "is missing"));
}
