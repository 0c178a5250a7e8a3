//! Tests of `longhaul init` in a project in kubebuilder's layout: the scenario that it writes passes unchanged.

use std::path::Path;

use crate::operator::project;
use crate::support::{findings, has_python, longhaul, soak, story};

/// The scenario that `init` writes for a project in kubebuilder's layout passes without any change by the user.
#[test]
#[ignore = "slow"]
fn what_init_writes_for_a_kubebuilder_project_passes_unedited() {
    let Some(project) = project() else { return };
    // The project's own build makes it.
    std::fs::remove_file(project.path().join("bin/manager")).unwrap();
    let folder = project.path().to_str().unwrap();
    let output = longhaul(&["init", "--yes", folder]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("go.kubebuilder.io/v4, laid out by kubebuilder"), "{said}");
    assert!(said.contains("longhaul envtest --chaos 1"), "its own suite comes first: {said}");
    assert!(said.contains("next      look at the lines"), "{said}");
    let file = project.path().join("longhaul.yaml");
    let soak = soak(&[file.to_str().unwrap()]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(soak.code(), Some(0), "{text}\n{}", soak.story());
    let passed = findings(&soak.verdict(), "pass");
    for budget in ["events.missed", "requests.rate", "admission.errors"] {
        assert!(passed.contains(&budget.to_owned()), "{budget} is not among {passed:?}\n{}", soak.story());
    }
    // Goroutines and heap are recorded: the page was read at the port that the run chose.
    let rows = std::fs::read_to_string(soak.record().join("metrics.jsonl")).unwrap();
    assert!(rows.contains("go_goroutines"), "{}", soak.story());
}

/// The files of a small project, in a folder that the test may change.
fn shop() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/observed");
    crate::operator::copy(&files, folder.path());
    folder
}

