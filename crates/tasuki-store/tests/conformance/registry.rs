// SPDX-License-Identifier: Apache-2.0
//! Who is known, tenants, and what follows from the log and is kept beside it.

use std::sync::Arc;

use tasuki_core::commands::{
    self, Command, DocumentWish, OfferTask, OpenTask, RegistryWish, Write,
};
use tasuki_core::document::{Kind, Scope};
use tasuki_core::event::{Actor, BranchOf};
use tasuki_core::identity::SecretKey;
use tasuki_core::ids::{KeyId, TokenId};
use tasuki_core::quota::Usage;
use tasuki_core::registry::rules::Rule;
use tasuki_core::registry::{Purpose, Quotas, Standing, Tenant, Token};
use tasuki_core::{DocumentId, Hash, Position, Target, TaskId};
use tasuki_store::{DocumentFilter, Done, Error, HandoffFilter, Nonce, Spent, TaskFilter};

use crate::stage::{Backend, Stage, code};
use crate::support::{agent, body, complete, to, to_any};

const SECRET: Hash = Hash([7; 32]);

impl Stage {
    async fn change(&self, wish: RegistryWish) -> Result<Done, Error> {
        self.run(Command::registry(Actor::Broker, None, wish)).await
    }

    async fn publish(&self, name: &str, text: &str) {
        let (agent, manifest) = (agent(name), body(text));
        let wish = RegistryWish::Publish { agent, manifest, signed: None, version: None };
        self.change(wish).await.unwrap();
    }

    async fn enroll(&self, number: u8) {
        let key = secret(number).public();
        let rules = Some(vec![Rule::everything()]);
        self.change(RegistryWish::Enroll { agent: agent("coder"), key, rules }).await.unwrap();
    }

    async fn invite(&self, id: u128) {
        let token = Token {
            id: TokenId(id),
            purpose: Purpose::Join,
            secret: SECRET,
            agent: agent("coder"),
            rules: vec![Rule::everything()],
            issued_at: self.now(),
            expires_at: None,
            ended_at: None,
            made_by: None,
            made_from: None,
        };
        self.change(RegistryWish::IssueToken(token)).await.unwrap();
    }

    fn join(&self, number: u8) -> RegistryWish {
        RegistryWish::Join {
            token: TokenId(1),
            secret: SECRET,
            agent: agent("coder"),
            key: secret(number).public(),
        }
    }
}

