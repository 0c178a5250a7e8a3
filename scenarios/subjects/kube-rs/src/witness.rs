//! Tells the witness what the library told: one post a line, in order.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// The connection to `LONGHAUL_WITNESS_URL`.
pub struct Witness {
    client: Client<HttpConnector, Full<Bytes>>,
    url: Uri,
}

impl Witness {
    /// From the environment that a run gives to its subject.
    pub fn from_environment() -> Result<Self> {
        let url = std::env::var("LONGHAUL_WITNESS_URL").context("LONGHAUL_WITNESS_URL is not set")?;
        let client = Client::builder(TokioExecutor::new()).build_http();
        Ok(Self { client, url: url.parse().context("LONGHAUL_WITNESS_URL is no URL")? })
    }

    /// Reports one version. Who cannot report must not go on as if nothing were wrong.
    pub async fn report(&self, (uid, version): (String, String), change: &str) -> Result<()> {
        let line = serde_json::json!({"uid": uid, "resourceVersion": version, "change": change}).to_string();
        let request = Request::post(self.url.clone()).body(Full::new(Bytes::from(line)))?;
        let answer = self.client.request(request).await.context("failed to reach the witness")?;
        ensure!(answer.status().is_success(), "the witness answered {}", answer.status());
        Ok(())
    }
}