/// The scenario that `init` writes has the observed facts about a program: the kind to which it reacts most, its
/// children, finalizer and port. The scenario passes unchanged.
#[test]
#[ignore = "slow"]
fn a_program_is_observed_and_what_is_written_passes_unedited() {
    if !has_python() {
        return;
    }
    let project = shop();
    let folder = project.path().to_str().unwrap();
    let output = longhaul(&["init", "--yes", folder]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let file = project.path().join("longhaul.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    for line in [
        "# seen: it follows baskets.shop.example.com, shelves.shop.example.com.",
        "  # seen: this page answers and has the heap in use",
        "      - '--metrics-port=${LONGHAUL_METRICS_PORT}'",
        "      SHOP_MODE: fast",
        "  - longhaul-objects.yaml",
        "    # seen: 1 configmaps for one Basket",
        "  # seen: how it proves what it saw.",
        "  witness: {kind: status}",
        "# seen: of all kinds it reacts to this one most: ",
        "  resource: baskets.shop.example.com/v1",
        "# seen: /spec/size may change, and it notices.",
        "  with: [longhaul-with.yaml]",
        "# seen: with Shelf (shelves.shop.example.com/v1): nothing.",
    ] {
        assert!(text.contains(line), "`{line}` is not in\n{text}\n{said}");
    }
    assert!(!text.contains("\n# check: the program"), "{text}");
    let soak = soak(&[file.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(0), "{text}\n{}", soak.story());
}

/// The program takes a Lease that never expires, and ends if a Secret is absent.
const LEASE: &str = r#"
import time
leases = "/apis/coordination.k8s.io/v1/namespaces/shop-system/leases"
while api.ask("GET", leases + "/shop")[0] == 200:
    time.sleep(1)
api.ask("POST", leases, {"metadata": {"name": "shop"}, "spec": {"holderIdentity": "shop"}})
if api.ask("GET", "/api/v1/namespaces/shop-system/secrets/shop-key")[0] == 404:
    sys.exit('secrets "shop-key" not found')
"#;

/// The API server refuses the object that the definition alone gives. `init` writes an object of the form that the
/// refusal asks for, and churn in the only namespace in which the program looks. The Lease of the program's first start
/// does not hold up its second start.
#[test]
#[ignore = "slow"]
fn a_refused_object_is_mended_and_churned_where_the_program_looks() {
    if !has_python() {
        return;
    }
    let project = shop();
    let change = |file: &str, from: &str, to: &str| {
        let path = project.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}");
        std::fs::write(path, text.replace(from, to)).unwrap();
    };
    std::fs::remove_dir_all(project.path().join("config/samples")).unwrap();
    let rule = r#"[{rule: "self.matches('^v[0-9]+[.][0-9]+[.][0-9]+$')", message: must be a valid semantic version}]"#;
    let version = format!("version: {{type: string, maxLength: 20, x-kubernetes-validations: {rule}}}");
    change("config/crds.yaml", "login: {type: string}", &version);
    change("config/crds.yaml", "required: [size]", "required: [size, version]");
    for ending in ["\")", "?watch=true"] {
        change(
            "operator.py",
            &format!("{{GROUP}}/{{plural}}{ending}"),
            &format!("{{GROUP}}/namespaces/shop-system/{{plural}}{ending}"),
        );
    }
    let begin = "api = Api()\n";
    change("operator.py", begin, &format!("{begin}{LEASE}"));
    let output = longhaul(&["init", "--yes", project.path().to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let file = project.path().join("longhaul.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    for line in ["version: v1.30.0", "  resource: baskets.shop.example.com/v1", "  namespace: shop-system"] {
        assert!(text.contains(line), "`{line}` is not in\n{text}\n{said}");
    }
    let soak = soak(&[file.to_str().unwrap()]);
    assert_eq!(soak.code(), Some(0), "{text}\n{}", soak.story());
}

/// `init` runs no program of the project without consent. Without consent, the scenario states that the program was not
/// observed.
#[test]
fn without_a_yes_nothing_is_run() {
    for words in [&["init"][..], &["init", "--no-run"]] {
        let project = shop();
        std::fs::write(project.path().join("operator.py"), "open('ran', 'w')\n").unwrap();
        let folder = project.path().to_str().unwrap();
        let output = longhaul(&[words, &[folder]].concat()).stdin(std::process::Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("left out  the program was not run: "), "{said}");
        assert!(!project.path().join("ran").exists(), "{said}");
        let text = std::fs::read_to_string(project.path().join("longhaul.yaml")).unwrap();
        assert!(text.contains("# check: next: the program was not run: "), "{text}");
        assert!(!text.contains("seen:"), "{text}");
    }
}

/// If the program ends or sends no request, the scenario from `init` has the program's last output and advice for the
/// user.
#[test]
#[ignore = "slow"]
fn a_program_that_ends_leaves_its_last_words() {
    if !has_python() {
        return;
    }
    for (script, told) in [
        ("import sys; sys.exit('unable to load in-cluster configuration')", "it needs a cluster around it"),
        ("import sys; sys.exit('boom')", "#   boom"),
    ] {
        let project = shop();
        std::fs::write(project.path().join("operator.py"), script).unwrap();
        let output = longhaul(&["init", "--yes", project.path().to_str().unwrap()]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{said}");
        let text = std::fs::read_to_string(project.path().join("longhaul.yaml")).unwrap();
        assert!(text.contains(told) && text.contains("# check: the program ended by itself."), "{text}\n{said}");
        assert!(text.contains("baskets.shop.example.com/v1"), "{text}");
        let objects = std::fs::read_to_string(project.path().join("longhaul-objects.yaml")).unwrap();
        assert!(objects.contains("kind: Namespace") && objects.contains("shop-system"), "{objects}\n{said}");
    }
}

/// `init` shows the changes of existing files; only `--force` makes these changes. `init` never changes an existing
/// scenario.
#[test]
fn make_and_github_show_what_would_change() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::fs::write(place("longhaul.yaml"), "mine\n").unwrap();
    std::fs::write(place("Makefile"), "build:\n\ttrue\n").unwrap();
    let init = |more: &[&str]| {
        let output = longhaul(&["init", "--make", "--github"]).args(more).arg(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", story(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let said = init(&[]);
    assert!(said.contains("+ longhaul-soak: $(LONGHAUL) build "), "{said}");
    assert_eq!(std::fs::read_to_string(place("Makefile")).unwrap(), "build:\n\ttrue\n");
    assert!(place(".github/workflows/longhaul-soak.yml").is_file());
    init(&["--force"]);
    let makefile = std::fs::read_to_string(place("Makefile")).unwrap();
    assert!(makefile.starts_with("build:\n\ttrue\n") && makefile.contains("\nlonghaul-soak:"), "{makefile}");
    assert_eq!(std::fs::read_to_string(place("longhaul.yaml")).unwrap(), "mine\n");
    assert_eq!(init(&["--force"]), "", "all is there");
}
