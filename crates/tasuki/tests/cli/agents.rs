// SPDX-License-Identifier: Apache-2.0
//! A broker that asks everybody who it is: how agents come in, show who they are, and go.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use tasuki_testing::stage::{Broker, Ran, Stage, Talk, text};

const OFFER: &str = "handoff offer --from coder --to reviewer --intent 'look at it' \
                     --payload '{\"type\":\"code\"}'";

struct Guarded {
    stage: Stage,
    broker: Broker,
    administrator: String,
}

impl Guarded {
    fn new() -> Self {
        let stage = Stage::new();
        let broker = stage.broker_with("data", &["--auth", "required"]);
        let token = stage.path("data/admin.token");
        assert_eq!(std::fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
        let administrator = std::fs::read_to_string(token).unwrap().trim().to_owned();
        Self { stage, broker, administrator }
    }

    fn talk(&self) -> Talk<'_> {
        Talk { stage: &self.stage, broker: &self.broker }
    }

    /// As somebody who shows nothing but what is in the line.
    fn run(&self, line: &str) -> Ran {
        self.talk().run(line)
    }

    fn with_token(&self, token: &str, line: &str) -> Ran {
        let mut command = self.talk().command(line);
        command.env("TASUKI_TOKEN", token);
        Ran::of(command)
    }

    fn admin(&self, line: &str) -> Ran {
        self.with_token(&self.administrator, line)
    }

    /// Invites an agent, which enrolls with the very line that the invitation printed. Its key is
    /// in a file named after it.
    fn enroll(&self, name_and_rules: &str) -> String {
        let invitation = self.admin(&format!("agent invite {name_and_rules}")).ok();
        self.run(&fact(&invitation, "enroll")).ok()
    }
}

/// The value of a line `name: value`.
#[track_caller]
fn fact(text: &str, name: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("no {name} in\n{text}")).trim().to_owned()
}

