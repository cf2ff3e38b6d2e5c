// SPDX-License-Identifier: Apache-2.0
//! Commands that were here once and are a program of their own now.

use clap::Args;

use crate::client::quoted;
use crate::exit::{Exit, Failure};

#[derive(Args)]
pub(crate) struct Moved {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

impl Moved {
    pub(crate) fn run(self, name: &str) -> anyhow::Result<Exit> {
        let words = ["tasuki-tools", name].map(String::from).into_iter();
        let words: Vec<_> = words.chain(self.rest.iter().map(|word| quoted(word))).collect();
        let message = format!("`{name}` is in a program of its own, `tasuki-tools`");
        let hint = "it is shipped beside `tasuki`; from source: `cargo build -p tasuki-tools`";
        Err(Failure::usage(message, hint).next(words.join(" ")).into())
    }
}
