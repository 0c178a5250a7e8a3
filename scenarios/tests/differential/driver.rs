//! Sends a sequence of requests to one server and returns the unchanged answers.
//!
//! This module opens the connections: one for the requests, and one for each watch. The client is raw HTTP/1.1, so that
//! no library repeats, redirects or decodes anything unnoticed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::sequence::{Learned, Sequence, Step};

/// Time limit of an answer. A real server waits three seconds for a revision that does not exist yet.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);
const WATCH_DEADLINE: Duration = Duration::from_secs(20);
/// Time limit until a real server has compacted its history. The tests configure the real server to compact its history
/// every second.
const GONE_DEADLINE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(100);
const BODY_MAX_BYTES: usize = 8 << 20;
const EVENTS_MAX: usize = 500;
/// Name prefix of objects whose creation is the last event that a watch waits for.
pub const LAST: &str = "zz-last";

/// The address of a server, and credentials for it.
#[derive(Clone)]
pub struct Endpoint {
    pub address: SocketAddr,
    pub tls: Arc<rustls::ClientConfig>,
    pub token: String,
}

/// The unchanged result of one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    /// The request has a placeholder for a value that no answer contained.
    Unsaid(String),
    Answer {
        status: u16,
        media: String,
        body: Bytes,
    },
    Events {
        media: String,
        lines: Vec<Bytes>,
    },
}

struct Session<'a> {
    endpoint: &'a Endpoint,
    learned: Learned,
    sender: SendRequest<Full<Bytes>>,
    connections: JoinSet<()>,
}

/// Sends a sequence of requests to a server, in `namespace`, which must be new on this server.
pub async fn play(endpoint: &Endpoint, sequence: &Sequence, namespace: &str) -> anyhow::Result<Vec<Raw>> {
    let mut connections = JoinSet::new();
    let sender = connect(endpoint, &mut connections).await?;
    let mut session = Session { endpoint, learned: Learned::new(namespace), sender, connections };
    let own = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{ns}"}});
    match session.call(&Step::post("/api/v1/namespaces", own)).await? {
        Raw::Answer { status: 201, .. } => {}
        other => bail!("the namespace {namespace} could not be made: {other:?}"),
    }
    let mut answers = Vec::with_capacity(sequence.steps.len());
    let mut watches = JoinSet::new();
    let mut last = Vec::new();
    for (index, step) in sequence.steps.iter().enumerate() {
        if !step.is_watch() {
            answers.push(session.call(step).await.with_context(|| format!("step {index}: {step:?}"))?);
            continue;
        }
        let until = step.last.as_ref().map(|_| format!("\"{LAST}-{index}-{namespace}\""));
        match session.watch(step).await.with_context(|| format!("step {index}: {step:?}"))? {
            Ok(response) => {
                watches.spawn(async move { (index, events(response, until).await) });
                answers.push(Raw::Unsaid("still open".to_owned()));
                last.extend(step.last.as_ref().map(|object| (index, step.path.clone(), object.clone())));
            }
            Err(answer) => answers.push(answer),
        }
    }
    for (index, path, mut object) in last {
        object["metadata"]["name"] = Value::from(format!("{LAST}-{index}-{namespace}"));
        let path = path.split('?').next().unwrap_or_default();
        match session.call(&Step::post(path, object)).await? {
            Raw::Answer { status: 201, .. } => {}
            other => bail!("the object that ends the watch of step {index} could not be made: {other:?}"),
        }
    }
    while let Some(done) = watches.join_next().await {
        let (index, events) = done.context("a reader of a watch ended early")?;
        answers[index] = events.with_context(|| format!("step {index}: {:?}", sequence.steps[index]))?;
    }
    Ok(answers)
}

