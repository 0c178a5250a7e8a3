//! Reports kube-rs's events to the witness: one POST for each event, in order. If a scenario sets `LONGHAUL_HANDLER_S`,
//! the handlers of this program take extra time.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

pub struct Witness {
    client: Client<HttpConnector, Full<Bytes>>,
    url: Uri,
    /// Extra time of the handler for the first, third, fifth, … modification of an object.
    slow: Duration,
    /// Number of modifications of each object. Modifications are counted only if handlers take extra time; such
    /// scenarios have few objects.
    modified: tokio::sync::Mutex<BTreeMap<String, u64>>,
}

impl Witness {
    /// Reads the environment variables that a run sets for its subject.
    pub fn from_environment() -> Result<Self> {
        let url = std::env::var("LONGHAUL_WITNESS_URL").context("LONGHAUL_WITNESS_URL is not set")?;
        let client = Client::builder(TokioExecutor::new()).build_http();
        let slow_s = std::env::var("LONGHAUL_HANDLER_S").ok().and_then(|text| text.parse().ok()).unwrap_or_default();
        let slow = Duration::try_from_secs_f64(slow_s).context("LONGHAUL_HANDLER_S is no time in seconds")?;
        let url = url.parse().context("LONGHAUL_WITNESS_URL is no URL")?;
        Ok(Self { client, url, slow, modified: tokio::sync::Mutex::default() })
    }

    /// Waits the extra time that the handler takes for this modification of the object.
    pub async fn works(&self, uid: &str) {
        if self.slow.is_zero() {
            return;
        }
        let mut modified = self.modified.lock().await;
        let times = modified.entry(uid.to_owned()).or_default();
        *times += 1;
        let first = *times % 2 == 1;
        drop(modified);
        if first {
            tokio::time::sleep(self.slow).await;
        }
    }

    /// Reports one version of an object to the witness. If the report fails, this returns an error, because the program
    /// must not continue with an incomplete report.
    pub async fn report(&self, (uid, version): (String, String), change: &str) -> Result<()> {
        let line = serde_json::json!({"uid": uid, "resourceVersion": version, "change": change}).to_string();
        let request = Request::post(self.url.clone()).body(Full::new(Bytes::from(line)))?;
        let answer = self.client.request(request).await.context("failed to reach the witness")?;
        ensure!(answer.status().is_success(), "the witness answered {}", answer.status());
        Ok(())
    }
}
