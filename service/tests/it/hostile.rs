//! Tests of hostile registries. Each test attacks the service in another manner, and no attack may succeed.

use service::run::Options;
use service_core::wire::Protocol;

use crate::admission::{self, ask, pod, review};
use crate::support::Service;
use crate::support::raw::{Answer, Raw};
use crate::support::registry::{MANIFEST, digest};

const INDEX: &str = "content-type: application/vnd.oci.image.index.v1+json\r\n";

fn http(status: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    Answer::Bytes(
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}").into(),
    )
}

fn is_head(head: &str) -> bool {
    head.starts_with("HEAD ")
}

/// A service that uses plain HTTP for `host`, with the keys `more` in the registry's entry.
async fn start(host: &str, more: &str) -> Service {
    let config = format!(
        "admission: {{listen: \"127.0.0.1:0\", certificate: tls.crt, key: tls.key}}\nshutdown: {{drain: 50ms}}\n\
         resolve: {{timeout: 2s, registries: [{{host: \"{host}\", plainHttp: true{more}}}]}}\n"
    );
    Service::start("admission", &config, Options::default()).await
}

/// The result for a Pod with the image `name` of `registry`: the stored image or the denial.
async fn verdict(service: &Service, registry: &Raw, name: &str) -> Result<String, String> {
    let object = pod(&[&format!("{}/{name}", registry.host())]);
    let answer = ask(&service.webhook(Protocol::Http1), &review("v1", &object)).await;
    admission::verdict(&answer, &object)
}

#[tokio::test]
async fn a_wait_longer_than_time_itself_is_an_answer_like_any_other() {
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        let registry = Raw::start(move |_| http(status, &format!("retry-after: {}\r\n", u64::MAX), "")).await;
        let service = start(&registry.host(), "").await;
        let denial = verdict(&service, &registry, "app:1").await.unwrap_err();
        assert!(denial.contains("unavailable: ") && denial.contains(status), "{denial}");
        service.app.stop().await;
    }
}

