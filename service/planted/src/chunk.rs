//! The planted bug `leaves-a-chunk`: an API server that keeps one chunk when an injection is removed. The clean-up does
//! not notice the chunk and reports success.

use std::path::Path;
use std::sync::{Arc, mpsc};

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use service_core::kube::Cluster;
use service_core::wire::Error;

use super::loopback::{Body, listen, response};
use super::upstream::{Upstream, kubeconfig};

/// The bug's name in `LONGHAUL_PLANTED_BUG`.
pub const LEAVES_A_CHUNK: &str = "leaves-a-chunk";

struct Liar {
    upstream: Upstream,
    left: Mutex<Option<String>>,
}

/// A server with the bug, which forwards requests to the kubeconfig's cluster. A thread runs the server until the
/// process ends.
pub fn cluster(path: Option<&Path>) -> anyhow::Result<Cluster> {
    let liar = Arc::new(Liar { upstream: Upstream::new(Cluster::find(path)?), left: Mutex::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (here, there) = mpsc::channel();
    std::thread::spawn(move || {
        runtime.block_on(async {
            let listening = listen(Arc::new(move |request| Arc::clone(&liar).answer(request).boxed())).await;
            // Without a listener no address arrives.
            if let Ok((address, serve)) = listening {
                let _ = here.send(address);
                serve.await;
            }
        });
    });
    let address = there.recv().context("no port on loopback")?;
    Ok(Cluster::find(Some(&kubeconfig(address)?))?)
}

impl Liar {
    async fn answer(self: Arc<Self>, request: Request<Bytes>) -> Response<Body> {
        match self.lie(request).await {
            Ok(answer) => response(answer.status(), answer.into_body()),
            Err(error) => response(StatusCode::BAD_GATEWAY, error.to_string()),
        }
    }

    async fn lie(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        let path = request.uri().path();
        let (of_all, of_index) = (path.ends_with("/configmaps"), path.ends_with("-index"));
        match *request.method() {
            Method::DELETE if of_all => return self.leave_one(request).await,
            // The chunk's owner is deleted without it, or the garbage collector would sooner or later remove it too.
            Method::DELETE if of_index => {
                let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"});
                *request.body_mut() = options.to_string().into();
            }
            Method::GET if of_all => return Ok(self.upstream.send(request).await?.map(|list| self.hidden(&list))),
            _ => {}
        }
        self.upstream.send(request).await
    }

    async fn leave_one(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        let mut list = request.clone();
        (*list.method_mut(), *list.body_mut()) = (Method::GET, Bytes::new());
        let answer = self.upstream.send(list).await?;
        let listed: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
        let items = listed["items"].as_array().into_iter().flatten();
        let mut names: Vec<_> = items.filter_map(|item| item["metadata"]["name"].as_str()).collect();
        names.sort_unstable();
        let left = names.pop().map(str::to_owned);
        for name in names {
            let mut one = request.clone();
            *one.uri_mut() = format!("{}/{name}", request.uri().path()).parse().unwrap_or_default();
            self.upstream.send(one).await?;
        }
        self.left.lock().get_or_insert(left.unwrap_or_default());
        Ok(answer)
    }

    /// The API server's list, without the chunk that was kept.
    fn hidden(&self, list: &Bytes) -> Bytes {
        let left = self.left.lock();
        let Some(left) = &*left else { return list.clone() };
        let mut list: Value = serde_json::from_slice(list).unwrap_or_default();
        if let Some(items) = list["items"].as_array_mut() {
            items.retain(|item| item["metadata"]["name"] != left.as_str());
        }
        list.to_string().into()
    }
}
