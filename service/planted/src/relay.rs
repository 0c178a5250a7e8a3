//! An API server that stands between a role and the real API server. The relay forwards requests and answers, and
//! falsifies those that the bug concerns.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, stream};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use parking_lot::Mutex;
use serde_json::{Value, json};
use service_core::kube::Cluster;
use service_core::wire::{Error, Stream};
use tokio::time::sleep;

use super::Bug;
use super::loopback::{Body, listen, response};
use super::upstream::{Upstream, kubeconfig};

const PACKAGES: &str = "/apis/longhaul.dev/v1alpha1/packages";
const POLICIES: &str = "/apis/networking.k8s.io/v1/networkpolicies";
const DEPLOYMENTS: &str = "/apis/apps/v1/deployments";

/// One of this many changes of a replica count is lost.
const LOST_EVERY: u64 = 5;
/// Delay before the bug `ignore-410` repeats a refused watch.
const AGAIN: Duration = Duration::from_secs(1);

struct Relay {
    upstream: Upstream,
    bug: Bug,
    writes: AtomicU64,
    /// Whether the relay has seen a complete list.
    listed: AtomicBool,
    /// The paths of packages that are being deleted.
    going: Mutex<BTreeSet<String>>,
}

/// Whether `bug` needs the falsifying API server.
pub fn is_needed(bug: Bug) -> bool {
    use Bug::{Ignore410, LostUpdate, NoChildWatch, OldChild, OrphanedChild};
    matches!(bug, Ignore410 | NoChildWatch | OrphanedChild | OldChild | LostUpdate)
}

/// The kubeconfig of a falsifying server in front of `cluster`, and the future that serves it.
pub async fn before(cluster: Cluster, bug: Bug) -> anyhow::Result<(PathBuf, BoxFuture<'static, ()>)> {
    let upstream = Upstream::new(cluster);
    let relay = Arc::new(Relay {
        upstream,
        bug,
        writes: AtomicU64::new(0),
        listed: AtomicBool::new(false),
        going: Mutex::default(),
    });
    let (address, serve) = listen(Arc::new(move |request| Arc::clone(&relay).answer(request).boxed())).await?;
    Ok((kubeconfig(address)?, serve))
}

impl Relay {
    async fn answer(self: Arc<Self>, mut request: Request<Bytes>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        if query.contains("watch=true") {
            return self.watch(request, &path, &query).await;
        }
        let lists = request.method() == Method::GET && [PACKAGES, DEPLOYMENTS].contains(&path.as_str());
        let of_policy = path.contains("/networkpolicies/");
        self.note_going(&path, request.body());
        match self.bug {
            Bug::Ignore410 if lists && self.listed.load(Ordering::Relaxed) => return std::future::pending().await,
            Bug::OldChild if of_policy && request.method() == Method::PATCH => {
                return response(StatusCode::OK, request.into_body());
            }
            Bug::OrphanedChild if of_policy && request.method() == Method::DELETE && self.is_of_a_going(&path) => {
                *request.method_mut() = Method::PATCH;
                let merge = http::HeaderValue::from_static("application/merge-patch+json");
                request.headers_mut().insert(header::CONTENT_TYPE, merge);
                *request.body_mut() = json!({"metadata": {"ownerReferences": null}}).to_string().into();
            }
            Bug::LostUpdate
                if path.ends_with("/scale")
                    && request.method() == Method::PUT
                    && self.writes.fetch_add(1, Ordering::Relaxed) % LOST_EVERY == LOST_EVERY - 1 =>
            {
                *request.uri_mut() = format!("{path}?dryRun=All").parse().unwrap_or_default();
            }
            _ => {}
        }
        let (status, body) = match self.upstream.send(request).await {
            Ok(answer) => (answer.status(), answer.into_body()),
            Err(error) => return response(StatusCode::BAD_GATEWAY, error.to_string()),
        };
        if status == StatusCode::OK && lists && is_complete(&body) {
            self.listed.store(true, Ordering::Relaxed);
        }
        if self.bug == Bug::NoChildWatch && path == POLICIES && status == StatusCode::OK {
            return response(status, without_items(&body));
        }
        response(status, body)
    }

    /// Records whether a package is being deleted, according to its object.
    fn note_going(&self, path: &str, body: &[u8]) {
        let Some(package) = path.strip_suffix("/status").and_then(|path| path.split_once("/namespaces/")) else {
            return;
        };
        let package = package.1.replace("/packages/", "/networkpolicies/") + "-";
        let status: Value = serde_json::from_slice(body).unwrap_or_default();
        if status["status"]["phase"] == "Removing" {
            self.going.lock().insert(package);
        } else {
            self.going.lock().remove(&package);
        }
    }

