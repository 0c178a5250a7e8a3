//! Tests with unmodified published programs. Every scenario in `scenarios/library/others` is valid, and each scenario
//! whose program is installed is run. The table in the README of that folder has the expected result of each run.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{has_current_apiserver, longhaul};

/// A scenario, the published program that it runs, and the expected result.
struct Other {
    name: String,
    text: String,
    program: String,
    /// The folder of manifests that the scenario needs from `install.sh`, if any.
    needs: Option<String>,
    /// The folder of webhook configurations that the scenario registers, if any.
    registers: Option<String>,
    passes: bool,
}

/// A webhook configuration that is used if the program's real configurations are not installed.
const STANDS_IN: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: stands-in}
webhooks:
- name: stands-in.example.com
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: stands-in, namespace: default, path: /}}
  rules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*']}]
";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("library/others")
}

fn others() -> Vec<Other> {
    let readme = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    files.sort();
    assert!(!files.is_empty());
    files.iter().map(|file| other(file, &readme)).collect()
}

fn other(file: &Path, readme: &str) -> Other {
    let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
    let text = std::fs::read_to_string(file).unwrap();
    let scenario: Value = serde_saphyr::from_str(&text).unwrap();
    let command = &scenario["subject"]["command"];
    let words = command.as_array().or(command["run"].as_array()).unwrap();
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    let script =
        words.iter().find_map(|word| word.split("exec ").nth(1)).map(|line| line.split_whitespace().next().unwrap());
    let in_cluster = words.iter().position(|word| *word == "in-cluster.sh").map(|at| words[at + 1]);
    let program = in_cluster.or(script).unwrap_or(words[0]).to_owned();
    let mut manifests =
        scenario["controlPlane"]["manifests"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let needs = manifests.find(|path| path.starts_with("needs/")).map(str::to_owned);
    let registers = scenario["subject"]["install"]["webhooks"].as_str().map(str::to_owned);
    let row = readme.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
    let row = row.unwrap_or_else(|| panic!("README.md of the folder has no row `{name}`"));
    let passes = row.contains("| pass |");
    assert!(passes || row.contains("| **fail** |"), "the row of `{name}` says not how a run of it ends: {row}");
    assert_eq!(scenario["name"], name.as_str(), "it is named like its file");
    Other { name, text, program, needs, registers, passes }
}

/// The path of a program, searched in `$LONGHAUL_OTHERS` and then in `$PATH`.
fn installed(program: &str) -> Option<PathBuf> {
    let named = std::env::var_os("LONGHAUL_OTHERS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = named.into_iter().chain(std::env::split_paths(&path));
    folders.find(|folder| folder.join(program).is_file())
}

#[test]
#[ignore = "slow"]
fn every_file_is_valid() {
    let copy = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(folder().join("config"), copy.path().join("config")).unwrap();
    for other in others() {
        // Manifests from elsewhere need not be installed for this.
        if let Some(needs) = &other.needs {
            std::fs::create_dir_all(copy.path().join(needs)).unwrap();
        }
        if let Some(registers) = &other.registers {
            std::fs::create_dir_all(copy.path().join(registers)).unwrap();
            std::fs::write(copy.path().join(registers).join("webhooks.yaml"), STANDS_IN).unwrap();
        }
        let file = copy.path().join(format!("{}.yaml", other.name));
        std::fs::write(&file, &other.text).unwrap();
        let output = longhaul(&["check", "--allow-outside", file.to_str().unwrap()]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let first = other.text.lines().next().unwrap();
        assert!(first.starts_with("# ") && first.ends_with('?'), "{} begins with its question: {first}", other.name);
    }
}

/// Defines one test for each scenario. These tests run in parallel, because many take a minute.
macro_rules! each {
    ($($name:ident),* $(,)?) => {
        const EACH: &[&str] = &[$(stringify!($name)),*];

        $(
            #[test]
            #[ignore = "slow"]
            fn $name() {
                ends_as_the_table_says(stringify!($name));
            }
        )*
    };
}

each! {
    argo_rollouts_revision_history,
    cert_manager_webhook,
    cluster_api_late_machine_sets,
    dask_kubernetes_late_worker_groups,
    dask_kubernetes,
    devservers,
    k8swatcher,
    karpenter_late_answers,
    karpenter_late_nodes,
    karpenter_lost_registration,
    kubernetes_late_pods,
    kyverno_each_hour,
    nebari_workflow_controller,
    pod_security_webhook,
    prometheus_operator,
    qdrant_operator,
    sealed_secrets_lost_status,
    sealed_secrets,
    vpa_admission_controller,
    warrantor_admission,
}

#[test]
#[ignore = "slow"]
fn every_file_has_its_test() {
    let files: Vec<String> = others().into_iter().map(|other| other.name.replace('-', "_")).collect();
    assert_eq!(files, EACH);
}

/// cert-manager's webhook also passes with the same registrations, definitions and objects on a real kube-apiserver.
#[test]
#[ignore = "slow"]
fn cert_manager_webhook_on_a_real_server() {
    if has_current_apiserver() {
        plays("cert_manager_webhook", &["--control-plane", "local"]);
    }
}

fn ends_as_the_table_says(test: &str) {
    plays(test, &[]);
}

/// Runs one scenario, unless its program is missing. Few machines have all of these programs; `install.sh` installs
/// each.
fn plays(test: &str, more: &[&str]) {
    let name = test.replace('_', "-");
    let other = others().into_iter().find(|other| other.name == name).unwrap();
    let Some(programs) = installed(&other.program) else {
        println!("skipped: needs {} (scenarios/library/others/install.sh)", other.program);
        return;
    };
    if let Some(needs) = other.needs.as_ref().filter(|needs| !folder().join(needs).is_dir()) {
        println!("skipped: needs {needs} (scenarios/library/others/install.sh)");
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let file = folder().join(format!("{name}.yaml"));
    let path = std::env::var("PATH").unwrap_or_default();
    let output = longhaul(&["soak", "--quiet", "--runs", runs.path().to_str().unwrap(), file.to_str().unwrap()])
        .args(more)
        .env("PATH", format!("{}:{path}", programs.display()))
        .output()
        .unwrap();
    let expected = i32::from(!other.passes);
    assert_eq!(output.status.code(), Some(expected), "{name}: {}", String::from_utf8_lossy(&output.stdout));
}
