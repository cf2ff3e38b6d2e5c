// SPDX-License-Identifier: Apache-2.0
//! Questions about meetings, in the form of `QMSum`'s data: the turns of a meeting are memories, the
//! question is the ask, and what matters is known by spans of turns. How much of it is in the text
//! that a receiver reads within the budget?

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;
use comfy_table::{Table, presets};
use serde::{Deserialize, Serialize};
use tasuki_core::Timestamp;
use tasuki_core::assembly::{
    Brief, Candidate, Item, Prepared, Request, Rung, Strategy, assemble, cut,
};
use tasuki_core::search::{Statistics, bm25, length, terms};

use super::relay::TOKENIZER;

/// The file that such a directory has.
pub(super) const FILE: &str = "meetings.jsonl";
/// What the user wants of every meeting; only the question differs.
const INTENT: &str = "Answer the question about the meeting.";

#[derive(Deserialize)]
struct Meeting {
    meeting_transcripts: Vec<Turn>,
    specific_query_list: Vec<Question>,
}

#[derive(Deserialize)]
struct Turn {
    speaker: String,
    content: String,
}

#[derive(Deserialize)]
struct Question {
    query: String,
    relevant_text_span: Vec<(String, String)>,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    data: String,
    meetings: usize,
    questions: usize,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    budget: u64,
    method: &'static str,
    /// Tokens of the turns that matter and are in the text, by all tokens of them, at most the
    /// budget: the mean over the questions.
    found: f64,
    overruns: u64,
    tokens_max: u64,
}

/// One text that answers a question, and what of each turn is in it, in tokens.
struct Answer {
    tokens: u64,
    kept: Vec<u64>,
}

pub(super) fn measure(directory: &Path, budgets: &[u64]) -> anyhow::Result<Report> {
    let path = directory.join(FILE);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let meetings: Vec<Meeting> = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .with_context(|| format!("cannot read {}", path.display()))?;
    let rooms: Vec<Room> = meetings.into_iter().map(Room::new).collect::<Result<_, _>>()?;
    let mut rows = Vec::new();
    for &budget in budgets {
        for (method, answer) in METHODS {
            rows.push(row(&rooms, budget, method, *answer));
        }
    }
    let questions = rooms.iter().map(|room| room.questions.len()).sum();
    Ok(Report { data: "questions about meetings".into(), meetings: rooms.len(), questions, rows })
}

type Method = fn(&Room, &str, u64) -> Answer;

const METHODS: &[(&str, Method)] = &[
    ("random turns", |room, question, budget| {
        let mut order: Vec<usize> = (0..room.texts.len()).collect();
        // As good as random, and the same every time.
        order.sort_by_key(|at| {
            let mixed = (*at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed ^ question.len() as u64).wrapping_mul(0xff51_afd7_ed55_8ccd)
        });
        room.fill(&order, budget)
    }),
    ("newest turns", |room, _, budget| {
        let order: Vec<usize> = (0..room.texts.len()).rev().collect();
        room.fill(&order, budget)
    }),
    ("BM25 over turns", |room, question, budget| {
        let question = terms(question);
        let score = |at: usize| {
            let terms = &room.terms[at];
            bm25(&question, terms, length(terms), &room.statistics)
        };
        let mut order: Vec<usize> = (0..room.texts.len()).collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(score(at)), std::cmp::Reverse(at)));
        room.fill(&order, budget)
    }),
    ("tasuki: summary_refs", |room, question, budget| {
        room.assemble(question, budget, Strategy::SummaryRefs)
    }),
    ("tasuki: priority", |room, question, budget| {
        room.assemble(question, budget, Strategy::Priority)
    }),
];

fn row(rooms: &[Room], budget: u64, method: &'static str, answer: Method) -> Row {
    let (mut sum, mut number, mut overruns, mut tokens_max) = (0, 0, 0, 0);
    for room in rooms {
        for (question, gold) in &room.questions {
            let all: u64 = gold.iter().map(|&at| room.tokens[at]).sum();
            if all == 0 {
                continue;
            }
            let answer = answer(room, question, budget);
            let kept: u64 = gold.iter().map(|&at| answer.kept[at]).sum();
            sum += kept.min(budget) * 1_000_000 / all.min(budget);
            number += 1;
            overruns += u64::from(answer.tokens > budget);
            tokens_max = tokens_max.max(answer.tokens);
        }
    }
    let found = (sum / u64::max(number, 1)) as f64 / 1_000_000.0;
    let found = (found * 1000.0).round() / 1000.0;
    Row { budget, method, found, overruns, tokens_max }
}

