//! Witness `http`: the subject posts JSON lines to `$LONGHAUL_WITNESS_URL`.
//!
//! Each posted line is one observation: `{"uid": "…", "resourceVersion": "…", "change": "added"}`. In a posted line the
//! key `type` is accepted instead of `change`. A posted line can also be a whole Kubernetes watch event (`{"type":
//! "ADDED", "object": {…}}`), because many clients already have such events. `BOOKMARK` and `ERROR` events prove
//! nothing. All other keys of a posted line are ignored. The HTTP answer is 204, or 400 with the line number and the
//! reason.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use facts::Observation;
use record::Sees;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sources::Sources;
use super::{About, Kind, Open, Reporter, Scene, Statement, change};
use crate::accept::{respond, serve_http};

/// Maximum size of a POST's body in bytes: 28,000 observations at 150 bytes a line.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Maximum number of open connections: enough for a subject that opens one for each line, and a limit for a subject
/// that leaks connections.
const CONNECTIONS_MAX: usize = 512;
/// Time limit of a request, so that an unfinished request does not hold a connection for the whole run.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest idle time of a connection: somewhat longer than kube-apiserver's 90 s.
const HEADER_TIMEOUT: Duration = Duration::from_mins(2);

/// The environment variable with the URL to which the subject posts.
const VARIABLE: &str = "LONGHAUL_WITNESS_URL";

/// The keys of `witness: {kind: http}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Http {
    /// Number of unreadable lines that are tolerated. With more unreadable lines, the run is invalid. Default:
    /// unreadable lines make the run invalid only if a version looks missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerate: Option<u64>,
}

impl Kind for Http {
    const NAME: &'static str = "http";
    const REMEDY: &'static str = "Does it post JSON lines to $LONGHAUL_WITNESS_URL for every event that it handles?";

    fn sees(&self, _: &About) -> Sees {
        Sees::ALL
    }

    fn tolerates(&self) -> Option<u64> {
        self.tolerate
    }

    /// Listens for the subject's reports on a free port of this machine.
    async fn open(&self, reporter: &Reporter, scene: &Scene) -> anyhow::Result<Open> {
        let listener = TcpListener::bind((scene.machine, 0)).await?;
        let url = format!("http://{}/observe", listener.local_addr()?);
        let mut accepting = JoinSet::new();
        accepting.spawn(receive(listener, reporter.clone(), Arc::default()));
        Ok(Open { variables: vec![(VARIABLE, url)], _listens: Some(Box::new(accepting)), ..Open::default() })
    }
}

async fn receive(listener: TcpListener, reporter: Reporter, sources: Arc<Mutex<Sources>>) {
    let answer = move |request| answer(request, reporter.clone(), Arc::clone(&sources));
    serve_http(listener, CONNECTIONS_MAX, Some(HEADER_TIMEOUT), answer).await;
}

async fn answer(request: Request<Incoming>, reporter: Reporter, sources: Arc<Mutex<Sources>>) -> Response<Full<Bytes>> {
    if request.method() != Method::POST {
        return respond(StatusCode::METHOD_NOT_ALLOWED, "the witness takes POST of JSON lines\n");
    }
    // Pods of one subject identify themselves: `/observe/NAME`.
    let source = request.uri().path().strip_prefix("/observe/").map(str::to_owned);
    let body = tokio::time::timeout(REQUEST_TIMEOUT, Limited::new(request.into_body(), BODY_BYTES_MAX).collect()).await;
    let body = match body {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) => return respond(StatusCode::BAD_REQUEST, format!("the body could not be read: {error}\n")),
        Err(_) => return respond(StatusCode::REQUEST_TIMEOUT, "the body did not end within 30 s\n"),
    };
    let t_ms = reporter.now_ms();
    let mut refused = None;
    for (number, line) in (1..).zip(body.split(|byte| *byte == b'\n')).filter(|(_, line)| !line.trim_ascii().is_empty())
    {
        match observation(line, t_ms) {
            Ok(Some(observation)) => tell(&reporter, &sources, source.as_deref(), observation).await,
            Ok(None) => {}
            Err(why) => {
                let why = format!("line {number} of a post, {why}");
                reporter.malformed(&String::from_utf8_lossy(line), &why);
                refused.get_or_insert(why);
            }
        }
    }
    match refused {
        None => respond(StatusCode::NO_CONTENT, String::new()),
        Some(why) => respond(StatusCode::BAD_REQUEST, format!("refused: {why}\n")),
    }
}

/// Sends an observation to the run, unless another Pod has already reported the same version. `sources` is locked until
/// the observation is queued. Without the lock, another Pod could queue a newer version first, and the subject would
/// seem to go back to an older version.
async fn tell(reporter: &Reporter, sources: &Mutex<Sources>, source: Option<&str>, observation: Observation) {
    let Some(source) = source else { return reporter.report(Statement::Saw(observation)).await };
    let mut sources = sources.lock().await;
    if sources.passes(source, &observation) {
        reporter.report(Statement::Saw(observation)).await;
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    uid: Option<std::borrow::Cow<'a, str>>,
    #[serde(rename = "resourceVersion", borrow, default)]
    resource_version: Option<std::borrow::Cow<'a, str>>,
    #[serde(alias = "type", borrow)]
    change: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    object: Option<Object<'a>>,
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
}

#[derive(Default, Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    uid: Option<std::borrow::Cow<'a, str>>,
    #[serde(rename = "resourceVersion", borrow, default)]
    resource_version: Option<std::borrow::Cow<'a, str>>,
}

