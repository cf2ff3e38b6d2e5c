// SPDX-License-Identifier: Apache-2.0
//! The engine with its sweeper and its waiters, on a clock that only moves when told.
#![cfg(test)]
#![allow(clippy::disallowed_methods, reason = "a wait by the real clock is a safety net")]

mod closing;
mod fan_out;
mod follow_ups;
mod long_polls;
mod looks;
mod offers;
mod support;
mod sweeper;
mod waits;
mod watched;
mod workers;
