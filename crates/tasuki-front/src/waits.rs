// SPDX-License-Identifier: Apache-2.0
//! How many waits and streams there are at once: of one agent, of one tenant, from one address. Who
//! looks after the whole broker is not counted, so that it gets in when others have used theirs up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tasuki_protocol::{Code, Problem};

/// How many waits and streams there may be at once.
#[derive(Debug, Clone, Copy)]
pub struct WaitLimits {
    pub per_agent: usize,
    pub per_tenant: usize,
    /// 0 is no limit.
    pub per_address: usize,
}

impl Default for WaitLimits {
    fn default() -> Self {
        Self { per_agent: 1024, per_tenant: 8192, per_address: 0 }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Waits {
    counts: Mutex<HashMap<String, usize>>,
}

impl Waits {
    /// Counts a wait for as long as what is returned lives. What is counted has a name, and how many
    /// of it there may be.
    pub(crate) fn begin(self: &Arc<Self>, names: Vec<(String, usize)>) -> Result<Waiting, Problem> {
        let mut counts = self.counts.lock().expect("no holder of this lock panics");
        for (name, max) in &names {
            if counts.get(name).is_some_and(|count| count >= max) {
                return Err(Problem::new(
                    Code::QuotaExceeded,
                    format!("{name} has {max} waits and streams at once"),
                    "end some of them, or wait for the time in Retry-After and ask again",
                )
                .detail("retry_after_ms", 1000));
            }
        }
        let names: Vec<_> = names.into_iter().map(|(name, _)| name).collect();
        for name in &names {
            *counts.entry(name.clone()).or_default() += 1;
        }
        Ok(Waiting { waits: self.clone(), names })
    }
}

/// A wait that counts.
#[derive(Debug)]
pub struct Waiting {
    waits: Arc<Waits>,
    names: Vec<String>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut counts = self.waits.counts.lock().expect("no holder of this lock panics");
        for name in &self.names {
            if let Some(count) = counts.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_full_refuses_and_what_ends_makes_room() {
        let waits = Arc::<Waits>::default();
        let names = || vec![("agent a".to_owned(), 2), ("tenant t".to_owned(), 3)];
        let first = waits.begin(names()).unwrap();
        let _second = waits.begin(names()).unwrap();
        assert_eq!(waits.begin(names()).unwrap_err().code, "quota_exceeded");
        assert!(waits.begin(vec![("agent b".to_owned(), 2), ("tenant t".to_owned(), 3)]).is_ok());
        drop(first);
        assert!(waits.begin(names()).is_ok());
    }
}
