//! Tests of cosign's signatures with the whole service: configuration, search in a registry, and result.
//!
//! The fixtures and cosign's answers come from `service-verify`, whose own tests check the signatures without the
//! service.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use service_admission::config::Config;
use service_admission::once::verify;

use crate::support::deadline;
use crate::support::signed::Signed;

/// Minimum number of cases in the table of fixtures, so that the test cannot become empty.
const CASES_MIN: usize = 60;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("roles/verify/fixtures")
}

fn read(path: &str) -> Value {
    let text = std::fs::read_to_string(fixtures().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap()
}

/// The options of the case's cosign call, as a validator and the demands of a rule.
fn cosign_options(case: &Value) -> (Value, Value) {
    let text = |key: &str| case[key].as_str();
    let mut root = Map::from_iter([("name".to_owned(), json!("root"))]);
    if let Some(name) = text("key") {
        root.insert("keyFile".to_owned(), json!(format!("trust/keys/{name}.pub")));
    } else {
        let mut keyless = Map::new();
        for (theirs, ours) in [
            ("certificate-identity", "subject"),
            ("certificate-identity-regexp", "subjectRegex"),
            ("certificate-oidc-issuer", "issuer"),
            ("certificate-oidc-issuer-regexp", "issuerRegex"),
        ] {
            if let Some(value) = text(theirs) {
                keyless.insert(ours.to_owned(), json!(value));
            }
        }
        root.insert("keyless".to_owned(), keyless.into());
    }
    let mut with = json!({
        "trustRoot": "root", "verifyInTransparencyLog": case["log"].as_bool().unwrap_or(true),
        "verifySCT": case["sct"].as_bool().unwrap_or(true), "requireTimestamp": case["stamps"].as_bool().unwrap_or(false),
    });
    if case["annotations"].is_object() {
        with["annotations"] = case["annotations"].clone();
    }
    if text("verb") == Some("verify-attestation") {
        with["attestations"] = json!([{"predicateType": case["type"]}]);
        with["imageSignature"] = json!(false);
    }
    let trusted = format!("trust/{}/trusted_root.json", text("trust").unwrap_or("full"));
    (json!({"name": "default", "type": "cosign", "trustRoots": [root], "trustedRootFile": trusted}), with)
}

/// The options of the case's cosign call, as a configuration of the service.
fn config(case: &Value, host: &str) -> Config {
    let (validator, with) = cosign_options(case);
    let text = json!({
        "resolve": {"registries": [{"host": host, "plainHttp": true}]},
        "validators": [validator],
        "policy": {"rules": [{"pattern": "*", "with": with}]},
    });
    let path = fixtures().join("case.yaml");
    Config::parse(&text.to_string(), &path).unwrap_or_else(|error| panic!("{}: {error}", case["name"]))
}

/// The service answers as cosign does, whichever APIs the registry supports, or the table explains the difference.
#[tokio::test]
async fn cosign_and_the_service_agree_on_every_case() {
    let table = read("cases.json");
    let cases = table["cases"].as_array().unwrap();
    assert!(cases.len() >= CASES_MIN);
    for api in [true, false] {
        let registry = Signed::start().await;
        registry.world.lock().api = api;
        let repositories: BTreeSet<&str> = cases.iter().map(|case| case["repository"].as_str().unwrap()).collect();
        for repository in repositories {
            registry.load(repository, &read(&format!("registry/{repository}.json")));
        }
        let mut wrong = Vec::new();
        for case in cases {
            let image = format!(
                "{}/{}@{}",
                registry.host(),
                case["repository"].as_str().unwrap(),
                case["digest"].as_str().unwrap()
            );
            let report = verify(&config(case, &registry.host()), &image, deadline()).await.unwrap();
            let agree = (case["exit"] == 0) == report.outcome.is_ok();
            if agree == case["exception"].is_string() {
                wrong.push(format!("{} ({}): {report}", case["name"], case["said"]));
            }
        }
        assert!(wrong.is_empty(), "{} of {}, referrers API {api}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    }
}
