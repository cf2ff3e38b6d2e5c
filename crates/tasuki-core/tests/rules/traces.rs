// SPDX-License-Identifier: Apache-2.0
//! Spans that follow from a log: what they are called, what hangs below what, and that whoever walks
//! their links from the last hop comes to the first.

use std::collections::BTreeMap;

use tasuki_core::commands::{Act, OfferTask};
use tasuki_core::envelope::Target;
use tasuki_core::event::FailureClass;
use tasuki_core::ids::{HandoffId, TaskId, Timestamp};
use tasuki_core::trace::{Context, Kind, Link, Mode, Share, Span, Tracer, send_span, task_span};

use crate::support::{MINUTE, SECOND, Stage, agent, body, fail, to};

const START: Timestamp = Timestamp(0);

/// What a log tells, all of it.
fn told(stage: &Stage, mode: Mode) -> Vec<Span> {
    let mut tracer = Tracer::new(mode, START);
    let mut told = Vec::new();
    stage.world.log.iter().for_each(|sealed| tracer.note(sealed, &mut told));
    told
}

/// A task of the planner's whose sender named this context, or none.
fn traced(stage: &mut Stage, mode: Mode, context: Option<Context>, receiver: &str) -> HandoffId {
    stage.offer_to(to(receiver), |offer| {
        let made = Context::made(mode, Share::ALL, offer.task.id(), offer.handoff);
        offer.contract.trace = Some(context.unwrap_or(made));
    })
}

/// Hands a claimed handoff on to the next agent.
fn onward(stage: &mut Stage, mode: Mode, from: HandoffId, by: &str, next: &str) -> HandoffId {
    let proof = stage.claim(from, by);
    stage.wait(SECOND);
    let before = stage.handoff(from).contract.trace.unwrap();
    let task = stage.handoff(from).task_id;
    let mut offer = stage.offer(OfferTask::Existing(task), by, to(next));
    offer.hop = stage.handoff(from).hop + 1;
    offer.contract.trace = Some(before.onward(mode, offer.handoff));
    let id = offer.handoff;
    let act = Act::Complete { result: body("done"), follow_ups: vec![offer], checked: None };
    stage.act(from, proof, act).unwrap();
    id
}

fn complete(stage: &mut Stage, id: HandoffId, by: &str) {
    let proof = stage.claim(id, by);
    stage.wait(SECOND);
    stage.act(id, proof, crate::support::complete("done")).unwrap();
}

fn named<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    let all: Vec<_> = spans.iter().map(|span| &span.name).collect();
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name} in {all:?}"))
}

#[test]
fn a_task_is_one_trace_with_a_span_for_each_thing_that_happened() {
    let mut stage = Stage::new();
    let first = traced(&mut stage, Mode::Task, None, "coder");
    stage.wait(MINUTE);
    let second = onward(&mut stage, Mode::Task, first, "coder", "reviewer");
    complete(&mut stage, second, "reviewer");
    let spans = told(&stage, Mode::Task);
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "send coder",
            "queue coder",
            "receive coder",
            "process coder",
            "ack coder",
            "send reviewer",
            "queue reviewer",
            "receive reviewer",
            "process reviewer",
            "ack reviewer",
            "task coder",
        ]
    );
    let task = stage.handoff(first).task_id;
    assert!(spans.iter().all(|span| span.trace == { task.0 }), "the trace is the task");
    let root = named(&spans, "task coder");
    assert_eq!((root.id, root.parent, root.kind), (task_span(task), None, Kind::Internal));
    let send = named(&spans, "send coder");
    assert_eq!((send.parent, send.kind), (Some(root.id), Kind::Producer));
    let queue = named(&spans, "queue coder");
    assert_eq!(queue.end.0 - queue.start.0, MINUTE as i64);
    let process = named(&spans, "process coder");
    assert_eq!((process.parent, process.kind), (Some(send.id), Kind::Consumer));
    assert_eq!(process.end.0 - process.start.0, SECOND as i64);
    assert_eq!(process.links, [Link { trace: send.trace, span: send.id }]);
    assert_eq!(process.text("gen_ai.agent.name"), Some("coder"));
    let next = named(&spans, "send reviewer");
    assert_eq!(next.links, [Link { trace: send.trace, span: send.id }], "the hop before");
    let known = next.text("handoff.previous.sha256");
    assert_eq!(known, send.text("handoff.envelope.sha256"));
}

#[test]
fn what_its_sender_names_is_what_a_hop_hangs_below() {
    let mut stage = Stage::new();
    let mine: Context = "00-0000000000000000000000000000abcd-00000000000000ef-01".parse().unwrap();
    let id = traced(&mut stage, Mode::Task, Some(mine), "coder");
    complete(&mut stage, id, "coder");
    let spans = told(&stage, Mode::Task);
    assert!(spans.iter().all(|span| span.trace == mine.trace));
    let send = named(&spans, "send coder");
    // Its sender made the message; the broker took it.
    assert_eq!((send.kind, send.parent), (Kind::Client, Some(mine.span)));
    let process = named(&spans, "process coder");
    assert_eq!(process.parent, Some(mine.span));
    assert!(process.links.contains(&Link { trace: mine.trace, span: send.id }));
    assert_eq!(named(&spans, "task coder").parent, Some(mine.span));
}

