//! Tests of the kinds of subjects: a crashing subject that is restarted, several processes, and a subject that runs
//! already.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::strangers::{SAME, folder, play};
use crate::support::{Ended, Soak, findings, has_python, longhaul, program, verdict};

/// Time limit of a wait in these tests. A busy machine may start all processes slowly; a wait that takes longer means
/// that a process hangs.
const PATIENCE: Duration = Duration::from_mins(1);

fn runs(process: &mut Ended) -> bool {
    process.0.try_wait().unwrap().is_none()
}

/// Runs a controller that crashes, with the variables `env` and other changes of its scenario.
fn crashing(env: &str, changes: &[(&str, &str)]) -> Soak {
    let (_folder, path) = folder();
    let file = path.join("crashing.yaml");
    let watcher = concat!(env!("CARGO_MANIFEST_DIR"), "/subjects");
    let mut text = std::fs::read_to_string(&file).unwrap();
    let env = format!("env: {{WATCHER: {watcher}, {env}}}");
    for (from, to) in [("env: {CRASHES: \"0\"}", env.as_str())].iter().chain(changes) {
        assert!(text.contains(from), "{from} is not in {text}");
        text = text.replace(from, to);
    }
    std::fs::write(&file, text).unwrap();
    play(&path, "crashing.yaml", SAME, &[])
}

