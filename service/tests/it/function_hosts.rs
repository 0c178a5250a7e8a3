//! Tests of the KRM function `krm` under kpt and kustomize, and a comparison with k8s-digester.
//!
//! kustomize comes from the Go proxy (`go install sigs.k8s.io/kustomize/kustomize/v5`), kpt from Google Cloud's SDK,
//! and k8s-digester is built from its repository (`go build -o digester .`). The tests find these programs in `$PATH`;
//! if a program is missing, its tests are skipped.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::registry::{Registry, digest};

/// Typical manifests: a workload, a Knative Service, a Knative event source, and an object of a custom kind.
const MANIFESTS: [(&str, &str); 4] = [
    (
        "web.yaml",
        "# Why it is here.\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  template:\n    spec:\n      \
         initContainers:\n      - name: i\n        image: HOST/good:1 # first\n      containers:\n      - name: c\n        image: HOST/good:2\n",
    ),
    (
        "knative.yaml",
        "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata:\n  name: hello\nspec:\n  template:\n    spec:\n      containers:\n      \
         - image: HOST/good:1\n",
    ),
    (
        "source.yaml",
        "apiVersion: sources.knative.dev/v1\nkind: ContainerSource\nmetadata:\n  name: beat\nspec:\n  template:\n    spec:\n      \
         containers:\n      - name: beat\n        image: HOST/good:1\n",
    ),
    (
        "farm.yaml",
        "apiVersion: acme.io/v1\nkind: Farm\nmetadata:\n  name: f\nspec:\n  workers:\n  - img: HOST/good:3 # theirs\n",
    ),
];
const PATHS: &str = "spec.workers[*].img";

/// Whether the program `name` can be started; if not, prints that the test is skipped.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        println!("skipped: needs {program}");
    }
    found
}

/// A folder with the manifests, a configuration file beside this folder, and the expected manifests.
fn package(registry: &Registry) -> (tempfile::TempDir, Vec<(&'static str, String)>) {
    let folder = tempfile::tempdir().unwrap();
    let config = format!("resolve: {{registries: [{{host: \"{}\", plainHttp: true}}]}}\n", registry.host());
    std::fs::write(folder.path().join("config.yaml"), config).unwrap();
    std::fs::create_dir(folder.path().join("package")).unwrap();
    let mut right = Vec::new();
    for (name, text) in MANIFESTS {
        let text = text.replace("HOST", &registry.host());
        std::fs::write(folder.path().join("package").join(name), &text).unwrap();
        right.push((name, pinned(&text)));
    }
    (folder, right)
}

fn pinned(text: &str) -> String {
    let with =
        |text: String, number: u32| text.replace(&format!("/good:{number}"), &format!("/good:{number}@{}", digest()));
    (1..4).fold(text.to_owned(), with)
}

/// A script that runs the function with the configuration, because kpt and kustomize cannot pass arguments reliably.
fn function(folder: &Path) -> String {
    let path = folder.join("function");
    let program = env!("CARGO_BIN_EXE_longhaul-service");
    let config = folder.join("config.yaml");
    std::fs::write(&path, format!("#!/bin/sh\nexec {program} krm --config {}\n", config.display())).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn kpt_runs_it_over_a_package() {
    if !has("kpt") {
        return;
    }
    let registry = Registry::start().await;
    let (folder, right) = package(&registry);
    let mut command = Command::new("kpt");
    command.args(["fn", "eval", "package", "--exec", &function(folder.path()), "--"]).arg(format!("paths={PATHS}"));
    let output = command.current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (name, right) in right {
        assert_eq!(std::fs::read_to_string(folder.path().join("package").join(name)).unwrap(), right, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kustomize_runs_it_as_a_transformer() {
    if !has("kustomize") {
        return;
    }
    let registry = Registry::start().await;
    let (folder, right) = package(&registry);
    let package = folder.path().join("package");
    let names: Vec<&str> = MANIFESTS.iter().map(|(name, _)| *name).collect();
    let list = format!("resources: [{}]\ntransformers: [pin.yaml]\n", names.join(", "));
    std::fs::write(package.join("kustomization.yaml"), list).unwrap();
    let name = function(folder.path());
    std::fs::write(
        package.join("pin.yaml"),
        format!(
            "apiVersion: longhaul.dev/v1\nkind: Pin\nmetadata:\n  name: pin\n  annotations:\n    config.kubernetes.io/function: |\n      \
             exec: {{path: {name}}}\nspec:\n  paths: ['{PATHS}']\n"
        ),
    )
    .unwrap();
    let mut command = Command::new("kustomize");
    command.args(["build", "--enable-alpha-plugins", "--enable-exec", "package"]);
    let output = command.current_dir(folder.path()).output().unwrap();
    let (built, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    // It writes YAML in a form of its own, so only the images are compared.
    let images = |text: &str| {
        let found = text.split_whitespace().filter(|word| word.contains("/good:")).map(str::to_owned);
        found.collect::<std::collections::BTreeSet<_>>()
    };
    let right = right.iter().flat_map(|(_, text)| images(text)).collect();
    assert_eq!(images(&built), right, "{built}");
}

/// If this service and k8s-digester resolve the same image, they find the same digest. docs/measured/krm.md lists the
/// differences of the two programs.
#[tokio::test(flavor = "multi_thread")]
async fn k8s_digester_finds_the_same_digests() {
    if !has("digester") {
        return;
    }
    let registry = Registry::start().await;
    let (folder, _) = package(&registry);
    // The objects that it supports: pod specs and templates of workloads. It writes another form of YAML.
    let item = |kind: &str, api: &str, spec: &str| {
        format!("- apiVersion: {api}\n  kind: {kind}\n  metadata:\n    name: x\n  spec:\n{spec}")
    };
    let pod = |indent: usize| {
        let space = " ".repeat(indent);
        let image = registry.host();
        format!(
            "{space}containers:\n{space}- name: c\n{space}  image: {image}/good:1\n{space}initContainers:\n{space}- name: i\n\
             {space}  image: {image}/good:2\n"
        )
    };
    let items = [
        item("Pod", "v1", &pod(4)),
        item("Deployment", "apps/v1", &format!("    template:\n      spec:\n{}", pod(8))),
        item(
            "CronJob",
            "batch/v1",
            &format!("    jobTemplate:\n      spec:\n        template:\n          spec:\n{}", pod(12)),
        ),
    ];
    let list = format!("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n{}", items.concat());
    let input = folder.path().join("list.yaml");
    std::fs::write(&input, &list).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let input = std::fs::File::open(&input).unwrap();
        let mut command = Command::new(program);
        let output = command.args(arguments).stdin(input).current_dir(folder.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{program}: {text}{}", String::from_utf8_lossy(&output.stderr));
        let images = text.lines().filter_map(|line| line.trim().strip_prefix("image: ").map(str::to_owned));
        images.collect::<Vec<_>>()
    };
    let ours = run(env!("CARGO_BIN_EXE_longhaul-service"), &["krm", "--config", "config.yaml"]);
    assert!(ours.len() == 6 && ours.iter().all(|image| image.ends_with(&digest())), "{ours:?}");
    assert_eq!(run("digester", &[]), ours);
}
