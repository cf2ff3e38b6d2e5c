// SPDX-License-Identifier: Apache-2.0
//! The part of the table that is about chains of other brokers.

use super::{Route, does, reads};
use crate::handlers::chains;
use tasuki_protocol::Code;

use crate::wire;

pub(super) fn routes() -> Vec<Route> {
    vec![
        does::<wire::ImportChain, wire::ImportedChain, _, _>(
            "/v1/chains",
            "chain_import",
            "Keep a chain that another broker exported, for reading",
            chains::import,
        )
        .creates()
        .errors(&[Code::InvalidDocument, Code::SecretFound, Code::DiskFull]),
        reads::<wire::ImportedChains, _, _>(
            "/v1/chains",
            "chain_list",
            "List imported chains, the last one first",
            chains::list,
        )
        .query::<chains::List>()
        .errors(&[Code::InvalidRequest]),
        reads::<wire::ImportedChainWithFile, _, _>(
            "/v1/chains/{id}",
            "chain_show",
            "Show an imported chain with its file, and whether it is whole",
            chains::show,
        )
        .errors(&[Code::ChainNotFound, Code::InvalidRequest]),
    ]
}
