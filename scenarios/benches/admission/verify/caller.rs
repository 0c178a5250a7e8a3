//! A client that asks one question after the other over one connection, and is told what was decided.

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use loadgen::admission::Image;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::of_one;
use crate::subject::Subject;

/// One connection to a webhook.
pub(super) struct Caller {
    send: SendRequest<Full<Bytes>>,
    path: String,
}

/// The review of a Pod with this image.
pub(super) fn review(image: &Image) -> Result<Bytes> {
    let plan = of_one(image, 1.0, std::time::Duration::from_secs(1))?;
    plan.preview(1).pop().map(|(_, body)| body).context("a plan of one review has one")
}

impl Caller {
    pub(super) async fn connect(subject: &Subject) -> Result<Self> {
        let url: Uri = subject.target.url.parse()?;
        let authority = url.authority().context("the webhook's address")?;
        let tcp = TcpStream::connect(authority.as_str()).await?;
        tcp.set_nodelay(true)?;
        let tls = mock_pki::client_config(&subject.target.ca_pem, None, &["http/1.1"])?;
        let stream = TlsConnector::from(tls).connect("localhost".try_into()?, tcp).await?;
        let (send, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with its sender.
        tokio::spawn(connection);
        Ok(Self { send, path: url.path().to_owned() })
    }

    /// Whether the review is answered with yes.
    pub(super) async fn ask(&mut self, body: Bytes) -> Result<bool> {
        let request = Request::post(&self.path).header("host", "localhost").header("content-type", "application/json");
        self.send.ready().await?;
        let response = self.send.send_request(request.body(Full::new(body))?).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(status.is_success(), "answered {status}: {}", String::from_utf8_lossy(&body));
        let answer: Value = serde_json::from_slice(&body)?;
        answer["response"]["allowed"].as_bool().context("an answer says whether it allows")
    }
}
