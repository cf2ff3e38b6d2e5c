// SPDX-License-Identifier: Apache-2.0
//! Attacks on the real binary by somebody who can write its database and does not have its key: one file
//! for each wall of `docs/security.md`.
#![cfg(test)]

mod rows;
