// SPDX-License-Identifier: Apache-2.0
//! Every code an error can have, in one table: its class, whether the same request may succeed later,
//! and its page, which must exist for this to compile. A code is never reused.

use std::fmt;

/// What kind of error a code is, whatever the door. The number is HTTP's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Malformed = 400,
    Unauthenticated = 401,
    Forbidden = 403,
    NotFound = 404,
    WrongMethod = 405,
    Timeout = 408,
    Conflict = 409,
    Gone = 410,
    TooLarge = 413,
    WrongKind = 415,
    WrongHost = 421,
    Unprocessable = 422,
    TooMany = 429,
    Internal = 500,
    Unavailable = 503,
    NoSpace = 507,
}

impl Class {
    /// Its HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        self as u16
    }
}

macro_rules! codes {
    ($($name:ident $code:literal $class:ident $($retryable:ident)?),+ $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($name),+
        }

        impl Code {
            /// Every code there is, by name.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// As it stands in an error, and in the address of its page.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code),+ }
            }

            #[must_use]
            pub const fn class(self) -> Class {
                match self { $(Self::$name => Class::$class),+ }
            }

            /// Whether the same request may succeed later.
            #[must_use]
            pub const fn is_retryable(self) -> bool {
                match self { $(Self::$name => codes!(@$($retryable)?)),+ }
            }

            /// Its page, as Markdown.
            #[must_use]
            pub const fn page(self) -> &'static str {
                match self {
                    $(Self::$name => include_str!(
                        concat!("../../../docs/errors/", $code, ".md")
                    )),+
                }
            }

            /// The code of this name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                match name { $($code => Some(Self::$name),)+ _ => None }
            }
        }
    };
    (@retryable) => { true };
    (@) => { false };
}

