//! Tests of compressed answers, which kube-apiserver accepts and webhooks behind some middleware send.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderValue};

use crate::server::{Server, respond};
use crate::webhook::{H1, body, plan, right, run, target};

fn packed(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

/// A client that requests compression as kube-apiserver does gets every answer compressed, and counts each by its
/// contents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packed_answers_are_read() {
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let server = Server::start(&[b"h2", b"http/1.1"], move |request| {
        let count = Arc::clone(&count);
        async move {
            let wanted = request.headers().get(ACCEPT_ENCODING).cloned();
            count.fetch_add(u64::from(wanted == Some(HeaderValue::from_static("gzip"))), Ordering::SeqCst);
            let answer = right(&body(request).await).to_string();
            let mut response = respond(200, "application/json", packed(answer.as_bytes()));
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        }
    })
    .await;
    for client in ["apiserver", "no-reuse", "http2"] {
        let interval = run(plan(100, &format!(r#""client": "{client}""#)), &target(&server)).await;
        assert_eq!((interval.errors(), interval.counts.wrong_verdicts), (0, 0), "{:?}", interval.examples);
        assert!(interval.counts.allowed > 0 && interval.counts.denied > 0, "{client}: {:?}", interval.counts);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 300, "every request allows it");
}

/// A body of a hundred KiB contains a hundred MiB of compressed spaces. The client decompresses no more than the limit
/// of an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bomb_is_an_invalid_answer() {
    let bomb = packed(&vec![b' '; 100 << 20]);
    assert!(bomb.len() < 1 << 20, "{}", bomb.len());
    let server = Server::start(H1, move |request| {
        let mut response = respond(200, "application/json", bomb.clone());
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        async move {
            body(request).await;
            response
        }
    })
    .await;
    let interval = run(plan(5, ""), &target(&server)).await;
    assert_eq!((interval.counts.invalid_response, interval.errors()), (5, 5), "{:?}", interval.examples);
    assert!(
        interval.examples[0].contains("the body is larger than 4 MiB when it is unpacked"),
        "{:?}",
        interval.examples
    );
}
