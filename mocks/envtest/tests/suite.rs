//! Tests of the programs `etcd` and `kube-apiserver` as controller-runtime runs them: flags and files, health without a
//! certificate, an administrator's certificate, a restart of the API server alone, and the end of both programs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mock_pki::{Authority, Pair};
use rustix::process::{Pid, Signal, kill_process};
use rustls::{ClientConnection, StreamOwned};

const PATIENCE: Duration = Duration::from_secs(20);

/// A folder with the programs, a test kit's files, and its certificate authorities.
struct Kit {
    folder: tempfile::TempDir,
    serving: Authority,
    clients: Authority,
    etcd: SocketAddr,
    secure: SocketAddr,
}

/// A running program, which is killed if a test ends early.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Stops the program as a test kit does.
    fn stop(mut self) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Kit {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in mock_envtest::PROGRAMS {
            symlink(env!("CARGO_BIN_EXE_longhaul-envtest"), folder.path().join(name)).unwrap();
        }
        let (serving, clients) = (Authority::generate("serving").unwrap(), Authority::generate("clients").unwrap());
        let pair = serving.server(&["localhost", "127.0.0.1"]).unwrap();
        std::fs::write(folder.path().join("apiserver.crt"), &pair.certificate_pem).unwrap();
        std::fs::write(folder.path().join("apiserver.key"), &pair.key_pem).unwrap();
        std::fs::write(folder.path().join("client-cert-auth-ca.crt"), clients.ca_pem()).unwrap();
        Self { folder, serving, clients, etcd: free(), secure: free() }
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.folder.path().join(name));
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    fn etcd(&self) -> Running {
        let (url, folder) = (format!("http://{}", self.etcd), self.folder.path().display());
        let flags = [
            format!("--advertise-client-urls={url}"),
            format!("--data-dir={folder}"),
            format!("--listen-client-urls={url}"),
            "--listen-peer-urls=http://localhost:0".to_owned(),
            "--unsafe-no-fsync=true".to_owned(),
        ];
        let running = Running(self.program("etcd").args(flags).spawn().unwrap());
        until("etcd is healthy", || {
            plain(self.etcd, "/health").is_some_and(|answer| answer.contains("\"health\":\"true\""))
        });
        running
    }

    /// Starts `kube-apiserver` with the flags that controller-runtime sets, sorted.
    fn api_server(&self) -> Running {
        let folder = self.folder.path().display();
        let flags = [
            "--allow-privileged=true".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={folder}"),
            format!("--client-ca-file={folder}/client-cert-auth-ca.crt"),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            format!("--etcd-servers=http://{}", self.etcd),
            format!("--secure-port={}", self.secure.port()),
            "--service-account-issuer=https://127.0.0.1/".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--feature-gates=Whatever=true".to_owned(),
        ];
        let running = Running(self.program("kube-apiserver").args(flags).spawn().unwrap());
        until("it is ready without a certificate", || {
            self.ask(None, "GET", "/healthz", "").is_some_and(|(status, _)| status == 200)
        });
        running
    }

    /// Sends a request over TLS and returns the HTTP status and body of the answer; `None` if no server listens.
    fn ask(&self, pair: Option<&Pair>, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        let config = mock_pki::client_config(self.serving.ca_pem(), pair, &[]).unwrap();
        let connection = ClientConnection::new(Arc::clone(&config), "localhost".try_into().unwrap()).unwrap();
        let socket = TcpStream::connect_timeout(&self.secure, PATIENCE).ok()?;
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut stream = StreamOwned::new(connection, socket);
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n"
        );
        stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).ok()?;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8(answer).unwrap();
        let status = text.split(' ').nth(1)?.parse().ok()?;
        Some((status, text))
    }
}

/// An address on this machine with a free port.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::yield_now();
    }
}

fn plain(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").ok()?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    let mut length = 0;
    while stream.read_line(&mut line).ok()? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

const MAP: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kept"}}"#;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn a_kit_starts_stops_and_restarts_it() {
    let kit = Kit::new();
    let etcd = kit.etcd();
    let api = kit.api_server();
    let admin = kit.clients.client("admin", &["system:masters"]).unwrap();
    assert_eq!(kit.ask(None, "GET", MAPS, "").unwrap().0, 403, "a stranger is somebody, and may nothing");
    assert_eq!(kit.ask(Some(&admin), "GET", "/api/v1/namespaces/default", "").unwrap().0, 200);
    assert_eq!(kit.ask(Some(&admin), "POST", MAPS, MAP).unwrap().0, 201);

    // The user of an unknown certificate: RBAC decides, with the roles of a real server.
    let jane = kit.clients.client("jane", &["viewers"]).unwrap();
    assert_eq!(kit.ask(Some(&jane), "GET", MAPS, "").unwrap().0, 403);
    let binding = r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"jane"},
        "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},
        "subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}]}"#;
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    assert_eq!(kit.ask(Some(&admin), "POST", bindings, binding).unwrap().0, 201);
    assert_eq!(kit.ask(Some(&jane), "GET", MAPS, "").unwrap().0, 200);

    // The state stays while etcd lives, however its API server ends.
    api.stop();
    assert!(kit.ask(None, "GET", "/healthz", "").is_none(), "its port is closed when it has ended");
    let api = kit.api_server();
    assert_eq!(kit.ask(Some(&admin), "GET", &format!("{MAPS}/kept"), "").unwrap().0, 200);
    drop(api);
    until("a killed API server is gone", || kit.ask(None, "GET", "/healthz", "").is_none());
    let api = kit.api_server();
    assert_eq!(kit.ask(Some(&jane), "GET", &format!("{MAPS}/kept"), "").unwrap().0, 200);
    api.stop();
    etcd.stop();
}

/// The programs end if the suite that started them is killed, because they watch their parent.
#[test]
fn they_end_with_whoever_started_them() {
    let kit = Kit::new();
    let url = format!("http://{}", kit.etcd);
    let etcd = kit.folder.path().join("etcd");
    let script = format!("{} --listen-client-urls={url} & echo started; exec sleep 1000", etcd.display());
    let mut shell = Running(Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).spawn().unwrap());
    until("etcd is healthy", || plain(kit.etcd, "/health").is_some());
    shell.0.kill().unwrap();
    shell.0.wait().unwrap();
    until("etcd has ended too", || plain(kit.etcd, "/health").is_none());
}

/// The help texts contain the words that test kits search for before they start a program.
#[test]
fn the_help_is_what_kits_look_for() {
    let folder = tempfile::tempdir().unwrap();
    let help = |name: &str| {
        let link: PathBuf = Path::new(folder.path()).join(name);
        symlink(env!("CARGO_BIN_EXE_longhaul-envtest"), &link).unwrap();
        let output = Command::new(link).arg("--help").output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(help("etcd").contains("--unsafe-no-fsync"));
    assert!(!help("kube-apiserver").lines().any(|line| line.trim_start().starts_with("--insecure-port")));
}
