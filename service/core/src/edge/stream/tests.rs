//! Tests of the TLS stream with tokio-rustls as the client.

use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use super::*;
use crate::wire::provider;

type Client = tokio_rustls::client::TlsStream<TcpStream>;

fn configs(version: &'static SupportedProtocolVersion) -> (Arc<ServerConfig>, TlsConnector) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let mut server = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[version]).unwrap();
    let mut client = client.with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    (Arc::new(server), TlsConnector::from(Arc::new(client)))
}

async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (client, accepted) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
    (client.unwrap(), accepted.unwrap().0)
}

async fn pair(version: &'static SupportedProtocolVersion) -> (Client, TlsStream) {
    let (client, server) = sockets().await;
    pair_over(version, client, server).await
}

async fn pair_over(
    version: &'static SupportedProtocolVersion,
    client: TcpStream,
    server: TcpStream,
) -> (Client, TlsStream) {
    let (config, connector) = configs(version);
    let name = ServerName::try_from("localhost").unwrap();
    let (client, server) = tokio::join!(connector.connect(name, client), TlsStream::accept(config, server));
    (client.unwrap(), server.unwrap())
}

fn pattern(length: usize) -> Vec<u8> {
    (0..=250).cycle().take(length).collect()
}

fn holds_nothing(stream: &TlsStream) -> bool {
    [stream.partial.capacity(), stream.plain.bytes.capacity(), stream.unsent.bytes.capacity()] == [0; 3]
}

/// Reads `length` bytes in reads of the given `sizes`.
async fn read_by(stream: &mut TlsStream, length: usize, sizes: &[usize]) -> Vec<u8> {
    let mut got = Vec::new();
    for size in sizes.iter().cycle() {
        let mut piece = vec![0; (*size).min(length - got.len())];
        let count = stream.read(&mut piece).await.unwrap();
        got.extend_from_slice(&piece[..count]);
        if got.len() == length || count == 0 {
            break;
        }
    }
    got
}

#[tokio::test]
async fn both_directions_in_both_versions_whatever_the_sizes() {
    for version in [&TLS12, &TLS13] {
        let (mut client, mut server) = pair(version).await;
        assert_eq!((server.protocol(), server.certificates()), (Some(&b"http/1.1"[..]), None));
        let sent = pattern(700_000);
        let ((), got) = tokio::join!(
            async { client.write_all(&sent).await.unwrap() },
            read_by(&mut server, sent.len(), &[1, 4096, 7, 20_000, 300_000]),
        );
        assert!(got == sent, "{version:?}");
        assert!(holds_nothing(&server), "one that waits holds nothing");
        let mut got = vec![0; sent.len()];
        let write = async {
            server.write_all(&sent).await.unwrap();
            server.flush().await.unwrap();
        };
        tokio::join!(write, async { client.read_exact(&mut got).await.unwrap() });
        assert!(got == sent && holds_nothing(&server), "{version:?}");
    }
}

/// A handshake and records that arrive byte by byte are understood.
#[tokio::test]
async fn records_that_come_byte_by_byte_are_put_together() {
    let (client, mut from_client) = sockets().await;
    let (mut to_server, server) = sockets().await;
    let relay = tokio::spawn(async move {
        let mut bytes = vec![0; 4096];
        let (mut from_server, mut to_server) = to_server.split();
        let (mut from_client, mut to_client) = from_client.split();
        let up = async {
            while let Ok(count @ 1..) = from_client.read(&mut bytes).await {
                for (index, byte) in bytes[..count].iter().enumerate() {
                    to_server.write_all(&[*byte]).await.unwrap();
                    if index % 3 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            }
        };
        tokio::join!(up, async { tokio::io::copy(&mut from_server, &mut to_client).await.unwrap() });
    });
    let (mut client, mut server) = pair_over(&TLS13, client, server).await;
    let sent = pattern(30_000);
    let ((), got) =
        tokio::join!(async { client.write_all(&sent).await.unwrap() }, read_by(&mut server, sent.len(), &[9000]));
    assert!(got == sent && holds_nothing(&server));
    relay.abort();
}

#[tokio::test]
async fn a_goodbye_is_the_end_and_a_cut_is_an_error() {
    let (mut client, mut server) = pair(&TLS13).await;
    client.write_all(b"last").await.unwrap();
    client.shutdown().await.unwrap();
    let mut got = Vec::new();
    server.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"last");
    server.write_all(b"answer").await.unwrap();
    server.shutdown().await.unwrap();
    let mut got = Vec::new();
    client.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"answer", "whoever said goodbye may still be answered, and hears ours");

    let (mut client, mut server) = pair(&TLS13).await;
    client.get_mut().0.shutdown().await.unwrap();
    assert_eq!(server.read(&mut [0; 9]).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

/// A client that does not speak TLS gets a TLS alert; the error is a rustls error, which metrics can classify.
#[tokio::test]
async fn what_is_not_tls_is_refused_with_an_alert() {
    let (config, _) = configs(&TLS13);
    let (mut client, server) = sockets().await;
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let error = TlsStream::accept(Arc::clone(&config), server).await.err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert!(error.get_ref().unwrap().is::<rustls::Error>(), "{error}");
    let mut alert = Vec::new();
    let _ = client.read_to_end(&mut alert).await;
    assert_eq!(alert.first(), Some(&21), "the content type of alerts (RFC 8446, section 5.1)");

    // A client that trusts another authority reports it in the handshake.
    let (_, stranger) = configs(&TLS13);
    let (client, server) = sockets().await;
    let name = ServerName::try_from("localhost").unwrap();
    let (refused, error) = tokio::join!(stranger.connect(name, client), TlsStream::accept(config, server));
    assert!(refused.is_err() && error.is_err());
}

/// A stream uses limited memory for a TLS message that never ends, and for a peer that reads nothing.
#[tokio::test]
async fn what_is_held_for_a_peer_is_bounded() {
    let (mut client, mut server) = pair(&TLS13).await;
    let mut written = 0;
    let piece = vec![b'x'; 100_000];
    while let Ok(count) = tokio::time::timeout(std::time::Duration::from_millis(200), server.write(&piece)).await {
        written += count.unwrap();
        assert!(server.unsent.bytes.len() <= RECORD_BYTES + 2 * RECORD_OVERHEAD_BYTES);
    }
    let mut got = vec![0; written];
    tokio::join!(async { client.read_exact(&mut got).await.unwrap() }, async { server.flush().await.unwrap() });
    assert!(got.iter().all(|byte| *byte == b'x') && holds_nothing(&server));

    let (config, _) = configs(&TLS13);
    let (mut client, server) = sockets().await;
    // A record whose handshake message announces 65,535 bytes, then one more of 16 KiB after the other.
    let mut records = vec![22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff];
    records.resize(5 + (16 << 10), 0);
    for _ in 0..9 {
        records.extend([22, 3, 1, 0x40, 0]);
        records.resize(records.len() + (16 << 10), 0);
    }
    let (accepted, _) = tokio::join!(TlsStream::accept(config, server), client.write_all(&records));
    assert!(accepted.is_err());
}
