//! Tests of `longhaul mock kube` with more clients than its limit of open files allows.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

use crate::support::itself;

/// The server's limit of open files: about two dozen for itself, and the rest for clients.
const FILES: u32 = 64;
/// Number of clients: more than the server can accept, but fewer than the kernel's queue of waiting connections (128 on
/// old systems).
const CLIENTS: usize = 100;
const PATIENCE: Duration = Duration::from_mins(1);
const EXHAUSTED: &str = "no connection can be accepted";

struct Server {
    child: Child,
    _stdout: BufReader<ChildStdout>,
    address: SocketAddr,
    tls: Arc<ClientConfig>,
    token: String,
}

struct Client(StreamOwned<ClientConnection, TcpStream>);

impl Server {
    fn start(directory: &Path, stderr: &Path) -> Self {
        let kubeconfig = directory.join("kubeconfig.yaml");
        let mut child = Command::new("sh")
            .args(["-c", &format!("ulimit -n {FILES} && exec \"$@\""), "sh"])
            .arg(itself())
            .args(["mock", "kube", "--port", "0", "--kubeconfig"])
            .arg(&kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(stderr).unwrap())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.rsplit_once("https://").unwrap().1.trim().parse().unwrap();
        // The second line is printed when everything is ready.
        stdout.read_line(&mut line).unwrap();
        let text = std::fs::read_to_string(&kubeconfig).unwrap();
        let config: Value = serde_saphyr::from_str(&text).unwrap();
        let field = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap();
        let ca = base64::engine::general_purpose::STANDARD
            .decode(field("/clusters/0/cluster/certificate-authority-data"))
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&ca).unwrap()).unwrap();
        let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let token = field("/users/0/user/token").to_owned();
        Self { child, _stdout: stdout, address, tls: Arc::new(tls), token }
    }

    fn client(&self, tcp: TcpStream) -> Client {
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        let name = ServerName::IpAddress(self.address.ip().into());
        Client(StreamOwned::new(ClientConnection::new(self.tls.clone(), name).unwrap(), tcp))
    }

    fn connect(&self) -> Client {
        self.client(TcpStream::connect(self.address).unwrap())
    }

    fn cpu(&self) -> Duration {
        let process = procfs::process::Process::new(i32::try_from(self.child.id()).unwrap()).unwrap();
        let tasks = process.tasks().unwrap().flatten();
        Duration::from_nanos(tasks.map(|task| task.schedstat().map_or(0, |stat| stat.sum_exec_runtime)).sum())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    fn send(&mut self, server: &Server, method: &str, path: &str, body: &str) {
        let (token, length) = (&server.token, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: mock\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        self.0.write_all(request.as_bytes()).unwrap();
        self.0.flush().unwrap();
    }

    /// Reads the server's output until it contains this text. Returns the server's output up to this text.
    fn read_until(&mut self, end: &str) -> String {
        let (mut text, mut buffer) = (String::new(), [0; 4096]);
        while !text.contains(end) {
            let length = self.0.read(&mut buffer).unwrap();
            assert!(length > 0, "the connection ended after: {text}");
            text.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
        text
    }

    /// Whether the server prints nothing for this long.
    fn is_silent_for(&mut self, time: Duration) -> bool {
        self.0.sock.set_read_timeout(Some(time)).unwrap();
        let read = self.0.read(&mut [0; 1]);
        self.0.sock.set_read_timeout(Some(PATIENCE)).unwrap();
        read.is_err_and(|error| matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut))
    }

    fn create(&mut self, server: &Server, name: &str) {
        let body = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}}}"#);
        self.send(server, "POST", "/api/v1/namespaces/default/configmaps", &body);
        let answer = self.read_until("\"uid\"");
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }
}

fn count(stderr: &Path, text: &str) -> usize {
    std::fs::read_to_string(stderr).unwrap().matches(text).count()
}

#[test]
#[ignore = "slow"]
fn without_descriptors_new_clients_wait_and_old_ones_are_served() {
    let directory = tempfile::tempdir().unwrap();
    let stderr = directory.path().join("stderr.txt");
    let server = Server::start(directory.path(), &stderr);
    let (mut writer, mut watcher) = (server.connect(), server.connect());
    writer.create(&server, "before");
    watcher.send(&server, "GET", "/api/v1/namespaces/default/configmaps?watch=1", "");
    watcher.read_until("\"name\":\"before\"");

    let began = Instant::now();
    let idle: Vec<TcpStream> = (0..CLIENTS).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    // Each request may bring the server to its limit.
    for index in 0.. {
        if count(&stderr, EXHAUSTED) > 0 {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{}", std::fs::read_to_string(&stderr).unwrap());
        writer.create(&server, &format!("meanwhile-{index}"));
    }
    writer.create(&server, "during");
    watcher.read_until("\"name\":\"during\"");
    let waiting = TcpStream::connect(server.address).unwrap();
    let (cpu, since) = (server.cpu(), Instant::now());
    assert!(watcher.is_silent_for(Duration::from_secs(1)));
    let (cpu, time) = (server.cpu().saturating_sub(cpu), since.elapsed());
    assert!(cpu < time / 2, "{cpu:?} of CPU in {time:?} for doing nothing");
    let said = count(&stderr, EXHAUSTED);
    // An idle client is disconnected after ten seconds, which makes room for the next one.
    let periods = 1 + usize::try_from(began.elapsed().as_secs() / 5).unwrap();
    assert!(said <= periods, "said {said} times in {:?}", began.elapsed());

    drop(idle);
    let mut late = server.client(waiting);
    late.create(&server, "late");
    server.connect().create(&server, "after");
    watcher.read_until("\"name\":\"after\"");
    assert!(count(&stderr, "connections are accepted again") >= 1);
    assert_eq!(count(&stderr, "panicked"), 0);
}
