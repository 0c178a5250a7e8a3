//! The state of one control plane, and its HTTPS endpoints.
//!
//! Owns the mock API server. The first request for an endpoint creates the server and decides whether it uses RBAC; the
//! server runs until the process ends. No client learns the address of the server's own listener; every API server of a
//! suite is an additional endpoint.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use mock_kube::{Authorization, Config, Identity, Replica, Server, ServiceAccounts};
use mock_pki::Authority;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::order::Order;
use super::play::Play;
use super::record::Recorder;
use super::session::Session;

/// The common name of the certificate authority for the server's own listener.
const AUTHORITY: &str = "longhaul-envtest";
/// Maximum number of requests that the server keeps until the recorder reads them.
const REQUESTS_MAX: usize = 16_384;

pub(crate) struct Plane {
    session: Session,
    running: Mutex<Option<Running>>,
    recorder: Arc<parking_lot::Mutex<Option<Recorder>>>,
}

struct Running {
    server: Arc<Server>,
    play: JoinHandle<()>,
}

impl Plane {
    /// A control plane whose server is not started yet.
    pub fn new(session: Session) -> Self {
        Self { session, running: Mutex::default(), recorder: Arc::default() }
    }

    /// Opens an endpoint; the first call starts the server.
    pub async fn open(&self, order: &Order) -> Result<Replica, String> {
        let mut running = self.running.lock().await;
        let server = if let Some(running) = &*running {
            running.server.clone()
        } else {
            let (server, began) = self.start(order).await?;
            let play = Play::new(&server, &self.session, self.recorder.clone());
            if let Some(folder) = &self.session.runs {
                let opened = Recorder::open(folder, &server, play.names(), began);
                *self.recorder.lock() = Some(
                    opened.map_err(|error| format!("failed to write records into {}: {error}", folder.display()))?,
                );
            }
            *running = Some(Running { server: server.clone(), play: tokio::spawn(play.run()) });
            server
        };
        let serving = mock_pki::Pair { certificate_pem: order.certificate.clone(), key_pem: order.key.clone() };
        let identity = Identity { serving, clients_ca_pem: order.clients_ca.clone() };
        server.endpoint_as(order.address, &identity).await.map_err(|error| error_text(&error))
    }

    async fn start(&self, order: &Order) -> Result<(Arc<Server>, SystemTime), String> {
        self.session.choose_release()?;
        let authority = Authority::generate(AUTHORITY).map_err(|error| error_text(&error))?;
        let mut config = Config::new();
        (config.epoch, config.alone, config.seed) = (Instant::now(), true, self.session.seed);
        let began = SystemTime::now();
        let played = self.session.workloads_ms.map(Duration::from_millis);
        config.workloads = played.map(|ready_after| mock_kube::Workloads { ready_after, ..Default::default() });
        config.authorization = if order.rbac { Authorization::Rbac } else { Authorization::AllowAndRecord };
        config.service_accounts = ServiceAccounts { issuer: order.issuer.clone(), key_pem: order.signing_key.clone() };
        config.feature_gates.clone_from(&order.feature_gates);
        config.limits.requests_max = REQUESTS_MAX;
        let server = Server::start(config, &authority).await.map_err(|error| error_text(&error))?;
        Ok((Arc::new(server), began))
    }

    /// Writes the records of requests, commits and hits since the last call.
    pub fn write_records(&self) {
        if let Some(recorder) = &mut *self.recorder.lock() {
            recorder.write();
        }
    }

    pub async fn end(&self) {
        self.write_records();
        if let Some(running) = self.running.lock().await.take() {
            running.play.abort();
        }
    }
}

fn error_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
