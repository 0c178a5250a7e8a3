//! A registry that knows a few tags, counts its requests, and misbehaves by name.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use http::{Method, Response};
use sha2::{Digest as _, Sha256};

use super::{Body, Server, full, status};

pub const MANIFEST: &str =
    r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}"#;

pub struct Registry {
    pub server: Server,
    pub requests: Arc<AtomicUsize>,
}

/// The digest of [`MANIFEST`].
pub fn digest() -> String {
    let hash = Sha256::digest(MANIFEST);
    format!("sha256:{}", hex::encode(hash))
}

impl Registry {
    /// Repositories decide the behaviour: `good`, `slow` (300 ms), `nohead`, `nodigest`, `token`, `denied`, `broken`, `hang`;
    /// any other is absent.
    pub async fn start() -> Self {
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        let server = Server::start(
            false,
            Arc::new(move |request| {
                counter.fetch_add(1, Ordering::Relaxed);
                let path = request.uri().path().to_owned();
                let head = request.method() == Method::HEAD;
                let host = request.headers()["host"].to_str().unwrap().to_owned();
                let token = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
                async move { answer(&path, head, &host, token.as_deref()).await }.boxed()
            }),
        )
        .await;
        Self { server, requests }
    }

    pub fn host(&self) -> String {
        self.server.address.to_string()
    }
}

async fn answer(path: &str, head: bool, host: &str, token: Option<&str>) -> Response<Body> {
    // The first request of some clients.
    if path == "/v2/" {
        return status(200, "{}");
    }
    let digest = digest();
    let manifest = |stated: Option<&str>| {
        let mut builder = Response::builder().header("content-type", "application/vnd.oci.image.index.v1+json");
        if let Some(stated) = stated {
            builder = builder.header("docker-content-digest", stated);
        }
        builder.body(full(if head { "" } else { MANIFEST })).unwrap()
    };
    match path.trim_start_matches("/v2/").split('/').next().unwrap() {
        "slow" => {
            tokio::time::sleep(Duration::from_millis(300)).await;
            manifest(Some(&digest))
        }
        "nohead" if head => status(405, ""),
        "good" | "nohead" => manifest(Some(&digest)),
        "nodigest" => manifest(None),
        "liar" if head => manifest(None),
        "liar" => manifest(Some(&format!("sha256:{}", "0".repeat(64)))),
        "token" if token == Some("Bearer t0k3n") => manifest(Some(&digest)),
        "token" => Response::builder()
            .status(401)
            .header(
                "www-authenticate",
                format!(r#"Bearer realm="http://{host}/auth",service="s",scope="repository:token:pull""#),
            )
            .body(full(""))
            .unwrap(),
        "denied" => status(403, ""),
        "broken" => status(500, ""),
        "hang" => std::future::pending().await,
        _ if path == "/auth" => status(200, r#"{"token":"t0k3n","expires_in":300}"#),
        _ => status(404, ""),
    }
}
