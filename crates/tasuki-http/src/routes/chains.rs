// SPDX-License-Identifier: Apache-2.0
//! The part of the table that is about chains of other brokers.

use super::{Route, does, reads};
use crate::handlers::chains;
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
        .errors(&["invalid_document", "secret_found", "disk_full"]),
        reads::<wire::ImportedChains, _, _>(
            "/v1/chains",
            "chain_list",
            "List imported chains, the last one first",
            chains::list,
        )
        .query::<chains::List>()
        .errors(&["invalid_request"]),
        reads::<wire::ImportedChainWithFile, _, _>(
            "/v1/chains/{id}",
            "chain_show",
            "Show an imported chain with its file, and whether it is whole",
            chains::show,
        )
        .errors(&["chain_not_found", "invalid_request"]),
    ]
}
