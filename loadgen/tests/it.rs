//! The generators against real sockets: TLS servers in the test that answer rightly, wrongly, late or not at all.
#![expect(clippy::unwrap_used, reason = "a test whose scaffolding fails has failed")]

#[path = "it/admission.rs"]
mod admission;
#[path = "it/again.rs"]
mod again;
#[path = "it/attacks.rs"]
mod attacks;
#[path = "it/audit.rs"]
mod audit;
#[path = "it/churn.rs"]
mod churn;
#[path = "it/clients.rs"]
mod clients;
#[path = "it/compressed.rs"]
mod compressed;
#[path = "it/connections.rs"]
mod connections;
#[path = "it/frames.rs"]
mod frames;
#[path = "it/hostile.rs"]
mod hostile;
#[path = "it/http2.rs"]
mod http2;
#[path = "it/kube.rs"]
mod kube;
#[path = "it/script.rs"]
mod script;
#[path = "it/server.rs"]
mod server;
#[path = "it/watch.rs"]
mod watch;
#[path = "it/webhook.rs"]
mod webhook;
