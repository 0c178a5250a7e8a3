//! The output of containers, read as `kubectl logs --follow` does.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper_util::rt::TokioIo;
use loadgen::churn::Api;
use tokio::io::AsyncWriteExt as _;
use tokio_rustls::TlsConnector;

use crate::subject::{Log, Pods};

/// Timeout until the API server begins to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Maximum number of bytes of output that are read and not yet written to the log.
const PIPE_BYTES: usize = 64 << 10;

/// Copies the output of a container into the log until its end, with the container's name before each line.
pub(super) async fn follow(api: Api, path: String, name: String, log: Log, pods: Pods) {
    let (near, mut far) = tokio::io::duplex(PIPE_BYTES);
    let reads = log.reads(near, &name, &pods);
    let writes = async {
        // A read error only leaves a gap in a file for users.
        let _ = stream(&api, &path, &mut far).await;
        drop(far);
    };
    tokio::join!(reads, writes);
}

async fn stream(api: &Api, path: &str, into: &mut tokio::io::DuplexStream) -> Result<()> {
    let address = api.url.trim_start_matches("https://");
    let tls = mock_pki::client_config(&api.ca_pem, None, &["http/1.1"])?;
    let stream = tokio::net::TcpStream::connect(address).await?;
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host).to_owned();
    let stream = TlsConnector::from(tls).connect(host.try_into()?, stream).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get(path)
        .header("host", address)
        .header("authorization", format!("Bearer {}", api.token))
        .body(Empty::<Bytes>::new())?;
    let exchange = async {
        let answer = tokio::time::timeout(ANSWER_LIMIT, sender.send_request(request)).await;
        let mut answer = answer.context("no answer")??;
        if !answer.status().is_success() {
            bail!("{}", answer.status());
        }
        while let Some(frame) = answer.frame().await {
            if let Ok(data) = frame?.into_data() {
                into.write_all(&data).await?;
            }
        }
        Ok(())
    };
    tokio::select! {
        done = exchange => done,
        ended = connection => ended.map_err(Into::into),
    }
}
