//! Tests of downloads from a local file server: right, changed and missing files, and servers with wrong answers.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls_pki_types::PrivatePkcs8KeyDer;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::*;

const VERSION: &str = "1.33.0";

/// The server's answer for a path.
#[derive(Debug, Clone)]
enum File {
    Bytes(Vec<u8>),
    Redirect(String),
    Status(u16),
}

type Files = BTreeMap<String, File>;

/// A file server. Dropping the value ends the file server.
struct Server {
    address: SocketAddr,
    ca_pem: String,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start(files: Files, tls: bool) -> Self {
        let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let config =
            rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(
                    vec![key.cert.der().clone()],
                    PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()).into(),
                )
                .unwrap();
        let acceptor = tls.then(|| TlsAcceptor::from(Arc::new(config)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let files = Arc::new(files);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let (files, acceptor) = (Arc::clone(&files), acceptor.clone());
                serving.spawn(async move {
                    let service = service_fn(move |request| {
                        let answer = answer(&files, &request);
                        async move { Ok::<_, Infallible>(answer) }
                    });
                    let http = hyper::server::conn::http1::Builder::new();
                    // Clients that go away are part of the tests.
                    let _ = match acceptor {
                        None => http.serve_connection(TokioIo::new(tcp), service).await,
                        Some(acceptor) => match acceptor.accept(tcp).await {
                            Ok(tls) => http.serve_connection(TokioIo::new(tls), service).await,
                            Err(_) => Ok(()),
                        },
                    };
                });
            }
        });
        Self { address, ca_pem: key.cert.pem(), _tasks: tasks }
    }

    fn fetch(&self, scheme: &str, destination: &Path) -> Fetch {
        let base = format!("{scheme}://{}", self.address);
        let sources = Sources { kubernetes: format!("{base}/k8s/"), etcd: format!("{base}/etcd") };
        Fetch { sources, ..Fetch::new(VERSION, destination) }
    }
}

fn answer(files: &Files, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let response = Response::builder();
    match files.get(request.uri().path()) {
        None => response.status(404).body(Full::default()),
        Some(File::Bytes(bytes)) => response.body(Full::from(bytes.clone())),
        Some(File::Redirect(to)) => response.status(302).header("Location", to).body(Full::default()),
        Some(File::Status(status)) => response.status(*status).body(Full::default()),
    }
    .unwrap()
}

fn platform_here() -> Option<&'static str> {
    let platform = platform(std::env::consts::OS, std::env::consts::ARCH).ok();
    if platform.is_none() {
        println!("skipped: needs Linux on x86_64 or aarch64");
    }
    platform
}

fn apiserver(platform: &str) -> String {
    format!("/k8s/v{VERSION}/bin/{}/kube-apiserver", platform.replace('-', "/"))
}

fn archive(platform: &str) -> String {
    format!("/etcd/v{ETCD_VERSION}/etcd-v{ETCD_VERSION}-{platform}.tar.gz")
}

/// The contents of a fake program, large enough to arrive in many chunks.
fn program(name: &str) -> Vec<u8> {
    name.bytes().cycle().take(300_000).collect()
}

fn tar_gz(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, bytes) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, *bytes).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn put_archive(files: &mut Files, platform: &str, bytes: Vec<u8>) {
    let path = archive(platform);
    let name = path.rsplit('/').next().unwrap();
    let sums = format!("{}  other.tar.gz\n{}  {name}\n", "0".repeat(64), hex(&Sha256::digest(&bytes)));
    files.insert(format!("/etcd/v{ETCD_VERSION}/SHA256SUMS"), File::Bytes(sums.into_bytes()));
    files.insert(path, File::Bytes(bytes));
}

/// The files of the test's server, at the paths of the official servers.
fn files(platform: &str) -> Files {
    let mut files = Files::new();
    for name in ["kube-apiserver", "kubectl"] {
        let path = apiserver(platform).replace("kube-apiserver", name);
        let bytes = program(name);
        files.insert(format!("{path}.sha256"), File::Bytes(hex(&Sha256::digest(&bytes)).into_bytes()));
        files.insert(path, File::Bytes(bytes));
    }
    let folder = format!("etcd-v{ETCD_VERSION}-{platform}");
    let (decoy, etcd) = (format!("{folder}/Documentation/etcd"), format!("{folder}/etcd"));
    put_archive(&mut files, platform, tar_gz(&[(&decoy, b"no"), (&etcd, &program("etcd"))]));
    files
}

