// SPDX-License-Identifier: Apache-2.0
//! Documents in files: they follow from events alone, and what was erased is in no copy.

use tasuki_core::Command;
use tasuki_core::commands::{self, DocumentWish, Erasable, Erase, Write};
use tasuki_core::document::{Content, Kind, Scope};
use tasuki_store::maintenance;

use crate::stage::Stage;
use crate::support::{agent, body, complete};
use crate::{database, open};

const SECRET_WORDS: &str = "Marzipan-4711";

impl Stage {
    async fn write(&self, name: &str, text: &str) {
        let content = Content { text: text.into(), ..Content::default() }.body().unwrap();
        let write = Write {
            kind: Kind::Memory,
            scope: Some(Scope::Project("web".parse().unwrap())),
            content,
            expected: None,
            pinned: None,
            priority: None,
            settles: None,
        };
        let known = self.store.documents(vec![(name.parse().unwrap(), None)]).await.unwrap();
        let expected = if known[0].is_none() { Some(0) } else { None };
        let wish = DocumentWish::Write(Box::new(Write { expected, ..write }));
        let id = name.parse().unwrap();
        self.run(Command::by(agent("coder"), commands::ChangeDocument { id, wish })).await.unwrap();
    }

    async fn erase(&self, what: Erasable) {
        let erase = Erase { what, reason: body("by request") };
        self.run(Command::by(agent("admin"), erase)).await.unwrap();
    }

    async fn erase_first(&self, name: &str) {
        let id: tasuki_core::DocumentId = name.parse().unwrap();
        let kept = self.store.documents(vec![(id.clone(), Some(1))]).await.unwrap();
        let at = kept[0].as_ref().unwrap().revision.body_pos;
        self.erase(Erasable::Revision { id, revision: 1, at }).await;
    }

    /// Something of everything, and an envelope and a memory that were erased.
    async fn lived_in(&self) {
        self.write("ms-1", SECRET_WORDS).await;
        self.write("ms-1", "harmless words").await;
        self.write("ms-2", SECRET_WORDS).await;
        self.erase_first("ms-1").await;
        self.erase_first("ms-2").await;
        let handoff = self.offered().await;
        let proof = self.claim(handoff, "coder").await;
        let done = self.act(handoff, proof, complete("done")).await.unwrap();
        let at = vec![done.handoffs[0].envelope_pos];
        self.erase(Erasable::Handoff { id: handoff, at }).await;
    }
}

const TABLES: [&str; 6] =
    ["document", "document_revision", "document_tag", "posting", "document_total", "usage"];

fn rows(dir: &std::path::Path, table: &str) -> Vec<String> {
    let db = database(dir);
    let mut all = db.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
    let columns = all.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        let values = (0..columns).map(|column| format!("{:?}", row.get_ref(column).unwrap()));
        Ok(values.collect::<Vec<_>>().join(" | "))
    };
    all.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn rebuilt_documents_are_the_documents_there_were() {
    let stage = open().await;
    stage.lived_in().await;
    stage.store.close().await;
    let before = TABLES.map(|table| rows(&stage.dir, table));
    assert!(before.iter().filter(|rows| !rows.is_empty()).count() >= 5, "too little to tell");
    database(&stage.dir).execute_batch("DELETE FROM document; DELETE FROM posting").unwrap();
    maintenance::rebuild(&stage.dir, &*stage.clock, &mut |_| ()).unwrap();
    for (table, before) in TABLES.iter().zip(&before) {
        assert_eq!(rows(&stage.dir, table), *before, "{table}");
    }
    let stage = stage.go_on_in(&stage.dir).await;
    stage.write("ms-1", "more words").await;
    stage.verified().await;
}

#[tokio::test]
async fn what_was_erased_is_in_no_backup_and_no_export() {
    let stage = open().await;
    stage.lived_in().await;
    let backup = stage.base.path().join("backup.db");
    maintenance::backup(&stage.dir, &backup).unwrap();
    let bytes = std::fs::read(&backup).unwrap();
    let words = SECRET_WORDS.as_bytes();
    assert!(!bytes.windows(words.len()).any(|window| window == words));
    let lower = SECRET_WORDS.to_lowercase();
    let found = bytes.windows(words.len()).any(|window| window == lower.as_bytes());
    assert!(!found, "nor what it was found by");

    let mut export = Vec::new();
    maintenance::export(&stage.dir, &mut export, &mut |_| ()).unwrap();
    let text = String::from_utf8(export).unwrap();
    assert!(!text.contains(SECRET_WORDS));
    let verdict = tasuki_store::audit::verify_lines(text.lines().map(|line| Ok(line.to_owned())));
    assert_eq!((verdict.first_bad, verdict.erased), (None, 3));

    let restored = stage.base.path().join("restored");
    let verdict = maintenance::restore(&backup, &restored, &mut |_| ()).unwrap();
    assert_eq!((verdict.first_bad, verdict.erased), (None, 3));
    stage.store.close().await;
    let stage = stage.go_on_in(&restored).await;
    stage.verified().await;
}

#[tokio::test]
async fn a_body_that_is_missing_without_a_word_is_damage() {
    let stage = open().await;
    stage.lived_in().await;
    let kept = stage.store.documents(vec![("ms-1".parse().unwrap(), None)]).await.unwrap();
    let at = kept[0].as_ref().unwrap().revision.body_pos;
    stage.store.close().await;
    let db = database(&stage.dir);
    db.execute("UPDATE event SET body = NULL WHERE position = ?", [at.0 as i64]).unwrap();
    let verdict = maintenance::verify(&stage.dir, &mut |_| ()).unwrap();
    let bad = verdict.first_bad.unwrap();
    assert_eq!(bad.position, at);
    assert!(bad.problem.contains("lost its body"), "{bad}");
}
