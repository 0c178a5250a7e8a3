//! The state of one control plane, and the endpoints in front of it.
//!
//! Owns the server. It is made for the first order, which decides whether RBAC is used, and lives until the process
//! ends. The server's own listener is kept secret; every API server of a suite is an endpoint beside it.

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

/// The common name of the authority for that listener.
const AUTHORITY: &str = "longhaul-envtest";
/// Requests that are remembered between two polls of the recorder.
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
    /// A control plane without a state.
    pub fn new(session: Session) -> Self {
        Self { session, running: Mutex::default(), recorder: Arc::default() }
    }

    /// Opens an endpoint; the first one makes the state.
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
        server.endpoint_as(order.address, &identity).await.map_err(|error| said(&error))
    }

    async fn start(&self, order: &Order) -> Result<(Arc<Server>, SystemTime), String> {
        let authority = Authority::generate(AUTHORITY).map_err(|error| said(&error))?;
        let mut config = Config::new();
        (config.epoch, config.alone, config.seed) = (Instant::now(), true, self.session.seed);
        let began = SystemTime::now();
        let played = self.session.workloads_ms.map(Duration::from_millis);
        config.workloads = played.map(|ready_after| mock_kube::Workloads { ready_after, ..Default::default() });
        config.authorization = if order.rbac { Authorization::Rbac } else { Authorization::AllowAndRecord };
        config.service_accounts = ServiceAccounts { issuer: order.issuer.clone(), key_pem: order.signing_key.clone() };
        config.feature_gates.clone_from(&order.feature_gates);
        config.limits.requests_max = REQUESTS_MAX;
        let server = Server::start(config, &authority).await.map_err(|error| said(&error))?;
        Ok((Arc::new(server), began))
    }

    /// Writes the new records.
    pub fn write_records(&self) {
        if let Some(recorder) = &mut *self.recorder.lock() {
            recorder.write();
        }
    }

    /// Ends the server and its tasks.
    pub async fn end(&self) {
        self.write_records();
        if let Some(running) = self.running.lock().await.take() {
            running.play.abort();
        }
    }
}

/// An error with its causes.
fn said(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
