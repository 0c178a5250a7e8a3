//! Compares how a real kube-apiserver, the mock, and the load generator judge the same answers of a webhook.
//!
//! Each case of the table is one answer. The test's webhook answers over TLS with a self-signed certificate that is
//! itself the `caBundle`, as in envtest. The table has the real server's decision in each case; any difference from it
//! is a bug of Longhaul.

use std::convert::Infallible;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use loadgen::admission::{Config, Hook, Load, Operation, Own, Plan, Target};
use loadgen::churn::Expect;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::driver::{self, Endpoint, Raw};
use crate::sequence::{Sequence, Step};
use crate::servers;

/// The result of an API request after the webhook's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Allowed,
    Denied,
    /// The request fails, because the call or the webhook's patch failed.
    Failed,
}

use Decision::{Allowed, Denied, Failed};

struct Case {
    what: &'static str,
    mutating: bool,
    status: u16,
    /// The content type of the answer; `None` if it has no such header.
    content_type: Option<&'static str>,
    packed: bool,
    /// The body of the webhook's answer. In the body, `UID` is replaced by the uid of the review.
    body: String,
    decision: Decision,
}

const PATH: &str = "/api/v1/namespaces/{ns}/configmaps?dryRun=All";
/// Time limit until kube-apiserver uses a new webhook configuration. Usually kube-apiserver uses it after a second, on
/// a busy machine later.
const EFFECT: Duration = Duration::from_secs(30);

fn review(response: &str) -> String {
    format!(r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{response}}}"#)
}

fn case(what: &'static str, response: &str, decision: Decision) -> Case {
    raw(what, &review(response), decision)
}

fn raw(what: &'static str, body: &str, decision: Decision) -> Case {
    Case { what, mutating: true, status: 200, content_type: None, packed: false, body: body.to_owned(), decision }
}

