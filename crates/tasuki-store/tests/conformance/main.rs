// SPDX-License-Identifier: Apache-2.0
//! One suite that every backend passes. A behaviour is a story told on a [`stage::Stage`]; the
//! list below plays each of them on each backend, and a new backend is one more line at the end.
#![cfg(test)]
#![allow(clippy::disallowed_methods, reason = "a wait by the real clock is a safety net")]

mod claims;
mod damage;
mod dead_letters;
mod documents;
mod filters;
mod leases;
mod lifecycle;
mod lifts;
mod model;
mod news;
mod patterns;
mod races;
mod reading;
mod registry;
mod repeats;
#[allow(dead_code, reason = "the tests of SQLite alone use the rest")]
mod stage;

// What hangs together above one hop, whatever store it is.
#[path = "../../../tasuki-core/tests/rules/hangs.rs"]
mod hangs;
// The model that stores are compared with plays the core's own random stories.
#[path = "../../../tasuki-core/tests/rules/random.rs"]
mod random;
// Every kind of command there is.
#[allow(dead_code, reason = "the core's stories use more of its words than these do")]
#[path = "../../../tasuki-core/tests/rules/support.rs"]
mod support;
#[allow(dead_code, reason = "the rules of the core use more of it")]
#[path = "../../../tasuki-core/tests/rules/wider.rs"]
mod wider;

use std::time::Duration;

use stage::{Backend, Stage};

/// A safety net only: no story waits for time to pass.
const PATIENCE: Duration = Duration::from_secs(60);

async fn play<F: Future<Output = ()>>(backend: Backend, story: impl FnOnce(Stage) -> F) {
    let stage = Stage::open(backend).await;
    tokio::time::timeout(PATIENCE, Box::pin(story(stage))).await.expect("the story ends");
}

macro_rules! stories {
    ($backend:expr; $($subject:ident: $($story:ident)+;)+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $story() {
                crate::play($backend, crate::$subject::$story).await;
            }
        )+)+
    };
}

