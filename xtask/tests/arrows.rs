//! Compares the allowed dependencies between crates with the manifests, the sources and `arrows.txt`.
//!
//! Cargo refuses only circular dependencies between crates, so every allowed dependency is listed in [`CRATES`].
//! Modules with the same parent must not depend on each other in a circle. [`APART`] lists other modules that must not
//! depend on each other. The second list in `arrows.txt` shows the modules of each crate by layers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A crate of the workspace.
struct Crate {
    name: &'static str,
    /// The responsibility of the crate, which `arrows.txt` shows.
    owns: &'static str,
    /// The crates of the workspace on which the crate may depend.
    uses: &'static [&'static str],
    /// Further crates on which the crate's tests, benchmarks and examples may depend.
    tests: &'static [&'static str],
}

const fn one(
    name: &'static str,
    owns: &'static str,
    uses: &'static [&'static str],
    tests: &'static [&'static str],
) -> Crate {
    Crate { name, owns, uses, tests }
}

/// All crates of the workspace, ordered by dependency. A crate depends only on crates in later lines.
#[rustfmt::skip]
const CRATES: &[Crate] = &[
    one("xtask", "builds what is needed, then becomes `longhaul`", &[], &[]),
    one("dist", "what is shipped: static programs, tarballs, images", &[], &[]),
    one("kinds", "the table of built-in kinds, from a real API server", &["kind"], &[]),
    one("strangers", "published operators, from package registries to verdicts", &[], &[]),
    one("scenarios", "running what a run is", &[
        "scenario", "loadgen", "kind", "reports", "mock-envtest", "mock-kube", "mock-objects", "mock-clock", "mock-proxy", "mock-registry", "mock-faults", "mock-pki", "installer", "go-rules", "units", "facts",
    ], &[]),
    one("scenario", "what a run is: its scenario, its subject, the witness of what that saw", &[
        "loadgen", "kind", "record", "mock-clock", "mock-registry", "mock-faults", "units", "facts",
    ], &[]),
    one("example-watcher", "a subject: the small watcher to copy from", &[], &[]),
    one("planted-client", "a subject: every documented mistake of a watch client", &["units"], &[]),
    one("kube-rs-subject", "a subject: kube-rs", &[], &[]),
    one("longhaul-kit", "a test in Rust starts `longhaul envtest` with it", &[], &[]),
    one("service-planted", "the service with known bugs", &[
        "service", "service-admission", "service-shared-cache", "service-replicas", "service-watcher", "service-watch", "service-registry", "service-core",
    ], &[]),
    one("service", "the system under test: a program with a list of roles", &[
        "service-admission", "service-validator", "service-alerting", "service-shared-cache", "service-contract", "service-files", "service-own-certificates", "service-packages", "service-replicas", "service-inject", "service-watcher", "service-watch", "service-registry", "service-core",
    ], &[]),
    one("service-admission", "role admission: reviews, policy, validators", &[
        "service-contract", "service-own-certificates", "service-watch", "service-registry", "service-core", "service-verify",
    ], &[]),
    one("service-validator", "role validator: verdicts for other processes, and for Gatekeeper", &["service-contract", "service-registry", "service-core"], &[]),
    one("service-alerting", "who is told what became of reviews; role alerting", &["service-contract", "service-core"], &[]),
    one("service-shared-cache", "verdicts that processes share, in Redis", &["service-core"], &[]),
    one("service-files", "manifests: pinned, as a KRM function too", &["service-registry", "service-core"], &[]),
    one("service-packages", "role packages: the reconciler of Packages", &["service-watch", "service-core"], &[]),
    one("service-replicas", "role replicas: the API that scales Deployments", &["service-watch", "service-core"], &[]),
    one("service-watcher", "role watcher: events of any resource to receivers and hooks", &["service-watch", "service-core"], &[]),
    one("service-own-certificates", "certificates that the replicas of the webhook make themselves", &["service-watch", "service-core"], &[]),
    one("service-inject", "images into a cluster without a registry", &["service-registry", "service-core", "service-seed"], &[]),
    one("service-watch", "list, watch, relist; stores, the Lease", &["service-core"], &[]),
    one("service-registry", "the OCI client", &["service-core"], &[]),
    one("service-contract", "what processes say to each other: forms, the way, the listener, the kit", &["service-core"], &[]),
    one("service-core", "what all roles share: listeners, wire, kube client, logs, configuration kit", &[], &[]),
    one("service-seed", "the injected program, and the formats that it shares with the injector", &[], &[]),
    one("service-verify", "signatures of images, without network and clock; knows sigstore", &[], &["mock-sigstore"]),
    one("loadgen", "admission load, churn; owns clocks and histograms", &["go-rules", "units", "facts"], &[]),
    one("kind", "real control planes, and the manifests that people deploy", &[], &[]),
    one("reports", "judges, causes, renderers", &["ledger", "record", "statistics", "units", "facts"], &[]),
    one("ledger", "what became of each version: commits against observations", &["record", "statistics", "facts"], &[]),
    one("record", "the run record: its files, its rows, its budgets", &["statistics", "units", "facts"], &[]),
    one("statistics", "what the judges compute with: pure functions of numbers, and histograms of microseconds", &[], &[]),
    one("mock-envtest", "kube-apiserver, etcd and kubectl for test-suites", &["mock-kube", "mock-faults", "mock-pki", "units"], &["installer"]),
    one("mock-kube", "the API server: listeners, verbs, admission, audit", &[
        "mock-objects", "mock-workloads", "mock-cel", "mock-store", "mock-faults", "mock-pki", "go-rules", "facts",
    ], &["mock-proxy", "installer", "units"]),
    one("mock-registry", "the OCI registry", &["mock-faults", "mock-pki", "mock-sigstore"], &["units"]),
    one("mock-proxy", "the bad network in front of a control plane", &["mock-faults"], &["units"]),
    one("mock-objects", "what an object is", &["mock-cel", "mock-store"], &[]),
    one("mock-workloads", "what scheduler, kubelet and controllers do to workloads", &[], &[]),
    one("mock-faults", "triggers, durations, hits of all faults", &["mock-store", "units", "facts"], &[]),
    one("mock-cel", "expressions with types and a budget", &[], &[]),
    one("mock-store", "revisions, log, watchers, cold storage", &["facts"], &[]),
    one("mock-clock", "a faster clock for any program", &[], &[]),
    one("mock-pki", "certificates", &["go-rules"], &[]),
    one("mock-sigstore", "a sigstore in memory, each link right or wrong by itself", &[], &[]),
    one("installer", "client packages of other languages, and Go programs of our own", &[], &[]),
    one("go-rules", "what Go decides: of a webhook's answer, in TLS", &[], &[]),
    one("units", "durations, sizes, rates, addresses", &[], &[]),
    one("facts", "commits, observations, changes, revisions, orders, uids", &[], &[]),
];

