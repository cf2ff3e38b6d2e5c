// SPDX-License-Identifier: Apache-2.0
//! The context that an envelope is made in: what its sender says in the metadata, else what came with
//! the request, else that of the envelope before, else one of the broker's own. Nothing is refused
//! because of it: what is no context counts as none.

use std::future::Future;

use serde_json::Value;
use tasuki_core::canonical::Object;
use tasuki_core::trace::{Context, MEMBERS, Mode, Share};
use tasuki_core::{HandoffId, TaskId};

/// How long what a door hands on of a trace may be, in bytes, as W3C Baggage has it.
pub const TRACE_BYTES_MAX: usize = 8192;

/// How traces are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tracing {
    pub mode: Mode,
    pub share: Share,
}

/// What came with a request about its trace, in the order of [`MEMBERS`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ambient([Option<String>; 3]);

tokio::task_local! {
    static AMBIENT: Ambient;
}

impl Ambient {
    /// From how a door reads a member. Without a context there is nothing to hand on.
    #[must_use]
    pub fn read(member: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let told = MEMBERS.map(|name| member(name).filter(|text| text.len() <= TRACE_BYTES_MAX));
        let is_one = told[0].as_ref().is_some_and(|text| text.parse::<Context>().is_ok());
        is_one.then_some(Self(told))
    }

    /// What is offered while this runs is made in this context.
    pub async fn around<F: Future>(context: Option<Self>, work: F) -> F::Output {
        match context {
            // What a protocol says in its own words counts before what its carrier says.
            Some(context) if AMBIENT.try_with(|_| ()).is_err() => {
                AMBIENT.scope(context, work).await
            }
            _ => work.await,
        }
    }

    fn current() -> Option<Self> {
        AMBIENT.try_with(Clone::clone).ok()
    }
}

/// What an envelope is made of, as far as its context follows from it.
pub(crate) struct Made<'e> {
    /// The metadata of the envelope before.
    pub(crate) before: Option<&'e Object>,
    /// The topmost task that it belongs to.
    pub(crate) root: TaskId,
    pub(crate) handoff: HandoffId,
}

/// Puts the context into the metadata of an envelope.
pub(crate) fn put(metadata: &mut Object, made: &Made<'_>, tracing: Option<Tracing>) {
    if Context::of(metadata).is_some() {
        return;
    }
    if let Some(Ambient(told)) = Ambient::current() {
        // What was said beside something that is no context belongs to no trace.
        for (name, value) in MEMBERS.iter().zip(told) {
            set(metadata, name, value.map(Value::String));
        }
        return;
    }
    let before = made.before.and_then(|before| Some((before, Context::of(before)?)));
    let context = match (before, tracing) {
        (None, None) => return,
        (None, Some(Tracing { mode, share })) => {
            Context::made(mode, share, made.root, made.handoff)
        }
        (Some((_, context)), None) => context,
        (Some((_, context)), Some(Tracing { mode, .. })) => context.onward(mode, made.handoff),
    };
    let carried = |name: &str| before.and_then(|(before, _)| before.0.get(name).cloned());
    set(metadata, MEMBERS[0], Some(Value::String(context.to_string())));
    for name in &MEMBERS[1..] {
        if !metadata.0.contains_key(*name) {
            set(metadata, name, carried(name));
        }
    }
}

fn set(metadata: &mut Object, name: &str, value: Option<Value>) {
    match value {
        Some(value) => metadata.0.insert(name.to_owned(), value),
        None => metadata.0.remove(name),
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MINE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const OTHER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn object(value: Value) -> Object {
        serde_json::from_value(value).unwrap()
    }

    fn made(before: Option<&Object>) -> Made<'_> {
        Made { before, root: TaskId(7), handoff: HandoffId(0xab) }
    }

    const ON: Option<Tracing> = Some(Tracing { mode: Mode::Task, share: Share::ALL });

    #[test]
    fn what_a_sender_says_is_left_alone_and_what_came_before_goes_on() {
        let before = object(json!({ "traceparent": OTHER, "tracestate": "a=1", "baggage": "b=2" }));
        let mut said = object(json!({ "traceparent": MINE, "mine": 1 }));
        put(&mut said, &made(Some(&before)), ON);
        assert_eq!(said, object(json!({ "traceparent": MINE, "mine": 1 })));
        let mut silent = Object::default();
        put(&mut silent, &made(Some(&before)), None);
        assert_eq!(silent, before, "nobody records it here, and nobody loses it");
        let mut recorded = Object::default();
        put(&mut recorded, &made(Some(&before)), ON);
        let own = "00-0af7651916cd43dd8448eb211c80319c-00000000000000ab-01";
        assert_eq!(recorded.0["traceparent"], own);
        assert_eq!(recorded.0["tracestate"], "a=1");
    }

    #[test]
    fn where_nobody_says_anything_only_a_broker_that_records_does() {
        let mut silent = Object::default();
        put(&mut silent, &made(None), None);
        assert!(silent.is_empty());
        put(&mut silent, &made(None), ON);
        let own = "00-00000000000000000000000000000007-00000000000000ab-01";
        assert_eq!(silent.0["traceparent"], own);
        let mut wrong = object(json!({ "traceparent": "00-1-2-01" }));
        put(&mut wrong, &made(None), None);
        assert_eq!(wrong.0["traceparent"], "00-1-2-01", "it is the sender's word");
        put(&mut wrong, &made(None), ON);
        assert_eq!(wrong.0["traceparent"], own);
    }

    #[tokio::test]
    async fn what_came_with_the_request_counts_before_the_envelope_before() {
        let header = |name: &str| (name == "traceparent").then(|| MINE.to_owned());
        let before = object(json!({ "traceparent": OTHER, "tracestate": "a=1" }));
        let mut metadata = Object::default();
        Ambient::around(Ambient::read(header), async {
            put(&mut metadata, &made(Some(&before)), ON);
        })
        .await;
        assert_eq!(metadata, object(json!({ "traceparent": MINE })));
        assert_eq!(Ambient::read(|_| Some("00-1-2-01".into())), None);
    }
}
