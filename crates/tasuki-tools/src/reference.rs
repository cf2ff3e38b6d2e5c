// SPDX-License-Identifier: Apache-2.0
//! Pages of the reference that are made from the code. A test compares them with what is committed
//! in `docs/reference/`.

use clap::{Args, CommandFactory, ValueEnum};
use tasuki_cli::exit::Exit;
use tasuki_cli::output::print;
use tasuki_cli::reference::commands;

use crate::{Cli, conformance};

#[derive(Args)]
pub(crate) struct Reference {
    page: Page,
}

#[derive(Clone, Copy, ValueEnum)]
enum Page {
    Tools,
    Conformance,
}

const TOOLS_HEAD: &str = "\
# Tools

Printed by `tasuki-tools reference tools` from the code itself. Do not edit.

`tasuki-tools` is a program of its own, shipped beside `tasuki`: it holds any server against the
protocol and measures brokers, over HTTP and nothing else. `--json`, `--url` and the exit codes are
those of [`tasuki`](cli.md).
";

impl Reference {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        print(&match self.page {
            Page::Tools => TOOLS_HEAD.to_owned() + &commands(Cli::command()),
            Page::Conformance => conformance::page(),
        })?;
        Ok(Exit::Done)
    }
}