impl Session<'_> {
    async fn call(&mut self, step: &Step) -> anyhow::Result<Raw> {
        if step.is_nothing() {
            return Ok(Raw::Unsaid("nothing".to_owned()));
        }
        let asking = Instant::now();
        loop {
            let answer = self.ask(step).await?;
            let is = match answer {
                Raw::Answer { status, .. } => Some(status),
                _ => None,
            };
            if step.until().is_none() || step.until() == is || asking.elapsed() > GONE_DEADLINE {
                return Ok(answer);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn ask(&mut self, step: &Step) -> anyhow::Result<Raw> {
        let request = match self.request(step)? {
            Ok(request) => request,
            Err(word) => return Ok(Raw::Unsaid(word)),
        };
        if self.sender.ready().await.is_err() {
            self.sender = connect(self.endpoint, &mut self.connections).await?;
        }
        let response = tokio::time::timeout(ANSWER_DEADLINE, self.sender.send_request(request));
        let answer = whole(response.await.context("no answer in time")??).await?;
        // Repeated answers of a poll have no new facts.
        if step.until() != Some(410)
            && let Raw::Answer { body, .. } = &answer
            && let Ok(value) = serde_json::from_slice(body)
        {
            self.learned.learn(&value);
        }
        Ok(answer)
    }

    /// Opens a watch on a connection of its own. Instead of a stream, returns an answer if the watch was refused or
    /// could not be requested.
    async fn watch(&mut self, step: &Step) -> anyhow::Result<Result<Response<Incoming>, Raw>> {
        let request = match self.request(step)? {
            Ok(request) => request,
            Err(word) => return Ok(Err(Raw::Unsaid(word))),
        };
        let mut sender = connect(self.endpoint, &mut self.connections).await?;
        let response = tokio::time::timeout(ANSWER_DEADLINE, sender.send_request(request));
        let response = response.await.context("no answer in time")??;
        if response.status().is_success() { Ok(Ok(response)) } else { Ok(Err(whole(response).await?)) }
    }

    fn request(&self, step: &Step) -> anyhow::Result<Result<Request<Full<Bytes>>, String>> {
        let body = match (&step.body, &step.text) {
            (Some(body), _) => body.to_string(),
            (None, Some(text)) => text.clone(),
            (None, None) => String::new(),
        };
        let (path, body) = match (self.learned.fill(&step.path), self.learned.fill(&body)) {
            (Ok(path), Ok(body)) => (path, body),
            (Err(word), _) | (_, Err(word)) => return Ok(Err(word)),
        };
        let method = if step.is_watch() || step.until().is_some() { "GET" } else { &step.method };
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
        request = request.header(header::ACCEPT, step.accept.as_deref().unwrap_or("application/json"));
        match step.token.as_deref() {
            Some("") => {}
            token => {
                let token = token.unwrap_or(&self.endpoint.token);
                request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
            }
        }
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, step.content.as_deref().unwrap_or("application/json"));
        }
        Ok(Ok(request.body(Full::new(Bytes::from(body)))?))
    }
}

/// Opens a connection that lives as long as `connections`.
pub async fn connect(endpoint: &Endpoint, connections: &mut JoinSet<()>) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    let connecting = async {
        let tcp = TcpStream::connect(endpoint.address).await?;
        tcp.set_nodelay(true)?;
        let name = ServerName::from(endpoint.address.ip());
        anyhow::Ok(TlsConnector::from(endpoint.tls.clone()).connect(name, tcp).await?)
    };
    let stream = tokio::time::timeout(ANSWER_DEADLINE, connecting).await.context("no connection in time")??;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    connections.spawn(async move {
        // The waiter for an answer gets the error.
        let _ = connection.await;
    });
    Ok(sender)
}

fn media(response: &Response<Incoming>) -> String {
    let text = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    text.unwrap_or_default().split(';').next().unwrap_or_default().to_owned()
}

/// Reads an answer to its end.
pub async fn whole(response: Response<Incoming>) -> anyhow::Result<Raw> {
    let (status, media) = (response.status().as_u16(), media(&response));
    let reading = tokio::time::timeout(ANSWER_DEADLINE, Limited::new(response.into_body(), BODY_MAX_BYTES).collect());
    match reading.await.context("the answer did not end in time")? {
        Ok(body) => Ok(Raw::Answer { status, media, body: body.to_bytes() }),
        Err(error) if error.is::<LengthLimitError>() => bail!("the answer is longer than {BODY_MAX_BYTES} bytes"),
        Err(error) => bail!("the answer broke off: {error}"),
    }
}

/// Reads the lines of a watch until the server ends it or a line contains `until`.
async fn events(response: Response<Incoming>, until: Option<String>) -> anyhow::Result<Raw> {
    let media = media(&response);
    let mut body = response.into_body();
    let (mut lines, mut rest) = (Vec::new(), Vec::new());
    let reading = async {
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            for part in data.split_inclusive(|byte| *byte == b'\n') {
                rest.extend_from_slice(part);
                if part.last() != Some(&b'\n') {
                    continue;
                }
                let line = Bytes::from(std::mem::take(&mut rest));
                let ends = until
                    .as_ref()
                    .is_some_and(|until| line.windows(until.len()).any(|window| window == until.as_bytes()));
                lines.push(line);
                if ends || lines.len() >= EVENTS_MAX {
                    return anyhow::Ok(());
                }
            }
        }
        // An answer that is no stream of lines ends without a newline.
        if !rest.is_empty() {
            lines.push(Bytes::from(std::mem::take(&mut rest)));
        }
        Ok(())
    };
    let in_time = tokio::time::timeout(WATCH_DEADLINE, reading).await;
    match in_time {
        Ok(done) => done.context("the watch broke off")?,
        // This is compared like any other line: the other server did send the event that ends the watch.
        Err(_) => lines.push(Bytes::from_static(b"{\"type\":\"no end in time\"}\n")),
    }
    Ok(Raw::Events { media, lines })
}
