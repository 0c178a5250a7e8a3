//! The clients of the measured servers: connections that send one request after the other, and `openssl s_time` for TLS
//! handshakes.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use hyper::Method;
use tokio::task::JoinSet;

use super::world::{NAMESPACE, World, name};
use crate::kit::client::Endpoint;

pub(crate) struct Caller(Endpoint);

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
    pub(crate) fn new(world: &World, address: SocketAddr) -> Result<Self> {
        let pair = world.authority.client("bench-client", &[])?;
        Ok(Self(Endpoint::new(address, world.authority.ca_pem(), Some(&pair), "")?))
    }

    /// Whether the server answers a request with a replica count.
    pub(crate) async fn is_answered(&self) -> bool {
        let asked = ask(self.0.clone(), Instant::now());
        matches!(tokio::time::timeout(Duration::from_secs(5), asked).await, Ok(Ok(times)) if !times.is_empty())
    }

    /// Requests replica counts over `connections` connections for the time `window`.
    pub(crate) async fn read(&self, connections: usize, window: Duration) -> Result<Reading> {
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..connections {
            tasks.spawn(ask(self.0.clone(), begun + window));
        }
        let mut times_us = Histogram::new(3)?;
        while let Some(times) = tasks.join_next().await {
            times_us.add(times??)?;
        }
        Ok(Reading { times_us, elapsed: begun.elapsed() })
    }
}

/// Sends one request after the other until `end`, but at least one request. Returns the times of the answers.
async fn ask(endpoint: Endpoint, end: Instant) -> Result<Histogram<u64>> {
    let mut client = endpoint.connect().await?;
    let path = format!("/api/v1/namespaces/{NAMESPACE}/deployments/{}/replicas", name(0));
    let mut times = Histogram::new(3)?;
    loop {
        let begun = Instant::now();
        let body = client.call(Method::GET, &path, "").await?;
        ensure!(body.ends_with(b"}") || body.ends_with(b"}\n"), "no whole answer");
        times.record(u64::try_from(begun.elapsed().as_micros())?)?;
        if Instant::now() >= end {
            return Ok(times);
        }
    }
}

/// Measures full TLS handshakes per second; `None` if openssl is missing.
pub(crate) async fn handshakes(world: &World, address: SocketAddr, window: Duration) -> Result<Option<f64>> {
    let mut command = tokio::process::Command::new("openssl");
    command.args(["s_time", "-new", "-tls1_3", "-time", &window.as_secs().max(1).to_string(), "-connect"]);
    command.arg(address.to_string()).arg("-CAfile").arg(world.file("ca.crt"));
    command.arg("-cert").arg(world.file("client.crt")).arg("-key").arg(world.file("client.key"));
    let Ok(output) = command.stdin(Stdio::null()).kill_on_drop(true).output().await else { return Ok(None) };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // The line has the form `1234 connections in 4 real seconds, 0 bytes read per connection`.
    let line =
        said.lines().find(|line| line.contains("real seconds")).with_context(|| format!("openssl said {said}"))?;
    let mut numbers = line.split(' ').filter_map(|word| word.parse::<f64>().ok());
    let (connections, seconds) = (numbers.next().unwrap_or(0.0), numbers.next().unwrap_or(1.0));
    Ok(Some(connections / seconds))
}
