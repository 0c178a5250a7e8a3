//! The program named `kube-apiserver`: reads flags and files, asks the program `etcd` for an HTTPS endpoint, and waits.
//!
//! Owns the files that a real kube-apiserver reads or writes: `apiserver.crt` and `apiserver.key` in the folder of
//! `--cert-dir`, and the certificate authorities of clients.

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use mock_kube::Replica;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};

use super::flags::Flags;
use super::order::{Answer, Order, PATH, STOP};
use super::plane::Plane;
use super::session::Session;
use super::{help, parent};

const PROGRAM: &str = "kube-apiserver";
/// The flags of kube-apiserver that have an effect here. All other flags are accepted; the program prints the name of
/// each unknown flag.
const HEEDED: [&str; 14] = [
    "authorization-mode",
    "bind-address",
    "cert-dir",
    "client-ca-file",
    "etcd-servers",
    "feature-gates",
    "help",
    "runtime-config",
    "secure-port",
    "service-account-issuer",
    "service-account-signing-key-file",
    "tls-cert-file",
    "tls-private-key-file",
    "version",
];
/// Flags that every test kit sets and that have no effect here: this program allocates no addresses and runs no Pods.
const EXPECTED: [&str; 7] = [
    "advertise-address",
    "allow-privileged",
    "disable-admission-plugins",
    "service-account-key-file",
    "service-cluster-ip-range",
    "etcd-prefix",
    "v",
];
const SECURE_PORT: u16 = 6443;
/// Deadline for the process `etcd` to answer a request for an endpoint.
const ORDER_WITHIN: Duration = Duration::from_secs(10);
/// Time for an endpoint to finish open requests.
const STOP_WITHIN: Duration = Duration::from_secs(5);

pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let flags = Flags::parse(arguments);
    if flags.is_on("help") || flags.is_on("h") {
        print!("{}", help::API_SERVER);
        return ExitCode::SUCCESS;
    }
    if flags.is_on("version") {
        println!("Kubernetes {}", mock_kube::VERSION);
        return ExitCode::SUCCESS;
    }
    let known: Vec<&str> = HEEDED.into_iter().chain(EXPECTED).collect();
    for flag in flags.beside(&known) {
        eprintln!("{PROGRAM}: --{flag} is taken and means nothing here");
    }
    super::block_on(PROGRAM, serve(flags))
}

async fn serve(flags: Flags) -> Result<(), String> {
    let mut gone = std::pin::pin!(parent::ended());
    let mut term = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    let order = order(&flags)?;
    let mut endpoint = tokio::select! {
        opened = open(&flags, &order) => opened?,
        _ = term.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
        () = &mut gone => return Ok(()),
    };
    eprintln!("{PROGRAM}: serving at https://{}", order.address);
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
        () = &mut gone => {}
        () = endpoint.lost() => return Err("the etcd beside it is gone".to_owned()),
    }
    // A kit kills the process after its second signal; open requests get only this time.
    let _ = tokio::time::timeout(STOP_WITHIN, endpoint.stop()).await;
    Ok(())
}

/// The HTTPS endpoint, and the process in which it runs.
enum Endpoint {
    /// The endpoint runs in the process `etcd` and exists as long as this connection.
    There(BufReader<TcpStream>),
    /// The endpoint runs in this process, because the server at `--etcd-servers` is not Longhaul's `etcd`.
    Here(Box<(Plane, Replica)>),
}

impl Endpoint {
    async fn lost(&mut self) {
        match self {
            Self::There(stream) => {
                let mut line = String::new();
                let _ = stream.read_line(&mut line).await;
            }
            Self::Here(_) => std::future::pending().await,
        }
    }

    async fn stop(self) {
        match self {
            Self::There(mut stream) => {
                if stream.write_all(format!("{STOP}\n").as_bytes()).await.is_ok() {
                    let mut line = String::new();
                    let _ = stream.read_line(&mut line).await;
                }
            }
            Self::Here(here) => {
                let (plane, replica) = *here;
                replica.shutdown().await;
                plane.end().await;
            }
        }
    }
}

async fn open(flags: &Flags, order: &Order) -> Result<Endpoint, String> {
    let servers = flags.last("etcd-servers").unwrap_or_default();
    for server in servers.split(',') {
        let Some(place) = server.trim().strip_prefix("http://") else { continue };
        // A kit may name the listening address of its etcd, which can be the wildcard.
        let place = place.trim_end_matches('/');
        let place = place.strip_prefix("0.0.0.0:").map_or_else(|| place.to_owned(), |port| format!("127.0.0.1:{port}"));
        let answered = tokio::time::timeout(ORDER_WITHIN, there(&place, order)).await;
        match answered {
            Ok(Ok(Some((Answer::Ready, stream)))) => return Ok(Endpoint::There(stream)),
            Ok(Ok(Some((Answer::Refused(why), _)))) => return Err(why),
            // Not an etcd of this program.
            Ok(Ok(None)) => {}
            Ok(Err(error)) => eprintln!("{PROGRAM}: failed to reach the etcd at {place}: {error}"),
            // The other program may have opened the port meanwhile.
            Err(_) => {
                let within = ORDER_WITHIN.as_secs();
                return Err(format!("the etcd at {place} did not answer within {within} s: look into what it wrote"));
            }
        }
    }
    eprintln!("{PROGRAM}: no etcd of Longhaul at `{servers}`: the state is kept here and ends with this process");
    let plane = Plane::new(Session::of_environment()?);
    let replica = plane.open(order).await?;
    Ok(Endpoint::Here(Box::new((plane, replica))))
}

