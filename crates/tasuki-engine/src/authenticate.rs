// SPDX-License-Identifier: Apache-2.0
//! Finding out who asks: by an HTTP message signature or a bearer token. What is refused here is
//! from nobody, so it goes into a log of its own, which is bounded, and not into the audit log.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tasuki_core::Timestamp;
use tasuki_core::identity::{Fault, Presented, Request};
use tasuki_core::ids::{KeyId, TokenId};
use tasuki_core::registry::{Purpose, Standing};
use tasuki_protocol::Code;
use tasuki_store::{Nonce, Spent};

use crate::caller::{Caller, Known, ShownBy};
use crate::engine::Engine;
use crate::error::Error;
use crate::tokens;

/// How far ahead the clock of a caller may be, in seconds.
const SKEW_S: i64 = 5;
/// How many refusals are kept.
const REFUSALS_MAX: usize = 1000;

/// What a request shows.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'r> {
    pub request: Request<'r>,
    pub signature_input: Option<&'r str>,
    pub signature: Option<&'r str>,
    /// The value of the `Authorization` header.
    pub authorization: Option<&'r str>,
    /// The key in the certificate that the client of a TLS connection has shown.
    pub certificate: Option<KeyId>,
    /// From where it came.
    pub from: &'r str,
}

/// A request that nobody stood behind.
#[derive(Debug, Clone)]
pub struct Refused {
    pub at: Timestamp,
    pub from: String,
    pub code: Code,
    /// The key or token that was named, whoever named it.
    pub named: Option<String>,
    pub path: String,
}

/// The last refusals, and how many there were.
#[derive(Debug, Default)]
pub(crate) struct SecurityLog {
    kept: Mutex<(VecDeque<Refused>, u64)>,
}

impl SecurityLog {
    fn note(&self, refused: Refused) {
        let mut kept = self.kept.lock().expect("no holder of this lock panics");
        if kept.0.len() >= REFUSALS_MAX {
            kept.0.pop_front();
        }
        kept.0.push_back(refused);
        kept.1 += 1;
    }

    pub(crate) fn read(&self) -> (Vec<Refused>, u64) {
        let kept = self.kept.lock().expect("no holder of this lock panics");
        (kept.0.iter().cloned().collect(), kept.1)
    }
}

impl Engine {
    /// Notes that nobody stood behind a request, as a door found out.
    pub fn note_stranger(&self, from: &str, code: Code, path: &str) {
        self.security.note(Refused {
            at: self.store.clock().now(),
            from: from.to_owned(),
            code,
            named: None,
            path: path.chars().take(200).collect(),
        });
    }

    /// Somebody who was let in, as it would be let in now: with the rules that hold by now.
    pub(crate) fn renewed(&self, caller: &Caller) -> Result<Caller, Error> {
        let Caller::Known(known) = caller else { return Ok(Caller::Anyone) };
        let now = self.store.clock().now();
        let registry = self.registry();
        let found = match known.proof {
            ShownBy::Key(key) => {
                let agent = registry.holder_of(key, now).map(|(agent, _)| (agent, None));
                agent.ok_or(Refusal::new(Code::SignatureWrong))
            }
            ShownBy::Url => {
                let agent = registry.agents.get(&known.agent).map(|agent| (agent, None));
                agent.ok_or(Refusal::new(Code::Unauthenticated))
            }
            ShownBy::Token(id) => {
                let token = registry.tokens.get(&id);
                let token = token.filter(|token| registry.token_counts(token, now));
                let agent = registry.agents.get(&known.agent);
                let both = agent.zip(token.map(|token| Some(token.rules.clone())));
                both.ok_or(Refusal::new(Code::TokenInvalid))
            }
        };
        let (agent, token_rules) = found
            .and_then(|found| match found.0.standing {
                Standing::Deregistered => Err(Refusal::new(Code::Unauthenticated)),
                Standing::Active | Standing::Draining => Ok(found),
            })
            .map_err(|refusal| Error::Unauthenticated {
                code: refusal.code,
                message: refusal.message,
            })?;
        Ok(Caller::Known(Arc::new(Known::new(agent, known.proof, token_rules))))
    }

    /// Finds out who asks.
    pub async fn authenticate(&self, shown: Shown<'_>) -> Result<Caller, Error> {
        let found = match (shown.signature_input, shown.signature, shown.authorization) {
            (None, None, None) if shown.certificate.is_some() => {
                self.by_certificate(shown.certificate.expect("it was just seen"))
            }
            (None, None, None) if self.settings.open => return Ok(Caller::Anyone),
            (None, None, None) => Err(Refusal::new(Code::Unauthenticated)),
            (Some(input), Some(signature), _) => self.by_signature(&shown, input, signature).await,
            (None, None, Some(authorization)) => self.by_token(authorization),
            (Some(_), None, _) | (None, Some(_), _) => Err(Refusal::new(Code::SignatureMalformed)),
        };
        found.map_err(|refusal| {
            let code = refusal.code;
            // What went wrong on our side is no attack.
            if let Some(error) = refusal.error {
                return *error;
            }
            self.security.note(Refused {
                at: self.store.clock().now(),
                from: shown.from.to_owned(),
                code,
                named: refusal.named,
                path: shown.request.path.chars().take(200).collect(),
            });
            Error::Unauthenticated { code, message: refusal.message }
        })
    }

