//! Tests of alerting with receivers (by wiremock) that work, are slow, fail, never answer or do not exist.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use service_core::config::{Config, Kind, kind};
use wiremock::matchers::{header, method};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use super::*;

const KINDS: &[Kind] = &[kind::<Alerting>()];

fn alert(image: &str, admitted: bool) -> Alert {
    Alert {
        admitted,
        message: format!("{image}: why"),
        kind: "Pod".into(),
        namespace: "shop".into(),
        name: "p".into(),
        request_id: "u-1".into(),
        images: vec![image.to_owned()],
        more_images: 0,
    }
}

fn settings(text: &str) -> Alerting {
    let config = Config::parse(text, Path::new("test.yaml"), KINDS).unwrap_or_else(|error| panic!("{error}"));
    config.find::<Alerting>().unwrap().clone()
}

fn desk(text: &str) -> Arc<Receivers> {
    Receivers::open(&settings(text), &mut Registry::default()).unwrap()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

async fn got(server: &MockServer) -> Vec<Value> {
    let requests = server.received_requests().await.unwrap();
    requests.iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

async fn well() -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(200)).mount(&server).await;
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn each_stream_tells_its_receivers_in_order_with_headers_and_payload() {
    let (admit, reject) = (well().await, MockServer::start().await);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "Bearer t\n").unwrap();
    let authorized = Mock::given(header("authorization", "Bearer t")).and(header("x-team", "ops"));
    authorized.respond_with(ResponseTemplate::new(204)).mount(&reject).await;
    let desk = desk(&format!(
        "alerting:\n  cluster: prod\n  admit: {{receivers: [{{template: slack, url: '{}/a'}}]}}\n  reject: {{receivers: [{{template: opsgenie, priority: 1, \
         url: '{}', headers: {{X-Team: ops}}, headerFiles: {{Authorization: {}}}, payload: {{tags: [x]}}}}]}}\n",
        admit.uri(),
        reject.uri(),
        folder.path().join("token").display()
    ));
    for number in 0..5 {
        desk.tell(alert(&format!("good:{number}"), true), soon()).await.unwrap();
        desk.tell(alert(&format!("bad:{number}\" {{{{ cluster }}}}"), false), soon()).await.unwrap();
    }
    desk.stop(Duration::from_secs(10)).await;
    let told = got(&admit).await;
    assert_eq!(
        told.iter().map(|one| one["text"].clone()).collect::<Vec<_>>(),
        (0..5).map(|n| json!(format!("good:{n}: why"))).collect::<Vec<_>>()
    );
    let told = got(&reject).await;
    assert_eq!((told.len(), &told[0]["priority"], &told[0]["tags"]), (5, &json!("P1"), &json!(["x"])));
    assert_eq!(told[0]["description"], "bad:0\" {{ cluster }}: why");
    assert_eq!(told[0]["details"]["cluster"], "prod");
}

/// A receiver that fails the given number of times and then sends the given answer.
struct Failing(AtomicUsize, ResponseTemplate);

