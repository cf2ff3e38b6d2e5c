// SPDX-License-Identifier: Apache-2.0
//! Channels: telling something to many.

use std::sync::Arc;

use tasuki_core::cursor::Epochs;
use tasuki_core::envelope::{Envelope, Payload};
use tasuki_core::ids::ChannelId;
use tasuki_core::registry::rules::Permission;
use tasuki_core::{AgentId, Handoff, Position, TaskId};
use tasuki_protocol::{self as wire, Code, Problem};
use tasuki_store::PAGE_MAX;

use super::Right::Has;
use super::{Done, ENVELOPE_ERRORS, Facts, OFFER_ERRORS, Operation};
use super::{answer, answer_once, brings, manages, reads};
use crate::channels::Published;
use crate::desk::Desk;
use crate::queries::Placed;

pub struct Show;

impl Operation for Show {
    const FACTS: Facts =
        reads("channel_show", Has(Permission::Read), "Show who hears what is told on a channel");
    type On = ChannelId;
    type In = wire::Nothing;
    type Out = wire::Channel;

    async fn run(desk: &Desk, channel: ChannelId, _: wire::Nothing) -> Done<wire::Channel> {
        let subscribers = desk.subscribers(&channel)?;
        answer(listed(channel, subscribers, &*desk.epochs().await?))
    }
}

pub struct Subscribe;

impl Operation for Subscribe {
    const FACTS: Facts = manages(
        "channel_subscribe",
        Has(Permission::Claim),
        "Hear what is told on a channel from now on",
    )
    .errors(&[&[Code::OtherTenant, Code::TooManySubscribers]]);
    type On = ChannelId;
    type In = wire::Subscribe;
    type Out = wire::Channel;

    async fn run(desk: &Desk, channel: ChannelId, asked: wire::Subscribe) -> Done<wire::Channel> {
        let subscribers = desk.subscribe(&channel, &asked.agent, true).await?;
        answer(listed(channel, subscribers, &*desk.epochs().await?))
    }
}

pub struct Unsubscribe;

impl Operation for Unsubscribe {
    const FACTS: Facts = manages(
        "channel_unsubscribe",
        Has(Permission::Claim),
        "Hear no longer what is told on a channel",
    )
    .errors(&[&[Code::OtherTenant]]);
    type On = ChannelId;
    type In = wire::Subscribe;
    type Out = wire::Channel;

    async fn run(desk: &Desk, channel: ChannelId, asked: wire::Subscribe) -> Done<wire::Channel> {
        let subscribers = desk.subscribe(&channel, &asked.agent, false).await?;
        answer(listed(channel, subscribers, &*desk.epochs().await?))
    }
}

fn listed(
    channel: ChannelId,
    subscribers: Vec<(AgentId, Position)>,
    epochs: &Epochs,
) -> wire::Channel {
    let subscriber = |(agent, since)| wire::Subscriber { agent, since: epochs.cursor(since) };
    let subscribers = subscribers.into_iter().map(subscriber).collect();
    wire::Channel { channel, subscribers }
}

pub struct Publish;

impl Operation for Publish {
    const FACTS: Facts = brings(
        "channel_publish",
        Has(Permission::Send),
        "Tell something to many: one handoff for each, all in one step",
    )
    .errors(&[ENVELOPE_ERRORS, OFFER_ERRORS]);
    type On = ChannelId;
    type In = wire::Publication;
    type Out = wire::Published;

    async fn run(
        desk: &Desk,
        channel: ChannelId,
        asked: wire::Publication,
    ) -> Done<wire::Published> {
        let Published { task, mut handoffs, repeated } = desk.publish_on(&channel, asked).await?;
        if repeated {
            handoffs.extend(told_before(desk, task.id).await?);
        }
        let told = |handoff: &Arc<Handoff>| wire::Told {
            to: handoff.to.clone(),
            handoff_id: handoff.id,
            task_id: handoff.task_id,
            listening: desk.listening(handoff),
        };
        let published = wire::Published {
            channel: task.channel.clone().unwrap_or(channel),
            correlation_id: task.correlation_id.clone(),
            task_id: task.id,
            position: desk.epochs().await?.cursor(task.intent_pos),
            repeated,
            handoffs: handoffs.iter().map(told).collect(),
        };
        answer_once(published, repeated)
    }
}

/// What a publication that was repeated had brought, in its order.
async fn told_before(desk: &Desk, task: TaskId) -> Result<Vec<Arc<Handoff>>, Problem> {
    let mut handoffs = Vec::new();
    let mut before = None;
    loop {
        let page = desk.join_answers(task, wire::Need::All, 0, before, PAGE_MAX).await?;
        handoffs.extend(page.members.into_iter().filter_map(|(_, last)| last));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    handoffs.sort_by_key(|handoff| handoff.offered_pos);
    Ok(handoffs)
}

pub struct Messages;

impl Operation for Messages {
    const FACTS: Facts = reads(
        "channel_messages",
        Has(Permission::Read),
        "Read what was told on a channel, from a place in it on",
    )
    .errors(&[&[Code::TaskNotFound]]);
    type On = ChannelId;
    type In = wire::ReadMessages;
    type Out = wire::Messages;

    async fn run(
        desk: &Desk,
        channel: ChannelId,
        asked: wire::ReadMessages,
    ) -> Done<wire::Messages> {
        let after = asked.after.unwrap_or_default();
        let Placed { position, missed } = desk.place_in_log("after", after).await?;
        let told = desk.messages(&channel, position, asked.limit.unwrap_or(100)).await?;
        let epochs = desk.epochs().await?;
        let mut messages = Vec::with_capacity(told.len());
        for (task, intent) in told {
            let body = desk.message(task.id).await?;
            let payload: Option<Payload> = body
                .and_then(|body| serde_json::from_str::<Envelope>(body.text()).ok())
                .map(|envelope| envelope.payload);
            messages.push(wire::Message {
                position: epochs.cursor(task.intent_pos),
                task_id: task.id,
                from_agent: task.opened_by.clone(),
                published_at: task.opened_at,
                intent: intent.to_string(),
                payload,
            });
        }
        let resumed = missed.as_ref().map_or(after, |missed| missed.resume_after);
        let next = messages.last().map_or(resumed, |message| message.position);
        answer(wire::Messages { messages, next, missed })
    }
}
