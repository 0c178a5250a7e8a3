//! Opens the files that a scenario names; no other code opens such files.
//!
//! A scenario may come from a pull request, so its paths may name files that its author must not read. This module
//! decides which files a scenario can name and how many bytes of each are read, and keeps content of other files out of
//! errors. A scenario can name regular files in its own folder or below, after links are resolved. With
//! `--allow-outside` a scenario can name files in other folders.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde_saphyr::DeserializeError;

/// The files that a scenario can name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    /// The scenario's own folder, and everything below it.
    #[default]
    Folder,
    /// Any regular file, because the user gave `--allow-outside`.
    Anywhere,
}

/// `--allow-outside`, an option of every command that reads a scenario.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct Outside {
    /// Let the scenario name files outside its own folder. By default a scenario from another person cannot read your other files.
    #[arg(long)]
    allow_outside: bool,
}

impl Outside {
    pub fn reach(self) -> Reach {
        if self.allow_outside { Reach::Anywhere } else { Reach::Folder }
    }

    /// The option as text for a suggested command line; empty if the option is not set.
    pub fn repeated(self) -> &'static str {
        if self.allow_outside { " --allow-outside" } else { "" }
    }
}

/// The folder from which a scenario's relative paths start, and the files that the paths can name.
#[derive(Debug, Clone)]
pub struct Ground {
    folder: PathBuf,
    /// The folder with all links resolved.
    root: PathBuf,
    reach: Reach,
}

/// A file or folder that the scenario may use.
#[derive(Debug)]
pub struct AllowedFile {
    /// The path to open, with all links resolved.
    real: PathBuf,
    about: Metadata,
    /// Whether the file is in the scenario's folder, so that errors may show its content.
    inside: bool,
}

#[derive(Debug)]
pub struct Text {
    pub text: String,
    inside: bool,
}

impl Ground {
    /// The folder of a scenario. If the scenario's folder does not exist, opening any file in it is an error.
    pub fn of(folder: &Path, reach: Reach) -> Self {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let root = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Self { folder: folder.to_owned(), root, reach }
    }

    /// The folder of a scenario whose paths were already checked when it was read. The kind and the size of each file
    /// are still checked.
    pub fn looked_at(folder: &Path) -> Self {
        Self::of(folder, Reach::Anywhere)
    }

    /// The folder as the user named it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Resolves a path in the scenario. The error is the reason why the scenario must not use the path.
    pub fn look(&self, path: &Path) -> Result<AllowedFile, String> {
        let whole = self.folder.join(path);
        let real = whole.canonicalize().map_err(|error| error.to_string())?;
        let inside = real.starts_with(&self.root);
        if !inside && self.reach == Reach::Folder {
            return Err(format!(
                "leads out of the folder of the scenario ({}): name something below it, or allow it with --allow-outside",
                self.root.display()
            ));
        }
        let about = real.metadata().map_err(|error| error.to_string())?;
        Ok(AllowedFile { real, about, inside })
    }

    /// Checks a path that other code reads or writes later. If the file does not exist yet, the scenario must be
    /// allowed to use the file's folder.
    pub fn allows(&self, path: &Path) -> Result<(), String> {
        let whole = self.folder.join(path);
        // A broken link counts as existing: a write to it would create its target.
        if whole.symlink_metadata().is_ok() {
            return self.look(path)?.is_file().then_some(()).ok_or_else(|| NOT_REGULAR.to_owned());
        }
        match whole.parent().map(Path::canonicalize) {
            Some(Ok(parent)) => self.look(&parent).map(drop),
            _ => Ok(()),
        }
    }

    /// Reads a regular file of at most `bytes_max` bytes.
    pub fn text(&self, path: &Path, bytes_max: u64) -> Result<Text, String> {
        let place = self.look(path)?;
        Ok(Text { text: place.read(bytes_max)?, inside: place.inside })
    }
}

const NOT_REGULAR: &str = "is no regular file";

impl AllowedFile {
    pub fn is_file(&self) -> bool {
        self.about.is_file()
    }

    /// The path to open, with all links resolved.
    pub fn real(&self) -> &Path {
        &self.real
    }

    pub fn is_folder(&self) -> bool {
        self.about.is_dir()
    }

    fn read(&self, bytes_max: u64) -> Result<String, String> {
        // Opening a pipe would wait for its writer without `NONBLOCK`.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        if !self.is_file() {
            return Err(NOT_REGULAR.to_owned());
        }
        let opened = rustix::fs::open(&self.real, flags, Mode::empty()).map_err(io::Error::from);
        let file = opened.map(File::from).map_err(|error| error.to_string())?;
        let about = file.metadata().map_err(|error| error.to_string())?;
        if !about.is_file() {
            return Err(NOT_REGULAR.to_owned());
        }
        let too_long = |bytes: u64| format!("is {bytes} bytes long: at most {bytes_max} are read");
        if about.len() > bytes_max {
            return Err(too_long(about.len()));
        }
        // Files of /proc have the size zero.
        let mut bytes = Vec::new();
        file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 > bytes_max {
            return Err(too_long(bytes.len() as u64));
        }
        String::from_utf8(bytes).map_err(|_| "is no text in UTF-8".to_owned())
    }
}

