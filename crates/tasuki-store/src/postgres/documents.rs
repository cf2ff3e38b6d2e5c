// SPDX-License-Identifier: Apache-2.0
//! Documents as rows. They are written in the transaction of their events, under the lock of the
//! log's end. The text of a revision lies with it, because the history that it came with may be
//! dropped one day while the document lives on.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tasuki_core::document::ranking::{CANDIDATES_MAX, Candidate, Candidates, Question};
use tasuki_core::document::{Document, Revision, StoredBody};
use tasuki_core::event::Sealed;
use tasuki_core::search::Statistics;
use tasuki_core::{Body, DocumentId, Event, Position};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::Node;
use super::db::{Value, query};
use super::error::Fault;
use super::rows::{self, sql_position};
use crate::codec;
use crate::documents::{Change, DocumentFilter, Index, KeptDocument, Reindex};

/// Writes what follows from an event, if it is about a document or erases a body.
pub(super) async fn project(
    db: &Client,
    sealed: &Sealed,
    body: Option<&Body>,
) -> Result<(), Fault> {
    if let Event::Erased(erased) = &sealed.record.event {
        let at = sql_position(erased.position);
        let sql = "UPDATE event SET body = NULL WHERE position = $1";
        query(db, sql, &[(&at, Type::INT8)]).await?;
    }
    let Some(id) = sealed.record.event.facts().document else { return Ok(()) };
    let known = read(db, std::slice::from_ref(id)).await?.pop();
    let Some(change) = Change::of(sealed, body, known) else { return Ok(()) };
    // All of it is sent at once and carried out in this order.
    futures::try_join!(
        put_revision(db, id, change.revision.as_ref(), body),
        erase_revision(db, id, change.erased),
        put_document(db, &change.document),
        reindex(db, id, &change.index),
    )?;
    Ok(())
}

async fn put_document(db: &Client, document: &Document) -> Result<(), Fault> {
    let sql = "
        INSERT INTO document VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULL, $9, $10)
        ON CONFLICT (id) DO UPDATE SET scope_kind = $4, scope_name = $5, pinned = $6,
            superseded = $7, deleted = $8, at = $9, data = $10";
    let (scope_kind, scope_name) = document.scope.parts();
    let data = codec::text(document);
    let values: [Value<'_>; 10] = [
        (&document.id.as_str(), Type::TEXT),
        (&document.id.tenant(), Type::TEXT),
        (&document.kind.as_str(), Type::TEXT),
        (&scope_kind, Type::TEXT),
        (&scope_name, Type::TEXT),
        (&document.pinned, Type::BOOL),
        (&document.superseded_by.is_some(), Type::BOOL),
        (&document.deleted.is_some(), Type::BOOL),
        (&sql_position(document.last_pos), Type::INT8),
        (&data, Type::TEXT),
    ];
    query(db, sql, &values).await.map(drop)
}

async fn put_revision(
    db: &Client,
    id: &DocumentId,
    revision: Option<&Revision>,
    body: Option<&Body>,
) -> Result<(), Fault> {
    let Some(revision) = revision else { return Ok(()) };
    let sql = "INSERT INTO document_revision VALUES ($1, $2, $3, false, $4, $5)";
    let data = codec::text(revision);
    let values: [Value<'_>; 5] = [
        (&id.as_str(), Type::TEXT),
        (&i64::from(revision.number), Type::INT8),
        (&sql_position(revision.body_pos), Type::INT8),
        (&data, Type::TEXT),
        (&body.map(Body::text), Type::TEXT),
    ];
    query(db, sql, &values).await.map(drop)
}

