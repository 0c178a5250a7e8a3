//! Tests of the API that scales Deployments whose certificates, authorities, revocation lists and allowed names are
//! replaced while it answers calls.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::world::{BINARY, Caller, World, replicas_path};
use crate::support::PATIENCE;
use crate::support::deployments::Deployments;

/// The authority of `certs dev`, for issuing certificates and lists.
struct Authority(rcgen::Issuer<'static, rcgen::KeyPair>);

impl Authority {
    fn of(folder: &Path) -> Self {
        let key = rcgen::KeyPair::from_pem(&std::fs::read_to_string(folder.join("ca.key")).unwrap()).unwrap();
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, "longhaul development CA");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Constrained(0));
        Self(rcgen::Issuer::new(params, key))
    }

    /// A revocation list with these serial numbers that expires in `year`.
    fn list(&self, serials: &[u64], year: i32) -> String {
        let revoked = |serial: &u64| rcgen::RevokedCertParams {
            serial_number: rcgen::SerialNumber::from(*serial),
            revocation_time: rcgen::date_time_ymd(2025, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = rcgen::CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2020, 1, 1),
            next_update: rcgen::date_time_ymd(year, 1, 1),
            crl_number: rcgen::SerialNumber::from(7u64),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        params.signed_by(&self.0).unwrap().pem().unwrap()
    }
}

/// Serial number of the client certificate of `certs dev`.
const CLIENT: u64 = 2;
const REVOKED: u64 = 4;

async fn world(more: &str) -> World {
    let api = Deployments::start().await;
    api.create("team/web", Some(3));
    World::start_over(api, more).await.listed().await
}

/// Sends calls on `caller` until one is answered with `code`.
async fn answered(world: &World, caller: &Caller, code: u16) -> String {
    let waiting = async {
        loop {
            world.app.look_at_files();
            let answer = caller.get("/api/v1/health").await;
            if answer.code == code {
                break answer.text;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never answered {code}"))
}

/// A revoked client is refused at its next call, even on an open connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_ends_a_connection_that_is_kept() {
    let world = world("").await;
    let (client, reader) = (world.client("client").await, world.client("reader").await);
    assert_eq!((client.get("/api/v1/health").await.code, reader.get("/api/v1/health").await.code), (200, 200));
    let list = Authority::of(world.folder.path()).list(&[REVOKED, CLIENT], 2090);
    std::fs::write(world.path("crl.pem"), list).unwrap();
    let text = answered(&world, &client, 401).await;
    assert_eq!(text, r#"{"error":"the client certificate was revoked"}"#);
    let after = client.try_call("GET", "/api/v1/health", None, &[]).await;
    assert!(after.is_err(), "the connection was closed: {after:?}");
    assert!(!world.lets_in(world.tls("client")).await, "and no new one is made");
    assert_eq!(reader.get("/api/v1/health").await.code, 200, "others stay connected");
    world.refused_in_all("revoked", 2).await;
    world.app.stop().await;
}

/// A TLS session from before the revocation cannot be resumed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_does_not_outlive_a_revocation() {
    let world = world("").await;
    let mut tls = world.tls("client");
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let tls = Arc::new(tls);
    let first = Caller::connect_with(world.address(), Arc::clone(&tls)).await.unwrap();
    assert_eq!(first.get("/api/v1/health").await.code, 200);
    let second = Caller::connect_with(world.address(), Arc::clone(&tls)).await.unwrap();
    assert!(second.resumed, "sessions are resumed at all");
    assert_eq!(second.get("/api/v1/health").await.code, 200);
    let list = Authority::of(world.folder.path()).list(&[REVOKED, CLIENT], 2090);
    std::fs::write(world.path("crl.pem"), list).unwrap();
    answered(&world, &first, 401).await;
    for _ in 0..4 {
        let Ok(again) = Caller::connect_with(world.address(), Arc::clone(&tls)).await else { continue };
        assert!(again.try_call("GET", "/api/v1/health", None, &[]).await.is_err(), "resumed: {}", again.resumed);
    }
    world.app.stop().await;
}

/// While an authority's revocation list is expired, all its clients are refused, even connected clients. With a new
/// list, the clients are accepted again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_is_out_of_date_is_enforced() {
    let world = world("").await;
    let client = world.client("client").await;
    assert_eq!(client.get("/api/v1/health").await.code, 200);
    let authority = Authority::of(world.folder.path());
    std::fs::write(world.path("crl.pem"), authority.list(&[REVOKED], 2021)).unwrap();
    let text = answered(&world, &client, 401).await;
    assert!(text.contains("the list of revoked certificates is out of date"), "{text}");
    assert!(!world.lets_in(world.tls("reader")).await);
    world.refused_in_all("list-expired", 2).await;
    let (_, text) = world.page("/readyz?verbose").await;
    assert!(text.contains("[!]replicas-certificate: a list of revoked certificates is out of date"), "{text}");
    std::fs::write(world.path("crl.pem"), authority.list(&[REVOKED], 2090)).unwrap();
    let again = async {
        while !world.lets_in(world.tls("reader")).await {
            world.app.look_at_files();
        }
    };
    timeout(PATIENCE, again).await.expect("the fresh list is taken");
    world.app.stop().await;
}

/// If a changed file is unusable, the former revocation list stays in force.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_list_leaves_the_old_one_in_force() {
    let world = world("").await;
    for text in ["", "half a file", "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"] {
        std::fs::write(world.path("crl.pem"), text).unwrap();
        world.app.look_at_files();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!world.lets_in(world.tls("revoked")).await, "{text}");
        assert!(world.lets_in(world.tls("client")).await, "{text}");
    }
    std::fs::remove_file(world.path("crl.pem")).unwrap();
    world.app.look_at_files();
    assert!(!world.lets_in(world.tls("revoked")).await);
    world.app.stop().await;
}