macro_rules! conforms {
    ($backend:expr) => {
        stories! { $backend;
            lifecycle:
                offered_work_is_claimed_started_and_completed
                a_reply_shows_things_as_they_are_after_its_own_command
                a_refused_command_does_not_hinder_its_neighbours
                a_refused_command_leaves_nothing_behind
                completing_and_handing_on_is_one_step
                cancelling_ends_a_handoff_whoever_holds_it
                a_task_without_a_handoff_is_opened_and_cancelled
                what_was_never_there_is_not_found
                a_closed_store_takes_nothing_more;
            claims:
                work_is_claimed_by_priority_and_then_first_come
                senders_to_one_target_take_turns_however_much_one_of_them_sends
                two_targets_of_one_agent_do_not_starve_each_other
                work_that_comes_back_goes_to_the_end_of_its_line
                an_ordering_key_lets_one_go_at_a_time
                a_claim_is_safe_to_repeat_with_its_request_id
                who_declined_is_not_asked_again
                looking_is_recorded_once_and_claims_nothing;
            races:
                of_many_claimers_of_one_handoff_one_wins
                of_many_claimers_of_a_queue_each_handoff_has_one_winner
                a_hundred_sends_with_one_key_make_one_handoff
                redriving_many_times_at_once_makes_one_handoff
                a_completion_and_a_cancellation_race_to_one_end
                many_whole_lives_at_once_lose_nothing;
            registry:
                what_is_known_outlives_a_restart
                of_many_who_join_with_one_token_one_is_enrolled
                revoking_the_last_key_releases_what_its_agent_holds
                listings_show_one_tenant_at_a_time
                tasks_are_listed_by_their_project_before_and_after_a_restart
                what_a_tenant_uses_is_told
                a_branch_says_in_the_log_where_it_comes_from
                a_chain_of_another_broker_is_a_document_and_nothing_else
                a_nonce_is_good_for_once_whoever_is_asked
                a_kept_text_is_replaced_by_a_later_one_only
                what_waits_is_counted_by_target
                a_tenant_gets_no_more_than_its_quotas_and_others_do_not_notice;
            repeats:
                the_same_key_gives_the_first_outcome_again
                the_same_key_with_another_body_conflicts_and_stores_nothing
                a_key_is_remembered_for_a_day_and_not_longer
                opening_a_task_takes_a_key_too;
            leases:
                a_sweep_judges_by_the_time_at_which_it_was_asked_for
                silence_past_the_lease_gives_the_work_to_another
                a_claim_is_shown_by_both_of_its_halves
                a_late_completion_is_refused_and_recorded_once
                a_late_report_about_something_long_over_is_kept_too
                heartbeats_extend_a_lease_without_an_event
                a_hard_deadline_ends_work_that_still_sends_heartbeats
                a_failed_attempt_is_retried_when_it_is_due
                a_start_time_is_waited_for
                what_nobody_takes_in_time_becomes_a_dead_letter
                one_sweep_takes_no_more_than_it_was_told
                raising_the_epoch_makes_every_claim_stale;
            dead_letters:
                attempts_that_all_fail_lead_to_a_dead_letter
                workers_that_keep_vanishing_lead_to_quarantine
                redriving_makes_a_new_handoff_with_the_old_envelope
                discarding_keeps_the_reason_and_ends_the_task
                only_dead_letters_are_reviewed
                dead_letters_are_listed_until_somebody_decides
                a_declined_offer_to_one_agent_is_a_dead_letter;
            documents:
                every_edit_is_a_revision_that_can_be_read
                of_many_who_write_what_they_saw_one_wins
                a_memory_is_made_once_for_a_key
                marks_and_tombstones_show_in_listings
                a_search_ranks_alike_on_every_store
                a_settled_decision_is_not_decided_twice
                what_was_erased_is_gone_and_the_log_still_verifies
                erased_bytes_are_given_back_to_their_tenant
                documents_outlive_a_restart;
            patterns:
                a_breaker_opens_outlives_a_restart_and_closes
                what_is_not_claimed_in_time_goes_from_one_to_the_next
                a_fallback_finds_in_its_queue_what_was_passed_on_to_it
                a_publication_is_there_for_all_or_for_none
                work_goes_on_when_enough_of_what_it_waits_for_is_done
                a_resource_has_one_holder_until_its_claim_ends
                what_is_built_on_a_retracted_result_is_held_back
                a_dead_letter_is_taken_for_review_and_amended_once;
            lifts:
                what_is_lifted_must_be_known_to_the_next_hop
                an_offer_of_what_came_back_knows_what_was_lifted_meanwhile
                a_fetch_of_what_was_trimmed_is_counted_once_for_each_memory;
            filters:
                handoffs_are_listed_by_any_filters_together
                tasks_are_listed_by_any_filters_together;
            reading:
                a_listing_of_handoffs_is_what_its_filter_lets_through
                a_listing_of_tasks_is_what_its_filter_lets_through
                a_listing_knows_every_reply_that_was_given_before_it
                bodies_are_found_where_their_events_are
                events_come_in_order_and_a_chain_is_those_of_its_task
                one_look_shows_everything_that_was_named
                a_reply_is_seen_at_once
                the_log_of_a_busy_store_verifies
                a_check_goes_on_where_the_last_one_ended;
            news:
                subscribers_hear_what_was_committed_and_what_can_be_claimed
                subscribers_see_what_an_event_led_to
                a_line_tells_when_its_next_one_can_be_claimed
                subscribers_hear_every_event_once_and_in_order
                what_is_due_next_is_told
                counts_tell_what_there_is
                one_call_is_one_commit;
        }
    };
}

mod volatile {
    conforms!(crate::stage::Backend::Volatile);
}
mod sqlite {
    conforms!(crate::stage::Backend::Sqlite);
}
/// For backends that have a log of their own to look after.
mod sqlite_damaged {
    stories! { crate::stage::Backend::Sqlite;
        damage:
            a_bad_record_that_whole_batches_follow_is_damage
            an_end_before_what_was_acknowledged_is_damage
            a_torn_last_batch_that_nobody_was_told_of_is_dropped;
    }
}
mod postgres {
    conforms!(crate::stage::Backend::Postgres);
}
