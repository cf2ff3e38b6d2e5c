// SPDX-License-Identifier: Apache-2.0
//! Chains of other brokers.

use tasuki_core::registry::rules::Permission;
use tasuki_core::{DocumentId, chain};
use tasuki_protocol::{self as wire, Code};

use super::Right::{Has, Known};
use super::{Done, Facts, Operation, answer, answer_once, brings, reads};
use crate::chains::ImportedChain;
use crate::desk::Desk;

pub struct Import;

impl Operation for Import {
    const FACTS: Facts = brings(
        "chain_import",
        Has(Permission::WriteMemory),
        "Keep a chain that another broker exported, for reading",
    )
    .errors(&[&[Code::InvalidDocument, Code::SecretFound, Code::DiskFull]]);
    type On = ();
    type In = wire::ImportChain;
    type Out = wire::ImportedChain;

    async fn run(desk: &Desk, (): (), asked: wire::ImportChain) -> Done<wire::ImportedChain> {
        let (chain, repeated) = desk.import_chain(&asked.by, asked.project, asked.file).await?;
        answer_once(imported(&chain), repeated)
    }
}

pub struct List;

impl Operation for List {
    const FACTS: Facts = reads("chain_list", Known, "List imported chains, the last one first");
    type On = ();
    type In = wire::ListChains;
    type Out = wire::ImportedChains;

    async fn run(desk: &Desk, (): (), asked: wire::ListChains) -> Done<wire::ImportedChains> {
        let before = asked.before.map(|before| before.position);
        let (chains, next) = desk.list_imported(before, asked.limit.unwrap_or(100)).await?;
        let epochs = desk.epochs().await?;
        let next = next.map(|next| epochs.cursor(next));
        answer(wire::ImportedChains { chains: chains.iter().map(imported).collect(), next })
    }
}

pub struct Show;

impl Operation for Show {
    const FACTS: Facts =
        reads("chain_show", Known, "Show an imported chain with its file, and whether it is whole")
            .errors(&[&[Code::ChainNotFound]]);
    type On = DocumentId;
    type In = wire::Nothing;
    type Out = wire::ImportedChainWithFile;

    async fn run(
        desk: &Desk,
        id: DocumentId,
        _: wire::Nothing,
    ) -> Done<wire::ImportedChainWithFile> {
        let chain = desk.imported(&id).await?;
        let file = chain.content.as_ref().map(|content| content.file.clone());
        let read = file.as_deref().and_then(|file| serde_json::from_str(file).ok());
        let verdict = read.as_ref().map(chain::verify);
        answer(wire::ImportedChainWithFile { chain: imported(&chain), verdict, file })
    }
}

fn imported(chain: &ImportedChain) -> wire::ImportedChain {
    let document = &chain.kept.document;
    let content = chain.content.as_ref();
    wire::ImportedChain {
        chain_id: document.id.clone(),
        scope: document.scope.clone(),
        imported_by: document.created_by.clone(),
        imported_at: document.created_at,
        task_id: content.map(|content| content.task_id),
        tasks: content.map(|content| content.tasks),
        events: content.map(|content| content.events),
    }
}
