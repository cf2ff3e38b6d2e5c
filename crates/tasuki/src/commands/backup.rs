// SPDX-License-Identifier: Apache-2.0

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tasuki_store::{FILE, maintenance};

use crate::config::Directory;
use crate::exit::{Exit, Failure};
use crate::output::{Output, bytes, progress};

/// How often the growing file is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Args)]
pub(crate) struct Backup {
    #[command(flatten)]
    directory: Directory,
    /// The file to write; must not be there yet
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

#[derive(Serialize)]
struct Written {
    file: String,
    bytes: u64,
}

impl Backup {
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<Exit> {
        let dir = self.directory.existing()?;
        if self.to.exists() {
            let message = format!("{} exists", self.to.display());
            let hint = "choose another name, or remove it";
            return Err(Failure::new(Exit::Refused, message, hint).into());
        }
        let to = self.to.clone();
        let total = size(&dir.join(FILE));
        let mut copying = tokio::task::spawn_blocking(move || maintenance::backup(&dir, &to));
        let bar = progress("copying", Some(total));
        let part = self.to.with_extension("part");
        let copied = loop {
            tokio::select! {
                copied = &mut copying => break copied?,
                () = tokio::time::sleep(LOOK_EVERY) => bar.set_position(size(&part).min(total)),
            }
        };
        bar.finish_and_clear();
        copied?;
        let written = Written { file: self.to.display().to_string(), bytes: size(&self.to) };
        output.found(&written, |written| {
            format!(
                "wrote {} to {}\nnext: tasuki restore --from {} --data NEW_DIR\n",
                bytes(written.bytes),
                written.file,
                written.file
            )
        })?;
        Ok(Exit::Done)
    }
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}
