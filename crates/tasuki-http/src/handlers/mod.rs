// SPDX-License-Identifier: Apache-2.0
//! Handlers, one file per noun: convert, call, convert.

pub(crate) mod agents;
pub(crate) mod assemble;
pub(crate) mod audit;
pub(crate) mod chains;
pub(crate) mod claims;
pub(crate) mod contexts;
pub(crate) mod dead_letters;
pub(crate) mod handoffs;
pub(crate) mod memories;
pub(crate) mod patterns;
pub(crate) mod system;
pub(crate) mod tasks;

use axum::response::Response;

use crate::error::Failed;

pub(crate) type Answer = Result<Response, Failed>;
