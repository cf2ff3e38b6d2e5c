// SPDX-License-Identifier: Apache-2.0
//! Documents as rows. They are written in the transaction of their events, so they are never
//! behind; the text of a revision lies with its event and nowhere else, so erasing it there is
//! enough.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension, Row, params};
use tasuki_core::document::ranking::{CANDIDATES_MAX, Candidate, Candidates, Question};
use tasuki_core::document::{Document, Revision, StoredBody};
use tasuki_core::event::Sealed;
use tasuki_core::search::Statistics;
use tasuki_core::{Body, DocumentId, Event, Position};

use super::rows::{self, bad, sql_position};
use crate::codec;
use crate::documents::{Change, DocumentFilter, Index, KeptDocument, Reindex};

type Result<T> = rusqlite::Result<T>;

/// Writes what follows from an event, if it is about a document or erases a body.
pub(super) fn project(db: &Connection, sealed: &Sealed, body: Option<&Body>) -> Result<()> {
    let Event::Erased(erased) = &sealed.record.event else {
        return put(db, sealed, body);
    };
    // What is erased is overwritten in the file, not only let go of.
    db.pragma_update(None, "secure_delete", "ON")?;
    let sql = "UPDATE event SET body = NULL WHERE position = ?";
    let done = db
        .prepare_cached(sql)
        .and_then(|mut update| update.execute([sql_position(erased.position)]))
        .and_then(|_| put(db, sealed, body));
    db.pragma_update(None, "secure_delete", "OFF")?;
    done
}

fn put(db: &Connection, sealed: &Sealed, body: Option<&Body>) -> Result<()> {
    let Some(id) = sealed.record.event.facts().document else { return Ok(()) };
    let Some(change) = Change::of(sealed, body, document(db, id)?) else { return Ok(()) };
    if let Some(revision) = &change.revision {
        put_revision(db, id, revision)?;
    }
    if let Some(revision) = change.erased {
        let sql = "UPDATE document_revision SET erased = 1 WHERE document = ? AND revision = ?";
        db.prepare_cached(sql)?.execute(params![id.as_str(), revision])?;
    }
    put_document(db, &change.document)?;
    match change.index {
        Reindex::Same => Ok(()),
        Reindex::Remove => remove_index(db, id),
        Reindex::Replace(index) => {
            remove_index(db, id)?;
            put_index(db, id, &index)
        }
    }
}

/// Makes all rows anew from the log.
pub(super) fn rebuild(db: &Connection) -> Result<()> {
    let all = db.unchecked_transaction()?;
    all.execute_batch(
        "DELETE FROM document; DELETE FROM document_revision; DELETE FROM document_tag; \
         DELETE FROM posting; DELETE FROM document_total;",
    )?;
    let mut find = all.prepare(
        "SELECT position, previous, hash, record, body FROM event \
         WHERE record ->> '$.kind' IN ('document_written', 'document_marked', \
             'document_superseded', 'document_deleted', 'erased') ORDER BY position",
    )?;
    let mut found = find.query([])?;
    while let Some(row) = found.next()? {
        let body = row.get::<_, Option<String>>(4)?.and_then(Body::stored);
        project(&all, &rows::entry_of(row)?.sealed, body.as_ref())?;
    }
    drop(found);
    drop(find);
    all.commit()
}

fn put_document(db: &Connection, document: &Document) -> Result<()> {
    let sql = "INSERT INTO document VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, NULL, ?9, ?10) \
               ON CONFLICT (id) DO UPDATE SET scope_kind = ?4, scope_name = ?5, pinned = ?6, \
               superseded = ?7, deleted = ?8, at = ?9, data = ?10";
    let (scope_kind, scope_name) = document.scope.parts();
    let data = codec::text(document);
    db.prepare_cached(sql)?.execute(params![
        document.id.as_str(),
        document.id.tenant(),
        document.kind.as_str(),
        scope_kind,
        scope_name,
        document.pinned,
        document.superseded_by.is_some(),
        document.deleted.is_some(),
        sql_position(document.last_pos),
        data,
    ])?;
    Ok(())
}

fn put_revision(db: &Connection, id: &DocumentId, revision: &Revision) -> Result<()> {
    let data = codec::text(revision);
    db.prepare_cached("INSERT OR REPLACE INTO document_revision VALUES (?, ?, ?, 0, ?)")?
        .execute(params![id.as_str(), revision.number, sql_position(revision.body_pos), data])?;
    Ok(())
}

