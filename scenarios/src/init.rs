//! `longhaul init`: reads a project's folder and proposes a scenario for its program.
//!
//! Owns the facts about a project. The module `folder` finds the files of the project. The modules `manifests`,
//! `language`, `go`, `rust`, `java`, `kustomize` and `suite` find facts in the files. `witness` chooses the witness and
//! `text` writes the scenario. The amount of data read from a folder is bounded. A file that cannot be read or
//! understood is reported and skipped.

use std::path::{Path, PathBuf};

use regex::{Regex, RegexBuilder};
use seen::Seen;
use serde_json::Value;

mod crd;
pub(crate) mod deployed;
mod dockerfile;
mod folder;
mod go;
mod helm;
pub(crate) mod help;
mod java;
mod kustomize;
mod language;
mod makefile;
mod manifests;
mod needed;
pub(crate) mod pipeline;
mod project;
mod rust;
mod sample;
pub(crate) mod seen;
mod suite;
mod text;
mod trial;
mod ways;
mod witness;
pub(crate) mod words;
mod yaml;

pub(crate) use crd::{Crd, Hook};
pub(crate) use helm::{Charted, render};
pub(crate) use kustomize::{Kustomized, build, kubectl, tool};
pub(crate) use language::{Framework, Habits, Language};
pub(crate) use needed::{Needed, definitions};
pub(crate) use project::Project;
pub(crate) use text::scenario;
pub(crate) use trial::{Trial, apart, changes, varying};
pub(crate) use ways::Way;

/// The folder in which kubebuilder puts `CustomResourceDefinition`s that it generates from the sources.
const BASES: &str = "config/crd/bases";
/// The file beside the scenario with the objects of a kustomization. Longhaul writes this file if the kustomization
/// changes definitions or rules.
const BUILT_CRDS: &str = "longhaul-crds.yaml";
const CHART_CRDS: &str = "longhaul-chart-crds.yaml";
/// The file beside the scenario with definitions from the projects on which the program depends.
const NEEDED_CRDS: &str = "longhaul-needed-crds.yaml";
const BUILT_HOOKS: &str = "longhaul-webhooks.yaml";
/// Maximum number of the project's custom resources kept, in addition to samples.
const SHOWN_MAX: usize = 500;
/// The file with objects that the deployed program needs: namespaces, and objects that the program reads.
const OBJECTS: &str = "longhaul-objects.yaml";
/// The file with further objects that the churned objects need.
const WITH: &str = "longhaul-with.yaml";

/// The facts about the project in a folder. Paths are relative to the project's folder.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The name of the folder, as scenarios allow it.
    pub(crate) name: String,
    /// The file `PROJECT` of kubebuilder or operator-sdk.
    pub(crate) project: Option<Project>,
    /// Custom resources. Resources with a controller in this project come first.
    pub(crate) crds: Vec<Crd>,
    pub(crate) hooks: Vec<Hook>,
    /// Programs, found by their package files. Programs in the top folder come first.
    pub(crate) languages: Vec<Language>,
    /// The start command of an image, with the file that contains it.
    pub(crate) image: Option<(PathBuf, Vec<String>)>,
    /// Messages about skipped files, with the reason.
    pub(crate) doubts: Vec<String>,
    /// Files to write beside the scenario: name and content.
    pub(crate) made: Vec<(&'static str, String)>,
    suites: Vec<suite::Suite>,
    samples: Vec<sample::Sample>,
    /// Custom resources of the project outside sample folders.
    shown: Vec<sample::Sample>,
    /// Objects in sample folders that samples may need.
    companions: Vec<(PathBuf, Value)>,
    /// Folders of Helm charts, the highest first.
    pub(crate) charts: Vec<PathBuf>,
    workloads: deployed::Workloads,
    /// The main package, if the user chose one.
    main: Option<PathBuf>,
    /// The build command in the Dockerfile.
    image_built: Option<makefile::Built>,
    makefiles: Vec<(PathBuf, makefile::Built)>,
    /// `CustomResourceDefinition`s and webhook configurations as the files contain them.
    objects: Vec<(PathBuf, Value)>,
    go: go::Sources,
    rust: rust::Sources,
    java: java::Sources,
}