#[tokio::test]
async fn a_realm_elsewhere_on_the_inside_is_not_asked() {
    let inside = Raw::start(|_| http("200 OK", "", r#"{"token": "s3cret"}"#)).await;
    let realm = inside.host();
    let behaviour = move |_: &str| {
        http("401 Unauthorized", &format!("www-authenticate: Bearer realm=\"http://{realm}/latest/meta\"\r\n"), "")
    };
    let registry = Raw::start(behaviour).await;
    let service = start(&registry.host(), "").await;
    let denial = verdict(&service, &registry, "app:1").await.unwrap_err();
    assert!(denial.contains("misconfigured: ") && denial.contains("realms"), "{denial}");
    assert!(!denial.contains("s3cret") && !denial.contains("latest"), "{denial}");
    assert_eq!(inside.heads(), Vec::<String>::new());
    service.app.stop().await;
}

#[tokio::test]
async fn a_realm_that_the_configuration_names_is_asked_with_the_credentials() {
    let realm = Raw::start(|_| http("200 OK", "", r#"{"token": "t0k3n", "expires_in": 1e300}"#)).await;
    let named = realm.host();
    let behaviour = move |head: &str| {
        if head.contains("Bearer t0k3n") {
            http("200 OK", &format!("{INDEX}docker-content-digest: {}\r\n", digest()), "")
        } else {
            let challenge = format!(
                "www-authenticate: Bearer realm=\"http://{named}/token?a=b\",service=\"s\",scope=\"repository:other/secret:pull,push,delete\"\r\n"
            );
            http("401 Unauthorized", &challenge, "")
        }
    };
    let registry = Raw::start(behaviour).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pw"), "pass\n").unwrap();
    let password = folder.path().join("pw");
    let login = format!(", username: u, passwordFile: {:?}, realms: [\"{}\"]", password, realm.host());
    let service = start(&registry.host(), &login).await;
    let image = verdict(&service, &registry, "app:1").await.unwrap();
    assert!(image.ends_with(&digest()), "{image}");
    let heads = realm.heads();
    assert_eq!(heads.len(), 1);
    // Whatever scope the registry asks for, our password is used only to read this repository.
    assert!(heads[0].starts_with("GET /token?a=b&service=s&scope=repository%3Aapp%3Apull "), "{heads:?}");
    assert!(heads[0].contains("authorization: Basic dTpwYXNz\r\n"), "{heads:?}");
    service.app.stop().await;
}

#[tokio::test]
async fn what_a_realm_answers_is_a_token_or_nothing_and_is_never_shown() {
    for answer in [
        r#"{"token": "two words s3cret"}"#.to_owned(),
        r#"{"token": "line\nX-Evil: s3cret"}"#.to_owned(),
        r#"{"token": "s3crét"}"#.to_owned(),
        format!(r#"{{"token": "s3cret{}"}}"#, "a".repeat(40_000)),
        "s3cret".to_owned(),
    ] {
        let behaviour = move |head: &str| {
            if head.starts_with("GET /token") {
                return http("200 OK", "", &answer);
            }
            let host = head.split("host: ").nth(1).unwrap().lines().next().unwrap();
            let challenge = format!("www-authenticate: Bearer realm=\"http://{host}/token\"\r\n");
            http("401 Unauthorized", &challenge, "")
        };
        let registry = Raw::start(behaviour).await;
        let service = start(&registry.host(), "").await;
        let denial = verdict(&service, &registry, "app:1").await.unwrap_err();
        assert!(denial.contains("unavailable: ") && denial.contains("without a usable token"), "{denial}");
        assert!(!denial.contains("s3cr"), "{denial}");
        assert!(registry.heads().iter().all(|head| !head.contains("s3cr")), "it was sent on");
        service.app.stop().await;
    }
}

#[tokio::test]
async fn only_a_manifest_is_a_manifest() {
    let image = "content-type: application/vnd.oci.image.manifest.v1+json\r\n";
    for (headers, body) in [
        (INDEX, ""),
        (INDEX, "<html>"),
        (INDEX, "[]"),
        (INDEX, "{}"),
        (INDEX, r#"{"schemaVersion":2}"#),
        (INDEX, r#"{"schemaVersion":1,"manifests":[]}"#),
        (INDEX, r#"{"schemaVersion":2,"mediaType":"text/html","manifests":[]}"#),
        (INDEX, r#"{"schemaVersion":2,"manifests":[],"layers":[],"config":{}}"#),
        (image, r#"{"schemaVersion":2,"manifests":[]}"#),
        (image, r#"{"schemaVersion":2,"config":{},"layers":7}"#),
        ("content-type: text/html\r\n", MANIFEST),
        ("", MANIFEST),
    ] {
        let registry = Raw::start(move |_| http("200 OK", headers, body)).await;
        let service = start(&registry.host(), "").await;
        let denial = verdict(&service, &registry, "app:1").await;
        let denial = denial.expect_err(&format!("pinned: {headers}{body}"));
        assert!(denial.contains("unavailable: ") && denial.contains("no manifest"), "{denial}");
        let before = registry.heads().len();
        assert!(verdict(&service, &registry, "app:1").await.is_err());
        assert!(registry.heads().len() > before, "a wrong answer was remembered");
        service.app.stop().await;
    }
}

#[tokio::test]
async fn of_two_digests_none_is_believed() {
    let other = format!("sha256:{}", "0".repeat(64));
    for (first, second, allowed) in
        [(digest(), other.clone(), false), (other.clone(), digest(), false), (digest(), digest(), true)]
    {
        let both = format!("{INDEX}docker-content-digest: {first}\r\nDocker-Content-Digest: {second}\r\n");
        let registry = Raw::start(move |head| http("200 OK", &both, if is_head(head) { "" } else { MANIFEST })).await;
        let service = start(&registry.host(), "").await;
        let verdict = verdict(&service, &registry, "app:1").await;
        assert_eq!(verdict.is_ok(), allowed, "{verdict:?}");
        if let Err(denial) = verdict {
            assert!(denial.contains("unavailable: ") && denial.contains("different digests"), "{denial}");
        }
        service.app.stop().await;
    }
    // An invalid one is not used; the bytes decide.
    let odd = format!("{INDEX}docker-content-digest: sha256:abc\r\n");
    let registry = Raw::start(move |head| http("200 OK", &odd, if is_head(head) { "" } else { MANIFEST })).await;
    let service = start(&registry.host(), "").await;
    assert!(verdict(&service, &registry, "app:1").await.unwrap().ends_with(&digest()));
    service.app.stop().await;
}

#[tokio::test]
async fn bodies_that_lie_about_their_length_are_unavailable_and_forgotten() {
    let cut =
        |length: &str| format!("HTTP/1.1 200 OK\r\n{INDEX}content-length: {length}\r\n\r\n{MANIFEST}").into_bytes();
    let chunked = format!("HTTP/1.1 200 OK\r\n{INDEX}transfer-encoding: chunked\r\n\r\nfffffffff\r\n{MANIFEST}");
    let endless = format!("HTTP/1.1 200 OK\r\n{INDEX}\r\n{MANIFEST}");
    let wrong: [(&str, Vec<u8>, bool); 6] = [
        ("longer", cut("9999"), false),
        ("huge", cut("18446744073709551615"), false),
        ("nonsense", cut("-1"), false),
        ("chunk", chunked.into(), false),
        ("endless", endless.into(), true),
        ("no-http", b"\x16\x03\x01\x02\x00\x01".to_vec(), false),
    ];
    for (name, bytes, endless) in wrong {
        let behaviour = move |head: &str| match is_head(head) {
            true => http("405 Method Not Allowed", "", ""),
            false if endless => Answer::Endless(bytes.clone()),
            false => Answer::Bytes(bytes.clone()),
        };
        let registry = Raw::start(behaviour).await;
        let service = start(&registry.host(), "").await;
        let denial = verdict(&service, &registry, "app:1").await.expect_err(name);
        // Exceeding the size of any manifest is a limit of ours, and definite.
        let class = if endless { "too-much-evidence: " } else { "unavailable: " };
        assert!(denial.contains(class), "{name}: {denial}");
        let before = registry.heads().len();
        verdict(&service, &registry, "app:1").await.unwrap_err();
        assert_eq!(registry.heads().len() > before, !endless, "{name}: a broken answer was remembered");
        service.app.stop().await;
    }
}

#[tokio::test]
async fn redirects_end_and_take_no_credentials_along() {
    let other = Raw::start(|_| http("200 OK", &format!("{INDEX}docker-content-digest: {}\r\n", digest()), "")).await;
    let elsewhere = other.host();
    let behaviour = move |head: &str| {
        let path = head.split(' ').nth(1).unwrap();
        if path.starts_with("/v2/loop/") || path.starts_with("/again") {
            return http("307 Temporary Redirect", "location: /again\r\n", "");
        }
        if let Some(left) = path.strip_prefix("/step/").and_then(|left| left.parse::<u32>().ok()) {
            let next = if left == 0 { format!("http://{elsewhere}/end") } else { format!("/step/{}", left - 1) };
            return http("307 Temporary Redirect", &format!("location: {next}\r\n"), "");
        }
        if !head.contains("authorization: ") {
            return http("401 Unauthorized", "www-authenticate: Basic realm=\"r\"\r\n", "");
        }
        let location = match path.split('/').nth(2).unwrap() {
            "five" => "/step/3".to_owned(),
            "six" => "/step/4".to_owned(),
            "port" => "http://127.0.0.1:70000/s3cret".to_owned(),
            "file" => "file:///s3cret".to_owned(),
            _ => "http://user:s3cret@127.0.0.1/".to_owned(),
        };
        http("307 Temporary Redirect", &format!("location: {location}\r\n"), "")
    };
    let registry = Raw::start(behaviour).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pw"), "pass").unwrap();
    let login = format!(", username: u, passwordFile: {:?}", folder.path().join("pw"));
    let service = start(&registry.host(), &login).await;
    assert!(verdict(&service, &registry, "five:1").await.unwrap().ends_with(&digest()));
    let heads = other.heads();
    assert!(heads.len() == 1 && !heads[0].contains("authorization"), "{heads:?}");
    for name in ["six:1", "loop:1", "port:1", "file:1", "user:1"] {
        let denial = verdict(&service, &registry, name).await.expect_err(name);
        assert!(denial.contains("redirect") && !denial.contains("s3cret"), "{name}: {denial}");
    }
    assert_eq!(other.heads().len(), 1);
    service.app.stop().await;
}

#[tokio::test]
async fn a_denial_has_no_control_characters_and_an_end() {
    let realm = format!("http://{}.example/", "x".repeat(50_000));
    let registry =
        Raw::start(move |_| http("401 Unauthorized", &format!("www-authenticate: Bearer realm=\"{realm}\"\r\n"), ""))
            .await;
    let service = start(&registry.host(), "").await;
    let denial = verdict(&service, &registry, "app:1").await.unwrap_err();
    assert!(denial.len() < 1000 && denial.chars().all(|char| !char.is_control()), "{denial:?}");
    service.app.stop().await;
}
