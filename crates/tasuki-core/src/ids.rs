// SPDX-License-Identifier: Apache-2.0
// Long because: it is one list of ids and names.
//! Names and numbers that identify things. Each is a type of its own, so that a task's id cannot
//! be passed where a handoff's is wanted, and each checks its text form where it enters.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Why a text is not the id or name it was taken for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

/// The digits of Crockford's base 32: no letter that reads like a digit.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ENCODED_CHARS: usize = 26;

/// What each byte is worth as a digit; 255 if it is none.
const WORTH: [u8; 256] = {
    let mut worth = [255; 256];
    let mut digit: u8 = 0;
    while (digit as usize) < DIGITS.len() {
        worth[DIGITS[digit as usize] as usize] = digit;
        digit += 1;
    }
    worth
};

/// An id as it is written. Many are written for each request, so it is kept on the stack.
struct Encoded {
    text: [u8; ID_CHARS_MAX],
    chars: usize,
}

/// The longest prefix, what joins it, and the digits.
const ID_CHARS_MAX: usize = "handoff_".len() + ENCODED_CHARS;

impl Encoded {
    fn new(value: u128, prefix: &str) -> Self {
        let mut text = [b'_'; ID_CHARS_MAX];
        let start = prefix.len() + 1;
        text[..prefix.len()].copy_from_slice(prefix.as_bytes());
        let mut left = value;
        for place in text[start..start + ENCODED_CHARS].iter_mut().rev() {
            *place = DIGITS[usize::from(left as u8 & 31)];
            left >>= 5;
        }
        Self { text, chars: start + ENCODED_CHARS }
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[..self.chars]).expect("prefix and digits are ASCII")
    }
}

fn decode(text: &str, prefix: &str) -> Result<u128, Malformed> {
    let wrong =
        || Malformed(format!("expected {prefix}_ followed by {ENCODED_CHARS} base-32 characters"));
    let digits = text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_'));
    let digits = digits.filter(|digits| digits.len() == ENCODED_CHARS).ok_or_else(wrong)?;
    let mut value: u128 = 0;
    for (place, digit) in digits.bytes().enumerate() {
        let worth = WORTH[usize::from(digit)];
        // 26 digits hold 130 bits; the first may only use the three that fit.
        if worth > 31 || (place == 0 && worth > 7) {
            return Err(wrong());
        }
        value = (value << 5) | u128::from(worth);
    }
    Ok(value)
}

/// Reads an id or a name from a text where it stands, without a copy of the text.
struct AsText<T>(PhantomData<T>);

impl<T: FromStr<Err = Malformed>> de::Visitor<'_> for AsText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

macro_rules! id_type {
    ($name:ident, $prefix:literal, $doc:literal) => {
        #[doc = $doc]
        // Millions are kept, and as a number each would be padded to 16 bytes.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(C, packed(8))]
        pub struct $name(pub u128);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Encoded::new(self.0, $prefix).as_str())
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl FromStr for $name {
            type Err = Malformed;
            fn from_str(text: &str) -> Result<Self, Malformed> {
                decode(text, $prefix).map(Self)
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(Encoded::new(self.0, $prefix).as_str())
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str(AsText(PhantomData))
            }
        }
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "pattern": concat!("^", $prefix, "_[0-7][0-9a-hjkmnp-tv-z]{25}$"),
                    "description": $doc,
                })
            }
        }
    };
}

id_type!(TaskId, "task", "A task's id. Sorts by the time it was made.");
id_type!(HandoffId, "handoff", "A handoff's id. Sorts by the time it was made.");
id_type!(TokenId, "token", "A token's id, which is no secret.");
id_type!(ClaimId, "claim", "The random half of a claim: only its holder knows it.");
id_type!(KeyId, "key", "A public key's id: the beginning of its hash.");

impl TaskId {
    /// The chain of events that belong to the store itself and not to a task.
    pub const STORE: Self = Self(0);
}

/// How long a name may be, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// How long a free label (a key, a correlation id) may be, in bytes.
pub const LABEL_BYTES_MAX: usize = 256;

/// How long the name of a tenant may be, in bytes.
pub const TENANT_BYTES_MAX: usize = 32;
/// The tenant whose agents and capabilities are named without one.
pub const TENANT_DEFAULT: &str = "default";