impl Found {
    /// Reads a folder. `main` is the program's main package if the user chose one.
    ///
    /// # Errors
    ///
    /// Fails if the folder itself cannot be read.
    pub(crate) fn read(folder: &Path, main: Option<&Path>) -> std::io::Result<Self> {
        let whole = folder.canonicalize()?;
        let name = whole.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (files, doubts) = folder::files(folder)?;
        let main = main.map(|main| main.components().filter(|part| *part != std::path::Component::CurDir).collect());
        let mut found = Self { doubts, main, ..Self::default() };
        let mut left = folder::ALL_BYTES;
        for file in &files {
            match folder::text(folder, file) {
                Ok(text) if text.len() as u64 > left => {
                    found.doubts.push(format!("{}: more than {} bytes in all", file.display(), folder::ALL_BYTES));
                    break;
                }
                Ok(text) => {
                    left -= text.len() as u64;
                    found.take(file, &text);
                }
                Err(why) => found.doubts.push(format!("{}: {why}", file.display())),
            }
        }
        found.name = named(found.project.as_ref().and_then(|project| project.name.as_deref()).unwrap_or(&name));
        found.sort();
        Ok(found)
    }

    fn take(&mut self, file: &Path, text: &str) {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        self.suites.extend(suite::read(file, &name, text));
        if folder::is_source(file) {
            match file.extension().and_then(|ending| ending.to_str()) {
                Some("go") => self.go.take(file, text),
                Some("rs") => self.rust.take(text),
                _ => self.java.take(file, text),
            }
        } else if name == "Chart.yaml" {
            self.charts.extend(file.parent().map(Path::to_owned));
            self.charts.sort_by_key(|chart| chart.components().count());
        } else if manifests::is_manifest(file) {
            match manifests::read(file, text) {
                Ok(defined) => {
                    self.crds.extend(defined.crds);
                    self.hooks.extend(defined.hooks);
                    self.samples.extend(defined.samples);
                    let room = SHOWN_MAX.saturating_sub(self.shown.len());
                    self.shown.extend(defined.shown.into_iter().take(room));
                    self.companions.extend(defined.companions.into_iter().map(|object| (file.to_owned(), object)));
                    defined.deployed.iter().for_each(|object| self.workloads.take(file, object));
                    self.objects.extend(defined.objects.into_iter().map(|object| (file.to_owned(), object)));
                }
                Err(why) => self.doubts.push(format!("{}: {why}", file.display())),
            }
        } else if name == "Dockerfile" || name == "Containerfile" {
            let image = dockerfile::read(text);
            if self.image.is_none() && !image.command.is_empty() {
                self.image = Some((file.to_owned(), image.command));
            }
            if self.image_built.is_none() && file.parent().is_none_or(|folder| folder.as_os_str().is_empty()) {
                self.image_built = image.built;
            }
        } else if name == "PROJECT" {
            if file.parent().is_none_or(|folder| folder.as_os_str().is_empty()) {
                self.project = project::read(text);
            }
        } else if name == "Makefile" {
            let folder = file.parent().unwrap_or(Path::new("")).to_owned();
            self.makefiles.extend(makefile::built(text).map(|built| (folder, built)));
        } else if let Some(language) = language::read(file, &name, text) {
            self.languages.push(language);
        }
    }

