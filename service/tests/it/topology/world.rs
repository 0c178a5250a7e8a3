//! Common code of the tests of several processes: certificates of an installation, its processes, and a scripted TLS
//! server.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use serde_json::{Value, json};
use service::run::Options;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::support::signed::{Key, Signed};
use crate::support::{Body, Service};

/// Files with an authority and with certificates of servers and clients.
pub struct Pki {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Pki {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "installation");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let pki = Self { folder: tempfile::tempdir().unwrap(), issuer };
        std::fs::write(pki.path("ca.crt"), pki.issuer.pem()).unwrap();
        pki.write("server");
        pki.write("client");
        pki
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a new certificate for `name`.
    pub fn write(&self, name: &str) {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let put = |name: String, text: String| {
            let path = self.path(&name);
            let _ = std::fs::remove_file(&path);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
        };
        put(format!("{name}.crt"), certificate.pem());
        put(format!("{name}.key"), key.serialize_pem());
    }

    pub fn listen(&self) -> Value {
        self.listen_at("127.0.0.1:0".parse().unwrap())
    }

    pub fn listen_at(&self, address: SocketAddr) -> Value {
        json!({
            "listen": address, "certificate": self.path("server.crt"), "key": self.path("server.key"),
            "clientCA": [self.path("ca.crt")],
        })
    }

    /// The configuration of a validator in the processes at `addresses`.
    pub fn remote(&self, addresses: &[SocketAddr]) -> Value {
        let instances: Vec<_> = addresses.iter().map(|address| json!({"url": format!("https://{address}")})).collect();
        json!({
            "instances": instances, "caFile": self.path("ca.crt"), "certificate": self.path("client.crt"),
            "key": self.path("client.key"),
        })
    }
}

pub fn cosign(roots: &[(&str, &Key)]) -> Value {
    let roots: Vec<_> = roots.iter().map(|(name, key)| json!({"name": name, "key": key.pem()})).collect();
    json!({"name": "default", "type": "cosign", "trustRoots": roots})
}

/// A configuration with the sections of every process.
pub fn config(registry: &str, validators: &[Value], policy: &Value, more: &Value) -> String {
    let mut config = json!({
        "shutdown": {"drain": "50ms"},
        "resolve": {"timeout": "2s", "registries": [{"host": registry, "plainHttp": true}]},
        "validators": validators, "policy": policy,
    });
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    config.to_string()
}

pub fn admission() -> Value {
    json!({"admission": {"listen": "127.0.0.1:0", "certificate": "tls.crt", "key": "tls.key"}})
}

/// Starts a process with the role validator.
pub async fn validator(registry: &str, pki: &Pki, validators: &[Value]) -> Service {
    let text = config(registry, validators, &json!({}), &json!({"validator": pki.listen()}));
    Service::start("validator", &text, Options::default()).await
}

/// Starts a process with the role admission, whose rules use the validators at `addresses`.
pub async fn manager(registry: &str, pki: &Pki, addresses: &[SocketAddr], policy: &Value) -> Service {
    let remote = json!({"name": "default", "type": "remote", "remote": pki.remote(addresses)});
    Service::start("admission", &config(registry, &[remote], policy, &admission()), Options::default()).await
}

pub fn at(service: &Service, role: &str) -> SocketAddr {
    service.app.address(role).unwrap()
}

/// A policy that demands a signature of every image, without a log entry.
pub fn all() -> Value {
    json!({"rules": [{"pattern": "*", "with": {"verifyInTransparencyLog": false}}]})
}

/// A registry with an image signed by `key` and an unsigned image.
pub async fn signed(key: &Key) -> (Signed, String) {
    let registry = Signed::start().await;
    let digest = registry.push("good");
    registry.sign_in_bundle("good", &digest, &digest, key);
    registry.push("bad");
    (registry, digest)
}

pub type Says = Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

/// A scripted HTTP/1.1 server with TLS, which demands no client certificate.
pub struct Speaker {
    pub address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Speaker {
    pub async fn start(pki: &Pki, says: Says) -> Self {
        let pem = |name: &str| std::fs::read(pki.path(name)).unwrap();
        let chain = service_core::wire::certificates_from_pem(&pem("server.crt")).unwrap();
        let key = service_core::wire::key_from_pem(&pem("server.key")).unwrap();
        let tls = rustls::ServerConfig::builder_with_provider(service_core::wire::provider());
        let tls = tls.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls.with_single_cert(chain, key).unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let (acceptor, says) = (acceptor.clone(), Arc::clone(&says));
                connections.spawn(async move {
                    let Ok(stream) = acceptor.accept(tcp).await else { return };
                    let service = hyper::service::service_fn(move |request| {
                        let answer = says(request);
                        async move { Ok::<_, std::convert::Infallible>(answer.await) }
                    });
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { address, _tasks: tasks }
    }
}

/// Whether `program` exists on this machine.
pub fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| Path::new(&folder).join(program).is_file())
}