#[test]
#[ignore = "slow"]
fn a_controller_that_does_not_crash_passes() {
    if !has_python() {
        return;
    }
    let soak = crashing("CRASHES: \"0\"", &[]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    assert!(findings(&soak.verdict(), "pass").contains(&"crashes.max".to_owned()), "{}", soak.story());
    assert_eq!(soak.rows("crashes.jsonl").len(), 0);
}

/// A subject that crashes is restarted, and the run continues. The verdict counts the crash but not the deletions that
/// the subject could not see while it did not run.
#[test]
#[ignore = "slow"]
fn a_crash_is_told_and_judged_and_the_run_goes_on() {
    if !has_python() {
        return;
    }
    let soak = crashing("CRASHES: \"1\"", &[]);
    assert_eq!((soak.code(), soak.broken()), (Some(1), vec!["crashes.max".to_owned()]), "{}", soak.story());
    let crashes = soak.rows("crashes.jsonl");
    assert_eq!(crashes.len(), 1, "{crashes:?}");
    assert_eq!(
        (&crashes[0]["status"], &crashes[0]["lastWords"]),
        (&"exit status: 3".into(), &"out of patience".into())
    );
    assert!(crashes[0]["tMs"].as_u64() > Some(0) && crashes[0]["ranMs"].as_u64() > Some(0), "{crashes:?}");
    assert!(soak.stdout().contains("out of patience"), "{}", soak.story());
    let last = soak.rows("intervals.jsonl").pop().unwrap();
    assert_eq!(last["last"], true, "the run went to its end: {last}");
    assert_eq!(soak.verdict()["words"], serde_json::json!(["crashed"]));

    let allowed = crashing("CRASHES: \"1\"", &[("budgets:\n", "budgets:\n  crashes: {max: 1, loops: 0}\n")]);
    assert_eq!(allowed.code(), Some(0), "{}", allowed.story());
}

#[test]
#[ignore = "slow"]
fn a_crash_loop_is_named_and_its_back_off_is_that_of_a_kubelet() {
    if !has_python() {
        return;
    }
    let env = "CRASHES: \"4\", CRASH_AFTER: \"40\"";
    let soak = crashing(env, &[("budgets:\n", "budgets:\n  crashes: {max: 9, loops: 0}\n")]);
    assert_eq!((soak.code(), soak.broken()), (Some(1), vec!["crashes.loops".to_owned()]), "{}", soak.story());
    let crashes = soak.rows("crashes.jsonl");
    let waits: Vec<u64> = crashes.iter().map(|row| row["backOffMs"].as_u64().unwrap()).collect();
    assert_eq!(waits, [0, 400, 800, 1000], "{}", soak.story());
    assert!(soak.stdout().contains("CrashLoopBackOff: the subject ended 4 times"), "{}", soak.story());
    let log = std::fs::read_to_string(soak.record().join("subject.log")).unwrap();
    assert!(log.contains("[longhaul] the subject ended with exit status: 3"), "{log}");
    let starts = soak.rows("samples.jsonl").iter().filter_map(|row| row["subject"]["starts"].as_u64()).max();
    assert_eq!(starts, Some(5));
}

/// The subject still has to observe writes that the harness made while no process of the subject ran. Writes while no
/// process ran count as missed if the restarted subject ignores them.
#[test]
#[ignore = "slow"]
fn what_was_committed_while_nobody_ran_is_still_due() {
    if !has_python() {
        return;
    }
    // It is down for a while, so that there are writes meanwhile.
    let changes = [
        ("budgets:\n", "budgets:\n  crashes: {max: 2}\n"),
        ("initial: 400ms, max: 1s", "initial: 2s, max: 2s"),
        (", duplicate: 0, resurrected: 0, converged: true", ""),
    ];
    let clean = crashing("CRASHES: \"2\", CRASH_AFTER: \"60\"", &changes);
    assert_eq!(clean.code(), Some(0), "{}", clean.story());
    let silent = crashing("CRASHES: \"2\", CRASH_AFTER: \"60\", SILENT: \"1\"", &changes);
    assert_eq!((silent.code(), silent.broken()), (Some(1), vec!["events.missed".to_owned()]), "{}", silent.story());
}

/// Without `restart`, a crash ends the run as failed, and growth is not judged.
#[test]
#[ignore = "slow"]
fn without_a_restart_a_crash_ends_the_run_as_before() {
    if !has_python() {
        return;
    }
    let gone = ("    restart: always\n    backOff: {initial: 400ms, max: 1s}\n", "");
    let soak = crashing("CRASHES: \"1\"", &[gone]);
    assert_eq!((soak.code(), soak.broken()), (Some(1), vec!["subject.exited".to_owned()]), "{}", soak.story());
    let success = [("restart: always", "restart: onFailure")];
    let soak = crashing("CRASHES: \"1\", CRASH_STATUS: \"0\"", &success);
    assert_eq!((soak.code(), soak.broken()), (Some(1), vec!["subject.exited".to_owned()]), "{}", soak.story());
    let grows = [("budgets:\n", "budgets:\n  threads: {growth: 5}\n")];
    let soak = crashing("CRASHES: \"1\"", &grows);
    assert_eq!((soak.code(), soak.broken()), (Some(1), vec!["crashes.max".to_owned()]), "{}", soak.story());
    assert_eq!(findings(&soak.verdict(), "inconclusive"), ["threads.growth"], "{}", soak.story());
}

#[test]
#[ignore = "slow"]
fn several_processes_are_one_subject() {
    if !has_python() || program("example-watcher").is_none() {
        return;
    }
    let (_folder, path) = folder();
    let soak = play(&path, "both.yaml", SAME, &[]);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    let processes = soak.rows("samples.jsonl").iter().filter_map(|row| row["subject"]["processes"].as_u64()).max();
    assert_eq!(processes, Some(2), "{}", soak.story());
    let log = std::fs::read_to_string(soak.record().join("subject.log")).unwrap();
    assert!(log.contains("[hook] the hook is ready"), "{log}");
    let manifest = std::fs::read_to_string(soak.record().join("manifest.json")).unwrap();
    assert!(manifest.contains("manager:") && manifest.contains("hook:"), "{manifest}");

    let crash = ("env: {HOOK: \"\"}", "env: {CRASH_AFTER: \"40\"}");
    let soak = play(&path, "both.yaml", crash, &[]);
    // Reviews that were under way at the exit have no answer either.
    assert!(soak.broken().iter().any(|budget| budget == "subject.exited"), "{}", soak.story());
    assert!(soak.stdout().contains("exit status: 4 (`hook`)"), "{}", soak.story());

    // Only the ended process is restarted.
    let (_folder, path) = folder();
    let text = std::fs::read_to_string(path.join("both.yaml")).unwrap();
    let text = text
        .replace(crash.0, crash.1)
        .replace("errors: 0, ", "")
        .replace("    cwd: .\n", "    cwd: .\n    restart: always\n");
    std::fs::write(path.join("both.yaml"), text).unwrap();
    let soak = play(&path, "both.yaml", ("budgets:\n", "budgets:\n  crashes: {max: 99}\n"), &[]);
    let crashes = soak.rows("crashes.jsonl");
    assert!(!crashes.is_empty() && crashes.iter().all(|row| row["process"] == "hook"), "{}", soak.story());
    assert_eq!(soak.broken(), Vec::<String>::new(), "{}", soak.story());
}

/// A run of `attached.yaml` that has printed the settings for its subject, and the subject, which the test starts with
/// these settings.
struct Run {
    longhaul: Child,
    runs: tempfile::TempDir,
    watcher: Ended,
    kubeconfig: PathBuf,
    stderr: mpsc::Receiver<String>,
    story: String,
}

fn attach(path: &Path, watcher: &Path) -> Run {
    let runs = tempfile::tempdir().unwrap();
    let file = path.join("attached.yaml");
    let mut command = longhaul(&["soak", file.to_str().unwrap(), "--quiet", "--runs"]);
    let mut child = command.arg(runs.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (sender, stderr) = mpsc::channel();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let (mut environment, mut story) = (Vec::new(), String::new());
    loop {
        let line = stderr.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it says nothing more\n{story}"));
        story.push_str(&line);
        story.push('\n');
        if let Some((name, value)) = line.strip_prefix("  ").and_then(|line| line.split_once('=')) {
            environment.push((name.to_owned(), value.to_owned()));
        }
        if line.contains("waiting until it is ready") {
            break;
        }
    }
    let mut watcher = Command::new(watcher);
    let watcher =
        watcher.envs(environment.iter().cloned()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let watcher = Ended(watcher.spawn().unwrap());
    let kubeconfig = environment.iter().find(|(name, _)| name == "KUBECONFIG").unwrap().1.clone().into();
    Run { longhaul: child, runs, watcher, kubeconfig, stderr, story }
}

impl Run {
    fn record(&self) -> PathBuf {
        std::fs::read_dir(self.runs.path()).unwrap().next().unwrap().unwrap().path()
    }

    fn end(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        while self.longhaul.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "the run hangs: {}", self.story);
            std::thread::park_timeout(Duration::from_millis(20));
        }
        self.story.extend(self.stderr.try_iter().map(|line| line + "\n"));
        self.longhaul.wait().unwrap().code()
    }
}

#[test]
#[ignore = "slow"]
fn a_controller_that_runs_already_is_watched_and_left() {
    let Some(watcher) = program("example-watcher") else { return };
    let (_folder, path) = folder();
    let mut run = attach(&path, &watcher);
    assert_eq!(run.kubeconfig.file_name().unwrap(), "attached.kubeconfig");
    assert_eq!(std::fs::metadata(&run.kubeconfig).unwrap().permissions().mode() & 0o777, 0o600);
    let code = run.end();
    assert_eq!(code, Some(0), "{}", run.story);
    assert!(runs(&mut run.watcher), "it was not ours to end");
    assert!(!run.kubeconfig.exists(), "it holds a token");
    let manifest = std::fs::read_to_string(run.record().join("manifest.json")).unwrap();
    assert!(manifest.contains("names no `pid`"), "{manifest}");
}

#[test]
#[ignore = "slow"]
fn ctrl_c_leaves_what_ran_before() {
    let Some(watcher) = program("example-watcher") else { return };
    let (_folder, path) = folder();
    let mut run = attach(&path, &watcher);
    let deadline = Instant::now() + PATIENCE;
    let began = |run: &Run| std::fs::metadata(run.record().join("intervals.jsonl")).is_ok_and(|file| file.len() > 0);
    while !began(&run) {
        assert!(Instant::now() < deadline, "it never began: {}", run.story);
        std::thread::park_timeout(Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(run.longhaul.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(run.end(), Some(3), "{}", run.story);
    assert_eq!(verdict(&run.record())["verdict"], "invalid");
    assert!(runs(&mut run.watcher) && !run.kubeconfig.exists(), "{}", run.story);
}

/// Starts `hook.py` with a port and certificate of its own.
fn hook(path: &Path, habit: &str) -> (Ended, u16) {
    let authority = mock_pki::Authority::generate("somebody's").unwrap();
    let pair = authority.server(&["127.0.0.1"]).unwrap();
    for (name, text) in [("ca.pem", authority.ca_pem()), ("tls.crt", &pair.certificate_pem), ("tls.key", &pair.key_pem)]
    {
        std::fs::write(path.join(name), text).unwrap();
    }
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let mut command = Command::new("python3");
    command.arg("hook.py").current_dir(path).env("HOOK", habit).env("LONGHAUL_WEBHOOK_PORT", port.to_string());
    command.env("LONGHAUL_TLS_CERT", "tls.crt").env("LONGHAUL_TLS_KEY", "tls.key").stdout(Stdio::piped());
    let mut child = Ended(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(child.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "the hook is ready\n");
    (child, port)
}

#[test]
#[ignore = "slow"]
fn a_webhook_that_runs_already_is_judged_by_its_address() {
    if !has_python() {
        return;
    }
    let (_folder, path) = folder();
    let file = path.join("attached-webhook.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let told = |hook: &(Ended, u16), pid: bool| {
        let pid = if pid { format!("    pid: {}\n", hook.0.0.id()) } else { String::new() };
        std::fs::write(&file, text.replace("    pid: 1\n", &pid).replace("9443", &hook.1.to_string())).unwrap();
        play(&path, "attached-webhook.yaml", SAME, &[])
    };
    let mut clean = hook(&path, "");
    let soak = told(&clean, true);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    assert!(runs(&mut clean.0), "it was not ours to end");
    let sampled = soak.rows("samples.jsonl").iter().any(|row| row["subject"]["rssBytes"].as_u64() > Some(1 << 20));
    assert!(sampled, "its process is known");

    let soak = told(&clean, false);
    assert_eq!(soak.code(), Some(2), "{}", soak.story());
    assert_eq!(
        findings(&soak.verdict(), "inconclusive"),
        ["descriptors.ceiling", "memory.ceiling"],
        "{}",
        soak.story()
    );
    assert!(soak.stdout().contains("names no `pid`"), "{}", soak.story());

    drop(clean);
    let failing = hook(&path, "errors");
    let soak = told(&failing, true);
    assert_eq!(soak.broken(), ["admission.errors"], "{}", soak.story());
    let gone = (Ended(Command::new("true").spawn().unwrap()), 1);
    let pid = gone.0.0.id();
    drop(gone);
    std::fs::write(&file, text.replace("pid: 1", &format!("pid: {pid}"))).unwrap();
    let soak = play(&path, "attached-webhook.yaml", SAME, &[]);
    assert!(soak.story().contains("there is no such process"), "{}", soak.story());
}

/// A key that does not belong to the subject's kind is refused. The error message has the line of the wrong key, and
/// the right keys.
#[test]
#[ignore = "slow"]
fn what_does_not_belong_to_a_kind_is_refused() {
    let (_folder, path) = folder();
    for (file, change, told) in [
        ("attached.yaml", ("  attach:", "  attach:\n    env: {A: b}"), "10:5: unknown key `env`. Known: pid, "),
        (
            "attached.yaml",
            ("{kind: http}", "{kind: log, pattern: '(?P<uid>a)(?P<rv>b)'}"),
            "11:3: `witness: {kind: log}` reads the output",
        ),
        (
            "attached.yaml",
            ("  attach:", "  attach:\n    url: /validate"),
            "`url: /validate` is no address of a webhook",
        ),
        ("attached.yaml", ("  attach:", "  attach:\n    restart: always"), "unknown key `restart`"),
        ("attached.yaml", ("  attach:", "  attach:\n    ready: {log: up}"), "unknown value `log`. Known: url, request"),
        ("attached-webhook.yaml", ("    ca: ca.pem\n", ""), "`url` needs `ca: FILE`"),
        (
            "attached-webhook.yaml",
            ("    url: https://127.0.0.1:9443/validate\n    ca: ca.pem\n", ""),
            "add the address, for example `url: https://",
        ),
        ("both.yaml", ("name: hook", "name: manager"), "two are called `manager`"),
        (
            "both.yaml",
            ("name: hook", "name: My Hook"),
            "`My Hook`: a name has 1 to 63 lower-case letters, digits and `-`",
        ),
        ("both.yaml", ("    cwd: .", "    cwd: .\n    run: [x]"), "has both `run` and `processes`"),
        ("both.yaml", ("    serves: {path: /validate}\n", ""), "`role: both` serves reviews: add the address"),
        ("both.yaml", ("budgets:\n", "budgets:\n  crashes: {max: 1}\n"), "add `restart: always` to `subject`"),
        ("both.yaml", ("    cwd: .", "    cwd: .\n    restart: allways"), "allways"),
        ("both.yaml", ("    cwd: .", "    cwd: .\n    pid: 7"), "unknown key `pid`"),
        ("crashing.yaml", ("    restart: always\n", ""), "`backOff` is the time between a crash and the next start"),
        ("crashing.yaml", ("initial: 400ms", "initial: 4s"), "`initial` (4s) is longer than `max` (1s)"),
    ] {
        let whole = std::fs::read_to_string(path.join(file)).unwrap();
        let text = whole.replacen(change.0, change.1, 1);
        assert_ne!(text, whole, "{change:?}");
        let changed = path.join("changed.yaml");
        std::fs::write(&changed, text).unwrap();
        let output = longhaul(&["check", changed.to_str().unwrap()]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(64), "{change:?}: {said}");
        assert!(said.contains(told), "{change:?}: {said}");
    }
}
