// SPDX-License-Identifier: Apache-2.0
//! Sums over the rows that decide: who is known, and what is not at its end. The rows follow from the
//! log and are believed when they are loaded, so that a start need not read the whole log; the sums
//! tell whether they are still what was written. A row's hash is keyed with a secret that follows from
//! the broker's key, and so is the seal over all sums: who can write the database and does not have the
//! key can neither make a row that fits nor a sum that does. A sum does not depend on the order of
//! its rows, so changing one costs as little as writing it.

use ed25519_dalek::SigningKey;
use sha2::{Digest, Sha256};
use tasuki_core::Position;

/// How many sums there are: a difference is looked for in a part of the rows.
pub(crate) const BUCKETS: usize = 64;
const SUM_BYTES: usize = 16;
const SEAL_BYTES: usize = 3 * 8 + BUCKETS * SUM_BYTES + 32;

/// The secret that rows are hashed with.
#[derive(Clone)]
pub(crate) struct RowKey([u8; 32]);

/// What one row adds to the sum of its bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowHash {
    bucket: usize,
    value: u128,
}

impl RowKey {
    pub(crate) fn of(key: &SigningKey) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"tasuki rows v1\n");
        hash.update(key.to_bytes());
        Self(hash.finalize().into())
    }

    /// From a secret that is kept in a file of its own.
    pub(crate) fn from_secret(secret: &[u8; 32]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"tasuki shared rows v1\n");
        hash.update(secret);
        Self(hash.finalize().into())
    }

    /// The hash of a row. Every value goes in with its length, so that none runs into the next.
    pub(crate) fn row<'v>(
        &self,
        kind: &'v str,
        id: &'v str,
        values: impl IntoIterator<Item = &'v [u8]>,
    ) -> RowHash {
        let mut hash = Sha256::new();
        hash.update(self.0);
        for value in [kind.as_bytes(), id.as_bytes()].into_iter().chain(values) {
            hash.update((value.len() as u64).to_le_bytes());
            hash.update(value);
        }
        let digest: [u8; 32] = hash.finalize().into();
        let bucket = id.bytes().fold(0u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
        let value = u128::from_le_bytes(digest[..SUM_BYTES].try_into().expect("16 of 32 bytes"));
        RowHash { bucket: usize::from(bucket) % BUCKETS, value }
    }

    fn seal(&self, statement: &[u8]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(b"seal");
        hash.update((statement.len() as u64).to_le_bytes());
        hash.update(statement);
        hash.finalize().into()
    }
}

/// One sum for each bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sums([u128; BUCKETS]);

impl Default for Sums {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl Sums {
    pub(crate) fn add(&mut self, row: RowHash) {
        self.0[row.bucket] = self.0[row.bucket].wrapping_add(row.value);
    }

    pub(crate) fn remove(&mut self, row: RowHash) {
        self.0[row.bucket] = self.0[row.bucket].wrapping_sub(row.value);
    }

    /// A row that is written in place of another one.
    pub(crate) fn replace(&mut self, old: Option<RowHash>, new: Option<RowHash>) {
        old.into_iter().for_each(|row| self.remove(row));
        new.into_iter().for_each(|row| self.add(row));
    }
}

/// What the rows are, as it is kept with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seal {
    /// The last event of which nothing is missing in the rows: what comes after it is replayed.
    pub(crate) projected: Position,
    /// The log's end when they were written.
    pub(crate) position: Position,
    pub(crate) epoch: u64,
    pub(crate) sums: Sums,
}

impl Seal {
    pub(crate) fn to_bytes(&self, key: &RowKey) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SEAL_BYTES);
        for number in [self.projected.0, self.position.0, self.epoch] {
            bytes.extend(number.to_le_bytes());
        }
        self.sums.0.iter().for_each(|sum| bytes.extend(sum.to_le_bytes()));
        let seal = key.seal(&bytes);
        bytes.extend(seal);
        bytes
    }

    /// Reads a seal, if it was made with this key.
    pub(crate) fn read(bytes: &[u8], key: &RowKey) -> Option<Self> {
        if bytes.len() != SEAL_BYTES {
            return None;
        }
        let (statement, seal) = bytes.split_at(SEAL_BYTES - 32);
        if key.seal(statement) != seal {
            return None;
        }
        let (numbers, sums) = statement.split_at(3 * 8);
        let number =
            |place: usize| numbers[8 * place..][..8].try_into().map_or(0, u64::from_le_bytes);
        let mut found = Sums::default();
        for (sum, bytes) in found.0.iter_mut().zip(sums.chunks_exact(SUM_BYTES)) {
            *sum = u128::from_le_bytes(bytes.try_into().expect("chunks of 16 bytes"));
        }
        Some(Self {
            projected: Position(number(0)),
            position: Position(number(1)),
            epoch: number(2),
            sums: found,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> RowKey {
        RowKey::of(&SigningKey::from_bytes(&[seed; 32]))
    }

    #[test]
    fn a_sum_does_not_depend_on_the_order_and_forgets_what_is_removed() {
        let rows: Vec<_> =
            (0..200).map(|n| key(1).row("task", &format!("task_{n}"), [b"x".as_slice()])).collect();
        let mut there = Sums::default();
        rows.iter().for_each(|row| there.add(*row));
        let mut back = Sums::default();
        rows.iter().rev().for_each(|row| back.add(*row));
        assert_eq!(there, back);
        rows.iter().for_each(|row| back.remove(*row));
        assert_eq!(back, Sums::default());
    }

    #[test]
    fn values_do_not_run_into_each_other_and_the_key_counts() {
        let row = |seed, values: [&[u8]; 2]| key(seed).row("task", "a", values);
        assert_ne!(row(1, [b"ab", b"c"]), row(1, [b"a", b"bc"]));
        assert_ne!(row(1, [b"ab", b"c"]), row(2, [b"ab", b"c"]));
    }

    #[test]
    fn a_seal_is_read_by_its_own_key_and_only_as_it_was_written() {
        let mut sums = Sums::default();
        sums.add(key(1).row("task", "a", []));
        let seal = Seal { projected: Position(3), position: Position(5), epoch: 2, sums };
        let bytes = seal.to_bytes(&key(1));
        assert_eq!(Seal::read(&bytes, &key(1)), Some(seal));
        assert_eq!(Seal::read(&bytes, &key(2)), None);
        for place in 0..bytes.len() {
            let mut other = bytes.clone();
            other[place] ^= 1;
            assert_eq!(Seal::read(&other, &key(1)), None, "byte {place}");
        }
        assert_eq!(Seal::read(&bytes[1..], &key(1)), None);
    }
}
