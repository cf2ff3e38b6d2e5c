// SPDX-License-Identifier: Apache-2.0
//! Documents in RAM, for the volatile store: every question is answered by looking at everything,
//! which is what the queries of the other stores are compared with.

use std::collections::BTreeMap;
use std::sync::Arc;

use tasuki_core::document::ranking::{Candidate, Candidates, Question};
use tasuki_core::document::{Document, Revision};
use tasuki_core::event::Sealed;
use tasuki_core::search::Statistics;
use tasuki_core::{Body, DocumentId};

use crate::documents::{Change, DocumentFilter, Index, KeptDocument};

#[derive(Default)]
pub(crate) struct Shelf {
    books: BTreeMap<DocumentId, Book>,
}

struct Book {
    document: Arc<Document>,
    revisions: Vec<(Revision, Option<Body>)>,
}

impl Book {
    fn kept(&self, revision: Option<u32>) -> Option<KeptDocument> {
        let number = revision.unwrap_or(self.document.revision);
        let (revision, body) = self.revisions.iter().find(|(known, _)| known.number == number)?;
        let document = self.document.clone();
        Some(KeptDocument { document, revision: revision.clone(), body: body.clone() })
    }

    fn index(&self) -> Index {
        let last = self.revisions.last().and_then(|(_, body)| body.as_ref());
        Index::of(last.filter(|_| self.document.is_searched()))
    }
}

impl Shelf {
    pub(crate) fn document(&self, id: &DocumentId) -> Option<Document> {
        self.books.get(id).map(|book| (*book.document).clone())
    }

    pub(crate) fn apply(&mut self, sealed: &Sealed, body: Option<&Body>) {
        let Some(id) = sealed.record.event.facts().document else { return };
        let Some(change) = Change::of(sealed, body, self.document(id)) else { return };
        let document = Arc::new(change.document);
        let book = self.books.entry(id.clone());
        let book =
            book.or_insert_with(|| Book { document: document.clone(), revisions: Vec::new() });
        book.document = document;
        book.revisions.extend(change.revision.map(|revision| (revision, body.cloned())));
        for (revision, body) in &mut book.revisions {
            if Some(revision.number) == change.erased {
                revision.erased = true;
                *body = None;
            }
        }
    }

    pub(crate) fn get(&self, id: &DocumentId, revision: Option<u32>) -> Option<KeptDocument> {
        self.books.get(id)?.kept(revision)
    }

    pub(crate) fn list(&self, filter: &DocumentFilter) -> Vec<KeptDocument> {
        let let_through = |book: &&Book| filter.lets_through(&book.document, &book.index().tags);
        let mut found: Vec<_> =
            self.books.values().filter(let_through).filter_map(|book| book.kept(None)).collect();
        found.sort_by_key(|kept| std::cmp::Reverse(kept.document.last_pos));
        found.truncate(filter.max);
        let mut left = filter.bytes_max.unwrap_or(usize::MAX);
        let within = found.into_iter().map_while(|kept| {
            left = left.checked_sub(kept.body.as_ref().map_or(0, |body| body.text().len()))?;
            Some(kept)
        });
        within.collect()
    }

    pub(crate) fn search(&self, question: &Question, filter: &DocumentFilter) -> Candidates {
        let mut all = Candidates { found: Vec::new(), statistics: Statistics::default() };
        for book in self.books.values() {
            let searched = book.document.is_searched();
            if !searched || book.document.id.tenant() != filter.tenant.as_str() {
                continue;
            }
            let index = book.index();
            all.statistics.add(&index.terms);
            let asked = |term: &str| question.terms.iter().any(|(asked, _)| asked == term);
            let terms: Vec<_> =
                index.terms.iter().filter(|(term, _)| asked(term)).cloned().collect();
            if !terms.is_empty() && filter.lets_through(&book.document, &index.tags) {
                let document = book.document.clone();
                all.found.push(Candidate { document, length: index.length, terms });
            }
        }
        all.statistics.frequency.retain(|term, _| question.terms.iter().any(|(t, _)| t == term));
        all
    }
}
