//! `longhaul init`: reads a project's folder and proposes a scenario for it, without a question.
//!
//! Owns what counts as found. Walking is in `folder`, manifests in `manifests`, languages in `language`, the choice of a witness
//! in `witness`, the text in `text`. What is read
//! of a folder is bounded; a file that cannot be read or understood is told and left out.

use std::path::{Path, PathBuf};

mod folder;
mod language;
mod manifests;
mod text;
mod witness;

pub(crate) use language::{Framework, Language};
pub(crate) use manifests::{Crd, Hook};
pub(crate) use text::scenario;

/// What a folder tells about the software in it. Paths are relative to the folder.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The folder's own name, as a scenario may be called.
    pub(crate) name: String,
    pub(crate) crds: Vec<Crd>,
    pub(crate) hooks: Vec<Hook>,
    pub(crate) languages: Vec<Language>,
    /// The command of an image, with the file that says so.
    pub(crate) image: Option<(PathBuf, Vec<String>)>,
    /// What was left out, and why.
    pub(crate) doubts: Vec<String>,
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
        let mut found = Self { name: named(&name), doubts, ..Self::default() };
        for file in &files {
            match folder::text(folder, file) {
                Ok(text) => found.take(file, &text),
                Err(why) => found.doubts.push(format!("{}: {why}", file.display())),
            }
        }
        for language in &mut found.languages {
            language.place(&files);
        }
        Ok(found)
    }

    fn take(&mut self, file: &Path, text: &str) {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if manifests::is_manifest(file) {
            match manifests::read(file, text) {
                Ok((crds, hooks)) => {
                    self.crds.extend(crds);
                    self.hooks.extend(hooks);
                }
                Err(why) => self.doubts.push(format!("{}: {why}", file.display())),
            }
        } else if name == "Dockerfile" || name == "Containerfile" {
            if self.image.is_none() {
                let command = language::image_command(text);
                self.image = (!command.is_empty()).then(|| (file.to_owned(), command));
            }
        } else if let Some(language) = language::read(file, &name, text) {
            self.languages.push(language);
        }
    }
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
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_scenarios() {
        assert_eq!(named("My Operator_2"), "my-operator-2");
        assert_eq!(named("."), "mine");
        assert_eq!(named(&"x".repeat(90)).len(), 40);
    }
}
