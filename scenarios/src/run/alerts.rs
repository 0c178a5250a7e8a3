//! Receivers of the service's alerts: a receiver that answers at once, and optionally a second receiver that
//! misbehaves.
//!
//! Owns the receivers' sockets and the section `alerting` of the service's configuration.

mod account;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use loadgen::admission::{Answer, Answers};
use parking_lot::Mutex;
use reports::record::AlertsRow;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use self::account::Account;
use crate::accept::{respond, serve_http};
use crate::scenario::{Alerts, Beside};

/// The template of an alert's body, which contains only the ID of the review.
pub(super) const TEMPLATE: &str = r#"{"request": "{{ request_id }}"}"#;
/// Maximum size of an alert's body; a filled-in [`TEMPLATE`] is far smaller.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Maximum number of connections at once; further connections wait.
const CONNECTIONS_MAX: usize = 64;
/// A receiver closes a connection without a request for this time.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of each attempt to send an alert to the misbehaving receiver.
const BESIDE_TIMEOUT: &str = "2s";
/// The URL paths for alerts about admitted and refused reviews.
const ADMITTED: &str = "/admitted";
const REFUSED: &str = "/refused";

pub(super) struct Receiver {
    address: SocketAddr,
    beside: Option<SocketAddr>,
    received: Arc<Received>,
    _listens: JoinSet<()>,
}

/// The answered reviews and the received alerts, to be compared.
#[derive(Debug, Default)]
struct Received(Mutex<Account>);

#[derive(Deserialize)]
struct Alert {
    request: String,
}

impl Receiver {
    /// Listens on free ports, if the scenario has receivers.
    pub(super) async fn open(alerts: Option<&Alerts>, machine: Ipv4Addr) -> Result<Option<Self>> {
        let Some(alerts) = alerts else { return Ok(None) };
        let bind = || async { TcpListener::bind((machine, 0)).await.context("failed to listen for alerts") };
        let (listener, received, mut listens) = (bind().await?, Arc::<Received>::default(), JoinSet::new());
        let address = listener.local_addr()?;
        let to = Arc::clone(&received);
        listens.spawn(receive(listener, move |request| take(request, Arc::clone(&to))));
        let beside = match alerts.beside {
            None => None,
            Some(how) => {
                let listener = bind().await?;
                let address = listener.local_addr()?;
                match how {
                    Beside::Silent => drop(listens.spawn(receive(listener, |_| std::future::pending()))),
                    Beside::Refusing => {
                        listens.spawn(receive(listener, |_| std::future::ready(StatusCode::INTERNAL_SERVER_ERROR)));
                    }
                    Beside::Gone => drop(listener),
                }
                Some(address)
            }
        };
        Ok(Some(Self { address, beside, received, _listens: listens }))
    }

    /// The section `alerting` of the service's configuration; `template` is the file with [`TEMPLATE`].
    pub(super) fn section(&self, template: &Path) -> Value {
        let stream = |path: &str| {
            let name = path.trim_start_matches('/');
            let own = json!({
                "name": name, "templateFile": template, "url": format!("http://{}{path}", self.address),
                "queue": 100_000,
            });
            let beside = self.beside.map(|address| {
                json!({
                    "name": format!("beside-{name}"), "templateFile": template, "url": format!("http://{address}{path}"),
                    "timeout": BESIDE_TIMEOUT,
                })
            });
            let receivers: Vec<Value> = [own].into_iter().chain(beside).collect();
            json!({"receivers": receivers})
        };
        json!({"cluster": "longhaul", "admit": stream(ADMITTED), "reject": stream(REFUSED)})
    }

    /// The receiver of the webhook's answers to the load, which are later compared with the alerts.
    pub(super) fn answers(&self) -> Arc<dyn Answers> {
        Arc::clone(&self.received) as _
    }

    /// Takes the counts of alerts since the previous row of the record. With `last`, alerts that are still expected
    /// count as missing.
    pub(super) fn take(&self, last: bool) -> AlertsRow {
        let mut account = self.received.0.lock();
        account.settle(if last { None } else { Some(Instant::now()) });
        account.take()
    }
}

impl Answers for Received {
    fn answered(&self, answer: &Answer<'_>) {
        self.0.lock().answered(answer, Instant::now());
    }
}

/// Answers each request with the status that `answer` chooses.
async fn receive<F>(listener: TcpListener, answer: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static)
where
    F: Future<Output = StatusCode> + Send + 'static,
{
    let answer = move |request| {
        let status = answer(request);
        async move { respond(status.await, Bytes::new()) }
    };
    serve_http(listener, CONNECTIONS_MAX, Some(REQUEST_TIMEOUT), answer).await;
}

/// Records an alert. Refuses a request without a valid alert, so that the alert counts as missing.
async fn take(request: Request<Incoming>, received: Arc<Received>) -> StatusCode {
    let admitted = match request.uri().path() {
        ADMITTED => true,
        REFUSED => false,
        _ => return StatusCode::NOT_FOUND,
    };
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
    let Ok(Ok(body)) = tokio::time::timeout(REQUEST_TIMEOUT, body).await else { return StatusCode::BAD_REQUEST };
    let Ok(alert) = serde_json::from_slice::<Alert>(&body.to_bytes()) else { return StatusCode::BAD_REQUEST };
    received.0.lock().received(alert.request.as_bytes(), admitted, Instant::now());
    StatusCode::NO_CONTENT
}
