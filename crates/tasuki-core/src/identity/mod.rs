// SPDX-License-Identifier: Apache-2.0
//! Keys, and what is signed with them: requests ([`message`], [`digest`]) and statements that
//! outlive a request ([`statement`]). Nothing here knows who owns a key, whether it was revoked, or
//! which nonces were seen; that takes memory, and memory is the store's.

pub mod digest;
mod fault;
mod field;
mod key;
pub mod message;
pub mod statement;

pub use fault::Fault;
pub use key::{PublicKey, SecretKey, Signature};
pub use message::{Presented, Request};

#[cfg(test)]
mod tests;