/// Modules that must not depend on each other: the source folder of a crate, one of its top modules, and the top
/// modules that this module must not name.
const APART: &[(&str, &str, &[&str])] = &[
    ("service/src", "run", &["cli", "manifests"]),
    ("service/src", "config", &["cli", "manifests", "run"]),
    ("service/core/src", "wire", &["edge", "kube", "role", "share"]),
    ("service/core/src", "edge", &["kube", "role", "share"]),
    ("service/core/src", "share", &["config", "kube", "role"]),
    ("service/core/src", "kube", &["edge", "role", "share"]),
    ("service/admission/src", "config", &["endpoint", "pipeline", "registration", "role"]),
    ("service/admission/src", "validator", &["endpoint", "pipeline", "registration", "review", "role", "walk"]),
    ("service/admission/src", "registration", &["endpoint", "pipeline", "role", "validator"]),
    ("service/watch/src", "machine", &["driver", "informer", "witness"]),
    ("reports/src", "judge", &["diff", "render"]),
    ("reports/src", "diff", &["render"]),
    ("loadgen/src", "open_loop", &["admission", "churn", "calls", "script", "audit", "socket", "wire"]),
    ("loadgen/src", "socket", &["admission", "churn", "script", "audit"]),
    ("loadgen/src", "wire", &["admission", "churn", "script", "audit"]),
    ("loadgen/src", "admission", &["script"]),
    ("loadgen/src", "churn", &["admission", "script", "audit"]),
    ("loadgen/src", "calls", &["admission", "script"]),
    ("mocks/faults/src", "settings", &["engine", "handle", "stream", "behaviour", "connection"]),
    ("mocks/objects/src", "status", &["catalogue", "object", "schema", "patch"]),
    ("mocks/objects/src", "fields", &["kinds", "catalogue", "object"]),
    (
        "mocks/objects/src",
        "kinds",
        &[
            "builtin",
            "catalogue",
            "schema",
            "object",
            "patch",
            "defaults",
            "convert",
            "table",
            "openapi",
            "protobuf",
            "selector",
        ],
    ),
    ("mocks/objects/src", "schema", &["object", "patch", "defaults", "convert"]),
    ("mocks/objects/src", "catalogue", &["object", "patch", "defaults", "convert"]),
    ("mocks/objects/src", "object", &["patch", "defaults", "convert"]),
    ("mocks/kube/src", "path", &["cluster", "call", "handler", "listen", "verbs"]),
    ("mocks/kube/src", "audit", &["cluster", "call", "handler", "listen", "verbs"]),
    ("mocks/kube/src", "cluster", &["call", "answer", "handler", "listen", "verbs", "janitor"]),
    ("mocks/kube/src", "call", &["answer", "handler", "listen", "verbs"]),
    ("mocks/kube/src", "verbs", &["handler", "listen", "inject", "janitor"]),
    ("scenarios/scenario/src", "witness", &["scenario", "subject"]),
    ("scenarios/scenario/src", "metrics", &["scenario", "subject", "witness"]),
    ("scenarios/scenario/src", "subject", &["scenario"]),
    ("scenarios/src", "observer", &["run", "load", "repro", "matrix", "calibrate", "cli", "scenario", "witness"]),
    ("scenarios/src", "calibrate", &["run", "load", "repro", "matrix", "cli", "observer", "witness"]),
    ("mocks/proxy/src", "plan", &["faults", "connection", "pump", "wire"]),
];

