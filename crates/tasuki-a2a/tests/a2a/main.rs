// SPDX-License-Identifier: Apache-2.0
//! The A2A door, as clients and workers meet it: on both stores, with restarts in the middle.
#![allow(clippy::unwrap_used, reason = "what goes wrong in here is the end of a test")]
#![allow(clippy::needless_pass_by_value, reason = "requests are written where they are sent")]

mod bindings;
mod cards;
mod doors;
mod hostile;
mod older;
mod out;
mod push;
mod stage;
mod strangers;
mod streams;
mod work;
