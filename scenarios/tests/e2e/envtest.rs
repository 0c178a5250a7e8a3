//! Tests of `longhaul envtest` as authors of test suites use it. Each flag of `envtest` shows a mistake that the
//! controller's test suite alone does not show; the controller without the mistake passes. Further tests cover the
//! folders that `--path` and `install` make.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use crate::support::{longhaul, story};

const SOURCE: &str = include_str!("../files/envtest/main.go");
const MODULE: &str = include_str!("../files/envtest/go.mod");
/// Number of seeds with which a test suite runs. Each seed draws other times of faults, and one fault that shows the
/// mistake is enough.
const SEEDS: &str = "4";

/// The path of the compiled Go test program. Prints a message and returns `None` if Go or its modules are missing.
fn program() -> Option<PathBuf> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match PROGRAM.get_or_init(|| installer::go_program("envtest-flags", SOURCE, MODULE)) {
        Ok(program) => Some(program.clone()),
        Err(missing) => {
            println!("skipped: needs {missing}");
            None
        }
    }
}

/// Runs one suite of the compiled test program with these flags of `longhaul envtest`.
fn play(runs: &Path, flags: &[&str], suite: [&str; 2]) -> Option<Output> {
    let program = program()?;
    let mut command = longhaul(&["envtest"]);
    command.args(flags).arg("--").arg(program).args(suite).current_dir(runs);
    Some(command.output().unwrap())
}

fn code(runs: &Path, flags: &[&str], suite: [&str; 2], wanted: i32) {
    let Some(output) = play(runs, flags, suite) else { return };
    assert_eq!(output.status.code(), Some(wanted), "{flags:?} {suite:?}: {}", story(&output));
}

/// Checks that a suite with the mistake passes without the flags and fails with the flags, and that the suite without
/// the mistake passes with the flags.
fn shows(flags: &[&str], suite: &str) {
    let runs = tempfile::tempdir().unwrap();
    code(runs.path(), &[], [suite, "buggy"], 0);
    code(runs.path(), flags, [suite, "buggy"], 1);
    code(runs.path(), flags, [suite, "right"], 0);
}

#[test]
#[ignore = "slow: Go builds controller-runtime the first time"]
fn order_shows_who_gives_up_on_what_is_not_there_yet() {
    shows(&["--order", "--repeat", SEEDS], "order");
}

