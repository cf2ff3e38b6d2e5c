// SPDX-License-Identifier: Apache-2.0
//! Looking at SQLite's write-ahead log before SQLite does. SQLite takes the first frame that does not
//! fit for the end and drops what follows without a word. That is right for a batch that was being
//! written when the power failed; but a batch is synced before the next one begins, so a bad frame with
//! a whole later batch behind it is damage, and what follows it was acknowledged.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const MAGIC: u32 = 0x377f_0682;
const PAGE_BYTES_MAX: u32 = 65_536;

/// Which frame of the log is bad although a whole batch follows it, if one is.
pub(super) fn damage(path: &Path) -> io::Result<Option<u64>> {
    match File::open(path) {
        Ok(file) => scan(&mut BufReader::with_capacity(1 << 20, file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A running checksum over pairs of words.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Sum(u32, u32);

impl Sum {
    fn over(mut self, bytes: &[u8], big_endian: bool) -> Self {
        let word = |bytes: &[u8]| {
            let bytes = bytes.try_into().expect("four bytes");
            if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        for pair in bytes.chunks_exact(8) {
            self.0 = self.0.wrapping_add(word(&pair[..4])).wrapping_add(self.1);
            self.1 = self.1.wrapping_add(word(&pair[4..])).wrapping_add(self.0);
        }
        self
    }

    fn stored(bytes: &[u8]) -> Self {
        Self(number(&bytes[..4]), number(&bytes[4..8]))
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

fn scan(log: &mut impl Read) -> io::Result<Option<u64>> {
    let mut header = [0; HEADER_BYTES];
    if !filled(log, &mut header)? {
        return Ok(None);
    }
    let magic = number(&header[..4]);
    let page_bytes = number(&header[8..12]);
    let big_endian = magic & 1 == 1;
    let sum = Sum(0, 0).over(&header[..24], big_endian);
    let known = magic & !1 == MAGIC && (512..=PAGE_BYTES_MAX).contains(&page_bytes);
    // A header is synced before the first batch is written, so one that does not fit is no log yet.
    if !known || sum != Sum::stored(&header[24..]) {
        return Ok(None);
    }
    let salts = header[16..24].to_owned();
    let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes as usize];
    let mut before = sum;
    let mut first_bad = None;
    // Whether the batch with the bad frame has come to its end, and what follows so far fits.
    let mut later = false;
    for place in 1.. {
        if !filled(log, &mut frame)? {
            return Ok(None);
        }
        let same_generation = frame[8..16] == salts;
        let stored = Sum::stored(&frame[16..24]);
        let content = before.over(&frame[..8], big_endian).over(&frame[24..], big_endian);
        let fits = same_generation && content == stored;
        let ends_batch = number(&frame[4..8]) != 0;
        // Each frame's sum goes on from the one that is stored before it.
        before = stored;
        match first_bad {
            None if fits => {}
            None => {
                first_bad = Some(place);
                later = same_generation && ends_batch;
            }
            Some(bad) if later && fits && ends_batch => return Ok(Some(bad)),
            Some(_) if later && fits => {}
            Some(_) => later = same_generation && ends_batch,
        }
    }
    Ok(None)
}

/// Whether there was as much as was asked for.
fn filled(from: &mut impl Read, to: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
