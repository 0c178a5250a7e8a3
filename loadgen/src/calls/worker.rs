//! The worker of the calls: makes them, follows the commits, and passes answers to the oracle.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue};
use http::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::oracle::{Content, Oracle, Reply};
use super::plan::{NAMESPACE, Operation, Plan, Verb, first_count, name, number};
use super::{Error, Identity, Shared, Target};
use crate::audit::{Audit, Entry, Source};
use crate::churn::Api;
use crate::churn::api::Client;
use crate::failure::{Class, Failure};
use crate::open_loop::{Due, Moments, Workload};
use crate::wire::{Answer, Body, Endpoint, Http1, Progress, Tls};
use facts::Change;

/// Maximum number of calls in flight; a further call counts as overflow.
const IN_FLIGHT_MAX: usize = 1000;
/// Maximum number of idle connections that are kept, as in a client library.
const IDLE_MAX: usize = 64;
/// Maximum number of commits that are taken at once.
const BATCH: usize = 4096;
/// How many Deployments are created at the same time.
const FILL_AT_ONCE: usize = 32;
/// How often answers are judged.
const JUDGE: Duration = Duration::from_millis(200);
/// Number of Deployments on a page of a list.
const PAGE: u32 = 1000;

/// The request to judge all remaining answers; the channel reports when that is done.
#[derive(Debug)]
pub(super) struct Settle(pub(super) oneshot::Sender<()>);

struct Finished {
    operation: Operation,
    moments: Moments,
    result: Result<Answer, Failure>,
}

pub(super) struct Worker {
    /// The clients of the calls; `None` after the calls have stopped, because a server that drains may wait for open
    /// connections.
    caller: Option<Arc<Caller>>,
    audit: Audit,
    oracle: Oracle,
    shared: Arc<Shared>,
    tasks: JoinSet<Finished>,
    is_audited: bool,
}

struct Caller {
    authority: HeaderValue,
    client: Arc<Http1>,
    intruders: Vec<(String, Arc<Http1>)>,
    control_plane: Client,
    timeout: Duration,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    namespace: String,
    name: String,
    replica_count: i64,
}

impl Workload for Worker {
    type Operation = Operation;
    type Order = Settle;
    const EVERY: Duration = JUDGE;

    fn accept(&mut self, due: Due<Operation>) {
        let caller = self.caller.clone().filter(|_| self.tasks.len() < IN_FLIGHT_MAX);
        let Some(caller) = caller else {
            self.shared.recorder.lock().counts().overflow += 1;
            return;
        };
        self.shared.recorder.lock().sent(due.lateness());
        self.tasks.spawn(async move {
            let (moments, result) = Moments::of(due.planned, caller.call(due.item)).await;
            Finished { operation: due.item, moments, result }
        });
    }

    async fn ended(&mut self) -> bool {
        let Some(finished) = self.tasks.join_next().await else { return false };
        self.handle(finished);
        true
    }

    /// Waits until the harness has seen all commits that the last answers can contain, then judges all answers.
    async fn obey(&mut self, Settle(reply): Settle) {
        let stopped = Instant::now();
        while self.oracle.is_waiting() && stopped.elapsed() < self.oracle.patience() {
            tokio::time::sleep(JUDGE).await;
            self.judge(false);
        }
        self.judge(true);
        // The receiver may be gone.
        let _ = reply.send(());
    }

    fn tick(&mut self) {
        self.judge(false);
    }

    async fn abandon(&mut self) {
        self.shared.recorder.lock().counts().abandoned += self.tasks.len() as u64;
        self.tasks.shutdown().await;
    }

    async fn stopped(&mut self) {
        self.caller = None;
    }
}

impl Worker {
    pub(super) fn new(
        plan: &Plan,
        target: &Target,
        api: &Api,
        audit: Audit,
        shared: Arc<Shared>,
    ) -> Result<Self, Error> {
        let caller = Caller::new(plan, target, api)?;
        let mut worker = Self {
            caller: Some(Arc::new(caller)),
            audit,
            oracle: Oracle::default(),
            shared,
            tasks: JoinSet::new(),
            is_audited: true,
        };
        worker.catch_up();
        Ok(worker)
    }

    fn handle(&mut self, finished: Result<Finished, tokio::task::JoinError>) {
        match finished {
            Ok(finished) => self.finish(finished),
            Err(error) => tracing::error!(%error, "a call panicked"),
        }
    }

