// SPDX-License-Identifier: Apache-2.0
//! Who is known: manifests, keys, tokens.

use tasuki_core::commands::{Command, Holder, RegistryWish};
use tasuki_core::decide::Outcome;
use tasuki_core::event::Actor;
use tasuki_core::handoff::StateName;
use tasuki_core::identity::SecretKey;
use tasuki_core::ids::TokenId;
use tasuki_core::registry::rules::{Permission, Rule};
use tasuki_core::registry::{Purpose, Signed, Standing, Token};
use tasuki_core::{Hash, Refusal};

use crate::support::{Stage, agent, body, complete};

const SECRET: Hash = Hash([7; 32]);

impl Stage {
    fn registry(&mut self, wish: RegistryWish) -> Result<Outcome, Refusal> {
        self.run(Command::registry(Actor::Broker, None, wish))
    }

    fn publish(&mut self, text: &str, version: Option<u32>) -> Result<Outcome, Refusal> {
        let manifest = body(text);
        let agent = agent("coder");
        self.registry(RegistryWish::Publish { agent, manifest, signed: None, version })
    }

    fn enroll(&mut self, number: u8) -> Result<Outcome, Refusal> {
        let key = secret(number).public();
        self.registry(RegistryWish::Enroll { agent: agent("coder"), key, rules: None })
    }

    fn revoke(&mut self, number: u8) -> Result<Outcome, Refusal> {
        let key = secret(number).public().id();
        self.registry(RegistryWish::Revoke { agent: agent("coder"), key })
    }

    fn invite(&mut self, id: u128) {
        let token = Token {
            id: TokenId(id),
            purpose: Purpose::Join,
            secret: SECRET,
            agent: agent("coder"),
            rules: vec![Rule::allow([Permission::Claim])],
            issued_at: self.now,
            expires_at: Some(self.now.plus_ms(600_000)),
            ended_at: None,
            made_by: None,
            made_from: None,
        };
        self.registry(RegistryWish::IssueToken(token)).unwrap();
    }

    fn join(
        &mut self,
        id: u128,
        number: u8,
        name: &str,
        secret_hash: Hash,
    ) -> Result<Outcome, Refusal> {
        let key = secret(number).public();
        let (token, agent) = (TokenId(id), agent(name));
        self.registry(RegistryWish::Join { token, secret: secret_hash, agent, key })
    }

    fn counts(&self, number: u8) -> bool {
        self.world.registry.holder_of(secret(number).public().id(), self.now).is_some()
    }
}

