//! Tests of the conformance kit with this project's validator role and with a validator in Python, and of a policy rule
//! that uses the Python validator.

use std::net::SocketAddr;
use std::process::Stdio;

use serde_json::{Value, json};
use service::run::Options;
use service_contract::kit::{Case, Subject, check};
use service_contract::link::Files;
use service_core::judge;
use service_core::wire::Protocol;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::world::{Pki, Speaker, admission, at, config, cosign, has, signed, validator};
use crate::admission::{ask, pod, review};
use crate::support::signed::{Key, Signed};
use crate::support::{Service, status};

fn subject(pki: &Pki, address: SocketAddr, protocol: Protocol, registry: &Signed, digest: &str) -> Subject {
    let image = judge::Subject { host: registry.host(), repository: "good".into(), digest: digest.into() };
    Subject {
        url: format!("https://{address}"),
        files: Files { ca: Some(pki.path("ca.crt")), identity: Some((pki.path("client.crt"), pki.path("client.key"))) },
        protocol,
        validator: None,
        image,
        verdict: Some("verified".into()),
        demands: None,
    }
}

fn broken(cases: &[Case]) -> Vec<String> {
    cases.iter().filter_map(|case| Some(format!("{}: {}", case.demand, case.failed.as_ref()?))).collect()
}

/// Starts `validator.py`, which trusts `digest`; it ends on drop.
async fn python(pki: &Pki, digest: &str) -> (Child, SocketAddr) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/topology/validator.py");
    let mut command = Command::new("python3");
    command.arg(script).args([pki.path("server.crt"), pki.path("server.key"), pki.path("ca.crt")]).arg(digest);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
    (child, SocketAddr::from(([127, 0, 0, 1], line.trim().parse().unwrap())))
}

#[tokio::test(flavor = "multi_thread")]
async fn our_role_keeps_the_contract() {
    let (key, pki) = (Key::new(), Pki::new());
    let (registry, digest) = signed(&key).await;
    let service = validator(&registry.host(), &pki, &[cosign(&[("default", &key)])]).await;
    for protocol in [Protocol::Http2, Protocol::Http1] {
        let mut subject = subject(&pki, at(&service, "validator"), protocol, &registry, &digest);
        subject.demands = Some(json!({"verifyInTransparencyLog": false}));
        let cases = check(subject).await.unwrap();
        assert!(cases.len() >= 13 && broken(&cases).is_empty(), "{protocol:?}: {:#?}", broken(&cases));
    }
}

/// The kit reports each fault of a faulty validator; a kit that never finds a fault would be useless.
#[tokio::test(flavor = "multi_thread")]
async fn the_kit_names_what_a_validator_breaks() {
    let (key, pki) = (Key::new(), Pki::new());
    let (registry, digest) = signed(&key).await;
    let says = std::sync::Arc::new(|_| {
        let answer = json!({"contract": 1, "generation": "", "digest": "sha256:0", "verdict": "verified"}).to_string();
        futures_util::FutureExt::boxed(async move { status(200, &answer) })
    });
    let yes = Speaker::start(&pki, says).await;
    let cases = check(subject(&pki, yes.address, Protocol::Http1, &registry, &digest)).await.unwrap();
    let broken = broken(&cases);
    assert!(broken.len() >= 10, "{broken:#?}");
    assert!(broken.iter().any(|case| case.contains("another image")), "{broken:#?}");
    assert!(broken.iter().any(|case| case.ends_with("it answered a caller without one")), "{broken:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_validator_of_sixty_lines_of_python_keeps_the_contract_and_decides() {
    if !has("python3") {
        eprintln!("skipped: needs python3");
        return;
    }
    let (key, pki) = (Key::new(), Pki::new());
    let (registry, digest) = signed(&key).await;
    let (_python, address) = python(&pki, &digest).await;
    let cases = check(subject(&pki, address, Protocol::Http1, &registry, &digest)).await.unwrap();
    assert!(broken(&cases).is_empty(), "{:#?}", broken(&cases));
    let mut remote = pki.remote(&[address]);
    (remote["transport"], remote["validator"]) = ("http1".into(), "digests".into());
    let validators = [json!({"name": "default", "type": "remote", "remote": remote})];
    let policy = json!({"rules": [{"pattern": "*", "validator": "default"}]});
    let text = config(&registry.host(), &validators, &policy, &admission());
    let manager = Service::start("admission", &text, Options::default()).await;
    let client = manager.webhook(Protocol::Http1);
    let answer = ask(&client, &review("v1", &pod(&[&registry.image("good")]))).await;
    assert_eq!(answer["allowed"], true, "{answer}");
    let verified: Value = serde_json::from_str(answer["auditAnnotations"]["pinned"].as_str().unwrap()).unwrap();
    assert_eq!(verified[0]["signers"], json!(["the list"]));
    let answer = ask(&client, &review("v1", &pod(&[&registry.image("bad")]))).await;
    let said = answer["status"]["message"].as_str().unwrap();
    assert!(said.contains(": unsigned: it is not on the list"), "{said}");
}