    /// Moves the most important facts to the front, removes duplicates, and completes each program with facts from its
    /// source files.
    fn sort(&mut self) {
        // An object beside the definition is as good a sample as one in a folder of samples.
        let has_sample = |one: &sample::Sample, all: &[sample::Sample]| {
            all.iter().any(|other| other.kind == one.kind && other.group == one.group)
        };
        let shown = std::mem::take(&mut self.shown);
        let missed: Vec<_> = shown.into_iter().filter(|one| !has_sample(one, &self.samples)).collect();
        let is_defined =
            |one: &sample::Sample| self.crds.iter().any(|crd| crd.kind == one.kind && crd.group == one.group);
        let missed: Vec<_> = missed.into_iter().filter(is_defined).collect();
        self.samples.extend(missed);
        let controlled = self.project.as_ref().map(|project| project.controlled.clone()).unwrap_or_default();
        let reconciled = &self.go.reconciled;
        let main = self.main.clone();
        let is_near = |file: &Path| near(main.as_deref(), file);
        let kinds: Vec<(String, String)> = self.crds.iter().map(|crd| (crd.group.clone(), crd.kind.clone())).collect();
        // The checkpoints, classes and contents of a kind are named after the kind that users write.
        let is_derived = |crd: &Crd| {
            let is_base = |(group, kind): &(String, String)| {
                *group == crd.group && *kind != crd.kind && crd.kind.starts_with(kind)
            };
            kinds.iter().any(is_base)
        };
        self.crds.sort_by_key(|crd| {
            let place = controlled.iter().position(|(group, kind)| *group == crd.group && *kind == crd.kind);
            let shown =
                self.samples.iter().filter(|sample| sample.kind == crd.kind && sample.group == crd.group).count();
            (
                !is_near(&crd.file),
                place.unwrap_or(usize::MAX),
                !reconciled.contains(&crd.kind),
                !self.name.contains(&crd.kind.to_lowercase()),
                std::cmp::Reverse(shown),
                is_derived(crd),
                !crd.is_structural,
                !crd.file.starts_with(BASES),
                !crd.file.components().any(|part| part.as_os_str() == "crds"),
                crd.file.clone(),
            )
        });
        let mut names = std::collections::BTreeSet::new();
        // Charts and bundles have copies of the definitions in `config/`.
        self.crds.retain(|crd| names.insert(crd.name()));
        self.hooks.sort_by_key(|hook| (!is_near(&hook.file), !hook.file.starts_with("config"), hook.file.clone()));
        self.workloads.prefer(&is_near);
        let first = self.hooks.first().map(|hook| hook.file.clone());
        self.hooks.retain(|hook| first.as_ref().is_some_and(|first| hook.file.parent() == first.parent()));
        self.languages.sort_by_key(|language| {
            (language.file.components().count(), language.framework.is_none(), language.file.clone())
        });
        let mut languages = std::mem::take(&mut self.languages);
        for language in &mut languages {
            language.complete(self);
        }
        self.languages = languages;
        if self.project.as_ref().is_some_and(|project| project.apis > 0) && self.crds.is_empty() {
            self.doubts.push(format!(
                "{BASES}: PROJECT names kinds, and their definitions are not there: `make manifests` writes them, then init again"
            ));
        }
    }

    /// Adds the objects of a built kustomization. If plain manifests have the same effect, the scenario names the plain
    /// manifests, because tools rewrite these files when sources change.
    pub(crate) fn kustomized(&mut self, kustomized: Kustomized) {
        if self
            .crds
            .iter()
            .map(|crd| &crd.file)
            .chain(self.hooks.iter().map(|hook| &hook.file))
            .any(|file| self.is_near(file))
        {
            // The program that was chosen has manifests of its own.
            return;
        }
        let (folder, built) = match kustomized {
            Kustomized::None => return,
            Kustomized::Left(why) => return self.doubts.push(why),
            Kustomized::Built { folder, objects, others } => {
                let mut workloads = deployed::Workloads::default();
                for object in &others {
                    workloads.take(Path::new(folder), object);
                }
                self.workloads.replace(workloads);
                (folder, objects)
            }
        };
        for (name, is_crds) in [(BUILT_CRDS, true), (BUILT_HOOKS, false)] {
            let of = |object: &Value| (object["kind"] == "CustomResourceDefinition") == is_crds;
            let built: Vec<Value> = built.iter().filter(|object| of(object)).cloned().collect();
            let plain = self.objects.iter().filter(|(file, object)| file.starts_with("config") && of(object));
            let plain: Vec<Value> = plain.map(|(_, object)| object.clone()).collect();
            if built.is_empty() || kustomize::is_same(&built, &plain) {
                continue;
            }
            let mut defined = manifests::Defined::default();
            for object in &built {
                if let Err(error) = defined.take(Path::new(name), object.clone()) {
                    self.doubts.push(format!("{folder}: {}", manifests::first_line(&error.to_string())));
                }
            }
            self.made.push((name, kustomize::file(&built, folder)));
            if is_crds {
                self.crds = defined.crds;
            } else {
                self.hooks = defined.hooks;
                self.objects.extend(built.into_iter().map(|object| (PathBuf::from(name), object)));
            }
        }
        self.sort();
    }

