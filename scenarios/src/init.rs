//! `longhaul init`: reads a project's folder and proposes a scenario for it, without a question.
//!
//! Owns what counts as found. Walking is in `folder`, manifests in `manifests`, package files in `language`, sources in `go`, `rust` and `java`,
//! what kustomize makes of manifests in `kustomize`, test-suites in `suite`, the choice of a witness in `witness`, the text in `text`.
//! What is read of a folder is bounded; a file that cannot be read or understood is told and left out.

use std::path::{Path, PathBuf};

use regex::{Regex, RegexBuilder};
use serde_json::Value;

mod crd;
mod folder;
mod go;
mod java;
mod kustomize;
mod language;
mod makefile;
mod manifests;
mod project;
mod rust;
mod sample;
mod suite;
mod text;
mod witness;
mod yaml;

pub(crate) use crd::{Crd, Hook};
pub(crate) use kustomize::{Kustomized, build, kubectl};
pub(crate) use language::{Framework, Habits, Language};
pub(crate) use project::Project;
pub(crate) use text::scenario;

/// Where kubebuilder keeps what its tools make of the sources.
const BASES: &str = "config/crd/bases";
/// What is written beside the scenario where a kustomization changes definitions or rules.
const BUILT_CRDS: &str = "longhaul-crds.yaml";
const BUILT_HOOKS: &str = "longhaul-webhooks.yaml";

/// What a folder tells about the software in it. Paths are relative to the folder.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The folder's own name, as a scenario may be called.
    pub(crate) name: String,
    /// What kubebuilder or operator-sdk laid out.
    pub(crate) project: Option<Project>,
    /// Those with a controller of the project first.
    pub(crate) crds: Vec<Crd>,
    pub(crate) hooks: Vec<Hook>,
    /// Those of the top folder first.
    pub(crate) languages: Vec<Language>,
    /// The command of an image, with the file that says so.
    pub(crate) image: Option<(PathBuf, Vec<String>)>,
    /// What was left out, and why.
    pub(crate) doubts: Vec<String>,
    /// Files that are to lie beside the scenario: their names and what is in them.
    pub(crate) made: Vec<(&'static str, String)>,
    /// The project's own test-suites.
    suites: Vec<suite::Suite>,
    samples: Vec<sample::Sample>,
    makefiles: Vec<(PathBuf, makefile::Built)>,
    /// Definitions and webhook configurations as they stand in the files.
    objects: Vec<(PathBuf, Value)>,
    go: go::Sources,
    rust: rust::Sources,
    java: java::Sources,
}

impl Found {
    /// Reads a folder.
    ///
    /// # Errors
    ///
    /// The folder itself cannot be read.
    pub(crate) fn read(folder: &Path) -> std::io::Result<Self> {
        let whole = folder.canonicalize()?;
        let name = whole.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (files, doubts) = folder::files(folder)?;
        let mut found = Self { doubts, ..Self::default() };
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
        } else if manifests::is_manifest(file) {
            match manifests::read(file, text) {
                Ok(defined) => {
                    self.crds.extend(defined.crds);
                    self.hooks.extend(defined.hooks);
                    self.samples.extend(defined.samples);
                    self.objects.extend(defined.objects.into_iter().map(|object| (file.to_owned(), object)));
                }
                Err(why) => self.doubts.push(format!("{}: {why}", file.display())),
            }
        } else if name == "Dockerfile" || name == "Containerfile" {
            if self.image.is_none() {
                let command = language::image_command(text);
                self.image = (!command.is_empty()).then(|| (file.to_owned(), command));
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

    /// Brings what matters most to the front, leaves out what is there twice, and completes the languages by the sources.
    fn sort(&mut self) {
        let controlled = self.project.as_ref().map(|project| project.controlled.clone()).unwrap_or_default();
        let reconciled = &self.go.reconciled;
        self.crds.sort_by_key(|crd| {
            let place = controlled.iter().position(|(group, kind)| *group == crd.group && *kind == crd.kind);
            (
                place.unwrap_or(usize::MAX),
                !reconciled.contains(&crd.kind),
                !crd.file.starts_with(BASES),
                crd.file.clone(),
            )
        });
        let mut names = std::collections::BTreeSet::new();
        // Charts and bundles have copies of what is in `config/`.
        self.crds.retain(|crd| names.insert(crd.name()));
        self.hooks.sort_by_key(|hook| (!hook.file.starts_with("config"), hook.file.clone()));
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

    /// What its manifests are once they are built. Plain ones are named in the scenario where they mean the same: they are what is
    /// written anew when the sources change.
    pub(crate) fn kustomized(&mut self, kustomized: Kustomized) {
        let (folder, built) = match kustomized {
            Kustomized::None => return,
            Kustomized::Left(why) => return self.doubts.push(why),
            Kustomized::Built { folder, objects } => (folder, objects),
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
            if is_crds { self.crds = defined.crds } else { self.hooks = defined.hooks }
        }
        self.sort();
    }

    /// The suite to begin with.
    pub(crate) fn suite(&self) -> Option<&suite::Suite> {
        suite::first(&self.suites)
    }

    /// The custom resource that is churned.
    fn crd(&self) -> Option<&Crd> {
        self.crds.first()
    }

    /// How it is started, as far as anything tells.
    fn program(&self) -> Option<&Language> {
        let started = self.languages.iter().filter(|language| !language.command.is_empty());
        let known = started.clone().find(|language| language.framework.is_some());
        known.or_else(|| started.clone().next()).or(self.languages.first())
    }

    /// Webhooks that are asked about kinds of the project.
    fn own_hooks(&self) -> impl Iterator<Item = &Hook> {
        self.hooks.iter().filter(|hook| self.crds.iter().any(|crd| hook.is_about(crd)))
    }
}

/// A pattern that is written in the source. Its classes are of ASCII, as names in programs are; with those of Unicode one takes seconds to compile.
fn pattern(text: &str) -> Regex {
    RegexBuilder::new(text).unicode(false).build().expect("a pattern of the source, which a test compiles")
}

/// A name as scenario files allow it: lower-case letters, digits and `-`.
fn named(text: &str) -> String {
    let lower: String =
        text.to_lowercase().chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '-' }).collect();
    match lower.trim_matches('-') {
        "" => "mine".to_owned(),
        name => name.chars().take(40).collect::<String>().trim_matches('-').to_owned(),
    }
}

#[cfg(test)]
mod tests;