/// The names of all files in a folder, including hidden files.
fn listing(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The error of a fetch from a server with the files `files`. Also checks that the fetch leaves no partial file.
async fn error(files: Files) -> Error {
    let server = Server::start(files, false).await;
    let folder = tempfile::tempdir().unwrap();
    let error = fetch(&server.fetch("http", folder.path())).await.unwrap_err();
    let left = listing(folder.path());
    assert!(left.iter().all(|name| !name.contains("partial")), "{left:?}");
    error
}

#[tokio::test]
async fn official_files_end_up_whole_and_executable() {
    let Some(platform) = platform_here() else { return };
    // As dl.k8s.io does it: the file itself is elsewhere.
    let mut files = files(platform);
    let moved = files.insert(apiserver(platform), File::Redirect("/elsewhere?x=1".to_owned())).unwrap();
    files.insert("/elsewhere".to_owned(), moved);
    for tls in [false, true] {
        let server = Server::start(files.clone(), tls).await;
        let folder = tempfile::tempdir().unwrap();
        let destination = folder.path().join("new/assets");
        let mut wanted = server.fetch(if tls { "https" } else { "http" }, &destination);
        wanted.ca_pem = tls.then(|| server.ca_pem.clone());
        fs::create_dir_all(&destination).unwrap();
        fs::write(destination.join("etcd"), "an older one").unwrap();
        let fetched = fetch(&wanted).await.unwrap();
        assert_eq!(fetched.programs, [("kube-apiserver", 300_000), ("kubectl", 300_000), ("etcd", 300_000)]);
        assert_eq!(listing(&destination), ["etcd", "kube-apiserver", "kubectl"]);
        for name in ["etcd", "kube-apiserver", "kubectl"] {
            let path = destination.join(name);
            assert_eq!(fs::read(&path).unwrap(), program(name));
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        }
        let text = fetched.to_string();
        assert!(text.starts_with("fetched kube-apiserver (0.3 MB), its digest matches\n"), "{text}");
        assert!(text.ends_with(&format!("use them: export KUBEBUILDER_ASSETS={}", destination.display())), "{text}");
    }
}

#[tokio::test]
async fn tampered_files_are_thrown_away() {
    let Some(platform) = platform_here() else { return };
    for path in [apiserver(platform), archive(platform)] {
        let mut files = files(platform);
        let Some(File::Bytes(bytes)) = files.get_mut(&path) else { panic!("{path}") };
        *bytes.last_mut().unwrap() ^= 1;
        let error = error(files).await;
        assert!(matches!(&error, Error::Digest { url, .. } if url.ends_with(&path)), "{error}");
        assert!(error.to_string().ends_with("; the file was deleted"), "{error}");
    }
}

#[tokio::test]
async fn an_older_program_stays_when_the_new_one_is_wrong() {
    let Some(platform) = platform_here() else { return };
    let mut files = files(platform);
    files.insert(apiserver(platform), File::Bytes(b"wrong".to_vec()));
    let server = Server::start(files, false).await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("kube-apiserver"), "older").unwrap();
    fetch(&server.fetch("http", folder.path())).await.unwrap_err();
    assert_eq!(fs::read_to_string(folder.path().join("kube-apiserver")).unwrap(), "older");
    assert_eq!(listing(folder.path()), ["kube-apiserver"]);
}