    /// Adds the objects of a rendered chart: definitions that no other file has, and workloads if no other file has
    /// any.
    pub(crate) fn charted(&mut self, charted: Charted) {
        let (chart, objects) = match charted {
            Charted::None => return,
            Charted::Left(why) => {
                let before = self.doubts.len();
                self.doubts.retain(|doubt| !doubt.contains(manifests::TEMPLATE));
                let count = before - self.doubts.len();
                let files =
                    if count == 0 { String::new() } else { format!("; {count} files with templates are left out") };
                return self.doubts.push(format!("{why}{files}"));
            }
            Charted::Rendered { chart, objects } => (chart, objects),
        };
        // Once the chart is rendered, its templates need no separate report.
        self.doubts
            .retain(|doubt| !(doubt.contains(manifests::TEMPLATE) && doubt.starts_with(&chart.display().to_string())));
        let mut defined = manifests::Defined::default();
        let mut kept = Vec::new();
        for object in objects {
            if self.workloads.is_empty() || !deployed::is_workload(&object) {
                self.workloads.take(&chart, &object);
            }
            let is_new = !self.crds.iter().any(|crd| object["metadata"]["name"] == crd.name().as_str());
            if object["kind"] == manifests::CRD && is_new && defined.take(Path::new(CHART_CRDS), object.clone()).is_ok()
            {
                kept.push(object);
            }
        }
        if !kept.is_empty() {
            self.made.push((CHART_CRDS, kustomize::file(&kept, &chart.display().to_string())));
            self.crds.extend(defined.crds);
            self.sort();
        }
    }

    /// Adds definitions of kinds that the program asks for, from the projects on which it depends.
    pub(crate) fn needed(&mut self, needed: &[Needed]) {
        let mut defined = manifests::Defined::default();
        let mut text = String::new();
        for Needed { from, object } in needed {
            let is_new = !self.crds.iter().any(|crd| object["metadata"]["name"] == crd.name().as_str());
            if is_new && defined.take(Path::new(NEEDED_CRDS), object.clone()).is_ok() {
                text.extend(["# From ", from, ".\n---\n"]);
                yaml::block(object, 0, &mut text);
            }
        }
        if !text.is_empty() {
            self.made.push((
                NEEDED_CRDS,
                format!("# Made by `longhaul init`, of the definitions in the dependencies.\n{text}"),
            ));
            self.crds.extend(defined.crds);
            self.sort();
        }
    }

    /// Adds the observed facts, which take precedence over facts from files. The kind to which the program reacts most
    /// comes first. The objects that the program needs go to a file beside the scenario.
    pub(crate) fn observed(&mut self, seen: &Seen) {
        let Some(best) = seen.best().filter(|_| seen.ran()) else {
            if seen.ran() {
                self.forget_webhooks(seen);
                // The program reacted to no kind. Kinds that it does not watch come last, because it cannot miss their
                // events.
                let is_taken =
                    |crd: &Crd| seen.reactions.iter().any(|one| one.kind == crd.kind && one.refused.is_none());
                self.crds.sort_by_key(|crd| (!seen.follows(&crd.name()), !is_taken(crd)));
            }
            return self.keep(OBJECTS, &seen.around());
        };
        self.forget_webhooks(seen);
        self.crds.sort_by_key(|crd| crd.kind != best.kind || crd.name() != best.resource);
        self.keep(OBJECTS, &seen.around());
        self.keep(WITH, &best.with);
    }

    /// Removes webhooks that manifests register but the program does not serve, because such webhooks belong to another
    /// program or must be switched on.
    fn forget_webhooks(&mut self, seen: &Seen) {
        if !self.hooks.is_empty() && !seen.serves_reviews() {
            let told = "seen: it serves no reviews, so its webhooks are left out: they are another program's, or a flag or variable switches them on";
            self.doubts.push(told.to_owned());
            self.hooks.clear();
        }
        self.leave_out(&seen.unserved);
    }

