// SPDX-License-Identifier: Apache-2.0
use scratch_postgres::shared;
use tasuki_core::commands::{self, Act, Claim, Command, Offer, OfferTask, Proof, Seeker};
use tasuki_core::envelope::Control;
use tasuki_core::ids::ClaimId;
use tasuki_core::report::Note;
use tasuki_core::{HandoffId, Target, Terms};

use super::*;
use crate::ManualClock;

const BEGIN: Timestamp = Timestamp(1_800_000_000_000);
const DAY: u64 = 24 * 60 * 60 * 1000;

struct Broker {
    store: Postgres,
    clock: Arc<ManualClock>,
    url: String,
    ids: std::cell::Cell<u128>,
}

impl Broker {
    async fn open(events_each: u32) -> Self {
        let url = shared().database().await;
        let key = SigningKey::from_bytes(&[7; 32]);
        let options = PostgresOptions { events_each, ..PostgresOptions::new(&url, key) };
        let clock = ManualClock::at(BEGIN);
        let store = Postgres::open(options, clock.clone()).await.unwrap();
        Self { store, clock, url, ids: std::cell::Cell::new(1) }
    }

    fn id(&self) -> u128 {
        self.ids.replace(self.ids.get() + 1)
    }

    async fn run(&self, command: Command) -> Vec<HandoffId> {
        let mut replies = self.store.execute(vec![command]).await.unwrap();
        replies.pop().unwrap().unwrap().outcome.handoffs
    }

    async fn offer(&self, priority: u8) -> HandoffId {
        let body = |text: &str| Body::of(&Note { text: text.to_owned() });
        let task = TaskId(self.id());
        let intent = body("do it").hash;
        let offer = Offer {
            handoff: HandoffId(self.id()),
            task: OfferTask::New {
                task,
                intent,
                correlation_id: None,
                parent: None,
                coordinator: None,
                project: None,
                branch_of: None,
                on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
            },
            from: "planner".parse().unwrap(),
            to: Target::Capability("review".parse().unwrap()),
            control: Control::Passed,
            envelope: body("envelope"),
            hop: 0,
            previous: None,
            priority,
            terms: Terms::default(),
            contract: tasuki_core::contract::Contract::default(),
            after: None,
            lifted: Vec::new(),
            above: Vec::new(),
            dead_end: None,
            answered_by: Vec::new(),
            expires_at: self.clock.now().plus_ms(DAY),
            not_before: None,
            needs_approval: false,
            ordering_key: None,
        };
        self.run(Command::offer(offer)).await[0]
    }

    async fn claim(&self) -> Option<HandoffId> {
        let seeker = Seeker {
            agent: "coder".parse().unwrap(),
            capabilities: vec!["review".parse().unwrap()],
        };
        let claim_ids = vec![ClaimId(self.id())];
        let claim = Claim { seeker, claim_ids, lease_ms: None, request_id: None };
        self.run(Command::claim(claim)).await.pop()
    }

    async fn complete(&self, id: HandoffId) {
        let handoff = self.store.handoff(id).await.unwrap().unwrap();
        let claim = handoff.state.claim().unwrap();
        let proof = Proof { claim_id: claim.claim_id, fence: claim.fence };
        let result = Body::of(&Note { text: "done".into() });
        let act = Act::Complete { result, follow_ups: Vec::new(), checked: None };
        self.run(Command::held(id, proof, None, act)).await;
    }

    async fn life(&self) -> HandoffId {
        let id = self.offer(5).await;
        assert_eq!(self.claim().await, Some(id));
        self.complete(id).await;
        id
    }

    async fn raise(&self) {
        let db = self.store.node.db().await.unwrap();
        self.store.node.cursors.raise(db.client()).await.unwrap();
    }

    fn mark(&self) -> i64 {
        let hot = self.store.node.cursors.hot([&"capability:review".to_owned()].into_iter());
        hot.iter().find(|(_, haste, _)| *haste == 4).unwrap().2
    }

    async fn drop_older_than(&self, retain: Duration) -> u64 {
        drop_old(&self.store.node, retain).await.unwrap()
    }

    async fn connect(&self) -> tokio_postgres::Client {
        let connected = tokio_postgres::connect(&self.url, tokio_postgres::NoTls).await;
        let (db, connection) = connected.unwrap();
        tokio::spawn(connection);
        db
    }
}

