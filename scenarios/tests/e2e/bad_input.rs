//! Tests of wrong input: the error message has position and remedy, the record of the run is kept, and no process is
//! left.

use std::io::Write;

use crate::support::{has_python, longhaul, soak, story};

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// Runs `longhaul check`. Returns the exit code and the message.
fn check(text: &str) -> (Option<i32>, String) {
    let file = file(text);
    let output = longhaul(&["check", file.path().to_str().unwrap()]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).replace(file.path().to_str().unwrap(), "FILE");
    (output.status.code(), message)
}

const HEAD: &str =
    "apiVersion: longhaul/v1\nname: x\ndescription: Is it refused?\nphases: {warmUp: 1s, steady: 2s, drain: 3s}\n";
const CHURN: &str = "churn: {resource: packages.longhaul.dev/v1alpha1, population: 5, rate: 5/s, mix: {create: 1, update: 1, delete: 1}}\n";

fn command(command: &str, budgets: &str) -> String {
    format!(
        "{HEAD}subject:\n  command: {command}\n  witness: {{kind: http}}\n  startTimeout: 2s\n{CHURN}budgets: {budgets}\n"
    )
}

#[test]
fn an_unknown_key_is_named_with_its_place_and_the_nearest_known_one() {
    let (code, message) = check(&format!("{HEAD}subject: {{service: {{}}, witness: {{kind: http}}}}\nchurns: {{}}\n"));
    assert_eq!(code, Some(64));
    assert!(message.starts_with("FILE:6:1: unknown key `churns`: did you mean `churn`?"), "{message}");
}

/// A subject in the notation of earlier versions is refused. The error message has the section `subject` in the new
/// notation, ready for pasting.
#[test]
fn a_flat_subject_is_told_as_it_is_written_now() {
    let flat = "subject:\n  kind: command\n  command: [./x]\n  env: {A: b}\n  witness: {kind: http}\n";
    let (code, message) = check(&format!("{HEAD}{flat}{CHURN}"));
    assert_eq!(code, Some(64));
    assert!(message.starts_with("FILE:6:3: `kind` stands in the wrong place"), "{message}");
    let (_, section) = message.split_once("\n\n").unwrap();
    assert!(section.starts_with("subject:\n  command:\n    env: {A: b}\n    run: [./x]\n  witness"), "{section}");
    assert_eq!(check(&format!("{HEAD}{section}{CHURN}")).0, Some(0));
    let two = check(&format!("{HEAD}subject: {{service: {{}}, attach: {{}}, witness: {{kind: http}}}}\n{CHURN}")).1;
    assert!(two.contains("`subject` is one of `service` and `attach`: keep one"), "{two}");
    let none = check(&format!("{HEAD}subject: {{witness: {{kind: http}}}}\n{CHURN}")).1;
    assert!(none.starts_with("FILE:5:") && none.contains("has no kind: add `service: {}`"), "{none}");
}

#[test]
fn a_wrong_unit_is_named_with_the_units_that_exist() {
    let (code, message) = check(&HEAD.replace("2s", "2sec"));
    assert_eq!(code, Some(64));
    assert!(message.starts_with("FILE:4:"), "{message}");
    assert!(message.contains("`2sec` has the unknown unit `sec`: use one of us, ms, s, m, h"), "{message}");
    let (_, message) = check(&HEAD.replace("2s", "2"));
    assert!(message.contains("`2` has no unit: write for example `15s`"), "{message}");
}

/// A scenario's name is used as a folder name and in commands. The name `v1.2` is valid; the message for an invalid
/// name suggests a valid name.
#[test]
fn names_may_have_dots_and_others_are_told_what_to_write() {
    let named = |name: &str| {
        let head = HEAD.replace("name: x", &format!("name: {name}"));
        check(&format!("{head}subject: {{service: {{}}, witness: {{kind: http}}}}\n{CHURN}"))
    };
    let (_, fine) = named("controller-v1.2_rc3");
    assert!(!fine.contains("a name has"), "{fine}");
    for (name, instead) in
        [("'My Hook'", "my-hook"), ("../etc", "etc"), ("a..b", "a.b"), ("-x", "x"), ("'!'", "my-scenario")]
    {
        let (code, message) = named(name);
        assert_eq!(code, Some(64), "{message}");
        assert!(
            message.contains("begins with a letter or digit") && message.contains(&format!("write `{instead}`")),
            "{message}"
        );
    }
}

