// SPDX-License-Identifier: Apache-2.0
//! The promises of the detail ladder, over random requests and budgets.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tasuki_core::Timestamp;
use tasuki_core::assembly::{
    Assembled, Candidate, PromptForm, Reader, Reason, Request, Rung, Strategy as Chosen, TooSmall,
    assemble, cut, read, shown,
};

use tasuki_core::envelope::parts::{ExpectedOutput, Freshness};
use tasuki_core::envelope::{Constraint, Parts};

use crate::random::{request, shuffled, text, tokenizer};

fn within(request: &Request, budget: u64) -> Result<Assembled, TooSmall> {
    assemble(&Request { budget: Some(budget), ..request.clone() })
}

/// A budget between just too small and more than enough, chosen by thousandths.
fn budget_at(request: &Request, per_mille: u64) -> (u64, u64) {
    let needed = within(request, 0).expect_err("something is always needed").needed;
    let everything = assemble(request).unwrap().receipt.budget_for_everything;
    (needed, needed + (everything - needed) * per_mille / 1000)
}

type Rungs = BTreeMap<(String, u64), Vec<(Rung, u32)>>;

/// How much of each item is there: its rung, and how many parts.
fn rungs(assembled: &Assembled) -> Rungs {
    let mut rungs = Rungs::new();
    let mut put = |id: &str, revision, rung| {
        rungs.entry((id.to_owned(), revision)).or_default().push(rung);
    };
    let receipt = &assembled.receipt;
    receipt.kept.iter().for_each(|kept| put(&kept.id, kept.revision, (kept.rung, u32::MAX)));
    for it in &receipt.demoted {
        put(&it.id, it.revision, (it.rung, it.parts.map_or(0, |(kept, _)| kept)));
    }
    receipt.dropped.iter().for_each(|it| put(&it.id, it.revision, (Rung::Listed, 0)));
    // Lines of the brief are reported when they are dropped, and only then.
    rungs.retain(|(id, _), _| id.starts_with("ms-"));
    rungs.values_mut().for_each(|rungs| rungs.sort_unstable());
    rungs
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 160,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn counts_of_pieces_add_up(
        texts in prop::collection::vec(text(12), 1..6),
        tokenizer in tokenizer(),
    ) {
        let pieces: Vec<String> = texts.iter().map(|text| format!("- {text}\n")).collect();
        let sum: u64 = pieces.iter().map(|piece| tokenizer.count(piece)).sum();
        prop_assert_eq!(sum, tokenizer.count(&pieces.concat()));
    }

    #[test]
    fn no_budget_is_ever_exceeded_and_the_count_is_that_of_the_text(
        request in request(),
        per_mille in 0..1100_u64,
    ) {
        let (_, budget) = budget_at(&request, per_mille);
        let assembled = within(&request, budget).unwrap();
        let receipt = &assembled.receipt;
        prop_assert_eq!(receipt.token_count, request.tokenizer.count(&assembled.prompt));
        let reserved = request.reserved_system_prompt + request.reserved_work;
        prop_assert!(receipt.token_count + reserved <= budget);
        prop_assert!(receipt.utilisation_per_mille <= 1000);
    }

    #[test]
    fn a_larger_budget_never_takes_anything_away(
        request in request(),
        (one, two) in (0..1000_u64, 0..1000_u64),
    ) {
        let small = within(&request, budget_at(&request, one.min(two)).1).unwrap();
        let large = within(&request, budget_at(&request, one.max(two)).1).unwrap();
        let large = rungs(&large);
        for (item, small) in rungs(&small) {
            for (small, large) in small.iter().zip(&large[&item]) {
                prop_assert!(small <= large, "{item:?}: {small:?} then {large:?}");
            }
        }
    }

    #[test]
    fn what_must_arrive_arrives_verbatim_or_the_error_says_exactly_how_much_room_it_needs(
        request in request(),
    ) {
        let (needed, _) = budget_at(&request, 0);
        let refused = within(&request, needed - 1).unwrap_err();
        prop_assert_eq!(refused.needed, needed);
        prop_assert!(!refused.largest.is_empty() && refused.largest.len() <= 5);
        let prompt = within(&request, needed).unwrap().prompt;
        let brief = &request.brief;
        let rules = brief.constraints.iter().map(|rule| &rule.text);
        let pins = request.items.iter().map(|it| it.prepared.item()).filter(|it| it.pinned);
        let always = rules
            .chain(pins.map(|item| &item.text))
            .chain(&brief.open_decisions)
            .chain(&brief.ask)
            .chain(&brief.expected_output)
            .chain([&brief.intent]);
        for text in always {
            let text = shown(text);
            prop_assert!(prompt.contains(&*text), "{text:?} is not in {prompt:?}");
        }
    }

    #[test]
    fn the_order_of_items_does_not_matter(
        request in request(),
        per_mille in 0..1100_u64,
        seed: u64,
    ) {
        let (_, budget) = budget_at(&request, per_mille);
        let items = shuffled(&request.items, seed);
        let other = Request { items, ..request.clone() };
        let mut unresolved = other.clone();
        unresolved.unresolved.reverse();
        let expected = within(&request, budget);
        prop_assert_eq!(&within(&other, budget), &expected);
        prop_assert_eq!(&within(&unresolved, budget), &expected);
    }

    #[test]
    fn nothing_less_wanted_is_passed_while_something_more_wanted_is_not(
        request in request(),
        per_mille in 0..1000_u64,
    ) {
        let (_, budget) = budget_at(&request, per_mille);
        let assembled = within(&request, budget).unwrap();
        let receipt = &assembled.receipt;
        let priority = |id: &str| {
            let items = request.items.iter().map(|it| it.prepared.item());
            items.filter(|item| item.id == id).map(|item| item.priority).max()
        };
        let lacking = receipt.dropped.iter().filter(|it| it.reason == Reason::Budget).map(|it| &it.id);
        let lacking = lacking.chain(receipt.demoted.iter().map(|it| &it.id));
        let most_wanted = lacking.filter_map(|id| priority(id)).min();
        let kept = receipt.kept.iter().filter(|it| !it.pinned).map(|it| &it.id);
        let kept = kept.chain(receipt.demoted.iter().map(|it| &it.id));
        let least_wanted = kept.filter_map(|id| priority(id)).max();
        if let (Some(lacking), Some(kept)) = (most_wanted, least_wanted) {
            prop_assert!(kept <= lacking, "{kept:?} is passed while {lacking:?} is not");
        }
    }

    #[test]
    fn assembling_what_was_assembled_changes_nothing(
        request in request(),
        per_mille in 0..1100_u64,
    ) {
        let request = with_items_only(request);
        let (_, budget) = budget_at(&request, per_mille);
        let first = within(&request, budget).unwrap();
        let again = Request {
            items: carried(&request, &first),
            inherited: first.manifest.clone(),
            ..request.clone()
        };
        let second = within(&again, budget).unwrap();
        // But for what was left out: the second had no more than it has.
        let said = |it: &Assembled| {
            let note = format!("{} Not in this text", it.reading.mark);
            let fetch = format!("{} fetch_memory", it.reading.mark);
            let end = it.prompt.find(&note).or(it.prompt.find(&fetch)).unwrap_or(it.prompt.len());
            it.prompt[..end].replace(&it.reading.mark, "§")
        };
        prop_assert_eq!(said(&second), said(&first));
        prop_assert_eq!(&second.carried, &first.carried);
    }

    #[test]
    fn little_room_is_left_unused(request in request(), per_mille in 0..1000_u64) {
        let (_, budget) = budget_at(&request, per_mille);
        let assembled = within(&request, budget).unwrap();
        let receipt = &assembled.receipt;
        let reserved = request.reserved_system_prompt + request.reserved_work;
        let used = receipt.token_count + reserved;
        // The first step that did not fit is what is missing: with all of the room that it needs, and
        // not a token less, there is more to read.
        let everything = receipt.budget_for_everything;
        let (mut less, mut enough) = (budget, everything);
        if within(&request, everything).unwrap().prompt == assembled.prompt {
            return Ok(());
        }
        while enough - less > 1 {
            let middle = less + (enough - less) / 2;
            let same = within(&request, middle).unwrap().prompt == assembled.prompt;
            *(if same { &mut less } else { &mut enough }) = middle;
        }
        // A step is at most an item as a whole, in its longest form, or a line of the brief.
        let count = |text: &str| request.tokenizer.count(text);
        let items = request.items.iter().map(|it| {
            let item = it.prepared.item();
            let forms = count(&item.text) + item.summary.as_deref().map_or(0, count);
            2 * forms + 2 * count(&item.title) + count(&item.id) + 64
        });
        let brief = &request.brief;
        let lines = brief.summary.iter().chain(&brief.tried).chain(&brief.gaps).chain(&brief.history);
        // And there is room to say what was left out.
        let said = 3 * count("Not in this text: m8888-m8888 (8888 decision; 888888 tokens). ");
        let largest = said + items.chain(lines.map(|line| count(line) + 64)).max().unwrap_or(0);
        prop_assert!(enough - used <= largest, "{} of {largest} lie idle", enough - used);
    }

    #[test]
    fn along_a_chain_nothing_is_lost_while_the_budget_does_not_shrink(
        request in request(),
        per_mille in 0..1000_u64,
        more in 0..50_u64,
    ) {
        let request = with_items_only(request);
        let (_, budget) = budget_at(&request, per_mille);
        let first = within(&request, budget).unwrap();
        let again = Request { items: carried(&request, &first), ..request.clone() };
        let again = Request { inherited: first.manifest.clone(), ..again };
        let second = within(&again, budget + more).unwrap();
        let kept = |it: &Assembled| it.carried.iter().map(|(id, ..)| id.clone()).collect::<Vec<_>>();
        prop_assert_eq!(kept(&second), kept(&first));
        prop_assert_eq!(second.manifest, first.manifest);
    }

    #[test]
    fn everything_given_is_kept_demoted_or_dropped_and_listed(
        request in request(),
        per_mille in 0..1100_u64,
    ) {
        let (_, budget) = budget_at(&request, per_mille);
        let assembled = within(&request, budget).unwrap();
        let mut given = BTreeMap::new();
        for it in &request.items {
            let item = it.prepared.item();
            *given.entry((item.id.clone(), item.revision)).or_insert(0) += 1;
            let listed = assembled.manifest.iter().any(|entry| {
                entry.hash == it.prepared.hash()
                    && (&entry.id, entry.revision) == (&item.id, item.revision)
            });
            prop_assert!(listed);
        }
        let reported: BTreeMap<_, _> =
            rungs(&assembled).into_iter().map(|(item, rungs)| (item, rungs.len())).collect();
        prop_assert_eq!(reported, given);
    }

    #[test]
    fn the_budget_for_everything_keeps_everything_and_is_not_far_from_it(request in request()) {
        let (_, everything) = budget_at(&request, 1000);
        let all = within(&request, everything).unwrap();
        prop_assert_eq!(&all.prompt, &assemble(&request).unwrap().prompt);
        prop_assert!(all.receipt.demoted.is_empty());
        let reserved = request.reserved_system_prompt + request.reserved_work;
        let spare = everything - reserved - all.receipt.token_count;
        // Every part of every text may be counted for a little more than it comes to.
        let texts = request.items.iter().map(|it| it.prepared.item().text.len() as u64 + 400);
        prop_assert!(spare <= 400 + texts.sum::<u64>(), "{spare}");
    }

    #[test]
    fn all_in_full_is_refused_rather_than_cut(request in request()) {
        let full = Request { strategy: Chosen::Full, ..request };
        let (_, everything) = budget_at(&full, 1000);
        let all = within(&full, everything).unwrap();
        prop_assert!(all.receipt.demoted.is_empty());
        prop_assert!(all.receipt.kept.iter().all(|kept| kept.rung == Rung::Full));
        prop_assert_eq!(within(&full, everything - 1).unwrap_err().needed, everything);
    }
}

