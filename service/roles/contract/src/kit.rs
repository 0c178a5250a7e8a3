//! The conformance kit for validators in any language, with one case for each demand of the protocol.
//!
//! This module owns the cases of the kit. A failed case is not tried again; its report shows the validator's answer and
//! the demand of the protocol.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Method, Request, Response, StatusCode, header};
use serde_json::{Value, json};
use service_core::judge::{About, CONTRACT, VERIFIED};
use service_core::wire::{self, Limits, Protocol};
use tokio::time::Instant;

use crate::link::{Files, Link, LinkError};
use crate::{ANSWER_BYTES_MAX, VALIDATE, answer, path};

const PARALLEL: usize = 20;
/// Time limit of an inquiry in the case of a short deadline. The constant `SLACK` adds time for a busy machine.
const SOON: Duration = Duration::from_millis(500);
const SLACK: Duration = Duration::from_millis(500);
/// Time limit of each case without a short deadline.
const PATIENCE: Duration = Duration::from_secs(10);
const LARGE_BYTES: usize = 4 << 20;

/// The validator to check, and the inputs of the cases.
#[derive(Debug, Clone)]
pub struct Subject {
    pub url: String,
    pub files: Files,
    pub protocol: Protocol,
    /// The validator's name in inquiries; `None` means the first name that the process lists.
    pub validator: Option<String>,
    /// An image about which the validator can rule.
    pub image: service_core::judge::Subject,
    /// The expected verdict; `None` accepts any verdict.
    pub verdict: Option<String>,
    /// The demands of a policy rule, as JSON.
    pub demands: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    pub demand: &'static str,
    /// Why the case failed; `None` if the case passed.
    pub failed: Option<String>,
}

struct Check {
    link: Link,
    subject: Subject,
    validator: String,
}

pub async fn check(subject: Subject) -> Result<Vec<Case>, LinkError> {
    let link =
        Link::open(&subject.url, &subject.files, subject.protocol, Limits { open_max: PARALLEL, idle_max: PARALLEL })?;
    let mut bench = Check { link, validator: String::new(), subject };
    let mut cases = Vec::new();
    let mut case =
        |demand: &'static str, outcome: Result<(), String>| cases.push(Case { demand, failed: outcome.err() });
    let about = bench.about().await;
    let named = about.as_ref().ok().and_then(|about| about.validators.first().cloned());
    bench.validator = bench.subject.validator.clone().or(named).unwrap_or_else(|| "default".to_owned());
    case("GET returns the version of the contract, the generation of the trust, and the validators", about.map(drop));
    case("the answer is about the requested image, with a known class", bench.answers().await);
    case("the same question gets the same answer, byte for byte", bench.repeats().await);
    case("an image that does not exist is not verified", bench.absent().await);
    case("an unknown validator gets `misconfigured` or a status of 4xx, never verified", bench.unknown().await);
    case("unknown fields are accepted", bench.tolerates().await);
    case("another version of the contract is refused with 400", bench.version().await);
    case("a body that is not JSON is refused with 400", bench.malformed().await);
    case("a body that is too large is refused with 413", bench.large().await);
    case("another path is 404, another method 405", bench.elsewhere().await);
    case("20 questions at the same time get equal answers", bench.parallel().await);
    case("an answer comes within the caller's time limit (timeoutMs)", bench.soon().await);
    case("a caller without a client certificate gets no answer", bench.stranger().await);
    Ok(cases)
}

impl Check {
    fn question(&self) -> Value {
        let mut question = json!({"contract": CONTRACT, "validator": self.validator, "image": self.subject.image});
        if let Some(demands) = &self.subject.demands {
            question["demands"] = demands.clone();
        }
        question
    }

    async fn send(
        &self,
        method: Method,
        path: String,
        body: impl Into<Bytes>,
        left: Duration,
    ) -> Result<Response<Bytes>, String> {
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
        let request = request.body(body.into()).map_err(|error| error.to_string())?;
        let sent = self.link.client().fetch(request, ANSWER_BYTES_MAX, Instant::now() + left).await;
        sent.map_err(|error| format!("no answer: {}", wire::chain(&error)))
    }

    async fn post(&self, body: &Value) -> Result<Response<Bytes>, String> {
        self.send(Method::POST, path(self.link.base(), VALIDATE, PATIENCE), body.to_string(), PATIENCE).await
    }

    async fn about(&self) -> Result<About, String> {
        let answer = self.send(Method::GET, path(self.link.base(), VALIDATE, PATIENCE), Bytes::new(), PATIENCE).await?;
        answer::about(answer.status(), answer.body()).map_err(|breach| breach.to_string())
    }

    async fn verdict(&self, question: &Value) -> Result<String, String> {
        let answer = self.post(question).await?;
        let digest = question["image"]["digest"].as_str().unwrap_or_default();
        let ruling = answer::ruling(answer.status(), answer.body(), digest).map_err(|breach| breach.to_string())?;
        Ok(ruling.verdict)
    }