/// All certificate files are replaced at once, as in a mounted Secret, while calls are sent without pause; no call
/// fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_drops_no_connection() {
    let world = world("").await;
    // Old and new authority are trusted for a while, as in a rotation.
    let fresh = tempfile::tempdir().unwrap();
    let named = ["certs", "dev", "--name", "the next CA"];
    let output = Command::new(BINARY).args(named).arg(fresh.path()).output().unwrap();
    assert!(output.status.success());
    let read = |folder: &Path, name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let both = read(world.folder.path(), "ca.crt") + &read(fresh.path(), "ca.crt");
    let (calls, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut callers = JoinSet::new();
    for _ in 0..4 {
        let caller = world.client("client").await;
        let (calls, stop) = (Arc::clone(&calls), Arc::clone(&stop));
        callers.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let answer = caller.get(&replicas_path("team/web")).await;
                assert_eq!(answer.code, 200, "{}", answer.text);
                calls.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let expiry = |page: &str| {
        let name = "longhaul_certificate_expiry_timestamp_seconds{certificate=\"replicas\"} ";
        page.lines().find_map(|line| line.strip_prefix(name)?.parse::<i64>().ok()).unwrap()
    };
    let before = expiry(&world.metrics().await);
    let crl = read(world.folder.path(), "crl.pem") + &read(fresh.path(), "crl.pem");
    std::fs::write(world.path("ca.crt"), &both).unwrap();
    std::fs::write(world.path("crl.pem"), crl).unwrap();
    for name in ["server.crt", "server.key"] {
        std::fs::rename(fresh.path().join(name), world.path(name)).unwrap();
    }
    world.app.look_at_files();
    let fresh_client = || {
        let identity = super::world::identity(&fresh.path().join("client.crt"), &fresh.path().join("client.key"));
        let authority = std::fs::read(fresh.path().join("ca.crt")).unwrap();
        service_core::wire::client_config(service_core::wire::Trust::Pem(&authority), Some(identity)).unwrap()
    };
    let taken = async { while !world.lets_in(fresh_client()).await {} };
    timeout(PATIENCE, taken).await.expect("the new certificates are used");
    let at_least = calls.load(Ordering::Relaxed) + 100;
    crate::support::until("calls go on", || calls.load(Ordering::Relaxed) > at_least).await;
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = callers.join_next().await {
        ended.expect("no call failed");
    }
    assert!(expiry(&world.metrics().await) >= before, "the metric follows");
    world.app.stop().await;
}

/// If an authority is removed, its clients are refused, even connected clients.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_goes_takes_its_clients_with_it() {
    let world = world("").await;
    let client = world.client("client").await;
    assert_eq!(client.get("/api/v1/health").await.code, 200);
    std::fs::copy(world.path("other-ca.crt"), world.path("ca.crt.fresh")).unwrap();
    let authority = std::fs::read(world.path("ca.crt")).unwrap();
    std::fs::rename(world.path("ca.crt.fresh"), world.path("ca.crt")).unwrap();
    let text = answered(&world, &client, 401).await;
    assert!(text.contains("from an unknown authority"), "{text}");
    let other = super::world::identity(&world.path("other.crt"), &world.path("other.key"));
    let tls = service_core::wire::client_config(service_core::wire::Trust::Pem(&authority), Some(other)).unwrap();
    assert!(world.lets_in(tls).await);
    world.app.stop().await;
}

