// SPDX-License-Identifier: Apache-2.0
//! Ed25519 keys and signatures, each with one text form and no second spelling: what is equal is
//! equal as text, so keys can be compared, indexed and revoked by it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use crate::ids::{KeyId, Malformed};

const PUBLIC_PREFIX: &str = "ed25519:";
const SECRET_PREFIX: &str = "ed25519-secret:";
/// How many characters 32 bytes take in base64url without padding.
const KEY_CHARS: usize = 43;
const SIGNATURE_CHARS: usize = 86;

/// An Ed25519 public key under which a signature means something: a canonically encoded point that
/// is not of small order. Under a key of small order one signature fits almost any message.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Refuses bytes that are no point, a second spelling of a point, or a point of small order.
    pub fn from_bytes(bytes: [u8; 32]) -> Result<Self, Malformed> {
        let key = VerifyingKey::from_bytes(&bytes)
            .map_err(|_| Malformed("these bytes are not an Ed25519 public key".into()))?;
        // Dalek decodes as ZIP 215 wants it: some points have two encodings, and both pass.
        if key.to_edwards().compress().to_bytes() != bytes {
            return Err(Malformed("this Ed25519 public key is not encoded canonically".into()));
        }
        if key.is_weak() {
            return Err(Malformed("this Ed25519 public key is weak".into()));
        }
        Ok(Self(key))
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// What names this key in a signature: 128 bits of its hash.
    #[must_use]
    pub fn id(&self) -> KeyId {
        let mut digest = Sha256::new();
        digest.update(b"tasuki-key-v1\0");
        digest.update(self.as_bytes());
        let hash: [u8; 32] = digest.finalize().into();
        let mut id = [0; 16];
        id.copy_from_slice(&hash[..16]);
        KeyId(u128::from_be_bytes(id))
    }

    /// Whether this key's secret half signed the message. Strict: for a message, only the signature
    /// that the signer made passes, not one that somebody derived from it.
    #[must_use]
    pub fn verify(&self, message: &[u8], signature: &Signature) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        self.0.verify_strict(message, &signature).is_ok()
    }
}

impl PartialOrd for PublicKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for PublicKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC_PREFIX}{}", URL_SAFE_NO_PAD.encode(self.as_bytes()))
    }
}
impl FromStr for PublicKey {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        Self::from_bytes(*decode_key(text, PUBLIC_PREFIX)?)
    }
}

/// An Ed25519 signature. That it has 64 bytes is all that is known before it was verified.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature(pub [u8; 64]);

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}
impl FromStr for Signature {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let wrong =
            || Malformed(format!("expected {SIGNATURE_CHARS} base64url characters, unpadded"));
        // The length comes first, so that a long text is not decoded only to be refused.
        let text = Some(text).filter(|text| text.len() == SIGNATURE_CHARS).ok_or_else(wrong)?;
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
        bytes.try_into().map(Self).map_err(|_| wrong())
    }
}

macro_rules! text_form {
    ($name:ident, $pattern:literal, $doc:literal) => {
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Cow::<str>::deserialize(from)?.parse().map_err(de::Error::custom)
            }
        }
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "description": $doc })
            }
        }
    };
}

// The last character carries bits beyond the last byte, and they have to be zero.
text_form!(
    PublicKey,
    "^ed25519:[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$",
    "An Ed25519 public key, in base64url without padding."
);
text_form!(
    Signature,
    "^[A-Za-z0-9_-]{85}[AQgw]$",
    "An Ed25519 signature, in base64url without padding."
);

/// The secret half of a key: its seed. Wiped from memory when dropped, never printed, and not
/// serializable, so that it cannot slip into a reply or a log.
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// The key of this seed, which must come from a source of randomness fit for keys.
    #[must_use]
    pub fn from_seed(mut seed: [u8; 32]) -> Self {
        let key = Self(SigningKey::from_bytes(&seed));
        seed.zeroize();
        key
    }

    /// Reads what [`Self::to_text`] wrote. The error does not repeat the text.
    pub fn from_text(text: &str) -> Result<Self, Malformed> {
        let seed = decode_key(text, SECRET_PREFIX)?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// The text form, for a key file. Whoever has it can sign.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut digits = Zeroizing::new([0; KEY_CHARS]);
        let written = URL_SAFE_NO_PAD.encode_slice(self.0.as_bytes(), &mut *digits);
        debug_assert_eq!(written, Ok(KEY_CHARS));
        // The capacity is exact: a text that grows leaves copies of the secret behind.
        let mut text = Zeroizing::new(String::with_capacity(SECRET_PREFIX.len() + KEY_CHARS));
        text.push_str(SECRET_PREFIX);
        text.push_str(std::str::from_utf8(&*digits).expect("base64 is ASCII"));
        text
    }

    /// The 32 bytes that it is made from.
    #[must_use]
    pub fn seed(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    /// A secret of its own for one purpose, from which nothing follows for this key or other purposes.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update(b"tasuki-derived-v1\0");
        digest.update(purpose.as_bytes());
        digest.update(b"\0");
        digest.update(self.0.as_bytes());
        digest.finalize().into()
    }

    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.0.sign(message).to_bytes())
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {})", self.public())
    }
}

