// SPDX-License-Identifier: Apache-2.0

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Exit;
use crate::output::print;

#[derive(Args)]
pub(crate) struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        // Into memory first: the generator panics where its reader goes away.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "tasuki", &mut script);
        print(&String::from_utf8(script)?)?;
        Ok(Exit::Done)
    }
}
