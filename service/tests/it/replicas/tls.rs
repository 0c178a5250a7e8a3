//! Tests of TLS at the API that scales Deployments: accepted and refused clients for many kinds of certificates, and
//! the protocol versions.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::ClientConfig;
use service_core::wire::Identity;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::world::{Caller, World, certificates, identity};
use crate::support::PATIENCE;
use crate::support::deployments::Deployments;

/// A new authority, and a certificate for `name` that it has issued.
fn authority(name: &str) -> (String, Identity) {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, format!("authority of {name}"));
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    let issuer = rcgen::Issuer::new(params, key);
    let mut params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    params.not_after = rcgen::date_time_ymd(2090, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    (pem, Identity { chain: vec![certificate.der().clone()], key: key.serialize_der().try_into().unwrap() })
}

/// A client without a certificate can read nothing, not even the health path.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutual_tls_is_required() {
    let world = World::start("").await.listed().await;
    for path in ["/api/v1/health", "/api/v1/deployments", "/openapi.json", "/"] {
        let answer = match Caller::connect(world.address(), world.tls_of(None)).await {
            Ok(caller) => caller.try_call("GET", path, None, &[]).await.ok().map(|answer| answer.code),
            Err(_) => None,
        };
        assert_eq!(answer, None, "{path}");
    }
    world.refused_in_all("no-certificate", 4).await;
    world.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_counts_only_while_it_is_valid() {
    let world = World::start("").await.listed().await;
    assert!(world.lets_in(world.tls("client")).await);
    assert!(!world.lets_in(world.tls("expired")).await);
    assert!(!world.lets_in(world.tls("early")).await);
    world.refused_in_all("expired", 1).await;
    world.refused_in_all("not-yet-valid", 1).await;
    world.app.stop().await;
}

/// A certificate in which one byte was changed is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tampered_certificate_is_refused() {
    let world = World::start("").await.listed().await;
    let good = || identity(&world.path("client.crt"), &world.path("client.key"));
    let length = good().chain[0].len();
    let mut refused = 0;
    for at in (8..length).step_by(length / 24) {
        let mut bytes = good().chain[0].to_vec();
        bytes[at] ^= 1;
        let tampered = Identity { chain: vec![bytes.into()], key: good().key };
        // A client whose key does not fit any more does not even begin; that is no refusal of ours.
        let authority = std::fs::read(world.path("ca.crt")).unwrap();
        let Ok(tls) = service_core::wire::client_config(service_core::wire::Trust::Pem(&authority), Some(tampered))
        else {
            continue;
        };
        assert!(!world.lets_in(tls).await, "byte {at}");
        refused += 1;
    }
    assert!(refused > 12, "{refused} were tried");
    assert!(world.lets_in(world.tls("client")).await, "the whole one is good");
    world.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_issuer_is_one_of_a_list() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let ((second, of_second), (third, of_third)) = (authority("second"), authority("third"));
    std::fs::write(folder.path().join("second.crt"), second).unwrap();
    std::fs::write(folder.path().join("third.crt"), third).unwrap();
    let world = World::start_in(Deployments::start().await, folder, "").await;
    world.app.stop().await;
    // The same section with two authorities in it.
    let folder = world.folder;
    let api = world.api;
    let text = World::config(&api, folder.path(), "").replace("[ca.crt]", "[ca.crt, second.crt]");
    let path = folder.path().join("two.yaml");
    let config = service::config::parse(&text, &path).unwrap();
    let app = service::run::App::start("replicas", config, service::run::Options::default()).await;
    let world = World { api, app: app.unwrap(), folder }.listed().await;
    assert!(world.lets_in(world.tls("client")).await, "of the first");
    assert!(world.lets_in(world.tls_of(Some(of_second))).await, "of the second");
    assert!(!world.lets_in(world.tls_of(Some(of_third))).await, "of a third");
    assert!(!world.lets_in(world.tls("other")).await, "of another with the same names");
    world.refused_in_all("unknown-issuer", 2).await;
    world.app.stop().await;
}