/// A meeting, ready to be asked about.
struct Room {
    texts: Vec<String>,
    tokens: Vec<u64>,
    terms: Vec<Vec<(String, u32)>>,
    statistics: Statistics,
    items: Vec<Candidate>,
    places: HashMap<String, usize>,
    /// With the places of the turns that matter.
    questions: Vec<(String, Vec<usize>)>,
}

impl Room {
    fn new(meeting: Meeting) -> anyhow::Result<Self> {
        let texts: Vec<String> = meeting
            .meeting_transcripts
            .iter()
            .map(|turn| format!("{}: {}", turn.speaker, turn.content))
            .collect();
        let terms: Vec<_> = texts.iter().map(|text| terms(text)).collect();
        let mut statistics = Statistics::default();
        terms.iter().for_each(|terms| statistics.add(terms));
        let id = |at: usize| format!("t{at:05}");
        let items = texts.iter().enumerate().map(|(at, text)| {
            let item = Item {
                id: id(at),
                revision: 1,
                kind: "message".into(),
                text: text.clone(),
                at: Timestamp(i64::try_from(at).expect("a length fits") * 1000),
                ..super::relay::plain_item()
            };
            Candidate::from(Prepared::new(item, TOKENIZER))
        });
        let items = items.collect();
        let mut questions = Vec::new();
        for question in meeting.specific_query_list {
            let mut gold: Vec<usize> = Vec::new();
            for (first, last) in &question.relevant_text_span {
                let (first, last): (usize, usize) = (first.parse()?, last.parse()?);
                gold.extend(first..=last.min(texts.len().saturating_sub(1)));
            }
            gold.sort_unstable();
            gold.dedup();
            questions.push((question.query, gold));
        }
        Ok(Self {
            tokens: texts.iter().map(|text| TOKENIZER.count(text)).collect(),
            places: (0..texts.len()).map(|at| (id(at), at)).collect(),
            texts,
            terms,
            statistics,
            items,
            questions,
        })
    }

    /// Whole turns in this order until one does not fit.
    fn fill(&self, order: &[usize], budget: u64) -> Answer {
        let mut answer = Answer { tokens: 0, kept: vec![0; self.texts.len()] };
        for &at in order {
            // A line each.
            let tokens = self.tokens[at] + 1;
            if answer.tokens + tokens > budget {
                break;
            }
            answer.tokens += tokens;
            answer.kept[at] = self.tokens[at];
        }
        answer
    }

    fn assemble(&self, question: &str, budget: u64, strategy: Strategy) -> Answer {
        let request = Request {
            brief: Brief {
                intent: INTENT.into(),
                ask: Some(question.to_owned()),
                ..Brief::default()
            },
            items: self.items.clone(),
            strategy,
            tokenizer: TOKENIZER,
            budget: Some(budget),
            ..Request::default()
        };
        let mut kept = vec![0; self.texts.len()];
        let Ok(assembled) = assemble(&request) else { return Answer { tokens: 0, kept } };
        let read = |text: &str| assembled.prompt.contains(text);
        for (id, _, carried) in &assembled.carried {
            let at = self.places[id];
            let text = &self.texts[at];
            kept[at] = match carried.rung {
                Rung::Listed | Rung::Stub => 0,
                Rung::Full if read(text.trim()) => self.tokens[at],
                Rung::Full | Rung::Summary => {
                    let cut = cut(text);
                    let held = carried.parts.iter().filter_map(|(place, _)| cut.parts.get(*place));
                    let held = held.map(|range| cut.text[range.clone()].trim());
                    held.filter(|text| read(text)).map(|text| TOKENIZER.count(text)).sum()
                }
            };
        }
        Answer { tokens: TOKENIZER.count(&assembled.prompt), kept }
    }
}

impl Report {
    pub(super) fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["BUDGET", "CHOSEN BY", "FOUND", "OVERRUNS", "TOKENS MAX"]);
        for row in &self.rows {
            table.add_row([
                row.budget.to_string(),
                row.method.to_owned(),
                format!("{:.3}", row.found),
                row.overruns.to_string(),
                row.tokens_max.to_string(),
            ]);
        }
        let (questions, meetings) = (self.questions, self.meetings);
        format!("{questions} questions about {meetings} meetings\n\n{table}\n")
    }
}