/// What an envelope with this would hold, as far as the text depends on it.
pub(crate) fn envelope(request: &Request, assembled: &Assembled) -> Parts {
    use tasuki_core::envelope::constraint::id_of;
    use tasuki_core::envelope::parts::{Gap, MemoryRef, OpenDecision, Step};
    let user: tasuki_core::AgentId = "user".parse().unwrap();
    let brief = &request.brief;
    Parts {
        summary: brief.summary.clone(),
        ask: brief.ask.clone(),
        tried: brief.tried.clone(),
        constraints: (brief.constraints.iter())
            .map(|rule| Constraint {
                id: id_of(&rule.text),
                kind: rule.kind.parse().unwrap(),
                text: rule.text.clone(),
                issuer: user.clone(),
                hard: true,
            })
            .collect(),
        open_decisions: (brief.open_decisions.iter())
            .map(|question| OpenDecision {
                id: id_of(question),
                question: question.clone(),
                options: Vec::new(),
                by: user.clone(),
            })
            .collect(),
        history: (brief.history.iter())
            .map(|step| Step {
                agent: user.clone(),
                action: step.strip_prefix("user: ").unwrap().to_owned(),
                decision: None,
                why: None,
                memory_id: None,
                at: Timestamp(0),
            })
            .collect(),
        gaps: (brief.gaps.iter())
            .map(|gap| Gap { reference: gap.clone(), reason: None, by: user.clone(), hop: 0 })
            .collect(),
        expected_output: brief.expected_output.clone().map(|expected| ExpectedOutput {
            criteria: vec![expected],
            ..ExpectedOutput::default()
        }),
        context: assembled.context.clone(),
        memory_refs: (assembled.referred.iter())
            .map(|(id, revision, title)| MemoryRef {
                id: id.clone(),
                revision: u32::try_from(*revision).ok(),
                freshness: Freshness::Latest,
                title: Some(title.clone()),
            })
            .collect(),
        reading: Some(assembled.reading.clone()),
        ..Parts::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 120,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_reader_gets_what_the_sender_saw_byte_for_byte(
        request in request(),
        per_mille in 0..1100_u64,
    ) {
        let (_, budget) = budget_at(&request, per_mille);
        let assembled = within(&request, budget).unwrap();
        // It is stored and read back as JSON.
        let stored = serde_json::to_string(&envelope(&request, &assembled)).unwrap();
        let stored: Parts = serde_json::from_str(&stored).unwrap();
        let reader = Reader {
            tokenizer: request.tokenizer,
            available: Some(assembled.receipt.token_count),
            ..Reader::default()
        };
        let read = read(&request.brief.intent, &stored, Timestamp(0), reader).unwrap();
        prop_assert_eq!(read.text(), assembled.prompt);
        prop_assert_eq!(read.token_count, assembled.receipt.token_count);
        prop_assert!(!read.shortened);
        for name in assembled.receipt.kept.iter().map(|it| (&it.name, &it.id)) {
            prop_assert!(read.names.iter().any(|it| (&it.0, &it.1) == name), "{:?}", name);
        }
    }

    #[test]
    fn another_reader_gets_the_same_or_a_shorter_beginning_of_it_that_says_so(
        request in request(),
        per_mille in 0..1100_u64,
        tokenizer in tokenizer(),
        (one, two) in (0..1200_u64, 0..1200_u64),
        xml in prop::bool::ANY,
    ) {
        let (_, budget) = budget_at(&request, per_mille);
        let assembled = within(&request, budget).unwrap();
        let stored = envelope(&request, &assembled);
        let form = if xml { PromptForm::Xml } else { PromptForm::Markdown };
        let room = |per_mille: u64| tokenizer.count(&assembled.prompt) * per_mille / 1000;
        let at = |available: u64| {
            let reader = Reader { tokenizer, available: Some(available), form, all: false };
            read(&request.brief.intent, &stored, Timestamp(0), reader)
        };
        let (small, large) = (at(room(one.min(two))), at(room(one.max(two))));
        for (read, room) in [(&small, room(one.min(two))), (&large, room(one.max(two)))] {
            match read {
                Err(short) => prop_assert!(short.needed > room),
                Ok(read) => {
                    prop_assert_eq!(read.token_count, tokenizer.count(&read.text()));
                    prop_assert!(read.token_count <= room);
                    prop_assert_eq!(read.shortened, read.text().contains("shortened for a reader"));
                    if !read.shortened && !xml {
                        prop_assert_eq!(&read.text(), &assembled.prompt);
                    }
                }
            }
        }
        if let (Ok(small), Ok(large)) = (small, large) {
            prop_assert!(large.missing.iter().all(|id| small.missing.contains(id)));
        }
    }

    #[test]
    fn what_is_cut_says_so_and_every_item_is_named(request in request(), per_mille in 0..1000_u64) {
        let (_, budget) = budget_at(&request, per_mille);
        let assembled = within(&request, budget).unwrap();
        let receipt = &assembled.receipt;
        let gone = receipt.dropped.iter().filter(|it| it.reason == Reason::Budget);
        prop_assert!(gone.count() == 0 || assembled.prompt.contains("Not in this text: "));
        let kept = receipt.kept.iter().map(|it| &it.name);
        for name in kept.chain(receipt.demoted.iter().map(|it| &it.name)) {
            let name = format!("[{name}]");
            prop_assert!(assembled.prompt.contains(&name), "{name} in {}", assembled.prompt);
        }
    }

    #[test]
    fn excerpts_stand_in_the_order_of_their_source(request in request(), per_mille in 0..1000_u64) {
        let (_, budget) = budget_at(&request, per_mille);
        let assembled = within(&request, budget).unwrap();
        for item in &assembled.context {
            prop_assert!(item.excerpts.is_sorted_by(|one, two| one.part < two.part));
            let text = request.items.iter().map(|it| it.prepared.item()).find(|it| {
                it.id == item.id && u32::try_from(it.revision).ok() == item.revision
            });
            let cut = cut(&shown(&text.unwrap().text));
            for excerpt in &item.excerpts {
                let part = &cut.text[cut.parts[excerpt.part as usize - 1].clone()];
                prop_assert_eq!(excerpt.text.trim_end_matches('\n'), part.trim_end_matches('\n'));
            }
        }
    }

    #[test]
    fn only_the_broker_writes_lines_with_the_mark(request in request(), per_mille in 0..1100_u64) {
        let (_, budget) = budget_at(&request, per_mille);
        let assembled = within(&request, budget).unwrap();
        let mark = &assembled.reading.mark;
        let said = request.items.iter().map(|it| it.prepared.item().text.as_str());
        let brief = &request.brief;
        let rules = brief.constraints.iter().map(|rule| rule.text.as_str());
        for text in said.chain(rules).chain([brief.intent.as_str()]) {
            prop_assert!(!text.contains(mark));
        }
    }
}

/// The request without what may be trimmed of its brief: the trimmed envelope would not have it.
fn with_items_only(mut request: Request) -> Request {
    request.brief.summary = None;
    request.brief.tried.clear();
    request.brief.gaps.clear();
    request.brief.history.clear();
    request
}

/// The items of a request as an assembly of it kept them, pins included.
fn carried(request: &Request, assembled: &Assembled) -> Vec<Candidate> {
    let mut left = assembled.carried.clone();
    let mut items = Vec::new();
    for candidate in &request.items {
        let item = candidate.prepared.item();
        if item.pinned {
            items.push(candidate.clone());
            continue;
        }
        let found =
            left.iter().position(|(id, revision, _)| (id, *revision) == (&item.id, item.revision));
        if let Some(at) = found {
            let (_, _, carried) = left.remove(at);
            items.push(Candidate { carried: Some(carried), ..candidate.clone() });
        }
    }
    items
}