fn put_index(db: &Connection, id: &DocumentId, index: &Index) -> Result<()> {
    let length = i64::try_from(index.length).unwrap_or(i64::MAX);
    let sql = "UPDATE document SET length = ? WHERE id = ?";
    db.prepare_cached(sql)?.execute(params![length, id.as_str()])?;
    let sql = "INSERT INTO document_total VALUES (?1, 1, ?2) ON CONFLICT (tenant) \
               DO UPDATE SET documents = documents + 1, length = length + ?2";
    db.prepare_cached(sql)?.execute(params![id.tenant(), length])?;
    let mut put = db.prepare_cached("INSERT INTO posting VALUES (?, ?, ?, ?)")?;
    for (term, count) in &index.terms {
        put.execute(params![id.tenant(), term, id.as_str(), count])?;
    }
    let mut put = db.prepare_cached("INSERT INTO document_tag VALUES (?, ?, ?)")?;
    for tag in &index.tags {
        put.execute(params![id.tenant(), tag, id.as_str()])?;
    }
    Ok(())
}

fn remove_index(db: &Connection, id: &DocumentId) -> Result<()> {
    let sql = "UPDATE document_total AS t SET documents = t.documents - 1, \
               length = t.length - d.length FROM document d \
               WHERE d.id = ? AND d.length IS NOT NULL AND t.tenant = d.tenant";
    db.prepare_cached(sql)?.execute([id.as_str()])?;
    for sql in [
        "UPDATE document SET length = NULL WHERE id = ?",
        "DELETE FROM posting WHERE document = ?",
        "DELETE FROM document_tag WHERE document = ?",
    ] {
        db.prepare_cached(sql)?.execute([id.as_str()])?;
    }
    Ok(())
}

fn read<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T> {
    codec::read(row.get_ref(column)?.as_str()?).map_err(bad(column))
}

pub(super) fn document(db: &Connection, id: &DocumentId) -> Result<Option<Document>> {
    let mut find = db.prepare_cached("SELECT data FROM document WHERE id = ?")?;
    find.query_row([id.as_str()], |row| read(row, 0)).optional()
}

pub(super) fn stored_body(db: &Connection, at: Position) -> Result<Option<StoredBody>> {
    let sql = "SELECT position, previous, hash, record, length(CAST(body AS BLOB)) FROM event \
               WHERE position = ?";
    let stored = |row: &Row<'_>| {
        let bytes: Option<i64> = row.get(4)?;
        let bytes = bytes.map(|bytes| u64::try_from(bytes).unwrap_or(0));
        Ok(StoredBody::of(&rows::entry_of(row)?.sealed, bytes))
    };
    Ok(db.prepare_cached(sql)?.query_row([sql_position(at)], stored).optional()?.flatten())
}

const KEPT: &str = "SELECT d.data, r.data, r.erased, e.body FROM document d \
    JOIN document_revision r ON r.document = d.id LEFT JOIN event e ON e.position = r.at";

fn kept(row: &Row<'_>) -> Result<KeptDocument> {
    let mut revision: Revision = read(row, 1)?;
    revision.erased = row.get(2)?;
    let body = match row.get::<_, Option<String>>(3)? {
        None => None,
        Some(text) => {
            Some(rows::whole(Body::stored(text), Some(revision.content), revision.body_pos)?)
        }
    };
    Ok(KeptDocument { document: Arc::new(read(row, 0)?), revision, body })
}

pub(super) fn get(
    db: &Connection,
    id: &DocumentId,
    revision: Option<u32>,
) -> Result<Option<KeptDocument>> {
    let sql = format!(
        "{KEPT} WHERE d.id = ?1 AND (r.revision = ?2 OR (?2 IS NULL AND r.revision = \
             (SELECT max(revision) FROM document_revision WHERE document = ?1)))"
    );
    db.prepare_cached(&sql)?.query_row(params![id.as_str(), revision], kept).optional()
}

/// Conditions on `d`, with their values.
fn conditions(filter: &DocumentFilter) -> (String, Vec<Box<dyn ToSql>>) {
    let mut sql = "d.tenant = ?".to_owned();
    let mut values: Vec<Box<dyn ToSql>> = vec![Box::new(filter.tenant.as_str().to_owned())];
    let mut and = |condition: &str, value: Option<Box<dyn ToSql>>| {
        if let Some(value) = value {
            sql.push_str(" AND ");
            sql.push_str(condition);
            values.push(value);
        }
    };
    and("d.kind = ?", filter.kind.map(|kind| Box::new(kind.as_str()) as Box<dyn ToSql>));
    if let Some(scope) = &filter.scope {
        let (kind, name) = scope.parts();
        and("d.scope_kind = ?", Some(Box::new(kind)));
        and("d.scope_name = ?", Some(Box::new(name)));
    }
    let tagged = "EXISTS (SELECT 1 FROM document_tag t WHERE t.tenant = d.tenant \
                  AND t.document = d.id AND t.tag = ?)";
    and(tagged, filter.tag.clone().map(|tag| Box::new(tag) as Box<dyn ToSql>));
    and("d.pinned = ?", filter.pinned.map(|pinned| Box::new(pinned) as Box<dyn ToSql>));
    and("d.superseded = ?", (!filter.superseded).then(|| Box::new(false) as Box<dyn ToSql>));
    and("d.deleted = ?", (!filter.deleted).then(|| Box::new(false) as Box<dyn ToSql>));
    let before = filter.before.map(|at| Box::new(sql_position(at)) as Box<dyn ToSql>);
    and("d.at < ?", before);
    (sql, values)
}

