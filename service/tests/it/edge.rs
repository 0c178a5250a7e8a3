//! Tests of listeners whose clients misbehave: slow bodies, idle connections, stalled handshakes.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use serde_json::json;
use service::run::Options;
use service_core::wire::{Identity, Protocol, Trust, client_config};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::{PATIENCE, Service, deadline};

/// A second loopback address, which counts as another peer.
const NEIGHBOUR: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const HONEST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

/// A webhook whose section `admission` ends with `more`.
async fn start(more: &str) -> Service {
    let config = format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key{more}}}\n\
         health: {{listen: \"127.0.0.1:0\"}}\nshutdown: {{drain: 50ms}}\n"
    );
    Service::start("admission", &config, Options::default()).await
}

async fn connect(service: &Service, from: Ipv4Addr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    let port = service.app.address("admission").unwrap().port();
    socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.unwrap()
}

/// A TLS connection for HTTP/1.1 from a loopback address; an error if the service closes it.
async fn connect_tls(service: &Service, from: Ipv4Addr) -> std::io::Result<TlsStream<TcpStream>> {
    let mut tls = client_config(Trust::Pem(service.authority()), None).unwrap();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = "localhost".try_into().unwrap();
    TlsConnector::from(Arc::new(tls)).connect(name, connect(service, from).await).await
}

/// A review that needs no request to a registry.
fn review() -> String {
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}});
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE", "object": object},
    })
    .to_string()
}

fn head(length: &str) -> String {
    format!(
        "POST /mutate?timeout=30s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{length}\r\n\r\n"
    )
}

/// Waits until this many reviews are being answered.
async fn in_flight(service: &Service, count: usize) {
    let line = format!("longhaul_admission_in_flight {count}\n");
    let waiting = async {
        while !service.health("/metrics").await.1.contains(&line) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("so many reviews in work");
}

async fn call(stream: &mut TlsStream<TcpStream>) -> std::io::Result<String> {
    let body = review();
    // In two pieces, as a body of some size arrives.
    stream.write_all(head(&format!("content-length: {}", body.len())).as_bytes()).await?;
    stream.flush().await?;
    stream.write_all(body.as_bytes()).await?;
    let mut answer = vec![0; 4096];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut answer)).await.expect("an answer or an end")?;
    Ok(String::from_utf8_lossy(&answer[..read]).lines().next().unwrap_or_default().to_owned())
}

/// Slow clients that announce large bodies do not keep out other clients, because only received bytes count against the
/// memory limit.
#[tokio::test]
async fn slow_bodies_shut_nobody_out() {
    let service = start("").await;
    let mut slow = Vec::new();
    for index in 0..8 {
        let mut stream = connect_tls(&service, NEIGHBOUR).await.unwrap();
        let length = if index % 2 == 0 { "content-length: 8388608" } else { "transfer-encoding: chunked" };
        stream.write_all(head(length).as_bytes()).await.unwrap();
        stream.write_all(b"1\r\n{\r\n").await.unwrap();
        slow.push(stream);
    }
    in_flight(&service, 8).await;
    let request = Request::post("/mutate").header("content-type", "application/json");
    let request = request.body(Bytes::from(review())).unwrap();
    let answer = service.webhook(Protocol::Http1).fetch(request, 1 << 20, deadline()).await.unwrap();
    assert_eq!(answer.status(), 200, "{:?}", answer.body());
    drop(slow);
    service.app.stop().await;
}

/// The service reads the rest of a refused large body for a moment, so that the client gets the answer. Meanwhile, no
/// other caller waits for the refused body.
#[tokio::test]
async fn a_refused_body_takes_nobodys_place() {
    let service = start(", maxInFlight: 1").await;
    let mut refused = connect_tls(&service, NEIGHBOUR).await.unwrap();
    refused.write_all(head("content-length: 67108864").as_bytes()).await.unwrap();
    refused.flush().await.unwrap();
    in_flight(&service, 1).await;
    let mut stream = connect_tls(&service, HONEST).await.unwrap();
    assert_eq!(call(&mut stream).await.unwrap(), "HTTP/1.1 200 OK");
    let mut answer = [0; 12];
    refused.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    service.app.stop().await;
}

/// One peer gets only the permitted number of reviews at one time; its connection stays open after a refused call.
#[tokio::test]
async fn one_peer_cannot_take_every_place() {
    let service = start(", maxInFlight: 8, maxInFlightPerPeer: 2").await;
    let mut slow = Vec::new();
    for _ in 0..2 {
        let mut stream = connect_tls(&service, NEIGHBOUR).await.unwrap();
        stream.write_all(head("content-length: 10").as_bytes()).await.unwrap();
        slow.push(stream);
    }
    in_flight(&service, 2).await;
    let mut third = connect_tls(&service, NEIGHBOUR).await.unwrap();
    for _ in 0..2 {
        assert_eq!(call(&mut third).await.unwrap(), "HTTP/1.1 429 Too Many Requests");
    }
    let mut honest = connect_tls(&service, HONEST).await.unwrap();
    assert_eq!(call(&mut honest).await.unwrap(), "HTTP/1.1 200 OK");
    drop(slow);
    in_flight(&service, 0).await;
    assert_eq!(call(&mut third).await.unwrap(), "HTTP/1.1 200 OK");
    service.app.stop().await;
}

