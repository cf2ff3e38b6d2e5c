// SPDX-License-Identifier: Apache-2.0
//! One file per noun, or a folder where a noun has many verbs.

pub(crate) mod agent;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod chain;
pub(crate) mod completions;
pub(crate) mod context;
pub(crate) mod dlq;
pub(crate) mod doctor;
pub(crate) mod envelope;
pub(crate) mod handoff;
pub(crate) mod keys;
pub(crate) mod memory;
pub(crate) mod migrate;
pub(crate) mod ready;
pub(crate) mod rebuild;
pub(crate) mod reference;
pub(crate) mod restore;
pub(crate) mod serve;
pub(crate) mod stats;
pub(crate) mod task;
pub(crate) mod tenant;
pub(crate) mod token;
