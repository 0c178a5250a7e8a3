//! Tests of webhooks for a project's own kinds. A run registers the webhooks as in the project, has them called for
//! churned objects, and judges them. A webhook that is never called is reported.

use std::path::Path;

use crate::support::{Soak, has_current_apiserver, has_python, longhaul, rows, soak};

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/own");

/// A folder with a copy of the project, and with its scenario after these changes.
fn project(change: &[(&str, &str)]) -> Option<tempfile::TempDir> {
    if !has_python() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(FILES).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    for (file, more) in change {
        let path = folder.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let text = match more.split_once(" => ") {
            Some((from, to)) => {
                assert!(text.contains(from), "{from}");
                text.replace(from, to)
            }
            None => format!("{text}{more}"),
        };
        std::fs::write(path, text).unwrap();
    }
    Some(folder)
}

fn run(change: &[(&str, &str)], more: &[&str]) -> Option<Soak> {
    let folder = project(change)?;
    let file = folder.path().join("own.yaml");
    Some(soak(&[&[file.to_str().unwrap()], more].concat()))
}

/// Number of calls to each webhook, as the control plane counts them.
fn webhook_calls(record: &Path) -> Vec<(String, u64)> {
    let rows = rows(record, "intervals.jsonl");
    let webhooks = rows.iter().filter_map(|row| row["webhooks"].as_array()).flatten();
    webhooks.map(|row| (row["name"].as_str().unwrap().to_owned(), row["calls"].as_u64().unwrap())).collect()
}

/// The sum of one figure over all rows of admission in the record.
fn sums(record: &Path, key: &str) -> u64 {
    rows(record, "intervals.jsonl").iter().filter_map(|row| row["admission"][key].as_u64()).sum()
}

fn is_right(soak: &Soak) {
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let record = soak.record();
    let asked = webhook_calls(&record);
    assert_eq!(asked.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["mcache.kb.io", "vcache.kb.io"]);
    assert!(asked.iter().all(|(_, calls)| *calls > 50), "{asked:?}");
    assert!(sums(&record, "denied") > 5 && sums(&record, "allowed") > 50, "{}", soak.story());
    assert!(!soak.stdout().contains("missed"), "who watches nothing misses nothing: {}", soak.story());
}

#[test]
#[ignore = "slow"]
fn churn_goes_through_ones_own_webhooks_and_right_answers_pass() {
    let Some(soak) = run(&[], &[]) else { return };
    is_right(&soak);
}

#[test]
#[ignore = "slow"]
fn they_pass_on_a_real_control_plane_too() {
    if std::env::var_os("KUBEBUILDER_ASSETS").is_none_or(|assets| assets.is_empty()) {
        println!("skipped: needs KUBEBUILDER_ASSETS");
        return;
    }
    let Some(soak) = run(&[], &["--control-plane", "local"]) else { return };
    is_right(&soak);
}

#[test]
#[ignore = "slow"]
fn a_wrong_allow_fails() {
    let Some(soak) = run(&[("own.yaml", "    cwd: . =>     cwd: .\n    env: {BUG: allows}")], &[]) else { return };
    assert_eq!((soak.code(), soak.broken()), (Some(1), vec!["admission.wrongVerdicts".to_owned()]), "{}", soak.story());
    assert!(soak.stdout().contains("allowed a request that had to be denied"), "{}", soak.story());
}

#[test]
#[ignore = "slow"]
fn a_wrong_denial_fails() {
    let Some(soak) = run(&[("own.yaml", "    cwd: . =>     cwd: .\n    env: {BUG: denies}")], &[]) else { return };
    assert_eq!((soak.code(), soak.broken()), (Some(1), vec!["admission.wrongVerdicts".to_owned()]), "{}", soak.story());
}

/// A registered webhook that no write matches is reported before the run. A run with a webhook that no write matches is
/// inconclusive.
#[test]
#[ignore = "slow"]
fn a_webhook_that_nobody_asks_is_inconclusive() {
    let selector = "    sideEffects: None\n--- =>     sideEffects: None\n    namespaceSelector: {matchLabels: {caches: enabled}}\n---";
    let Some(folder) = project(&[("webhooks.yaml", selector)]) else { return };
    let file = folder.path().join("own.yaml");
    let file = file.to_str().unwrap();
    let plan = longhaul(&["check", "--plan", file]).output().unwrap();
    let plan = String::from_utf8_lossy(&plan.stdout).into_owned();
    assert!(plan.contains("NOT ASKED       mcache.kb.io would get no request: its namespaceSelector wants"), "{plan}");
    assert!(!plan.contains("vcache.kb.io would be"), "{plan}");
    // Without the webhook that sets a default for the other one: the definition has to set it.
    let text = std::fs::read_to_string(folder.path().join("good.yaml")).unwrap();
    std::fs::write(folder.path().join("good.yaml"), text + "  mode: safe\n").unwrap();
    let soak = soak(&[file]);
    assert_eq!(soak.code(), Some(2), "{}", soak.story());
    assert!(
        soak.stdout().contains(
            "the webhook mcache.kb.io was asked 0 times, so it was not tested: its namespaceSelector wants the label \
            caches=enabled"
        ),
        "{}",
        soak.story()
    );
}