    /// Whether a policy belongs to a package that is being deleted: its name begins with the package's name.
    fn is_of_a_going(&self, path: &str) -> bool {
        let policy = path.split_once("/namespaces/").map_or(path, |(_, policy)| policy);
        self.going.lock().iter().any(|package| policy.starts_with(package.as_str()))
    }

    async fn watch(self: Arc<Self>, request: Request<Bytes>, path: &str, query: &str) -> Response<Body> {
        let from = query.split('&').find_map(|part| part.strip_prefix("resourceVersion=")).unwrap_or_default();
        let lies = match self.bug {
            Bug::Ignore410 => [PACKAGES, DEPLOYMENTS].contains(&path),
            Bug::NoChildWatch => path == POLICIES,
            _ => false,
        };
        let stream = match self.upstream.open(request.clone()).await {
            Ok(answer) if answer.status() == StatusCode::OK => Some(answer.into_body()),
            Ok(_) | Err(_) if lies && self.bug == Bug::Ignore410 => None,
            Ok(answer) => {
                let (head, mut stream) = answer.into_parts();
                return response(head.status, stream.chunk().await.ok().flatten().unwrap_or_default());
            }
            Err(error) => return response(StatusCode::BAD_GATEWAY, error.to_string()),
        };
        let from = from.to_owned();
        let watched =
            Watched { relay: self, request, from, stream, lies, rest: Vec::new(), delivered: false, over: false };
        let pieces = stream::unfold(watched, |mut watched| async move {
            let piece = watched.next().await?;
            Some((piece.map(Frame::data), watched))
        });
        Response::new(StreamBody::new(pieces).boxed_unsync())
    }
}

struct Watched {
    relay: Arc<Relay>,
    request: Request<Bytes>,
    from: String,
    stream: Option<Stream>,
    lies: bool,
    /// The bytes of a line that is not complete yet.
    rest: Vec<u8>,
    delivered: bool,
    over: bool,
}

impl Watched {
    async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        loop {
            if self.over {
                return None;
            }
            let Some(stream) = &mut self.stream else { return Some(Ok(self.again().await)) };
            let chunk = match stream.chunk().await {
                Ok(chunk) => chunk?,
                Err(error) => return Some(Err(error)),
            };
            if !self.lies {
                return Some(Ok(chunk));
            }
            self.rest.extend_from_slice(&chunk);
            let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
            let lines: Vec<u8> = self.rest.drain(..whole).collect();
            let mut out = Vec::with_capacity(lines.len());
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                match self.relay.bug {
                    Bug::Ignore410 if is_gone(line) => {
                        // A client that got data asks again from its own position.
                        (self.stream, self.over) = (None, self.delivered || !out.is_empty());
                        break;
                    }
                    Bug::NoChildWatch if !is_of(line, "BOOKMARK") && !is_of(line, "ERROR") => {}
                    _ => out.extend_from_slice(line),
                }
            }
            if !out.is_empty() {
                self.delivered = true;
                return Some(Ok(out.into()));
            }
        }
    }

    /// Repeats the watch with the same version; while it waits, the client gets an empty line.
    async fn again(&mut self) -> Bytes {
        sleep(AGAIN).await;
        let answer = self.relay.upstream.open(self.request.clone()).await;
        self.rest.clear();
        self.stream = answer.ok().filter(|answer| answer.status() == StatusCode::OK).map(Response::into_body);
        let nothing = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": self.from}}});
        format!("{nothing}\n").into()
    }
}

/// Whether a line of a watch has the event type `kind`.
fn is_of(line: &[u8], kind: &str) -> bool {
    let event: Value = serde_json::from_slice(line).unwrap_or_default();
    event["type"] == kind
}

/// Whether a line of a watch says that its version is expired (410).
fn is_gone(line: &[u8]) -> bool {
    let event: Value = serde_json::from_slice(line).unwrap_or_default();
    event["type"] == "ERROR" && event["object"]["code"] == 410
}

/// Whether a list has no further pages.
fn is_complete(body: &[u8]) -> bool {
    let list: Value = serde_json::from_slice(body).unwrap_or_default();
    list["metadata"]["continue"].as_str().is_none_or(str::is_empty)
}

fn without_items(body: &[u8]) -> Vec<u8> {
    let mut list: Value = serde_json::from_slice(body).unwrap_or_default();
    list["items"] = json!([]);
    if let Some(metadata) = list["metadata"].as_object_mut() {
        metadata.remove("continue");
    }
    serde_json::to_vec(&list).unwrap_or_default()
}
