//! The program named `etcd`: answers health checks of etcd and holds the state of the API server.
//!
//! Owns etcd's port, on which it reads HTTP requests; the process `kube-apiserver` requests endpoints there (`order`).
//! The program is no database and refuses clients that use etcd's own protocol.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use super::flags::Flags;
use super::order::{Answer, ORDER_MAX_BYTES, Order, PATH, STOP, STOPPED};
use super::plane::Plane;
use super::session::Session;
use super::{help, parent};

const PROGRAM: &str = "etcd";
const DEFAULT: &str = "http://localhost:2379";
/// Maximum size of the headers of an HTTP request, in bytes.
const HEAD_MAX_BYTES: u64 = 16 * 1024;
/// Deadline for a request to arrive completely.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);
/// Maximum number of connections at a time: those of a test kit's probes and of its API servers.
const CONNECTIONS_MAX: usize = 256;

pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let flags = Flags::parse(arguments);
    if flags.is_on("help") || flags.is_on("h") {
        print!("{}", help::ETCD);
        return ExitCode::SUCCESS;
    }
    if flags.is_on("version") {
        print!("{}", help::ETCD_VERSION);
        return ExitCode::SUCCESS;
    }
    super::block_on(PROGRAM, serve(flags))
}

async fn serve(flags: Flags) -> Result<(), String> {
    let mut term = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    let plane = Arc::new(Plane::new(Session::of_environment()?));
    let mut ports = JoinSet::new();
    for url in flags.last("listen-client-urls").unwrap_or(DEFAULT).split(',') {
        let listener = listen(url).await?;
        ports.spawn(accept(listener, plane.clone()));
    }
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
        () = parent::ended() => {}
    }
    ports.abort_all();
    plane.end().await;
    Ok(())
}

/// Listens at the address of a URL such as `http://127.0.0.1:2379`.
async fn listen(url: &str) -> Result<TcpListener, String> {
    let wrong = || {
        format!(
            "`--listen-client-urls`: {url} is not `http://ADDRESS:PORT`; certificates for clients of etcd are not supported"
        )
    };
    let place = url.trim().strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
    TcpListener::bind(place)
        .await
        .map_err(|error| format!("failed to listen on {place}: {error}; another program may use the port"))
}

async fn accept(listener: TcpListener, plane: Arc<Plane>) {
    let mut open = JoinSet::new();
    loop {
        while open.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) if open.len() < CONNECTIONS_MAX => {
                let plane = plane.clone();
                open.spawn(async move {
                    // A client that breaks off needs no answer.
                    let _ = connection(stream, &plane).await;
                });
            }
            Ok(_) => {}
            // Usually no descriptors are left: clients wait in the kernel.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Handles the requests of one connection one after the other. A request for an endpoint uses the connection until the
/// endpoint ends.
async fn connection(stream: TcpStream, plane: &Plane) -> io::Result<()> {
    let _ = stream.set_nodelay(true);
    let mut stream = BufReader::new(stream);
    loop {
        let head = tokio::time::timeout(REQUEST_WITHIN, head(&mut stream)).await??;
        let Some(Head { method, path, length }) = head else { return Ok(()) };
        let body = match (method.as_str(), path.as_str()) {
            ("POST", PATH) => return order(stream, length, plane).await,
            ("GET", "/health") => r#"{"health":"true","reason":""}"#,
            ("GET", "/livez" | "/readyz") => "ok",
            ("GET", "/version") => r#"{"etcdserver":"3.6.4","etcdcluster":"3.6.0","storage":"3.6.0"}"#,
            _ => {
                stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await?;
                return Ok(());
            }
        };
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await?;
    }
}

struct Head {
    method: String,
    path: String,
    length: usize,
}

/// Reads the request line and headers of a request; `None` if the stream ends or does not contain HTTP/1.
async fn head<S: tokio::io::AsyncBufRead + Unpin>(stream: &mut S) -> io::Result<Option<Head>> {
    let mut stream = stream.take(HEAD_MAX_BYTES);
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line).await?;
    let line = String::from_utf8_lossy(&line).into_owned();
    let mut words = line.split_whitespace();
    let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next()) else {
        return Ok(None);
    };
    if !version.starts_with("HTTP/1.") {
        return Ok(None);
    }
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut line = Vec::new();
        if stream.read_until(b'\n', &mut line).await? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line).trim().to_ascii_lowercase();
        if line.is_empty() {
            return Ok(Some(Head { method: method.to_owned(), path, length }));
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(usize::MAX);
        }
    }
}

/// Opens an endpoint of the API server that exists as long as this connection.
async fn order(mut stream: BufReader<TcpStream>, length: usize, plane: &Plane) -> io::Result<()> {
    if length > ORDER_MAX_BYTES {
        return stream.write_all(b"HTTP/1.1 413 Content Too Large\r\nconnection: close\r\n\r\n").await;
    }
    let mut body = vec![0; length];
    tokio::time::timeout(REQUEST_WITHIN, stream.read_exact(&mut body)).await??;
    let opened = match serde_json::from_slice::<Order>(&body) {
        Ok(order) => plane.open(&order).await,
        Err(error) => Err(format!("the order is not one of this version: {error}")),
    };
    let (answer, endpoint) = match opened {
        Ok(endpoint) => (Answer::Ready, Some(endpoint)),
        Err(why) => (Answer::Refused(why), None),
    };
    let line = serde_json::to_string(&answer).map_err(io::Error::other)?;
    stream.write_all(format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{line}\n").as_bytes()).await?;
    let Some(endpoint) = endpoint else { return Ok(()) };
    let mut word = String::new();
    let read = (&mut stream).take(HEAD_MAX_BYTES).read_line(&mut word).await;
    if read.is_ok() && word.trim() == STOP {
        endpoint.shutdown().await;
        plane.write_records();
        return stream.write_all(format!("{STOPPED}\n").as_bytes()).await;
    }
    // The API server was killed: no open request is awaited.
    drop(endpoint);
    plane.write_records();
    Ok(())
}
