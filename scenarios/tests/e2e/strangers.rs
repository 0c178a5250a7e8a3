//! Tests with other people's resources, webhooks and project folders.

use std::path::{Path, PathBuf};

use crate::support::{Soak, commits, has_python, longhaul, program, soak};

/// A copy of the folder with test files that a test may change.
pub fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/stranger");
    for entry in std::fs::read_dir(files).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let path = folder.path().to_owned();
    (folder, path)
}

pub fn play(folder: &Path, file: &str, change: (&str, &str), more: &[&str]) -> Soak {
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(change.0), "{text}");
    std::fs::write(&path, text.replace(change.0, change.1)).unwrap();
    soak(&[&[path.to_str().unwrap()], more].concat())
}

pub const SAME: (&str, &str) = ("", "");
const WATCHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/subjects/watcher.py");
const TEMPLATE: &str = "  template:\n    kind: Memcached\n    spec: {size: \"${random 1..5}\", note: \"no ${i}\"}\n    status: {nodes: \"${random 0..9}\"}\n";

#[test]
#[ignore = "slow"]
fn a_strangers_resource_is_churned_and_seen_and_two_records_are_put_side_by_side() {
    let (_folder, path) = folder();
    let one = play(&path, "memcached.yaml", SAME, &[]);
    assert_eq!(one.code(), Some(0), "{}", one.story());
    let rows = std::fs::read_to_string(one.record().join("intervals.jsonl")).unwrap();
    assert!(rows.contains("\"updated\":"), "{rows}");
    // Its record beside another one.
    let other = play(&path, "memcached.yaml", ("rate: 30/s", "rate: 15/s"), &[]);
    let (a, b) = (one.record(), other.record());
    let diff = longhaul(&["compare", a.to_str().unwrap(), b.to_str().unwrap()]).output().unwrap();
    let text = String::from_utf8_lossy(&diff.stdout);
    assert!(diff.status.success() && text.contains("scenario.churn.rate"), "{text}");
    let missing = longhaul(&["compare", a.to_str().unwrap(), "/nowhere"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(64));
}

#[test]
#[ignore = "slow"]
fn its_objects_are_made_from_the_schema_where_no_template_is() {
    let (_folder, path) = folder();
    let file = path.join("memcached.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace(", status: 2}", "}")).unwrap();
    let soak = play(&path, "memcached.yaml", (TEMPLATE, ""), &[]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
}

/// The template of churned objects can be in a file beside the scenario, with the same effect as inline text.
#[test]
#[ignore = "slow"]
fn a_template_may_be_a_file_beside_the_scenario() {
    let (_folder, path) = folder();
    let template = "kind: Memcached\nspec: {size: \"${random 1..5}\"}\nstatus: {nodes: \"${random 0..9}\"}\n";
    let file = path.join("one.yaml");
    std::fs::write(&file, template).unwrap();
    let good = play(&path, "memcached.yaml", (TEMPLATE, "  template: one.yaml\n"), &[]);
    assert_eq!(good.code(), Some(0), "{}", good.story());
    std::fs::write(&file, template.replace("1..5", "7..9")).unwrap();
    let bad = play(&path, "memcached.yaml", SAME, &[]);
    assert_eq!(bad.code(), Some(3), "{}", bad.story());
    assert!(bad.stdout().contains("spec.size in body should be less than or equal to 5"), "{}", bad.story());
}

/// Updates of cluster-wide objects change only the fields in `vary`. In this test, a rule of the resource refuses
/// changes of other fields.
#[test]
#[ignore = "slow"]
fn objects_of_the_cluster_vary_in_what_is_named() {
    let (_folder, path) = folder();
    let crd = path.join("memcached-crd.yaml");
    let text = std::fs::read_to_string(&crd).unwrap().replace("scope: Namespaced", "scope: Cluster");
    let rule = "required: [size]\n              x-kubernetes-validations: [{rule: self.size == oldSelf.size}]";
    assert!(text.contains("required: [size]"));
    std::fs::write(&crd, text.replace("required: [size]", rule)).unwrap();
    let of_cluster = ("  population: 30\n", "  scope: Cluster\n  vary: [/spec/note]\n  population: 30\n");
    let file = path.join("memcached.yaml");
    let changing = std::fs::read_to_string(&file).unwrap().replace("no ${i}", "${text 6}");
    std::fs::write(&file, changing).unwrap();
    let good = play(&path, "memcached.yaml", of_cluster, &["--keep-events"]);
    assert_eq!(good.code(), Some(0), "{}", good.story());
    let commits = commits(&good.record());
    let modified = commits.iter().filter(|commit| commit["change"] == "modified").count();
    let is_in_one =
        |commit: &serde_json::Value| commit["namespace"].as_str().is_some_and(|name| name.starts_with("lh-"));
    assert!(modified > 30 && !commits.iter().any(is_in_one), "{modified} updates of\n{commits:?}");
    let all = play(&path, "memcached.yaml", ("  vary: [/spec/note]\n", ""), &[]);
    assert_ne!(all.code(), Some(0), "{}", all.story());
    assert!(all.stdout().contains("oldSelf"), "{}", all.story());
}

#[test]
#[ignore = "slow"]
fn who_forgets_its_deletions_is_caught() {
    if program("example-watcher-planted").is_none() {
        return;
    }
    let (_folder, path) = folder();
    let soak = play(&path, "memcached.yaml", SAME, &["--plant", "missed-delete"]);
    assert_eq!(soak.code(), Some(1), "{}", soak.story());
    assert!(soak.broken().contains(&"events.ghost".to_owned()), "{}", soak.story());
}

#[test]
#[ignore = "slow"]
fn mistakes_in_other_files_are_told_before_the_run() {
    for (change, told) in [
        (("memcached-crd.yaml", "nowhere.yaml"), "nowhere.yaml: No such file"),
        (("${random 1..5}", "${rnd}"), "`${rnd}` is no placeholder"),
        ((TEMPLATE, "  template: hook.py\n"), "`template: hook.py`"),
        (("memcacheds.cache.example.com/v1", "widgets.example.com/v1"), "widgets"),
    ] {
        let (_folder, path) = folder();
        let soak = play(&path, "memcached.yaml", change, &[]);
        let is_early = told != "widgets";
        assert_eq!(soak.code(), Some(if is_early { 64 } else { 3 }), "{told}: {}", soak.story());
        assert!(soak.story().contains(told), "{told}: {}", soak.story());
    }
}

#[test]
#[ignore = "slow"]
fn a_webhook_that_watches_nothing_is_judged_by_its_answers() {
    if !has_python() {
        return;
    }
    let (_folder, path) = folder();
    let clean = play(&path, "webhook.yaml", SAME, &[]);
    assert_eq!(clean.code(), Some(0), "{}", clean.story());
    let failing = play(&path, "webhook.yaml", ("HOOK: \"\"", "HOOK: errors"), &[]);
    assert_eq!(
        (failing.code(), failing.broken()),
        (Some(1), vec!["admission.errors".to_owned()]),
        "{}",
        failing.story()
    );
    let plain = play(&path, "webhook.yaml", ("HOOK: errors", "HOOK: plain"), &[]);
    // A subject that did not get ready on a busy machine is undecided.
    assert!(matches!(plain.code(), Some(2 | 3)), "{}", plain.story());
    assert!(plain.stdout().contains("does not answer TLS"), "{}", plain.story());
}

/// Two versions of a script have the same interpreter. Only the digest of the files in `files` distinguishes two
/// versions of a script.
#[test]
#[ignore = "slow"]
fn two_versions_of_a_script_have_two_digests() {
    if !has_python() {
        return;
    }
    let (_folder, path) = folder();
    let told = |soak: &Soak| {
        let manifest = std::fs::read_to_string(soak.record().join("manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        manifest["subject"]["digest"].as_str().unwrap().to_owned()
    };
    let first = play(&path, "webhook.yaml", ("    cwd: .\n", "    cwd: .\n    files: [hook.py]\n"), &["--for", "3s"]);
    let again = play(&path, "webhook.yaml", SAME, &["--for", "3s"]);
    let script = path.join("hook.py");
    std::fs::write(&script, std::fs::read_to_string(&script).unwrap() + "# the next version\n").unwrap();
    let next = play(&path, "webhook.yaml", SAME, &["--for", "3s"]);
    for soak in [&first, &again, &next] {
        assert!(soak.record().join("manifest.json").exists(), "{}", soak.story());
    }
    assert_eq!(told(&first), told(&again));
    assert_ne!(told(&first), told(&next));
    let [first, again, next] = [&first, &again, &next].map(|soak| soak.record().display().to_string());
    let diff = |other: &str| {
        let output = longhaul(&["compare", &first, other]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(diff(&next).contains("subject.digest"), "{}", diff(&next));
    assert!(!diff(&again).contains("subject.digest"), "{}", diff(&again));
    let gone = play(&path, "webhook.yaml", ("files: [hook.py]", "files: [hook.py, gone.py]"), &[]);
    assert_eq!(gone.code(), Some(64), "{}", gone.story());
    assert!(gone.story().contains("`files`: gone.py: No such file"), "{}", gone.story());
}

/// A subject can show that it is ready by an HTTP probe or by a line of output. If the subject never becomes ready, the
/// run ends, and the message names the condition.
#[test]
#[ignore = "slow"]
fn it_is_ready_when_its_page_or_a_line_says_so() {
    if !has_python() {
        return;
    }
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let url = format!("    ready: {{url: \"http://127.0.0.1:{port}/readyz\"}}\n");
    for (ready, status, missing) in [
        (url.as_str(), 204, None),
        (url.as_str(), 503, Some("/readyz answers `HTTP/1.0 503")),
        ("    ready: {log: the hook is ready}\n", 204, None),
        ("    ready: {log: the hook sings}\n", 204, Some("it has written no line with `the hook sings` in it")),
    ] {
        let (_folder, path) = folder();
        let file = path.join("webhook.yaml");
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.replace("HOOK: \"\"", &format!("HOOK: \"\", PAGE: \"{port}\", READY: \"{status}\""));
        std::fs::write(&file, text.replace("startTimeout: 10s", "startTimeout: 5s")).unwrap();
        let soak = play(&path, "webhook.yaml", ("    cwd: .\n", &format!("    cwd: .\n{ready}")), &[]);
        // On a busy machine, a subject that is never ready leaves the run undecided instead of invalid.
        let is_busy = soak.stdout().contains("The machine was busy");
        let expected = if missing.is_none() {
            0
        } else if is_busy {
            2
        } else {
            3
        };
        assert_eq!(soak.code(), Some(expected), "{ready}: {}", soak.story());
        assert!(missing.is_none_or(|text| soak.stdout().contains(text)), "{ready}: {}", soak.story());
    }
}

/// Runs `init` in a folder with these files. Returns the scenario that `init` writes, and the output of `check --plan`
/// for this scenario.
fn proposed(files: &[(&str, &str)]) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let init = longhaul(&["init", folder.path().to_str().unwrap()]).output().unwrap();
    assert!(init.status.success(), "{init:?}");
    let file = folder.path().join("longhaul.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let plan = longhaul(&["check", "--plan", file.to_str().unwrap()]).output().unwrap();
    assert!(plan.status.success(), "{plan:?}\n{text}");
    (text, String::from_utf8(plan.stdout).unwrap())
}

const CRD: &str = include_str!("../files/stranger/memcached-crd.yaml");
const HOOK: &str = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: h}\n\
                    webhooks:\n  - {name: h.example.com, clientConfig: {service: {name: h, namespace: h, path: /judge}}}\n";

/// With `{request: first}` any request shows that the subject is ready. Without this setting the run waits for the
/// first list or watch of a judged resource.
#[test]
#[ignore = "slow"]
fn its_first_request_says_that_it_is_ready() {
    if !has_python() {
        return;
    }
    let first_list = |ready: &str| {
        let (_folder, path) = folder();
        std::fs::copy(WATCHER, path.join("watcher.py")).unwrap();
        let script = "import runpy, time\nw = runpy.run_path('watcher.py')['Watcher']()\n\
                      w.api.open('/api/v1/namespaces', 9).read()\ntime.sleep(3)\nw.run()\n";
        std::fs::write(path.join("late.py"), script).unwrap();
        let subject = format!("command: {{run: [python3, late.py], cwd: .{ready}}}, startTimeout: 30s");
        let file = path.join("memcached.yaml");
        let text = std::fs::read_to_string(&file).unwrap();
        let judged = "events: {missed: 0, ghost: 0, regressed: 0, heal: 10s}";
        assert!(text.contains(judged));
        std::fs::write(&file, text.replace(judged, "memory: {ceiling: 512MiB}")).unwrap();
        let soak = play(&path, "memcached.yaml", ("command: [example-watcher]", &subject), &[]);
        assert_eq!(soak.code(), Some(0), "{ready}: {}", soak.story());
        soak.rows("requests.jsonl").into_iter().find(|row| row["resource"] == "memcacheds.cache.example.com").unwrap()["tMs"].as_u64().unwrap()
    };
    let (any, judged) = (first_list(", ready: {request: first}"), first_list(""));
    assert!(any > 1500 && judged < 1000, "it asked for what is judged at {any} and at {judged} ms of the run");
}

/// The files of a folder, and texts that the scenario for the folder must contain.
type Case<'c> = (&'c [(&'c str, &'c str)], &'c [&'c str]);

/// The scenario that `init` proposes for any of these folders can run, and has only budgets that its witness can
/// decide.
#[test]
#[ignore = "slow"]
fn init_proposes_what_the_software_in_the_folder_can_pass() {
    let plain = CRD.replace("observedGeneration", "seen");
    let crd = |text| ("crd.yaml", text);
    let go = ("go.mod", "module x\nrequire sigs.k8s.io/controller-runtime v0.20.0\n");
    let observes = ("main.go", "package main\n\nfunc f() { cache.Status.ObservedGeneration = cache.Generation }\n");
    let rust = ("Cargo.toml", "[package]\nname = \"op\"\n[dependencies]\nkube = \"3\"\n");
    let kopf = ("op.py", "import kopf\n@kopf.on.create('memcacheds')\n");
    let holds = ("op.py", "import kopf\n@kopf.on.delete('memcacheds')\n");
    let pepr = ("package.json", r#"{"scripts": {"start": "node main.js"}, "dependencies": {"pepr": "1"}}"#);
    let docker = ("Dockerfile", "FROM scratch\nENTRYPOINT [\"/manager\"]\nCMD [\"--leader-elect\"]\n");
    let cases: &[Case] = &[
        (
            &[crd(CRD), go, observes],
            &["[./bin/subject]", "witness: {kind: status}", "  events: {missed: 0}\n", "- crd.yaml"],
        ),
        (&[crd(&plain), go], &["{kind: log, of: Memcached, preset: controller-runtime}", "  events: {unseen: 0}\n"]),
        (
            &[crd(&plain), rust],
            &["[./target/release/op]", "preset: kube-rs}", "RUST_LOG: info", "  events: {unseen: 0}\n"],
        ),
        (&[crd(&plain), kopf], &["[kopf, run, '--all-namespaces', op.py]", "preset: kopf}", "  events: {unseen: 0}\n"]),
        (&[crd(&plain), holds], &["name: kopf.zalando.org/KopfFinalizerMarker}", "  events: {unseen: 0, ghost: 0}\n"]),
        (
            &[crd(&plain), pepr],
            &["preset: pepr}", "LOG_LEVEL: debug", "  events: {missed: 0, ghost: 0, regressed: 0, heal: 20s}\n"],
        ),
        (
            &[crd(&plain), docker],
            &["the image (Dockerfile) starts it like this: /manager --leader-elect", "check: no file in the folder"],
        ),
        (
            &[crd(CRD), go, observes, ("hook.yaml", HOOK)],
            &["role: both", "serves: {path: /judge, port: 9443}", "errors: 0", "  events: {missed: 0}\n"],
        ),
        (&[go, ("hook.yaml", HOOK)], &["role: webhook", "errors: 0"]),
        (&[], &["pattern: 'saw", "  events: {missed: 0, regressed: 0}\n"]),
    ];
    for (files, wanted) in cases {
        let (text, plan) = proposed(files);
        for wanted in *wanted {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
        assert!(!plan.contains("CANNOT decide"), "{plan}\n{text}");
    }
}

#[test]
#[ignore = "slow"]
fn init_replaces_no_file_unasked() {
    let (_folder, path) = folder();
    let folder = path.to_str().unwrap();
    assert!(longhaul(&["init", folder]).output().unwrap().status.success());
    let again = longhaul(&["init", folder]).output().unwrap();
    assert_eq!(again.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&again.stderr).contains("--force replaces it"));
}