fn secret(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

pub(crate) async fn what_is_known_outlives_a_restart(stage: Stage) {
    stage.enroll(1).await;
    stage.publish("coder", "first").await;
    stage.publish("coder", "second").await;
    stage.invite(1).await;
    let quotas = Quotas { in_flight: Some(3), ..Quotas::default() };
    let tenant = Tenant { id: "acme".parse().unwrap(), quotas };
    stage.change(RegistryWish::SetTenant(tenant)).await.unwrap();
    let standing = Standing::Draining;
    let drain = RegistryWish::SetStanding { agent: agent("coder"), standing };
    stage.change(drain).await.unwrap();
    let before = stage.store.registry().borrow().clone();
    assert_eq!(before.agents[&agent("coder")].manifest.as_ref().unwrap().version, 2);
    assert_eq!(stage.store.manifests(vec![agent("coder")]).await.unwrap(), [Some(body("second"))]);
    let both = vec![agent("nobody"), agent("coder")];
    assert_eq!(stage.store.manifests(both).await.unwrap(), [None, Some(body("second"))]);
    if stage.backend == Backend::Volatile {
        return;
    }
    let stage = stage.restart().await;
    let after = stage.store.registry().borrow().clone();
    assert_eq!(after, before);
    assert_eq!(stage.store.manifests(vec![agent("coder")]).await.unwrap(), [Some(body("second"))]);
    stage.verified().await;
}

pub(crate) async fn of_many_who_join_with_one_token_one_is_enrolled(stage: Stage) {
    stage.invite(1).await;
    let tries = (1..=8).map(|number| {
        let (stage, wish) = (stage.clone(), stage.join(number));
        tokio::spawn(async move { stage.change(wish).await })
    });
    let mut enrolled = 0;
    for one in futures::future::join_all(tries).await {
        match one.unwrap() {
            Ok(_) => enrolled += 1,
            refused => assert_eq!(code(refused), "token_refused"),
        }
    }
    assert_eq!(enrolled, 1);
    assert_eq!(stage.store.registry().borrow().agents[&agent("coder")].keys.len(), 1);
}

pub(crate) async fn revoking_the_last_key_releases_what_its_agent_holds(stage: Stage) {
    stage.enroll(1).await;
    let (one, two) = (stage.offered().await, stage.offered().await);
    let others = stage.offer_to(to("tester"), |_| {}).await;
    let proof = stage.claim(one, "coder").await;
    stage.claim(two, "coder").await;
    stage.claim(others, "tester").await;
    let key = secret(1).public().id();
    stage.change(RegistryWish::Revoke { agent: agent("coder"), key }).await.unwrap();
    assert_eq!(stage.state(one).await, "pending");
    assert_eq!(stage.state(two).await, "pending");
    assert_eq!(stage.state(others).await, "claimed");
    assert_eq!(code(stage.act(one, proof, complete("late")).await), "stale_claim");
    stage.verified().await;
}

pub(crate) async fn listings_show_one_tenant_at_a_time(stage: Stage) {
    let ours = stage.offer_to(to("acme/coder"), |o| o.from = agent("acme/planner")).await;
    let theirs = stage.offer_to(to("zeta/coder"), |o| o.from = agent("zeta/planner")).await;
    let default = stage.offered().await;
    for (tenant, expected) in [("acme", ours), ("zeta", theirs), ("default", default)] {
        let tenant = Some(tenant.parse().unwrap());
        let filter = HandoffFilter { tenant: tenant.clone(), max: 10, ..Default::default() };
        let found = stage.store.list_handoffs(filter).await.unwrap();
        assert_eq!(found.iter().map(|h| h.id).collect::<Vec<_>>(), [expected]);
        let filter = TaskFilter { tenant, max: 10, ..Default::default() };
        let found = stage.store.list_tasks(filter).await.unwrap();
        let task = stage.handoff(expected).await.task_id;
        assert_eq!(found.iter().map(|t| t.id).collect::<Vec<_>>(), [task]);
    }
    assert_eq!(stage.claim_next("coder", 9).await, [default]);
    assert_eq!(stage.claim_next("acme/coder", 9).await, [ours]);
}

pub(crate) async fn a_nonce_is_good_for_once_whoever_is_asked(stage: Stage) {
    let nonce = |text: &str, created| Nonce {
        key: KeyId(1),
        nonce: text.into(),
        created,
        expires: stage.now().plus_ms(60_000),
    };
    let tries = (0..8).map(|_| {
        let (store, nonce) = (stage.store.clone(), nonce("n-1", stage.now()));
        tokio::spawn(async move { store.spend(nonce).await.unwrap() })
    });
    let spent: Vec<_> =
        futures::future::join_all(tries).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(spent.iter().filter(|spent| **spent == Spent::Fresh).count(), 1);
    assert_eq!(spent.iter().filter(|spent| **spent == Spent::Replayed).count(), 7);
    if stage.backend == Backend::Volatile {
        return;
    }
    let created = stage.now();
    stage.clock.advance_ms(1000);
    let again = stage.restart().await;
    assert_ne!(again.store.spend(nonce("n-1", created)).await.unwrap(), Spent::Fresh);
    let now = again.now();
    assert_eq!(again.store.spend(nonce("n-2", now)).await.unwrap(), Spent::Fresh);
}

pub(crate) async fn a_kept_text_is_replaced_by_a_later_one_only(stage: Stage) {
    let keep = |at, text: &str| stage.store.save_fold("records", Position(at), text.into());
    assert_eq!(stage.store.load_fold("records").await.unwrap(), None);
    keep(5, "five").await.unwrap();
    keep(7, "seven").await.unwrap();
    let kept = stage.store.load_fold("records").await.unwrap();
    assert_eq!(kept, Some((Position(7), "seven".into())));
    if stage.backend != Backend::Volatile {
        keep(6, "six").await.unwrap();
        let again = stage.restart().await;
        let kept = again.store.load_fold("records").await.unwrap();
        assert_eq!(kept, Some((Position(7), "seven".into())));
    }
}

pub(crate) async fn what_waits_is_counted_by_target(stage: Stage) {
    for _ in 0..3 {
        stage.offered().await;
    }
    stage.offer_to(to_any("review"), |_| {}).await;
    stage.claim_next("coder", 1).await;
    let targets: Vec<Target> = vec![to("coder"), to_any("review"), to("nobody")];
    let shared: Arc<dyn tasuki_store::Store> = stage.store.clone();
    let counts = shared.waiting(targets).await.unwrap();
    assert!(counts[0] >= 2 && counts[2] == 0, "{counts:?}");
    assert_eq!(counts.iter().sum::<u64>(), 3);
}

pub(crate) async fn a_tenant_gets_no_more_than_its_quotas_and_others_do_not_notice(stage: Stage) {
    let limit = async |stage: &Stage, quotas: Quotas| {
        let tenant = Tenant { id: "acme".parse().unwrap(), quotas };
        stage.change(RegistryWish::SetTenant(tenant)).await.unwrap();
    };
    let offer = async |stage: &Stage| {
        let mut offer = stage.offer(to("acme/coder"));
        offer.from = agent("acme/planner");
        stage.send(offer).await
    };
    let first = offer(&stage).await.unwrap().outcome.handoffs[0];
    limit(&stage, Quotas { in_flight: Some(2), ..Quotas::default() }).await;
    offer(&stage).await.unwrap();
    assert_eq!(code(offer(&stage).await), "quota_exceeded");
    stage.offered().await;
    // Finishing is never refused, and makes room.
    let proof = stage.claim(first, "acme/coder").await;
    stage.act(first, proof, complete("done")).await.unwrap();
    offer(&stage).await.unwrap();
    assert_eq!(code(offer(&stage).await), "quota_exceeded");
    limit(&stage, Quotas { stored_bytes: Some(1), ..Quotas::default() }).await;
    assert_eq!(code(offer(&stage).await), "quota_exceeded");
    limit(&stage, Quotas { stored_bytes: Some(100_000), ..Quotas::default() }).await;
    offer(&stage).await.unwrap();
    if stage.backend != Backend::Volatile {
        let stage = stage.restart().await;
        limit(&stage, Quotas { in_flight: Some(3), ..Quotas::default() }).await;
        assert_eq!(code(offer(&stage).await), "quota_exceeded", "three are in flight");
    }
}

pub(crate) async fn tasks_are_listed_by_their_project_before_and_after_a_restart(stage: Stage) {
    let open = async |project: Option<&str>| {
        let task = TaskId(stage.next_id());
        let open = OpenTask {
            task,
            intent: body("do it"),
            correlation_id: None,
            parent: None,
            project: project.map(|project| project.parse().unwrap()),
            coordinator: None,
            channel: None,
            on_parent_end: tasuki_core::tree::OnParentEnd::Cancel,
        };
        stage.run(Command::by(agent("planner"), open)).await.unwrap();
        task
    };
    let (web, _, again) = (open(Some("web")).await, open(None).await, open(Some("web")).await);
    open(Some("ledger")).await;
    let project = Some("web".parse().unwrap());
    let filter = TaskFilter { project, max: 10, ..TaskFilter::default() };
    let listed = async |stage: &Stage| {
        let tasks = stage.store.list_tasks(filter.clone()).await.unwrap();
        tasks.iter().map(|task| task.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(&stage).await, [again, web]);
    if stage.backend == Backend::Volatile {
        return;
    }
    let stage = stage.restart().await;
    assert_eq!(listed(&stage).await, [again, web]);
    let task = stage.store.task(web).await.unwrap().unwrap();
    assert_eq!(task.project.as_ref().map(|project| project.as_str()), Some("web"));
    // A change of the task keeps it where it is.
    let cancel = Command::by(
        agent("planner"),
        commands::CancelTask { task: web, reason: None, letter: None },
    );
    stage.run(cancel).await.unwrap();
    assert_eq!(listed(&stage).await, [again, web]);
}

pub(crate) async fn what_a_tenant_uses_is_told(stage: Stage) {
    let usage = async |tenant: &str| stage.store.usage(tenant.parse().unwrap()).await.unwrap();
    assert_eq!(usage("default").await, Usage::default());
    let id = stage.offered().await;
    stage.offered().await;
    let used = usage("default").await;
    assert_eq!(used.in_flight, 2);
    assert!(used.stored_bytes > 0);
    assert_eq!(usage("acme").await, Usage::default());
    let proof = stage.claim(id, "coder").await;
    stage.act(id, proof, complete("done")).await.unwrap();
    assert_eq!(usage("default").await.in_flight, 1);
}

pub(crate) async fn a_branch_says_in_the_log_where_it_comes_from(stage: Stage) {
    let id = stage.offered().await;
    let origin = stage.task_of(id).await;
    let (envelope, hop) = origin.envelope.unwrap();
    let branch_of = Some(BranchOf { task_id: origin.id, hop, envelope });
    let new = stage
        .offer_to(to("coder"), |offer| {
            if let OfferTask::New { branch_of: of, .. } = &mut offer.task {
                *of = branch_of;
            }
        })
        .await;
    let task = stage.task_of(new).await.id;
    assert_ne!(task, origin.id);
    let chain = stage.store.chain(task).await.unwrap();
    let (offered, _) = chain[0].sealed.record.event.offered().unwrap();
    assert_eq!(offered.opens.as_ref().unwrap().branch_of, branch_of);
    stage.verified().await;
}

pub(crate) async fn a_chain_of_another_broker_is_a_document_and_nothing_else(stage: Stage) {
    let content = body("a chain");
    let id = DocumentId::chain(&"default".parse().unwrap(), content.hash);
    let write = |kind: Kind| Write {
        kind,
        scope: Some(Scope::Agent(agent("planner"))),
        content: content.clone(),
        expected: None,
        pinned: None,
        priority: None,
        settles: None,
    };
    let put = async |id: &DocumentId, kind: Kind| {
        let wish = DocumentWish::Write(Box::new(write(kind)));
        stage
            .run(Command::by(agent("planner"), commands::ChangeDocument { id: id.clone(), wish }))
            .await
    };
    assert_eq!(code(put(&id, Kind::Memory).await), "invalid_document");
    assert_eq!(code(put(&"ms-1".parse().unwrap(), Kind::Chain).await), "invalid_document");
    assert!(!put(&id, Kind::Chain).await.unwrap().outcome.repeated);
    assert!(put(&id, Kind::Chain).await.unwrap().outcome.repeated);
    let filter = DocumentFilter { kind: Some(Kind::Chain), max: 10, ..DocumentFilter::default() };
    let listed = stage.store.list_documents(filter).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].body.as_ref().map(|body| body.hash), Some(content.hash));
    assert!(stage.claim_next("coder", 1).await.is_empty());
}
