// SPDX-License-Identifier: Apache-2.0

use clap::Args;
use serde_json::Value;
use tasuki_core::canonical::Body;
use tasuki_core::identity::statement;
use tasuki_protocol as wire;

use super::post;
use crate::args::json;
use crate::client::Client;
use crate::output::Output;

#[derive(Args)]
pub(super) struct Publish {
    /// The manifest: a file, - for stdin, or JSON in place
    manifest: String,
    /// Publish only if the manifest so far has this version; 0 if there must be none
    #[arg(long, value_name = "N")]
    if_version: Option<u32>,
}

impl Publish {
    pub(super) async fn run(self, client: &Client, output: Output) -> anyhow::Result<()> {
        let manifest: Value = json("the manifest", &as_json_argument(&self.manifest))?;
        let hash = Body::of(&manifest).hash;
        let signed = client.key().map(|key| key.sign(&statement::manifest(hash)));
        let body = wire::Publish { manifest, signed, version: self.if_version };
        post(client, output, "/v1/agents", &body).await
    }
}

/// A manifest is an object, so what does not begin like one is the name of a file.
fn as_json_argument(given: &str) -> String {
    if given == "-" || given.starts_with('@') || given.trim_start().starts_with('{') {
        return given.to_owned();
    }
    format!("@{given}")
}

#[cfg(test)]
mod tests {
    use super::as_json_argument;

    #[test]
    fn what_is_no_json_names_a_file() {
        let given = ["-", "@a.json", " {\"a\":1}", "a.json", "-x"].map(as_json_argument);
        assert_eq!(given, ["-", "@a.json", " {\"a\":1}", "@a.json", "@-x"]);
    }
}
