//! Sends reports to the witness: JSON lines over one HTTP connection, in order.
//!
//! This module sends several reports in one request and repeats failed requests. If a report still fails after the last
//! attempt, the process ends, because an incomplete report would look like a mistake of the client.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Maximum number of lines that wait to be reported. If the witness is slow and this many lines wait, the watches wait
/// too.
const LINES_MAX: usize = 4096;
const BATCH_LINES: usize = 512;
const TRIES: u32 = 20;
const TRY_PAUSE: Duration = Duration::from_millis(300);
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The sending side of the reports.
pub type Lines = mpsc::Sender<String>;

struct Witness {
    authority: String,
    path: String,
    sender: Option<SendRequest<Full<Bytes>>>,
    connection: JoinSet<()>,
}

/// Starts a task that reports until all senders are dropped. The reporting task is added to `tasks`.
pub fn start(url: &str, tasks: &mut JoinSet<()>) -> anyhow::Result<Lines> {
    let uri: http::Uri = url.parse().with_context(|| format!("{url} is not a URL"))?;
    let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http"));
    let authority = authority.with_context(|| format!("{url} is not an http URL"))?.to_string();
    let path = uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    let (lines, queue) = mpsc::channel(LINES_MAX);
    tasks.spawn(Witness { authority, path, sender: None, connection: JoinSet::new() }.run(queue));
    Ok(lines)
}

impl Witness {
    async fn run(mut self, mut queue: mpsc::Receiver<String>) {
        let mut batch = Vec::with_capacity(BATCH_LINES);
        while queue.recv_many(&mut batch, BATCH_LINES).await > 0 {
            let body = Bytes::from(batch.join("\n") + "\n");
            batch.clear();
            self.deliver(body).await;
        }
    }

    async fn deliver(&mut self, body: Bytes) {
        for _ in 0..TRIES {
            match timeout(ANSWER_DEADLINE, self.post(body.clone())).await {
                Ok(Ok(status)) if status.is_success() => return,
                Ok(Ok(status)) if status.is_client_error() => {
                    // A line that the witness refuses belongs to the mistake itself; the others were accepted.
                    eprintln!("planted-client: the witness answered {status}");
                    return;
                }
                _ => {
                    self.sender = None;
                    sleep(TRY_PAUSE).await;
                }
            }
        }
        eprintln!("planted-client: the witness at {} cannot be reached", self.authority);
        std::process::exit(1);
    }

    async fn post(&mut self, body: Bytes) -> anyhow::Result<http::StatusCode> {
        if self.sender.as_ref().is_none_or(SendRequest::is_closed) {
            let stream = TcpStream::connect(&self.authority).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            self.connection.shutdown().await;
            self.connection.spawn(async move {
                // An error here reaches the waiter for an answer.
                let _ = connection.await;
            });
            self.sender = Some(sender);
        }
        let sender = self.sender.as_mut().context("no connection")?;
        sender.ready().await?;
        let request = Request::post(&self.path).header("host", &self.authority);
        let request = request.header("content-type", "application/x-ndjson").body(Full::new(body))?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        body.map_err(anyhow::Error::from_boxed)?;
        Ok(status)
    }
}
