//! A provider for Gatekeeper's external data as a validator: this project's own, Ratify, or cosign-gatekeeper-provider.
//!
//! This module interprets the field `value` of a provider's answer. If a provider reports an `error`, answers about
//! another image or uses another format, the failure class is `unavailable`, because nothing is known about signatures.
//! Only an answer about the requested image is definite.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, header};
use serde::Deserialize;
use serde_json::Value;
use service_contract::answer::{Breach, success};
use service_contract::external::{ANSWER_BYTES_MAX, Item, item, question, unambiguous};
use service_contract::pool::Pool;
use service_core::judge::{CONTRACT, Ruling, Signed, VERIFIED};
use service_registry::verdicts::{Class, Failure};
use service_registry::{Image, Keyring};

use super::remote::{answered, unanswered};
use super::{Answer, Approval, Question, Signer, Validator};
use crate::config::{Form, Provider};
use crate::text::printable;

/// Maximum number of bytes of a provider's text in messages of this program.
const SAID_BYTES_MAX: usize = 300;

pub struct Engine {
    name: String,
    pool: Arc<Pool>,
    form: Form,
    ttl: Duration,
}

#[derive(Deserialize)]
struct Ours {
    verdict: String,
    #[serde(default)]
    digest: String,
    #[serde(default)]
    signers: Vec<Signed>,
    #[serde(default)]
    cause: String,
    #[serde(default)]
    unasked: bool,
}

impl Engine {
    pub fn asking(name: &str, settings: &Provider, pool: Arc<Pool>) -> Arc<dyn Validator> {
        Arc::new(Self { name: name.to_owned(), pool, form: settings.form, ttl: settings.ttl })
    }

    async fn answer(&self, asked: Question) -> Answer {
        let image =
            Image { host: asked.host, repository: asked.repository, tag: None, digest: Some(asked.digest.to_string()) };
        let key = image.full_name();
        let body = serde_json::to_vec(&question(vec![key.clone()])).map(Bytes::from);
        let body =
            body.map_err(|error| Failure::new(Class::Internal, format!("the question cannot be written: {error}")))?;
        let request = |base: &str, _| {
            let path = if base.is_empty() { "/" } else { base };
            let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
            request.body(body.clone()).unwrap_or_default()
        };
        let read = |answer: &http::Response<Bytes>| {
            success(answer.status(), answer.body())?;
            let (item, _) = item(answer.body(), &key).map_err(|wrong| Breach::Other(wrong.to_string()))?;
            Ok((item, None))
        };
        let item = self.pool.ask(&request, &read, ANSWER_BYTES_MAX, asked.deadline).await.map_err(unanswered)?;
        self.answer_of(item, &asked.digest)
    }

    /// The validator's answer that follows from a provider's item about the image.
    fn answer_of(&self, item: Item, digest: &str) -> Answer {
        let Item { key, value, error } = item;
        if self.form == Form::Longhaul
            && let Ok(ours) = serde_json::from_value::<Ours>(value.clone())
        {
            return self.ours(ours, digest);
        }
        if !error.is_empty() {
            let said = printable(&error, SAID_BYTES_MAX);
            return Err(Failure::new(Class::Unavailable, format!("the provider `{}` says: {said}", self.name)));
        }
        let verified = match self.form {
            Form::Longhaul => None,
            // Versions before 1.0 send the report as a text.
            Form::Ratify => match &value {
                Value::String(text) => report(text).and_then(|value| is_success(&value)),
                value => is_success(value),
            },
            Form::CosignGatekeeperProvider => value.as_str().map(|text| text == format!("{key}_valid")),
        };
        let by = |what: &str| format!("the provider `{}` {what}", self.name);
        match verified {
            Some(true) => Ok(Arc::new(Approval {
                signers: vec![Signer { name: self.name.clone(), evidence: "external data".to_owned() }],
            })),
            Some(false) => Err(Failure::new(Class::Invalid, by("does not approve of it"))),
            None => {
                let what = by("answers in another form than the configuration says (remote.answers)");
                Err(Failure::new(Class::Unavailable, what))
            }
        }
    }

    fn ours(&self, ours: Ours, digest: &str) -> Answer {
        let Ours { verdict, digest: theirs, signers, cause, unasked } = ours;
        if verdict == VERIFIED && theirs != digest {
            let what = format!("the provider `{}` answers about another image: nothing of it counts", self.name);
            return Err(Failure::new(Class::Unavailable, what));
        }
        answered(Ruling {
            contract: CONTRACT,
            generation: String::new(),
            digest: theirs,
            verdict,
            signers,
            cause,
            unasked,
        })
    }
}

/// The JSON report in a text; `None` if the text has anything besides the report.
fn report(text: &str) -> Option<Value> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = unambiguous(&mut reader).ok()?;
    reader.end().ok()?;
    Some(value)
}

fn is_success(value: &Value) -> Option<bool> {
    value.get("isSuccess").and_then(Value::as_bool)
}

impl Validator for Engine {
    fn validate(self: Arc<Self>, question: Question) -> BoxFuture<'static, Answer> {
        async move { self.answer(question).await }.boxed()
    }

    /// A provider does not report changes of its trusted keys; [`Self::ttl_max`] limits how long a change stays
    /// unnoticed.
    fn generation(&self) -> Cow<'_, str> {
        format!("external data {} {:?}", self.name, self.form).into()
    }

    fn ttl_max(&self) -> Option<Duration> {
        Some(self.ttl)
    }

    /// Always empty, because the protocol has no field for credentials.
    fn relevant(&self, _: &str, _: &str, _: &Keyring) -> Keyring {
        Keyring::default()
    }
}
