//! Tests of a validator that breaks the protocol: each fault has its own message, and no faulty answer gives a verdict.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use http::Response;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use service::run::Options;
use service_core::wire::Protocol;

use super::world::{Pki, Says, Speaker, admission, all, config};
use crate::admission::{pod, post, review};
use crate::support::signed::{Key, Signed};
use crate::support::{Service, full, status};

/// The validator's answer to an inquiry; the image's repository decides the fault.
fn says(repository: &str, digest: &str) -> Response<crate::support::Body> {
    let signer = json!({"name": "n", "evidence": "e"});
    let mut ruling =
        json!({"contract": 1, "generation": "g", "digest": digest, "verdict": "verified", "signers": [signer]});
    match repository {
        "nobody" => ruling["signers"] = json!([]),
        "html" => return status(200, "<html>"),
        "large" => return status(200, &"x".repeat(100 << 10)),
        "other" => ruling["digest"] = format!("sha256:{}", "1".repeat(64)).into(),
        "unknown" => ruling["verdict"] = "probably".into(),
        "newer" => ruling["contract"] = 2.into(),
        "endless" => ruling["signers"] = vec![signer; 100].into(),
        "fields" => drop(ruling.as_object_mut().unwrap().remove("verdict")),
        "refuses" => return status(400, r#"{"error": "what is that"}"#),
        "full" => return status(429, r#"{"error": "later"}"#),
        "unasked" => ruling["unasked"] = true.into(),
        "breaks" => return status(503, r#"{"error": "later"}"#),
        "unended" => {
            let begun = futures_util::stream::iter([Ok(hyper::body::Frame::data(ruling.to_string().into()))]);
            let open = futures_util::StreamExt::chain(begun, futures_util::stream::pending());
            return Response::new(http_body_util::StreamBody::new(open).boxed());
        }
        "redirects" => {
            return Response::builder().status(307).header("location", "https://127.0.0.1:1/").body(full("")).unwrap();
        }
        _ => {}
    }
    status(200, &ruling.to_string())
}

fn speaker() -> Says {
    Arc::new(|request| {
        async move {
            if request.method() == "GET" {
                return status(200, r#"{"contract": 1, "generation": "g", "validators": ["default"]}"#);
            }
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let question: Value = serde_json::from_slice(&body).unwrap();
            let repository = question["image"]["repository"].as_str().unwrap().to_owned();
            if repository == "late" {
                tokio::time::sleep(Duration::from_secs(30)).await;
            }
            says(&repository, question["image"]["digest"].as_str().unwrap())
        }
        .boxed()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_breach_of_the_contract_is_a_sentence_and_no_verdict() {
    let (pki, registry, _key) = (Pki::new(), Signed::start().await, Key::new());
    let validator = Speaker::start(&pki, speaker()).await;
    let mut remote = pki.remote(&[validator.address]);
    remote["transport"] = "http1".into();
    remote["timeout"] = "300ms".into();
    let remote = json!({"name": "default", "type": "remote", "remote": remote});
    let text = config(&registry.host(), &[remote], &all(), &admission());
    let service = Service::start("admission", &text, Options::default()).await;
    let client = service.webhook(Protocol::Http1);
    let at = format!("the validator `default` at {}", validator.address);
    for (repository, class, said) in [
        (
            "html",
            "unavailable",
            "cannot be understood: its answer is no JSON at line 1, column 1: the contract is in docs/contract.md",
        ),
        ("large", "unavailable", "cannot be understood: its answer is larger than 65536 bytes"),
        ("other", "unavailable", "cannot be understood: its answer is about another image (sha256:1111111111111111"),
        (
            "unknown",
            "unavailable",
            "cannot be understood: it answers `probably`, which is no class of this program: verified, not-found",
        ),
        (
            "newer",
            "unavailable",
            "cannot be understood: it speaks version 2 of the contract, and this program version 1",
        ),
        ("endless", "unavailable", "cannot be understood: it names more than 64 signers"),
        ("nobody", "unavailable", "cannot be understood: it answers `verified` without a signer"),
        ("unasked", "unavailable", "cannot be understood: it answers `verified` and `unasked`"),
        ("full", "busy", "does not answer: it answered 429 Too Many Requests: later"),
        ("fields", "unavailable", "cannot be understood: its answer is not the fields of the contract at line 1"),
        ("refuses", "misconfigured", "refuses the question: it answered 400 Bad Request: what is that"),
        ("breaks", "unavailable", "does not answer: it answered 503 Service Unavailable: later"),
        ("redirects", "unavailable", "cannot be understood: it answered 307 Temporary Redirect"),
        ("late", "unavailable", "does not answer: no answer within 300 ms"),
        ("unended", "unavailable", "does not answer: no answer within 300 ms"),
    ] {
        registry.push(repository);
        let review = review("v1", &pod(&[&registry.image(repository)])).to_string();
        let answer = post(&client, "/mutate?timeout=1s", review).await;
        let answer: Value = serde_json::from_slice(answer.body()).unwrap();
        let message = answer["response"]["status"]["message"].as_str().unwrap_or_default();
        assert_eq!(answer["response"]["allowed"], false, "{repository}: {answer}");
        // A silent validator is asked again while there is time, and the review may end first.
        let late = message.contains("before the deadline of this review");
        // Received bytes are no silence: if the rest of them took all of the time, no peer failed, and the image is
        // always denied.
        let class_of_late = if repository == "unended" { "busy" } else { class };
        let expected = format!(": {class}: {at} {said}");
        assert!(
            message.contains(&expected) || late && message.contains(&format!(": {class_of_late}: ")),
            "{repository}: {message}\nexpected {expected}"
        );
        if !["breaks", "late", "unended", "full"].contains(&repository) {
            assert!(!late, "{repository}: {message}");
        }
    }
    let good = registry.push("good");
    let answer = post(&client, "/mutate?timeout=2s", review("v1", &pod(&[&registry.image("good")])).to_string()).await;
    let answer: Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!(answer["response"]["allowed"], true, "{good}: {answer}");
}
