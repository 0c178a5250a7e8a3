//! Tests of a proxy from the environment: the path to a registry that only the proxy can find.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;

use http::Request;
use parking_lot::Mutex;
use rustls_pki_types::PrivateKeyDer;
use service_core::wire::{Client, Limits, Origin, Protocol, Trust, client_config, provider};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::admission::{pod, review};
use crate::support::registry::digest;
use crate::support::{PATIENCE, deadline};

/// Answers every request over TLS with a digest.
async fn registry(certified: &rcgen::CertifiedKey<rcgen::KeyPair>, tasks: &mut JoinSet<()>) -> SocketAddr {
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tasks.spawn(async move {
        loop {
            let Ok(mut tls) = acceptor.accept(listener.accept().await.unwrap().0).await else { continue };
            read_head(&mut tls).await;
            let index = "content-type: application/vnd.oci.image.index.v1+json";
            let answer = format!("HTTP/1.1 200 OK\r\n{index}\r\ndocker-content-digest: {}\r\n", digest());
            let _ = tls.write_all((answer + "connection: close\r\n\r\n").as_bytes()).await;
            let _ = tls.shutdown().await;
        }
    });
    address
}

/// A proxy that makes every tunnel to `registry`, and a list of its requests.
async fn proxy(registry: SocketAddr, tasks: &mut JoinSet<()>) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    tasks.spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let head = read_head(&mut client).await;
            seen.lock().push(head);
            let mut server = TcpStream::connect(registry).await.unwrap();
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        }
    });
    (address, heads)
}

async fn read_head(io: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match io.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// The process, which ends with the test.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registries_are_reached_through_the_proxy_of_the_environment() {
    let mut tasks = JoinSet::new();
    let folder = tempfile::tempdir().unwrap();
    let certified = rcgen::generate_simple_self_signed(["registry.test".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let authority = certified.cert.pem();
    std::fs::write(folder.path().join("tls.crt"), &authority).unwrap();
    std::fs::write(folder.path().join("tls.key"), certified.signing_key.serialize_pem()).unwrap();
    let registry = registry(&certified, &mut tasks).await;
    let (proxy, heads) = proxy(registry, &mut tasks).await;
    // Free a moment ago; nothing else in this test takes ports from now on.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = folder.path().join("service.yaml");
    let text = format!(
        "admission: {{listen: \"127.0.0.1:{port}\", certificate: tls.crt, key: tls.key}}\n\
         resolve: {{registries: [{{host: registry.test, caFile: tls.crt}}]}}\n"
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul-service"));
    for variable in ["HTTP_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"] {
        command.env_remove(variable);
    }
    command.env("HTTPS_PROXY", format!("http://me:word@{proxy}")).args(["run", "--role", "admission", "--config"]);
    let _child = Child(command.arg(&config).stderr(Stdio::null()).spawn().unwrap());

    let tls = client_config(Trust::Pem(authority.as_bytes()), None).unwrap();
    let origin = Origin { host: "127.0.0.1".into(), port, tls: Some(Arc::new(tls)), server_name: None };
    let client = Client::new(origin, Protocol::Http1, Limits { open_max: 1, idle_max: 1 });
    let body = review("v1", &pod(&["registry.test/app:1"])).to_string();
    let post =
        || Request::post("/mutate").header("content-type", "application/json").body(body.clone().into()).unwrap();
    let answered = async {
        loop {
            if let Ok(answer) = client.fetch(post(), 1 << 20, deadline()).await {
                break answer;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let answer = tokio::time::timeout(PATIENCE, answered).await.expect("the process serves");
    let answer: serde_json::Value = serde_json::from_slice(answer.body()).unwrap();
    assert!(answer["response"]["allowed"] == true && answer["response"]["patch"].is_string(), "{answer}");
    let heads = heads.lock();
    assert!(heads[0].starts_with("CONNECT registry.test:443 HTTP/1.1\r\n"), "{heads:?}");
    assert!(heads[0].to_ascii_lowercase().contains("proxy-authorization: basic bwu6d29yza==\r\n"), "{heads:?}");
}