/// The path of the file with the lists of crates and modules.
const FILE: &str = "xtask/tests/arrows.txt";
/// Maximum number of columns of a line in the list of modules.
const COLUMNS: usize = 150;
/// The environment variable with which the test writes `arrows.txt`.
const REDRAW: &str = "LONGHAUL_REDRAW";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is below the root").to_owned()
}

fn names(list: &[&'static str]) -> BTreeSet<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

/// The packages of the workspace, as Cargo describes them.
fn packages() -> Vec<Value> {
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--no-deps", "--format-version=1", "--offline"]).current_dir(root());
    let output = metadata.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    serde_json::from_value(metadata["packages"].take()).unwrap()
}

/// The dependencies of each crate in its manifest, and the dependencies that only its tests have.
fn manifests() -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
    let packages = packages();
    let members: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let arrows = |package: &Value, tests: bool| -> BTreeSet<String> {
        let all = package["dependencies"].as_array().unwrap().iter();
        let of_kind = all.filter(|one| one["path"].is_string() && (one["kind"] == "dev") == tests);
        of_kind
            .filter_map(|one| one["name"].as_str())
            .filter(|name| members.contains(name) && package["name"] != *name)
            .map(str::to_owned)
            .collect()
    };
    let one = |package: &Value| {
        let uses = arrows(package, false);
        let tests = arrows(package, true).difference(&uses).cloned().collect();
        (package["name"].as_str().unwrap().to_owned(), (uses, tests))
    };
    packages.iter().map(one).collect()
}

/// If a crate depends on itself, cargo reads `--features=service/full` as a feature of that dependency, and builds the
/// program without the feature.
#[test]
fn no_crate_depends_on_itself() {
    for package in packages() {
        let all = package["dependencies"].as_array().unwrap().iter();
        let own = all.filter(|one| one["path"].is_string() && one["name"] == package["name"]);
        assert_eq!(own.count(), 0, "{}", package["name"]);
    }
}

#[test]
fn arrows_go_down() {
    for (index, member) in CRATES.iter().enumerate() {
        let below = names(&CRATES[index + 1..].iter().map(|member| member.name).collect::<Vec<_>>());
        for used in member.uses.iter().chain(member.tests) {
            assert!(below.contains(*used), "{} -> {used} goes up", member.name);
        }
    }
}

/// Crates of the service that contain a role of a process, or commands.
const ROLES: [&str; 9] = [
    "service-admission",
    "service-alerting",
    "service-files",
    "service-inject",
    "service-packages",
    "service-replicas",
    "service-shared-cache",
    "service-validator",
    "service-watcher",
];

/// No role of the service uses another role; roles use interfaces in `service-core` instead.
#[test]
fn no_role_of_the_service_uses_another() {
    for member in CRATES.iter().filter(|member| member.name.starts_with("service-") && member.name != "service-planted")
    {
        let roles: Vec<_> = member.uses.iter().filter(|used| ROLES.contains(used)).collect();
        assert!(roles.is_empty(), "{} uses {roles:?}", member.name);
    }
    let mut files = Vec::new();
    sources(&root().join("service"), &mut files);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let path = file.strip_prefix(root().join("service")).unwrap();
        let mut folders: Vec<_> =
            path.iter().map(|folder| folder.to_string_lossy()).take_while(|folder| folder != "src").collect();
        // The program decorates roles to plant bugs in them.
        if text.contains("impl Role for ") && !folders.is_empty() && folders[0] != "planted" {
            let name = format!("service-{}", folders.pop().unwrap());
            assert!(ROLES.contains(&name.as_str()), "{name} has a role and is not in ROLES");
        }
    }
}