codes! {
    AgentNotFound "agent_not_found" NotFound,
    AlreadyAnswered "already_answered" Conflict,
    AlreadyClaimed "already_claimed" Conflict,
    AlreadyCompleted "already_completed" Conflict,
    AlreadyDeclined "already_declined" Conflict,
    AlreadyReviewed "already_reviewed" Conflict,
    ArtifactNotFound "artifact_not_found" NotFound,
    BodyErased "body_erased" Gone,
    BodyNotFound "body_not_found" NotFound,
    BodyTooLarge "body_too_large" TooLarge,
    BudgetExhausted "budget_exhausted" Conflict,
    BudgetTooSmall "budget_too_small" Unprocessable,
    CapabilityNotDeclared "capability_not_declared" Forbidden,
    CertificateUnknown "certificate_unknown" Unauthenticated,
    ChainNotFound "chain_not_found" NotFound,
    ConstraintAltered "constraint_altered" Unprocessable,
    ConstraintDropped "constraint_dropped" Unprocessable,
    ConstraintNotYours "constraint_not_yours" Forbidden,
    CrossSite "cross_site" Forbidden,
    CursorLost "cursor_lost" Gone,
    DeadlinePassed "deadline_passed" Unprocessable,
    Deadlock "deadlock" Conflict,
    DecisionSettled "decision_settled" Conflict,
    DigestMissing "digest_missing" Unauthenticated,
    DigestWrong "digest_wrong" Unauthenticated,
    DiskFull "disk_full" NoSpace retryable,
    GrantTooWide "grant_too_wide" Forbidden,
    HandoffNotFound "handoff_not_found" NotFound,
    HandoffOpen "handoff_open" Conflict retryable,
    HostNotAllowed "host_not_allowed" WrongHost,
    IdempotencyConflict "idempotency_conflict" Conflict,
    IntentAltered "intent_altered" Conflict,
    Internal "internal" Internal,
    InvalidArtifact "invalid_artifact" Unprocessable,
    InvalidDocument "invalid_document" Unprocessable,
    InvalidEnvelope "invalid_envelope" Unprocessable,
    InvalidFollowUps "invalid_follow_ups" Unprocessable,
    InvalidJson "invalid_json" Malformed,
    InvalidManifest "invalid_manifest" Unprocessable,
    InvalidPayload "invalid_payload" Unprocessable,
    InvalidRequest "invalid_request" Malformed,
    InvalidResource "invalid_resource" Malformed,
    InvalidRules "invalid_rules" Unprocessable,
    InvalidTerms "invalid_terms" Unprocessable,
    KeptForAsker "kept_for_asker" Conflict retryable,
    KeyNotFound "key_not_found" NotFound,
    KeyNotShown "key_not_shown" Forbidden,
    KeyTaken "key_taken" Conflict,
    ManifestMoved "manifest_moved" Conflict,
    MemoryDeleted "memory_deleted" Conflict,
    MemoryNotFound "memory_not_found" NotFound,
    MemorySuperseded "memory_superseded" Conflict,
    MethodNotAllowed "method_not_allowed" WrongMethod,
    NameReserved "name_reserved" Forbidden,
    NameTaken "name_taken" Conflict,
    NoCounter "no_counter" Conflict,
    NoQuestion "no_question" Conflict,
    NotDeadLettered "not_dead_lettered" Conflict,
    NotOwner "not_owner" Forbidden,
    NotPermitted "not_permitted" Forbidden,
    NotTainted "not_tainted" Conflict,
    NotTarget "not_target" Forbidden,
    OnHold "on_hold" Conflict retryable,
    OpenBelow "open_below" Conflict retryable,
    OtherTenant "other_tenant" Unprocessable,
    OutOfTurn "out_of_turn" Conflict retryable,
    OutcomeUnknown "outcome_unknown" Unavailable retryable,
    Overloaded "overloaded" Unavailable retryable,
    OwnershipNotShared "ownership_not_shared" Unprocessable,
    QuotaExceeded "quota_exceeded" TooMany retryable,
    RateLimited "rate_limited" TooMany retryable,
    ReadBackNeeded "read_back_needed" Conflict,
    RequestTimeout "request_timeout" Timeout retryable,
    ResourceReserved "resource_reserved" Conflict retryable,
    ReviewTaken "review_taken" Conflict retryable,
    RevisionConflict "revision_conflict" Conflict,
    RouteNotFound "route_not_found" NotFound,
    SecretFound "secret_found" Unprocessable,
    ShuttingDown "shutting_down" Unavailable retryable,
    SignatureAlgorithm "signature_algorithm" Unauthenticated,
    SignatureAudience "signature_audience" Unauthenticated,
    SignatureComponents "signature_components" Unauthenticated,
    SignatureExpired "signature_expired" Unauthenticated retryable,
    SignatureMalformed "signature_malformed" Unauthenticated,
    SignatureMissing "signature_missing" Unauthenticated,
    SignatureNotYetValid "signature_not_yet_valid" Unauthenticated,
    SignatureReplayed "signature_replayed" Unauthenticated,
    SignatureTooEarly "signature_too_early" Unauthenticated retryable,
    SignatureWrong "signature_wrong" Unauthenticated,
    StaleClaim "stale_claim" Conflict,
    StillNeeded "still_needed" Conflict,
    StoreUnavailable "store_unavailable" Unavailable retryable,
    TargetPaused "target_paused" Conflict retryable,
    TargetUnavailable "target_unavailable" Conflict retryable,
    TaskFinished "task_finished" Conflict,
    TaskMoved "task_moved" Conflict retryable,
    TaskNotFound "task_not_found" NotFound,
    TermsOutOfRange "terms_out_of_range" Unprocessable,
    TokenInvalid "token_invalid" Unauthenticated,
    TokenNotFound "token_not_found" NotFound,
    TokenRefused "token_refused" Forbidden,
    TokenTooDeep "token_too_deep" Conflict,
    TooManyCounters "too_many_counters" Conflict,
    TooManyKeys "too_many_keys" Conflict,
    TooManyMessages "too_many_messages" Conflict retryable,
    TooManySubscribers "too_many_subscribers" Conflict,
    TreeTooDeep "tree_too_deep" Unprocessable,
    TrustRaised "trust_raised" Unprocessable,
    Unauthenticated "unauthenticated" Unauthenticated,
    UnsupportedMediaType "unsupported_media_type" WrongKind,
    VersionNotSupported "version_not_supported" Unprocessable,
    WrongState "wrong_state" Conflict,
}

impl Code {
    /// Its HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        self.class().status()
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