pub(super) fn list(db: &Connection, filter: &DocumentFilter) -> Result<Vec<KeptDocument>> {
    let (conditions, mut values) = conditions(filter);
    values.push(Box::new(i64::try_from(filter.max).unwrap_or(i64::MAX)));
    let sql = format!(
        "{KEPT} WHERE {conditions} AND r.revision = \
             (SELECT max(revision) FROM document_revision WHERE document = d.id) \
         ORDER BY d.at DESC LIMIT ?"
    );
    let values: Vec<&dyn ToSql> = values.iter().map(|value| &**value).collect();
    let mut left = filter.bytes_max.unwrap_or(usize::MAX);
    let mut found = Vec::new();
    for kept in db.prepare_cached(&sql)?.query_map(&values[..], kept)? {
        let kept = kept?;
        let bytes = kept.body.as_ref().map_or(0, |body| body.text().len());
        // Rows are read as they are asked for: what follows is not even looked at.
        let Some(rest) = left.checked_sub(bytes) else { break };
        left = rest;
        found.push(kept);
    }
    Ok(found)
}

pub(super) fn count(db: &Connection, filter: &DocumentFilter) -> Result<usize> {
    let (conditions, mut values) = conditions(filter);
    values.push(Box::new(i64::try_from(filter.max).unwrap_or(i64::MAX)));
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM document d WHERE {conditions} LIMIT ?)");
    let values: Vec<&dyn ToSql> = values.iter().map(|value| &**value).collect();
    let found: i64 = db.prepare_cached(&sql)?.query_row(&values[..], |row| row.get(0))?;
    Ok(usize::try_from(found).unwrap_or(0))
}

pub(super) fn search(
    db: &Connection,
    question: &Question,
    filter: &DocumentFilter,
) -> Result<Candidates> {
    let tenant = filter.tenant.as_str();
    let sql = "SELECT documents, length FROM document_total WHERE tenant = ?";
    let count = |row: &Row<'_>, column| -> Result<u64> {
        Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
    };
    let total =
        db.prepare_cached(sql)?.query_row([tenant], |row| Ok((count(row, 0)?, count(row, 1)?)));
    let (documents, length_total) = total.optional()?.unwrap_or_default();
    let mut statistics = Statistics { documents, length_total, frequency: BTreeMap::new() };
    let mut found: HashMap<DocumentId, Candidate> = HashMap::new();
    let (conditions, values) = conditions(filter);
    let sql = format!(
        "SELECT d.data, d.length, p.count FROM posting p JOIN document d ON d.id = p.document \
         WHERE p.tenant = ? AND p.term = ? AND {conditions} \
         ORDER BY p.count DESC, p.document LIMIT {CANDIDATES_MAX}"
    );
    for (term, _) in &question.terms {
        let mut all: Vec<&dyn ToSql> = vec![&tenant, term];
        all.extend(values.iter().map(|value| &**value));
        let mut find = db.prepare_cached(&sql)?;
        let mut rows = find.query(&all[..])?;
        while let Some(row) = rows.next()? {
            let document: Document = read(row, 0)?;
            let times = u32::try_from(row.get::<_, i64>(2)?).unwrap_or(u32::MAX);
            let length = count(row, 1)?;
            let id = document.id.clone();
            let candidate = found.entry(id).or_insert_with(|| Candidate {
                document: Arc::new(document),
                length,
                terms: Vec::new(),
            });
            candidate.terms.push((term.clone(), times));
        }
        let sql = "SELECT count(*) FROM posting WHERE tenant = ? AND term = ?";
        let with_term = db.prepare_cached(sql)?.query_row([tenant, term], |row| count(row, 0))?;
        if with_term > 0 {
            statistics.frequency.insert(term.clone(), with_term);
        }
    }
    Ok(Candidates { found: found.into_values().collect(), statistics })
}
