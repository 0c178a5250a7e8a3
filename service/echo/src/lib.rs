//! The role `echo`: answers `/echo` with a text of the configuration.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::request::Parts as Head;
use http::{Response, StatusCode};
use http_body::Body;
use http_body_util::Full;
use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use serde::Deserialize;
use service_core::config::{Checker, Config, Error, Kind, Section, kind};
use service_core::edge::{Answer, Broken, Calls, Listener, Peer, Probe, Protocols, serve};
use service_core::role::{Role, Running, Start, Started};
use tokio::time::Instant;

/// The section `echo`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// What is answered; taken while running.
    pub text: String,
}

#[doc(hidden)]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawFile {
    echo: Option<Settings>,
}

impl Section for Settings {
    const KEYS: &'static [&'static str] = &["echo"];
    type Raw = RawFile;

    fn check(raw: RawFile, _: &Checker<'_>) -> Result<Option<Self>, Error> {
        Ok(raw.echo)
    }

    fn take(&mut self, fresh: &Self) -> Vec<&'static str> {
        if self.text == fresh.text {
            return Vec::new();
        }
        self.text.clone_from(&fresh.text);
        vec!["echo"]
    }
}

/// `/echo` is answered.
#[derive(Debug)]
pub struct Echo;

impl Role for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn about(&self) -> &'static str {
        "Only the echo"
    }

    fn sections(&self) -> &'static [Kind] {
        const { &[kind::<Settings>()] }
    }

    fn belongs(&self, config: &Config) -> bool {
        config.find::<Settings>().is_some()
    }

    fn lacks(&self, config: &Config) -> Option<&'static str> {
        config.find::<Settings>().is_none().then_some("the section `echo` in the configuration (listen, text)")
    }

    fn start<'a>(&'a self, start: &'a mut Start<'_>) -> BoxFuture<'a, anyhow::Result<Started>> {
        begin(start).boxed()
    }
}

async fn begin(start: &mut Start<'_>) -> anyhow::Result<Started> {
    let settings = start.config.find::<Settings>().context("the section `echo` is missing")?;
    let listener = Listener::bind(settings.listen, Protocols::Plain, start.edge.of("echo")).await;
    let listener = listener.with_context(|| format!("failed to listen on {} (echo.listen)", settings.listen))?;
    let address = listener.address().context("failed to read the address of the echo")?;
    let text = RwLock::new(settings.text.clone());
    let echoes = Arc::new(Echoes { text, answered: Counter::default(), in_flight: Gauge::default() });
    start.metrics.register("longhaul_echo_calls", "Calls answered", echoes.answered.clone());
    let probes = vec![Arc::clone(listener.pulse()) as Arc<dyn Probe>];
    let taken = Arc::clone(&echoes);
    let handler = move |request, peer| serve(Arc::clone(&echoes), request, peer);
    start.listeners.spawn(listener.serve(handler, start.drain.clone()));
    let reload = Box::new(move |fresh: &Config| {
        if let Some(fresh) = fresh.find::<Settings>() {
            taken.text.write().clone_from(&fresh.text);
        }
        Ok(Vec::new())
    });
    Ok(Started { address: Some(address), probes, reload: Some(reload), running: Box::new(Stage) })
}

struct Stage;

impl Running for Stage {
    fn broken(&mut self) -> BoxFuture<'_, String> {
        std::future::pending().boxed()
    }

    fn leave(&mut self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }

    fn stop(self: Box<Self>) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}

struct Echoes {
    text: RwLock<String>,
    answered: Counter,
    in_flight: Gauge,
}

impl Calls for Echoes {
    type Call = ();
    type Place<'a> = ();
    type Asked<'a> = ();
    type Held<'a> = ();
    type Refusal = StatusCode;

    fn in_flight(&self) -> &Gauge {
        &self.in_flight
    }

    fn call(&self, _: &Head, _: Arc<Peer>) {}

    fn budget(&self, _: &Head) -> Duration {
        Duration::from_secs(1)
    }

    fn asked(&self, (): &mut (), head: &Head) -> Result<(), StatusCode> {
        if head.uri.path() == "/echo" { Ok(()) } else { Err(StatusCode::NOT_FOUND) }
    }

    fn enter(&self, (): &()) -> Result<(), StatusCode> {
        Ok(())
    }

    async fn read<'a, B: Body<Data = Bytes, Error: Broken> + Send + Unpin>(
        &'a self,
        (): &'a Self::Call,
        _: (&Self::Asked<'_>, &Head),
        _: &mut B,
        _: Instant,
    ) -> Result<(), StatusCode> {
        Ok(())
    }

    async fn answer(
        &self,
        (): &Self::Call,
        _: (Self::Asked<'_>, &Head),
        (): Self::Held<'_>,
        _: Instant,
    ) -> Result<Answer, StatusCode> {
        Ok(Response::new(Full::from(self.text.read().clone())))
    }

    fn panicked(&self, (): &()) -> StatusCode {
        StatusCode::INTERNAL_SERVER_ERROR
    }

    fn status(refusal: &StatusCode) -> StatusCode {
        *refusal
    }

    fn ended(&self, (): (), result: Result<Answer, StatusCode>, _: Duration) -> Answer {
        self.answered.inc();
        result.unwrap_or_else(|status| {
            let mut answer = Response::new(Full::default());
            *answer.status_mut() = status;
            answer
        })
    }
}
