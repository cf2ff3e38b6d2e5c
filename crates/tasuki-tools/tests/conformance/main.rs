// SPDX-License-Identifier: Apache-2.0
//! The runner of the conformance checks, against our own server and against many that break a rule.
#![cfg(test)]

mod breakages;
mod pages;
mod proxy;
mod runs;