/// The configuration lists the permitted names of callers for each verb. A changed list of names applies to calls on
/// open connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_allowed_by_verb_and_the_list_is_reloaded() {
    let names =
        ", allow: {read: [\"spiffe://longhaul.dev/client/*\"], scale: [\"spiffe://longhaul.dev/client/client\"]}";
    let world = world(names).await;
    let (client, reader) = (world.client("client").await, world.client("reader").await);
    let path = replicas_path("team/web");
    assert_eq!(client.put(&path, r#"{"replicaCount": 4}"#).await.code, 200);
    assert_eq!(reader.get(&path).await.code, 200);
    let refused = reader.put(&path, r#"{"replicaCount": 9}"#).await;
    assert_eq!(refused.code, 403);
    assert_eq!(refused.error(), "spiffe://longhaul.dev/client/reader may not scale");
    assert_eq!(world.api.world.lock().replicas("team/web"), 4);
    let turned = ", allow: {read: [\"spiffe://longhaul.dev/client/client\"], scale: []}";
    std::fs::write(world.path("service.yaml"), World::config(&world.api, world.folder.path(), turned)).unwrap();
    world.shows("longhaul_config_generation 2\n").await;
    assert_eq!(client.put(&path, r#"{"replicaCount": 5}"#).await.code, 403, "nobody may now");
    assert_eq!(reader.get(&path).await.code, 403, "on the connection that it has kept");
    assert_eq!(client.get(&path).await.code, 200);
    let typo = ", allow: {raed: []}";
    std::fs::write(world.path("service.yaml"), World::config(&world.api, world.folder.path(), typo)).unwrap();
    world.shows("longhaul_config_last_reload_successful 0\n").await;
    assert_eq!(client.get(&path).await.code, 200, "a file that cannot be used changes nothing");
    world.app.stop().await;
}

/// While a new process already serves, the old process is stopped; every call is answered by one of the two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_upgrade_loses_no_call() {
    let World { api, app: old, folder } = world("").await;
    let text = World::config(&api, folder.path(), "").replace("drain: 50ms", "drain: 10s");
    let path = folder.path().join("service.yaml");
    let config = || service::config::parse(&text, &path).unwrap();
    old.stop().await;
    let start = async || {
        let options = service::run::Options::default();
        service::run::App::start("replicas", config(), options).await.unwrap()
    };
    let (old, new) = (start().await, start().await);
    let (to_old, to_new) = (old.address("replicas").unwrap(), new.address("replicas").unwrap());
    let world = World { api, app: new, folder }.listed().await;
    let identity = || super::world::identity(&world.path("client.crt"), &world.path("client.key"));
    let (calls, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut callers = JoinSet::new();
    for _ in 0..4 {
        let (tls, next) = (world.tls_of(Some(identity())), world.tls_of(Some(identity())));
        let (calls, ended) = (Arc::clone(&calls), Arc::clone(&ended));
        callers.spawn(async move {
            let mut caller = Caller::connect(to_old, tls).await.unwrap();
            let mut has_moved = false;
            while !ended.load(Ordering::Relaxed) || !has_moved {
                let answer = caller.get("/api/v1/health").await;
                assert!(answer.code == 200 || (answer.code == 503 && !has_moved), "{}", answer.text);
                calls.fetch_add(1, Ordering::Relaxed);
                // The old process closes the connection with an answer, which every client understands.
                if answer.header("connection") == "close" {
                    caller = Caller::connect(to_new, next.clone()).await.unwrap();
                    has_moved = true;
                }
            }
        });
    }
    crate::support::until("calls are made", || calls.load(Ordering::Relaxed) > 50).await;
    let stopping = tokio::time::Instant::now();
    old.stop().await;
    assert!(stopping.elapsed() < Duration::from_secs(9), "everybody has gone before the drain time");
    let at_least = calls.load(Ordering::Relaxed) + 50;
    crate::support::until("calls go on", || calls.load(Ordering::Relaxed) > at_least).await;
    ended.store(true, Ordering::Relaxed);
    while let Some(caller) = callers.join_next().await {
        caller.expect("no call was lost");
    }
    world.app.stop().await;
}
