// SPDX-License-Identifier: Apache-2.0
//! Requests of major 1, in the form of today. Done once, on the JSON, so that nothing behind it knows
//! that there was another form.

use serde_json::Value;
use tasuki_core::envelope::version;

use crate::{Code, Problem};

/// Whose task it is, and who hands it on, the claim of a completion says.
const OF_THE_CLAIM: [&str; 5] = ["task_id", "from_agent", "intent", "correlation_id", "project"];

/// Puts hops of major 1 into the form of today.
pub(crate) fn modernised(mut value: Value) -> Result<Value, Problem> {
    if is_old(&value) {
        modernise(&mut value)?;
    }
    for list in ["offers", "follow_ups"] {
        let hops = value.get_mut(list).and_then(Value::as_array_mut);
        for hop in hops.into_iter().flatten().filter(|hop| is_old(hop)) {
            modernise(hop)?;
            if let Value::Object(hop) = hop
                && list == "follow_ups"
            {
                OF_THE_CLAIM.iter().for_each(|name| drop(hop.remove(*name)));
            }
        }
    }
    Ok(value)
}

fn is_old(value: &Value) -> bool {
    let given = value.get("envelope_version").and_then(Value::as_str);
    given.and_then(version::parse).is_some_and(|(major, _)| major == 1)
}

fn modernise(value: &mut Value) -> Result<(), Problem> {
    let Value::Object(flat) = value.take() else { return Ok(()) };
    let offer = version::offer_from_1(flat).map_err(|faults| {
        let message = "the envelope of major 1 is not what it must be";
        let hint = "correct every fault that is named and send it again";
        Problem::new(Code::InvalidEnvelope, message, hint).faults(&faults)
    });
    *value = Value::Object(offer?);
    Ok(())
}
