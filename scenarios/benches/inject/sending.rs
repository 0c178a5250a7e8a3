//! Sends chunks into an API server, with the injector and by Zarf's method.
//!
//! The benchmark's API server has no node. In place of a node, the benchmark marks the injected program's Pod as ready
//! as soon as the Pod exists.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use hyper::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::process::Command;

use super::assembly::seed;
use super::forwarder::Forwarder;
use super::payload::noise;
use crate::kit::apiserver::ApiServer;
use crate::kit::client::{Client, Endpoint};
use crate::kit::process::beside;

/// Size in bytes of a chunk, both for the injector and for Zarf's method.
const CHUNK_BYTES: usize = 512 << 10;
/// Zarf's pause after each chunk (`src/pkg/cluster/injector.go`).
const ZARF_PAUSE: Duration = Duration::from_millis(250);
/// Interval between two requests for the injected program's Pod.
const LOOK: Duration = Duration::from_millis(20);
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const POD: &str = "/api/v1/namespaces/default/pods/longhaul-seed";

/// An API server behind a forwarder, and the image to send.
pub(crate) struct Stage<'s> {
    server: &'s ApiServer,
    forwarder: Forwarder,
    folder: tempfile::TempDir,
    /// The payload to send by Zarf's method: as large as the injector's payload, and just as incompressible.
    bytes: Vec<u8>,
}

/// The cost of sending one payload.
pub(crate) struct Sent {
    payload_bytes: f64,
    chunks: u32,
    requests: f64,
    up: f64,
    down: f64,
    sending: Duration,
    /// Duration of the whole command `inject apply`, or of sending all chunks by Zarf's method.
    pub(crate) whole: Duration,
    pub(crate) clean: Duration,
}

impl Sent {
    pub(crate) fn mb_per_second(&self) -> f64 {
        self.payload_bytes / 1e6 / self.sending.as_secs_f64()
    }

    pub(crate) fn mb_per_second_with_pauses(&self) -> f64 {
        self.payload_bytes / 1e6 / (self.sending + ZARF_PAUSE * self.chunks).as_secs_f64()
    }

    pub(crate) fn requests_per_mb(&self) -> f64 {
        self.requests / self.payload_bytes * 1e6
    }

    pub(crate) fn up_per_byte(&self) -> f64 {
        self.up / self.payload_bytes
    }

    pub(crate) fn down_per_byte(&self) -> f64 {
        self.down / self.payload_bytes
    }
}

impl<'s> Stage<'s> {
    pub(crate) async fn start(server: &'s ApiServer, megabytes: usize) -> Result<Self> {
        let address = server.endpoint.address;
        let (forwarder, folder) = (Forwarder::start(address).await?, tempfile::tempdir()?);
        let [there, here] = [address, forwarder.address].map(|address| format!(":{}", address.port()));
        std::fs::write(folder.path().join("kubeconfig"), server.kubeconfig.replace(&there, &here))?;
        server.follow_requests();
        let bytes = noise(megabytes * 1_000_000, 1);
        let stage = Self { server, forwarder, folder, bytes };
        stage.layout()?;
        Ok(stage)
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("layout")
    }

