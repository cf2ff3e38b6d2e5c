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
    /// Go on with what is left of a damaged log: what was acknowledged after it is given up, and
    /// every claim so far is stale
    #[arg(long)]
    accept_loss: bool,
}

#[derive(Serialize)]
struct Rebuilt {
    data: String,
    events: u64,
    /// Where the damaged write-ahead log was put.
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged: Option<String>,
}

impl Rebuild {
    pub(crate) fn run(self, output: Output) -> anyhow::Result<Exit> {
        let dir = self.directory.existing()?;
        let bar = progress("rebuilding", Some(maintenance::count(&dir)?));
        let clock = SystemClock::start();
        let mut tell = |done| bar.set_position(done);
        let (events, damaged) = match self.accept_loss {
            true => maintenance::accept_loss(&dir, &*clock, &mut tell)?,
            false => (maintenance::rebuild(&dir, &*clock, &mut tell)?, None),
        };
        bar.finish_and_clear();
        let damaged = damaged.map(|path| path.display().to_string());
        let rebuilt = Rebuilt { data: dir.display().to_string(), events, damaged };
        output.found(&rebuilt, |rebuilt| {
            let mut text = format!("made {} anew from {} events\n", rebuilt.data, rebuilt.events);
            if let Some(damaged) = &rebuilt.damaged {
                text += &format!("the damaged write-ahead log is kept in {damaged}\n");
            }
            if self.accept_loss {
                text += "the next start raises the fence epoch: every claim so far is stale\n";
            }
            text
        })?;
        Ok(Exit::Done)
    }
}
