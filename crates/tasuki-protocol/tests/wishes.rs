// SPDX-License-Identifier: Apache-2.0
//! What an idempotency key stands for does not change from one version to the next: each request of
//! the golden file has the address that it had when it was written down.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tasuki_protocol::read::{self, Form};
use tasuki_protocol::{
    Amend, Branch, Members, NewMemory, Offer, OpenTask, Publication, StartPipeline, Wish,
};

#[derive(Deserialize)]
struct Case {
    claim: String,
    wish: String,
    on: Option<String>,
    address: String,
    /// All of them are the same wish, said in different ways.
    requests: Vec<Value>,
}

fn address<T: Wish + JsonSchema + DeserializeOwned + 'static>(
    request: &Value,
    on: Option<&str>,
) -> String {
    let bytes = serde_json::to_vec(request).expect("a value can be written");
    let members = Members::of::<T>();
    let form = Form { members: &members, every: &|_| Vec::new() };
    let read: T = read::request(&bytes, &form, |_| Ok(())).unwrap_or_else(|problem| {
        panic!("{request}: {}", problem.message);
    });
    read.address(on).to_string()
}

#[test]
fn every_request_of_the_golden_file_has_the_address_that_it_had() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("golden/wishes.json")).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let on = case.on.as_deref();
        for request in &case.requests {
            let address = match case.wish.as_str() {
                "task" => address::<OpenTask>(request, on),
                "offer" => address::<Offer>(request, on),
                "publication" => address::<Publication>(request, on),
                "pipeline" => address::<StartPipeline>(request, on),
                "branch" => address::<Branch>(request, on),
                "memory" => address::<NewMemory>(request, on),
                "amend" => address::<Amend>(request, on),
                other => panic!("{other}"),
            };
            if address != case.address {
                wrong.push(format!("{}: {address} for {request}", case.claim));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let addresses: std::collections::BTreeSet<_> = cases.iter().map(|case| &case.address).collect();
    assert_eq!(addresses.len(), cases.len(), "two wishes have one address");
}
