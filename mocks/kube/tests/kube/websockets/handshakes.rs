//! Tests of which requests become a WebSocket, and of the answers to requests that do not.

use tokio::io::AsyncReadExt as _;

use super::{HEADERS, ask};
use crate::client::{PATIENCE, World};
use crate::{CONFIG_MAPS, PACKAGES};

/// The headers of a valid handshake of the subject, with the headers in `changed` replaced; an empty value removes a
/// header.
fn but(changed: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    let all = HEADERS.into_iter().chain([("Authorization", "Bearer subject-token")]);
    let kept = all.filter(|(name, _)| !changed.iter().any(|(other, _)| other == name));
    kept.chain(changed.iter().copied().filter(|(_, value)| !value.is_empty())).collect()
}

#[tokio::test]
async fn a_good_handshake_is_answered_as_a_real_server_does() {
    let world = World::start().await;
    let watch = format!("{PACKAGES}?watch=true");
    for changed in [
        &[][..],
        &[("Sec-WebSocket-Protocol", "v4.channel.k8s.io")],
        &[("Connection", "keep-alive, Upgrade"), ("Upgrade", "WebSocket")],
    ] {
        let answered = ask(&world, &watch, &but(changed)).await;
        let lines: Vec<&str> = answered.head.lines().collect();
        assert_eq!(lines[0], "http/1.1 101 switching protocols");
        // RFC 6455's own example.
        for line in ["upgrade: websocket", "connection: upgrade", "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="]
        {
            assert!(lines.contains(&line), "{line} in {lines:?}");
        }
        let protocol = lines.iter().find_map(|line| line.strip_prefix("sec-websocket-protocol: "));
        let wanted = changed.iter().find(|(name, _)| *name == "Sec-WebSocket-Protocol");
        assert_eq!(protocol, wanted.map(|(_, value)| *value));
    }
    assert_eq!(world.server.traffic("subject").watches_opened, 3);
}

#[tokio::test]
async fn a_bad_handshake_is_told_so_and_the_connection_is_closed() {
    let world = World::start().await;
    let watch = format!("{PACKAGES}?watch=true");
    for (changed, status, words) in [
        (&[("Sec-WebSocket-Key", "")][..], "400 bad request", "mismatch challenge/response"),
        (&[("Sec-WebSocket-Version", "8")], "400 bad request", "missing or bad WebSocket Version"),
        (&[("Origin", "")], "403 forbidden", ""),
        (&[("Origin", "null")], "403 forbidden", ""),
        (&[("Sec-WebSocket-Protocol", "one, two")], "400 bad request", ""),
        (&[("Connection", "keep-alive"), ("Connection", "Upgrade")], "400 bad request", "not websocket protocol"),
    ] {
        let mut answered = ask(&world, &watch, &but(changed)).await;
        assert!(answered.head.starts_with(&format!("http/1.1 {status}")), "{changed:?}: {}", answered.head);
        assert_eq!(answered.head.contains("sec-websocket-version: 13"), words.ends_with("Version"), "{changed:?}");
        let rest = answered.io.read_to_end(&mut answered.rest);
        tokio::time::timeout(PATIENCE, rest).await.expect("an end in time").unwrap();
        assert_eq!(String::from_utf8(answered.rest).unwrap(), words, "{changed:?}");
    }
    let refused = world.server.requests().iter().filter(|request| matches!(request.status, 400 | 403)).count();
    assert_eq!((refused, world.server.traffic("subject").watches_open), (6, 0));
}

/// A request for a WebSocket that is refused before its stream begins, or that does not ask for a stream, gets the
/// usual HTTP answer.
#[tokio::test]
async fn only_an_accepted_watch_becomes_a_websocket() {
    let world = World::start().await;
    let watch = format!("{PACKAGES}?watch=true");
    for (path, changed, status) in [
        (&watch[..], &[("Authorization", "")][..], "401"),
        (&watch, &[("Authorization", "Bearer nobody's")], "401"),
        (&format!("{watch}&fieldSelector=nonsense"), &[], "400"),
        ("/apis/longhaul.dev/v1/nothing?watch=true", &[], "404"),
        (CONFIG_MAPS, &[], "200"),
        ("/readyz", &[], "200"),
        (&watch, &[("Connection", "keep-alive")], "200"),
        (&watch, &[("Upgrade", "h2c")], "200"),
    ] {
        let answered = ask(&world, path, &but(changed)).await;
        assert!(answered.head.starts_with(&format!("http/1.1 {status} ")), "{path} {changed:?}: {}", answered.head);
        assert!(answered.head.contains("content-type: "), "{}", answered.head);
    }
}
