// SPDX-License-Identifier: Apache-2.0
//! The key that signs checkpoints. It stays in the broker's own directory, so that a copy of the
//! database does not carry it away.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub use ed25519_dalek::SigningKey;

/// Reads the key of a directory, or makes one on the first start.
pub fn load(dir: &Path) -> io::Result<SigningKey> {
    Ok(SigningKey::from_bytes(&secret(&dir.join("broker.key"))?))
}

/// Reads the 32 secret bytes of a file, or makes them where it is not there.
pub fn secret(path: &Path) -> io::Result<[u8; 32]> {
    let mut secret = [0; 32];
    match File::open(path) {
        Ok(mut file) => {
            crate::private::check_secret(path)?;
            crate::private::file(path)?;
            file.read_exact(&mut secret)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            getrandom::fill(&mut secret).expect("the system gives random bytes");
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(&secret)?;
            file.sync_all()?;
        }
        Err(error) => return Err(error),
    }
    Ok(secret)
}
