// SPDX-License-Identifier: Apache-2.0
//! What happens to the real binary when the world does not help: killed at any moment, a disk that
//! fails or fills up, a clock that jumps, a worker that freezes. Each outcome is the one that the
//! design names.
#![cfg(test)]

mod broadcast;
mod broker;
mod clock;
mod disk;
mod kill;
mod nodes;
mod power;
mod workers;
mod zombie;