#[test]
fn newcomers_enroll_with_their_invitations_and_work_with_signed_requests() {
    let broker = Guarded::new();
    let enrolled = broker.enroll("coder");
    assert_eq!(fact(&enrolled, "agent"), "coder");
    assert_eq!(fact(&enrolled, "rules"), "allow send,claim,complete,read");
    let enrolled = broker.enroll("reviewer");
    broker.run(&fact(&enrolled, "next").replace("30s", "0s")).ends(5, &["nothing"]);

    let offered = broker.run(&format!("{OFFER} --key coder.key")).ok();
    let claimed = broker.run(&fact(&enrolled, "next")).ok();
    assert_eq!(fact(&claimed, "handoff"), fact(&offered, "handoff"));
    // What is printed can be run as it is: it names the key that was used.
    assert!(fact(&claimed, "complete").ends_with("--key reviewer.key"));
    broker.run(&fact(&claimed, "complete")).ok();
    broker.run(&fact(&offered, "next")).ends(0, &["completed", r#"{"text":"…","type":"result"}"#]);
    let log = broker.run("audit log --after 0 --max 1 --key coder.key --json").ok();
    assert_eq!(log.lines().count(), 1);
}

#[test]
fn an_agent_speaks_for_nobody_else() {
    let broker = Guarded::new();
    broker.enroll("coder");
    broker.enroll("mallory");
    broker.run(&format!("{OFFER} --key mallory.key")).ends(1, &["not_permitted", "coder"]);
    broker.run("handoff claim --agent reviewer --key mallory.key").ends(1, &["not_permitted"]);
    broker
        .run("keys revoke --agent coder key_00000000000000000000000000 --key mallory.key")
        .ends(1, &["mallory may not administer towards coder"]);
}

#[test]
fn strangers_are_refused_and_told_how_to_come_in() {
    let broker = Guarded::new();
    let next = "next:  tasuki agent enroll --help";
    broker.run("task list").ends(1, &["error: the request does not show", "unauthenticated", next]);
    broker.run("keys new --out own.key").ok();
    for line in ["task list", "audit log", OFFER] {
        broker.run(&format!("{line} --key own.key")).ends(1, &["signature_wrong"]);
    }
    broker.with_token("tsk_made_up", "task list").ends(1, &["token_invalid"]);
    broker.with_token("", "task list").ends(2, &["no token"]);
    broker.run("agent enroll coder --join tsk_made_up").ends(1, &["token_refused"]);
}

#[test]
fn an_invitation_is_for_one_agent_once() {
    let broker = Guarded::new();
    let invitation = broker.admin("agent invite coder --allow claim --json").json();
    let join = text(&invitation["text"]);
    let enroll = |name: &str| broker.run(&format!("agent enroll {name} --join {join}"));
    enroll("mallory").ends(1, &["token_refused"]);
    // The key of a try that failed is there for the next one, and for nobody else.
    let key = broker.run("keys new --out coder.key --agent coder --json").json();
    let enrolled = enroll("coder").ok();
    assert!(enrolled.contains(&text(&key["key_id"])), "{enrolled}");
    enroll("coder").ends(1, &["token_refused"]);
    broker
        .run(&format!("agent enroll other --out coder.key --join {join}"))
        .ends(2, &["coder.key has the key of coder, not of other"]);
}

#[test]
fn a_key_file_names_the_broker_that_it_signs_for() {
    let broker = Guarded::new();
    broker.enroll("coder");
    let path = broker.stage.path("coder.key");
    let text = std::fs::read_to_string(&path).unwrap();
    let named = text.lines().find_map(|line| line.strip_prefix("broker: ")).unwrap().to_owned();
    std::fs::write(&path, text.replace(&named, "key_00000000000000000000000000")).unwrap();
    broker.run("task list --key coder.key").ends(1, &["signature_audience", "broker"]);
    broker.run(&format!("task list --key coder.key --broker {named}")).ok();
}

#[test]
fn a_revoked_key_is_refused() {
    let broker = Guarded::new();
    broker.enroll("coder");
    broker.run("task list --key coder.key").ok();
    let key = text(&broker.run("keys show coder.key --json").json()["key_id"]);
    broker.admin(&format!("keys revoke {key} --agent coder")).ends(0, &[&key, "ends"]);
    broker.run("task list --key coder.key").ends(1, &["signature_wrong"]);
}

#[test]
fn a_key_is_replaced_by_its_successor() {
    let broker = Guarded::new();
    broker.enroll("coder");
    let rotated = broker.run("keys rotate --agent coder --key coder.key --out second.key").ok();
    assert!(fact(&rotated, "old key").ends_with("counts for 1 h"), "{rotated}");
    broker.run(&fact(&rotated, "next")).ends(0, &[&fact(&rotated, "key id")]);
    broker.run("task list --key coder.key").ok();

    let rotate = "keys rotate --agent coder --key second.key --grace 0ms --out";
    broker.run(&format!("{rotate} third.key")).ends(4, &["too_many_keys"]);
    let first = text(&broker.run("keys show coder.key --json").json()["key_id"]);
    broker.run(&format!("keys revoke {first} --agent coder --key second.key")).ok();
    broker.run(&format!("{rotate} third.key")).ok();
    broker.run("task list --key second.key").ends(1, &["signature_wrong"]);
    broker.run("task list --key third.key").ok();
}

#[test]
fn a_key_that_could_not_replace_another_is_not_left_behind() {
    let broker = Guarded::new();
    broker.enroll("coder");
    broker.enroll("mallory");
    broker
        .run("keys rotate --agent coder --key mallory.key --out new.key")
        .ends(1, &["not_permitted"]);
    assert!(!broker.stage.path("new.key").exists());
    let before = std::fs::read(broker.stage.path("mallory.key")).unwrap();
    broker
        .run("keys rotate --agent coder --key coder.key --out mallory.key")
        .ends(1, &["mallory.key exists", "never overwritten"]);
    assert_eq!(std::fs::read(broker.stage.path("mallory.key")).unwrap(), before);
    broker.run("keys rotate --agent coder --out new.key").ends(2, &["--key"]);
    // A broker that is gone may have replaced the key before: the new one may be all there is.
    let gone = "keys rotate --agent coder --key coder.key --out new.key --url http://127.0.0.1:1";
    broker.run(gone).ends(69, &["not known", "agent show coder", "--key new.key"]);
    assert!(broker.stage.path("new.key").exists());
}

#[test]
fn a_token_narrows_what_its_agent_may_do_until_it_is_revoked() {
    let broker = Guarded::new();
    broker.enroll("coder");
    let issued = broker.run("token issue --agent coder --allow read --key coder.key").ok();
    let token = fact(&issued, "token");
    broker.with_token(&token, "task list").ok();
    broker.with_token(&token, OFFER).ends(1, &["not_permitted", "coder may not send"]);
    // A key counts before a token.
    broker.with_token(&token, &format!("{OFFER} --key coder.key")).ok();

    let listed = broker.run("token list --key coder.key").ok();
    let id = fact(&issued, "token id");
    assert!(listed.contains(&id) && listed.contains("bearer"), "{listed}");
    assert!(!listed.contains(&token) && !listed.contains(&broker.administrator), "{listed}");
    broker.run(&format!("token revoke {id} --key coder.key")).ends(0, &["ended:"]);
    broker.with_token(&token, "task list").ends(1, &["token_invalid"]);
}

#[test]
fn a_manifest_bears_its_agents_signature() {
    let broker = Guarded::new();
    for name in ["coder", "mallory", "boss --role admin"] {
        broker.enroll(name);
    }
    let manifest = r#"{"agent_id":"coder","capabilities":[{"name":"code.write"}]}"#;
    broker.stage.write("coder.json", manifest);
    let published = broker.run("agent publish coder.json --if-version 0 --key coder.key").ok();
    let key = text(&broker.run("keys show coder.key --json").json()["key_id"]);
    assert_eq!(fact(&published, "manifest"), "version 1");
    assert_eq!(fact(&published, "signed with"), key);
    let shown = broker.run("agent show coder --key mallory.key");
    shown.ends(0, &["code.write", &key, r#""agent_id": "coder""#]);
    let list = |what: &str| broker.run(&format!("agent list {what} --key mallory.key"));
    list("--capability code.write").ends(0, &["coder", "active", "code.write"]);
    assert_eq!(list("--capability code.write --tag none").ok(), "no agents\n");

    let other = manifest.replace("write", "delete");
    broker.run(&format!("agent publish '{other}' --key mallory.key")).ends(1, &["not_permitted"]);
    broker.admin(&format!("agent publish '{other}'")).ends(1, &["signs its manifest"]);
    broker.admin(&format!("agent publish '{other}' --key mallory.key")).ends(1, &["not_permitted"]);
    broker
        .run(&format!("agent publish '{other}' --if-version 0 --key coder.key"))
        .ends(4, &["manifest_moved"]);
    broker.run("agent publish '{\"agent_id\":7}' --key coder.key").ends(1, &["invalid_manifest"]);
    broker.run("agent publish none.json --key coder.key").ends(2, &["none.json"]);
    assert_eq!(fact(&broker.run("agent show coder --key coder.key").ok(), "manifest"), "version 1");
}

#[test]
fn an_agent_is_drained_resumed_and_taken_out() {
    let broker = Guarded::new();
    broker.enroll("coder");
    for (verb, standing) in [("drain", "draining"), ("resume", "active")] {
        let shown = broker.run(&format!("agent {verb} coder --key coder.key")).ok();
        assert_eq!(fact(&shown, "standing"), standing);
    }
    broker.admin("agent deregister coder").ends(0, &["deregistered"]);
    broker.run("task list --key coder.key").ends(1, &["signature_wrong"]);
    broker.admin("agent show nobody").ends(3, &["agent_not_found", "next:  tasuki agent list"]);
}

#[test]
fn rules_are_said_in_words_and_take_effect_at_once() {
    let broker = Guarded::new();
    broker.enroll("coder");
    let shown = broker.run("agent rules coder --key coder.key").ok();
    assert_eq!(fact(&shown, "rules"), "allow send,claim,complete,read");
    let set = "agent rules coder --role worker --deny send:review*,test*";
    broker.run(&format!("{set} --key coder.key")).ends(1, &["not_permitted"]);
    broker.admin(set).ends(0, &["allow send,claim,complete,read\n", "deny send:review*,test*"]);
    broker.run(&format!("{OFFER} --key coder.key")).ends(1, &["may not send towards reviewer"]);
    broker.admin("agent rules coder --allow sned").ends(2, &["\"sned\" is no permission", "send"]);
}

#[test]
fn agents_of_a_tenant_are_found_by_their_whole_name() {
    let broker = Guarded::new();
    let join = text(&broker.admin("agent invite acme/bot --json").json()["text"]);
    // Whoever joins need not know in which tenant it will be.
    broker.run(&format!("agent enroll bot --join {join}")).ends(0, &["acme/bot"]);
    broker.admin("agent show acme/bot").ends(0, &["acme/bot"]);
    broker.run("agent show bot --key bot.key").ends(0, &["acme/bot"]);
    broker.admin("tenant set acme --in-flight 1 --stored-bytes 2048").ends(0, &["2 KiB"]);
    broker.admin("tenant list").ends(0, &["acme", "default", "no limit"]);
    broker.run("tenant list --key bot.key").ends(1, &["not_permitted"]);
}

/// Answers one request after the other as it is told, and returns the heads of the requests.
fn answering(answers: &'static [&'static str]) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let heads = std::thread::spawn(move || {
        let answer = |answer: &&str| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(head).unwrap()
        };
        answers.iter().map(answer).collect()
    });
    (url, heads)
}

#[test]
fn what_was_signed_too_early_is_signed_again() {
    let stage = Stage::new();
    stage.run(&["keys", "new", "--out", "a.key"]).ok();
    let (url, heads) = answering(&[
        // Whom it signs for it asks first, as anybody may.
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"status\":\"ok\"}",
        "HTTP/1.1 401 x\r\nconnection: close\r\n\r\n\
         {\"code\":\"signature_too_early\",\"message\":\"m\",\"hint\":\"h\",\"retryable\":true}",
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"tasks\":[]}",
    ]);
    stage.run(&["task", "list", "--key", "a.key", "--token", "t", "--url", &url]).ok();
    let inputs = heads.join().unwrap().into_iter().skip(1).map(|head| {
        assert!(!head.contains("authorization"), "{head}");
        let input = head.lines().find(|line| line.starts_with("signature-input: tasuki=("));
        input.unwrap_or_else(|| panic!("{head}")).to_owned()
    });
    let inputs: Vec<_> = inputs.collect();
    assert_ne!(inputs[0], inputs[1]);
}

#[test]
fn a_token_is_not_carried_to_wherever_an_answer_points() {
    let (url, heads) =
        answering(&["HTTP/1.1 307 x\r\nlocation: /other\r\nconnection: close\r\n\r\n"]);
    Stage::new()
        .run(&["task", "list", "--token", "tsk_x", "--url", &url])
        .ends(1, &["status 307", "check that --url names a Tasuki broker"]);
    assert!(heads.join().unwrap()[0].contains("authorization: Bearer tsk_x"));
}

#[test]
fn a_key_file_is_private_and_never_overwritten() {
    let stage = Stage::new();
    let made = stage.run(&["keys", "new", "--out", "a.key", "--agent", "coder"]).ok();
    let kept = std::fs::read_to_string(stage.path("a.key")).unwrap();
    let secret = kept.lines().next().unwrap();
    let shown = stage.run(&["keys", "show", "a.key"]).ok();
    assert_eq!(shown, made);
    assert!(secret.starts_with("ed25519-secret:") && !shown.contains(secret), "{shown}");
    stage.run(&["keys", "new", "--out", "a.key"]).ends(1, &["a.key exists"]);
    assert_eq!(std::fs::read_to_string(stage.path("a.key")).unwrap(), kept);

    std::fs::set_permissions(stage.path("a.key"), PermissionsExt::from_mode(0o644)).unwrap();
    for line in [&["keys", "show", "a.key"][..], &["task", "list", "--key", "a.key"]] {
        stage.run(line).ends(1, &["mode 644", "next:  chmod 600 a.key"]);
    }
    stage.run(&["stats", "--key", "b.key"]).ends(3, &["next:  tasuki keys new --out b.key"]);
    stage.write("c.key", "ed25519:JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs");
    std::fs::set_permissions(stage.path("c.key"), PermissionsExt::from_mode(0o600)).unwrap();
    stage.run(&["stats", "--key", "c.key"]).ends(2, &["c.key is no key file: line 1"]);
}
