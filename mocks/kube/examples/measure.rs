//! What the mock API server costs: CPU of a write and of an event delivered to TLS watchers, memory of objects and
//! watchers. `cargo run --release -p mock-kube --example measure -- [watchers] [writes]`
//!
//! The server runs as a process of its own, so that the clients' cost is not counted. Linux only: it reads `/proc`.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use mock_kube::{Config, Server, User};
use mock_pki::{Authority, client_config};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// `USER_HZ`, the unit of times in `/proc/PID/stat`: 100 on every Linux that Rust's standard library knows.
const TICKS_PER_S: f64 = 100.0;
const OBJECTS: usize = 5000;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "serve") {
        return serve().await;
    }
    let number = |index: usize, default: usize| arguments.get(index).map_or(Ok(default), |text| text.parse());
    let (watchers, writes) = (number(0, 100)?, number(1, 20_000)?);
    let mut child = tokio::process::Command::new(std::env::current_exe()?)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let pid = child.id().ok_or("the server has ended")?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let address = lines.next_line().await?.ok_or("no address")?;
    let mut ca = String::new();
    while let Some(line) = lines.next_line().await?.filter(|line| !line.is_empty()) {
        ca.push_str(&line);
        ca.push('\n');
    }
    measure(pid, &address, &ca, watchers, writes).await
}

async fn serve() -> Result<(), Failure> {
    let authority = Authority::generate("measure")?;
    let mut config = Config::new();
    config.users = vec![User::admin("admin", "token")];
    config.history_max_events = 10_000;
    let server = Server::start(config, &authority).await?;
    println!("{}\n{}", server.address(), authority.ca_pem());
    std::future::pending::<()>().await;
    Ok(())
}

async fn measure(pid: u32, address: &str, ca: &str, watchers: usize, writes: usize) -> Result<(), Failure> {
    let mut writer = connect(address, ca).await?;
    let (cpu, memory) = (cpu_s(pid)?, rss_kib(pid)?);
    for index in 0..OBJECTS {
        send(&mut writer, Method::POST, MAPS, object(index, 0)).await?.into_body().collect().await?;
    }
    let write_us = (cpu_s(pid)? - cpu) * 1e6 / OBJECTS as f64;
    println!("write without watchers: {write_us:.1} us of CPU");
    let grown = rss_kib(pid)?.saturating_sub(memory);
    println!("{OBJECTS} objects of 1 KiB: {grown} KiB more, history included");

    let memory = rss_kib(pid)?;
    let seen = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..watchers {
        let mut client = connect(address, ca).await?;
        let path = format!("{MAPS}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
        let response = send(&mut client, Method::GET, &path, Bytes::new()).await?;
        let seen = seen.clone();
        tasks.spawn(async move {
            let mut body: Incoming = response.into_body();
            while let Some(Ok(frame)) = body.frame().await {
                let data = frame.into_data().unwrap_or_default();
                let lines = data.split(|byte| *byte == b'\n').count() - 1;
                seen.fetch_add(lines as u64, Ordering::Relaxed);
            }
            drop(client);
        });
    }
    let per_watcher = rss_kib(pid)?.saturating_sub(memory) as f64 / watchers as f64;
    println!("{watchers} TLS watchers: {per_watcher:.1} KiB each");

    let (cpu, began) = (cpu_s(pid)?, Instant::now());
    let lanes = 8;
    let mut work = JoinSet::new();
    for lane in 0..lanes {
        let mut client = connect(address, ca).await?;
        work.spawn(async move {
            for index in (lane..writes).step_by(lanes) {
                let path = format!("{MAPS}/m{}", index % OBJECTS);
                send(&mut client, Method::PUT, &path, object(index % OBJECTS, index + 1))
                    .await?
                    .into_body()
                    .collect()
                    .await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(done) = work.join_next().await {
        done??;
    }
    let expected = (watchers * writes) as u64;
    let deadline = Instant::now() + Duration::from_secs(30);
    while seen.load(Ordering::Relaxed) < expected && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let took_s = began.elapsed().as_secs_f64();
    let delivered = seen.load(Ordering::Relaxed);
    let spent_us = (cpu_s(pid)? - cpu) * 1e6;
    let event_us = (spent_us - write_us * writes as f64) / delivered.max(1) as f64;
    println!("{writes} writes in {took_s:.1} s, {delivered} of {expected} events delivered");
    println!("an event delivered to one of {watchers} watchers: {event_us:.2} us of CPU");
    println!("everything together: {:.1} us of CPU for a write and its events", spent_us / writes as f64);
    Ok(())
}

async fn connect(address: &str, ca: &str) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let tls = TlsConnector::from(client_config(ca, None, &["http/1.1"])?);
    let tcp = tokio::net::TcpStream::connect(address).await?;
    tcp.set_nodelay(true)?;
    let stream = tls.connect(ServerName::try_from("localhost")?, tcp).await?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

async fn send(
    client: &mut SendRequest<Full<Bytes>>,
    method: Method,
    path: &str,
    body: Bytes,
) -> Result<http::Response<Incoming>, Failure> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("authorization", "Bearer token")
        .header("content-type", "application/json")
        .body(Full::new(body))?;
    client.ready().await?;
    let response = client.send_request(request).await?;
    if !response.status().is_success() {
        return Err(format!("{path}: {}", response.status()).into());
    }
    Ok(response)
}

fn object(index: usize, version: usize) -> Bytes {
    let padding = "x".repeat(700);
    Bytes::from(format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"m{index}"}},"data":{{"version":"{version}","padding":"{padding}"}}}}"#
    ))
}

/// User and system time of a process, in seconds.
fn cpu_s(pid: u32) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold spaces; utime and stime are fields 14 and 15.
    let after = stat.rsplit_once(')').ok_or("a strange stat line")?.1;
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
    Ok(ticks / TICKS_PER_S)
}

fn rss_kib(pid: u32) -> Result<u64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}