/// Requests an endpoint from the process `etcd`; returns `None` if that server does not support requests for endpoints.
async fn there(place: &str, order: &Order) -> io::Result<Option<(Answer, BufReader<TcpStream>)>> {
    let mut stream = BufReader::new(TcpStream::connect(place).await?);
    let body = serde_json::to_vec(order).map_err(io::Error::other)?;
    let head = format!("POST {PATH} HTTP/1.1\r\nhost: {place}\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), &body].concat()).await?;
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    if !line.starts_with("HTTP/1.1 200") {
        return Ok(None);
    }
    while !line.trim().is_empty() {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
    }
    line.clear();
    stream.read_line(&mut line).await?;
    Ok(serde_json::from_str(&line).ok().map(|answer| (answer, stream)))
}

/// Makes the request for an endpoint from the flags and the files that they name.
fn order(flags: &Flags) -> Result<Order, String> {
    let ip = match flags.last("bind-address") {
        // The default is the safe one: a real server would listen on all addresses.
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(text) => text.parse().map_err(|_| format!("`--bind-address={text}` is not an address"))?,
    };
    let port = match flags.last("secure-port") {
        None => SECURE_PORT,
        Some(text) => text.parse().map_err(|_| format!("`--secure-port={text}` is not a port"))?,
    };
    let (certificate, key) = pair(flags)?;
    let clients_ca = flags.last("client-ca-file").map(|path| read(Path::new(path))).transpose()?;
    let signing_key = flags.last("service-account-signing-key-file").map(|path| read(Path::new(path))).transpose()?;
    let issuer = flags.last("service-account-issuer").map(str::to_owned);
    let rbac = flags.last("authorization-mode").is_some_and(|modes| modes.split(',').any(|mode| mode == "RBAC"));
    let feature_gates = feature_gates(flags);
    let address = SocketAddr::new(ip, port);
    Ok(Order { address, certificate, key, clients_ca, issuer, signing_key, rbac, feature_gates })
}

/// Returns the feature gates that `--feature-gates` turns on; none unless `--runtime-config` turns on the beta version
/// of `admissionregistration.k8s.io`.
fn feature_gates(flags: &Flags) -> Vec<String> {
    let on = |flag: &str| -> Vec<String> {
        let pairs = flags.last(flag).unwrap_or_default().split(',').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(_, value)| value.trim() == "true").map(|(key, _)| key.trim().to_owned()).collect()
    };
    let versions = ["admissionregistration.k8s.io/v1beta1", "api/beta", "api/all"];
    let served = on("runtime-config").iter().any(|version| versions.contains(&version.as_str()));
    let mut gates = on("feature-gates");
    gates.retain(|_| served);
    gates
}

/// Returns the serving certificate and key: from the files that flags name, else from the folder of `--cert-dir`, else
/// newly made in that folder.
fn pair(flags: &Flags) -> Result<(String, String), String> {
    if let (Some(certificate), Some(key)) = (flags.last("tls-cert-file"), flags.last("tls-private-key-file")) {
        return Ok((read(Path::new(certificate))?, read(Path::new(key))?));
    }
    let folder = PathBuf::from(flags.last("cert-dir").unwrap_or("/var/run/kubernetes"));
    let (certificate, key) = (folder.join("apiserver.crt"), folder.join("apiserver.key"));
    if certificate.exists() && key.exists() {
        return Ok((read(&certificate)?, read(&key)?));
    }
    let names = ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
    let made = mock_pki::Authority::generate("kube-apiserver-ca")
        .and_then(|authority| Ok((authority.server(&names)?, authority.ca_pem().to_owned())))
        .map_err(|error| format!("failed to make a certificate: {error}"))?;
    let (pair, ca) = made;
    let certificates = pair.certificate_pem.clone() + &ca;
    let write = |path: &Path, text: &str, mode: u32| {
        save(path, text, mode)
            .map_err(|error| format!("failed to write {}: {error}; name another `--cert-dir`", path.display()))
    };
    std::fs::create_dir_all(&folder).map_err(|error| format!("failed to make {}: {error}", folder.display()))?;
    write(&certificate, &certificates, 0o644)?;
    write(&key, &pair.key_pem, 0o600)?;
    Ok((certificates, pair.key_pem))
}

/// Writes a file and sets its mode to `mode`, even if the file existed with another mode.
fn save(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("failed to read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_made_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("apiserver.key"), "of an earlier version").unwrap();
        let flags = Flags::parse(&[format!("--cert-dir={}", folder.path().display())]);
        let (_, key) = pair(&flags).unwrap();
        let mode = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("apiserver.key"), mode("apiserver.crt")), (0o600, 0o644));
        assert_eq!(pair(&flags).unwrap().1, key, "it is found again");
    }
}
