//! Tests of recorded load in a scenario. The load generator sends the reviews in a recording as they were recorded. An
//! invalid recording is refused with the position of the mistake and a remedy.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{longhaul, program, soak};

/// The lines of a recording with one request every 10 ms. Of three requests, two are drawn from the mix, and one is a
/// review in the recording.
fn traffic(requests: u64) -> String {
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "any", "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"}, "name": "recorded", "namespace": "shop",
        "operation": "DELETE", "userInfo": {}, "object": null, "oldObject": null, "dryRun": false, "options": null,
    }});
    let mut text = json!({"review": "mine", "body": body}).to_string() + "\n";
    for number in 0..requests {
        let review = if number % 3 == 0 { r#","review":"mine""# } else { "" };
        writeln!(text, r#"{{"atUs":{}{review}}}"#, number * 10_000).unwrap();
    }
    text
}

/// Writes a scenario into a folder of its own, beside the recording that it names.
fn scenario(folder: &Path, admission: &str) -> String {
    let file = folder.join("replayed.yaml");
    let text = format!(
        "apiVersion: longhaul/v1\nname: replayed\ndescription: Is the file sent?\nphases: {{warmUp: 1s, steady: 3s, drain: 1s}}\n\
         subject: {{service: {{}}, witness: {{kind: http}}}}\nadmission:\n{admission}budgets:\n  \
         admission: {{p50: 5s, wrongVerdicts: 0, errors: 0}}\n"
    );
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
#[ignore = "slow"]
fn a_scenario_sends_what_the_file_beside_it_says() {
    if program("longhaul-service").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("traffic.jsonl"), traffic(390)).unwrap();
    let file = scenario(folder.path(), "  replay: traffic.jsonl\n  mix: {createPod: 1}\n");
    let plan = longhaul(&["check", "--plan", &file]).output().unwrap();
    let plan = String::from_utf8_lossy(&plan.stdout).into_owned();
    assert!(plan.contains("390 requests in 3.9 s (as in "), "{plan}");
    let run = soak(&[&file]);
    assert_eq!(run.code(), Some(0), "{}", run.story());
    let manifest = std::fs::read_to_string(run.record().join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let fingerprint = manifest["payloadFingerprint"].as_str().unwrap();
    assert!(plan.contains(&format!("                fingerprint {fingerprint}\n")), "{fingerprint} is not in {plan}");
    let intervals = std::fs::read_to_string(run.record().join("intervals.jsonl")).unwrap();
    let rows: Vec<Value> = intervals.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sum = |key: &str| rows.iter().filter_map(|row| row["admission"][key].as_u64()).sum::<u64>();
    assert_eq!(sum("planned"), 390, "{}", run.story());
    assert!(sum("sent") >= 386 && sum("denied") > 0, "the oracle knows images that do not exist: {}", run.story());
}

#[test]
fn what_cannot_be_replayed_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let check = |admission: &str, traffic: &str| {
        std::fs::write(folder.path().join("traffic.jsonl"), traffic).unwrap();
        let file = scenario(folder.path(), admission);
        let output = longhaul(&["check", &file]).output().unwrap();
        assert_eq!(output.status.code(), Some(64));
        String::from_utf8_lossy(&output.stderr).replace(folder.path().to_str().unwrap(), "DIR").trim().to_owned()
    };
    for (admission, traffic, expected) in [
        (
            "  client: apiserver\n  replay: nowhere.jsonl\n",
            String::new(),
            "DIR/replayed.yaml:8:3: read DIR/nowhere.jsonl: No such file or directory",
        ),
        (
            "  replay: traffic.jsonl\n",
            "{\"atUs\": 0}\n{}\n".to_owned(),
            "DIR/replayed.yaml:7:3: DIR/traffic.jsonl:2: atUs is missing: write when the request is due",
        ),
        (
            "  replay: traffic.jsonl\n",
            traffic(402),
            "DIR/replayed.yaml:7:3: admission.replay: DIR/traffic.jsonl takes 4011ms, the load only 4s: make the load longer",
        ),
        (
            "  replay: traffic.jsonl\n  rate: 5/s\n",
            traffic(3),
            "DIR/replayed.yaml:8:3: admission.rate: cannot be used with `replay`, which has its own times of requests",
        ),
    ] {
        let said = check(admission, &traffic);
        assert!(said.starts_with(expected), "{said}\nshould begin with\n{expected}");
    }
}
