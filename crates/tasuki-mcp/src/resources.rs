// SPDX-License-Identifier: Apache-2.0
//! What can be read at an address: envelopes, prompts, the stories of tasks, the contexts of projects.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde_json::{Map, Value, json};
use tasuki_core::ids::Project;
use tasuki_core::{HandoffId, TaskId};
use tasuki_engine::operations::{contexts, handoffs};
use tasuki_protocol::Problem;

use crate::broker::{self, Broker, Subject};
use crate::call::{Call, read as parsed};
use crate::holding::Holding;
use crate::tools;

const SCHEME: &str = "tasuki://";
const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";
/// How many handoffs one page of the list shows.
const PAGE: usize = 50;

/// What an address stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Envelope(HandoffId),
    Prompt(HandoffId),
    Story(TaskId),
    Context(Project),
}

pub(crate) fn envelope_uri(handoff: &HandoffId) -> String {
    Place::Envelope(*handoff).to_string()
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Envelope(handoff) => write!(f, "{SCHEME}handoffs/{handoff}/envelope"),
            Self::Prompt(handoff) => write!(f, "{SCHEME}handoffs/{handoff}/prompt"),
            Self::Story(task) => write!(f, "{SCHEME}tasks/{task}/story"),
            Self::Context(project) => write!(f, "{SCHEME}projects/{project}/context"),
        }
    }
}

impl FromStr for Place {
    type Err = ();
    fn from_str(uri: &str) -> Result<Self, ()> {
        let path = uri.strip_prefix(SCHEME).ok_or(())?;
        let (kind, rest) = path.split_once('/').ok_or(())?;
        // The name of a project may have a tenant before it, and so a slash in it.
        let (name, part) = rest.rsplit_once('/').ok_or(())?;
        let place = match (kind, part) {
            ("handoffs", "envelope") => Self::Envelope(name.parse().map_err(drop)?),
            ("handoffs", "prompt") => Self::Prompt(name.parse().map_err(drop)?),
            ("tasks", "story") => Self::Story(name.parse().map_err(drop)?),
            ("projects", "context") => Self::Context(name.parse().map_err(drop)?),
            _ => return Err(()),
        };
        // One thing has one address: what is subscribed to is what is told of.
        if place.to_string() == uri { Ok(place) } else { Err(()) }
    }
}

impl Place {
    /// What changes when it does.
    pub(crate) fn subject(&self) -> Subject {
        match self {
            Self::Envelope(handoff) | Self::Prompt(handoff) => Subject::Handoff(*handoff),
            Self::Story(task) => Subject::Task(*task),
            Self::Context(_) => Subject::Contexts,
        }
    }

    /// Its text, as the caller may read it.
    pub(crate) async fn text(&self, broker: &Arc<dyn Broker>) -> Result<String, Problem> {
        let nothing = json!({});
        match self {
            Self::Envelope(handoff) => {
                let on = [handoff.to_string()];
                broker::ask::<handoffs::Envelope>(&**broker, &on, &nothing).await
            }
            Self::Prompt(handoff) => {
                let on = [handoff.to_string()];
                let text = broker::ask::<handoffs::Prompt>(&**broker, &on, &nothing).await?;
                let prompt = parsed(&text)?;
                Ok(prompt["prompt"].as_str().unwrap_or_default().to_owned())
            }
            Self::Story(task) => {
                let call = Call::quiet(broker.clone(), Arc::new(Holding::default()));
                Ok(tools::story(&call, &[task.to_string()]).await?.to_string())
            }
            Self::Context(project) => {
                let on = [project.to_string()];
                broker::ask::<contexts::Show>(&**broker, &on, &nothing).await
            }
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Prompt(_) => MARKDOWN,
            Self::Envelope(_) | Self::Story(_) | Self::Context(_) => JSON,
        }
    }
}

pub(crate) async fn read(
    place: &Place,
    broker: &Arc<dyn Broker>,
) -> Result<ReadResourceResult, Problem> {
    let text = place.text(broker).await?;
    let contents = ResourceContents::text(text, place.to_string()).with_mime_type(place.kind());
    Ok(ReadResourceResult::new(vec![contents]))
}

/// What can be read of the newest handoffs that the caller may see, page by page.
pub(crate) async fn listed(
    broker: &dyn Broker,
    after: Option<String>,
) -> Result<ListResourcesResult, Problem> {
    let mut asked = Map::new();
    asked.insert("limit".into(), json!(PAGE));
    asked.extend(after.map(|after| ("before".to_owned(), json!(after))));
    let text = broker::ask::<handoffs::List>(broker, &[], &Value::Object(asked)).await?;
    let page = parsed(&text)?;
    let mut resources = Vec::new();
    for handoff in page["handoffs"].as_array().into_iter().flatten() {
        let from = handoff["from_agent"].as_str().unwrap_or_default();
        let state = handoff["state"].as_str().unwrap_or_default();
        let id = handoff["handoff_id"].as_str().and_then(|id| id.parse().ok());
        let task = handoff["task_id"].as_str().and_then(|id| id.parse().ok());
        let (Some(id), Some(task)) = (id, task) else { continue };
        let says = format!("Work from {from}, {state}");
        for (place, title) in [
            (Place::Prompt(id), "What its receiver reads"),
            (Place::Envelope(id), "Its envelope, exactly as it was stored"),
            (Place::Story(task), "What happened to its task"),
        ] {
            let uri = place.to_string();
            if resources.iter().any(|known: &Resource| known.uri == uri) {
                continue;
            }
            let resource = Resource::new(uri.clone(), uri.trim_start_matches(SCHEME));
            let resource = resource.with_title(title).with_description(says.clone());
            resources.push(resource.with_mime_type(place.kind()));
        }
    }
    let mut result = ListResourcesResult::with_all_items(resources);
    result.next_cursor = page["next"].as_str().map(str::to_owned);
    Ok(result)
}

pub(crate) fn templates() -> ListResourceTemplatesResult {
    let template = |path: &str, name: &str, title: &str, kind: &str| {
        ResourceTemplate::new(format!("{SCHEME}{path}"), name)
            .with_title(title)
            .with_mime_type(kind)
    };
    ListResourceTemplatesResult::with_all_items(vec![
        template(
            "handoffs/{handoff_id}/envelope",
            "envelope",
            "An envelope, as it was stored",
            JSON,
        ),
        template("handoffs/{handoff_id}/prompt", "prompt", "What a receiver reads", MARKDOWN),
        template("tasks/{task_id}/story", "story", "What happened to a task", JSON),
        template("projects/{project}/context", "context", "What a project agreed on", JSON),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        let places = [
            Place::Envelope(HandoffId(7)),
            Place::Prompt(HandoffId(7)),
            Place::Story(TaskId(9)),
            Place::Context("shop".parse().unwrap()),
        ];
        for place in places {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
    }

    #[test]
    fn what_is_no_address_of_ours_is_nothing() {
        for wrong in [
            "",
            "tasuki://",
            "http://handoffs/x/prompt",
            "tasuki://handoffs/x/prompt",
            "tasuki://handoffs//prompt",
            "tasuki://projects/shop/story",
            "tasuki://projects/a b/context",
            "tasuki://projects/shop/context/",
        ] {
            assert_eq!(wrong.parse::<Place>(), Err(()), "{wrong:?}");
        }
    }
}