    fn finish(&mut self, finished: Finished) {
        let Finished { operation, moments, result } = finished;
        let (response, Moments { begun: sent, ended: answered, .. }) = (moments.response(), moments);
        let told = |deployment, what| Reply { deployment, what, sent, answered };
        let mut recorder = self.shared.recorder.lock();
        match operation.verb {
            Verb::Other => match result {
                Ok(answer) if answer.status.is_success() => recorder.counts().by_others += 1,
                Ok(answer) => recorder.others_failed(&answer.status.to_string()),
                Err(failure) => recorder.others_failed(&failure.text),
            },
            Verb::Intruder => match result {
                // Any answer except a refusal of the certificate means that the caller was accepted.
                Ok(answer) if !matches!(answer.status.as_u16(), 401 | 403) => {
                    let who = self.caller.as_ref().map_or("somebody", |caller| caller.intruder(operation));
                    recorder.let_in(who, &answer.status.to_string());
                }
                // An alert in the handshake, or a closed connection: with TLS 1.3 a refusal comes after the client's
                // handshake is complete.
                Ok(_) | Err(Failure { class: Class::Tls | Class::HttpError, .. }) => recorder.counts().turned_away += 1,
                Err(_) => recorder.counts().unanswered += 1,
            },
            Verb::Set => match success(result, operation) {
                Ok(_) => {
                    recorder.set(response);
                    self.oracle.note(told(operation.deployment, Content::Set(operation.number.into())));
                }
                Err(failure) => recorder.failed(&failure),
            },
            Verb::Get => match result {
                Ok(answer) if answer.status.as_u16() == 404 => {
                    self.oracle.note(told(operation.deployment, Content::Absent));
                }
                result => match success(result, operation).and_then(|answer| count(&answer)) {
                    Ok(count) => {
                        recorder.read(response);
                        self.oracle.note(told(operation.deployment, Content::Count(count)));
                    }
                    Err(failure) => recorder.failed(&failure),
                },
            },
            Verb::List => match success(result, operation).and_then(|answer| listed(&answer)) {
                Ok(listed) => {
                    recorder.read(response);
                    for (deployment, count) in listed {
                        self.oracle.note(told(deployment, Content::Count(count)));
                    }
                }
                Err(failure) => recorder.failed(&failure),
            },
        }
    }

    /// Reads commits, and judges the answers that have waited long enough.
    fn judge(&mut self, everything: bool) {
        self.catch_up();
        let found = self.oracle.judge(Instant::now(), everything);
        let unjudged = std::mem::take(&mut self.oracle.unjudged);
        let mut recorder = self.shared.recorder.lock();
        recorder.counts().unjudged += unjudged;
        if !self.is_audited {
            // The harness has a gap of its own, so these answers are not judged.
            recorder.counts().unjudged += found.len() as u64;
            return;
        }
        for found in found {
            recorder.found(found);
        }
    }

    fn catch_up(&mut self) {
        while self.is_audited {
            match self.audit.try_batch(BATCH) {
                Ok(batch) if batch.is_empty() => return,
                Ok(batch) => batch.iter().for_each(|entry| self.committed(entry)),
                Err(error) => {
                    tracing::error!(%error, "the committed counts are no longer known");
                    self.is_audited = false;
                }
            }
        }
    }

    fn committed(&mut self, entry: &Entry) {
        let Entry { commit, .. } = entry;
        if &*commit.namespace != NAMESPACE || commit.change == Change::Deleted {
            return;
        }
        let count = entry.fields.first().and_then(Value::as_i64).unwrap_or(1);
        if let Some(deployment) = number(&commit.name) {
            if entry.source == Source::Relisted {
                self.oracle.unseen(deployment);
            }
            self.oracle.committed(deployment, entry.at, count);
        }
    }
}

impl Caller {
    fn new(plan: &Plan, target: &Target, api: &Api) -> Result<Self, Error> {
        let problem = |error: crate::wire::EndpointError| Error::Target { problem: error.to_string() };
        let endpoint = |identity: Option<&Identity>, resumption| {
            let identity = identity.map(|one| (one.certificate_pem.as_str(), one.key_pem.as_str()));
            let tls = Tls { alpn: b"http/1.1", resumption, identity, pace: None };
            Endpoint::with(&target.url, "localhost", &target.ca_pem, tls).map_err(problem)
        };
        let client = endpoint(Some(&target.client), true)?;
        let bad = |_| Error::Target { problem: format!("`{}` is no address", target.url) };
        let authority = HeaderValue::from_str(&client.authority).map_err(bad)?;
        let intruders = target.intruders.iter().map(|intruder| {
            // Each call uses a new connection, because the handshake is under test.
            let endpoint = endpoint(intruder.identity.as_ref(), false)?;
            Ok((intruder.name.clone(), Http1::new(endpoint, 0, IDLE_MAX)))
        });
        Ok(Self {
            authority,
            client: Http1::new(client, IDLE_MAX, IDLE_MAX),
            intruders: intruders.collect::<Result<_, Error>>()?,
            control_plane: Client::new(api)?,
            timeout: plan.config().timeout.0,
        })
    }

    fn intruder(&self, operation: Operation) -> &str {
        self.intruder_of(operation).map_or("nobody", |(name, _)| name)
    }

    fn intruder_of(&self, operation: Operation) -> Option<&(String, Arc<Http1>)> {
        let index = usize::try_from(operation.number).unwrap_or(0) % self.intruders.len().max(1);
        self.intruders.get(index)
    }

