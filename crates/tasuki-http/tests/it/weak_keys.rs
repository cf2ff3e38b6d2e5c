// SPDX-License-Identifier: Apache-2.0
//! Keys under which a signature proves nothing never come in.

use serde_json::json;
use tasuki_core::identity::Signature;

use crate::support::{Stage, everything, may, new_key, on_both_stores, possession};

on_both_stores! { closed:
    a_key_of_small_order_cannot_be_enrolled
}

/// The eight points of small order, and the second spellings of those that have one.
const SMALL_ORDER: [&str; 14] = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
];

async fn a_key_of_small_order_cannot_be_enrolled(stage: Stage) {
    let admin = stage.administrator().await;
    let coder = admin.enroll("coder", may(&[])).await;
    let (_, token) = admin.token("join", "tester", everything()).await;
    let head = stage.store.head();
    for hex in SMALL_ORDER {
        let mut bytes = [0; 64];
        for (place, byte) in bytes[..32].iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[place * 2..][..2], 16).unwrap();
        }
        // Before zeros, the text of the first half is that of the half alone.
        let weak = format!("ed25519:{}", &Signature(bytes).to_string()[..43]);
        // Under such a key this signature fits many messages.
        let proof = format!("AQ{}", "A".repeat(84));
        let enroll = json!({ "key": weak, "rules": everything() });
        let join = json!({
            "token": token, "agent_id": "tester", "key": weak, "proof": proof,
        });
        let rotate = json!({ "old": coder.key_id(), "key": weak, "proof": proof });
        for (who, path, body) in [
            (&admin, "/v1/agents/tester/keys", enroll),
            (&coder, "/v1/agents/coder/keys/rotate", rotate),
            (&coder, "/v1/join", join),
        ] {
            let problem = who.post(path, body).await.refused(400, "invalid_request");
            assert_eq!(problem["details"]["field"], "key", "{hex}");
        }
    }
    assert_eq!(stage.store.head(), head);
    let tester = admin.with_key("tester", new_key());
    let proof = possession(tester.key(), "tester");
    let join = json!({
        "token": token, "agent_id": "tester", "key": tester.key().public(), "proof": proof,
    });
    stage.post("/v1/join", join).await.done();
}
