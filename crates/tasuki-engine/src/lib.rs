// SPDX-License-Identifier: Apache-2.0
//! What happens. The [`Engine`] is the one way in for commands and queries; behind it the sweeper
//! does what is due and the folds react to what was committed. It knows no wire format.

mod accounts;
mod after_envelope;
mod alerting;
mod assemble;
mod audience;
mod authenticate;
mod blockers;
mod caller;
mod chains;
mod channels;
mod contracts;
mod desk;
mod directory;
mod discover;
mod engine;
mod erasure;
mod error;
mod fair;
mod folds;
mod health;
mod held;
mod ids;
mod instruments;
mod keys;
mod lobby;
mod memories;
mod metrics;
mod offer;
pub mod operations;
mod outgoing;

mod pins;
mod pipelines;
mod pool;
mod populations;
mod problems;
pub mod prompt;
mod queries;
mod rates;
mod ready;
mod requests;
mod reviews;
mod schemas;
mod shared_context;
mod sight;
mod sweeper;
mod talk;
mod tokens;
mod told;
mod trees;
mod waiting;

pub use accounts::{Enrolled, Issued, NewToken};
pub use alerting::{Message, Messenger, WEBHOOKS_MAX, Webhooks};
pub use assemble::{AssembleRequest, Put};
pub use authenticate::{Refused, Shown};
pub use blockers::Waiting;
pub use caller::{Caller, Known, ShownBy};
pub use chains::{BranchRequest, ChainContent, ImportedChain};
pub use channels::{Joined, Publication, Published, RECEIVERS_MAX};
pub use contracts::Route;
pub use desk::{Desk, Page, SeenStats};
pub use discover::SeenAgent;
pub use engine::{Engine, ProjectDecisions, Settings};
pub use error::Error;
pub use health::TargetHealth;
pub use ids::{IdSource, SystemIds};
pub use instruments::Ended;
pub use lobby::Lobby;
pub use memories::{MEMORIES_MAX, MemorySearch, NewMemory, SeenMemory, WrittenMemory};
pub use outgoing::{Answer, Courier, NOT_DELIVERED, Parcel};
pub use problems::WHO_HINT;
pub use queries::{ChainEntry, DeadLetter, Placed};
pub use requests::{
    Brought, ClaimOneRequest, CompleteRequest, CounterRequest, Delivery, FailRequest, FollowUp,
    Granted, Holder, NewOffer, NewTask, Offered, Proof, WaitFor, WaitMode, WaitRequest, Waited,
};
pub use reviews::{Chosen, Group, REVIEWED_MAX, Ruling};
pub use schemas::{Shape, faults_by};
pub use shared_context::SeenContext;
pub use tasuki_store::Error as StoreError;
pub use tasuki_store::audit::{Finding, Verdict};
pub use tasuki_store::{
    Count, Counts, Entry, Failure, HandoffFilter, KeptDocument, PAGE_MAX, Sight, Stats, TaskFilter,
};
