// SPDX-License-Identifier: Apache-2.0
//! A secret key in a file of its own: the key on the first line, then what is known about it as
//! lines of `name: value`. Only its owner may be able to read it, and it is never overwritten.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tasuki_core::AgentId;
use tasuki_core::identity::{PublicKey, SecretKey, Signature, statement};
use tasuki_core::ids::KeyId;
use tasuki_core::registry::Signed;
use zeroize::Zeroizing;

use crate::exit::{Exit, Failure};

const BYTES_MAX: usize = 4096;
/// What belongs to a file's group and to everybody else.
const OTHERS: u32 = 0o077;

pub struct KeyFile {
    pub path: PathBuf,
    /// Whose key it is, if the file says so.
    pub agent: Option<AgentId>,
    /// The key of the broker where it was enrolled, if the file says so: what is signed is for no other.
    pub broker: Option<KeyId>,
    pub(super) secret: SecretKey,
}

impl KeyFile {
    /// Makes a key and the file for it.
    pub fn create(path: &Path, agent: Option<&AgentId>) -> Result<Self, Failure> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *seed).expect("the system gives random bytes");
        let made = Self {
            path: path.to_owned(),
            agent: agent.cloned(),
            broker: None,
            secret: SecretKey::from_seed(*seed),
        };
        let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = new.map_err(|error| cannot_make(path, &error))?;
        if let Err(error) = made.write(file) {
            // Half a key is none, and its file would be in the way of the next try.
            let _ = std::fs::remove_file(path);
            return Err(cannot_make(path, &error));
        }
        Ok(made)
    }

    fn write(&self, mut file: File) -> io::Result<()> {
        file.write_all(self.secret.to_text().as_bytes())?;
        file.write_all(b"\n")?;
        if let Some(agent) = &self.agent {
            writeln!(file, "agent: {agent}")?;
        }
        file.sync_all()
    }

    /// Notes the broker where the key was enrolled, unless the file names one already.
    pub fn note_broker(&self, broker: KeyId) -> Result<(), Failure> {
        if self.broker.is_some() {
            return Ok(());
        }
        let noted = OpenOptions::new().append(true).open(&self.path).and_then(|mut file| {
            writeln!(file, "broker: {broker}")?;
            file.sync_all()
        });
        noted.map_err(|error| cannot_make(&self.path, &error))
    }

    /// The secret itself, for a form in which other programs want it.
    pub fn seed(&self) -> Zeroizing<[u8; 32]> {
        self.secret.seed()
    }

    pub fn read(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
        // Of the file that was opened, not of whatever has its name by now.
        let mode = file.metadata().map_err(|error| cannot_read(path, &error))?.permissions().mode();
        if mode & OTHERS != 0 {
            return Err(not_private(path, mode));
        }
        // A text that grows leaves copies of the secret behind.
        let mut text = Zeroizing::new(String::with_capacity(BYTES_MAX));
        let bytes_max = u64::try_from(BYTES_MAX).unwrap_or(u64::MAX);
        let read = file.take(bytes_max).read_to_string(&mut text);
        read.map_err(|error| cannot_read(path, &error))?;
        let (secret, agent, broker) = parse(&text).map_err(|why| {
            let hint = "`tasuki keys new` makes a key file, `tasuki agent enroll` enrolls its key";
            Failure::usage(format!("{} is no key file: {why}", path.display()), hint)
        })?;
        Ok(Self { path: path.to_owned(), agent, broker, secret })
    }

    pub fn public(&self) -> PublicKey {
        self.secret.public()
    }

    /// Shows that whoever wants this key enrolled for an agent has the key. The tenant is left
    /// out: an agent need not know in which one it will be.
    pub fn possession(&self, agent: &AgentId) -> Signature {
        let public = self.public();
        let parts = [agent.name().as_bytes(), public.as_bytes().as_slice()];
        self.secret.sign(&statement::statement("enroll", &parts))
    }

    /// Signs something that outlives a request.
    pub fn sign(&self, statement: &[u8]) -> Signed {
        Signed { key_id: self.public().id(), signature: self.secret.sign(statement) }
    }
}

