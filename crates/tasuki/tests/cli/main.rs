// SPDX-License-Identifier: Apache-2.0
//! The real binary, as people and scripts use it.
#![cfg(test)]

mod agents;
mod chain;
mod config;
mod data;
mod demo;
mod dev;
mod doctor;
mod errors;
mod explain;
mod first;
mod handoff;
mod json;
mod memory;
mod old_data;
mod pages;
mod postgres;
mod private;
mod profiles;
mod remembered;
mod serve;
mod short_ids;
mod tls;
mod tree;
mod work;