#[test]
fn a_missing_file_lists_the_library() {
    let output = longhaul(&["soak", "smokee"]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(64));
    assert!(message.contains("no such file") && message.contains("did you mean `smoke`?"), "{message}");
}

#[test]
fn parts_that_do_not_fit_are_refused_before_anything_starts() {
    let text = format!("{HEAD}subject: {{command: [x], witness: {{kind: log, pattern: nothing}}}}\n{CHURN}");
    let (code, message) = check(&text);
    assert_eq!(code, Some(64));
    assert_eq!(
        message.trim(),
        "FILE:5:1: witness `pattern` does not identify the object: add the named group `(?P<uid>…)`, or `(?P<name>…)` and `(?P<namespace>…)`"
    );
    let late = "faults: [{name: watch-reset, at: 9s}]\n";
    let (_, message) = check(&format!("{HEAD}subject: {{service: {{}}, witness: {{kind: http}}}}\n{CHURN}{late}"));
    assert!(message.starts_with("FILE:7:1: fault 1 (`watch-reset`) begins at 9s, but load ends at 3s"), "{message}");
}

#[test]
fn signed_images_and_budgets_of_the_registry_that_cannot_be_are_refused() {
    let load = "admission: {rate: 5/s, mix: {createPod: 1}}\n";
    let said = |service: &str, shared: &str, more: &str| {
        check(&format!("{HEAD}subject: {{service: {{{service}}}, witness: {{kind: http}}{shared}}}\n{more}")).1
    };
    let signed =
        |service: &str, more: &str| said(service, "", &format!("registry: {{kind: mock, signed: true}}\n{load}{more}"));
    let moves = signed("", "faults: [{name: registry-tag-moved, at: 1s}]\n");
    assert!(moves.contains("`registry-tag-moved` moves tags to unsigned images"), "{moves}");
    let budget = "budgets: {registry: {unavailable: 3}}\n";
    assert!(said("", "", &format!("{CHURN}{budget}")).contains("are about reviews, and there are none"));
    let hidden = "admission: {through: apiserver, rate: 5/s, mix: {createPod: 1}}\n";
    let hidden = said("", ", install: {webhook: {failurePolicy: Fail}}", &format!("{hidden}{budget}"));
    assert!(hidden.contains("which `through: apiserver` hides"), "{hidden}");
}

