//! The output of containers, read as `kubectl logs --follow` does.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use loadgen::churn::Api;
use tokio::io::AsyncWriteExt as _;

use crate::run::install::{authority, connect};
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
    let (mut sender, connection) = connect(&api.url, &api.ca_pem).await?;
    let request = Request::get(path)
        .header("host", authority(&api.url))
        .header("authorization", format!("Bearer {}", api.token))
        .body(Full::<Bytes>::default())?;
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