/// Parses the observation in a posted line. A watch event without an object proves nothing and is not an error.
fn observation(line: &[u8], t_ms: u64) -> Result<Option<Observation>, String> {
    let line: Line<'_> = serde_json::from_slice(line).map_err(|error| format!("not an observation: {error}"))?;
    if matches!(&*line.change, "BOOKMARK" | "ERROR") {
        return Ok(None);
    }
    let change = change(&line.change)
        .ok_or_else(|| format!("`change` is `{}`: write added, modified or deleted", line.change))?;
    let inner = line.object.map(|object| object.metadata).unwrap_or_default();
    let (uid, rv) = match (line.uid, line.resource_version) {
        (Some(uid), Some(rv)) => (Some(uid), Some(rv)),
        _ => (inner.uid, inner.resource_version),
    };
    let (Some(uid), Some(rv)) = (uid, rv) else {
        return Err("`uid` or `resourceVersion` is missing".to_owned());
    };
    Ok(Some(Observation { t_ms, uid: (&*uid).into(), revision: (&*rv).into(), change }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::Change;

    #[test]
    fn plain_lines_and_watch_events_are_understood() {
        let plain =
            observation(br#"{"uid":"a","resourceVersion":"7","change":"deleted","name":"x"}"#, 1).unwrap().unwrap();
        assert_eq!((plain.uid.as_str(), plain.revision.as_str(), plain.change), ("a", "7", Change::Deleted));
        let event = br#"{"type":"ADDED","object":{"kind":"Pod","metadata":{"uid":"b","resourceVersion":"9"}}}"#;
        let event = observation(event, 1).unwrap().unwrap();
        assert_eq!((event.uid.as_str(), event.revision.as_str(), event.change), ("b", "9", Change::Added));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let error = |line: &str| observation(line.as_bytes(), 1).unwrap_err();
        assert!(error("{").starts_with("not an observation"));
        assert_eq!(error(r#"{"change":"added"}"#), "`uid` or `resourceVersion` is missing");
        assert_eq!(error(r#"{"type":"ADDED","object":{"kind":"Pod"}}"#), "`uid` or `resourceVersion` is missing");
        assert_eq!(
            error(r#"{"change":"SYNCED","uid":"a","resourceVersion":"1"}"#),
            "`change` is `SYNCED`: write added, modified or deleted"
        );
    }

    /// A subject may also post watch events that have no object, such as bookmarks.
    #[test]
    fn what_is_about_no_object_is_no_mistake() {
        for line in [
            r#"{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12"}}}"#,
            r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#,
        ] {
            assert_eq!(observation(line.as_bytes(), 1), Ok(None), "{line}");
        }
    }

    /// Two Pods of a subject report the same versions at the same time. The subject does not seem to go back to an
    /// older version.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn pods_do_not_overtake_each_other_between_comparison_and_queue() {
        const VERSIONS: u64 = 20_000;
        let (reporter, mut reported) = crate::witness::channel(crate::clock::Clock::default());
        let sources: Arc<Mutex<Sources>> = Arc::default();
        let pod = |name: &'static str| {
            let (reporter, sources) = (reporter.clone(), Arc::clone(&sources));
            tokio::spawn(async move {
                for version in 1..=VERSIONS {
                    let revision = version.to_string().as_str().into();
                    let seen = Observation { t_ms: 0, uid: "u".into(), revision, change: Change::Modified };
                    tell(&reporter, &sources, Some(name), seen).await;
                }
            })
        };
        let pods = [pod("old"), pod("new")];
        for version in 1..=VERSIONS {
            let Some(Statement::Saw(seen)) = reported.statements.recv().await else {
                panic!("nothing after {version}")
            };
            assert_eq!(seen.revision.number(), Some(version));
        }
        for pod in pods {
            pod.await.unwrap();
        }
        assert!(reported.statements.try_recv().is_err(), "each version once");
    }

    /// The listener's task ends with the witness, even if a subject keeps its connection open.
    #[tokio::test]
    async fn connections_end_with_the_witness() {
        use tokio::io::AsyncReadExt as _;
        let (reporter, _witness) = crate::witness::channel(crate::clock::Clock::default());
        let witness = Http::default().open(&reporter, &crate::witness::nowhere()).await.unwrap();
        let (name, url) = &witness.variables[0];
        assert_eq!(*name, VARIABLE);
        let address = url.trim_start_matches("http://").trim_end_matches("/observe").to_owned();
        let mut open = tokio::net::TcpStream::connect(&address).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut open, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        assert_eq!(open.read_u8().await.unwrap(), b'H', "it was served");
        drop(witness);
        let mut rest = Vec::new();
        let _ = open.read_to_end(&mut rest).await;
        let mut late = tokio::net::TcpStream::connect(address).await;
        let refused = match &mut late {
            Ok(stream) => stream.read_u8().await.is_err(),
            Err(_) => true,
        };
        assert!(refused, "nobody listens any more");
    }
}
