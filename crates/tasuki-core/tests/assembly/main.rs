// SPDX-License-Identifier: Apache-2.0
//! What holds for every assembly: properties over random requests (`properties.rs`), and stories
//! about single rules (`stories.rs`, `asked.rs`), hostile texts (`hostile.rs`), and whole prompts that
//! were read by a person (`read.rs`).
#![cfg(test)]

mod asked;
mod hostile;
mod properties;
mod random;
mod read;
mod stories;
