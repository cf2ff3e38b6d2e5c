// SPDX-License-Identifier: Apache-2.0

use clap::Args;
use serde::Serialize;
use tasuki_store::{SystemClock, maintenance};

use crate::config::Directory;
use crate::exit::Exit;
use crate::output::{Output, progress};

#[derive(Args)]
pub(crate) struct Rebuild {
    #[command(flatten)]
    directory: Directory,
}

#[derive(Serialize)]
struct Rebuilt {
    data: String,
    events: u64,
}

impl Rebuild {
    pub(crate) fn run(self, output: Output) -> anyhow::Result<Exit> {
        let dir = self.directory.existing()?;
        let bar = progress("rebuilding", Some(maintenance::count(&dir)?));
        let clock = SystemClock::start();
        let events = maintenance::rebuild(&dir, &*clock, &mut |done| bar.set_position(done))?;
        bar.finish_and_clear();
        let rebuilt = Rebuilt { data: dir.display().to_string(), events };
        output.found(&rebuilt, |rebuilt| {
            format!("made {} anew from {} events\n", rebuilt.data, rebuilt.events)
        })?;
        Ok(Exit::Done)
    }
}