/// The folders of the service below which no source may name a role.
const NAME_NO_ROLE: [&str; 4] =
    ["service/core/src", "service/registry/src", "service/roles/contract/src", "service/src/run"];

/// The shared crates of the service name no role, neither in items nor in log texts. Start, end and reload of a process
/// name none either.
#[test]
fn shared_parts_of_the_service_name_no_role() {
    let mut files = Vec::new();
    for folder in NAME_NO_ROLE {
        sources(&root().join(folder), &mut files);
    }
    // These two are words of their own: files on a disk, and the validator that a question names.
    let roles = ROLES.iter().map(|role| role.trim_start_matches("service-").replace('-', "_"));
    let roles: Vec<_> = roles.filter(|role| !["files", "validator"].contains(&role.as_str())).collect();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let is_role = |word: &str| roles.iter().any(|role| word == role || word.strip_prefix("service_") == Some(role));
        let named: Vec<_> = words(&text).into_iter().filter(|word| is_role(word)).collect();
        assert!(named.is_empty(), "{} names {named:?}", file.display());
    }
}

/// The reload looks up no section of the configuration: each section decides itself which settings it takes.
#[test]
fn the_reload_of_the_service_names_no_section() {
    let text = std::fs::read_to_string(root().join("service/src/run/reload.rs")).unwrap();
    let named: Vec<_> =
        words(&text).into_iter().filter(|word| ["find", "find_mut", "process"].contains(word)).collect();
    assert!(named.is_empty(), "{named:?}");
}

/// No program of the service leaks memory: sections own their names, and planted bugs own the roles that they change.
#[test]
fn the_service_leaks_no_memory() {
    let mut files = Vec::new();
    sources(&root().join("service"), &mut files);
    files.retain(|file| !file.ends_with("tests.rs"));
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let leaks = words(text).windows(2).any(|pair| pair == ["::", "leak"]);
        assert!(!leaks, "{} leaks memory", file.display());
    }
}

#[test]
fn the_manifests_have_the_arrows_of_the_list() {
    let mut found = manifests();
    for member in CRATES {
        let (uses, tests) = found.remove(member.name).unwrap_or_else(|| panic!("there is no crate {}", member.name));
        assert_eq!(uses, names(member.uses), "what {} uses", member.name);
        assert_eq!(tests, names(member.tests), "what only the tests of {} use", member.name);
    }
    assert!(found.is_empty(), "not in the list: {:?}", found.keys());
}

/// Collects all source files below a folder.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The path of a module or of an item from the crate's root.
type Name = Vec<String>;
/// The names that each module uses: the paths in `use`, and paths that begin with `crate`, `super` or `self`.
type Modules = BTreeMap<Name, Vec<Name>>;

