// SPDX-License-Identifier: Apache-2.0
//! Tenants and what they may use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tasuki_core::ids::TenantId;
use tasuki_core::registry::Quotas;

/// A tenant and what it may use.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TenantInfo {
    pub tenant_id: TenantId,
    pub quotas: Quotas,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Tenants {
    pub tenants: Vec<TenantInfo>,
}
