//! Tests of the installed binaries: exit codes, messages, and the end by a signal.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::api::Api;
use crate::support::{PATIENCE, kubeconfig};

const CLEAN: &str = env!("CARGO_BIN_EXE_longhaul-service");

fn run(binary: &str, config: &Path, planted: Option<&str>) -> Output {
    let mut command = Command::new(binary);
    command.args(["run", "--role", "packages", "--config"]).arg(config).env_remove("LONGHAUL_PLANTED_BUG");
    if let Some(planted) = planted {
        command.env("LONGHAUL_PLANTED_BUG", planted);
    }
    command.output().unwrap()
}

#[test]
fn what_cannot_work_is_refused_with_64_and_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("service.yaml");
    std::fs::write(&config, "watch:\n  silenceLimt: 5s\n").unwrap();
    let output = run(CLEAN, &config, None);
    assert_eq!(output.status.code(), Some(64));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("service.yaml:2:3: unknown key `silenceLimt`; did you mean `silenceLimit`?"), "{text}");

    std::fs::write(&config, "").unwrap();
    let output = run(CLEAN, &config, Some("missed-delete"));
    assert_eq!(output.status.code(), Some(64));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("this binary has no planted bugs"), "{text}");

    std::fs::write(&config, "kubernetes: {kubeconfig: absent.yaml}\n").unwrap();
    let output = run(CLEAN, &config, None);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("absent.yaml"));
}

#[test]
fn a_configuration_can_be_checked_asked_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.yaml");
    std::fs::write(&path, "policy: {rules: [{pattern: \"docker.io/library/*\", mode: skip}]}\n").unwrap();
    let ask = |words: &[&str]| {
        let output = Command::new(CLEAN).arg("config").args(words).arg("--config").arg(&path).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code(), said)
    };
    let (code, said) = ask(&["check"]);
    assert!(code == Some(0) && said.ends_with("service.yaml: ok\n"), "{said}");
    let (code, said) = ask(&["explain", "ghcr.io/a/b:1"]);
    assert!(code == Some(0) && said.contains("gets the digest that its registry has for it"), "{said}");
    let (code, said) = ask(&["show"]);
    assert!(code == Some(0) && said.contains("mode: skip") && said.contains("silenceLimit: 50s"), "{said}");
    std::fs::write(&path, "polizy: {}\n").unwrap();
    for words in [&["check"][..], &["explain", "a"], &["show"]] {
        let (code, said) = ask(words);
        assert!(code == Some(64) && said.contains("did you mean `policy`?"), "{said}");
    }
}

/// Values become a configuration on stdout, untranslated parts become sentences on stderr; a namespace is part of the
/// question.
#[test]
fn connaisseurs_values_become_a_configuration_that_explains_images() {
    let folder = tempfile::tempdir().unwrap();
    let values = "application:\n  validators: [{name: allow, type: static, approve: true}, {name: hub, type: notaryv1}]\n  policy:\n    \
                  - {pattern: \"*:*\", validator: hub}\n    - {pattern: \"registry.k8s.io/*:*\", validator: allow}\n";
    let (from, to) = (folder.path().join("values.yaml"), folder.path().join("service.yaml"));
    std::fs::write(&from, values).unwrap();
    let output = Command::new(CLEAN).args(["config", "import-connaisseur"]).arg(&from).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let left = String::from_utf8(output.stderr).unwrap();
    assert!(left.contains("# The validator `hub` is of type `notaryv1`, which is not built in: it refuses"), "{left}");
    let text = String::from_utf8(output.stdout).unwrap() + "\n";
    std::fs::write(&to, text.replacen("policy:", "policy:\n  namespaces: {ignore: [kube-system]}", 1)).unwrap();
    for (image, namespace, outcome) in [
        ("nginx", "team", "fails with class denied"),
        ("registry.k8s.io/pause:3", "team", "left alone: its validator approves"),
        ("nginx", "kube-system", "let in: nothing in this namespace is looked at"),
    ] {
        let output = Command::new(CLEAN)
            .args(["config", "explain", image, "--namespace", namespace, "--config"])
            .arg(&to)
            .env_remove("LONGHAUL_DETECTION_MODE")
            .output()
            .unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(said.contains(&format!("outcome:  {outcome}\n")), "{image}: {said}");
    }
    // An unusable key is found before anything runs.
    std::fs::write(&to, "validators: [{name: a, type: cosign, trustRoots: [{name: default, keyFile: absent.pub}]}]")
        .unwrap();
    let output = Command::new(CLEAN).args(["config", "check", "--config"]).arg(&to).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let what = if cfg!(feature = "verify") { "absent.pub" } else { "not built in" };
    assert!(output.status.code() == Some(64) && said.contains(what), "{said}");
    // `verify` accepts either of the two with the image, and gets as far as the same file.
    let verify = |arguments: &[&std::ffi::OsStr]| {
        let output = Command::new(CLEAN).args(["verify", "nginx"]).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (key, absent) = (["--key".as_ref(), "absent.pub".as_ref()], ["--config".as_ref(), to.as_os_str()]);
    for arguments in [&key[..], &absent] {
        let (code, said) = verify(arguments);
        assert!(code != Some(0) && said.contains(what), "{arguments:?}: {said}");
    }
    assert_eq!(verify(&[]).0, Some(64), "neither a key nor a configuration");
    let (code, said) = verify(&[&key[..], &absent].concat());
    assert!(code == Some(64) && said.contains("cannot be used with"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_ends_it_with_0() {
    let api = Api::start(false).await;
    api.create("a", &[80]);
    let folder = tempfile::tempdir().unwrap();
    kubeconfig(&folder.path().join("kube.yaml"), api.address());
    let config = folder.path().join("service.yaml");
    std::fs::write(&config, "kubernetes: {kubeconfig: kube.yaml}\nlog: {format: json}\n").unwrap();
    let child = Command::new(CLEAN)
        .args(["run", "--role", "packages", "--config"])
        .arg(&config)
        .env_remove("LONGHAUL_PLANTED_BUG")
        .env("LONGHAUL_WITNESS_URL", api.witness_url())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    crate::support::until("the witness hears of it", || !api.world.lock().witnessed.is_empty()).await;
    let begun = Instant::now();
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = tokio::task::spawn_blocking(|| child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(begun.elapsed() < PATIENCE.min(Duration::from_secs(5)), "without a webhook there is nothing to drain");
}
