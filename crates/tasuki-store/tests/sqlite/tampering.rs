// SPDX-License-Identifier: Apache-2.0
//! Whoever changes the log afterwards is found out, and the first bad entry is named.

use std::path::PathBuf;

use rusqlite::Connection;
use tasuki_core::Position;
use tasuki_store::audit::{Verdict, verify_lines};
use tasuki_store::{ManualClock, OpenError, Sqlite, SqliteOptions, Store, Sync, maintenance};

use crate::stage::{BEGIN, Stage};
use crate::support::{complete, to};
use crate::{database, open};

/// A closed store with twelve events of four tasks and checkpoints after the sixth and the last.
async fn closed() -> Stage {
    let mut stage = open().await;
    for half in 0..2 {
        for agent in ["coder", "tester"] {
            let id = stage.offer_to(to(agent), |_| {}).await;
            let proof = stage.claim(id, agent).await;
            stage.act(id, proof, complete("done")).await.unwrap();
        }
        stage.store.close().await;
        if half == 0 {
            stage = stage.go_on_in(&stage.dir).await;
        }
    }
    let positions: Vec<i64> = database(&stage.dir)
        .prepare("SELECT position FROM checkpoint")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(positions.contains(&6) && positions.contains(&12), "{positions:?}");
    // The idle writer may have sealed in between; two checkpoints are enough to tell about.
    database(&stage.dir)
        .execute("DELETE FROM checkpoint WHERE position NOT IN (6, 12)", [])
        .unwrap();
    stage
}

fn verify(stage: &Stage) -> Verdict {
    maintenance::verify(&stage.dir, &mut |_| ()).unwrap()
}

/// What a change in the database leads to: the entry that is named, and words of the finding.
async fn check(change: &str, position: u64, words: &str) {
    let stage = closed().await;
    assert_eq!(verify(&stage).first_bad, None);
    database(&stage.dir).execute_batch(change).unwrap();
    let finding = verify(&stage).first_bad.expect(change);
    assert_eq!(finding.position, Position(position), "{change}: {finding}");
    assert!(finding.to_string().contains(words), "{change}: {finding}");
    // The store itself says the same of its log, wherever it starts at all.
    let options = SqliteOptions { dir: stage.dir.clone(), sync: Sync::Full };
    if let Ok(store) = Sqlite::open(options, ManualClock::at(BEGIN)).await {
        let verdict = store.verify().await.unwrap();
        assert_eq!(verdict.first_bad, Some(finding));
    }
}

#[tokio::test]
async fn an_edited_record_is_named() {
    let edit = "UPDATE event SET record = replace(record, 'tester', 'nobody') WHERE position = 5";
    check(edit, 5, "altered").await;
    check("UPDATE event SET record = '{}' WHERE position = 5", 5, "cannot be read").await;
    check("UPDATE event SET hash = zeroblob(32) WHERE position = 5", 5, "altered").await;
}