#[tokio::test]
async fn a_mark_rises_past_what_was_taken_and_never_past_what_waits() {
    let broker = Broker::open(1 << 20).await;
    for _ in 0..5 {
        broker.life().await;
    }
    assert_eq!(broker.mark(), 0, "nobody has looked yet");
    broker.raise().await;
    assert_eq!(broker.mark(), 16, "behind the whole log: nothing waits");
    let waits = broker.offer(5).await;
    broker.raise().await;
    assert_eq!(broker.mark(), 16, "what waits is behind the mark, not before it");
    assert_eq!(broker.claim().await, Some(waits));
    // A lower position with a higher priority is another queue, with another mark.
    let urgent = broker.offer(9).await;
    assert_eq!(broker.claim().await, Some(urgent));
}

#[tokio::test]
async fn what_a_transaction_had_locked_and_gave_back_is_not_passed_over() {
    let broker = Broker::open(1 << 20).await;
    broker.life().await;
    let waits = broker.offer(5).await;
    let other = broker.connect().await;
    other.batch_execute("BEGIN; SELECT 1 FROM task FOR UPDATE").await.unwrap();
    assert_eq!(broker.claim().await, None, "somebody else is at it");
    broker.raise().await;
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(broker.claim().await, Some(waits));
}

#[tokio::test]
async fn the_mark_of_what_is_due_never_passes_what_will_be() {
    let broker = Broker::open(1 << 20).await;
    let id = broker.offer(5).await;
    broker.claim().await;
    broker.raise().await;
    assert_eq!(broker.store.node.cursors.due_mark(), BEGIN.0, "no later than the log's time");
    broker.clock.advance_ms(60_000);
    assert_eq!(
        broker.run(Command::of_broker(commands::Sweep::now(10))).await,
        [id],
        "a lost lease"
    );
    broker.raise().await;
    assert_eq!(broker.store.node.cursors.due_mark(), BEGIN.plus_ms(60_000).0);
    broker.clock.advance_ms(DAY);
    assert_eq!(broker.run(Command::of_broker(commands::Sweep::now(10))).await, [id], "its expiry");
}

#[tokio::test]
async fn old_history_is_dropped_in_partitions_and_the_rest_still_verifies() {
    let broker = Broker::open(30).await;
    let first = broker.life().await;
    for _ in 0..49 {
        broker.life().await;
    }
    let open = broker.offer(5).await;
    for _ in 0..20 {
        let next = broker.offer(5).await;
        broker
            .run(Command::by(
                "planner".parse().unwrap(),
                commands::CancelTask {
                    task: broker.store.handoff(next).await.unwrap().unwrap().task_id,
                    reason: None,
                    letter: None,
                },
            ))
            .await;
    }
    assert_eq!(broker.drop_older_than(Duration::from_secs(60)).await, 0, "nothing is old yet");
    broker.clock.advance_ms(DAY / 2);
    broker.offer(5).await;
    // 150 events, then the open task: the partitions up to the one that it began in can go.
    assert_eq!(broker.drop_older_than(Duration::from_secs(60)).await, 5);
    let left = broker.store.events(Position(0), 1).await.unwrap();
    assert_eq!(left[0].sealed.position, Position(150));
    let verdict = broker.store.verify().await.unwrap();
    assert_eq!((verdict.first_bad, verdict.events), (None, broker.store.head().0 - 149));
    assert!(broker.store.handoff(first).await.unwrap().is_none(), "finished work went with it");
    assert!(broker.store.handoff(open).await.unwrap().is_some(), "open work did not");
    assert_eq!(broker.drop_older_than(Duration::from_secs(60)).await, 0);
    let gone = broker.connect().await;
    gone.batch_execute("DELETE FROM event WHERE position = 170").await.unwrap();
    let verdict = broker.store.verify().await.unwrap();
    assert_eq!(verdict.first_bad.unwrap().position, Position(171));
}

#[tokio::test]
async fn a_log_whose_end_is_cut_off_does_not_verify() {
    let broker = Broker::open(1 << 20).await;
    broker.life().await;
    let db = broker.connect().await;
    db.batch_execute("DELETE FROM event WHERE position = 3").await.unwrap();
    let verdict = broker.store.verify().await.unwrap();
    assert_eq!(verdict.first_bad.unwrap().position, Position(3));
}

