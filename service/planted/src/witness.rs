//! A receiver of observations in front of the real receiver, which sends some observations twice or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode, header};
use service_core::wire::{Client, Limits, Protocol};
use tokio::time::Instant;

use super::Bug;
use super::loopback::{Body, listen, response};

/// One of this many observations is sent twice.
const REPEATED_EVERY: usize = 10;
/// Time limit of a forwarded post. The service repeats its post after the same time limit.
const POST_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The URL to use instead of `url`, and the future that serves it.
pub async fn between(bug: Bug, url: &str) -> anyhow::Result<(String, BoxFuture<'static, ()>)> {
    let (origin, path) = service_watch::witness_target(url)?;
    let client = Arc::new(Client::new(origin, Protocol::Http1, Limits { open_max: 4, idle_max: 1 }));
    let sent = Arc::new(AtomicUsize::new(0));
    let (address, serve) = listen(Arc::new(move |request| {
        let lines = spoilt(bug, request.body(), &sent);
        post(Arc::clone(&client), path.clone(), lines).boxed()
    }))
    .await?;
    Ok((format!("http://{address}/"), serve))
}

fn spoilt(bug: Bug, lines: &[u8], sent: &AtomicUsize) -> Vec<u8> {
    let mut out = Vec::with_capacity(lines.len());
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let times = match bug {
            Bug::MissedDelete => usize::from(!String::from_utf8_lossy(line).contains(r#""change":"deleted""#)),
            _ => 1 + usize::from(sent.fetch_add(1, Ordering::Relaxed) % REPEATED_EVERY == REPEATED_EVERY - 1),
        };
        (0..times).for_each(|_| out.extend_from_slice(line));
    }
    out
}

async fn post(client: Arc<Client>, path: String, lines: Vec<u8>) -> Response<Body> {
    if lines.is_empty() {
        return response(StatusCode::OK, "");
    }
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/x-ndjson").body(Bytes::from(lines));
    let Ok(request) = request else { return response(StatusCode::BAD_REQUEST, "") };
    match client.fetch(request, ANSWER_BYTES_MAX, Instant::now() + POST_TIMEOUT).await {
        Ok(answer) => response(answer.status(), answer.into_body()),
        Err(error) => response(StatusCode::BAD_GATEWAY, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_are_kept_and_every_tenth_line_is_told_twice() {
        let lines = "{\"change\":\"added\"}\n{\"change\":\"deleted\"}\n".repeat(10);
        let sent = AtomicUsize::new(0);
        let count = |bug| String::from_utf8(spoilt(bug, lines.as_bytes(), &sent)).unwrap().lines().count();
        assert_eq!((count(Bug::MissedDelete), count(Bug::DuplicateEvents)), (10, 22));
    }
}
