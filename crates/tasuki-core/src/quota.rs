// SPDX-License-Identifier: Apache-2.0
//! What tenants use, and whether there is room for more. Finishing work is never refused.

use crate::decide::View;
use crate::refusal::Refusal;

/// What a tenant uses now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Handoffs that are not at their end.
    pub in_flight: u64,
    /// Bytes of bodies that were ever stored and not erased.
    pub stored_bytes: u64,
}

/// Refuses new work of a tenant that has used up what it may use.
pub(crate) fn check(
    view: &dyn View,
    tenant: &str,
    handoffs: usize,
    bytes: usize,
) -> Result<(), Refusal> {
    let Some(quotas) = view.registry().quotas(tenant) else { return Ok(()) };
    let usage = view.usage(tenant);
    let over = |what: &'static str, used: u64, more: usize, limit: Option<u64>| {
        let wanted = used.saturating_add(more as u64);
        match limit {
            Some(limit) if wanted > limit => {
                Err(Refusal::QuotaExceeded { tenant: tenant.to_owned(), what, used, limit })
            }
            _ => Ok(()),
        }
    };
    over("handoffs in flight", usage.in_flight, handoffs, quotas.in_flight)?;
    over("stored bytes", usage.stored_bytes, bytes, quotas.stored_bytes)
}
