// SPDX-License-Identifier: Apache-2.0
//! Whole prompts of five handoffs as they happen, in every form, kept as files so that a person can read
//! them and ask of each: would I hand this to a model? `UPDATE_GOLDEN=1` writes them anew.

use std::path::Path;

use serde::Deserialize;
use serde_json::json;
use tasuki_core::Timestamp;
use tasuki_core::assembly::{
    self, Candidate, Delivery, Item, Prepared, Priority, Profiles, PromptForm, Reader, Request,
    Tokenizer, Told, assemble, claim_reserve,
};
use tasuki_core::envelope::brief::brief;
use tasuki_core::envelope::inherit::{Hand, inherit};
use tasuki_core::envelope::parts::{Freshness, MemoryRef};
use tasuki_core::envelope::{Parts, Said};
use tasuki_core::trust::Trust;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Handoff {
    intent: String,
    said: Said,
    items: Vec<Known>,
    budget: u64,
    role: Option<String>,
    frame: Vec<String>,
    payload: (String, String),
    sections: Vec<(String, Vec<(String, String)>)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    id: String,
    kind: String,
    title: String,
    text: Vec<String>,
    at: i64,
    by: String,
    trust: Option<Trust>,
    #[serde(default)]
    pinned: bool,
}

const NAMES: [&str; 5] =
    ["code-review", "support-case", "research-notes", "incident", "data-analysis"];
const TOKENIZER: Tokenizer = Tokenizer::O200k;

fn parts(said: &Said) -> Parts {
    let from = "coder".parse().unwrap();
    let hand =
        Hand { from: &from, coordinator: Some(&from), hop: 0, now: Timestamp(0), project: None };
    inherit(None, said, hand).unwrap().parts
}

/// What a reader gets of a handoff within its budget, in a form.
fn prompt(handoff: &Handoff, form: PromptForm) -> (String, assembly::Read, String) {
    let items = handoff.items.iter().map(|known| {
        let item = Item {
            id: known.id.clone(),
            revision: 1,
            kind: known.kind.clone(),
            title: known.title.clone(),
            summary: None,
            text: known.text.join("\n"),
            priority: Priority::Normal,
            pinned: known.pinned,
            tags: Vec::new(),
            at: Timestamp(known.at * 60_000),
            source: None,
            by: Some(known.by.clone()),
            trust: known.trust.unwrap_or(Trust::Agent),
        };
        Candidate::from(Prepared::new(item, TOKENIZER))
    });
    let payload = Told { about: handoff.payload.0.clone(), text: handoff.payload.1.clone() };
    let request = Request {
        brief: brief(&handoff.intent, &parts(&handoff.said)),
        items: items.collect(),
        profile: handoff.role.as_deref().and_then(|it| Profiles::standard().of(it)).cloned(),
        tokenizer: TOKENIZER,
        budget: Some(handoff.budget),
        reserved_claim: claim_reserve(handoff.budget) + TOKENIZER.count(&payload.text),
        ..Request::default()
    };
    let assembled = assemble(&request).unwrap();
    let refs = assembled.referred.iter().map(|(id, revision, title)| MemoryRef {
        id: id.clone(),
        revision: u32::try_from(*revision).ok(),
        freshness: Freshness::Latest,
        title: Some(title.clone()).filter(|title| !title.is_empty()),
    });
    let said = Said {
        context: assembled.context.clone(),
        memory_refs: refs.collect(),
        reading: Some(assembled.reading.clone()),
        ..handoff.said.clone()
    };
    let told = |(about, text): &(String, String)| Told { about: about.clone(), text: text.clone() };
    let sections = handoff.sections.iter();
    let delivery = Delivery {
        frame: handoff.frame.clone(),
        payload: Some(payload),
        sections: sections
            .map(|(head, all)| (head.clone(), all.iter().map(told).collect()))
            .collect(),
        left_out: 0,
    };
    let reader = Reader { tokenizer: TOKENIZER, available: Some(handoff.budget), form, all: false };
    let made = assembly::prompt(&handoff.intent, &parts(&said), Timestamp(0), &delivery, reader);
    let made = made.unwrap();
    (assembled.prompt, made.read, made.delivery)
}

fn handoff(name: &str) -> Handoff {
    let path = golden(&format!("{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn golden(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/prompts").join(file)
}

fn compare(file: &str, text: &str) {
    let path = golden(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        known == text,
        "{file} is another text now; read it, and write it with UPDATE_GOLDEN=1"
    );
}

#[test]
fn the_prompts_of_five_handoffs_are_those_that_were_read() {
    for name in NAMES {
        let handoff = handoff(name);
        let (_, first, rest) = prompt(&handoff, PromptForm::Markdown);
        compare(&format!("{name}.md"), &format!("{}{rest}", first.text()));
        let messages = json!([
            { "role": "system", "content": first.stable },
            { "role": "user", "content": format!("{}{rest}", first.rest) },
        ]);
        let messages = serde_json::to_string_pretty(&messages).unwrap() + "\n";
        compare(&format!("{name}.messages.json"), &messages);
        let (_, first, rest) = prompt(&handoff, PromptForm::Xml);
        compare(&format!("{name}.xml.txt"), &format!("{}{rest}", first.text()));
    }
}

#[test]
fn every_form_is_within_the_budget_with_all_that_binds() {
    for name in NAMES {
        let handoff = handoff(name);
        for form in [PromptForm::Markdown, PromptForm::Xml] {
            let (_, first, rest) = prompt(&handoff, form);
            let text = format!("{}{rest}", first.text());
            assert!(TOKENIZER.count(&text) <= handoff.budget, "{name}");
            assert!(text.contains(&handoff.intent), "{name}");
            for one in &parts(&handoff.said).constraints {
                assert!(text.contains(&one.text), "{name}: {}", one.text);
            }
            for line in &handoff.frame {
                assert!(text.contains(line), "{name}: {line}");
            }
            for (about, said) in handoff.sections.iter().flat_map(|(_, told)| told) {
                let told = text.contains(about) && text.contains(said);
                assert!(told, "{name}: {about} {said} is not told");
            }
            for (short, id) in &first.names {
                let named = text.contains(&format!("[{short}]")) || first.missing.contains(id);
                assert!(named, "{name}: {short} is neither there nor said to be left out");
            }
        }
    }
}
