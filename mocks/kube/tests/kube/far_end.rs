//! Tests of the server behind a proxy in a network namespace. They need such a namespace.

use mock_pki::{Authority, client_config};
use mock_proxy::netns::{Error, Namespace};
use mock_proxy::{Config, Proxy};
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// `None`, with a message, if there can be no namespace.
fn namespace() -> Option<Namespace> {
    match Namespace::create() {
        Ok(namespace) => Some(namespace),
        Err(Error::Needs { what, why }) => {
            println!("skipped: needs {what} ({why})");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The subject needs no further trust: the API server's certificate names the far end.
#[tokio::test]
async fn the_api_server_is_known_at_the_far_end() {
    let Some(namespace) = namespace() else { return };
    let authority = Authority::generate("test").unwrap();
    let mut config = mock_kube::Config::new();
    config.names = vec![namespace.address().to_string()];
    config.users = vec![mock_kube::User::admin("subject", "subject-token")];
    let server = mock_kube::Server::start(config, &authority).await.unwrap();
    let proxy = Proxy::start(Config { namespace: Some(namespace), ..Config::new(server.address()) }).await.unwrap();
    let tcp = TcpStream::connect(proxy.address()).await.unwrap();
    let tls = client_config(authority.ca_pem(), None, &["h2"]).unwrap();
    let name = ServerName::from(proxy.address().ip());
    TlsConnector::from(tls).connect(name, tcp).await.unwrap();
}