#[tokio::test]
async fn errors_say_what_was_wrong() {
    let Some(platform) = platform_here() else { return };
    let with = |path: String, file: File| {
        let mut files = files(platform);
        files.insert(path, file);
        files
    };
    let text = error(Files::new()).await.to_string();
    assert!(text.ends_with("/kube-apiserver.sha256: is the version right?"), "{text}");
    let text = error(with(apiserver(platform), File::Status(503))).await.to_string();
    assert!(text.ends_with("/kube-apiserver: HTTP 503"), "{text}");
    let page = File::Bytes(b"<html>please log in</html>".to_vec());
    let text = error(with(format!("{}.sha256", apiserver(platform)), page)).await.to_string();
    assert!(text.starts_with("failed to check kube-apiserver: "), "{text}");
    let sums = format!("/etcd/v{ETCD_VERSION}/SHA256SUMS");
    let text = error(with(sums, File::Bytes(b"none of yours".to_vec()))).await.to_string();
    assert!(text.starts_with("failed to check etcd-v3.5.21-"), "{text}");
    let endless = File::Bytes(vec![b'0'; usize::try_from(DIGEST_BYTES_MAX).unwrap() + 1]);
    let found = error(with(format!("{}.sha256", apiserver(platform)), endless)).await;
    assert!(matches!(found, Error::TooLarge { most: DIGEST_BYTES_MAX, .. }), "{found}");
    let text = error(with(apiserver(platform), File::Redirect(apiserver(platform)))).await.to_string();
    assert!(text.ends_with("the server redirects more than 5 times"), "{text}");
    let text = error(with(apiserver(platform), File::Redirect("http://example.com/x".to_owned()))).await.to_string();
    assert!(text.contains("`http://example.com/x`") && text.ends_with("does not begin with https://"), "{text}");

    let mut files = files(platform);
    put_archive(&mut files, platform, tar_gz(&[("other/etcd", b"x")]));
    let text = error(files.clone()).await.to_string();
    assert!(text.contains(&format!(": there is no `etcd-v3.5.21-{platform}/etcd` in it")), "{text}");
    put_archive(&mut files, platform, b"no archive".to_vec());
    let found = error(files).await;
    assert!(matches!(found, Error::Archive { .. }), "{found}");
}

/// A server with an untrusted certificate is refused, and so is a redirect to plain HTTP.
#[tokio::test]
async fn https_is_checked() {
    let Some(platform) = platform_here() else { return };
    let plain = Server::start(files(platform), false).await;
    let mut sent_on = files(platform);
    sent_on.insert(apiserver(platform), File::Redirect(format!("http://{}{}", plain.address, apiserver(platform))));
    let server = Server::start(sent_on, true).await;
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut wanted = server.fetch("https", folder.path());
    wanted.ca_pem = Some(other.cert.pem());
    let text = fetch(&wanted).await.unwrap_err().to_string();
    assert!(text.contains("certificate"), "{text}");
    wanted.ca_pem = Some(server.ca_pem.clone());
    let text = fetch(&wanted).await.unwrap_err().to_string();
    assert!(text.ends_with("the server redirects from HTTPS to plain HTTP"), "{text}");
    wanted.ca_pem = Some(String::new());
    let error = fetch(&wanted).await.unwrap_err();
    assert!(matches!(error, Error::Roots { .. }), "{error}");
    assert_eq!(listing(folder.path()), Vec::<String>::new());
}

#[tokio::test]
async fn addresses_versions_and_folders_are_checked_before_anything_is_asked() {
    let Some(_) = platform_here() else { return };
    let folder = tempfile::tempdir().unwrap();
    for bad in ["", "1.33", "latest", "1.33.0/../x", "v1.33.x", "1.33.0-", "1.33.0-a/b"] {
        let error = fetch(&Fetch::new(bad, folder.path())).await.unwrap_err();
        assert!(matches!(error, Error::Version { .. }), "{error}");
    }
    for good in ["1.33.0", "v1.33.0", "1.34.0-rc.1"] {
        assert_eq!(version(good).unwrap(), good.trim_start_matches('v'));
    }
    for base in ["http://example.com", "ftp://127.0.0.1", "nonsense", "http://127.0.0.1.example.com"] {
        let mut wanted = Fetch::new(VERSION, folder.path());
        wanted.sources.kubernetes = base.to_owned();
        let error = fetch(&wanted).await.unwrap_err();
        assert!(matches!(error, Error::Url { .. }), "{base}: {error}");
    }
    fs::write(folder.path().join("file"), "").unwrap();
    let error = fetch(&Fetch::new(VERSION, folder.path().join("file"))).await.unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error}");
}

#[test]
fn a_full_disk_is_called_that() {
    let full = failed(Path::new("/a"))(std::io::Error::from(ErrorKind::StorageFull));
    assert!(full.to_string().starts_with("failed to write /a: no space is left"), "{full}");
    // Uses the system's device that is always full, if there is one.
    if let Ok(file) = fs::OpenOptions::new().write(true).open("/dev/full") {
        let mut partial = Partial { path: "/dev/full".into(), file, bytes: 0, renamed: true };
        assert!(matches!(partial.write(b"x"), Err(Error::NoSpace { .. })));
    }
}

#[test]
fn there_are_programs_for_linux_only() {
    assert_eq!(platform("linux", "aarch64").unwrap(), "linux-arm64");
    let text = platform("macos", "aarch64").unwrap_err().to_string();
    assert_eq!(text, "there are no official programs for macos on aarch64: build them, or use a machine with Linux");
}
