//! The endpoints `/livez`, `/readyz`, `/metrics`, `/debug/watch` and `/debug/watch/objects`, over plain HTTP.
//!
//! This module only writes the answers; their content comes from the probes of the process. No answer of an endpoint is
//! constant: each depends on probes.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::drain::{Drain, Phase};
use super::exposition;

/// A component of the process that reports its health.
pub trait Probe: Send + Sync {
    fn name(&self) -> &str;
    /// Why the process should be restarted; `None` if it is healthy.
    fn dead(&self) -> Option<String> {
        None
    }
    /// Why the process should get no traffic; `None` if it is ready.
    fn unready(&self) -> Option<String> {
        None
    }
    /// A note for `?verbose` about a state that needs no restart and keeps the process ready.
    fn note(&self) -> Option<String> {
        None
    }
    /// The JSON for `/debug/{name}`; `None` if the component has none.
    fn page(&self) -> Option<String> {
        None
    }
    /// The JSON lines for `/debug/{name}/objects`; `None` if the component has none.
    fn objects(&self) -> Option<String> {
        None
    }
}

pub struct Health {
    probes: Vec<Arc<dyn Probe>>,
    drain: Drain,
    metrics: Mutex<Registry>,
}

impl Health {
    pub fn new(probes: Vec<Arc<dyn Probe>>, registry: Registry, drain: Drain) -> Self {
        Self { probes, drain, metrics: Mutex::new(registry) }
    }

    pub fn serve<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".into());
        }
        match request.uri().path() {
            "/livez" | "/healthz" => self.verdict(verbose(request), None, |probe| probe.dead()),
            "/readyz" => {
                let draining = self.drain.phase() >= Phase::Draining;
                self.verdict(verbose(request), draining.then_some("shutting down"), |probe| probe.unready())
            }
            "/metrics" => self.metrics(exposition::wants_open(request.headers())),
            path => {
                let name = path.strip_prefix("/debug/").unwrap_or_default();
                let probe = |name: &str| self.probes.iter().find(|probe| probe.name() == name);
                let page = probe(name).and_then(|probe| probe.page()).map(|page| (page, "application/json"));
                let objects = || name.strip_suffix("/objects").and_then(probe).and_then(|probe| probe.objects());
                match page.or_else(|| objects().map(|lines| (lines, "application/x-ndjson"))) {
                    Some((text, media_type)) => typed(StatusCode::OK, text, media_type),
                    None => text(
                        StatusCode::NOT_FOUND,
                        "there are /livez, /readyz, /metrics, /debug/watch and /debug/watch/objects\n".into(),
                    ),
                }
            }
        }
    }

    fn verdict(
        &self,
        verbose: bool,
        own: Option<&str>,
        ask: impl Fn(&dyn Probe) -> Option<String>,
    ) -> Response<Full<Bytes>> {
        let mut reasons: Vec<String> = own.map(|reason| format!("process: {reason}")).into_iter().collect();
        let mut lines = String::new();
        for probe in &self.probes {
            let (name, reason) = (probe.name(), ask(probe.as_ref()));
            let (mark, text) = match (&reason, probe.note()) {
                (Some(reason), _) => ("-", reason.clone()),
                (None, Some(note)) => ("!", note),
                (None, None) => ("+", "ok".to_owned()),
            };
            lines.extend(["[", mark, "]", name, ": ", &text, "\n"]);
            reasons.extend(reason.map(|reason| format!("{name}: {reason}")));
        }
        let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        text(
            status,
            match (verbose, reasons.is_empty()) {
                (true, _) => lines + &own.map(|reason| format!("[-]process: {reason}\n")).unwrap_or_default(),
                (false, true) => "ok\n".into(),
                (false, false) => reasons.join("\n") + "\n",
            },
        )
    }

    fn metrics(&self, open: bool) -> Response<Full<Bytes>> {
        let mut page = String::new();
        match encode(&mut page, &self.metrics.lock()) {
            Ok(()) if open => typed(StatusCode::OK, page, exposition::OPEN),
            Ok(()) => typed(StatusCode::OK, exposition::classic(&page), exposition::CLASSIC),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("metrics: {error}\n")),
        }
    }
}

/// Whether the request asks for one line per check (`?verbose`), as for kube-apiserver's own endpoints.
fn verbose<B>(request: &Request<B>) -> bool {
    let pairs = request.uri().query().unwrap_or_default().split('&');
    pairs.map(|pair| pair.split('=').next().unwrap_or_default()).any(|name| name == "verbose")
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    typed(status, body, "text/plain; charset=utf-8")
}

fn typed(status: StatusCode, body: String, content_type: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