#[tokio::test]
async fn a_record_edited_together_with_its_hash_is_named_by_the_next_checkpoint() {
    // The last event of its task, so that no later event hashes it.
    let stage = closed().await;
    let db = database(&stage.dir);
    let (previous, record): (Vec<u8>, String) = db
        .query_row(
            "SELECT before.hash, event.record FROM event \
             JOIN event AS before ON before.position = event.previous WHERE event.position = 3",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let record = record.replace("agent:coder", "agent:nobody");
    let previous = tasuki_core::Hash(previous.try_into().unwrap());
    let hash = tasuki_core::event::link(previous, record.as_bytes());
    db.execute(
        "UPDATE event SET record = ?, hash = ? WHERE position = 3",
        rusqlite::params![record, hash.0],
    )
    .unwrap();
    drop(db);
    let finding = verify(&stage).first_bad.unwrap();
    assert_eq!(finding.position, Position(6));
    assert!(finding.problem.contains("entries before it were altered"), "{finding}");
}

#[tokio::test]
async fn a_deleted_row_is_named_by_the_one_after_it() {
    check("DELETE FROM event WHERE position = 4", 5, "follows 3").await;
    check("DELETE FROM event WHERE position = 1", 2, "follows 0").await;
    check("DELETE FROM event WHERE position = 6", 6, "entries are missing").await;
}

#[tokio::test]
async fn swapped_rows_are_named() {
    let swap = "UPDATE event SET position = 99 WHERE position = 4; \
                UPDATE event SET position = 4 WHERE position = 5; \
                UPDATE event SET position = 5 WHERE position = 99";
    check(swap, 4, "of its task").await;
    // Two events that begin their tasks differ in nothing but their place.
    let swap = "UPDATE event SET position = 99 WHERE position = 1; \
                UPDATE event SET position = 1 WHERE position = 4; \
                UPDATE event SET position = 4 WHERE position = 99";
    check(swap, 2, "of its task").await;
}

#[tokio::test]
async fn an_inserted_row_is_named() {
    let insert = "UPDATE event SET position = -position WHERE position > 4; \
                  UPDATE event SET position = 1 - position WHERE position < 0; \
                  INSERT INTO event SELECT 5, previous, hash, record, body FROM event \
                  WHERE position = 4";
    check(insert, 5, "of its task").await;
}

#[tokio::test]
async fn an_altered_body_is_named() {
    check("UPDATE event SET body = '{\"text\":\"other\"}' WHERE position = 6", 6, "altered").await;
    check("UPDATE event SET body = NULL WHERE position = 6", 6, "lost its body").await;
    check("UPDATE event SET body = '{}' WHERE position = 5", 5, "does not know").await;
}

#[tokio::test]
async fn an_altered_checkpoint_is_named() {
    let forge = "UPDATE checkpoint SET signature = zeroblob(64) WHERE position = 6";
    check(forge, 6, "not signed").await;
    let forge = "UPDATE checkpoint SET key = zeroblob(32) WHERE position = 6";
    check(forge, 6, "not signed").await;
    check("UPDATE checkpoint SET at = at + 1 WHERE position = 12", 12, "not signed").await;
    let forge = "UPDATE checkpoint SET log_hash = zeroblob(32) WHERE position = 6";
    check(forge, 6, "does not match").await;
    check("UPDATE checkpoint SET position = 7 WHERE position = 6", 7, "does not match").await;
}

#[tokio::test]
async fn a_log_cut_off_before_its_checkpoint_is_named() {
    check("DELETE FROM event WHERE position > 8", 12, "entries are missing").await;
    check("DELETE FROM event WHERE position > 3", 6, "entries are missing").await;
}

#[tokio::test]
async fn a_log_without_damage_is_counted() {
    let stage = closed().await;
    let verdict = verify(&stage);
    assert_eq!((verdict.events, verdict.tasks, verdict.bodies), (12, 4, 8));
    assert_eq!((verdict.checkpoints, verdict.unsealed, verdict.keys.len()), (2, 0, 1));
}

async fn start(dir: PathBuf) -> Result<Sqlite, OpenError> {
    Sqlite::open(SqliteOptions { dir, sync: Sync::Full }, ManualClock::at(BEGIN)).await
}

#[tokio::test]
async fn a_start_finds_damage_at_the_end_of_the_log() {
    let changes = [
        ("UPDATE event SET record = replace(record, 'tester', 'x') WHERE position = 11", 11),
        ("DELETE FROM event WHERE position = 9", 10),
        ("UPDATE event SET hash = zeroblob(32) WHERE position = 12", 12),
    ];
    for (change, position) in changes {
        let stage = closed().await;
        let db = database(&stage.dir);
        // As a crash leaves it before the end is sealed.
        db.execute("DELETE FROM checkpoint WHERE position = 12", []).unwrap();
        db.execute_batch(change).unwrap();
        drop(db);
        let error = start(stage.dir.clone()).await.err().expect(change);
        let OpenError::Damaged(finding) = &error else { panic!("{change}: {error}") };
        assert_eq!(finding.position, Position(position), "{change}");
        assert!(error.to_string().contains("tasuki audit verify"), "{error}");
    }
}

#[tokio::test]
async fn a_start_finds_that_sealed_entries_are_missing() {
    for change in [
        "DELETE FROM event WHERE position > 8",
        "DELETE FROM event WHERE position = 12",
        "UPDATE checkpoint SET signature = zeroblob(64) WHERE position = 12",
    ] {
        let stage = closed().await;
        database(&stage.dir).execute_batch(change).unwrap();
        let error = start(stage.dir.clone()).await.err().expect(change);
        let OpenError::Damaged(finding) = &error else { panic!("{change}: {error}") };
        assert_eq!(finding.position, Position(12), "{change}");
    }
}

fn exported(stage: &Stage) -> Vec<String> {
    let mut bytes = Vec::new();
    let lines = maintenance::export(&stage.dir, &mut bytes, &mut |_| ()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text.lines().count() as u64, lines);
    text.lines().map(ToOwned::to_owned).collect()
}

fn verify_text(lines: &[String]) -> Verdict {
    verify_lines(lines.iter().map(|line| Ok(line.clone())))
}

#[tokio::test]
async fn an_exported_log_verifies_without_the_store() {
    let stage = closed().await;
    let lines = exported(&stage);
    assert_eq!(lines.len(), 14);
    assert_eq!(verify_text(&lines), verify(&stage));
}

#[tokio::test]
async fn every_changed_line_of_an_exported_log_is_found() {
    let lines = exported(&closed().await);
    for place in 0..lines.len() {
        let mut without = lines.clone();
        without.remove(place);
        let found = verify_text(&without).first_bad.is_some();
        let checkpoint = lines[place].starts_with("{\"checkpoint\"");
        let last_events = place >= lines.len() - 1;
        assert_eq!(found, !checkpoint && !last_events, "without line {place}");

        // One character at the beginning of each value and one after it.
        let line = &lines[place];
        let values = line.match_indices("\":").map(|(at, _)| at + 2);
        for at in values.flat_map(|at| [at, at + 1, at + 9]) {
            let Some(old) = line.as_bytes().get(at).filter(|byte| byte.is_ascii_alphanumeric())
            else {
                continue;
            };
            let new = if *old == b'1' { '2' } else { '1' };
            let mut changed = lines.clone();
            changed[place].replace_range(at..=at, &new.to_string());
            if line.contains("\"previous\":null") && !changed[place].contains("\"previous\"") {
                continue; // Without the member it says the same.
            }
            let finding = verify_text(&changed).first_bad;
            assert!(finding.is_some(), "not found: {}", changed[place]);
        }
    }
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_is_not_left_out_of_an_export() {
    let stage = closed().await;
    let db: Connection = database(&stage.dir);
    db.execute("UPDATE event SET record = 'x' WHERE position = 5", []).unwrap();
    drop(db);
    let mut bytes = Vec::new();
    let error = maintenance::export(&stage.dir, &mut bytes, &mut |_| ()).unwrap_err();
    let OpenError::Damaged(finding) = &error else { panic!("{error}") };
    assert_eq!(finding.position, Position(5));
}

#[tokio::test]
async fn a_check_of_what_is_new_names_the_first_bad_entry_too() {
    let changes = [
        ("UPDATE event SET record = replace(record, 'tester', 'x') WHERE position = 11", 11),
        ("UPDATE event SET record = '{}' WHERE position = 8", 8),
        ("UPDATE event SET body = NULL WHERE position = 9", 9),
        ("DELETE FROM event WHERE position = 9", 10),
        ("DELETE FROM event WHERE position = 7", 8),
        ("UPDATE event SET hash = zeroblob(32) WHERE position = 12", 12),
        ("UPDATE checkpoint SET log_hash = zeroblob(32) WHERE position = 12", 12),
    ];
    for (change, position) in changes {
        let stage = closed().await;
        // Verified when there were six, and sealed there.
        let db = database(&stage.dir);
        db.execute_batch("CREATE TABLE later AS SELECT * FROM event WHERE position > 6").unwrap();
        db.execute_batch("CREATE TABLE seal AS SELECT * FROM checkpoint WHERE position > 6")
            .unwrap();
        db.execute_batch("DELETE FROM event WHERE position > 6").unwrap();
        db.execute_batch("DELETE FROM checkpoint WHERE position > 6").unwrap();
        // Rows and the note beside the log are of twelve.
        db.execute_batch("DELETE FROM meta WHERE name = 'row_sums'").unwrap();
        std::fs::remove_file(stage.dir.join("acknowledged")).unwrap();
        let store = start(stage.dir.clone()).await.unwrap();
        assert_eq!(store.verify().await.unwrap().events, 6);
        db.execute_batch("INSERT INTO event SELECT * FROM later").unwrap();
        db.execute_batch("INSERT INTO checkpoint SELECT * FROM seal").unwrap();
        db.execute_batch(change).unwrap();
        let verdict = store.verify_new().await.unwrap();
        let finding = verdict.first_bad.expect(change);
        assert_eq!(verdict.verified_before, Some(Position(6)), "{change}");
        assert_eq!(finding.position, Position(position), "{change}: {finding}");
        assert_eq!(store.verify().await.unwrap().first_bad, Some(finding), "{change}");
    }
}

#[tokio::test]
async fn a_mark_that_is_forged_or_does_not_fit_is_not_believed() {
    let changes = [
        "UPDATE kept SET data = replace(data, '12', '11') WHERE name = 'verified'",
        "UPDATE kept SET data = '{}' WHERE name = 'verified'",
        "DELETE FROM checkpoint WHERE position = 12",
        "UPDATE checkpoint SET signature = zeroblob(64) WHERE position = 12",
    ];
    for change in changes {
        let stage = closed().await;
        let store = start(stage.dir.clone()).await.unwrap();
        store.verify().await.unwrap();
        assert!(store.verify_new().await.unwrap().verified_before.is_some());
        database(&stage.dir).execute_batch(change).unwrap();
        let verdict = store.verify_new().await.unwrap();
        assert_eq!(verdict.verified_before, None, "{change}");
    }
}

#[tokio::test]
async fn after_damage_was_found_no_check_goes_on_behind_it() {
    let stage = closed().await;
    let store = start(stage.dir.clone()).await.unwrap();
    store.verify().await.unwrap();
    let db = database(&stage.dir);
    db.execute("UPDATE event SET body = '{}' WHERE position = 3", []).unwrap();
    assert_eq!(store.verify_new().await.unwrap().first_bad, None, "it looks at what is new");
    let found = store.verify().await.unwrap().first_bad.unwrap();
    assert_eq!(found.position, Position(3));
    assert_eq!(store.verify_new().await.unwrap().first_bad, Some(found));
}