fn check_tenant(text: &str) -> Result<(), Malformed> {
    let starts_well = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    let fits = text.len() <= TENANT_BYTES_MAX;
    let plain = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if starts_well && fits && plain {
        return Ok(());
    }
    Err(Malformed(format!(
        "expected 1 to {TENANT_BYTES_MAX} small letters, digits or - beginning with a letter or digit"
    )))
}

/// A name, after its tenant and a slash if that is not the default one. There is one way to write
/// each name, so that names are equal only if their texts are.
fn check_qualified(text: &str) -> Result<(), Malformed> {
    match text.split_once('/') {
        None => check_name(text),
        Some((TENANT_DEFAULT, _)) => {
            Err(Malformed("names of the default tenant are written without it".into()))
        }
        Some((tenant, name)) => check_tenant(tenant).and_then(|()| check_name(name)),
    }
}

fn check_name(text: &str) -> Result<(), Malformed> {
    let starts_well = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    let fits = text.len() <= NAME_BYTES_MAX;
    let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:@-".contains(&b));
    if starts_well && fits && plain {
        return Ok(());
    }
    Err(Malformed(format!(
        "expected 1 to {NAME_BYTES_MAX} letters, digits or ._:@- beginning with a letter or digit"
    )))
}

/// How long the name of a project may be, in bytes: shorter than other names, because the name of
/// its shared context is made from it.
const PROJECT_BYTES_MAX: usize = 100;

fn check_project(text: &str) -> Result<(), Malformed> {
    check_name(text)?;
    if text.len() > PROJECT_BYTES_MAX {
        return Err(Malformed(format!("expected at most {PROJECT_BYTES_MAX} characters")));
    }
    Ok(())
}

fn check_label(text: &str) -> Result<(), Malformed> {
    if !text.is_empty() && text.len() <= LABEL_BYTES_MAX && !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Malformed(format!("expected 1 to {LABEL_BYTES_MAX} bytes without control characters")))
}

macro_rules! text_type {
    ($name:ident, $check:ident, $schema:tt, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text as it was given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
        impl FromStr for $name {
            type Err = Malformed;
            fn from_str(text: &str) -> Result<Self, Malformed> {
                $check(text)?;
                Ok(Self(text.into()))
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&self.0)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str(AsText(PhantomData))
            }
        }
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let mut schema = json_schema!($schema);
                schema.insert("description".into(), $doc.into());
                schema
            }
        }
    };
}

text_type!(
    AgentId,
    check_qualified,
    { "type": "string", "pattern": "^([a-z0-9][a-z0-9-]{0,31}/)?[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$" },
    "An agent's name, after its tenant and a slash if that is not the default one."
);
text_type!(
    Capability,
    check_qualified,
    { "type": "string", "pattern": "^([a-z0-9][a-z0-9-]{0,31}/)?[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$" },
    "The name of something that agents of one tenant can do."
);
text_type!(
    TenantId,
    check_tenant,
    { "type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,31}$" },
    "A party whose agents, work and memories no other tenant sees."
);

impl Default for TenantId {
    fn default() -> Self {
        Self(TENANT_DEFAULT.into())
    }
}

/// What is named within a tenant.
macro_rules! named_within_tenant {
    ($type:ident) => {
        impl $type {
            /// The name of the tenant that this belongs to.
            #[must_use]
            pub fn tenant(&self) -> &str {
                self.0.split_once('/').map_or(TENANT_DEFAULT, |(tenant, _)| tenant)
            }

            /// The name without its tenant.
            #[must_use]
            pub fn name(&self) -> &str {
                self.0.split_once('/').map_or(&self.0, |(_, name)| name)
            }

            /// What somebody of a tenant means by this: a bare name is one of their own.
            #[must_use]
            pub fn seen_from(&self, tenant: &TenantId) -> Self {
                if tenant.as_str() == TENANT_DEFAULT || self.0.contains('/') {
                    return self.clone();
                }
                Self(format!("{tenant}/{}", self.0).into())
            }
        }
    };
}
named_within_tenant!(AgentId);
named_within_tenant!(Capability);
text_type!(
    DocumentId,
    check_qualified,
    { "type": "string", "pattern": "^([a-z0-9][a-z0-9-]{0,31}/)?[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$" },
    "The name of a memory, such as ms-4821, or of a project's shared context."
);
named_within_tenant!(DocumentId);
text_type!(
    Project,
    check_project,
    { "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:@-]{0,99}$" },
    "The name of a project within a tenant."
);
text_type!(
    ChannelId,
    check_qualified,
    { "type": "string", "pattern": "^([a-z0-9][a-z0-9-]{0,31}/)?[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$" },
    "The name on which something is told to many."
);
named_within_tenant!(ChannelId);
text_type!(
    Resource,
    check_label,
    { "type": "string", "minLength": 1, "maxLength": 256 },
    "A path or a pattern of paths, such as src/api/** or docs/*.md."
);
text_type!(
    DecisionKey,
    check_label,
    { "type": "string", "minLength": 1, "maxLength": 256 },
    "The question that a decision settles, in a few words that everybody uses for it."
);