/// The 32 bytes behind a prefix. Wiped when dropped, as they may be a secret.
fn decode_key(text: &str, prefix: &str) -> Result<Zeroizing<[u8; 32]>, Malformed> {
    let wrong =
        || Malformed(format!("expected {prefix} and {KEY_CHARS} base64url characters, unpadded"));
    let digits = text.strip_prefix(prefix).filter(|digits| digits.len() == KEY_CHARS);
    let mut bytes = Zeroizing::new([0; 32]);
    let read = URL_SAFE_NO_PAD.decode_slice(digits.ok_or_else(wrong)?, &mut *bytes);
    match read {
        Ok(32) => Ok(bytes),
        Ok(_) | Err(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &str = "ed25519:JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs";
    const SECRET: &str = "ed25519-secret:n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU";

    fn le(hex: &str) -> [u8; 32] {
        std::array::from_fn(|place| u8::from_str_radix(&hex[place * 2..][..2], 16).unwrap())
    }

    #[track_caller]
    fn refused(bytes: [u8; 32], why: &str) {
        let error = PublicKey::from_bytes(bytes).unwrap_err().to_string();
        assert!(error.contains(why), "{bytes:02x?}: {error}");
        let text = format!("{PUBLIC_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
        assert!(text.parse::<PublicKey>().is_err());
    }

    #[test]
    fn keys_and_signatures_survive_their_text_forms() {
        let secret = SecretKey::from_text(SECRET).unwrap();
        let public: PublicKey = PUBLIC.parse().unwrap();
        assert_eq!(secret.public(), public);
        assert_eq!(*secret.to_text(), SECRET);
        assert_eq!(public.to_string(), PUBLIC);
        assert_eq!(public.id().to_string(), "key_69cverwrjef4fqd8rkh3yk5g3f");
        let signature = secret.sign(b"x");
        assert_eq!(signature.to_string().parse(), Ok(signature));
        let json = serde_json::to_string(&(public, signature)).unwrap();
        assert_eq!(json, format!(r#"["{PUBLIC}","{signature}"]"#));
        assert_eq!(
            serde_json::from_str::<(PublicKey, Signature)>(&json).unwrap(),
            (public, signature)
        );
    }

    #[test]
    fn a_second_spelling_of_a_text_form_is_refused() {
        for bad in [
            "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs",
            "Ed25519:JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs",
            "ed25519:JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs=",
            "ed25519:JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bt",
            "ed25519:JrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs",
            "ed25519: JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs",
            "ed25519:JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0b",
            "ed25519:ÄrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0s",
            "ed25519:",
        ] {
            assert!(bad.parse::<PublicKey>().is_err(), "{bad}");
            assert!(
                SecretKey::from_text(&bad.replace("25519:", "25519-secret:")).is_err(),
                "{bad}"
            );
        }
        assert!(SecretKey::from_text(PUBLIC).is_err());
        let signature = "A".repeat(86);
        assert!(signature.parse::<Signature>().is_ok());
        for bad in
            ["A".repeat(85), "A".repeat(87), signature[..85].to_owned() + "B", signature + "=="]
        {
            assert!(bad.parse::<Signature>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_secret_is_neither_printed_nor_repeated_in_an_error() {
        let secret = SecretKey::from_text(SECRET).unwrap();
        assert_eq!(format!("{secret:?}"), format!("SecretKey(of {PUBLIC})"));
        let error = SecretKey::from_text(&SECRET[..SECRET.len() - 1]).unwrap_err();
        assert!(!error.to_string().contains("n4Ni"));
    }

    #[test]
    fn the_eight_points_of_small_order_are_refused() {
        let same = "ff".repeat(30);
        for hex in [
            "01".to_owned() + &"00".repeat(31),
            "ec".to_owned() + &same + "7f",
            "00".repeat(32),
            "00".repeat(31) + "80",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05".into(),
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85".into(),
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a".into(),
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa".into(),
        ] {
            refused(le(&hex), "is weak");
        }
    }

    #[test]
    fn every_second_encoding_of_a_point_is_refused() {
        // The two points with x = 0 have no sign, and still a bit for it.
        refused(le(&("01".to_owned() + &"00".repeat(30) + "80")), "canonically");
        refused(le(&("ec".to_owned() + &"ff".repeat(31))), "canonically");
        // The nineteen values from p to 2^255 - 1 stand for 0 to 18 once more.
        let mut strong = 0;
        for low in 0xed..=0xff {
            for high in [0x7f, 0xff] {
                let mut bytes = [0xff; 32];
                (bytes[0], bytes[31]) = (low, high);
                match VerifyingKey::from_bytes(&bytes) {
                    Ok(key) => {
                        strong += usize::from(!key.is_weak());
                        refused(bytes, "canonically");
                    }
                    Err(_) => refused(bytes, "not an Ed25519 public key"),
                }
            }
        }
        // Without some that only this check refuses, the test would not tell.
        assert!(strong > 10, "{strong}");
    }

    #[test]
    fn a_signature_derived_from_another_is_refused() {
        let secret = SecretKey::from_seed([7; 32]);
        let signature = secret.sign(b"x");
        assert!(secret.public().verify(b"x", &signature));
        assert!(!secret.public().verify(b"y", &signature));
        assert!(!SecretKey::from_seed([8; 32]).public().verify(b"x", &signature));
        // The order of the group added to the second half: the same number, written differently.
        let order = le("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
        let mut derived = signature;
        let mut carry = 0;
        for (byte, add) in derived.0[32..].iter_mut().zip(order) {
            let sum = u16::from(*byte) + u16::from(add) + carry;
            *byte = sum.to_le_bytes()[0];
            carry = sum >> 8;
        }
        assert!(!secret.public().verify(b"x", &derived));
    }
}