    async fn call(&self, operation: Operation) -> Result<Answer, Failure> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/deployments/{}/replicas", name(operation.deployment));
        let body = || json!({"replicaCount": operation.number}).to_string();
        match operation.verb {
            Verb::Get => self.send(&self.client, Method::GET, &path, String::new()).await,
            Verb::Set => self.send(&self.client, Method::PUT, &path, body()).await,
            Verb::List => {
                let path = format!("/api/v1/deployments?limit={PAGE}");
                self.send(&self.client, Method::GET, &path, String::new()).await
            }
            Verb::Intruder => match self.intruder_of(operation) {
                Some((_, intruder)) => self.send(intruder, Method::GET, &path, String::new()).await,
                None => Err(Failure::invalid("the target has no client that must be refused".to_owned())),
            },
            Verb::Other => {
                let path = format!("{}/scale", deployment_path(operation.deployment));
                let patch = json!({"spec": {"replicas": operation.number}});
                let reply = self.control_plane.merge(&path, &patch).await?;
                Ok(Answer { status: reply.status, content_type: None, body: reply.body })
            }
        }
    }

    async fn send(&self, pool: &Arc<Http1>, method: Method, path: &str, body: String) -> Result<Answer, Failure> {
        let mut request = Request::new(Body::new(Bytes::from(body)));
        *request.uri_mut() = path.parse().map_err(|error| Failure::http(format!("`{path}` is no path: {error}")))?;
        request.headers_mut().insert(HOST, self.authority.clone());
        if method == Method::PUT {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        *request.method_mut() = method;
        let progress = Progress::default();
        let answer = tokio::time::timeout(self.timeout, pool.call(request, &progress)).await;
        answer.unwrap_or_else(|_| Err(progress.timeout(self.timeout)))
    }
}

/// The answer if it is successful; an error otherwise.
fn success(result: Result<Answer, Failure>, operation: Operation) -> Result<Answer, Failure> {
    let answer = result?;
    if answer.status.is_success() {
        return Ok(answer);
    }
    let said = String::from_utf8_lossy(&answer.body).chars().take(200).collect::<String>();
    Err(Failure::http(format!("{:?} was answered {}: {said}", operation.verb, answer.status)))
}

fn count(answer: &Answer) -> Result<i64, Failure> {
    let told: Result<Listed, _> = serde_json::from_slice(&answer.body);
    let told = told.map_err(|error| Failure::invalid(format!("the answer is not that of a count: {error}")))?;
    Ok(told.replica_count)
}

/// The Deployments of the plan in a list from the subject, with their counts.
fn listed(answer: &Answer) -> Result<Vec<(u32, i64)>, Failure> {
    let told: Result<Vec<Listed>, _> = serde_json::from_slice(&answer.body);
    let told = told.map_err(|error| Failure::invalid(format!("the answer is not a list: {error}")))?;
    let ours = told.iter().filter(|one| one.namespace == NAMESPACE);
    Ok(ours.filter_map(|one| Some((number(&one.name)?, one.replica_count))).collect())
}

fn deployment_path(deployment: u32) -> String {
    format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{}", name(deployment))
}

/// Creates the Deployments. An error contains the reason why the control plane refused one.
pub(super) async fn fill(plan: &Plan, api: &Api) -> Result<(), String> {
    let client = Arc::new(Client::new(api).map_err(|error| error.to_string())?);
    let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let mark = client.mark().map(|(key, value)| (key.to_owned(), value.to_owned()));
    if let Some((key, value)) = &mark {
        namespace["metadata"]["labels"] = json!({key: value});
    }
    let reply = client.create("/api/v1/namespaces", &namespace).await.map_err(|failure| failure.text)?;
    // In a shared cluster it would stay when the run removes its own objects.
    if mark.is_some() && reply.status == http::StatusCode::CONFLICT {
        return Err(format!(
            "the namespace {NAMESPACE} already exists, from another run or another user: wait for that run, or delete it"
        ));
    }
    made(Ok(reply))?;
    let mut tasks = JoinSet::new();
    for deployment in 0..plan.config().deployments {
        while tasks.len() >= FILL_AT_ONCE
            && let Some(done) = tasks.join_next().await
        {
            done.map_err(|error| error.to_string())??;
        }
        let client = Arc::clone(&client);
        tasks.spawn(async move {
            let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments");
            made(client.create(&path, &object(deployment)).await)
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.map_err(|error| error.to_string())??;
    }
    Ok(())
}

fn made(reply: Result<crate::churn::api::Reply, Failure>) -> Result<(), String> {
    let reply = reply.map_err(|failure| failure.text)?;
    if reply.is(http::StatusCode::CONFLICT) { Ok(()) } else { Err(reply.failure("create").text) }
}

fn object(deployment: u32) -> Value {
    let labels = json!({"app": name(deployment)});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": NAMESPACE, "name": name(deployment), "labels": labels},
        "spec": {
            // Paused, because only the counts are needed: a controller would make thousands of Pods of them.
            "paused": true, "replicas": first_count(deployment), "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "r.test/app:1"}]}},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Deployments are paused, so that controllers do not create thousands of Pods.
    #[test]
    fn nobody_makes_pods_of_what_is_counted() {
        let made = object(3);
        assert!(made["spec"]["paused"] == true && made["spec"]["replicas"].as_i64() > Some(100), "{made}");
    }
}