impl DocumentId {
    /// What the ids of shared contexts begin with; no memory may be named so.
    const CONTEXT: &'static str = "context:";

    /// A name for a memory that nobody has named.
    #[must_use]
    pub fn memory(unique: u128) -> Self {
        Self(format!("ms-{}", &Encoded::new(unique, "").as_str()[1..]).into())
    }

    /// The one shared context of a project.
    #[must_use]
    pub fn context(tenant: &TenantId, project: &Project) -> Self {
        Self(format!("{}{project}", Self::CONTEXT).into()).seen_from(tenant)
    }

    /// What the ids of imported chains begin with; no memory may be named so.
    const CHAIN: &'static str = "chain:";

    /// An imported chain, by the address of its file: the same file has the same name.
    #[must_use]
    pub fn chain(tenant: &TenantId, file: Hash) -> Self {
        let address = file.to_string();
        let digits = address.rsplit(':').next().unwrap_or_default();
        Self(format!("{}{}", Self::CHAIN, &digits[..32.min(digits.len())]).into()).seen_from(tenant)
    }

    /// Whether this is the name of an imported chain.
    #[must_use]
    pub fn is_chain(&self) -> bool {
        self.name().starts_with(Self::CHAIN)
    }

    /// Whether this is the name of a shared context.
    #[must_use]
    pub fn is_context(&self) -> bool {
        self.name().starts_with(Self::CONTEXT)
    }
}
text_type!(
    CorrelationId,
    check_label,
    { "type": "string", "minLength": 1, "maxLength": 256 },
    "Links everything that belongs to one request of the outside world."
);
text_type!(
    IdempotencyKey,
    check_label,
    { "type": "string", "minLength": 1, "maxLength": 256 },
    "Makes a create safe to repeat: the same key and body give the first reply again."
);
text_type!(
    OrderingKey,
    check_label,
    { "type": "string", "minLength": 1, "maxLength": 256 },
    "Handoffs to one target with the same key are worked on one after the other, in offer order."
);
text_type!(
    ArtifactName,
    check_label,
    { "type": "string", "minLength": 1, "maxLength": 256 },
    "What a piece of work is called that a holder attaches before the result is there."
);
text_type!(
    RequestId,
    check_label,
    { "type": "string", "minLength": 1, "maxLength": 256 },
    "Makes a claim safe to repeat: the same agent and request id give the same claim again."
);

/// SHA-256 of canonical JSON: the address of an immutable body.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The predecessor of the first event of a chain.
    pub const ZERO: Self = Self([0; 32]);
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0_u8; 71];
        text[..7].copy_from_slice(b"sha256:");
        for (place, byte) in self.0.iter().enumerate() {
            text[7 + place * 2] = b"0123456789abcdef"[usize::from(byte >> 4)];
            text[8 + place * 2] = b"0123456789abcdef"[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&text).expect("hex digits are ASCII"))
    }
}
impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl FromStr for Hash {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let wrong = || Malformed("expected sha256: followed by 64 lowercase hex digits".into());
        let digits =
            text.strip_prefix("sha256:").filter(|hex| hex.len() == 64).ok_or_else(wrong)?;
        let nibble = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(wrong()),
        };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            *byte = (nibble(pair[0])? << 4) | nibble(pair[1])?;
        }
        Ok(Self(bytes))
    }
}
impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(AsText(PhantomData))
    }
}
impl JsonSchema for Hash {
    fn schema_name() -> Cow<'static, str> {
        "Hash".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" })
    }
}

