//! Tests of `refuse-connections` and `certificate`: faults of a connection before its user is known.

use std::io::ErrorKind;

use mock_faults::{Fault, FaultId, How, Kind, Name, Nth};
use mock_pki::client_config;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::{ID, Scene};
use crate::client::Protocol;

/// The certificate that the subject's endpoint shows, or why the handshake failed.
async fn handshake(scene: &Scene) -> std::io::Result<CertificateDer<'static>> {
    let tcp = TcpStream::connect(scene.address()).await?;
    let tls = client_config(scene.world.authority.ca_pem(), None, &["h2"]).unwrap();
    let tls = TlsConnector::from(tls).connect(ServerName::try_from("localhost").unwrap(), tcp).await?;
    Ok(tls.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned())
}

#[tokio::test]
async fn refused_connections_are_reset_or_closed_and_the_harness_is_not() {
    for (how, seen) in [(How::Reset, ErrorKind::ConnectionReset), (How::Close, ErrorKind::UnexpectedEof)] {
        let scene = Scene::start().await;
        let mut open = scene.watch(scene.address(), Protocol::Http2, "subject").await;
        scene.begin(&Fault::armed(Name::RefuseConnections).set("how", how));
        assert_eq!(handshake(&scene).await.unwrap_err().kind(), seen);
        assert_eq!(scene.hits(), 1);
        assert!(scene.details()[0].contains("when it was accepted"));
        scene.write("one").await;
        assert_eq!(open.event().await.1, "one", "what was open stays open, and the harness comes in");
        scene.world.server.faults().end(ID);
        assert_eq!(scene.lists(Protocol::Http2).await, 1);
        assert_eq!(scene.hits(), 1);
    }
}

#[tokio::test]
async fn only_the_nth_connection_may_be_meant() {
    let scene = Scene::start().await;
    scene.begin(&Fault { nth: Some(Nth::Range { from: 2, to: Some(3) }), ..Fault::armed(Name::RefuseConnections) });
    let served = [
        handshake(&scene).await.is_ok(),
        handshake(&scene).await.is_ok(),
        handshake(&scene).await.is_ok(),
        handshake(&scene).await.is_ok(),
    ];
    assert_eq!((served, scene.hits()), ([true, false, false, true], 2));
}

#[tokio::test]
async fn nobody_is_refused_at_an_endpoint_that_was_not_named() {
    let scene = Scene::start().await;
    scene.world.server.faults().target_endpoints([]);
    for (id, name) in [(1, Name::RefuseConnections), (2, Name::Certificate), (3, Name::MaxStreams)] {
        scene.world.server.faults().begin(FaultId(id), &Fault::armed(name)).unwrap();
    }
    assert!(handshake(&scene).await.is_ok());
    assert!(scene.world.server.faults().take_hits().is_empty());
}

#[tokio::test]
async fn a_wrong_certificate_is_shown_and_the_right_one_again_after() {
    let scene = Scene::start().await;
    let right = handshake(&scene).await.unwrap();
    for (id, kind, says) in [(1, Kind::Expired, "expired"), (2, Kind::UnknownCa, "unknownissuer")] {
        let (faults, id) = (scene.world.server.faults(), FaultId(id));
        faults.begin(id, &Fault::armed(Name::Certificate).set("kind", kind)).unwrap();
        let refused = handshake(&scene).await.unwrap_err().to_string();
        assert!(refused.to_lowercase().contains(says), "{refused}");
        scene.write(says).await;
        assert_eq!(faults.hits(id), 1, "of the harness nothing");
        faults.end(id);
        assert_eq!(handshake(&scene).await.unwrap(), right);
    }
}

#[tokio::test]
async fn a_rotated_certificate_is_another_one_and_as_good() {
    let scene = Scene::start().await;
    let right = handshake(&scene).await.unwrap();
    scene.begin(&Fault::armed(Name::Certificate).set("kind", Kind::Rotated));
    let rotated = handshake(&scene).await.unwrap();
    assert_ne!(rotated, right);
    assert_eq!(handshake(&scene).await.unwrap(), rotated, "there is one new certificate, not one for each connection");
    assert_eq!(scene.lists(Protocol::Http2).await, 0);
    assert_eq!(scene.hits(), 3);
}