/// Reviews that are sent directly to the webhooks contain the churned objects. The validating webhook gets the objects
/// as the mutating webhook changed them.
#[test]
#[ignore = "slow"]
fn direct_load_sends_ones_own_kinds() {
    let Some(soak) = run(&[("own.yaml", "admission: {rate: 100/s}\n")], &[]) else { return };
    is_right(&soak);
    assert!(sums(&soak.record(), "sent") > 500, "{}", soak.story());
}

/// The conversion webhook of a project's definition converts the churned objects, which are not in the stored version.
#[test]
#[ignore = "slow"]
fn ones_own_conversion_webhook_converts() {
    let conversion = "  versions:\n =>   conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: \
                      webhook-service, namespace: system, path: /convert}}}}\n  versions:\n    - {name: v0, served: true, storage: false, schema: \
                      {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n";
    let older = "cache.example.com/v1 => cache.example.com/v0";
    let changes = [("crd.yaml", conversion), ("own.yaml", older), ("good.yaml", older), ("bad.yaml", older)];
    let Some(soak) = run(&changes, &[]) else { return };
    is_right(&soak);
}

/// A webhook may refuse objects that were generated from the kind's definition, because the webhook may check more than
/// the definition.
#[test]
#[ignore = "slow"]
fn what_was_made_from_the_definition_may_be_refused() {
    let other = "\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: others.cache.example.com}\nspec:\n  \
                 group: cache.example.com\n  scope: Namespaced\n  names: {kind: Other, plural: others}\n  versions:\n    - {name: v1, served: \
                 true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}}\n";
    let all = ("webhooks.yaml", "resources: [caches] => resources: ['*/*']");
    let load = ("own.yaml", "admission: {rate: 100/s}\n");
    // Beside churned objects it is not sent.
    let Some(beside) = run(&[("crd.yaml", other), all, load], &[]) else { return };
    is_right(&beside);
    assert!(sums(&beside.record(), "sent") > 500, "{}", beside.story());
    // Churned without a template, it ends the run before it begins, and is no wrong answer.
    let churned = ("own.yaml", "  resource: caches.cache.example.com/v1 =>   resource: others.cache.example.com/v1");
    let made = ("own.yaml", "  templates: [good.yaml, {file: bad.yaml, expect: denied}] => ");
    let Some(made) = run(&[("crd.yaml", other), all, churned, made], &[]) else { return };
    assert!(made.broken().is_empty(), "{}", made.story());
    assert_ne!(made.code(), Some(0), "{}", made.story());
    let said = made.stdout() + &made.stderr();
    assert!(
        said.contains("It was made from the definition") && said.contains("write a `template`"),
        "{}",
        made.story()
    );
}

/// A scenario for the kubebuilder operator. The operator's validating webhook and its reconciler rely on its defaulting
/// webhook.
const OPERATOR: &str = include_str!("../files/kubebuilder-webhooks.yaml");

fn operators_webhooks_are_right(more: &[&str]) {
    let Some(project) = crate::operator::project() else { return };
    let file = project.path().join("kubebuilder-webhooks.yaml");
    std::fs::write(&file, OPERATOR).unwrap();
    // Its program is a link into the cache.
    let soak = soak(&[&[file.to_str().unwrap(), "--allow-outside"], more].concat());
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let record = soak.record();
    let asked = webhook_calls(&record);
    assert_eq!(asked.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["mcache-v1.kb.io", "vcache-v1.kb.io"]);
    assert!(asked.iter().all(|(_, calls)| *calls > 100), "{asked:?}");
    assert!(sums(&record, "sent") > 10_000 && sums(&record, "denied") > 500, "{}", soak.story());
}

#[test]
#[ignore = "slow"]
fn those_of_an_operator_are_right_directly_and_through_the_mock() {
    operators_webhooks_are_right(&[]);
}

#[test]
#[ignore = "slow"]
fn nightly_those_of_an_operator_are_right_directly_and_through_a_real_server() {
    if has_current_apiserver() {
        operators_webhooks_are_right(&["--control-plane", "local"]);
    }
}

/// A gate in which every review is refused would compare nothing. A gate without an allowed review therefore ends with
/// a message.
#[test]
#[ignore = "slow"]
fn a_gate_of_denials_is_refused() {
    let change = [
        (
            "own.yaml",
            "    cwd: .\n  install: {webhooks: webhooks.yaml} =>     cwd: .\n    serves: {path: /validate-caches}",
        ),
        ("own.yaml", "admission: {rate: 100/s}\n"),
    ];
    let without = ("own.yaml", "  templates: [good.yaml, {file: bad.yaml, expect: denied}] =>   template: good.yaml");
    let Some(folder) = project(&[&change[..], &[without]].concat()) else { return };
    let file = folder.path().join("own.yaml");
    let out = folder.path().join("gate");
    let command = "python3 webhook.py";
    let mut gate = longhaul(&["gate", file.to_str().unwrap(), "--quiet", "--no-callgrind", "--blocks", "3"]);
    let output = gate.args(["--a", command, "--b", command]).arg("--out").arg(&out).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_ne!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("A denied each of") && said.contains("unable to decode: no kind "), "{said}");
}