    fn layout(&self) -> Result<()> {
        let blobs = self.image().join("blobs/sha256");
        std::fs::create_dir_all(&blobs)?;
        let put = |media_type: &str, bytes: &[u8]| -> Result<Value> {
            let digest = hex::encode(Sha256::digest(bytes));
            std::fs::write(blobs.join(&digest), bytes)?;
            Ok(json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": bytes.len()}))
        };
        let config = put("application/vnd.oci.image.config.v1+json", br#"{"os":"linux","architecture":"amd64"}"#)?;
        let layer = put("application/vnd.oci.image.layer.v1.tar", &self.bytes)?;
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": [layer]});
        let manifest = put(media_type, manifest.to_string().as_bytes())?;
        std::fs::write(self.image().join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
        let index = json!({"schemaVersion": 2, "manifests": [manifest]});
        Ok(std::fs::write(self.image().join("index.json"), index.to_string())?)
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(beside("longhaul-service"));
        command.args(["inject", verb, "--kubeconfig"]).arg(self.folder.path().join("kubeconfig"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs `inject apply`, then `inject clean`.
    pub(crate) async fn inject(&self) -> Result<Sent> {
        let mut client = self.server.endpoint.connect().await?;
        let image = format!("oci:{}=bench/image:1", self.image().display());
        let mut command = self.command("apply");
        command.args(["--node-image", "bench:1", "--image", &image, "--chunk-bytes", &CHUNK_BYTES.to_string()]);
        command.arg("--seed").arg(seed()?);
        self.server.requests();
        let (before, begun) = (self.forwarder.bytes(), Instant::now());
        let mut applying = Box::pin(command.output());
        let output = loop {
            tokio::select! {
                output = &mut applying => break output?,
                () = tokio::time::sleep(LOOK) => ready(&mut client).await?,
            }
        };
        let (whole, after) = (begun.elapsed(), self.forwarder.bytes());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let requests = self.server.requests();
        let begun = Instant::now();
        let cleaned = self.command("clean").output().await?;
        ensure!(cleaned.status.success(), "{}", String::from_utf8_lossy(&cleaned.stderr));
        let clean = begun.elapsed();
        // A real server does not report requests; the injector itself counts those with chunks.
        let requests = match requests {
            Some(requests) => requests as f64,
            None => word(&said, " chunks in ")?.parse()?,
        };
        Ok(Sent {
            payload_bytes: word(&said, "packed ")?.parse()?,
            chunks: word(&said, "sent: ")?.parse()?,
            requests,
            up: (after.0 - before.0) as f64,
            down: (after.1 - before.1) as f64,
            sending: Duration::from_secs_f64(word(&said, "sending took ")?.parse()?),
            whole,
            clean,
        })
    }

    /// Sends chunks by Zarf's method: one after the other, each as a create request with a full answer.
    pub(crate) async fn zarf(&self) -> Result<Sent> {
        let through = Endpoint { address: self.forwarder.address, ..self.server.endpoint.clone() };
        let mut client = through.connect().await?;
        let (before, begun) = (self.forwarder.bytes(), Instant::now());
        let mut chunks = 0;
        for (number, chunk) in self.bytes.chunks(CHUNK_BYTES).enumerate() {
            let name = format!("zarf-payload-{number:03}");
            let data = base64::engine::general_purpose::STANDARD.encode(chunk);
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "binaryData": {&name: data},
                "metadata": {"name": name, "labels": {"zarf-injector": "payload"}},
            });
            client.call(Method::POST, CONFIG_MAPS, object.to_string()).await?;
            chunks += 1;
        }
        let (sending, after) = (begun.elapsed(), self.forwarder.bytes());
        let begun = Instant::now();
        let path = format!("{CONFIG_MAPS}?labelSelector=zarf-injector%3Dpayload");
        self.server.endpoint.connect().await?.call(Method::DELETE, &path, "").await?;
        Ok(Sent {
            payload_bytes: self.bytes.len() as f64,
            chunks,
            requests: f64::from(chunks),
            up: (after.0 - before.0) as f64,
            down: (after.1 - before.1) as f64,
            sending,
            whole: sending,
            clean: begun.elapsed(),
        })
    }
}

/// Marks the injected program's Pod as ready once the Pod exists, as a kubelet would.
async fn ready(client: &mut Client) -> Result<()> {
    let (status, pod) = client.ask(Method::GET, POD, "").await?;
    let pod: Value = serde_json::from_slice(&pod).unwrap_or_default();
    if status == 200 && pod["status"]["phase"] != "Running" {
        let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        client.call(Method::PATCH, &format!("{POD}/status"), ready.to_string()).await?;
    }
    Ok(())
}

/// The word that follows `before` in an output line such as `payload: 3 blobs, 1 bytes, packed 2 bytes in 3 chunks …`.
fn word<'t>(text: &'t str, before: &str) -> Result<&'t str> {
    let rest = text.split_once(before).with_context(|| format!("no `{before}` in {text}"))?.1;
    rest.split(' ').next().context("a text has a word")
}
