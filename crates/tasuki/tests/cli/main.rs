// SPDX-License-Identifier: Apache-2.0
//! The real binary, as people and scripts use it.
#![cfg(test)]

mod agents;
mod breakages;
mod chain;
mod config;
mod conformance;
mod data;
mod demo;
mod doctor;
mod errors;
mod explain;
mod handoff;
mod json;
mod memory;
mod pages;
mod postgres;
mod proxy;
mod serve;
mod stage;
