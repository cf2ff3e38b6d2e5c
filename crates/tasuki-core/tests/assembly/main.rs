// SPDX-License-Identifier: Apache-2.0
//! What holds for every assembly: properties over random requests (`properties.rs`), and stories
//! about single rules (`stories.rs`).
#![cfg(test)]

mod properties;
mod random;
mod stories;
