//! Tests of accepted and refused files.

use std::path::Path;

use super::*;
use crate::wire::certificates_from_pem;

const LABELS: Labels = Labels { check: "certificate", server: "server", client_ca: "client-ca", revoked: "revoked" };

fn files(folder: &Path) -> Files {
    let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
    Files { certificate, key, ..Files::default() }
}

/// Writes a fresh pair that ends in `year`; returns certificate and key.
fn write(folder: &Path, year: i32) -> (String, String) {
    let mut params = rcgen::CertificateParams::new(["name".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(year, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    let (chain, key) = (params.self_signed(&key).unwrap().pem(), key.serialize_pem());
    std::fs::write(folder.join("tls.crt"), &chain).unwrap();
    std::fs::write(folder.join("tls.key"), &key).unwrap();
    (chain, key)
}

fn chain(tls: &ServerTls) -> Vec<CertificateDer<'static>> {
    tls.current.read().loaded.chain.clone()
}

fn of(pem: &str) -> Vec<CertificateDer<'static>> {
    certificates_from_pem(pem.as_bytes()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_new_pair_is_taken_and_half_a_pair_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = write(folder.path(), 2090);
    let tls = ServerTls::load(files(folder.path()), LABELS, Certificates::default()).unwrap();
    let (look, looks) = watch::channel(0);
    let follower = tokio::spawn(Arc::clone(&tls).follow_files(looks));
    assert_eq!(chain(&tls), of(&first));
    let (second, key) = write(folder.path(), 2091);
    std::fs::write(folder.path().join("tls.key"), "half").unwrap();
    tokio::time::sleep(RELOAD_INTERVAL * 2).await;
    assert_eq!(chain(&tls), of(&first), "a certificate without its key is not used");
    std::fs::write(folder.path().join("tls.key"), key).unwrap();
    tokio::time::sleep(RELOAD_INTERVAL * 2).await;
    assert_eq!(chain(&tls), of(&second));
    let (third, _) = write(folder.path(), 2092);
    look.send_modify(|looks| *looks += 1);
    tokio::time::sleep(RELOAD_INTERVAL / 10).await;
    assert_eq!(chain(&tls), of(&third), "whoever asks does not wait");
    follower.abort();
}

/// A Secret's volume: the file names point through `..data`, and a rotation renames a new `..data` over the old one.
#[tokio::test(start_paused = true)]
async fn a_volume_that_is_swapped_as_kubelet_does_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let version = |name: &str, year| {
        let data = folder.path().join(name);
        std::fs::create_dir(&data).unwrap();
        let written = write(&data, year).0;
        std::os::unix::fs::symlink(name, folder.path().join("..data_tmp")).unwrap();
        std::fs::rename(folder.path().join("..data_tmp"), folder.path().join("..data")).unwrap();
        written
    };
    version("..2026_a", 2090);
    for name in ["tls.crt", "tls.key"] {
        std::os::unix::fs::symlink(Path::new("..data").join(name), folder.path().join(name)).unwrap();
    }
    let tls = ServerTls::load(files(folder.path()), LABELS, Certificates::default()).unwrap();
    let ends = tls.metrics.of("server").get();
    let (_look, looks) = watch::channel(0);
    let follower = tokio::spawn(Arc::clone(&tls).follow_files(looks));
    let second = version("..2026_b", 2091);
    std::fs::remove_dir_all(folder.path().join("..2026_a")).unwrap();
    tokio::time::sleep(RELOAD_INTERVAL * 2).await;
    assert_eq!(chain(&tls), of(&second));
    assert!(tls.metrics.of("server").get() > ends, "the metric follows");
    follower.abort();
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = write(folder.path(), 2090);
    write(folder.path(), 2090);
    std::fs::write(folder.path().join("tls.crt"), first).unwrap();
    let error = ServerTls::load(files(folder.path()), LABELS, Certificates::default()).unwrap_err();
    assert!(matches!(error, CertificateError::Mismatch { .. }), "{error}");
}

#[test]
fn an_authority_file_without_a_certificate_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 2090);
    std::fs::write(folder.path().join("ca.crt"), "nothing").unwrap();
    let error = ServerTls::load(
        Files { client_cas: vec![folder.path().join("ca.crt")], ..files(folder.path()) },
        LABELS,
        Certificates::default(),
    );
    assert!(error.unwrap_err().to_string().ends_with("ca.crt: no certificate: the PEM text holds none"));
}

#[test]
fn an_expired_certificate_is_not_ready_and_not_dead() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 2090);
    let tls = ServerTls::load(files(folder.path()), LABELS, Certificates::default()).unwrap();
    assert_eq!(tls.unready(), None);
    write(folder.path(), 2020);
    let tls = ServerTls::load(files(folder.path()), LABELS, Certificates::default()).unwrap();
    assert!(tls.unready().unwrap().ends_with("tls.crt has expired: replace it"));
    assert_eq!(tls.dead(), None);
}

#[test]
fn a_key_that_everybody_may_read_is_refused_where_that_is_asked_for() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 2090);
    let key = folder.path().join("tls.key");
    let strict = || Files { rules: Rules { private_key: true, ..Rules::default() }, ..files(folder.path()) };
    for (mode, fits) in [(0o400, true), (0o440, true), (0o444, false), (0o601, false), (0o644, false)] {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        let loaded = ServerTls::load(strict(), LABELS, Certificates::default());
        match loaded {
            Ok(_) => assert!(fits, "{mode:o}"),
            Err(error) => assert!(!fits && matches!(error, CertificateError::Exposed { .. }), "{mode:o}: {error}"),
        }
    }
    assert!(ServerTls::load(files(folder.path()), LABELS, Certificates::default()).is_ok(), "0644, and nobody minds");
}
