//! Tests of answers without a body, on both protocols: a client that gets a body takes the connection for broken.

use http::{Method, header};
use http_body_util::BodyExt as _;

use crate::CONFIG_MAPS;
use crate::client::{PATIENCE, Protocol, World};

/// The status, the announced length, and the number of received bytes.
type Answer = (u16, Option<u64>, usize);

async fn ask(world: &World, protocol: Protocol, method: Method, path: &str) -> Answer {
    let mut client = world.client(protocol, "subject").await;
    let response = client.send(method, path, "").await;
    let status = response.status().as_u16();
    let length = response.headers().get(header::CONTENT_LENGTH).map(|length| length.to_str().unwrap().parse().unwrap());
    let body = tokio::time::timeout(PATIENCE, response.into_body().collect()).await.expect("an end in time");
    (status, length, body.expect("a whole answer").to_bytes().len())
}

#[tokio::test]
async fn an_answer_to_head_tells_its_length_and_ends() {
    let world = World::start().await;
    for path in ["/healthz", "/readyz", "/version"] {
        let (status, length, bytes) = ask(&world, Protocol::Http2, Method::GET, path).await;
        assert_eq!((status, length), (200, Some(bytes as u64)), "{path}");
        for protocol in [Protocol::Http1, Protocol::Http2] {
            assert_eq!(ask(&world, protocol, Method::HEAD, path).await, (status, length, 0), "{protocol:?} {path}");
        }
    }
    for (protocol, path) in
        [(Protocol::Http1, "/longhaul/state"), (Protocol::Http2, "/longhaul/state"), (Protocol::Http2, "/metrics")]
    {
        let (status, length, bytes) = ask(&world, protocol, Method::HEAD, path).await;
        assert!(
            (status, bytes) == (200, 0) && length.is_some_and(|length| length > 0),
            "{protocol:?} {path}: {length:?}"
        );
    }
    // Unknown paths, and paths without HEAD: a refusal has no body either.
    for (path, status) in
        [(CONFIG_MAPS, 405), ("/apis/none/v1/things", 404), ("/longhaul/nothing", 404), ("/nothing", 404)]
    {
        let answers = [
            ask(&world, Protocol::Http1, Method::HEAD, path).await,
            ask(&world, Protocol::Http2, Method::HEAD, path).await,
        ];
        assert_eq!(answers[0], answers[1], "{path}");
        assert_eq!((answers[0].0, answers[0].2), (status, 0), "{path}");
        assert!(answers[0].1.is_some_and(|length| length > 0), "{path}: {answers:?}");
    }
}