/// If a listener has no free slot, the connection that was idle longest is closed for a new connection; busy and young
/// connections stay open.
#[tokio::test]
async fn idle_connections_do_not_hold_the_listener() {
    let service = start(", maxConnections: 8").await;
    let mut honest = connect_tls(&service, HONEST).await.unwrap();
    assert_eq!(call(&mut honest).await.unwrap(), "HTTP/1.1 200 OK");
    let mut idle = Vec::new();
    for _ in 0..7 {
        idle.push(connect_tls(&service, NEIGHBOUR).await.unwrap());
        // A call makes it an ordinary connection that is now idle.
        let _ = call(idle.last_mut().unwrap()).await;
    }
    let mut late = connect_tls(&service, HONEST).await.unwrap();
    assert_eq!(call(&mut late).await.unwrap(), "HTTP/1.1 200 OK");
    assert_eq!(call(&mut honest).await.unwrap(), "HTTP/1.1 200 OK", "the oldest of all, and not the greedy one's");
    let mut byte = [0];
    let ended = tokio::time::timeout(PATIENCE, idle[0].read(&mut byte)).await.expect("the oldest idle one is ended");
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    let metrics = service.health("/metrics").await.1;
    assert!(metrics.contains(r#"longhaul_edge_connections_given_up_total{listener="admission",reason=""#), "{metrics}");
    service.app.stop().await;
}

/// An authority of client certificates as PEM, and certificates that it has issued.
struct Clients {
    pem: String,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Clients {
    fn new() -> Self {
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: rcgen::Issuer::new(params, key) }
    }

    fn identity(&self, name: &str) -> Identity {
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity { chain: vec![certificate.der().clone()], key: key.serialize_der().try_into().unwrap() }
    }
}

/// Connects with a client certificate and makes a first call, because in TLS 1.3 a client learns late that its
/// certificate is refused.
async fn call_as(service: &Service, identity: Option<Identity>) -> Option<TlsStream<TcpStream>> {
    let mut tls = client_config(Trust::Pem(service.authority()), identity).unwrap();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = "localhost".try_into().unwrap();
    let tcp = connect(service, HONEST).await;
    let mut stream = TlsConnector::from(Arc::new(tls)).connect(name, tcp).await.ok()?;
    call(&mut stream).await.ok().filter(|line| line == "HTTP/1.1 200 OK").map(|_| stream)
}

/// With `clientCA`, a caller needs a certificate. A changed authority takes effect without a restart, and open
/// connections stay open.
#[tokio::test]
async fn callers_prove_who_they_are_when_they_are_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let authorities = folder.path().join("clients.crt");
    let (first, second) = (Clients::new(), Clients::new());
    std::fs::write(&authorities, &first.pem).unwrap();
    let more = format!(", clientCA: \"{}\", clientNames: [kube-apiserver]", authorities.display());
    let service = start(&more).await;
    assert!(call_as(&service, None).await.is_none(), "without a certificate");
    assert!(call_as(&service, Some(second.identity("kube-apiserver"))).await.is_none(), "of another authority");
    assert!(call_as(&service, Some(first.identity("somebody"))).await.is_none(), "of another name");
    let mut open = call_as(&service, Some(first.identity("kube-apiserver"))).await.expect("the right one");
    let metrics = service.health("/metrics").await.1;
    let failures = r#"longhaul_edge_handshake_failures_total{listener="admission",reason="certificate"} 3"#;
    assert!(metrics.contains(failures), "{metrics}");

    std::fs::write(&authorities, &second.pem).unwrap();
    service.app.look_at_files();
    let taken = async { while call_as(&service, Some(second.identity("kube-apiserver"))).await.is_none() {} };
    tokio::time::timeout(PATIENCE, taken).await.expect("the new authority is taken");
    assert!(call_as(&service, Some(first.identity("kube-apiserver"))).await.is_none(), "the old one is not");
    assert_eq!(call(&mut open).await.unwrap(), "HTTP/1.1 200 OK", "open connections stay");
    service.app.stop().await;
}

/// During the drain, an HTTP/2 client can send its call before it gets a GOAWAY.
#[tokio::test]
async fn a_connection_made_while_draining_brings_its_call() {
    let config = "admission: {listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key}\n\
                  health: {listen: \"127.0.0.1:0\"}\nshutdown: {drain: 10s}\n";
    let service = Service::start("admission", config, Options::default()).await;
    let mut tls = client_config(Trust::Pem(service.authority()), None).unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let port = service.app.address("admission").unwrap().port();
    // A connection without a call keeps the listener open, as the next one on its way does.
    let open = connect_tls(&service, HONEST).await.unwrap();
    let Service { app, folder: _folder, .. } = service;
    let mut stop = Box::pin(app.stop());
    assert!(futures_util::poll!(&mut stop).is_pending(), "the drain has begun");
    let stop = tokio::spawn(stop);
    let tcp = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let stream = TlsConnector::from(Arc::new(tls)).connect("localhost".try_into().unwrap(), tcp).await.unwrap();
    let io = hyper_util::rt::TokioIo::new(stream);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    let mut connection = tokio::spawn(connection);
    let early = tokio::time::timeout(Duration::from_millis(300), &mut connection).await;
    assert!(early.is_err(), "told to go before it brought its call: {early:?}");
    let request = Request::post("https://localhost/mutate").header("content-type", "application/json");
    let request = request.body(http_body_util::Full::new(Bytes::from(review()))).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), 200);
    let ended = tokio::time::timeout(PATIENCE, connection).await;
    assert!(ended.is_ok(), "told to go after its call");
    drop(open);
    stop.await.unwrap();
}