/// The modules of a crate. Tests may use every module, so test modules are left out.
fn modules(folder: &Path) -> Modules {
    let (mut files, mut found) = (Vec::new(), Modules::new());
    sources(folder, &mut files);
    for file in files {
        let path = file.strip_prefix(folder).unwrap().with_extension("");
        let mut module: Name = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if module.iter().any(|part| part.starts_with("tests") || part == "bin") {
            continue;
        }
        if matches!(module[0].as_str(), "lib" | "main") {
            module.clear();
        }
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        found.entry(module).or_default().extend(named(text));
    }
    found
}

/// The words, `::`, and all other signs of a source text, without comments.
fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for mut rest in text.lines().map(str::trim_start).filter(|line| !line.starts_with("//")) {
        while let Some(first) = rest.chars().next() {
            let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let sign = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            let (word, after) = rest.split_at(if length == 0 { sign } else { length });
            found.push(word);
            rest = after.trim_start();
        }
    }
    found
}

/// The paths of items that a source text names.
fn named(text: &str) -> Vec<Name> {
    let (words, mut found, mut at) = (words(text), Vec::new(), 0);
    while at < words.len() {
        let begins = matches!(words[at], "crate" | "super" | "self") && words.get(at + 1) == Some(&"::");
        let alone = at == 0 || !matches!(words[at - 1], "::" | "$");
        at = match words[at] {
            "use" => read_path(&words, at + 1, &[], &mut found),
            _ if begins && alone => read_path(&words, at, &[], &mut found),
            _ => at + 1,
        };
    }
    found
}

/// Reads the item path at the position `at`, which may end with several paths in braces; returns the position after the
/// path.
fn read_path(words: &[&str], mut at: usize, before: &[String], found: &mut Vec<Name>) -> usize {
    let mut path = before.to_vec();
    // `::name` is a crate, even if a module has its name.
    if words.get(at) == Some(&"::") {
        path.push("::".to_owned());
        at += 1;
    }
    while let Some(word) = words.get(at) {
        at += 1;
        if *word == "{" {
            while words.get(at).is_some_and(|word| *word != "}") {
                at = read_path(words, at, &path, found);
                at += usize::from(words.get(at) == Some(&","));
            }
            return at + 1;
        }
        path.push((*word).to_owned());
        if words.get(at) != Some(&"::") {
            break;
        }
        at += 1;
    }
    found.push(path);
    if words.get(at) == Some(&"as") { at + 2 } else { at }
}

/// The module that owns the name which `module` uses by `path`; `None` for a name of another crate. A re-exported name
/// belongs to the module that defines it; the search follows at most `steps` re-exports.
fn owner(all: &Modules, module: &[String], path: &[String], steps: usize) -> Option<Name> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let (mut at, mut rest) = match path.first()?.as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (module.to_vec(), &path[1..]),
        _ => (module[..module.len().checked_sub(ups)?].to_vec(), &path[ups..]),
    };
    let begin = rest.len();
    while let [next, after @ ..] = rest
        && all.contains_key(&[&at[..], std::slice::from_ref(next)].concat())
    {
        at.push(next.clone());
        rest = after;
    }
    if begin == path.len() && rest.len() == begin {
        return None;
    }
    let handed =
        rest.first().and_then(|name| all.get(&at)?.iter().find(|path| path.len() > 1 && path.last() == Some(name)));
    let origin = handed.filter(|_| steps > 0).and_then(|path| owner(all, &at, path, steps - 1));
    Some(origin.unwrap_or(at))
}

/// The dependencies between modules, as pairs: the module that uses, and the used module.
fn arrows(all: &Modules) -> BTreeSet<(&Name, Name)> {
    let mut found = BTreeSet::new();
    for (module, path) in all.iter().flat_map(|(module, paths)| paths.iter().map(move |path| (module, path))) {
        found.extend(owner(all, module, path, 4).map(|owner| (module, owner)));
    }
    found
}