/// The error repeats nothing of the text, which may be a secret in the wrong place.
fn parse(text: &str) -> Result<(SecretKey, Option<AgentId>, Option<KeyId>), String> {
    let mut lines = text.lines();
    let secret = SecretKey::from_text(lines.next().unwrap_or_default().trim_end());
    let secret = secret.map_err(|error| format!("line 1: {error}"))?;
    let (mut agent, mut broker) = (None, None);
    for (number, line) in (2..).zip(lines).filter(|(_, line)| !line.trim().is_empty()) {
        match line.split_once(':').map(|(name, value)| (name, value.trim())) {
            Some(("agent", value)) => put(&mut agent, value, "agent"),
            Some(("broker", value)) => put(&mut broker, value, "broker"),
            _ => Err("not known".into()),
        }
        .map_err(|why| format!("line {number}: {why}"))?;
    }
    Ok((secret, agent, broker))
}

fn put<T: FromStr<Err: Display>>(
    to: &mut Option<T>,
    value: &str,
    what: &str,
) -> Result<(), String> {
    if to.is_some() {
        return Err(format!("it names a second {what}"));
    }
    *to = Some(value.parse().map_err(|error: T::Err| error.to_string())?);
    Ok(())
}

fn cannot_make(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    if error.kind() == io::ErrorKind::AlreadyExists {
        let message = format!("{path} exists, and a key file is never overwritten");
        return Failure::new(Exit::Refused, message, "choose another name");
    }
    let message = format!("cannot make the key file {path}: {error}");
    Failure::new(Exit::Refused, message, "check that its folder exists and is writable")
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    let message = format!("cannot read the key file {path}: {error}");
    if error.kind() == io::ErrorKind::NotFound {
        let hint = "make a key, or name the file that has one with --key";
        return Failure::new(Exit::NotFound, message, hint)
            .next(format!("tasuki keys new --out {path}"));
    }
    Failure::new(Exit::Refused, message, "check that it is yours and is a key file")
}

fn not_private(path: &Path, mode: u32) -> Failure {
    let path = path.display();
    Failure::new(
        Exit::Refused,
        format!("others can get at the key file {path} (mode {:03o})", mode & 0o777),
        "make it private; if somebody may have read it, replace it with `tasuki keys rotate`",
    )
    .next(format!("chmod 600 {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "ed25519-secret:n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU";

    #[test]
    fn a_key_file_is_a_secret_and_perhaps_a_name() {
        let agent = |more: &str| parse(&format!("{SECRET}{more}")).unwrap().1;
        assert_eq!(agent(""), None);
        assert_eq!(agent("\n\n"), None);
        assert_eq!(agent("\r\nagent: acme/coder\r\n"), Some("acme/coder".parse().unwrap()));
    }

    #[test]
    fn what_does_not_belong_into_a_key_file_is_refused_and_not_repeated() {
        for (more, why) in [
            ("x", "line 1: expected ed25519-secret:"),
            ("\nn4Ni", "line 2: not known"),
            ("\n\nagent: n4Ni!", "line 3: expected 1 to"),
            ("\nagent: a\nagent: b", "line 3: it names a second agent"),
            ("\nbroker: n4Ni", "line 2: expected"),
        ] {
            let error = parse(&format!("{SECRET}{more}")).unwrap_err();
            assert!(error.starts_with(why) && !error.contains("n4Ni"), "{error}");
        }
    }

    #[test]
    fn a_file_that_was_made_is_private_reads_back_and_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.key");
        let agent: AgentId = "coder".parse().unwrap();
        let made = KeyFile::create(&path, Some(&agent)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let read = KeyFile::read(&path).unwrap();
        assert_eq!((read.public(), read.agent), (made.public(), Some(agent)));
        assert_eq!(KeyFile::create(&path, None).err().unwrap().exit, Exit::Refused);
        assert_eq!(KeyFile::read(&path).unwrap().public(), made.public());
    }

    #[test]
    fn the_broker_is_noted_once_and_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.key");
        let agent: AgentId = "coder".parse().unwrap();
        let file = KeyFile::create(&path, Some(&agent)).unwrap();
        file.note_broker(KeyId(7)).unwrap();
        let file = KeyFile::read(&path).unwrap();
        assert_eq!((file.broker, file.agent.as_ref()), (Some(KeyId(7)), Some(&agent)));
        file.note_broker(KeyId(8)).unwrap();
        assert_eq!(KeyFile::read(&path).unwrap().broker, Some(KeyId(7)));
    }

    #[test]
    fn a_file_that_anybody_else_can_read_or_change_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.key");
        KeyFile::create(&path, None).unwrap();
        for mode in [0o640, 0o604, 0o620, 0o601] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let failure = KeyFile::read(&path).err().unwrap();
            assert!(failure.message.contains(&format!("mode {mode:03o}")), "{failure}");
        }
    }
}