#[test]
fn what_nobody_wants_recorded_leaves_nothing() {
    let mut stage = Stage::new();
    let mine: Context = "00-0000000000000000000000000000abcd-00000000000000ef-00".parse().unwrap();
    let id = traced(&mut stage, Mode::Task, Some(mine), "coder");
    complete(&mut stage, id, "coder");
    let plain = stage.offered();
    complete(&mut stage, plain, "coder");
    assert_eq!(told(&stage, Mode::Task), []);
}

#[test]
fn a_failure_is_an_error_of_its_span_and_a_retry_another_attempt() {
    let mut stage = Stage::new();
    let id = traced(&mut stage, Mode::Task, None, "coder");
    let proof = stage.claim(id, "coder");
    stage.act(id, proof, fail(FailureClass::Retryable)).unwrap();
    stage.wait_and_sweep(MINUTE);
    stage.claim(id, "coder");
    stage.wait_and_sweep(MINUTE);
    stage.kill(id);
    stage.discard(id).unwrap();
    let spans = told(&stage, Mode::Task);
    let tries: Vec<_> = spans.iter().filter(|span| span.name == "process coder").collect();
    let errors: Vec<_> = tries.iter().map(|span| span.error).collect();
    assert_eq!(errors, [Some("failed_retryable"), Some("lost_silence"), Some("failed_permanent")]);
    let queues: Vec<_> = spans.iter().filter(|span| span.name == "queue coder").collect();
    let marks = |span: &Span| span.marks.iter().map(|mark| mark.name.clone()).collect::<Vec<_>>();
    assert_eq!(marks(queues[1]), ["retry_scheduled", "readied"]);
    assert_eq!(marks(queues[2]), ["lease_lost"]);
    assert_eq!(named(&spans, "dead_letter coder").error, Some("permanent_failure"));
    assert_eq!(named(&spans, "task coder").error, Some("discarded"));
    let mut ids: Vec<_> = spans.iter().map(|span| span.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), spans.len(), "no two spans have the same id");
}

/// However long the chain is and wherever whoever follows it is stopped and goes on from what was
/// saved: the links lead from the last sending to the first, and no span is told in two ways.
#[test]
fn links_lead_from_the_last_hop_to_the_first_across_any_restart() {
    for (mode, hops) in [(Mode::Task, 1), (Mode::Task, 7), (Mode::Links, 1), (Mode::Links, 7)] {
        let mut stage = Stage::new();
        let mut sent = vec![traced(&mut stage, mode, None, "agent-0")];
        for hop in 0..hops {
            let (by, next) = (format!("agent-{hop}"), format!("agent-{}", hop + 1));
            sent.push(onward(&mut stage, mode, *sent.last().unwrap(), &by, &next));
        }
        complete(&mut stage, *sent.last().unwrap(), &format!("agent-{hops}"));
        let whole = by_id(told(&stage, mode));
        walk(&whole, &sent);
        for stop in 0..=stage.world.log.len() {
            for saved in [stop, stop.saturating_sub(3)] {
                let (mut tracer, mut told) = (Tracer::new(mode, START), Vec::new());
                let log = &stage.world.log;
                log[..saved].iter().for_each(|sealed| tracer.note(sealed, &mut told));
                let text = tracer.saved().unwrap();
                log[saved..stop].iter().for_each(|sealed| tracer.note(sealed, &mut told));
                let mut tracer = Tracer::restored(mode, &text).unwrap();
                log[saved..].iter().for_each(|sealed| tracer.note(sealed, &mut told));
                assert_eq!(by_id(told), whole, "{mode:?}: stopped at {stop}, saved at {saved}");
            }
        }
    }
}

/// Spans by their ids. The same one may come twice and is the same then.
fn by_id(spans: Vec<Span>) -> BTreeMap<(u128, u64), Span> {
    let mut all = BTreeMap::new();
    for span in spans {
        if let Some(known) = all.insert((span.trace, span.id), span.clone()) {
            assert_eq!(known, span);
        }
    }
    all
}

fn walk(spans: &BTreeMap<(u128, u64), Span>, sent: &[HandoffId]) {
    let sending = |id: HandoffId| spans.values().find(|span| span.id == send_span(id)).unwrap();
    for pair in sent.windows(2) {
        let (before, after) = (sending(pair[0]), sending(pair[1]));
        let link = Link { trace: before.trace, span: before.id };
        assert!(after.links.contains(&link), "{} knows {}", after.name, before.name);
    }
}

#[test]
fn a_task_below_another_hangs_below_what_its_holder_did() {
    let mut stage = Stage::new();
    let id = traced(&mut stage, Mode::Task, None, "coder");
    let proof = stage.claim(id, "coder");
    let above = stage.handoff(id).task_id;
    let context = stage.handoff(id).contract.trace.unwrap();
    let below = stage.new_task(Some(above));
    let mut offer = stage.offer(below, "coder", Target::Agent(agent("tester")));
    offer.contract.trace = Some(context.onward(Mode::Task, offer.handoff));
    let call = stage.send(offer);
    complete(&mut stage, call, "tester");
    stage.act(id, proof, crate::support::complete("done")).unwrap();
    let spans = told(&stage, Mode::Task);
    let (process, call) = (named(&spans, "process coder"), named(&spans, "task tester"));
    assert_eq!((call.trace, call.parent), (process.trace, Some(process.id)));
    assert_eq!(named(&spans, "send tester").text("handoff.control"), Some("awaited"));
    let _: TaskId = above;
}
