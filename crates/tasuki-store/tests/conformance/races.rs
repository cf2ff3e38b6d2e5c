// SPDX-License-Identifier: Apache-2.0
//! Many at once: one winner, nothing twice, nothing left.

use std::collections::BTreeSet;

use tasuki_core::HandoffId;
use tasuki_core::commands::{self, Command};
use tasuki_store::{Done, Error};
use tokio::task::JoinSet;

use crate::stage::{Stage, code, proof_of};
use crate::support::{agent, complete, key, to, to_any};

const RACERS: usize = 64;

/// What each of many workers gets that do the same thing at the same time.
async fn race<F>(count: usize, run: impl Fn(usize) -> F) -> Vec<Result<Done, Error>>
where
    F: Future<Output = Result<Done, Error>> + Send + 'static,
{
    let mut workers = JoinSet::new();
    for racer in 0..count {
        workers.spawn(run(racer));
    }
    workers.join_all().await
}

pub(crate) async fn of_many_claimers_of_one_handoff_one_wins(stage: Stage) {
    for _ in 0..10 {
        let id = stage.offer_to(to_any("review"), |_| {}).await;
        let claims = race(RACERS, |racer| {
            let stage = stage.clone();
            async move { stage.try_claim(id, &format!("agent-{racer}")).await }
        });
        let (won, lost): (Vec<_>, Vec<_>) = claims.await.into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, RACERS - 1));
        assert!(lost.into_iter().all(|lost| code(lost) == "already_claimed"));

        let winner = &won[0].as_ref().unwrap().handoffs[0];
        assert_eq!(*winner, stage.handoff(id).await);
        assert_eq!(stage.task_of(id).await.owner, winner.state.claim().unwrap().agent);
        assert_eq!(stage.story(id).await, ["transfer_offered", "claimed"]);
    }
}

pub(crate) async fn of_many_claimers_of_a_queue_each_handoff_has_one_winner(stage: Stage) {
    const HANDOFFS: usize = 48;
    let mut offered = BTreeSet::new();
    for _ in 0..HANDOFFS {
        offered.insert(stage.offer_to(to_any("review"), |_| {}).await);
    }
    let claims = race(RACERS, |racer| {
        let stage = stage.clone();
        async move {
            let wish = stage.wish(&format!("agent-{racer}"), 1);
            stage.run(Command::claim(wish)).await
        }
    });
    let won: Vec<HandoffId> =
        claims.await.into_iter().flat_map(|claim| claim.unwrap().outcome.handoffs).collect();
    assert_eq!(won.len(), HANDOFFS, "all the work was taken and none of it twice");
    assert_eq!(won.into_iter().collect::<BTreeSet<_>>(), offered);
}

pub(crate) async fn a_hundred_sends_with_one_key_make_one_handoff(stage: Stage) {
    let sends = race(100, |_| {
        let stage = stage.clone();
        async move { stage.send_keyed(stage.offer(to("coder")), key("k-1", "request")).await }
    });
    let sends: Vec<_> = sends.await.into_iter().map(Result::unwrap).collect();
    let first = sends.iter().find(|done| !done.outcome.repeated).unwrap();
    for done in &sends {
        assert_eq!(done.outcome.handoffs, first.outcome.handoffs);
        assert_eq!((&done.handoffs, &done.task), (&first.handoffs, &first.task));
    }
    assert_eq!(sends.iter().filter(|done| !done.outcome.repeated).count(), 1);
    assert_eq!(stage.store.head().0, 1, "one event");
    assert_eq!(stage.claim_next("coder", 10).await, first.outcome.handoffs);
}

pub(crate) async fn redriving_many_times_at_once_makes_one_handoff(stage: Stage) {
    let dead = stage.offered().await;
    stage.kill(dead).await;
    let redrives = race(8, |_| {
        let stage = stage.clone();
        async move { stage.redrive(dead).await }
    });
    let new: BTreeSet<_> =
        redrives.await.into_iter().map(|done| done.unwrap().outcome.handoffs[0]).collect();
    assert_eq!(new.len(), 1, "every reply names the same new handoff");
    let new = *new.first().unwrap();
    assert_eq!(stage.handoff(new).await.redrive_of, Some(dead));
    assert_eq!(stage.claim_next("coder", 10).await, [new]);
}

pub(crate) async fn a_completion_and_a_cancellation_race_to_one_end(stage: Stage) {
    for _ in 0..20 {
        let id = stage.offered().await;
        let proof = proof_of(&stage.try_claim(id, "coder").await.unwrap().handoffs[0]);
        let ends = race(2, |racer| {
            let stage = stage.clone();
            async move {
                match racer {
                    0 => stage.act(id, proof, complete("done")).await,
                    _ => {
                        let by = agent("planner");
                        stage
                            .run(Command::by(by, commands::Cancel { handoff: id, reason: None }))
                            .await
                    }
                }
            }
        });
        assert_eq!(ends.await.into_iter().filter(Result::is_ok).count(), 1);
        let ended = stage.story(id).await;
        let ends = ended.iter().filter(|kind| ["completed", "cancelled"].contains(kind));
        assert_eq!(ends.count(), 1, "{ended:?}");
    }
    stage.verified().await;
}

pub(crate) async fn many_whole_lives_at_once_lose_nothing(stage: Stage) {
    let lives = race(RACERS, |racer| {
        let stage = stage.clone();
        async move {
            let name = format!("agent-{racer}");
            let id = stage.offer_to(to(&name), |_| {}).await;
            let proof = stage.claim(id, &name).await;
            stage.act(id, proof, complete("done")).await
        }
    });
    let ended: BTreeSet<_> = lives.await.into_iter().map(|l| l.unwrap().handoffs[0].id).collect();
    assert_eq!(ended.len(), RACERS);
    for id in ended {
        assert_eq!(stage.story(id).await, ["transfer_offered", "claimed", "completed"]);
    }
    stage.verified().await;
}
