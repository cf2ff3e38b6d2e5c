// SPDX-License-Identifier: Apache-2.0

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tasuki_core::Cursor;
use tasuki_store::maintenance;

use crate::client::Connect;
use crate::config::Directory;
use crate::exit::{Exit, Failure};
use crate::output::{Output, progress, stdout};

#[derive(Args)]
pub(super) struct Export {
    /// Read a data directory instead of asking a broker; it may be in use
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to write to; stdout without it
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Only what comes after the line with this `cursor`; such a file cannot be verified by itself
    #[arg(long, value_name = "CURSOR", conflicts_with = "data")]
    after: Option<Cursor>,
}

#[derive(Serialize)]
struct Written {
    file: String,
    lines: u64,
}

impl Export {
    pub(super) async fn run(self, connect: &Connect, output: Output) -> anyhow::Result<Exit> {
        let Some(to) = &self.to else {
            let mut writer = stdout();
            self.write(connect, &mut writer).await?;
            writer.flush()?;
            return Ok(Exit::Done);
        };
        let part = part_of(to)?;
        let file = File::create(&part).map_err(|error| cannot_write(to, &error))?;
        let mut writer = BufWriter::new(file);
        let written = self.write(connect, &mut writer).await;
        let written = written.and_then(|lines| {
            writer.flush()?;
            writer.get_ref().sync_all()?;
            std::fs::rename(&part, to)?;
            Ok(Written { file: to.display().to_string(), lines })
        });
        if written.is_err() {
            // Half a log would look like a whole one.
            let _ = std::fs::remove_file(&part);
        }
        output.found(&written?, |written| {
            format!(
                "wrote {} lines to {}\nnext: tasuki audit verify --file {}\n",
                written.lines, written.file, written.file
            )
        })?;
        Ok(Exit::Done)
    }

    async fn write(&self, connect: &Connect, to: &mut dyn Write) -> anyhow::Result<u64> {
        match &self.data {
            Some(data) => directory(data, to),
            None => self.broker(connect, to).await,
        }
    }

    async fn broker(&self, connect: &Connect, to: &mut dyn Write) -> anyhow::Result<u64> {
        let client = connect.client()?;
        // How much there is between two cursors, only the broker could tell.
        let bar = progress("exporting", None);
        let query = [("after", self.after.map(|after| after.to_string()))];
        let mut stream = client.stream("/v1/audit/export", &query).await?;
        let mut lines = 0;
        while let Some(piece) = stream.chunk().await.map_err(|error| client.unreachable(&error))? {
            to.write_all(&piece)?;
            lines += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
            bar.set_position(lines);
        }
        bar.finish_and_clear();
        Ok(lines)
    }
}

fn directory(data: &Path, to: &mut dyn Write) -> anyhow::Result<u64> {
    let dir = Directory { data: Some(data.to_owned()) }.existing()?;
    let bar = progress("exporting", Some(maintenance::count(&dir)?));
    let lines = maintenance::export(&dir, to, &mut |done| bar.set_position(done))?;
    bar.finish_and_clear();
    Ok(lines)
}

/// What is written first, beside the file that is to be.
fn part_of(to: &Path) -> Result<PathBuf, Failure> {
    if to.exists() {
        let message = format!("{} exists", to.display());
        return Err(Failure::new(Exit::Refused, message, "choose another name, or remove it"));
    }
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    Ok(part.into())
}

fn cannot_write(to: &Path, error: &std::io::Error) -> Failure {
    let message = format!("cannot write {}: {error}", to.display());
    Failure::new(Exit::Refused, message, "check that its folder exists and is writable")
}
