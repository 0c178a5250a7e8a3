//! A validator in another process, reached by the protocol of docs/contract.md.
//!
//! This module owns the inquiry and the meaning of the ruling; `service-contract` owns connections and chooses the
//! instance.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, header};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use service_contract::pool::{Metrics, Pool, Settings, Unanswered};
use service_contract::{ANSWER_BYTES_MAX, VALIDATE, answer, path};
use service_core::judge::{CONTRACT, Inquiry, Login, Ruling, Subject, VERIFIED};
use service_registry::verdicts::{Class, Failure};
use service_registry::{Keyring, Proof};

use super::{Answer, Approval, Pieces, Question, SIGNERS_MAX, Signer, Validator};
use crate::config::{Remote, Way};

/// Connections to validators in other processes. If a new configuration does not change a validator's connection
/// settings, its connections stay open.
#[derive(Debug, Clone, Default)]
pub struct Pools {
    open: Arc<Mutex<BTreeMap<String, Weak<Pool>>>>,
    metrics: Metrics,
}

impl Pools {
    pub fn new(metrics: Metrics) -> Self {
        Self { open: Arc::default(), metrics }
    }

    /// Returns the connections to the instances of the validator `name`. `describes_itself` states whether the service can
    /// ask each instance for a description of itself.
    pub fn open(&self, name: &str, way: &Way, describes_itself: bool) -> Result<Arc<Pool>, String> {
        let key = format!("{name} {describes_itself} {way:?}");
        let mut open = self.open.lock();
        open.retain(|_, pool| pool.strong_count() > 0);
        if let Some(pool) = open.get(&key).and_then(Weak::upgrade) {
            return Ok(pool);
        }
        let settings = Settings {
            name: name.to_owned(),
            instances: way.instances.clone(),
            files: way.files.clone(),
            protocol: way.protocol,
            open_max: way.max_in_flight,
            queue_max: way.queue,
            timeout: way.timeout,
            describes_itself,
        };
        let pool = Pool::open(settings, self.metrics.clone()).map_err(|error| error.to_string())?;
        open.insert(key, Arc::downgrade(&pool));
        Ok(pool)
    }
}

/// A validator for the demands of one rule.
pub struct Engine {
    pool: Arc<Pool>,
    validator: String,
    demands: Option<Box<RawValue>>,
    pass_credentials: bool,
    pieces: Arc<dyn Pieces>,
}

impl Engine {
    pub fn asking(settings: &Remote, demands: &str, pool: Arc<Pool>, pieces: Arc<dyn Pieces>) -> Arc<dyn Validator> {
        let demands = RawValue::from_string(demands.to_owned()).ok();
        let (validator, pass_credentials) = (settings.validator.clone(), settings.pass_credentials);
        Arc::new(Self { pool, validator, demands, pass_credentials, pieces })
    }

    async fn answer(&self, question: Question) -> Answer {
        let Question { host, repository, digest, keyring, deadline } = question;
        let image = Subject { host, repository, digest: digest.to_string() };
        let inquiry = Inquiry {
            contract: CONTRACT,
            validator: self.validator.clone(),
            image,
            demands: self.demands.clone(),
            credentials: if self.pass_credentials { logins(&keyring) } else { Vec::new() },
        };
        let body = serde_json::to_vec(&inquiry).map(Bytes::from);
        let body =
            body.map_err(|error| Failure::new(Class::Internal, format!("the question cannot be written: {error}")))?;
        let request = |base: &str, left| {
            let request = Request::post(path(base, VALIDATE, left)).header(header::CONTENT_TYPE, "application/json");
            request.body(body.clone()).unwrap_or_default()
        };
        let read = |answer: &http::Response<Bytes>| {
            let ruling = answer::ruling(answer.status(), answer.body(), &digest)?;
            let generation = Some(ruling.generation.clone());
            Ok((ruling, generation))
        };
        let ruling = self.pool.ask(&request, &read, ANSWER_BYTES_MAX, deadline).await;
        ruling.map_err(unanswered).and_then(answered)
    }
}

impl Validator for Engine {
    fn validate(self: Arc<Self>, question: Question) -> BoxFuture<'static, Answer> {
        async move { self.answer(question).await }.boxed()
    }

    /// The generation depends on the trusted keys of every instance, so an answer from before a key rotation is never
    /// used after the rotation.
    fn generation(&self) -> Cow<'_, str> {
        let demands = self.demands.as_deref().map_or("", RawValue::get);
        format!("{} {} {demands}", self.validator, self.pool.generation()).into()
    }

    fn relevant(&self, host: &str, repository: &str, keyring: &Keyring) -> Keyring {
        if self.pass_credentials { self.pieces.relevant(host, repository, keyring) } else { Keyring::default() }
    }
}

/// The failure of an image about which no process gave a ruling, so that nothing is known about the image.
pub fn unanswered(why: Unanswered) -> Failure {
    match why {
        Unanswered::Unavailable(what) => Failure::new(Class::Unavailable, what),
        Unanswered::Busy(what) => Failure::new(Class::Busy, what),
        Unanswered::Refused(what) => Failure::new(Class::Misconfigured, what),
    }
}

pub fn answered(ruling: Ruling) -> Answer {
    answer::consistent(&ruling).map_err(|breach| Failure::new(Class::Unavailable, breach.to_string()))?;
    if ruling.verdict == VERIFIED {
        let signers = ruling.signers.into_iter().take(SIGNERS_MAX);
        let signers = signers.map(|signed| Signer { name: signed.name, evidence: signed.evidence }).collect();
        return Ok(Arc::new(Approval { signers }));
    }
    let unknown = || Failure::new(Class::Unavailable, format!("`{}` is no class of this program", ruling.verdict));
    let class = Class::named(&ruling.verdict).ok_or_else(unknown)?;
    Err(Failure { class, cause: ruling.cause, unasked: ruling.unasked })
}

/// The Pod's credentials, for the process that contacts the registry.
fn logins(keyring: &Keyring) -> Vec<Login> {
    let login = |(registry, credential): (String, &service_registry::Credential)| {
        let (password, identity_token) = match &credential.proof {
            Proof::Password(text) => (Some(text.clone()), None),
            Proof::IdentityToken(text) => (None, Some(text.clone())),
        };
        Login { registry, username: credential.user.clone(), password, identity_token }
    };
    keyring.keys().map(login).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An approval is refused if it names no signers, or if its process did not ask the registry.
    #[test]
    fn an_approval_says_who_signed() {
        let signer = service_core::judge::Signed { name: "n".into(), evidence: "e".into() };
        let ruling = |signers: Vec<_>, unasked: bool| {
            let (generation, digest, cause) = Default::default();
            answered(Ruling {
                contract: CONTRACT,
                generation,
                digest,
                verdict: VERIFIED.into(),
                signers,
                cause,
                unasked,
            })
        };
        assert!(ruling(vec![signer.clone()], false).is_ok());
        for wrong in [ruling(Vec::new(), false), ruling(vec![signer], true)] {
            assert_eq!(wrong.unwrap_err().class, Class::Unavailable);
        }
    }

    /// The protocol's failure classes are exactly those of this program.
    #[test]
    fn classes_are_those_of_the_contract() {
        let ours: Vec<_> = Class::ALL.into_iter().map(Class::name).collect();
        assert_eq!(ours, answer::CLASSES);
    }
}