/// The circular dependencies between modules with the same parent.
fn circles(all: &Modules) -> Vec<String> {
    let mut between: BTreeMap<&[String], BTreeSet<(&str, String)>> = BTreeMap::new();
    for (from, to) in arrows(all) {
        let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        if shared < from.len().min(to.len()) {
            between.entry(&from[..shared]).or_default().insert((&from[shared], to[shared].clone()));
        }
    }
    for arrows in between.values_mut() {
        // A module without an outgoing or an incoming arrow is in no circle.
        while let Some(end) = arrows.iter().find(|(from, to)| {
            arrows.iter().all(|(next, _)| next != to) || arrows.iter().all(|(_, before)| before != from)
        }) {
            let end = end.clone();
            arrows.remove(&end);
        }
    }
    let shown = |(parent, arrows): (&[String], BTreeSet<_>)| {
        let parent = parent.join("::");
        arrows.into_iter().map(move |(from, to)| format!("{parent}: {from} -> {to}")).collect::<Vec<_>>()
    };
    between.into_iter().flat_map(shown).collect()
}

#[test]
fn names_of_a_source() {
    let text = "use crate::a::{B, c::*};\n// crate::no\nlet x = super::super::d::E::f(); $crate::g; use h as i; pub(crate) self; use ::j::k;";
    let found: Vec<String> = named(text).into_iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["crate::a::B", "crate::a::c::*", "super::super::d::E::f", "h", "::::j::k"]);
}

#[test]
fn a_circle_is_seen() {
    let module = |(path, text): &(&str, &str)| {
        (path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect(), named(text))
    };
    let mut all =
        vec![("", "use a::T; use b::U;"), ("a", "use super::U;"), ("b", ""), ("c", "use crate::a;"), ("b::d", "")];
    assert_eq!(circles(&all.iter().map(module).collect()), Vec::<String>::new());
    all.push(("b::e", "crate::T::f()"));
    assert_eq!(circles(&all.iter().map(module).collect()), [": a -> b", ": b -> a"]);
}