impl Text {
    /// The message for a YAML error in this file. If the file is outside the scenario's folder, the error has none of
    /// the file's lines.
    pub fn problem(&self, error: &DeserializeError) -> String {
        if self.inside {
            return error.to_string();
        }
        let place = error.without_snippet().location();
        let place = place.map(|at| format!(" at line {} column {}", at.line(), at.column())).unwrap_or_default();
        format!(
            "has unexpected content{place}, which is not shown, because the file is outside the folder of the scenario"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder that contains a scenario's folder and, beside it, secrets.
    fn folders() -> (tempfile::TempDir, PathBuf) {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("scenario");
        std::fs::create_dir_all(inner.join("crds")).unwrap();
        std::fs::write(inner.join("crds/a.yaml"), "a: 1\n").unwrap();
        std::fs::write(outer.path().join("secret"), "password: [\n").unwrap();
        symlink("../secret", inner.join("link")).unwrap();
        symlink("crds/a.yaml", inner.join("own")).unwrap();
        symlink("..", inner.join("up")).unwrap();
        symlink("../written", inner.join("dangling")).unwrap();
        (outer, inner)
    }

    #[test]
    fn what_leads_out_of_the_folder_is_refused_unless_it_is_allowed() {
        let (outer, inner) = folders();
        let ground = Ground::of(&inner, Reach::Folder);
        let secret = outer.path().join("secret");
        for path in ["../secret", "link", "up/secret", "crds/../../secret", secret.to_str().unwrap(), "/dev/zero"] {
            let error = ground.text(Path::new(path), 100).unwrap_err();
            assert!(
                error.contains("leads out of the folder of the scenario") && error.ends_with("--allow-outside"),
                "{error}"
            );
        }
        for path in ["crds/a.yaml", "own", "./crds/../own", inner.join("own").to_str().unwrap(), "up/scenario/own"] {
            assert_eq!(ground.text(Path::new(path), 100).unwrap().text, "a: 1\n", "{path}");
        }
        let wide = Ground::of(&inner, Reach::Anywhere);
        assert_eq!(wide.text(Path::new("link"), 100).unwrap().text, "password: [\n");
        assert!(ground.look(Path::new("nowhere")).unwrap_err().contains("No such file"));
    }

    /// A scenario can make a run write only below its own folder, and no write follows a link.
    #[test]
    fn what_is_not_there_yet_is_below_the_folder() {
        let (_outer, inner) = folders();
        let ground = Ground::of(&inner, Reach::Folder);
        for path in ["kubeconfig", "crds/kubeconfig", "none/kubeconfig", "crds/a.yaml"] {
            ground.allows(Path::new(path)).unwrap();
        }
        for path in ["../kubeconfig", "/tmp/kubeconfig", "up/kubeconfig", "dangling", "link"] {
            assert!(ground.allows(Path::new(path)).is_err(), "{path}");
        }
        Ground::of(&inner, Reach::Anywhere).allows(Path::new("/tmp/kubeconfig")).unwrap();
    }

    /// Even with `--allow-outside`, Longhaul neither waits for a pipe, nor reads a device, nor loads a long file.
    #[test]
    fn only_regular_files_of_bounded_length_are_read() {
        let (_outer, inner) = folders();
        let pipe = inner.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let ground = Ground::of(&inner, Reach::Anywhere);
        for path in ["pipe", "/dev/zero", "crds", "/dev/null"] {
            assert_eq!(ground.text(Path::new(path), 100).unwrap_err(), NOT_REGULAR, "{path}");
        }
        assert!(ground.text(Path::new("own"), 4).unwrap_err().starts_with("is 5 bytes long: at most 4"));
        // Its size is zero.
        assert!(ground.text(Path::new("/proc/self/maps"), 4).unwrap_err().contains("at most 4"));
        assert!(ground.text(Path::new("/proc/self/exe"), 1 << 40).unwrap_err().contains("UTF-8"));
    }

    /// An error in a file outside the scenario's folder has a position but none of the file's content.
    #[test]
    fn no_line_of_a_file_from_elsewhere_is_told() {
        let (_outer, inner) = folders();
        let ground = Ground::of(&inner, Reach::Anywhere);
        let text = ground.text(Path::new("link"), 100).unwrap();
        let error = serde_saphyr::from_str::<serde_json::Value>(&text.text).unwrap_err();
        let told = text.problem(&error);
        assert!(told.starts_with("has unexpected content at line ") && !told.contains("password"), "{told}");
    }
}
