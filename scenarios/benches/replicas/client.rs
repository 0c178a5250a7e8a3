//! The client: connections that ask one question after the other, and openssl for handshakes.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use hdrhistogram::Histogram;
use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::subject::Subject;
use crate::world::{NAMESPACE, World, name};

/// Who asks one server.
pub(crate) struct Caller {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
}

/// What was read.
pub(crate) struct Reading {
    times_us: Histogram<u64>,
    elapsed: Duration,
}

impl Reading {
    pub(crate) fn per_second(&self) -> f64 {
        self.times_us.len() as f64 / self.elapsed.as_secs_f64()
    }

    pub(crate) fn p99_us(&self) -> f64 {
        self.times_us.value_at_quantile(0.99) as f64
    }
}

impl Caller {
    pub(crate) fn new(world: &World, subject: &Subject) -> Result<Self> {
        let pair = world.authority.client("bench-client", &[])?;
        let tls = mock_pki::client_config(world.authority.ca_pem(), Some(&pair), &["http/1.1"])?;
        Ok(Self { address: subject.address, tls })
    }

    /// Whether a question is answered with a count.
    pub(crate) async fn is_answered(&self) -> bool {
        let asked = ask(self.address, Arc::clone(&self.tls), Instant::now());
        matches!(tokio::time::timeout(Duration::from_secs(5), asked).await, Ok(Ok(times)) if !times.is_empty())
    }

    /// Asks for counts over so many connections, for so long.
    pub(crate) async fn read(&self, connections: usize, window: Duration) -> Result<Reading> {
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..connections {
            tasks.spawn(ask(self.address, Arc::clone(&self.tls), begun + window));
        }
        let mut times_us = Histogram::new(3)?;
        while let Some(times) = tasks.join_next().await {
            times_us.add(times??)?;
        }
        Ok(Reading { times_us, elapsed: begun.elapsed() })
    }
}

/// At least one question, and others until `end`.
async fn ask(address: SocketAddr, tls: Arc<ClientConfig>, end: Instant) -> Result<Histogram<u64>> {
    let tcp = TcpStream::connect(address).await?;
    tcp.set_nodelay(true)?;
    let stream = TlsConnector::from(tls).connect("localhost".try_into()?, tcp).await?;
    let (mut send, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with its sender.
    tokio::spawn(connection);
    let path = format!("/api/v1/namespaces/{NAMESPACE}/deployments/{}/replicas", name(0));
    let mut times = Histogram::new(3)?;
    loop {
        let begun = Instant::now();
        let request = Request::get(&path).header("host", "localhost").body(Empty::<Bytes>::new())?;
        send.ready().await?;
        let response = send.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(status.is_success() && body.ends_with(b"}") | body.ends_with(b"}\n"), "answered {status}");
        times.record(u64::try_from(begun.elapsed().as_micros())?)?;
        if Instant::now() >= end {
            return Ok(times);
        }
    }
}

/// Full handshakes a second; nothing where there is no openssl.
pub(crate) async fn handshakes(world: &World, subject: &Subject, window: Duration) -> Result<Option<f64>> {
    let mut command = tokio::process::Command::new("openssl");
    command.args(["s_time", "-new", "-tls1_3", "-time", &window.as_secs().max(1).to_string(), "-connect"]);
    command.arg(subject.address.to_string()).arg("-CAfile").arg(world.file("ca.crt"));
    command.arg("-cert").arg(world.file("client.crt")).arg("-key").arg(world.file("client.key"));
    let Ok(output) = command.stdin(Stdio::null()).kill_on_drop(true).output().await else { return Ok(None) };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // `1234 connections in 4 real seconds, 0 bytes read per connection`
    let line =
        said.lines().find(|line| line.contains("real seconds")).with_context(|| format!("openssl said {said}"))?;
    let mut numbers = line.split(' ').filter_map(|word| word.parse::<f64>().ok());
    let (connections, seconds) = (numbers.next().unwrap_or(0.0), numbers.next().unwrap_or(1.0));
    Ok(Some(connections / seconds))
}
