// SPDX-License-Identifier: Apache-2.0
//! One file per noun.

pub(crate) mod bench;
pub(crate) mod serve;