fn secret(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

#[test]
fn each_manifest_is_a_new_version_and_the_same_one_again_is_none() {
    let mut stage = Stage::new();
    let version = |stage: &Stage| {
        stage.world.registry.agents[&agent("coder")].manifest.as_ref().unwrap().version
    };
    stage.publish("one", None).unwrap();
    assert_eq!(version(&stage), 1);
    assert!(stage.publish("one", None).unwrap().repeated);
    stage.publish("two", Some(1)).unwrap();
    assert_eq!(version(&stage), 2);
    let late = stage.publish("three", Some(1));
    assert_eq!(late, Err(Refusal::ManifestMoved { agent: agent("coder"), version: 2 }));
    assert_eq!(version(&stage), 2);
}

#[test]
fn a_join_token_enrolls_one_key_once_and_gives_its_rules() {
    let mut stage = Stage::new();
    stage.invite(1);
    assert_eq!(stage.join(1, 1, "coder", Hash([8; 32])), Err(Refusal::TokenRefused));
    assert_eq!(stage.join(1, 1, "other", SECRET), Err(Refusal::TokenRefused));
    assert_eq!(stage.join(2, 1, "coder", SECRET), Err(Refusal::TokenRefused));
    stage.join(1, 1, "coder", SECRET).unwrap();
    assert!(stage.counts(1));
    let rules = &stage.world.registry.agents[&agent("coder")].rules;
    assert_eq!(*rules, [Rule::allow([Permission::Claim])]);
    assert_eq!(stage.join(1, 2, "coder", SECRET), Err(Refusal::TokenRefused), "it is spent");
}

#[test]
fn a_join_token_runs_out_and_can_be_revoked() {
    let mut stage = Stage::new();
    stage.invite(1);
    stage.invite(2);
    stage.registry(RegistryWish::RevokeToken(TokenId(2))).unwrap();
    assert!(stage.registry(RegistryWish::RevokeToken(TokenId(2))).unwrap().repeated);
    assert_eq!(stage.join(2, 1, "coder", SECRET), Err(Refusal::TokenRefused));
    stage.wait(600_000);
    assert_eq!(stage.join(1, 1, "coder", SECRET), Err(Refusal::TokenRefused));
}

#[test]
fn a_key_belongs_to_one_agent_for_ever() {
    let mut stage = Stage::new();
    stage.enroll(1).unwrap();
    let taken = Err(Refusal::KeyTaken(secret(1).public().id()));
    assert_eq!(stage.enroll(1), taken);
    stage.revoke(1).unwrap();
    let other =
        RegistryWish::Enroll { agent: agent("other"), key: secret(1).public(), rules: None };
    assert_eq!(stage.registry(other), taken);
}

#[test]
fn a_replaced_key_counts_for_its_grace_and_a_revoked_one_no_longer() {
    let mut stage = Stage::new();
    stage.enroll(1).unwrap();
    let rotate = RegistryWish::Rotate {
        agent: agent("coder"),
        old: secret(1).public().id(),
        new: secret(2).public(),
        grace_ms: 1000,
    };
    stage.registry(rotate.clone()).unwrap();
    assert!(stage.counts(1) && stage.counts(2));
    assert!(stage.registry(rotate).is_err(), "what was replaced is not replaced again");
    stage.wait(1000);
    assert!(!stage.counts(1) && stage.counts(2));
    stage.revoke(2).unwrap();
    assert!(!stage.counts(2));
    assert!(stage.revoke(2).unwrap().repeated);
}

#[test]
fn who_loses_its_last_key_loses_what_it_holds() {
    let mut stage = Stage::new();
    stage.enroll(1).unwrap();
    stage.enroll(2).unwrap();
    let handoff = stage.offered();
    let proof = stage.claim(handoff, "coder");
    stage.revoke(1).unwrap();
    assert_eq!(stage.state(handoff), StateName::Claimed, "it has another key");
    stage.revoke(2).unwrap();
    assert_eq!(stage.state(handoff), StateName::Pending);
    assert_eq!(stage.handoff(handoff).losses, 0, "it is not the handoff's fault");
    let late = stage.act(handoff, proof, complete("late"));
    assert!(matches!(late, Err(Refusal::StaleClaim { .. })));
}

#[test]
fn a_deregistered_agent_loses_what_it_holds_and_may_come_back() {
    let mut stage = Stage::new();
    stage.publish("one", None).unwrap();
    let handoff = stage.offered();
    stage.claim(handoff, "coder");
    let gone =
        RegistryWish::SetStanding { agent: agent("coder"), standing: Standing::Deregistered };
    stage.registry(gone).unwrap();
    assert_eq!(stage.state(handoff), StateName::Pending);
    stage.publish("one", None).unwrap();
    assert_eq!(stage.world.registry.agents[&agent("coder")].standing, Standing::Active);
}

#[test]
fn a_claim_that_leaked_is_of_no_use_to_others() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let proof = stage.claim(handoff, "coder");
    let held = |by: &str| {
        Command::held(
            handoff,
            proof,
            Some(Holder { agent: agent(by), signed: None }),
            complete("done"),
        )
    };
    let before = stage.world.log.len();
    assert_eq!(stage.run(held("thief")), Err(Refusal::HandoffNotFound(handoff)));
    assert_eq!(stage.world.log.len(), before, "and leaves no trace in the task");
    stage.run(held("coder")).unwrap();
    assert_eq!(stage.state(handoff), StateName::Completed);
}

#[test]
fn a_holders_signature_stands_in_the_log_before_what_it_did() {
    let mut stage = Stage::new();
    let handoff = stage.offered();
    let proof = stage.claim(handoff, "coder");
    let signature = secret(1).sign(b"what was agreed");
    let signed = Some(Signed { key_id: secret(1).public().id(), signature });
    let by = Some(Holder { agent: agent("coder"), signed });
    let complete = Command::held(handoff, proof, by, complete("done"));
    stage.run(complete.clone()).unwrap();
    assert!(stage.run(complete).unwrap().repeated);
    let kinds: Vec<_> = stage.world.log.iter().map(|e| e.record.event.kind()).collect();
    assert_eq!(kinds[kinds.len() - 2..], ["acknowledged", "completed"]);
    assert_eq!(kinds.iter().filter(|kind| **kind == "acknowledged").count(), 1);
}