/// The number that makes a stale claim powerless: it only rises, across restarts, restores and
/// failovers, because its upper bits are the store's epoch.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Fence(pub u64);

impl Fence {
    const COUNTER_BITS: u32 = 40;

    /// The fence of the next claim after `self` in `epoch`.
    #[must_use]
    pub fn next(self, epoch: Epoch) -> Self {
        Self(self.0.max(epoch.0 << Self::COUNTER_BITS) + 1)
    }

    /// The epoch in which this fence was given out.
    #[must_use]
    pub fn epoch(self) -> Epoch {
        Epoch(self.0 >> Self::COUNTER_BITS)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A number that is raised when a store may have lost its last writes (a restore, a failover).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// Where a store keeps an event and the body that came with it. Unique; says nothing else.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Position(pub u64);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Milliseconds since 1970 by the store's clock. RFC 3339 in JSON.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The latest time that has a text form; sums stop here instead of overflowing.
    pub const MAX: Self = Self(253_402_207_200_000);

    /// This time, later by so many milliseconds.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Self {
        let ms = i64::try_from(ms).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(ms)).min(Self::MAX)
    }

    /// This time, earlier by so many milliseconds.
    #[must_use]
    pub fn minus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// How many milliseconds are left from `now` until this time; zero if it has passed.
    #[must_use]
    pub fn ms_after(self, now: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(now.0)).unwrap_or(0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => fmt::Display::fmt(&self.0, f),
        }
    }
}
impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl FromStr for Timestamp {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let time: jiff::Timestamp = text.parse().map_err(|_| {
            Malformed("expected an RFC 3339 time such as 2026-11-15T12:00:00Z".into())
        })?;
        Ok(Self(time.as_millisecond()))
    }
}
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(AsText(PhantomData))
    }
}
impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_its_text_form() {
        for value in [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef] {
            let id = HandoffId(value);
            assert_eq!(id.to_string().parse(), Ok(id));
        }
    }

    #[test]
    fn an_id_of_another_kind_or_shape_is_refused() {
        for text in [
            "task_00000000000000000000000000",
            "handoff_0",
            "handoff_80000000000000000000000000",
            "handoff_0000000000000000000000000u",
            "",
        ] {
            assert!(text.parse::<HandoffId>().is_err(), "{text}");
        }
    }

    #[test]
    fn names_keep_to_their_alphabet() {
        for good in ["coder", "a", "Team.7:x@host-1", &"a".repeat(128)] {
            assert!(good.parse::<AgentId>().is_ok(), "{good}");
        }
        for bad in ["", "-x", "a b", "ä", &"a".repeat(129), "a\n"] {
            assert!(bad.parse::<AgentId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_belongs_to_one_tenant_and_is_written_in_one_way() {
        let acme: TenantId = "acme".parse().unwrap();
        let bare: AgentId = "coder".parse().unwrap();
        let full: AgentId = "acme/coder".parse().unwrap();
        assert_eq!((bare.tenant(), bare.name()), ("default", "coder"));
        assert_eq!((full.tenant(), full.name()), ("acme", "coder"));
        assert_eq!(bare.seen_from(&acme), full);
        assert_eq!(full.seen_from(&acme), full);
        assert_eq!(bare.seen_from(&TenantId::default()), bare);
        for bad in ["default/coder", "Acme/coder", "/coder", "acme/", "a/b/c", "-a/b"] {
            assert!(bad.parse::<AgentId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_fence_rises_within_an_epoch_and_jumps_with_it() {
        let first = Fence(0).next(Epoch(1));
        let second = first.next(Epoch(1));
        let after_restore = second.next(Epoch(2));
        assert!(first < second && second < after_restore);
        assert_eq!(after_restore.next(Epoch(1)).epoch(), Epoch(2));
    }

    #[test]
    fn a_timestamp_reads_and_writes_rfc_3339() {
        let time: Timestamp = "2026-11-15T12:00:00.250Z".parse().unwrap();
        assert_eq!(time.to_string(), "2026-11-15T12:00:00.250Z");
        assert_eq!(Timestamp::MAX.plus_ms(u64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-30T22:00:00.000Z");
    }
}
