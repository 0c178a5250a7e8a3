//! Opens the files that a scenario names; no other code does.
//!
//! A scenario may come from a pull request, so its paths may name files that its author must not read. This module owns
//! the rules: the reachable files, the largest size that is read, and errors without content from outside. Reachable
//! are regular files below the scenario's own folder, after links are resolved; others only if the user allows it.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde_saphyr::DeserializeError;

/// The reach of a scenario's paths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    /// Its own folder, and everything below it.
    #[default]
    Folder,
    /// Any regular file: `--allow-outside`.
    Anywhere,
}

/// `--allow-outside`, on every command that reads a scenario.
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

    /// The flag that repeats it on a command line.
    pub fn repeated(self) -> &'static str {
        if self.allow_outside { " --allow-outside" } else { "" }
    }
}

/// The base folder of a scenario's paths, and their reach.
#[derive(Debug, Clone)]
pub struct Ground {
    folder: PathBuf,
    /// The folder with all links resolved.
    root: PathBuf,
    reach: Reach,
}

/// A file or folder within reach.
#[derive(Debug)]
pub struct Place {
    /// The path to open, without links.
    real: PathBuf,
    about: Metadata,
    /// Whether its content may be shown.
    inside: bool,
}

#[derive(Debug)]
pub struct Text {
    pub text: String,
    inside: bool,
}

impl Ground {
    /// The folder of a scenario. A folder that cannot be found has no files; opening one is then an error.
    pub fn of(folder: &Path, reach: Reach) -> Self {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let root = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Self { folder: folder.to_owned(), root, reach }
    }

    /// The folder for paths that were checked when the scenario was read: their kind and size are still checked.
    pub fn looked_at(folder: &Path) -> Self {
        Self::of(folder, Reach::Anywhere)
    }

    /// The folder as the user named it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The target of a path in the scenario, or the reason why it is out of reach.
    pub fn look(&self, path: &Path) -> Result<Place, String> {
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
        Ok(Place { real, about, inside })
    }

    /// Refuses a path that other code reads or writes later. If it does not exist yet, the rules for new files apply.
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

impl Place {
    pub fn is_file(&self) -> bool {
        self.about.is_file()
    }

    /// The path to open.
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
    /// A YAML error, without the file's lines if the file is outside.
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

    /// A folder with a scenario's folder in it, and secrets beside that.
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

    /// Files that a run writes must be within reach as well: no link is followed for a write.
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

    /// For any reach: no pipe is waited for, no device is read, and no long file is loaded.
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

    /// An error in a file outside has its position and none of its content.
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
