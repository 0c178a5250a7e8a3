//! Facts from the sources of a controller-runtime program: its flags, the kinds that it creates, its finalizer, and
//! where it writes the observed generation.
//!
//! Searches text and does not evaluate code, so a value that a program computes at run time is not found. Does no I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use super::pattern;

mod code;
mod flags;
mod kinds;

pub(crate) use flags::Flags;
pub(crate) use kinds::Kind;

#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// The folder of each main package, with the flags that the package's files define.
    mains: BTreeMap<PathBuf, Flags>,
    /// The flags that files outside main packages define, because large programs have a package for options.
    others: Flags,
    /// Kinds in `Owns(…)`, by the kind in `For(…)` of the same controller. Controllers without `For` or `Owns` are left
    /// out.
    pub(super) owned: BTreeMap<String, BTreeSet<Kind>>,
    /// Kinds in `For(…)`, each of which has a controller.
    pub(super) reconciled: BTreeSet<String>,
    /// Folders of packages that start a manager or informers.
    controlling: BTreeSet<PathBuf>,
    constants: BTreeMap<String, String>,
    /// Arguments of `AddFinalizer`, as written in the source.
    finalizers: BTreeSet<String>,
    /// Types of conditions that are set together with the observed generation, as written in the source.
    conditions: BTreeSet<String>,
    /// Whether a value is assigned to a field `ObservedGeneration`.
    pub(super) observes: bool,
}

/// Maximum number of names from the sources that are kept; a usual program has fewer.
const NAMES_MAX: usize = 10_000;
/// Maximum length of a name that is kept: the longest condition type that an API server accepts.
const NAME_MAX: usize = 316;

/// The code with which the builder of a controller starts.
const BUILDER: &str = "ControllerManagedBy(";
const ENDS: [&str; 2] = [".Complete(", ".Build("];
/// Calls that only controllers contain.
const CONTROLS: [&str; 7] = [
    "NewManager(",
    "NewSharedInformerFactory",
    "leaderelection.RunOrDie",
    "leaderelection.NewLeaderElector",
    "sharedmain.Main",
    "manager.New(",
    "NewFilteredSharedInformerFactory",
];
/// Folders whose programs are no controllers, but tools for the project's developers, or command-line programs.
const ASIDE: [&str; 14] = [
    "test",
    "tests",
    "hack",
    "tool",
    "tools",
    "example",
    "examples",
    "docs",
    "plugin",
    "plugins",
    "e2e",
    "scripts",
    "generator",
    "cli",
];
/// Usual names of controller programs.
const USUAL: [&str; 6] =
    ["manager", "operator", "controller", "controller-manager", "workflow-controller", "controllers"];