    /// Whether a file is near the main package that the user chose, because each program of a project has its own manifests.
    fn is_near(&self, file: &Path) -> bool {
        near(self.main.as_deref(), file)
    }

    /// Removes webhooks at URL paths that the program does not serve. Other webhooks of the same file go to a separate file.
    fn leave_out(&mut self, unserved: &[String]) {
        if !self.hooks.iter().any(|hook| unserved.contains(&hook.path)) {
            return;
        }
        self.doubts.push(format!(
            "seen: it does not serve {} with the certificate of the run, so these webhooks are left out",
            unserved.join(", ")
        ));
        let kept = self.registrations(|path| !unserved.iter().any(|one| one == path));
        self.hooks.retain(|hook| !unserved.contains(&hook.path));
        self.made.retain(|(name, _)| *name != BUILT_HOOKS);
        if !self.hooks.is_empty() {
            self.keep(BUILT_HOOKS, &kept);
            self.hooks.iter_mut().for_each(|hook| hook.file = PathBuf::from(BUILT_HOOKS));
        }
    }

    /// The project's webhook configurations, with only the webhooks whose path is wanted.
    pub(crate) fn registrations(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Value> {
        let is_own = |file: &PathBuf| self.hooks.iter().any(|hook| hook.file == *file);
        let own = self.objects.iter().filter(|(file, object)| object["webhooks"].is_array() && is_own(file));
        let wanted = own.filter_map(|(_, object)| {
            let mut object = object.clone();
            let hooks = object["webhooks"].as_array_mut()?;
            hooks.retain(|hook| hook["clientConfig"]["service"]["path"].as_str().is_some_and(&is_wanted));
            (!hooks.is_empty()).then_some(object)
        });
        wanted.collect()
    }

    /// Stores objects that are written to a file beside the scenario.
    fn keep(&mut self, name: &'static str, objects: &[Value]) {
        if !objects.is_empty() {
            let mut text = "# Made by `longhaul init`, of what it saw the program want.\n".to_owned();
            for object in objects {
                text.push_str("---\n");
                yaml::block(object, 0, &mut text);
            }
            self.made.push((name, text));
        }
    }

    pub(crate) fn suite(&self) -> Option<&suite::Suite> {
        suite::first(&self.suites)
    }

    fn crd(&self) -> Option<&Crd> {
        self.crds.first()
    }

    /// The program that is most likely the controller.
    fn program(&self) -> Option<&Language> {
        let started = self.languages.iter().filter(|language| !language.command.is_empty());
        let known = started.clone().find(|language| language.framework.is_some());
        known.or_else(|| started.clone().next()).or(self.languages.first())
    }

    /// Whether the source has a flag for the address of the metrics page.
    pub(crate) fn serves_metrics(&self) -> bool {
        let flags = self.program().and_then(|program| program.habits.flags.as_ref());
        flags.is_some_and(go::Flags::serves_metrics)
    }

    /// The project's webhooks that review its custom resources.
    fn own_hooks(&self) -> impl Iterator<Item = &Hook> {
        self.hooks.iter().filter(|hook| self.crds.iter().any(|crd| hook.is_about(crd)))
    }
}

/// Compiles a constant pattern. Character classes are ASCII, like names in programs, because Unicode classes take
/// seconds to compile.
fn pattern(text: &str) -> Regex {
    RegexBuilder::new(text).unicode(false).build().expect("a pattern of the source, which a test compiles")
}

/// A name that scenario files allow: lower-case letters, digits and `-`.
fn named(text: &str) -> String {
    let lower: String =
        text.to_lowercase().chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '-' }).collect();
    match lower.trim_matches('-') {
        "" => "mine".to_owned(),
        name => name.chars().take(40).collect::<String>().trim_matches('-').to_owned(),
    }
}

/// Whether a file is in the folder of a main package, or in a folder above it inside the project.
fn near(main: Option<&Path>, file: &Path) -> bool {
    let around = main.into_iter().flat_map(Path::ancestors).filter(|folder| !folder.as_os_str().is_empty());
    around.into_iter().any(|folder| file.starts_with(folder))
}

#[cfg(test)]
mod tests;
