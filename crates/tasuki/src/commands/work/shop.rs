// SPDX-License-Identifier: Apache-2.0
//! What all pieces of work share: who works, with which command, and whether to go on.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tasuki_core::AgentId;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::job::Stdin;
use super::outcome::Codes;
use crate::client::Client;
use crate::exit::Failure;
use crate::output::tell;

pub(super) struct Shop {
    pub(super) client: Arc<Client>,
    pub(super) agent: AgentId,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) stdin: Stdin,
    pub(super) grace: Duration,
    pub(super) codes: Codes,
    pub(super) stop: Stop,
}

impl Shop {
    /// The command as failures call it.
    pub(super) fn name(&self) -> String {
        let name = self.program.file_name().unwrap_or(self.program.as_os_str());
        name.to_string_lossy().into_owned()
    }
}

/// Whether to stop: asked once, work is ended in order; asked twice, at once.
#[derive(Clone)]
pub(super) struct Stop(watch::Receiver<u8>);

impl Stop {
    /// Counts the signals that ask for an end.
    pub(super) fn listen() -> std::io::Result<Self> {
        let (tell_all, asked) = watch::channel(0_u8);
        let mut signals = [
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ];
        // Not watched: it has nothing to do but to pass signals on, as long as the process lasts.
        tokio::spawn(async move {
            loop {
                any(&mut signals).await;
                if *tell_all.borrow() == 0 {
                    tell("stopping: the work is given back; once more ends at once");
                }
                tell_all.send_modify(|asked| *asked = asked.saturating_add(1));
            }
        });
        Ok(Self(asked))
    }

    pub(super) fn is_asked(&self) -> bool {
        *self.0.borrow() > 0
    }

    pub(super) async fn asked(&self) {
        self.reaches(1).await;
    }

    pub(super) async fn hurried(&self) {
        self.reaches(2).await;
    }

    async fn reaches(&self, times: u8) {
        if self.0.clone().wait_for(|asked| *asked >= times).await.is_err() {
            // Nobody listens to signals any more, so none is heard.
            std::future::pending::<()>().await;
        }
    }
}

async fn any(signals: &mut [Signal; 3]) {
    let [interrupt, terminate, hangup] = signals;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}

/// The program that a word names, looked for as a shell does, before any work is claimed for it.
pub(super) fn program(word: &OsString) -> Result<PathBuf, Failure> {
    let named = Path::new(word);
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if named.components().count() > 1 || word.as_encoded_bytes().contains(&b'/') {
        return match is_program(named) {
            true => Ok(named.to_owned()),
            false if named.is_file() => Err(Failure::usage(
                format!("{} cannot be executed", named.display()),
                "make it executable with chmod +x, or name its interpreter first",
            )),
            false => Err(missing(named)),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(named));
    places.find(|place| is_program(place)).ok_or_else(|| missing(named))
}

fn missing(named: &Path) -> Failure {
    let message = format!("there is no program {}", named.display());
    Failure::usage(message, "name a program in PATH, or one by its path such as ./review.sh")
}
