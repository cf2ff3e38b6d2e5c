// SPDX-License-Identifier: Apache-2.0
//! What callers ask for in the published form, and what they are shown.

pub mod asked;
pub mod shown;
