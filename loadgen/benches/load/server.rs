//! The server that all generators meet: hyper over rustls, HTTP/1.1 and HTTP/2, in a process of its own.
//!
//! It answers each `AdmissionReview` with its uid and `allowed: true`. Under `/freeze` it holds every answer during the first
//! two seconds of each ten of the clock, so that the truth about its latency can be computed.

use std::convert::Infallible;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::TlsAcceptor;

/// A freeze begins whenever the clock's milliseconds are a multiple of this.
pub(crate) const PERIOD_MS: u64 = 10_000;
/// How long it lasts.
pub(crate) const FREEZE_MS: u64 = 2_000;
/// The path that freezes.
pub(crate) const FREEZE_PATH: &str = "/freeze";
/// Streams of an HTTP/2 connection: a freeze makes some hundred wait.
const STREAMS_MAX: u32 = 2_000;

/// The running server.
pub(crate) struct Server {
    child: Child,
    /// Kept, so that the server can always write.
    _output: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
    pub(crate) ca_pem: String,
}

impl Server {
    /// Starts this program as the server.
    pub(crate) fn start() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("failed to start the server")?;
        let mut output = BufReader::new(child.stdout.take().context("the server has no output")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let mut ca_pem = String::new();
        while !ca_pem.contains("END CERTIFICATE") {
            if output.read_line(&mut ca_pem)? == 0 {
                bail!("the server ended before it was ready");
            }
        }
        let address = line.trim().parse().context("the server did not say where it is")?;
        Ok(Self { child, _output: output, address, ca_pem })
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Milliseconds since 1970.
pub(crate) fn clock_ms() -> Result<f64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH).context("the clock stands before 1970")?.as_secs_f64() * 1e3)
}

/// Is the server, until its input ends with the process that started it.
pub(crate) fn serve() -> Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.spawn(async {
        if let Err(error) = accept().await {
            eprintln!("bench load: the server: {error:#}");
        }
    });
    let _ = std::io::stdin().read(&mut [0])?;
    Ok(true)
}

async fn accept() -> Result<()> {
    let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            vec![key.cert.der().clone()],
            PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()).into(),
        )?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    {
        let mut output = std::io::stdout().lock();
        writeln!(output, "{}\n{}", listener.local_addr()?, key.cert.pem())?;
        output.flush()?;
    }
    loop {
        let (tcp, _) = listener.accept().await?;
        tcp.set_nodelay(true)?;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(tcp).await else { return };
            let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            // Clients that go away are the end of every measurement.
            let _ = if h2 {
                let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                builder.max_concurrent_streams(STREAMS_MAX);
                builder.serve_connection(TokioIo::new(stream), service_fn(answer)).await
            } else {
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(answer))
                    .await
            };
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let freezes = request.uri().path() == FREEZE_PATH;
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    if freezes && let Ok(now_ms) = clock_ms() {
        let into_ms = now_ms % PERIOD_MS as f64;
        if into_ms < FREEZE_MS as f64 {
            tokio::time::sleep(Duration::from_secs_f64((FREEZE_MS as f64 - into_ms) / 1e3)).await;
        }
    }
    let text = std::str::from_utf8(&body).unwrap_or_default();
    let uid = text.split_once(r#""uid":""#).and_then(|(_, rest)| rest.get(..36)).unwrap_or_default();
    let body = [
        r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":""#,
        uid,
        r#"","allowed":true}}"#,
    ]
    .concat();
    let mut response = Response::new(Full::new(Bytes::from(body)));
    let json = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
    Ok(response)
}