impl Respond for Failing {
    fn respond(&self, _: &Request) -> ResponseTemplate {
        if self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            return self.1.clone();
        }
        ResponseTemplate::new(200)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_that_pass_are_tried_again_and_others_are_dead_letters() {
    let (passing, refusing) = (MockServer::start().await, MockServer::start().await);
    Mock::given(method("POST"))
        .respond_with(Failing(AtomicUsize::new(2), ResponseTemplate::new(503)))
        .mount(&passing)
        .await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(400)).mount(&refusing).await;
    let folder = tempfile::tempdir().unwrap();
    let letters = folder.path().join("dead.jsonl");
    let desk = desk(&format!(
        "alerting: {{deadLetters: {}, reject: {{receivers: [{{name: passing, template: keybase, url: '{}'}}, {{name: refusing, template: keybase, url: '{}'}}, \
         {{name: gone, template: keybase, url: 'http://127.0.0.1:1/', attempts: 1}}]}}}}",
        letters.display(),
        passing.uri(),
        refusing.uri()
    ));
    desk.tell(alert("a", false), soon()).await.unwrap();
    desk.stop(Duration::from_secs(20)).await;
    assert_eq!((got(&passing).await.len(), got(&refusing).await.len()), (3, 1));
    let lines = std::fs::read_to_string(&letters).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&letters).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "names of all namespaces are nobody else's business");
    let mut dead: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    dead.sort_by_key(|one| one["receiver"].to_string());
    assert_eq!(dead.iter().map(|one| one["receiver"].as_str().unwrap()).collect::<Vec<_>>(), ["gone", "refusing"]);
    assert!(
        dead[1]["error"] == "it answered 400 Bad Request"
            && dead[1]["body"]["msg"].as_str().unwrap().starts_with("a: why")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_never_answers_delays_nobody_unless_it_blocks() {
    let server = MockServer::start().await;
    let never = ResponseTemplate::new(200).set_delay(Duration::from_hours(1));
    Mock::given(method("POST")).respond_with(never).mount(&server).await;
    let text = |more: &str| {
        format!("alerting: {{admit: {{receivers: [{{template: slack, url: '{}', queue: 2{more}}}]}}}}", server.uri())
    };
    let patient = desk(&text(""));
    let begun = Instant::now();
    for _ in 0..100 {
        patient.tell(alert("a", true), soon()).await.unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    patient.stop(Duration::ZERO).await;
    let blocking = desk(&text(", failIfAlertSendingFails: true"));
    let deadline = Instant::now() + Duration::from_millis(300);
    let refused = blocking.tell(alert("a", true), deadline).await.unwrap_err();
    assert!(refused.starts_with("the alert could not be sent to admit-0: "), "{refused}");
    assert!(deadline.elapsed() < Duration::from_secs(2));
    blocking.stop(Duration::ZERO).await;
}

/// A server that answers with `head`, then with `piece` again and again until the client closes the connection.
async fn endless(head: &'static str, piece: &'static str) -> std::net::SocketAddr {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = tcp.read(&mut [0; 4096]).await;
                let _ = tcp.write_all(head.as_bytes()).await;
                while tcp.write_all(piece.as_bytes()).await.is_ok() {
                    tokio::task::yield_now().await;
                }
            });
        }
    });
    address
}

/// If a receiver's answer never ends, a review waits at most until its deadline, and the process at most for its time
/// limit.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_end_is_no_answer() {
    for (head, piece) in [
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "5\r\nhello\r\n"),
        ("HTTP/1.1 200 OK\r\n", "a: b\r\n"),
        ("", "HTTP/1.1 100 Continue\r\n\r\n"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", ""),
    ] {
        let address = endless(head, piece).await;
        let text = |more: &str| {
            format!(
                "alerting: {{admit: {{receivers: [{{template: slack, url: 'http://{address}/', timeout: 200ms, attempts: 2{more}}}]}}}}"
            )
        };
        let blocking = desk(&text(", failIfAlertSendingFails: true"));
        let (begun, deadline) = (Instant::now(), Instant::now() + Duration::from_secs(1));
        blocking.tell(alert("a", true), deadline).await.unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(5), "{head}: {:?}", begun.elapsed());
        let patient = desk(&text(""));
        for _ in 0..3 {
            patient.tell(alert("a", true), soon()).await.unwrap();
        }
        patient.stop(Duration::from_secs(20)).await;
        assert!(begun.elapsed() < Duration::from_secs(20), "{head}: {:?}", begun.elapsed());
    }
}