fn only(versions: &[&'static rustls::SupportedProtocolVersion], world: &World) -> ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    let pem = std::fs::read(world.path("ca.crt")).unwrap();
    roots.add(service_core::wire::certificates_from_pem(&pem).unwrap().remove(0)).unwrap();
    let Identity { chain, key } = identity(&world.path("client.crt"), &world.path("client.key"));
    let builder = ClientConfig::builder_with_provider(service_core::wire::provider());
    let builder = builder.with_protocol_versions(versions).unwrap().with_root_certificates(roots);
    builder.with_client_auth_cert(chain, key).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_1_2_is_refused() {
    let world = World::start("").await.listed().await;
    assert!(world.lets_in(only(&[&rustls::version::TLS13], &world)).await);
    let tcp = TcpStream::connect(world.address()).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(only(&[&rustls::version::TLS12], &world)));
    let error = connector.connect("localhost".try_into().unwrap(), tcp).await.unwrap_err();
    assert!(error.to_string().contains("ProtocolVersion"), "{error}");
    world.app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suites_are_chosen() {
    let world = World::start(", cipherSuites: [TLS_CHACHA20_POLY1305_SHA256]").await.listed().await;
    let tcp = TcpStream::connect(world.address()).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(world.tls("client")));
    let stream = connector.connect("localhost".try_into().unwrap(), tcp).await.unwrap();
    let suite = stream.get_ref().1.negotiated_cipher_suite().unwrap().suite();
    assert_eq!(suite, rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    world.app.stop().await;
    let text = super::world::section(", cipherSuites: [TLS_RSA_WITH_AES_128_CBC_SHA]");
    let error = service::config::parse(&text, "service.yaml".as_ref()).unwrap_err().to_string();
    assert!(error.contains("is none of TLS 1.3: use TLS_"), "{error}");
}

/// The service has no listener without TLS: a client without TLS gets no answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_answered_without_tls() {
    let world = World::start("").await.listed().await;
    let mut tcp = TcpStream::connect(world.address()).await.unwrap();
    tcp.write_all(b"GET /api/v1/deployments HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut said = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, tcp.read_to_end(&mut said)).await.expect("it is ended");
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
    // The plain port of health does not have the API.
    for path in ["/api/v1/deployments", "/api/v1/health", "/openapi.json"] {
        assert_eq!(world.page(path).await.0, 404, "{path}");
    }
    world.app.stop().await;
}

/// Every kind of valid or invalid certificate gets the right result; a metric counts the reason for a refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_certificate_of_the_matrix_is_accepted_or_refused() {
    let world = World::start("").await;
    world.app.stop().await;
    let World { api, folder, .. } = world;
    // Shorter validity for the certificates that must be accepted.
    let output = Command::new(super::world::BINARY).args(["certs", "dev", "--days", "20"]).arg(folder.path()).output();
    assert!(output.unwrap().status.success());
    let world = World::start_in(api, folder, ", maxCertificateLifetime: 500h").await.listed().await;
    // Signed by the same authority's key, and valid for a year.
    let authority = rcgen::KeyPair::from_pem(&std::fs::read_to_string(world.path("ca.key")).unwrap()).unwrap();
    let pair = |edit: &dyn Fn(&mut rcgen::CertificateParams)| {
        let mut issuer = rcgen::CertificateParams::default();
        issuer.distinguished_name.push(rcgen::DnType::CommonName, "longhaul development CA");
        issuer.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Constrained(0));
        let issuer = rcgen::Issuer::from_params(&issuer, &authority);
        let mut params = rcgen::CertificateParams::new(["x.corp".to_owned()]).unwrap();
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let (year, month, day) = today();
        params.not_before = rcgen::date_time_ymd(year - 1, month, day);
        params.not_after = rcgen::date_time_ymd(year + 1, month, day);
        edit(&mut params);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        Identity { chain: vec![certificate.der().clone()], key: key.serialize_der().try_into().unwrap() }
    };
    for (name, reason) in [
        ("client", None),
        ("reader", None),
        ("revoked", Some("revoked")),
        ("expired", Some("expired")),
        ("early", Some("not-yet-valid")),
        ("wrong-purpose", Some("purpose")),
        ("other", Some("unknown-issuer")),
    ] {
        let before = match reason {
            Some(reason) => world.refused(reason).await,
            None => 0,
        };
        assert_eq!(world.lets_in(world.tls(name)).await, reason.is_none(), "{name}");
        if let Some(reason) = reason {
            world.refused_in_all(reason, before + 1).await;
        }
    }
    assert!(!world.lets_in(world.tls_of(Some(pair(&|_| {})))).await, "valid for two years");
    world.refused_in_all("long-lived", 1).await;
    // A certificate of any other purpose: one that states no purpose is not for clients.
    let purpose = world.refused("purpose").await;
    let silent = pair(&|params| {
        params.extended_key_usages.clear();
        let (year, ..) = today();
        (params.not_before, params.not_after) =
            (rcgen::date_time_ymd(year, 1, 1), rcgen::date_time_ymd(year + 1, 1, 1));
    });
    assert!(!world.lets_in(world.tls_of(Some(silent))).await, "without a purpose");
    world.refused_in_all("purpose", purpose + 1).await;
    // A self-signed client certificate, and an authority's own certificate.
    let own = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(["x.corp".to_owned()]).unwrap();
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.self_signed(&own).unwrap();
    let own = Identity { chain: vec![certificate.der().clone()], key: own.serialize_der().try_into().unwrap() };
    assert!(!world.lets_in(world.tls_of(Some(own))).await);
    world.app.stop().await;
}

