// SPDX-License-Identifier: Apache-2.0

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tasuki_store::{FILE, maintenance};

use crate::config::Directory;
use crate::exit::{Exit, Failure};
use crate::output::{Output, progress};

#[derive(Args)]
pub(crate) struct Restore {
    /// The backup to take
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    #[command(flatten)]
    directory: Directory,
}

#[derive(Serialize)]
struct Restored {
    data: String,
    events: u64,
    tasks: u64,
}

impl Restore {
    pub(crate) fn run(self, output: Output) -> anyhow::Result<Exit> {
        let dir = self.directory.path()?;
        if !self.from.exists() {
            let message = format!("there is no file {}", self.from.display());
            let hint = "name a file that `tasuki backup` wrote";
            return Err(Failure::new(Exit::NotFound, message, hint).into());
        }
        if dir.join(FILE).exists() {
            let message = format!("there is data in {} already", dir.display());
            let hint = "restore into another directory; nothing is ever written over";
            let next = format!("tasuki restore --from {} --data NEW_DIR", self.from.display());
            return Err(Failure::new(Exit::Refused, message, hint).next(next).into());
        }
        let bar = progress("verifying", None);
        let verdict = maintenance::restore(&self.from, &dir, &mut |done| bar.set_position(done))?;
        bar.finish_and_clear();
        let restored = Restored {
            data: dir.display().to_string(),
            events: verdict.events,
            tasks: verdict.tasks,
        };
        output.found(&restored, |restored| {
            format!(
                "restored {} events of {} tasks into {}; claims from before are stale\n\
                 next: tasuki serve --data {}\n",
                restored.events, restored.tasks, restored.data, restored.data
            )
        })?;
        Ok(Exit::Done)
    }
}