/// For any size of alerts, the alerts that wait for a receiver use no more than the memory of its queue.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_has_a_bound_in_bytes() {
    let server = MockServer::start().await;
    let never = ResponseTemplate::new(200).set_delay(Duration::from_hours(1));
    Mock::given(method("POST")).respond_with(never).mount(&server).await;
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "alerting: {{deadLetters: {1}, reject: {{receivers: [{{template: slack, url: '{0}', queue: 100000}}, {{template: slack, url: '{0}', \
         name: b, queue: 100000, collapse: 1h}}]}}}}",
        server.uri(),
        folder.path().join("dead").display()
    );
    let mut registry = Registry::default();
    let desk = Receivers::open(&settings(&text), &mut registry).unwrap();
    let most = |number: usize| Alert {
        message: "m".repeat(1 << 20),
        images: (0..500).map(|image| format!("{number}-{image}-{}", "i".repeat(500))).collect(),
        ..alert("a", false)
    };
    let bytes = most(0).cut().bytes();
    for number in 0..600 {
        desk.tell(most(number), soon()).await.unwrap();
    }
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
    let waiting = page.lines().find_map(|line| line.strip_prefix("longhaul_alerting_waiting ")).unwrap();
    let held = waiting.parse::<usize>().unwrap() * bytes;
    assert!(held > 1 << 20 && held <= 4 << 20, "{waiting} alerts of {bytes} bytes");
    desk.stop(Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_is_one_line_with_a_count() {
    let server = well().await;
    let text =
        format!("alerting: {{reject: {{receivers: [{{template: keybase, url: '{}', collapse: 1h}}]}}}}", server.uri());
    let desk = desk(&text);
    for _ in 0..50 {
        desk.tell(alert("a", false), soon()).await.unwrap();
    }
    desk.stop(Duration::from_secs(10)).await;
    let told = got(&server).await;
    assert_eq!(told.len(), 2);
    assert!(told[1]["msg"].as_str().unwrap().starts_with("a: why (49 more within 3600 s)"), "{}", told[1]);
}

#[test]
fn what_cannot_be_used_says_where_and_what_to_write() {
    for (text, told) in [
        (
            "{template: slak, url: 'https://x/'}",
            "alerting.admit.receivers[0].template: `slak` is none: use one of slack, ",
        ),
        ("{template: slack, markup: slack, url: 'https://x/'}", "markup: is of `templateFile`"),
        ("{template: slack}", "alerting.admit.receivers[0].url: is missing: write `url` or `urlFile`"),
        ("{template: slack, url: 'ftp://x'}", "is no URL of HTTP"),
        ("{template: slack, url: 'https://u:p@x/'}", "has a user in it"),
        ("{template: slack, url: 'https://x/', headers: {'a b': c}}", "`a b` is no header"),
        ("{template: slack, url: 'http://x/', headerFiles: {Authorization: t}}", "url: would show the headers"),
        ("{template: slack, url: 'https://x/', queue: 0}", "0 is out of range"),
        ("{template: slack, url: 'https://x/', tmplate: a}", "unknown key `tmplate`"),
        (
            "{name: n, template: slack, url: 'https://x/'}, {name: n, template: slack, url: 'https://x/'}",
            "two receivers are called `n`",
        ),
    ] {
        let text = format!("alerting: {{admit: {{receivers: [{text}]}}}}");
        let error = Config::parse(&text, Path::new("a.yaml"), KINDS).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _inside = runtime.enter();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("url"), "http://hooks.corp/T0/secret\n").unwrap();
    let text = format!(
        "alerting: {{admit: {{receivers: [{{template: slack, urlFile: {}}}]}}}}",
        folder.path().join("url").display()
    );
    let error = Receivers::open(&settings(&text), &mut Registry::default()).err().unwrap().to_string();
    assert!(error.contains("would be shown to everybody") && !error.contains("secret"), "{error}");
    let text = "alerting: {admit: {receivers: [{templateFile: /nowhere, url: 'https://x/'}]}}";
    let error = Receivers::open(&settings(text), &mut Registry::default()).err().unwrap().to_string();
    assert!(error.starts_with("alerting.admit.receivers[0]: templateFile: /nowhere: "), "{error}");
}
