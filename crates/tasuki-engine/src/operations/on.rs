// SPDX-License-Identifier: Apache-2.0
//! What operations are about.

use tasuki_core::ids::{ChannelId, KeyId, Malformed, OrderingKey, Project, TenantId, TokenId};
use tasuki_core::{AgentId, DocumentId, HandoffId, TaskId};
use tasuki_protocol::Problem;

/// What an operation is about, as it is named apart from what is asked.
pub trait On: Sized + Send + 'static {
    /// What each of its parts is, in their order.
    const NAMES: &'static [&'static str];

    fn read(texts: &[String]) -> Result<Self, Problem>;

    /// What of it not everybody may know of.
    fn subject(&self) -> Option<Subject> {
        None
    }
}

/// Something that is not there for who may not see it.
#[derive(Debug, Clone, Copy)]
pub enum Subject {
    Handoff(HandoffId),
    Task(TaskId),
}

impl On for () {
    const NAMES: &'static [&'static str] = &[];

    fn read(_: &[String]) -> Result<Self, Problem> {
        Ok(())
    }
}

fn one<T: std::str::FromStr<Err = Malformed>>(texts: &[String]) -> Result<T, Problem> {
    let text = texts.first().map_or("", String::as_str);
    let wrong = |error| Problem::invalid("id", format!("{text:?} is no id: {error}"));
    text.parse().map_err(wrong)
}

macro_rules! named_by_one {
    ($($id:ty = $name:literal $(, $subject:path)?);+ $(;)?) => {$(
        impl On for $id {
            const NAMES: &'static [&'static str] = &[$name];

            fn read(texts: &[String]) -> Result<Self, Problem> {
                one(texts)
            }
            $(
                fn subject(&self) -> Option<Subject> {
                    Some($subject(*self))
                }
            )?
        }
    )+};
}

named_by_one! {
    TaskId = "task_id", Subject::Task;
    HandoffId = "handoff_id", Subject::Handoff;
    AgentId = "agent_id";
    TokenId = "token_id";
    TenantId = "tenant_id";
    Project = "project";
    ChannelId = "channel";
    DocumentId = "document_id";
    OrderingKey = "pipeline";
}

impl On for (AgentId, KeyId) {
    const NAMES: &'static [&'static str] = &["agent_id", "key_id"];

    fn read(texts: &[String]) -> Result<Self, Problem> {
        let part = |number: usize| texts.get(number).map_or("", String::as_str);
        let wrong = |field: &'static str| {
            move |error: Malformed| Problem::invalid(field, error.to_string())
        };
        Ok((part(0).parse().map_err(wrong("id"))?, part(1).parse().map_err(wrong("key"))?))
    }
}