    async fn by_signature(
        &self,
        shown: &Shown<'_>,
        input: &str,
        signature: &str,
    ) -> Result<Caller, Refusal> {
        let presented = Presented::parse(input, signature)?;
        let named = presented.key_id().to_string();
        let now = self.store.clock().now();
        let checked = presented.check(&shown.request, now, SKEW_S);
        checked.map_err(|fault| Refusal::from(fault).naming(&named))?;
        let registry = self.registry();
        // An unknown key and a wrong signature look the same from outside.
        let unknown = || Refusal::new(Code::SignatureWrong).naming(&named);
        let (agent, key) = registry.holder_of(presented.key_id(), now).ok_or_else(unknown)?;
        let verified = presented.verify(&shown.request, &key, now, SKEW_S);
        verified.map_err(|_| unknown())?;
        if agent.standing == Standing::Deregistered {
            return Err(unknown());
        }
        // Only who signed well learns whether it was meant for us.
        let meant = match presented.audience() {
            Some(audience) => self.is_meant(audience).await.map_err(Refusal::by_store)?,
            None => false,
        };
        if !meant {
            return Err(Refusal::new(Code::SignatureAudience).naming(&named));
        }
        let nonce = Nonce {
            key: presented.key_id(),
            nonce: presented.nonce().to_owned(),
            created: Timestamp(presented.created() * 1000),
            expires: Timestamp(presented.expires() * 1000),
        };
        let spent = self.store.spend(nonce).await.map_err(Refusal::by_store)?;
        let caller = Known::new(agent, ShownBy::Key(key.id()), None);
        match spent {
            Spent::Fresh => Ok(Caller::Known(Arc::new(caller))),
            Spent::Replayed => Err(Refusal::new(Code::SignatureReplayed).naming(&named)),
            Spent::BeforeStart => Err(Refusal::new(Code::SignatureTooEarly).naming(&named)),
        }
    }

    /// By the key of an agent, which the client showed when the connection was made.
    fn by_certificate(&self, key: KeyId) -> Result<Caller, Refusal> {
        let registry = self.registry();
        let holder = registry.holder_of(key, self.store.clock().now());
        match holder.filter(|(agent, _)| agent.standing != Standing::Deregistered) {
            Some((agent, _)) => {
                Ok(Caller::Known(Arc::new(Known::new(agent, ShownBy::Key(key), None))))
            }
            None => Err(Refusal::new(Code::CertificateUnknown).naming(&key.to_string())),
        }
    }

    fn by_token(&self, authorization: &str) -> Result<Caller, Refusal> {
        let unknown = || Refusal::new(Code::TokenInvalid);
        let (scheme, secret) = authorization.split_once(' ').ok_or_else(unknown)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(unknown());
        }
        let (id, secret): (TokenId, _) = tokens::parse(secret.trim()).ok_or_else(unknown)?;
        let unknown = || Refusal::new(Code::TokenInvalid).naming(&id.to_string());
        let registry = self.registry();
        let token = registry.tokens.get(&id).ok_or_else(unknown)?;
        let now = self.store.clock().now();
        let right = token.purpose == Purpose::Bearer
            && tokens::same(token.secret, secret)
            && registry.token_counts(token, now);
        let agent = registry.agents.get(&token.agent);
        let agent = agent.filter(|agent| right && agent.standing != Standing::Deregistered);
        let agent = agent.ok_or_else(unknown)?;
        let known = Known::new(agent, ShownBy::Token(id), Some(token.rules.clone()));
        Ok(Caller::Known(Arc::new(known)))
    }
}

struct Refusal {
    code: Code,
    message: String,
    named: Option<String>,
    error: Option<Box<Error>>,
}

impl Refusal {
    fn new(code: Code) -> Self {
        let message = match code {
            Code::Unauthenticated => "the request does not show who it is from",
            Code::SignatureWrong => "the signature is not one of a key that counts here",
            Code::SignatureAudience => {
                "the signature does not name this broker: it needs the parameter audience with the id of \
                 the broker's key, as /healthz shows it"
            }
            Code::SignatureReplayed => "the request was made before with this very signature",
            Code::SignatureTooEarly => "the signature was made before this broker began",
            Code::CertificateUnknown => "the certificate's key is none that counts here",
            Code::TokenInvalid => "the token is not known here, ran out, or was revoked",
            _ => "the signature headers do not belong together",
        };
        Self { code, message: message.into(), named: None, error: None }
    }

    fn naming(self, named: &str) -> Self {
        Self { named: Some(named.to_owned()), ..self }
    }

    fn by_store(error: tasuki_store::Error) -> Self {
        Self { error: Some(Box::new(error.into())), ..Self::new(Code::Unauthenticated) }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        let code = Code::named(fault.code()).unwrap_or(Code::SignatureMalformed);
        Self { code, message: fault.to_string(), named: None, error: None }
    }
}