#[test]
fn modules_have_no_circles() {
    let mut wrong = Vec::new();
    for (name, folder) in
        packages().iter().filter_map(|package| Some((package["name"].as_str()?, package["manifest_path"].as_str()?)))
    {
        for sources in ["src", "benches"].map(|sources| Path::new(folder).with_file_name(sources)) {
            if sources.is_dir() {
                let found = circles(&modules(&sources));
                wrong.extend(found.into_iter().map(|arrow| format!("{name} {arrow}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn modules_of_a_crate_stay_apart() {
    let (mut wrong, mut known) = (Vec::new(), BTreeMap::new());
    for (folder, member, others) in APART {
        let all: &Modules = known.entry(folder).or_insert_with(|| modules(&root().join(folder)));
        for other in [member].into_iter().chain(*others) {
            // A re-export of the root is a module of the crate below it.
            let handed_on = all
                .get(&Name::new())
                .into_iter()
                .flatten()
                .any(|path| path.len() > 1 && path.last().is_some_and(|last| last == other));
            assert!(
                handed_on || all.keys().any(|module| module.first().is_some_and(|first| first == other)),
                "{folder}: there is no module {other}"
            );
        }
        for (from, paths) in all.iter().filter(|(from, _)| from.first().is_some_and(|first| first == member)) {
            let names =
                |path: &&Name| path[0] == "crate" && path.get(1).is_some_and(|to| others.contains(&to.as_str()));
            wrong.extend(
                paths.iter().find(names).map(|path| format!("{folder}/{} names {}", from.join("/"), path.join("::"))),
            );
        }
        for (from, to) in arrows(all).into_iter().filter(|(from, _)| from.first().is_some_and(|first| first == member))
        {
            if to.first().is_some_and(|to| others.contains(&to.as_str())) {
                wrong.push(format!("{folder}/{} names {}", from.join("/"), to.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The list of crates in `arrows.txt`: each crate with its responsibility, and the crates on which it depends.
fn drawn() -> String {
    let lines = CRATES.iter().flat_map(|member| {
        let uses = (!member.uses.is_empty()).then(|| format!("  └─ {}\n", member.uses.join(", ")));
        let tests = (!member.tests.is_empty()).then(|| format!("  └─ in tests: {}\n", member.tests.join(", ")));
        std::iter::once(format!("{:<16} {}\n", member.name, member.owns)).chain(uses).chain(tests)
    });
    lines.collect()
}

/// The top modules of a crate by layers: each module depends only on modules of later layers. Modules that depend on
/// each other in a circle are together in brackets.
fn layers(all: &Modules) -> Vec<Vec<String>> {
    let roots: BTreeSet<&str> = all.keys().filter_map(|module| module.first()).map(String::as_str).collect();
    let mut reach: BTreeMap<&str, BTreeSet<&str>> = roots.iter().map(|root| (*root, BTreeSet::new())).collect();
    for (from, to) in arrows(all) {
        if let (Some(from), Some(to)) = (from.first(), to.first().and_then(|to| roots.get(to.as_str()))) {
            reach.get_mut(from.as_str()).unwrap().insert(to);
        }
    }
    // Dependencies of dependencies are dependencies.
    for middle in &roots {
        let further = reach[middle].clone();
        for known in reach.values_mut().filter(|known| known.contains(middle)) {
            known.extend(&further);
        }
    }
    let circle = |one: &str| {
        roots
            .iter()
            .copied()
            .filter(|two| *two == one || reach[one].contains(two) && reach[two].contains(one))
            .collect::<Vec<_>>()
    };
    let (mut left, mut found) = (roots.clone(), Vec::new());
    while !left.is_empty() {
        let free = |one: &&str| left.iter().all(|two| !reach[two].contains(one) || circle(one).contains(two));
        let layer: BTreeSet<Vec<&str>> = left.iter().copied().filter(free).map(circle).collect();
        layer.iter().flatten().for_each(|one| assert!(left.remove(one)));
        let shown = |one: Vec<&str>| if one.len() > 1 { format!("({})", one.join(" ")) } else { one.concat() };
        found.push(layer.into_iter().map(shown).collect());
    }
    found
}

/// The list of modules in `arrows.txt`: the modules of every crate, in wrapped lines.
fn drawn_modules() -> String {
    let folders: BTreeMap<String, String> = packages()
        .iter()
        .map(|package| ["name", "manifest_path"].map(|key| package[key].as_str().unwrap().to_owned()).into())
        .collect();
    let mut page = String::new();
    for member in CRATES {
        let layers = layers(&modules(&Path::new(&folders[member.name]).with_file_name("src")));
        if layers.iter().map(Vec::len).sum::<usize>() < 2 {
            continue;
        }
        let text = layers.iter().map(|layer| layer.join(" ")).collect::<Vec<_>>().join(" → ");
        let mut line = format!("{:<16}", member.name);
        for word in text.split(' ') {
            if line.chars().count() + word.chars().count() >= COLUMNS {
                page.extend([line.as_str(), "\n"]);
                line = " ".repeat(16);
            }
            line.extend([" ", word]);
        }
        page.extend([line.as_str(), "\n"]);
    }
    page
}

#[test]
fn layers_of_modules() {
    let module = |(path, text): &(&str, &str)| (vec![(*path).to_owned()], named(text));
    let all = [("a", "use crate::b; use crate::d"), ("b", "crate::c::f"), ("c", "crate::b::g"), ("d", ""), ("e", "")];
    assert_eq!(layers(&all.iter().map(module).collect()), [vec!["a", "e"], vec!["(b c)", "d"]]);
}

/// Both lists of `arrows.txt` as text.
fn lists() -> String {
    format!(
        "# Written by xtask/tests/arrows.rs: {REDRAW}=1 cargo test -p xtask --test arrows\n\n\
         # Every crate, top first, with what it owns; below it the crates that it may use.\n\n{}\n\
         # The modules of every crate by layers, top first: a module uses only modules to the right of its arrow.\n\n{}",
        drawn(),
        drawn_modules()
    )
}

#[test]
fn the_lists_are_those_of_the_sources() {
    let (path, lists) = (root().join(FILE), lists());
    if std::fs::read_to_string(&path).is_ok_and(|found| found == lists) {
        return;
    }
    if std::env::var_os(REDRAW).is_some() {
        std::fs::write(&path, lists).unwrap();
        return;
    }
    panic!("{FILE} shows other arrows; write it anew: {REDRAW}=1 cargo test -p xtask --test arrows");
}