fn patched(what: &'static str, patch: &str, kind: &str, decision: Decision) -> Case {
    let patch = STANDARD.encode(patch);
    case(what, &format!(r#"{{"uid":"UID","allowed":true,"patchType":"{kind}","patch":"{patch}"}}"#), decision)
}

const YES: &str = r#"{"uid":"UID","allowed":true}"#;
const NO: &str = r#"{"uid":"UID","allowed":false,"status":{"metadata":{},"message":"no","code":403}}"#;

fn media() -> Vec<Case> {
    let with =
        |content_type, decision| Case { content_type: Some(content_type), ..case("a content type", YES, decision) };
    vec![
        case("no content type", YES, Allowed),
        with("text/plain; charset=utf-8", Allowed),
        with("text/html", Allowed),
        with("application/json", Allowed),
        with("application/yaml", Allowed),
        with("application/vnd.kubernetes.protobuf", Allowed),
        with("anything", Allowed),
        with("text/plain; charset=\"utf-8\";", Allowed),
        with("text/", Failed),
        with("text/plain; charset", Failed),
        with("text/plain; a=1; a=2", Failed),
        with(";", Failed),
        with("text plain", Failed),
        Case { packed: true, ..case("gzip", YES, Allowed) },
        Case { content_type: Some("text/plain"), packed: true, ..case("gzip of a denial", NO, Denied) },
    ]
}

fn statuses() -> Vec<Case> {
    let with = |status, decision| Case { status, ..case("a status", YES, decision) };
    let none = |status| Case { status, ..raw("no body", "", Failed) };
    vec![
        with(201, Allowed),
        with(202, Allowed),
        with(206, Allowed),
        with(207, Failed),
        with(300, Failed),
        with(400, Failed),
        with(403, Failed),
        with(500, Failed),
        none(200),
        none(204),
    ]
}

fn shapes() -> Vec<Case> {
    let kind = |kind: &str, version: &str| format!(r#"{{"kind":"{kind}","apiVersion":"{version}","response":{YES}}}"#);
    let yaml = "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nresponse:\n  uid: UID\n  allowed: true\n";
    vec![
        raw("YAML", yaml, Allowed),
        raw("YAML with a comment", &format!("# yes\n{yaml}"), Allowed),
        raw("text", "oops", Failed),
        raw("HTML", "<html></html>", Failed),
        raw("a list", "[]", Failed),
        raw("an empty object", "{}", Failed),
        raw("white space around", &format!(" \n{}\n ", review(YES)), Allowed),
        raw("something behind it", &format!("{} x", review(YES)), Failed),
        raw("another object behind it", &format!("{0}{0}", review(YES)), Failed),
        raw("a broken object", &review(YES)[..60], Failed),
        raw("no kind", &format!(r#"{{"apiVersion":"admission.k8s.io/v1","response":{YES}}}"#), Failed),
        raw("no version", &format!(r#"{{"kind":"AdmissionReview","response":{YES}}}"#), Failed),
        raw("the older version", &kind("AdmissionReview", "admission.k8s.io/v1beta1"), Failed),
        raw("another kind", &kind("Review", "admission.k8s.io/v1"), Failed),
        raw("a status object", r#"{"kind":"Status","apiVersion":"v1","status":"Success"}"#, Failed),
        raw("two kinds", &review(YES).replacen('{', r#"{"Kind":"Status","#, 1), Allowed),
        raw(
            "two kinds, the wrong one last",
            &review(YES).replace("\"response\"", "\"KIND\":\"Status\",\"response\""),
            Failed,
        ),
        raw("keys of another case", &review(YES).replace("response", "Response"), Failed),
        raw("a key that nobody knows", &review(YES).replacen('{', r#"{"more":{"a":[1]},"#, 1), Allowed),
        raw(
            "the same key twice",
            &review(YES).replace(r#""allowed":true"#, r#""allowed":false,"allowed":true"#),
            Allowed,
        ),
        raw(
            "two responses",
            &review(r#"{"uid":"UID"}"#).replace(r#""response":"#, r#""response":{"allowed":true},"response":"#),
            Allowed,
        ),
        raw("no response", &review("null"), Failed),
        raw(
            "the request as well",
            &review(YES).replacen('{', r#"{"request":{"uid":"x","object":{"a":1},"dryRun":null},"#, 1),
            Allowed,
        ),
        raw("a request of other types", &review(YES).replacen('{', r#"{"request":{"uid":7},"#, 1), Failed),
        raw(
            "large",
            &review(&format!(r#"{{"uid":"UID","allowed":true,"auditAnnotations":{{"a":"{}"}}}}"#, "x".repeat(2 << 20))),
            Allowed,
        ),
    ]
}

fn responses() -> Vec<Case> {
    let mut all = vec![
        case("a denial", NO, Denied),
        case("nothing but the uid", r#"{"uid":"UID"}"#, Denied),
        case("another uid", r#"{"uid":"other","allowed":true}"#, Failed),
        case("no uid", r#"{"allowed":true}"#, Failed),
        case("a denial of another uid", r#"{"uid":"other","allowed":false}"#, Failed),
        case("allowed as a text", r#"{"uid":"UID","allowed":"true"}"#, Failed),
        case("allowed as a number", r#"{"uid":"UID","allowed":1}"#, Failed),
        case("allowed as null", r#"{"uid":"UID","allowed":null}"#, Denied),
        case("Allowed", r#"{"uid":"UID","Allowed":true}"#, Denied),
        case("a key that nobody knows", r#"{"uid":"UID","allowed":true,"more":{}}"#, Allowed),
        case("warnings", r#"{"uid":"UID","allowed":true,"warnings":["a\u0000b\n\"","\ud800 ü",""]}"#, Allowed),
        case("warnings as a text", r#"{"uid":"UID","allowed":true,"warnings":"a"}"#, Failed),
        case("warnings as null", r#"{"uid":"UID","allowed":true,"warnings":null}"#, Allowed),
        case("audit annotations", r#"{"uid":"UID","allowed":true,"auditAnnotations":{"a":"b","c/d e":""}}"#, Allowed),
        case("audit annotations of numbers", r#"{"uid":"UID","allowed":true,"auditAnnotations":{"a":1}}"#, Failed),
        case(
            "a status of an allowed one",
            r#"{"uid":"UID","allowed":true,"status":{"metadata":{},"code":200}}"#,
            Allowed,
        ),
        case("a status of success", r#"{"uid":"UID","allowed":false,"status":{"code":200,"message":"no"}}"#, Denied),
        case("a code as a text", r#"{"uid":"UID","allowed":false,"status":{"code":"403"}}"#, Failed),
        case("a code with a point", r#"{"uid":"UID","allowed":false,"status":{"code":403.0}}"#, Failed),
        case("a large code", r#"{"uid":"UID","allowed":false,"status":{"code":3000000000}}"#, Failed),
        case("a message as a number", r#"{"uid":"UID","allowed":false,"status":{"message":7}}"#, Failed),
        case("details", r#"{"uid":"UID","allowed":false,"status":{"details":{"causes":[{"field":"a"}]}}}"#, Denied),
        case("details of other types", r#"{"uid":"UID","allowed":false,"status":{"details":{"causes":{}}}}"#, Failed),
        case("no status", r#"{"uid":"UID","allowed":false,"status":null}"#, Denied),
    ];
    let bytes = format!(r#"{{"uid":"UID","allowed":true,"patchType":"JSONPatch","patch":{:?}}}"#, b"[]".to_vec());
    all.push(case("a patch as numbers", &bytes, Allowed));
    all
}

fn patches() -> Vec<Case> {
    const ADD: &str = r#"[{"op":"add","path":"/data/x","value":"1"}]"#;
    let encoded = STANDARD.encode(ADD);
    let broken = format!("{}\\n{}", &encoded[..20], &encoded[20..]);
    let looks = |what, response: &str, decision| Case { mutating: false, ..case(what, response, decision) };
    vec![
        patched("a patch", ADD, "JSONPatch", Allowed),
        patched("a patch of nothing", "[]", "JSONPatch", Allowed),
        patched("a patch of null", "null", "JSONPatch", Allowed),
        patched("a patch of nothing of another type", "[]", "MergePatch", Allowed),
        patched("a patch of another type", ADD, "MergePatch", Failed),
        patched("a patch of no type", ADD, "", Failed),
        patched("no list", "{}", "JSONPatch", Failed),
        patched("no JSON", "oops", "JSONPatch", Failed),
        patched(
            "an operation that there is not",
            r#"[{"op":"put","path":"/data/x","value":"1"}]"#,
            "JSONPatch",
            Failed,
        ),
        patched("what is not there", r#"[{"op":"remove","path":"/data/none"}]"#, "JSONPatch", Failed),
        patched("a test that fails", r#"[{"op":"test","path":"/data/a","value":"other"}]"#, "JSONPatch", Failed),
        case("a patch without type", &format!(r#"{{"uid":"UID","allowed":true,"patch":"{encoded}"}}"#), Failed),
        case("a type without patch", r#"{"uid":"UID","allowed":true,"patchType":"JSONPatch"}"#, Failed),
        case("an empty patch", r#"{"uid":"UID","allowed":true,"patch":"","patchType":null}"#, Allowed),
        case("no base64", r#"{"uid":"UID","allowed":true,"patchType":"JSONPatch","patch":"!"}"#, Failed),
        case("no base64 of a denial", r#"{"uid":"UID","allowed":false,"patchType":"JSONPatch","patch":"!"}"#, Failed),
        case("base64 without padding", r#"{"uid":"UID","allowed":true,"patchType":"JSONPatch","patch":"W10"}"#, Failed),
        case(
            "base64 with other last bits",
            r#"{"uid":"UID","allowed":true,"patchType":"JSONPatch","patch":"W11="}"#,
            Allowed,
        ),
        case(
            "base64 in lines",
            &format!(r#"{{"uid":"UID","allowed":true,"patchType":"JSONPatch","patch":"{broken}"}}"#),
            Allowed,
        ),
        case("base64 for addresses", r#"{"uid":"UID","allowed":true,"patchType":"JSONPatch","patch":"_-8="}"#, Failed),
        case(
            "a denial with a patch",
            &format!(r#"{{"uid":"UID","patchType":"JSONPatch","patch":"{encoded}"}}"#),
            Denied,
        ),
        case("a denial with half a patch", &format!(r#"{{"uid":"UID","patch":"{encoded}"}}"#), Failed),
        case(
            "a denial with a patch of another type",
            r#"{"uid":"UID","patchType":"MergePatch","patch":"e30="}"#,
            Denied,
        ),
        looks("one that looks", YES, Allowed),
        looks("one that looks and denies", NO, Denied),
        looks(
            "a patch of one that looks",
            &format!(r#"{{"uid":"UID","allowed":true,"patchType":"JSONPatch","patch":"{encoded}"}}"#),
            Failed,
        ),
        looks("a type of one that looks", r#"{"uid":"UID","allowed":true,"patchType":"JSONPatch"}"#, Failed),
        looks("an empty patch of one that looks", r#"{"uid":"UID","allowed":true,"patch":""}"#, Allowed),
    ]
}

fn table() -> Vec<Case> {
    [media(), statuses(), shapes(), responses(), patches()].into_iter().flatten().collect()
}

/// A webhook that gives the answer of the case in the object's label.
struct Webhook {
    url: String,
    certificate_pem: String,
    _tasks: JoinSet<()>,
}

impl Webhook {
    async fn start(table: Arc<Vec<Case>>) -> anyhow::Result<Self> {
        let authority = mock_pki::Authority::generate("somebody else")?;
        let pair = authority.server(&["127.0.0.1"])?;
        let mut tls = rustls::ServerConfig::clone(&*mock_pki::server_config(&pair, None)?);
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://{}", listener.local_addr()?);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((tcp, _)) = listener.accept().await {
                let (acceptor, table) = (acceptor.clone(), Arc::clone(&table));
                serving.spawn(async move {
                    let Ok(stream) = acceptor.accept(tcp).await else { return };
                    let service = service_fn(move |request| answer(request, Arc::clone(&table)));
                    let http = hyper::server::conn::http1::Builder::new();
                    let _ = http.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        // This is the certificate itself, and not the authority.
        let first = pair
            .certificate_pem
            .find("-----END")
            .and_then(|end| pair.certificate_pem[end..].find('\n').map(|line| end + line + 1));
        let certificate_pem = pair.certificate_pem[..first.unwrap_or(pair.certificate_pem.len())].to_owned();
        Ok(Self { url, certificate_pem, _tasks: tasks })
    }
}

async fn answer(request: Request<Incoming>, table: Arc<Vec<Case>>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let request = &review["request"];
    let number = request["object"]["metadata"]["labels"]["case"].as_str().and_then(|text| text.parse::<usize>().ok());
    let case = &table[number.unwrap()];
    let uid = request["uid"].as_str().unwrap();
    let mut body = case.body.replace("UID", uid).into_bytes();
    let mut response = Response::builder().status(case.status);
    if let Some(content_type) = case.content_type {
        response = response.header("content-type", content_type);
    }
    if case.packed {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&body).unwrap();
        body = encoder.finish().unwrap();
        response = response.header("content-encoding", "gzip");
    }
    Ok(response.body(Full::new(Bytes::from(body))).unwrap())
}

fn object(number: usize, case: &Case) -> Value {
    let by = if case.mutating { "changes" } else { "looks" };
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("case-{number}"), "labels": {"case": number.to_string(), "by": by}},
        "data": {"a": "b"},
    })
}

fn configuration(webhook: &Webhook, mutating: bool) -> (&'static str, Value) {
    let (kind, collection, by) = if mutating {
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "changes")
    } else {
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "looks")
    };
    let bundle = STANDARD.encode(&webhook.certificate_pem);
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "answers"},
        "webhooks": [{
            "name": format!("{by}.example.com"), "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "clientConfig": {"url": format!("{}/{by}", webhook.url), "caBundle": bundle},
            "objectSelector": {"matchLabels": {"by": by}},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        }],
    });
    (collection, object)
}

async fn post(endpoint: &Endpoint, path: &str, object: Value) -> anyhow::Result<(u16, Value)> {
    let sequence = Sequence { name: "an answer".to_owned(), steps: vec![Step::post(path, object)] };
    match driver::play(endpoint, &sequence, &crate::namespace()).await?.pop() {
        Some(Raw::Answer { status, body, .. }) => Ok((status, serde_json::from_slice(&body)?)),
        other => anyhow::bail!("no answer: {other:?}"),
    }
}

/// The decision of an API server in each case of the table.
async fn through(endpoint: &Endpoint, webhook: &Webhook, table: &[Case]) -> anyhow::Result<Vec<(Decision, String)>> {
    for mutating in [true, false] {
        let (collection, object) = configuration(webhook, mutating);
        let (status, answer) =
            post(endpoint, &format!("/apis/admissionregistration.k8s.io/v1/{collection}"), object).await?;
        anyhow::ensure!(status == 201, "{answer}");
    }
    // It waits until both webhooks are called.
    for wanted in [true, false] {
        let (number, denial) =
            table.iter().enumerate().find(|(_, case)| case.mutating == wanted && case.decision == Denied).unwrap();
        let until = Instant::now() + EFFECT;
        while post(endpoint, PATH, object(number, denial)).await?.0 == 201 {
            anyhow::ensure!(Instant::now() < until, "the webhooks are not asked after {EFFECT:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let mut decisions = Vec::new();
    for (number, case) in table.iter().enumerate() {
        let (status, answer) = post(endpoint, PATH, object(number, case)).await?;
        let message = answer["message"].as_str().unwrap_or_default().to_owned();
        let decision = match status {
            201 => Allowed,
            _ if message.contains("denied the request") => Denied,
            _ => Failed,
        };
        decisions.push((decision, message));
    }
    Ok(decisions)
}

/// The decision of the load generator in one case; the load generator calls the webhook directly.
async fn directly(webhook: &Webhook, number: usize, case: &Case) -> anyhow::Result<(Decision, String)> {
    let by = if case.mutating { "/changes" } else { "/looks" };
    let hook = Hook { path: by.to_owned(), mutating: case.mutating, operations: vec![Operation::Create] };
    let own = Own {
        resource: "v1/configmaps".to_owned(),
        object: object(number, case),
        scope: None,
        expect: Expect::Allowed,
        made: false,
        called: None,
        hooks: vec![hook],
    };
    let mut config: Config = serde_json::from_value(json!({"rate": "1000/s"}))?;
    config.objects = vec![own];
    let plan = Plan::for_any_webhook(&config, 1, Duration::from_mins(1))?;
    let target =
        Target { url: webhook.url.clone() + "/", ca_pem: webhook.certificate_pem.clone(), ..Target::default() };
    let load = Load::saturate(plan, &target, 1)?;
    let until = Instant::now() + EFFECT;
    let mut interval = load.take();
    while interval.counts.allowed + interval.counts.denied + interval.errors() == 0 && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(2)).await;
        interval.add(&load.take());
    }
    interval.add(&load.stop(Duration::from_secs(1)).await);
    let counts = interval.counts;
    let decision = match (counts.allowed, counts.denied, interval.errors()) {
        (1.., 0, 0) => Allowed,
        (0, 1.., 0) => Denied,
        (0, 0, 1..) => Failed,
        _ => anyhow::bail!("{}: not the same each time: {counts:?}", case.what),
    };
    Ok((decision, interval.examples.join("; ")))
}

/// The decisions of `who` that differ from the table, as text.
fn others(who: &str, table: &[Case], decisions: &[(Decision, String)]) -> Vec<String> {
    let pairs = table.iter().zip(decisions).filter(|(case, (decision, _))| case.decision != *decision);
    pairs
        .map(|(case, (decision, why))| {
            let content_type = case.content_type.map(|text| format!(" [{text}]")).unwrap_or_default();
            format!(
                "{who}: {}{content_type} ({}): {decision:?} instead of {:?}: {why}",
                case.what, case.status, case.decision
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow"]
async fn answers_of_webhooks_count_as_for_a_real_server() {
    let table = Arc::new(table());
    let webhook = Webhook::start(Arc::clone(&table)).await.unwrap();
    let mut wrong = Vec::new();
    let mut direct = Vec::new();
    for (number, case) in table.iter().enumerate() {
        direct.push(directly(&webhook, number, case).await.unwrap());
    }
    wrong.extend(others("direct load", &table, &direct));
    let (server, endpoint) = servers::mock().await.unwrap();
    wrong.extend(others("the mock", &table, &through(&endpoint, &webhook, &table).await.unwrap()));
    server.shutdown().await;
    if let Some(assets) = servers::assets() {
        let directory = tempfile::tempdir().unwrap();
        let (local, endpoint) = servers::real(assets, directory.path(), &[]).await.unwrap();
        println!("{} answers, also for {}", table.len(), local.access().version());
        let decided = through(&endpoint, &webhook, &table).await;
        wrong.extend(others("the real server", &table, &decided.unwrap()));
        local.stop().await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