#[test]
#[ignore = "slow: Go builds controller-runtime the first time"]
fn stale_shows_who_believes_a_cache_after_a_write() {
    let runs = tempfile::tempdir().unwrap();
    let results = runs.path().join("junit.xml");
    let flags = |more: &[&'static str]| {
        let results = ["--results", results.to_str().unwrap()].map(str::to_owned);
        more.iter().map(|flag| (*flag).to_owned()).chain(results).collect::<Vec<_>>()
    };
    let said = |more: &[&'static str], kind: &str, wanted: i32| -> Option<String> {
        let mut command = longhaul(&["envtest"]);
        command.args(flags(more)).arg("--").arg(program()?).args(["stale", kind]).env("SUITE_RESULTS", &results);
        let output = command.current_dir(runs.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(wanted), "{more:?} {kind}: {}", story(&output));
        Some(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let Some(plain) = said(&[], "buggy", 0) else { return };
    assert!(!plain.contains("stale"), "{plain}");
    let stale = ["--stale", "3", "--repeat", SEEDS];
    let wrong = said(&stale, "buggy", 1).unwrap();
    // The output has the lagging read, the write based on it, the resulting mistake, and the odds.
    let culprit = wrong.lines().find(|line| line.contains("was based on a read")).unwrap_or_else(|| panic!("{wrong}"));
    for part in ["`create secrets default/parent-", "its cache of secrets did not have", "by itself", "children"] {
        assert!(culprit.contains(part), "{part}: {culprit}");
    }
    let odds = wrong.lines().find(|line| line.contains("failed again in")).unwrap_or_else(|| panic!("{wrong}"));
    assert!(!odds.contains("in 0 of 3"), "a seed is bound to requests, not to times: {odds}");
    assert!(wrong.contains("passed without faults"), "{wrong}");
    let right = said(&stale, "right", 0).unwrap();
    assert!(right.contains("safe with a cache"), "{right}");
    assert!(right.contains("came while a cache was behind, and every run passed"), "{right}");
}

/// A hunt finds the write that is based on an old cache, and the saved faults show it again. The correct suite has no finding.
#[test]
#[ignore = "slow: Go builds controller-runtime the first time"]
fn nightly_a_hunt_finds_who_believes_a_cache_after_a_write() {
    let runs = tempfile::tempdir().unwrap();
    let hunt = ["--hunt", "--trials", "24", "--for", "3m"];
    code(runs.path(), &hunt, ["stale", "right"], 0);
    let Some(found) = play(runs.path(), &hunt, ["stale", "buggy"]) else { return };
    let said = String::from_utf8_lossy(&found.stdout).into_owned();
    assert_eq!(found.status.code(), Some(1), "{said}");
    assert!(said.contains("events of secrets are held") && said.contains("play it: "), "{said}");
    let faults = runs.path().join("hunt-1.faults.yaml");
    code(runs.path(), &["--faults", faults.to_str().unwrap(), "--repeat", SEEDS], ["stale", "buggy"], 1);
}

/// A suite that hangs with disturbances only is ended, and the hunt goes on.
#[test]
#[ignore = "slow: Go builds controller-runtime the first time"]
fn nightly_a_hunt_ends_a_suite_that_hangs() {
    let Some(program) = program() else { return };
    let runs = tempfile::tempdir().unwrap();
    let suite = runs.path().join("suite.sh");
    let script = format!(
        "'{}' stale right || exit 1\nwhile ! grep -q '\"faults\": \\[\\]' \"${}\"; do sleep 1; done\n",
        program.display(),
        mock_envtest::SESSION
    );
    std::fs::write(&suite, script).unwrap();
    let mut command = longhaul(&["envtest", "--hunt", "--trials", "2", "--for", "5m", "--", "sh"]);
    let output = command.arg(&suite).current_dir(runs.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", story(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("2 trials") && said.contains("The suite did not end within"), "{said}");
}

#[test]
#[ignore = "slow: Go builds controller-runtime the first time"]
fn faults_show_who_forgets_a_refused_write() {
    let runs = tempfile::tempdir().unwrap();
    let file = runs.path().join("conflict.yaml");
    std::fs::write(&file, "- {name: http-error, on: update, resource: configmaps, status: 409, count: 3}\n").unwrap();
    shows(&["--faults", file.to_str().unwrap(), "--manager-agent", "suite-manager"], "conflict");
}

#[test]
#[ignore = "slow: Go builds controller-runtime the first time"]
fn judge_shows_a_hot_loop_and_faults_without_effect() {
    let runs = tempfile::tempdir().unwrap();
    code(runs.path(), &[], ["loop", "buggy"], 0);
    code(runs.path(), &["--judge"], ["loop", "buggy"], 1);
    code(runs.path(), &["--judge"], ["loop", "right"], 0);
    // Polls of the suite with its manager's client, every 10 ms, are no loop of the manager; reads without a pause are.
    code(runs.path(), &["--judge"], ["poll", "right"], 0);
    code(runs.path(), &["--judge"], ["poll", "buggy"], 1);
    let never = runs.path().join("never.yaml");
    std::fs::write(&never, "- {name: watch-410, at: 10m}\n").unwrap();
    code(runs.path(), &["--judge", "--faults", never.to_str().unwrap()], ["loop", "right"], 2);
    // A run without any disturbance is no pass, and such runs are counted separately.
    let Some(output) = play(runs.path(), &["--faults", never.to_str().unwrap(), "--repeat", "2"], ["loop", "right"])
    else {
        return;
    };
    assert_eq!(output.status.code(), Some(2), "{}", story(&output));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no fault hit anything in any of 2 runs"), "{said}");
}

/// `longhaul gate` compares two checkouts by their test suite: it names the checkout with a mistake, and reports no
/// difference between equal checkouts.
#[test]
#[ignore = "slow: minutes of suites"]
fn nightly_a_gate_compares_two_checkouts_by_their_suite() {
    let Some(program) = program() else { return };
    let runs = tempfile::tempdir().unwrap();
    for (folder, kind) in [("old", "right"), ("new", "buggy")] {
        let folder = runs.path().join(folder);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("run.sh"), format!("exec {} conflict {kind} 150\n", program.display())).unwrap();
    }
    let gate = |b: &str, out: &str| {
        let flags =
            ["--suite", "sh run.sh", "--a", "old", "--b", b, "--seeds", "8", "--manager-agent", "suite-manager"];
        longhaul(&["gate"]).args(flags).args(["--out", out]).current_dir(runs.path()).output().unwrap()
    };
    let worse = gate("new", "worse");
    assert_eq!(worse.status.code(), Some(1), "{}", story(&worse));
    assert!(String::from_utf8_lossy(&worse.stdout).contains("in B alone"), "{}", story(&worse));
    let text = std::fs::read_to_string(runs.path().join("worse/suite.json")).unwrap();
    assert!(text.contains("\"verdict\": \"worse\""), "{text}");
    let same = gate("old", "same");
    assert_eq!(same.status.code(), Some(0), "{}", story(&same));
}

/// The suite of fabric8's test kit passes. The kit of fabric8 starts the programs with other flags and other keys, and
/// needs `kubectl`.
#[test]
#[ignore = "slow: Maven fetches the kit the first time"]
fn a_suite_of_fabric8s_kit_passes() {
    if installer::on_path("mvn").is_none() || installer::on_path("kubectl").is_none() && assets().is_none() {
        println!("skipped: needs Maven and kubectl");
        return;
    }
    let project = tempfile::tempdir().unwrap();
    for file in ["pom.xml", "src/test/java/dev/example/SuiteTest.java", "src/test/resources/crd.yaml"] {
        let path = project.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/envtest/java").join(file);
        std::fs::copy(from, path).unwrap();
    }
    let mut command = longhaul(&["envtest", "--", "mvn", "-B", "test"]);
    let output = command.current_dir(project.path()).env_remove("KUBE_API_TEST_DIR").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if said.contains("Could not resolve") || said.contains("Could not transfer") {
        println!("skipped: needs io.fabric8:kube-api-test-client-inject 7.5.2 from Maven");
        return;
    }
    assert!(output.status.success() && said.contains("Tests run: 6, Failures: 0, Errors: 0"), "{}", story(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 control planes"), "{}", story(&output));
}

/// The folder with a real kube-apiserver and etcd, if there is one.
fn assets() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("KUBEBUILDER_ASSETS")?);
    folder.join("kubectl").is_file().then_some(folder)
}

/// `kubernetes_lite` wraps Go's envtest for Python. The test suite for `kubernetes_lite` uses its client and the
/// official Python client.
#[test]
#[ignore = "slow: pip installs two clients the first time"]
fn a_suite_of_kubernetes_lite_passes() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let package = installer::package("kubernetes_lite", "0.1.0").unwrap();
    let installed = match runtime.block_on(package.install()) {
        Ok(installed) => installed,
        Err(missing) => {
            println!("skipped: needs {missing}");
            return;
        }
    };
    let runs = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/envtest/suite.py");
    let mut command = longhaul(&["envtest", "--"]);
    command.arg(&installed.interpreter).arg(script).env("PYTHONPATH", &installed.folder).current_dir(runs.path());
    let output = command.output().unwrap();
    assert!(
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("passed"),
        "{}",
        story(&output)
    );
}

/// `--path` prints a folder with the programs, for a shell script that sets the variables itself.
#[test]
fn the_folder_of_path_has_the_programs() {
    let home = tempfile::tempdir().unwrap();
    let output = longhaul(&["envtest", "--path"]).env("XDG_CACHE_HOME", home.path()).output().unwrap();
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    assert!(output.status.success() && folder.starts_with(home.path()), "{}", story(&output));
    programs(&folder);
}

/// Test kits look for programs in different folder layouts. `longhaul envtest install` serves these layouts and keeps
/// existing foreign files.
#[test]
fn install_puts_the_programs_where_kits_look() {
    let home = tempfile::tempdir().unwrap();
    let install = |flags: &[&str]| {
        let mut command = longhaul(&["envtest", "install"]);
        command.args(flags).env("HOME", home.path()).env_remove("XDG_DATA_HOME").env_remove("KUBE_API_TEST_DIR");
        command.output().unwrap()
    };
    let output = install(&["--version", "v1.31.0"]);
    assert!(output.status.success(), "{}", story(&output));
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let leaf = format!("k8s/1.31.0-linux-{architecture}");
    for store in [".local/share/kubebuilder-envtest", ".kubeapitest"] {
        programs(&home.path().join(store).join(&leaf));
    }
    assert!(install(&["--version", "1.31.0"]).status.success(), "its own are replaced");

    let real = home.path().join(".kubeapitest").join(&leaf).join("etcd");
    std::fs::remove_file(&real).unwrap();
    std::fs::write(&real, "real").unwrap();
    let refused = install(&["--version", "1.31.0"]);
    assert!(
        !refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("--force"),
        "{}",
        story(&refused)
    );
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "real");
    assert!(install(&["--version", "1.31.0", "--force"]).status.success());
    programs(real.parent().unwrap());

    let own = home.path().join("bin");
    let output = install(&["--bin-dir", own.to_str().unwrap(), "--version", "1.31.0"]);
    assert!(output.status.success(), "{}", story(&output));
    programs(&own.join(&leaf));
}

/// Checks that each program in the folder starts under its name and prints the help text of that program.
fn programs(folder: &Path) {
    for (name, line) in [("etcd", "--unsafe-no-fsync"), ("kube-apiserver", "--secure-port")] {
        let output = std::process::Command::new(folder.join(name)).arg("--help").output().unwrap();
        assert!(
            output.status.success() && String::from_utf8_lossy(&output.stdout).contains(line),
            "{}",
            story(&output)
        );
    }
    assert!(folder.join("kubectl").is_symlink(), "{}", folder.display());
}
