// SPDX-License-Identifier: Apache-2.0
//! The shapes that tokens have: ours, and those of the providers whose tokens are told by how they begin.
//! What has no beginning of its own is found by the name that it is assigned to.

use super::SecretKind;

/// A token that begins like this and goes on with at least so many characters of an alphabet.
pub(super) struct Shape {
    pub(super) prefix: &'static str,
    pub(super) rest_min: usize,
    pub(super) alphabet: fn(u8) -> bool,
    pub(super) kind: SecretKind,
}

const fn shape(
    prefix: &'static str,
    rest_min: usize,
    alphabet: fn(u8) -> bool,
    kind: SecretKind,
) -> Shape {
    Shape { prefix, rest_min, alphabet, kind }
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn dashed(byte: u8) -> bool {
    upper(byte) || byte == b'-'
}

fn hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

fn plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

pub(super) fn joined(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn after_colon(byte: u8) -> bool {
    joined(byte) || byte == b':'
}

fn dotted(byte: u8) -> bool {
    joined(byte) || byte == b'.' || byte == b'='
}

fn base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

fn webhook(byte: u8) -> bool {
    joined(byte) || byte == b'@' || byte == b'/'
}

pub(super) const SHAPES: &[Shape] = &[
    shape("tsk_", 80, joined, SecretKind::OwnToken),
    shape("ed25519-secret", 41, after_colon, SecretKind::OwnToken),
    shape("AKIA", 16, upper, SecretKind::AwsKey),
    shape("ASIA", 16, upper, SecretKind::AwsKey),
    shape("ABIA", 16, upper, SecretKind::AwsKey),
    shape("ACCA", 16, upper, SecretKind::AwsKey),
    shape("ABSK", 100, base64, SecretKind::AwsKey),
    shape("bedrock-api-key-", 40, base64, SecretKind::AwsKey),
    shape("AIza", 35, joined, SecretKind::GoogleKey),
    shape("ghp_", 36, plain, SecretKind::GithubToken),
    shape("gho_", 36, plain, SecretKind::GithubToken),
    shape("ghu_", 36, plain, SecretKind::GithubToken),
    shape("ghs_", 36, plain, SecretKind::GithubToken),
    shape("ghr_", 36, plain, SecretKind::GithubToken),
    shape("github_pat_", 40, joined, SecretKind::GithubToken),
    shape("glpat-", 20, joined, SecretKind::GitlabToken),
    shape("gldt-", 20, joined, SecretKind::GitlabToken),
    shape("glft-", 20, joined, SecretKind::GitlabToken),
    shape("glimt-", 20, joined, SecretKind::GitlabToken),
    shape("glagent-", 40, joined, SecretKind::GitlabToken),
    shape("gloas-", 40, joined, SecretKind::GitlabToken),
    shape("glptt-", 40, joined, SecretKind::GitlabToken),
    shape("glrt-", 20, joined, SecretKind::GitlabToken),
    shape("glsoat-", 20, joined, SecretKind::GitlabToken),
    shape("glffct-", 20, joined, SecretKind::GitlabToken),
    shape("glcbt-", 20, joined, SecretKind::GitlabToken),
    shape("GR1348941", 20, joined, SecretKind::GitlabToken),
    shape("xoxb-", 20, joined, SecretKind::SlackToken),
    shape("xoxp-", 20, joined, SecretKind::SlackToken),
    shape("xoxa-", 20, joined, SecretKind::SlackToken),
    shape("xoxr-", 20, joined, SecretKind::SlackToken),
    shape("xoxs-", 20, joined, SecretKind::SlackToken),
    shape("xoxo-", 20, joined, SecretKind::SlackToken),
    shape("xoxe-", 40, joined, SecretKind::SlackToken),
    shape("xoxe.", 40, joined, SecretKind::SlackToken),
    shape("xapp-", 20, joined, SecretKind::SlackToken),
    shape("hooks.slack.com/services/", 40, base64, SecretKind::SlackToken),
    shape("hooks.slack.com/workflows/", 40, base64, SecretKind::SlackToken),
    shape("hooks.slack.com/triggers/", 40, base64, SecretKind::SlackToken),
    shape("sk_live_", 16, plain, SecretKind::StripeKey),
    shape("rk_live_", 16, plain, SecretKind::StripeKey),
    shape("sk_test_", 16, plain, SecretKind::StripeKey),
    shape("rk_test_", 16, plain, SecretKind::StripeKey),
    shape("sk_prod_", 16, plain, SecretKind::StripeKey),
    shape("rk_prod_", 16, plain, SecretKind::StripeKey),
    shape("whsec_", 24, plain, SecretKind::StripeKey),
    shape("sk-ant-", 24, joined, SecretKind::ModelKey),
    shape("sk-proj-", 24, joined, SecretKind::ModelKey),
    shape("sk-svcacct-", 24, joined, SecretKind::ModelKey),
    shape("sk-admin-", 24, joined, SecretKind::ModelKey),
    shape("sk-", 40, plain, SecretKind::ModelKey),
    shape("hf_", 30, plain, SecretKind::ModelKey),
    shape("api_org_", 30, plain, SecretKind::ModelKey),
    shape("pplx-", 40, plain, SecretKind::ModelKey),
    shape("npm_", 36, plain, SecretKind::RegistryToken),
    shape("dop_v1_", 60, plain, SecretKind::RegistryToken),
    shape("doo_v1_", 60, plain, SecretKind::RegistryToken),
    shape("dor_v1_", 60, plain, SecretKind::RegistryToken),
    shape("rubygems_", 48, plain, SecretKind::RegistryToken),
    shape("CLOJARS_", 60, plain, SecretKind::RegistryToken),
    shape("pypi-", 40, joined, SecretKind::RegistryToken),
    shape("A3-", 30, dashed, SecretKind::ProviderToken),
    shape("ops_", 200, base64, SecretKind::ProviderToken),
    shape("fm1a_", 100, base64, SecretKind::ProviderToken),
    shape("fm1r_", 100, base64, SecretKind::ProviderToken),
    shape("fm2_", 100, base64, SecretKind::ProviderToken),
    shape("glc_", 32, base64, SecretKind::ProviderToken),
    shape("sntrys_", 64, base64, SecretKind::ProviderToken),
    shape("p8e-", 32, plain, SecretKind::ProviderToken),
    shape("LTAI", 20, plain, SecretKind::ProviderToken),
    shape("AKCp", 69, plain, SecretKind::ProviderToken),
    shape("cmVmd", 59, plain, SecretKind::ProviderToken),
    shape("EZAK", 54, plain, SecretKind::ProviderToken),
    shape("EZTK", 54, plain, SecretKind::ProviderToken),
    shape("EAAM", 100, plain, SecretKind::ProviderToken),
    shape("EAAC", 100, plain, SecretKind::ProviderToken),
    shape("ico-", 32, plain, SecretKind::ProviderToken),
    shape("lin_", 44, joined, SecretKind::ProviderToken),
    shape("ntn_", 40, plain, SecretKind::ProviderToken),
    shape("pnu_", 36, plain, SecretKind::ProviderToken),
    shape("rdme_", 60, plain, SecretKind::ProviderToken),
    shape("sntryu_", 60, plain, SecretKind::ProviderToken),
    shape("sm_aat_", 16, plain, SecretKind::ProviderToken),
    shape("sm_pat_", 16, plain, SecretKind::ProviderToken),
    shape("sm_sat_", 16, plain, SecretKind::ProviderToken),
    shape("AGE-SECRET-KEY-1", 58, upper, SecretKind::ProviderToken),
    shape("API-", 26, upper, SecretKind::ProviderToken),
    shape("ATATT3", 100, joined, SecretKind::ProviderToken),
    shape("duffel_test_", 40, joined, SecretKind::ProviderToken),
    shape("duffel_live_", 40, joined, SecretKind::ProviderToken),
    shape("fio-u-", 60, joined, SecretKind::ProviderToken),
    shape("fo1_", 43, joined, SecretKind::ProviderToken),
    shape("glsa_", 40, joined, SecretKind::ProviderToken),
    shape("HRKU-AA", 50, joined, SecretKind::ProviderToken),
    shape("s-s4t2ud-", 60, joined, SecretKind::ProviderToken),
    shape("s-s4t2af-", 60, joined, SecretKind::ProviderToken),
    shape("sha256~", 43, joined, SecretKind::ProviderToken),
    shape("PMAK-", 50, joined, SecretKind::ProviderToken),
    shape("tk-us-", 48, joined, SecretKind::ProviderToken),
    shape("xkeysib-", 64, joined, SecretKind::ProviderToken),
    shape("sq0atp-", 22, joined, SecretKind::ProviderToken),
    shape("EAAA", 50, joined, SecretKind::ProviderToken),
    shape("hvb.", 100, joined, SecretKind::ProviderToken),
    shape("hvs.", 80, joined, SecretKind::ProviderToken),
    shape("AQVN", 35, joined, SecretKind::ProviderToken),
    shape("NRAK-", 27, joined, SecretKind::ProviderToken),
    shape("NRII-", 30, joined, SecretKind::ProviderToken),
    shape("tfp_", 50, joined, SecretKind::ProviderToken),
    shape("dnkey-", 70, joined, SecretKind::ProviderToken),
    shape("atlasv1.", 60, joined, SecretKind::ProviderToken),
    shape("FLWSECK_TEST-", 12, joined, SecretKind::ProviderToken),
    shape("FLWSECK-", 30, joined, SecretKind::ProviderToken),
    shape("dt0c01.", 80, dotted, SecretKind::ProviderToken),
    shape("SG.", 60, dotted, SecretKind::ProviderToken),
    shape("pscale_tkn_", 32, dotted, SecretKind::ProviderToken),
    shape("pscale_oauth_", 32, dotted, SecretKind::ProviderToken),
    shape("pscale_pw_", 32, dotted, SecretKind::ProviderToken),
    shape("pat.", 66, dotted, SecretKind::ProviderToken),
    shape("sat.", 66, dotted, SecretKind::ProviderToken),
    shape("dp.pt.", 43, plain, SecretKind::ProviderToken),
    shape("dapi", 32, hex, SecretKind::ProviderToken),
    shape("pul-", 40, hex, SecretKind::ProviderToken),
    shape("shippo_live_", 40, hex, SecretKind::ProviderToken),
    shape("shippo_test_", 40, hex, SecretKind::ProviderToken),
    shape("shpat_", 32, hex, SecretKind::ProviderToken),
    shape("shpca_", 32, hex, SecretKind::ProviderToken),
    shape("shppa_", 32, hex, SecretKind::ProviderToken),
    shape("shpss_", 32, hex, SecretKind::ProviderToken),
    shape("SK", 32, hex, SecretKind::ProviderToken),
    shape("sgp_", 40, hex, SecretKind::ProviderToken),
    shape("NRJS-", 19, hex, SecretKind::ProviderToken),
    shape("_gitlab_session=", 32, hex, SecretKind::ProviderToken),
    shape("webhook.office.com/webhookb2/", 60, webhook, SecretKind::ProviderToken),
];