static OWNS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bOwns\(\s*&(?:(\w+)\.)?(\w+)\{"));
static FOR: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bFor\(\s*&(?:\w+\.)?(\w+)\{"));
static CONSTANT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?m)^\s*(?:const\s+|var\s+)?(\w+)(?:\s+string)?\s*=\s*"((?u:[^"\\\n]+))"\s*$"#));
static FINALIZER: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"\bAddFinalizer\(\s*(?u:[^,()]+),\s*("(?u:[^"\\\n]+)"|[\w.]+)\s*\)"#));
static OBSERVES: LazyLock<Regex> = LazyLock::new(|| pattern(r"\.ObservedGeneration\s*=(?u:[^=])"));
static CONDITION: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bCondition\{((?u:[^{}]*))\}"));
static TYPE: LazyLock<Regex> = LazyLock::new(|| pattern(r#"\bType:\s*("(?u:[^"\\\n]+)"|[\w.]+)"#));

impl Sources {
    /// Whether a file is Go source code, without tests and generated deepcopy code.
    pub(super) fn is_telling(name: &str) -> bool {
        Path::new(name).extension().is_some_and(|ending| ending == "go")
            && !name.ends_with("_test.go")
            && !name.starts_with("zz_generated")
    }

    pub(super) fn take(&mut self, file: &Path, text: &str) {
        let text = code::without_comments(text);
        let flags = Flags::read(&text);
        if text.lines().any(|line| line.trim_end() == "package main") {
            let folder = file.parent().unwrap_or(Path::new("")).to_owned();
            self.mains.entry(folder).or_default().add(flags);
        } else {
            self.others.add(flags);
        }
        let imports = kinds::imports(&text);
        let folder = file.parent().unwrap_or(Path::new(""));
        if CONTROLS.iter().any(|sign| text.contains(sign)) && self.controlling.len() < NAMES_MAX {
            self.controlling.insert(folder.to_owned());
        }
        for chain in text.split(BUILDER).skip(1) {
            let chain = ENDS.iter().fold(chain, |chain, end| chain.split(end).next().unwrap_or(chain));
            let of = FOR.captures(chain).map(|found| found[1].to_owned()).unwrap_or_default();
            for found in OWNS.captures_iter(chain) {
                let package = found.get(1).map_or("", |name| name.as_str());
                let kind = Kind::new(&found[2], imports.get(package).map(String::as_str));
                if self.owned.len() < NAMES_MAX {
                    put(self.owned.entry(of.clone()).or_default(), kind);
                }
            }
        }
        for found in FOR.captures_iter(&text) {
            put(&mut self.reconciled, found[1].to_owned());
        }
        for found in CONSTANT.captures_iter(&text) {
            if self.constants.len() < NAMES_MAX && found[2].len() <= NAME_MAX {
                self.constants.entry(found[1].to_owned()).or_insert_with(|| found[2].to_owned());
            }
        }
        for found in FINALIZER.captures_iter(&text) {
            put(&mut self.finalizers, found[1].to_owned());
        }
        for found in CONDITION.captures_iter(&text).filter(|found| found[1].contains("ObservedGeneration:")) {
            if let Some(kind) = TYPE.captures(&found[1]) {
                put(&mut self.conditions, kind[1].to_owned());
            }
        }
        self.observes |= OBSERVES.is_match(&text);
    }

    /// The flags of the program whose main package is in this folder.
    pub(super) fn flags(&self, folder: &Path) -> Flags {
        let mut flags = self.mains.get(folder).cloned().unwrap_or_default();
        if !flags.is_known() {
            flags.add(self.others.clone());
        }
        flags
    }

    /// The folders of main packages, the most likely controller first. Packages come first if they start a manager
    /// themselves, are no tools, have a usual name or the project's name, or are near the top.
    pub(super) fn mains(&self, project: &str) -> Vec<&Path> {
        let rank = |folder: &&Path| {
            let parts: Vec<String> =
                folder.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
            let last = parts.last().map(String::as_str).unwrap_or_default();
            let is_usual = last == project || USUAL.contains(&last);
            let is_near = USUAL.iter().any(|name| last.contains(name));
            (parts.iter().any(|part| is_aside(part)), !self.controls(folder), !is_usual, !is_near, parts.len())
        };
        let mut folders: Vec<&Path> = self.mains.keys().map(PathBuf::as_path).collect();
        folders.sort_by_key(rank);
        folders
    }

    /// Whether a main package, or a package below it, starts a manager or informers.
    fn controls(&self, main: &Path) -> bool {
        let is_below = |folder: &PathBuf| !main.as_os_str().is_empty() && folder.starts_with(main);
        self.controlling.contains(main) || self.controlling.iter().any(is_below)
    }

    /// The finalizer that the program adds to objects, if there is exactly one.
    pub(super) fn finalizer(&self) -> Option<String> {
        let names: BTreeSet<&str> = self.finalizers.iter().filter_map(|text| self.value(text)).collect();
        let name = names.first().filter(|_| names.len() == 1)?;
        // Kubernetes requires a domain in a finalizer.
        name.contains(['/', '.']).then(|| (*name).to_owned())
    }

    /// The type of the condition with the observed generation, if there is exactly one such type, or one of them is
    /// `Ready` or `Available`.
    pub(super) fn condition(&self) -> Option<String> {
        let types: BTreeSet<&str> = self.conditions.iter().filter_map(|text| self.value(text)).collect();
        let usual = ["Ready", "Available"].into_iter().find(|usual| types.contains(usual));
        usual.or_else(|| types.first().copied().filter(|_| types.len() == 1)).map(str::to_owned)
    }

    fn value<'a>(&'a self, text: &'a str) -> Option<&'a str> {
        if let Some(quoted) = text.strip_prefix('"') {
            return quoted.strip_suffix('"').filter(|text| text.len() <= NAME_MAX);
        }
        let name = text.rsplit('.').next().unwrap_or(text);
        self.constants.get(name).map(String::as_str)
    }
}

fn put<T: Ord>(set: &mut BTreeSet<T>, one: T) {
    if set.len() < NAMES_MAX {
        set.insert(one);
    }
}

/// Whether a folder with this name has programs that are not the controller: tools, tests, plugins.
pub(super) fn is_aside(part: &str) -> bool {
    ASIDE.contains(&part) || part.contains("plugin") || part.starts_with("kubectl") || part.ends_with("-cli")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROLLER: &str = r#"
package controller

import (
	apps "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/api/networking/v1"
	example "example.com/shop/api/v1"
)

const (
	hold         = "shop.example.com/hold"
	ready string = "Ready"
)

func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if controllerutil.AddFinalizer(&basket, hold) { /* AddFinalizer(x, "commented.example.com/out") */
	}
	meta.SetStatusCondition(&basket.Status.Conditions, metav1.Condition{
		Type: ready, Status: metav1.ConditionTrue, ObservedGeneration: basket.Generation,
	})
	if basket.Status.ObservedGeneration == basket.Generation { // not written here
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, nil
}

func (r *Reconciler) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).For(&example.Basket{}).
		Owns(&apps.Deployment{}, builder.WithPredicates(p)).
		Owns(&corev1.ConfigMap{}).
		Owns(&v1.NetworkPolicy{}).
		// Owns(&corev1.Secret{}).
		Complete(r)
}
"#;

    #[test]
    fn a_reconciler_tells_what_it_makes_and_how_it_holds() {
        let mut sources = Sources::default();
        sources.take(Path::new("internal/controller/basket_controller.go"), CONTROLLER);
        let owned: Vec<String> = sources.owned["Basket"].iter().filter_map(|kind| kind.resource(&[])).collect();
        assert_eq!(owned, ["configmaps/v1", "deployments.apps/v1", "networkpolicies.networking.k8s.io/v1"]);
        assert_eq!(sources.finalizer().as_deref(), Some("shop.example.com/hold"));
        assert_eq!(sources.condition().as_deref(), Some("Ready"));
        assert!(!sources.observes && sources.reconciled.contains("Basket"));
        sources
            .take(Path::new("a.go"), "package a\nfunc f() { basket.Status.ObservedGeneration = basket.Generation }\n");
        assert!(sources.observes);
    }

    /// The kinds that one controller owns are not assigned to another controller.
    #[test]
    fn what_one_controller_owns_is_not_another_ones() {
        let mut sources = Sources::default();
        let chain = |of: &str, owns: &str| {
            format!(
                "func {of}() {{ ctrl.NewControllerManagedBy(m).For(&v1.{of}{{}}).Owns(&v1.{owns}{{}}).Complete(r) }}\n"
            )
        };
        sources.take(Path::new("a.go"), &format!("package a\n{}{}", chain("Cluster", "Pod"), chain("Run", "Cluster")));
        let names = |of: &str| sources.owned[of].iter().map(|kind| kind.name.clone()).collect::<Vec<_>>();
        assert_eq!((names("Cluster"), names("Run")), (vec!["Pod".to_owned()], vec!["Cluster".to_owned()]));
    }

    /// If a project has several programs, the program that starts a manager is built, in whatever folder it is.
    #[test]
    fn the_program_that_controls_comes_first() {
        let mut sources = Sources::default();
        let main = |body: &str| format!("package main\nfunc main() {{ {body} }}\n");
        sources.take(Path::new("plugin-bin/metric-plugin/main.go"), &main("ctrl.NewManager(c, o)"));
        sources.take(Path::new("cmd/kubeseal/main.go"), &main("seal()"));
        sources.take(Path::new("cmd/rollouts-controller/main.go"), &main("informers.NewSharedInformerFactory(c, 0)"));
        sources.take(Path::new("hack/gen/main.go"), &main("ctrl.NewManager(c, o)"));
        assert_eq!(sources.mains("rollouts")[0], Path::new("cmd/rollouts-controller"));
        let mut named = Sources::default();
        named.take(Path::new("cmd/importer/main.go"), &main("leaderelection.RunOrDie(c, x)"));
        named.take(Path::new("cmd/kueue/main.go"), &main("ctrl.NewManager(c, o)"));
        assert_eq!(named.mains("kueue")[0], Path::new("cmd/kueue"));
    }

    /// If a program has two finalizers, no finalizer is proposed, because it is unclear which finalizer the churned
    /// objects get.
    #[test]
    fn two_finalizers_are_none() {
        let mut sources = Sources::default();
        sources.take(
            Path::new("a.go"),
            "package a\nfunc f() { AddFinalizer(x, \"a.example.com/a\"); AddFinalizer(y, \"a.example.com/b\") }\n",
        );
        assert_eq!(sources.finalizer(), None);
        let mut sources = Sources::default();
        sources.take(Path::new("a.go"), "package a\nfunc f() { AddFinalizer(x, names.Unknown) }\n");
        assert_eq!(sources.finalizer(), None);
    }

    #[test]
    fn flags_are_those_of_the_program_that_is_started() {
        let mut sources = Sources::default();
        let main =
            |flag: &str| format!("package main\nfunc main() {{ flag.StringVar(&a, \"{flag}\", \"\", \"x\") }}\n");
        sources.take(Path::new("cmd/main.go"), &main("webhook-cert-path"));
        sources.take(Path::new("tools/deep/main.go"), &main("metrics-addr"));
        assert_eq!(sources.mains(""), [Path::new("cmd"), Path::new("tools/deep")]);
        let flags = sources.flags(Path::new("cmd"));
        assert!(flags.has("webhook-cert-path") && !flags.has("metrics-addr"));
    }
}