    async fn answers(&self) -> Result<(), String> {
        let verdict = self.verdict(&self.question()).await?;
        match &self.subject.verdict {
            Some(wanted) if *wanted != verdict => Err(format!("it answers {verdict}, not {wanted}")),
            _ => Ok(()),
        }
    }

    async fn repeats(&self) -> Result<(), String> {
        let (one, two) = (self.post(&self.question()).await?, self.post(&self.question()).await?);
        if one.body() == two.body() { Ok(()) } else { Err("two answers differ".to_owned()) }
    }

    async fn absent(&self) -> Result<(), String> {
        let mut question = self.question();
        question["image"]["digest"] = format!("sha256:{}", "0".repeat(64)).into();
        match self.verdict(&question).await? {
            verdict if verdict == VERIFIED => Err("it is verified".to_owned()),
            _ => Ok(()),
        }
    }

    async fn unknown(&self) -> Result<(), String> {
        let mut question = self.question();
        question["validator"] = "no-such-validator".into();
        let answer = self.post(&question).await?;
        if answer.status().is_client_error() {
            return Ok(());
        }
        match self.verdict(&question).await? {
            verdict if verdict == "misconfigured" => Ok(()),
            verdict => Err(format!("it says {verdict}")),
        }
    }

    async fn tolerates(&self) -> Result<(), String> {
        let mut question = self.question();
        question["somethingOfALaterRelease"] = json!({"a": 1});
        self.verdict(&question).await.map(drop)
    }

    fn refused(answer: Result<Response<Bytes>, String>, wanted: StatusCode) -> Result<(), String> {
        let answer = answer?;
        if answer.status() != wanted {
            return Err(format!("it answers {}", answer.status()));
        }
        let text: Option<Value> = serde_json::from_slice(answer.body()).ok();
        let says = text.is_some_and(|text| text["error"].as_str().is_some_and(|error| !error.is_empty()));
        if says { Ok(()) } else { Err("its body is not {\"error\": \"a sentence\"}".to_owned()) }
    }

    async fn version(&self) -> Result<(), String> {
        let mut question = self.question();
        question["contract"] = (CONTRACT + 1000).into();
        Self::refused(self.post(&question).await, StatusCode::BAD_REQUEST)
    }

    async fn malformed(&self) -> Result<(), String> {
        let path = path(self.link.base(), VALIDATE, PATIENCE);
        Self::refused(self.send(Method::POST, path, "{\"contract\": 1,", PATIENCE).await, StatusCode::BAD_REQUEST)
    }

    async fn large(&self) -> Result<(), String> {
        let path = path(self.link.base(), VALIDATE, PATIENCE);
        let sent = self.send(Method::POST, path, vec![b' '; LARGE_BYTES], PATIENCE).await;
        // A server that refuses so much may close the connection, and the next case must not meet that.
        self.link.client().forget_connections();
        match sent {
            // The server may close the connection instead of reading on.
            Err(_) => self.about().await.map(drop),
            sent => Self::refused(sent, StatusCode::PAYLOAD_TOO_LARGE),
        }
    }

    async fn elsewhere(&self) -> Result<(), String> {
        let base = self.link.base();
        let lost = self.send(Method::POST, format!("{base}/internal/v1/nothing"), "{}", PATIENCE).await?;
        let other = self.send(Method::DELETE, format!("{base}{VALIDATE}"), Bytes::new(), PATIENCE).await?;
        match (lost.status(), other.status()) {
            (StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED) => Ok(()),
            (lost, other) => Err(format!("it answers {lost} and {other}")),
        }
    }

    async fn parallel(&self) -> Result<(), String> {
        let question = self.question();
        let first = self.verdict(&question).await?;
        for verdict in join_all((0..PARALLEL).map(|_| self.verdict(&question))).await {
            let verdict = verdict?;
            if verdict != first {
                return Err(format!("one answer is {first}, another {verdict}"));
            }
        }
        Ok(())
    }

    async fn soon(&self) -> Result<(), String> {
        let started = Instant::now();
        let path = path(self.link.base(), VALIDATE, SOON);
        self.send(Method::POST, path, self.question().to_string(), PATIENCE).await?;
        let took = started.elapsed();
        if took <= SOON + SLACK {
            Ok(())
        } else {
            Err(format!("{} ms after {} ms were given", took.as_millis(), SOON.as_millis()))
        }
    }

    async fn stranger(&self) -> Result<(), String> {
        let files = Files { identity: None, ..self.subject.files.clone() };
        let link = Link::open(&self.subject.url, &files, self.subject.protocol, Limits { open_max: 1, idle_max: 1 });
        let link = link.map_err(|error| error.to_string())?;
        let request =
            Request::get(format!("{}{VALIDATE}", link.base())).body(Bytes::new()).map_err(|error| error.to_string())?;
        match link.client().fetch(request, ANSWER_BYTES_MAX, Instant::now() + PATIENCE).await {
            Ok(answer) if answer.status() == StatusCode::OK => Err("it answered a caller without one".to_owned()),
            _ => Ok(()),
        }
    }
}