async fn erase_revision(db: &Client, id: &DocumentId, revision: Option<u32>) -> Result<(), Fault> {
    let Some(revision) = revision else { return Ok(()) };
    let sql = "
        UPDATE document_revision SET erased = true, body = NULL
        WHERE document = $1 AND revision = $2";
    let values: [Value<'_>; 2] = [(&id.as_str(), Type::TEXT), (&i64::from(revision), Type::INT8)];
    query(db, sql, &values).await.map(drop)
}

async fn reindex(db: &Client, id: &DocumentId, index: &Reindex) -> Result<(), Fault> {
    match index {
        Reindex::Same => Ok(()),
        Reindex::Remove => remove_index(db, id).await,
        Reindex::Replace(index) => {
            futures::try_join!(remove_index(db, id), put_index(db, id, index))?;
            Ok(())
        }
    }
}

async fn remove_index(db: &Client, id: &DocumentId) -> Result<(), Fault> {
    let sql = "
        UPDATE document_total t SET documents = t.documents - 1, length = t.length - d.length
        FROM document d WHERE d.id = $1 AND d.length IS NOT NULL AND t.tenant = d.tenant";
    let value: [Value<'_>; 1] = [(&id.as_str(), Type::TEXT)];
    futures::try_join!(
        query(db, sql, &value),
        query(db, "UPDATE document SET length = NULL WHERE id = $1", &value),
        query(db, "DELETE FROM posting WHERE document = $1", &value),
        query(db, "DELETE FROM document_tag WHERE document = $1", &value),
    )?;
    Ok(())
}

async fn put_index(db: &Client, id: &DocumentId, index: &Index) -> Result<(), Fault> {
    let length = i64::try_from(index.length).unwrap_or(i64::MAX);
    let (name, tenant) = (id.as_str(), id.tenant());
    let terms: Vec<_> = index.terms.iter().map(|(term, _)| term.as_str()).collect();
    let counts: Vec<_> = index.terms.iter().map(|(_, count)| i64::from(*count)).collect();
    let tags: Vec<_> = index.tags.iter().map(String::as_str).collect();
    let own: [Value<'_>; 2] = [(&name, Type::TEXT), (&length, Type::INT8)];
    let total: [Value<'_>; 2] = [(&tenant, Type::TEXT), (&length, Type::INT8)];
    let postings: [Value<'_>; 4] = [
        (&tenant, Type::TEXT),
        (&name, Type::TEXT),
        (&terms, Type::TEXT_ARRAY),
        (&counts, Type::INT8_ARRAY),
    ];
    let tagged: [Value<'_>; 3] =
        [(&tenant, Type::TEXT), (&name, Type::TEXT), (&tags, Type::TEXT_ARRAY)];
    futures::try_join!(
        query(db, "UPDATE document SET length = $2 WHERE id = $1", &own),
        query(
            db,
            "INSERT INTO document_total VALUES ($1, 1, $2) ON CONFLICT (tenant) DO UPDATE \
             SET documents = document_total.documents + 1, length = document_total.length + $2",
            &total
        ),
        query(
            db,
            "INSERT INTO posting SELECT $1, g.term, $2, g.count \
             FROM unnest($3::text[], $4::int8[]) AS g (term, count)",
            &postings
        ),
        query(
            db,
            "INSERT INTO document_tag SELECT $1, tag, $2 FROM unnest($3::text[]) AS g (tag)",
            &tagged
        ),
    )?;
    Ok(())
}

fn parsed<T: serde::de::DeserializeOwned>(row: &Row, column: usize) -> Result<T, Fault> {
    codec::read(row.try_get(column)?)
        .map_err(|error| Fault::Damaged(format!("a document is kept as {error}")))
}

/// Documents by their ids, in no particular order.
pub(super) async fn read(db: &Client, ids: &[DocumentId]) -> Result<Vec<Document>, Fault> {
    let names: Vec<_> = ids.iter().map(DocumentId::as_str).collect();
    let sql = "SELECT data FROM document WHERE id = ANY ($1)";
    let found = query(db, sql, &[(&names, Type::TEXT_ARRAY)]).await?;
    found.iter().map(|row| parsed(row, 0)).collect()
}

/// What is left of the bodies that came with events. The history of a revision may be gone while
/// its text is there.
pub(super) async fn stored_bodies(
    db: &Client,
    at: &[Position],
) -> Result<Vec<(Position, StoredBody)>, Fault> {
    let positions: Vec<_> = at.iter().copied().map(sql_position).collect();
    let sql = "SELECT position, previous, hash, record, octet_length(body)::int8 FROM event \
               WHERE position = ANY ($1)";
    let mut bodies = Vec::new();
    let bytes = |row: &Row, column| -> Result<Option<u64>, Fault> {
        let bytes: Option<i64> = row.try_get(column)?;
        Ok(bytes.map(|bytes| u64::try_from(bytes).unwrap_or(0)))
    };
    for row in query(db, sql, &[(&positions, Type::INT8_ARRAY)]).await? {
        let sealed = rows::entry_of(&row)?.sealed;
        let body = StoredBody::of(&sealed, bytes(&row, 4)?);
        bodies.extend(body.map(|body| (sealed.position, body)));
    }
    let sql = "SELECT document, data, octet_length(body)::int8 FROM document_revision \
               WHERE at = ANY ($1)";
    for row in query(db, sql, &[(&positions, Type::INT8_ARRAY)]).await? {
        let revision: Revision = parsed(&row, 1)?;
        if bodies.iter().any(|(at, _)| *at == revision.body_pos) {
            continue;
        }
        let id: DocumentId = row
            .try_get::<_, &str>(0)?
            .parse()
            .map_err(|error| Fault::Damaged(format!("a document is named {error}")))?;
        let bytes = bytes(&row, 2)?;
        let body = StoredBody {
            hash: revision.content,
            bytes: bytes.unwrap_or(0),
            tenant: revision.written_by.tenant().parse().unwrap_or_default(),
            revision: Some((id, revision.number)),
            handoff: None,
            erased: bytes.is_none(),
        };
        bodies.push((revision.body_pos, body));
    }
    Ok(bodies)
}

fn kept(row: &Row) -> Result<KeptDocument, Fault> {
    let mut revision: Revision = parsed(row, 1)?;
    revision.erased = row.try_get(2)?;
    let body: Option<String> = row.try_get(3)?;
    let document = Arc::new(parsed(row, 0)?);
    let whole = |text| super::reading::whole(text, Some(revision.content), revision.body_pos);
    let body = body.map(whole).transpose()?;
    Ok(KeptDocument { document, revision, body })
}

/// Conditions on `d`, with their values, which are always bound.
struct Conditions {
    sql: String,
    values: Vec<(Box<dyn ToSql + Sync + Send>, Type)>,
}

impl Conditions {
    fn of(filter: &DocumentFilter) -> Self {
        let mut all = Self { sql: "true".into(), values: Vec::new() };
        all.and("d.tenant = $", filter.tenant.as_str().to_owned(), Type::TEXT);
        if let Some(kind) = filter.kind {
            all.and("d.kind = $", kind.as_str(), Type::TEXT);
        }
        if let Some(scope) = &filter.scope {
            let (kind, name) = scope.parts();
            all.and("d.scope_kind = $", kind, Type::TEXT);
            all.and("d.scope_name = $", name, Type::TEXT);
        }
        if let Some(tag) = &filter.tag {
            let tagged = "EXISTS (SELECT 1 FROM document_tag t WHERE t.tenant = d.tenant \
                          AND t.document = d.id AND t.tag = $)";
            all.and(tagged, tag.clone(), Type::TEXT);
        }
        if let Some(pinned) = filter.pinned {
            all.and("d.pinned = $", pinned, Type::BOOL);
        }
        if !filter.superseded {
            all.and("d.superseded = $", false, Type::BOOL);
        }
        if !filter.deleted {
            all.and("d.deleted = $", false, Type::BOOL);
        }
        if let Some(before) = filter.before {
            all.and("d.at < $", sql_position(before), Type::INT8);
        }
        all
    }

    fn and(&mut self, condition: &str, value: impl ToSql + Sync + Send + 'static, kind: Type) {
        let number = self.bind(value, kind);
        self.sql.push_str(" AND ");
        self.sql.push_str(&condition.replace('$', &number));
    }

    fn bind(&mut self, value: impl ToSql + Sync + Send + 'static, kind: Type) -> String {
        self.values.push((Box::new(value), kind));
        format!("${}", self.values.len())
    }

    fn values(&self) -> Vec<Value<'_>> {
        let all = self.values.iter();
        all.map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect()
    }
}

impl Node {
    pub(super) async fn documents(
        &self,
        wanted: &[(DocumentId, Option<u32>)],
    ) -> Result<Vec<Option<KeptDocument>>, Fault> {
        let names: Vec<_> = wanted.iter().map(|(id, _)| id.as_str()).collect();
        let revisions: Vec<_> =
            wanted.iter().map(|(_, revision)| revision.map(i64::from)).collect();
        let sql = "
            SELECT d.data, r.data, r.erased, r.body, w.place
            FROM unnest($1::text[], $2::int8[]) WITH ORDINALITY AS w (id, revision, place)
            JOIN document d ON d.id = w.id
            JOIN document_revision r ON r.document = d.id AND r.revision = coalesce(w.revision,
                (SELECT max(revision) FROM document_revision WHERE document = d.id))";
        let values: [Value<'_>; 2] = [(&names, Type::TEXT_ARRAY), (&revisions, Type::INT8_ARRAY)];
        let mut all: Vec<Option<KeptDocument>> = wanted.iter().map(|_| None).collect();
        for row in self.ask(sql, &values).await? {
            let place = usize::try_from(row.try_get::<_, i64>(4)?).unwrap_or(0);
            if let Some(slot) = place.checked_sub(1).and_then(|place| all.get_mut(place)) {
                *slot = Some(kept(&row)?);
            }
        }
        Ok(all)
    }

    pub(super) async fn list_documents(
        &self,
        filter: &DocumentFilter,
    ) -> Result<Vec<KeptDocument>, Fault> {
        let mut all = Conditions::of(filter);
        let max = all.bind(i64::try_from(filter.max).unwrap_or(i64::MAX), Type::INT8);
        let bytes = filter.bytes_max.and_then(|bytes| i64::try_from(bytes).ok());
        let bytes = all.bind(bytes.unwrap_or(i64::MAX), Type::INT8);
        // The length of a body is known without reading it.
        let sql = format!(
            "SELECT k.document, k.revision, k.erased, k.body FROM ( \
                 SELECT f.*, sum(octet_length(f.body)) OVER (ORDER BY f.at DESC) AS bytes FROM ( \
                     SELECT d.data AS document, r.data AS revision, r.erased, r.body, d.at \
                     FROM document d JOIN document_revision r ON r.document = d.id \
                     WHERE {} AND r.revision = \
                         (SELECT max(revision) FROM document_revision WHERE document = d.id) \
                     ORDER BY d.at DESC LIMIT {max}) f) k \
             WHERE coalesce(k.bytes, 0) <= {bytes} ORDER BY k.at DESC",
            all.sql
        );
        self.ask(&sql, &all.values()).await?.iter().map(kept).collect()
    }

    pub(super) async fn count_documents(&self, filter: &DocumentFilter) -> Result<usize, Fault> {
        let mut all = Conditions::of(filter);
        let max = all.bind(i64::try_from(filter.max).unwrap_or(i64::MAX), Type::INT8);
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM document d WHERE {} LIMIT {max}) f",
            all.sql
        );
        let found = self.ask(&sql, &all.values()).await?.pop();
        let found = found.map_or(Ok(0), |row| row.try_get::<_, i64>(0))?;
        Ok(usize::try_from(found).unwrap_or(0))
    }

    pub(super) async fn search_documents(
        &self,
        question: &Question,
        filter: &DocumentFilter,
    ) -> Result<Candidates, Fault> {
        let count = |row: &Row, column| -> Result<u64, Fault> {
            Ok(u64::try_from(row.try_get::<_, i64>(column)?).unwrap_or(0))
        };
        let tenant = filter.tenant.as_str();
        let terms: Vec<_> = question.terms.iter().map(|(term, _)| term.as_str()).collect();
        let sql = "SELECT documents, length FROM document_total WHERE tenant = $1";
        let total = self.ask(sql, &[(&tenant, Type::TEXT)]).await?.pop();
        let mut statistics = Statistics::default();
        if let Some(row) = total {
            (statistics.documents, statistics.length_total) = (count(&row, 0)?, count(&row, 1)?);
        }
        let sql = "SELECT term, count(*) FROM posting WHERE tenant = $1 AND term = ANY ($2) \
                   GROUP BY term";
        let values: [Value<'_>; 2] = [(&tenant, Type::TEXT), (&terms, Type::TEXT_ARRAY)];
        let mut frequency = BTreeMap::new();
        for row in self.ask(sql, &values).await? {
            frequency.insert(row.try_get(0)?, count(&row, 1)?);
        }
        statistics.frequency = frequency;
        let mut all = Conditions::of(filter);
        let words: Vec<String> = terms.iter().map(|term| (*term).to_owned()).collect();
        let words = all.bind(words, Type::TEXT_ARRAY);
        let sql = format!(
            "SELECT w.term, c.data, c.length, c.count FROM unnest({words}) AS w (term), LATERAL ( \
                 SELECT d.data, d.length, p.count FROM posting p \
                 JOIN document d ON d.id = p.document \
                 WHERE p.tenant = $1 AND p.term = w.term AND {} \
                 ORDER BY p.count DESC, p.document LIMIT {CANDIDATES_MAX}) c",
            all.sql
        );
        let mut found: HashMap<DocumentId, Candidate> = HashMap::new();
        for row in self.ask(&sql, &all.values()).await? {
            let document: Document = parsed(&row, 1)?;
            let term: String = row.try_get(0)?;
            let times = u32::try_from(row.try_get::<_, i64>(3)?).unwrap_or(u32::MAX);
            let length = count(&row, 2)?;
            let candidate = found.entry(document.id.clone()).or_insert_with(|| Candidate {
                document: Arc::new(document),
                length,
                terms: Vec::new(),
            });
            candidate.terms.push((term, times));
        }
        let mut found: Vec<_> = found.into_values().collect();
        found.iter_mut().for_each(|candidate| candidate.terms.sort());
        Ok(Candidates { found, statistics })
    }
}
