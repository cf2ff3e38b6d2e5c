// SPDX-License-Identifier: Apache-2.0
//! What happens. The [`Engine`] is the one way in for commands and queries; behind it the sweeper
//! does what is due and the folds react to what was committed. It knows no wire format.

mod assemble;
mod authenticate;
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
mod memories;
mod offer;
mod outgoing;
mod people;
mod pipelines;
mod pool;
mod queries;
mod rates;
mod requests;
mod reviews;
mod sash;
mod schemas;
mod shared_context;
mod sight;
mod sweeper;
mod tokens;
mod waiting;

pub use assemble::{AssembleRequest, Put};
pub use authenticate::{Refused, Shown};
pub use caller::{Caller, Known, ShownBy};
pub use chains::{BranchRequest, ChainContent, ImportedChain};
pub use channels::{Joined, Need, Publication, Published, RECEIVERS_MAX};
pub use contracts::Route;
pub use desk::{Desk, Page, SeenStats};
pub use discover::{Search, SeenAgent};
pub use engine::{Engine, Settings};
pub use error::Error;
pub use health::TargetHealth;
pub use ids::{IdSource, SystemIds};
pub use memories::{MEMORIES_MAX, MemoryEdit, MemorySearch, NewMemory, SeenMemory, WrittenMemory};
pub use outgoing::{Answer, Courier, NOT_DELIVERED, Parcel};
pub use people::{Enrolled, Issued, NewToken};
pub use queries::{ChainEntry, DeadLetter};
pub use requests::{
    ClaimOneRequest, ClaimRequest, CompleteRequest, Coordinator, CounterRequest, Delivery,
    FailRequest, FollowUp, Granted, Holder, NewOffer, NewTask, Offered, PeekRequest, Proof,
    ReadBack, TermsWish, Until, WaitFor, WaitMode, WaitRequest, Waited,
};
pub use reviews::{Amendment, Chosen, Group, REVIEWED_MAX, Ruling};
pub use schemas::Shape;
pub use shared_context::{ContextWrite, NewDecision, SeenContext};
pub use tasuki_store::Error as StoreError;
pub use tasuki_store::audit::{Finding, Verdict};
pub use tasuki_store::{
    Entry, Failure, HandoffFilter, KeptDocument, PAGE_MAX, Sight, Stats, TaskFilter,
};