/// Today's year, month and day.
fn today() -> (i32, u8, u8) {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let year = 1970 + i32::try_from(since.as_secs() / 31_557_600).unwrap();
    (year, 1, 2)
}

/// With `crlRequired`, clients are refused if their authority has no revocation list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_revoked_certificates_can_be_required() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let (second, of_second) = authority("second");
    let mut both = std::fs::OpenOptions::new().append(true).open(folder.path().join("ca.crt")).unwrap();
    both.write_all(second.as_bytes()).unwrap();
    let of_second = || Identity { chain: of_second.chain.clone(), key: of_second.key.clone_key() };
    let world = World::start_in(Deployments::start().await, folder, "").await.listed().await;
    assert!(world.lets_in(world.tls_of(Some(of_second()))).await, "an authority without a list revokes nobody");
    world.app.stop().await;
    let World { api, folder, .. } = world;
    let world = World::start_in(api, folder, ", crlRequired: true").await.listed().await;
    assert!(world.lets_in(world.tls("client")).await);
    assert!(!world.lets_in(world.tls_of(Some(of_second()))).await);
    world.refused_in_all("no-list", 1).await;
    world.app.stop().await;
}

/// A key file that every user may read is refused at the start. The error message names the key file and shows nothing
/// of its content.
#[test]
fn a_key_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let text = super::world::section("") + "kubernetes: {kubeconfig: absent.yaml}\n";
    std::fs::write(folder.path().join("service.yaml"), text).unwrap();
    let key = folder.path().join("server.key");
    let start = || {
        let mut command = Command::new(super::world::BINARY);
        command.args(["run", "--role", "replicas", "--config"]).arg(folder.path().join("service.yaml"));
        let output = command.stdin(Stdio::null()).env_remove("KUBECONFIG").output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o604)).unwrap();
    let said = start();
    assert!(said.contains("server.key: mode 0604 lets other users read the key"), "{said}");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o400)).unwrap();
    let said = start();
    assert!(said.contains("absent.yaml"), "the next thing that is wrong: {said}");
    let secret = std::fs::read_to_string(&key).unwrap();
    let secret = secret.lines().nth(1).unwrap();
    assert!(!said.contains(secret));
}