/// With the planner as it comes, at a million rows: no settings of ours push it.
#[tokio::test]
async fn claims_and_listings_use_their_indexes_at_a_million_rows() {
    let broker = Broker::open(1 << 20).await;
    let db = broker.connect().await;
    db.batch_execute(
        "INSERT INTO task SELECT md5(i::text)::uuid, 'open', 'a', 'a', NULL, NULL, '', i, 0, NULL,
             NULL, NULL, NULL, 1, '', i FROM generate_series(1, 1000000) i;
         INSERT INTO handoff SELECT md5('h' || i)::uuid, md5(i::text)::uuid,
             CASE WHEN i % 5 = 0 THEN 'pending' ELSE 'completed' END, i % 5 <> 0, false, 'a',
             'capability:review', CASE WHEN i % 5 = 0 THEN 4 END, CASE WHEN i % 5 = 0 THEN i END,
             i, NULL, '{}', NULL, NULL, NULL, i, '', CASE WHEN i % 5 = 0 THEN i END
             FROM generate_series(1, 1000000) i;
         ANALYZE task; ANALYZE handoff;",
    )
    .await
    .unwrap();
    for (values, sql) in [
        (["'{capability:review}'", "'{4}'", "'{500000}'", "'{10}'"], sql::CLAIM.sql),
        (["'{capability:review}'", "'{0}'", "'{9}'", "'{10}'"], sql::CLAIM_COLD.sql),
    ] {
        let mut text = format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {sql}");
        for (number, value) in values.iter().enumerate() {
            text = text.replace(&format!("${}", number + 1), value);
        }
        db.batch_execute("BEGIN").await.unwrap();
        let plan: Vec<String> =
            db.query(&text, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
        db.batch_execute("ROLLBACK").await.unwrap();
        let plan = plan.join("\n");
        assert!(plan.contains("Index Scan using handoff_waiting"), "{plan}");
        assert!(plan.contains("Index Scan using task_pkey"), "{plan}");
        assert!(!plan.contains("Seq Scan") && !plan.contains("Sort"), "{plan}");
    }
    let text = sql::TURNS.sql.replace("$1", "'{capability:review}'").replace("$2", "'{4}'");
    let text = text.replace("$3", "'{a}'").replace("$4", "'{500000}'");
    let plan = db.query(&format!("EXPLAIN (COSTS OFF) {text}"), &[]).await.unwrap();
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    let plan = plan.join("\n");
    assert!(plan.contains("Scan Backward using handoff_sender"), "{plan}");
    assert!(plan.contains("Scan using handoff_waiting"), "{plan}");
    assert!(!plan.contains("Seq Scan") && !plan.contains("Sort"), "{plan}");
    for filter in handoff_filters() {
        let query = listing::handoff_query(&filter, None).unwrap();
        reads_one_page(&db, &query, &filter).await;
    }
    for filter in task_filters() {
        reads_one_page(&db, &listing::task_query(&filter), &filter).await;
    }
}

/// A page is read from an index in order: what is not on it is neither read nor sorted.
async fn reads_one_page(
    db: &tokio_postgres::Client,
    query: &listing::Query,
    asked: &dyn std::fmt::Debug,
) {
    let explain = format!("EXPLAIN (COSTS OFF) {}", query.sql());
    let plan = db.query_typed(&explain, &query.values()).await.unwrap();
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    let plan = plan.join("\n");
    assert!(!plan.contains("Seq Scan") && !plan.contains("Bitmap"), "{asked:?}\n{plan}");
    assert!(!plan.contains("->  Sort") && !plan.contains("_pkey"), "{asked:?}\n{plan}");
}

fn handoff_filters() -> Vec<HandoffFilter> {
    let mut filters = Vec::new();
    for state in [None, Some("pending"), Some("completed"), Some("failed"), Some("dead_lettered")] {
        for (from, to) in
            [(None, None), (Some("a"), None), (None, Some("review")), (Some("b"), None)]
        {
            for tenant in ["default", "acme"] {
                filters.push(HandoffFilter {
                    tenant: Some(tenant.parse().unwrap()),
                    state: state.map(|state| state.parse().unwrap()),
                    from: from.map(|from| from.parse().unwrap()),
                    to: to.map(|to| Target::Capability(to.parse().unwrap())),
                    before: (tenant == "acme").then_some(HandoffId(1 << 120)),
                    max: 100,
                    ..HandoffFilter::default()
                });
            }
        }
    }
    let state = Some("scheduled".parse().unwrap());
    filters.push(HandoffFilter { state, max: 100, ..HandoffFilter::default() });
    filters
}

fn task_filters() -> Vec<TaskFilter> {
    let mut filters = Vec::new();
    for state in [None, Some("open"), Some("failed")] {
        for (owner, project) in
            [(None, None), (Some("a"), None), (None, Some("web")), (Some("b"), None)]
        {
            for parent in [None, Some(TaskId(7))] {
                filters.push(TaskFilter {
                    tenant: Some("default".parse().unwrap()),
                    state: state.map(|state| state.parse().unwrap()),
                    owner: owner.map(|owner| owner.parse().unwrap()),
                    project: project.map(|project| project.parse().unwrap()),
                    parent,
                    max: 100,
                    ..TaskFilter::default()
                });
            }
        }
    }
    filters
}