/// Faults of a subject need a subject with the part that they act on. A key of an earlier version is refused, and the
/// message shows the fault that replaces the key.
#[test]
fn faults_of_a_subject_that_lacks_their_target_are_refused() {
    let load = "admission: {rate: 5/s, mix: {createPod: 1}}\n";
    let service = |faults: &str| {
        let subject = "subject: {service: {}, witness: {kind: http}}";
        check(&format!("{HEAD}{subject}\n{load}faults: [{faults}]\n")).1
    };
    let of_command = |keys: &str| {
        let faults = "faults: [{name: subject-restart, at: 1s}]\n";
        check(&format!("{}{faults}", command(&format!("\n    run: [x]\n{keys}"), "{}"))).1
    };
    let signed = |faults: &str| {
        let subject = "subject: {service: {}, witness: {kind: http}}\nregistry: {kind: mock, signed: true}";
        check(&format!("{HEAD}{subject}\n{load}faults: [{faults}]\n")).1
    };
    assert_eq!(service("{name: subject-restart, at: 1s, count: 2, pause: 1s, lag: 1ms}"), "");
    assert_eq!(service("{name: certificate-rotation, at: 1s, pause: 1s, valid: 3s}"), "");
    assert_eq!(signed("{name: trusted-keys, at: 1s, pause: 2s}"), "");
    let cases = [
        (service("{name: subject-restart}"), "`subject-restart`: say when it begins: `at: 5s`"),
        (
            service("{name: subject-restart, at: 1s, count: 3, pause: 1s}"),
            "fault 1 (`subject-restart`) begins for the last time at 3s, but load ends at 3s",
        ),
        (signed("{name: validator-delay, at: 1s, for: 1s}"), "acts on validators of the service: add `validators: 2`"),
        (
            signed("{name: validator-restart, at: 1s, away: 1s}"),
            "acts on validators of the service: add `validators: 2`",
        ),
        (of_command(""), "`subject-restart` is for a subject that serves reviews: add `serves: {path: /mutate}`"),
        (
            service("{name: certificate-rotation, at: 2s, pause: 1s, valid: 2s}"),
            "the first certificate has ended at 2s: let it begin earlier",
        ),
        (
            service("{name: trusted-keys, at: 1s}"),
            "`trusted-keys` needs signed images: add `registry: {signed: true}`, or leave it out",
        ),
        (of_command("    serves: {path: /a, port: 9443}\n"), "a flag for `${LONGHAUL_WEBHOOK_PORT}`"),
    ];
    for (told, expected) in cases {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    let old = "subject:\n  service:\n    restarts: {count: 2, every: 1s}\n  witness: {kind: http}\n";
    let old = check(&format!("{HEAD}{old}{load}")).1;
    let expected = "FILE:7:5: `restarts` is a fault now, with a time, hits and canaries. Leave it out here, and write\n\n\
                    faults:\n  - {name: subject-restart, at: 3s, count: 2, pause: 1s}";
    assert_eq!(old.trim(), expected);
}

/// Alerts, locks and shared caches need the built-in service, because its own answers decide their budgets.
#[test]
fn alerts_locks_and_shared_caches_that_nothing_could_decide_are_refused() {
    let load = "admission: {rate: 5/s, mix: {createPod: 1}}\n";
    let said = |service: &str, more: &str| {
        check(&format!("{HEAD}subject: {{service: {{{service}}}, witness: {{kind: http}}}}\n{more}")).1
    };
    let with = |more: &str| said("", &format!("{load}{more}"));
    let moved = "faults: [{name: tags-moved, at: 1s, for: 1s}]\n";
    assert_eq!(with(&format!("alerts: {{beside: silent}}\nregistry: {{kind: mock, lock: handed}}\n{moved}")), "");
    let cases = [
        (with("budgets: {alerts: {lost: 0}}\n"), "`alerts` has a budget but there is no receiver: add `alerts: {}`"),
        (
            with("budgets: {admission: {consistent: {under: []}}}\n"),
            "`admission.consistent.under` is empty: list conditions",
        ),
        (with("budgets: {admission: {consistent: {under: [rain]}}}\n"), "unknown value `rain`"),
        (
            said(
                "",
                "churn: {resource: configmaps/v1, population: 1, rate: 1/s}\nbudgets: {admission: {consistent: {}}}\n",
            ),
            "beside the mock",
        ),
        (with("budgets: {admission: {unlocked: 0}}\n"), "needs a lock: add `registry: {lock: handed}`"),
        (with("alerts: {beside: asleep}\n"), "unknown value `asleep`"),
        (said("", &format!("{CHURN}alerts: {{}}\n")), "add `admission` without `through: apiserver`"),
        (with("registry: {kind: mock, lock: handed, signed: true}\n"), "leave out `signed` or `lock`"),
        (
            with("alerts: {}\nfaults: [{name: subject-restart, at: 1s}]\n"),
            "loses its unsent alerts: leave out the fault or `alerts`",
        ),
        (with(moved), "`tags-moved` moves the tags of locked images: add `registry: {lock: handed}`"),
        (
            with("registry: {kind: mock, lock: handed}\n"),
            "add this to `faults`: `- {name: tags-moved, at: 500ms, for: 1s}`",
        ),
        (with("sharedCache: {}\n"), "only the service has a shared cache"),
        (
            with("registry: {kind: mock, signed: true}\nsharedCache: {away: {at: 1s, for: 1h}}\n"),
            "faults:\n  - {name: shared-cache-away, at: 1s, for: 1h}",
        ),
        (
            with("faults: [{name: shared-cache-forges}]\n"),
            "acts on the shared cache of the service: add `sharedCache: {}`",
        ),
    ];
    for (told, expected) in cases {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

/// A scenario is refused if an attack in it ends after the load, is listed twice, or has a wrong name or number of
/// connections.
#[test]
fn attacks_that_nothing_could_show_are_refused() {
    let with = |attacks: &str| {
        let load = format!("admission: {{rate: 5/s, mix: {{createPod: 1}}, attacks: [{attacks}]}}\n");
        check(&format!("{HEAD}subject: {{service: {{}}, witness: {{kind: http}}}}\n{load}")).1
    };
    let one = "{name: open-streams, at: 1s, for: 1s}";
    assert_eq!(with(one), "");
    let cases = [
        (with("{name: open-streams, at: 1s, for: 1m}"), "`open-streams` ends after the load (3s)"),
        (with(&format!("{one}, {one}")), "admission.attacks: names `open-streams` twice: keep one entry"),
        (with("{name: open-streams, at: 1s, for: 1s, connections: 0}"), "connections is 0: write 1 to 512"),
        (with("{name: open-stream, at: 1s, for: 1s}"), "did you mean `open-streams`?"),
    ];
    for (told, expected) in cases {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

/// Worker processes judge answers by the images as they were before the run. For this reason a scenario with workers
/// must not change the right answers during the run.
#[test]
fn workers_beside_what_changes_the_right_answers_are_refused() {
    let said = |more: &str| {
        let load = "admission: {rate: 5/s, workers: {count: 2}, mix: {createPod: 1}}\n";
        check(&format!("{HEAD}subject: {{service: {{}}, witness: {{kind: http}}}}\n{load}{more}")).1
    };
    assert_eq!(said(""), "");
    for (more, expected) in [
        ("alerts: {beside: silent}\n", "`alerts` is judged by each answer"),
        ("registry: {kind: mock, lock: handed}\n", "`registry.lock` lets tags move"),
        ("faults: [{name: registry-slow, at: 1s, for: 1s, delay: 1s}]\n", "a sick registry excuses denials"),
    ] {
        let told = said(more);
        assert!(told.contains(expected) && told.contains("leave one of them out"), "{expected}: {told}");
    }
}

/// Workers in Pods are started by kubectl. `longhaul check` searches kubectl before a cluster is started, and the
/// printed plan describes the workers.
#[test]
fn workers_in_pods_are_planned_and_need_kubectl() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("workers.yaml");
    let plan = |kind: &str| {
        let load = "admission: {rate: 5/s, workers: {count: 2}, mix: {createPod: 1}}\n";
        let text = format!(
            "{HEAD}subject: {{service: {{}}, witness: {{kind: http}}}}\ncontrolPlane: {{kind: {kind}}}\n{load}"
        );
        std::fs::write(&file, text).unwrap();
        let output = longhaul(&["check", "--plan", file.to_str().unwrap()]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", story(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(plan("mock").contains("2 workers send it: processes of this machine"));
    assert!(plan("node").contains("2 workers send it: Pods of one Job"));
    let mut command = longhaul(&["soak", file.to_str().unwrap(), "--runs"]);
    let output = command.arg(folder.path()).env("PATH", "/nowhere").env_remove("KUBEBUILDER_ASSETS").output().unwrap();
    let told = story(&output);
    assert_eq!(output.status.code(), Some(69), "{told}");
    assert!(told.contains("`workers` in Pods") && told.contains("kubectl"), "{told}");
}

/// A subject in Pods needs a node. For a subject in Pods, impossible actions are reported before a node is started.
#[test]
fn a_subject_in_pods_without_a_node_is_refused() {
    let deployed = scenarios::scenario::library::text("deployed").unwrap();
    let told = |from: &str, to: &str| {
        let text = deployed.replace(from, to);
        assert_ne!(text, deployed, "{from}");
        let (code, message) = check(&text);
        assert_eq!(code, Some(64), "{message}");
        message
    };
    let mock = told("controlPlane: {kind: node}", "controlPlane: {kind: mock}");
    assert!(mock.contains("`deployment` runs in Pods, which only a node has"), "{mock}");
    let net = told("budgets:", "faults: [{name: net-loss, at: 9s}]\nbudgets:");
    assert!(net.contains("and Pods do not use it: use `net-freeze`"), "{net}");
    let late = told("budgets:", "faults: [{name: pod-kill, at: 50s}]\nbudgets:");
    assert!(late.contains("`pod-kill`) begins at 50s, but load ends at 47s"), "{late}");
    let early = told("budgets:", "faults: [{name: pod-kill}]\nbudgets:");
    assert!(early.contains("`pod-kill`: say when it begins: `at: 5s`"), "{early}");
    let nothing = told("    build: service\n", "    replicas: 2\n");
    assert!(nothing.contains("`deployment` applies nothing: add `manifests: [FOLDER]`"), "{nothing}");
}

#[test]
fn what_waits_for_a_hit_that_cannot_come_is_refused_with_its_line() {
    let subject = "subject: {service: {}, witness: {kind: http}}\n";
    let script =
        "script:\n  resource: packages.longhaul.dev/v1alpha1\n  objects: [a]\n  steps:\n    - {at: 1s, update: a}\n";
    let faults = "faults:\n  - {name: watch-end, id: first, at: 1s}\n";
    let with = |more: &str, late: &str| check(&format!("{HEAD}{subject}{script}{more}{faults}{late}"));
    assert_eq!(with("    - {when: {hit: first}, delete: a}\n", "").0, Some(0));
    let (code, message) = with("    - {when: {hit: frist}, delete: a}\n", "");
    assert_eq!(code, Some(64), "{message}");
    let said = "FILE:11:5: step 2 of the script waits for a hit of `frist`, which no fault has as its `id`; did you mean `first`?";
    assert_eq!(message.trim(), said);
    let (_, message) = with("", "  - {name: compact, when: {hit: frist}}\n");
    assert!(message.starts_with("FILE:13:3: fault 2 (`compact`): `when` waits for a hit of `frist`"), "{message}");
    assert!(message.contains("did you mean `first`?"), "{message}");
    let (_, message) =
        with("", "  - {name: compact, id: a, when: {hit: b}}\n  - {name: compact, id: b, when: {hit: a}}\n");
    assert!(message.contains("neither would ever begin"), "{message}");
}

#[test]
fn a_step_or_a_fault_that_makes_no_sense_is_refused_with_its_line() {
    let subject = "subject: {service: {}, witness: {kind: http}}\n";
    let script = |step: &str| {
        let head = "script:\n  resource: packages.longhaul.dev/v1alpha1\n  objects: [a]\n  steps:\n    - {at: 1s, update: a}\n";
        check(&format!("{HEAD}{subject}{head}    - {step}\n"))
    };
    let (code, message) = script("{at: 1s, update: a, delete: a}");
    assert_eq!(code, Some(64));
    assert!(message.starts_with("FILE:11:5: script.steps[2]: has `update` and `delete`"), "{message}");
    let (_, message) = script("{at: 9s, update: a}");
    assert!(
        message.starts_with("FILE:11:5: step 2 of the script makes its last write at 9s, but load ends at 3s"),
        "{message}"
    );
    let (_, message) = script("{at: 1s, updat: a}");
    assert!(message.contains("unknown key `updat`: did you mean `update`?"), "{message}");
    let (_, message) = check(&format!("{HEAD}{subject}{CHURN}faults: [{{name: http-eror}}]\n"));
    assert!(message.contains("unknown value `http-eror`: did you mean `http-error`?"), "{message}");
}

#[test]
fn a_program_that_does_not_exist_is_missed_before_anything_starts() {
    let file = file(&command("[/no/such/program]", "{}"));
    let soak = soak(&[file.path().to_str().unwrap()]);
    assert_eq!(soak.code(), Some(69), "{}", soak.story());
    assert!(soak.story().contains("`/no/such/program` of `subject` is not there"), "{}", soak.story());
}

#[test]
fn a_subject_that_exits_before_it_is_ready_is_quoted() {
    let file = file(&command("[sh, -c, 'echo no database here; exit 3']", "{}"));
    let soak = soak(&[file.path().to_str().unwrap()]);
    assert_eq!(soak.code(), Some(3), "{}", soak.story());
    assert!(soak.stdout().contains("no database here"), "{}", soak.story());
}

#[test]
fn a_subject_that_never_asks_is_not_ready() {
    let file = file(&command("[sleep, '600']", "{}"));
    let soak = soak(&[file.path().to_str().unwrap()]);
    assert_eq!(soak.code(), Some(3), "{}", soak.story());
    assert!(soak.stdout().contains("no request to the control plane"), "{}", soak.story());
}

/// A shell program that sends one request, so that it counts as ready, and then runs the commands `then`.
fn asks_once(then: &str) -> String {
    let python = "import os,re,ssl,sys,time,urllib.request as u; t=open(os.environ['KUBECONFIG']).read(); \
        s=re.search(r'server: (\\S+)',t).group(1).strip('\\\"'); k=re.search(r'token: (\\S+)',t).group(1).strip('\\\"'); \
        u.urlopen(u.Request(s+'/apis/longhaul.dev/v1alpha1/packages',headers={'Authorization':'Bearer '+k}),context=ssl._create_unverified_context()); ";
    format!("[python3, -c, \"{}\"]", format!("{python}{then}").replace('\\', "\\\\").replace('"', "\\\""))
}

/// A scenario with a subject that sends one request and then runs the commands `then`. On a busy machine Python takes
/// seconds to send this request.
fn asking(then: &str) -> String {
    command(&asks_once(then), "{events: {missed: 0}}").replace("startTimeout: 2s", "startTimeout: 30s")
}

#[test]
fn a_subject_that_crashes_in_the_middle_fails_with_its_last_words() {
    if !has_python() {
        return;
    }
    let file = file(&asking("time.sleep(1.5); print('out of cheese'); sys.exit(7)"));
    let soak = soak(&[file.path().to_str().unwrap()]);
    assert_eq!(soak.code(), Some(1), "{}", soak.story());
    assert!(soak.broken().contains(&"subject.exited".to_owned()), "{}", soak.story());
    assert!(soak.stdout().contains("out of cheese"), "{}", soak.story());
}

#[test]
#[ignore = "slow"]
fn a_silent_witness_leaves_the_run_undecided() {
    if !has_python() {
        return;
    }
    let file = file(&asking("time.sleep(600)"));
    let soak = soak(&[file.path().to_str().unwrap()]);
    assert_eq!(soak.code(), Some(2), "{}", soak.story());
    assert!(soak.stdout().contains("$LONGHAUL_WITNESS_URL"), "{}", soak.story());
}

/// A subject that watches another resource than the churned one is reported after 20 s, not after the whole run. The
/// message has the subject's requests, the churned resources, and a remedy.
#[test]
#[ignore = "slow"]
fn a_subject_that_asks_for_nothing_that_is_churned_is_told_early() {
    if !has_python() {
        return;
    }
    let other = "any(u.urlopen(u.Request(s+'/api/v1/configmaps',headers={'Authorization':'Bearer '+k}), \
                 context=ssl._create_unverified_context()).close() or time.sleep(1) for _ in iter(int, 1))";
    let run = asks_once(other).replace("/apis/longhaul.dev/v1alpha1/packages", "/api/v1/configmaps");
    let text = command(&run, "{events: {missed: 0}}").replace("startTimeout: 2s", "startTimeout: 60s");
    let text = text.replace("steady: 2s", "steady: 120s");
    let file = file(&text);
    let began = std::time::Instant::now();
    let soak = soak(&[file.path().to_str().unwrap()]);
    assert!(matches!(soak.code(), Some(2 | 3)), "{}", soak.story());
    let said = "it requested no churned objects (packages.longhaul.dev). It requested configmaps (list). Churn the kinds that it follows";
    assert!(soak.stdout().contains(said), "{}", soak.story());
    assert!(began.elapsed() < std::time::Duration::from_secs(90), "{}", soak.story());
}

/// `longhaul … | head -1` must not end in a panic.
#[test]
fn a_reader_that_is_gone_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = longhaul(&["show", "library"]).stdout(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_port_in_use_is_named_with_the_remedy() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig.yaml");
    let output = longhaul(&["mock", "kube", "--port", &port, "--kubeconfig"]).arg(&kubeconfig).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(64), "{message}");
    assert!(message.contains(&port) && message.contains("--port"), "{message}");
    assert!(!kubeconfig.exists(), "a kubeconfig of a server that does not run would only mislead");
}

/// A CI job names the folder of the record, reads the verdict from stdout, and decides itself how to treat an
/// inconclusive verdict.
#[test]
#[ignore = "slow"]
fn a_pipeline_gets_its_folder_and_its_json() {
    let Some(service) = crate::support::program("longhaul-service") else { return };
    let small = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small.yaml");
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("deep/record");
    let run = |more: &[&str]| {
        let mut command = longhaul(&["soak", small, "--quiet", "--json", "--service"]);
        command.arg(&service).arg("--run-dir").arg(&named).args(more).output().unwrap()
    };
    let output = run(&["--allow-inconclusive"]);
    let verdict: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = if verdict["verdict"] == "inconclusive" { 0 } else { verdict["exitCode"].as_i64().unwrap() };
    assert_eq!(output.status.code().map(i64::from), Some(expected), "{verdict:#}");
    assert!(named.join("manifest.json").is_file() && named.join("report.html").is_file());
    let again = run(&[]);
    assert_eq!(again.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&again.stderr).contains("there is something in it already"), "{again:?}");
}

#[test]
fn the_doctor_says_what_is_there_and_what_is_not() {
    let output =
        longhaul(&["show", "doctor"]).env("PATH", "/nowhere").env_remove("KUBEBUILDER_ASSETS").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.starts_with("machine   "), "{text}");
    assert!(text.contains("missing   kubectl ") && text.contains("apt-get install valgrind"), "{text}");
}

/// A scenario from a pull request may name any file. Longhaul reads no file outside the scenario's folder, and no error
/// shows the content of such a file.
#[test]
fn a_strangers_scenario_reads_nothing_outside_of_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (inner, secret) = (folder.path().join("scenario"), folder.path().join("secret"));
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(&secret, "hunter2: [\n").unwrap();
    let path = |name: &str| inner.join(name);
    std::os::unix::fs::symlink(&secret, path("link")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    let check = |text: &str, options: &[&str]| {
        std::fs::write(path("x.yaml"), text).unwrap();
        let mut command = longhaul(&["check", path("x.yaml").to_str().unwrap()]);
        let output = command.args(options).env("TOKEN", "hunter2").output().unwrap();
        let all = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&all).into_owned())
    };
    let service = "subject: {service: {}, witness: {kind: http}}\n";
    let manifests = |file: &str| format!("{HEAD}controlPlane: {{kind: mock, manifests: [{file}]}}\n{service}{CHURN}");
    let template = |file: &str| {
        let churn = CHURN.replace("population", &format!("template: {file}, population"));
        format!("{HEAD}{service}{churn}")
    };
    let config = |file: &str| format!("{HEAD}{}{CHURN}", service.replace("{}", &format!("{{config: {file}}}")));
    for file in ["/proc/self/environ", "/dev/zero", "../secret", "link", ".."] {
        for text in [manifests(file), template(file), config(file)] {
            let (code, said) = check(&text, &[]);
            assert!(code == Some(64) && said.contains("leads out of the folder of the scenario"), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
    // With any permission, no pipe is waited for, no device is read, and no content of another folder is quoted.
    for file in ["pipe", "/dev/zero", "/proc/self/environ", "link"] {
        for text in [manifests(file), template(file)] {
            let (code, said) = check(&text, &["--allow-outside"]);
            assert!(code == Some(64) && !said.contains("hunter2"), "{said}");
        }
    }
    assert!(check(&manifests("pipe"), &[]).1.contains("is no regular file"));
    // The scenario itself is a file of the same stranger.
    std::fs::remove_file(path("x.yaml")).unwrap();
    std::os::unix::fs::symlink(&secret, path("x.yaml")).unwrap();
    let output = longhaul(&["check", path("x.yaml").to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("leads out of the folder") && !said.contains("hunter2"), "{said}");
}

#[test]
fn an_unknown_release_of_kubernetes_is_refused_with_the_list() {
    let of_mock = &["mock", "kube", "--port", "0", "--kubernetes", "1.20"][..];
    for arguments in [of_mock, &["envtest", "--kubernetes", "1.20", "--", "true"]] {
        let folder = tempfile::tempdir().unwrap();
        let output = longhaul(arguments).current_dir(&folder).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{message}");
        assert!(message.contains("Kubernetes 1.20 has no table; choose one of: 1.34"), "{message}");
    }
}
