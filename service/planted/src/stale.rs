//! The planted bug `serves-stale-after-relist`: after a relist, reads of replica counts get earlier answers again.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Method, Response};
use http_body_util::Full;
use parking_lot::Mutex;
use serde_json::Value;
use service_core::edge::{Handler, Probe};

/// Maximum number of answers that are remembered: without a limit, the bug would also be a leak, which is another bug.
const REMEMBERED_MAX: usize = 4096;

/// Headers that keep their present values in a repeated answer.
const FRESH: [&str; 3] = ["longhaul-cache-revision", "longhaul-cache-age-ms", "x-request-id"];

/// A handler that remembers the answers of `handler` to reads and repeats them for ever after a relist. Headers about
/// the age of the cache keep their true values.
pub fn around(handler: Handler, probes: Vec<Arc<dyn Probe>>) -> Handler {
    let remembered: Arc<Mutex<HashMap<String, Response<Bytes>>>> = Arc::default();
    let probes: Arc<[_]> = probes.into();
    Arc::new(move |request, peer| {
        let asked = (request.method() == Method::GET).then(|| request.uri().to_string());
        let answered = handler(request, peer);
        let (remembered, probes) = (Arc::clone(&remembered), Arc::clone(&probes));
        async move {
            let answer = answered.await;
            let Some(asked) = asked.filter(|_| answer.status().is_success()) else { return answer };
            let fresh = super::answers::whole(answer).await;
            let mut remembered = remembered.lock();
            let answer = match remembered.get(&asked) {
                Some(known) if probes.iter().any(|probe| has_listed_again(&**probe)) => again(known, &fresh),
                _ => fresh,
            };
            if remembered.len() < REMEMBERED_MAX || remembered.contains_key(&asked) {
                remembered.insert(asked, answer.clone());
            }
            answer.map(Full::new)
        }
        .boxed()
    })
}

/// Whether a watch had to list again because its stream failed.
fn has_listed_again(probe: &dyn Probe) -> bool {
    let page: Value = probe.page().and_then(|page| serde_json::from_str(&page).ok()).unwrap_or_default();
    let lists = page["relists"].as_object().into_iter().flatten();
    lists.filter(|(why, _)| !["start", "interval"].contains(&why.as_str())).any(|(_, count)| count.as_u64() > Some(0))
}

fn again(known: &Response<Bytes>, fresh: &Response<Bytes>) -> Response<Bytes> {
    let mut answer = known.clone();
    for name in FRESH {
        if let Some(value) = fresh.headers().get(name) {
            answer.headers_mut().insert(name, value.clone());
        }
    }
    answer
}
