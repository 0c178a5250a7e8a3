//! Finds the project files that are worth reading, in a bounded walk that skips code of dependencies.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Maximum depth of folders that are read. `config/crd/bases` of kubebuilder has depth three, a chart in a monorepo has
/// depth five; Java packages are deeper.
const DEPTH: usize = 10;
/// Maximum number of files and folders that the walk visits.
const ENTRIES: usize = 20_000;
/// Maximum number of files, other than source files, that are read.
const FILES: usize = 2_000;
/// Maximum number of source files read.
const SOURCES: usize = 2_000;
/// Maximum size of a file that is read. CRD files of large operators have two megabytes.
const FILE_BYTES: u64 = 8 << 20;
/// Maximum size of a source file that is read; generated files may be larger.
const SOURCE_BYTES: u64 = 1 << 20;
/// Maximum number of bytes read from all files together.
pub(super) const ALL_BYTES: u64 = 256 << 20;
/// Folders of dependencies, builds and tests, which are skipped.
const SKIPPED: &[&str] = &[
    "node_modules",
    "target",
    "vendor",
    "third_party",
    "thirdparty",
    "dist",
    "build",
    "bin",
    "obj",
    "testdata",
    "tests",
    "test",
    "e2e",
    "hack",
    "venv",
    "__pycache__",
];
/// Folders in which Java builds put generated `CustomResourceDefinition`s, read although the folders around them are
/// skipped.
const MADE: &[&str] =
    &["target/classes/META-INF/fabric8", "build/classes/java/main/META-INF/fabric8", "target/kubernetes"];

/// The files worth reading, sorted by path, and messages about skipped files.
///
/// # Errors
///
/// Fails if the folder cannot be read.
pub(super) fn files(root: &Path) -> std::io::Result<(Vec<PathBuf>, Vec<String>)> {
    let (mut found, mut doubts, mut seen) = (Vec::new(), Vec::new(), 0);
    let mut sources = 0;
    let made = MADE.iter().filter(|path| is_real(root, path));
    let mut folders: Vec<(PathBuf, usize)> = made.map(|path| (PathBuf::from(path), DEPTH)).collect();
    folders.push((PathBuf::new(), 0));
    while let Some((folder, depth)) = folders.pop() {
        let entries = match std::fs::read_dir(root.join(&folder)) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(error),
            Err(error) => {
                doubts.push(format!("{}: {error}", folder.display()));
                continue;
            }
        };
        // One more than the limit, because a folder of a million names must not be held in memory.
        let room = ENTRIES.saturating_sub(seen).saturating_add(1);
        let names = entries.flatten().take(room).map(|entry| (entry.file_name(), entry.file_type()));
        let mut names: Vec<_> = names.collect();
        names.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (name, kind) in names {
            seen += 1;
            if seen > ENTRIES || found.len() - sources >= FILES {
                doubts.push(format!("only the first {ENTRIES} entries and {FILES} files were looked at"));
                found.sort();
                return Ok((found, doubts));
            }
            let (path, name) = (folder.join(&name), name.to_string_lossy().into_owned());
            // Links are not followed: they could lead anywhere, even in circles.
            match kind {
                Ok(kind)
                    if kind.is_dir()
                        && depth < DEPTH
                        && !name.starts_with('.')
                        && !SKIPPED.contains(&name.as_str()) =>
                {
                    folders.push((path, depth + 1));
                }
                Ok(kind) if kind.is_file() && is_telling(&path, &name) => found.push(path),
                Ok(kind) if kind.is_file() && is_source(&path) && sources < SOURCES => {
                    sources += 1;
                    found.push(path);
                }
                _ => {}
            }
        }
    }
    if sources >= SOURCES {
        doubts.push(format!("only the first {SOURCES} sources were looked at"));
    }
    found.sort();
    Ok((found, doubts))
}

/// Whether no component of the path is a symbolic link.
fn is_real(root: &Path, path: &str) -> bool {
    let mut whole = root.to_owned();
    Path::new(path).components().all(|part| {
        whole.push(part);
        whole.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
    })
}

fn is_telling(path: &Path, name: &str) -> bool {
    super::manifests::is_manifest(path)
        || super::language::is_telling(name)
        || matches!(name, "Dockerfile" | "Containerfile" | "PROJECT" | "Makefile")
}

/// Whether a file is source code in a known language.
pub(super) fn is_source(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    super::go::Sources::is_telling(&name) || super::rust::is_telling(&name) || super::java::is_telling(&name)
}

/// The text of a file, or the reason why it cannot be read. Reads only regular files, even if the file was replaced
/// since it was listed.
pub(super) fn text(root: &Path, file: &Path) -> Result<String, String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(root.join(file), flags, Mode::empty())
        .map_err(|error| std::io::Error::from(error).to_string())?;
    let opened = std::fs::File::from(opened);
    if !opened.metadata().map_err(|error| error.to_string())?.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let most = if is_source(file) { SOURCE_BYTES } else { FILE_BYTES };
    let mut bytes = Vec::new();
    opened.take(most + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most {
        return Err(format!("more than the {most} bytes that are read"));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_and_hidden_folders_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        for path in [
            "go.mod",
            "config/crd/a.yaml",
            "node_modules/x/package.json",
            ".git/a.yaml",
            "notes.txt",
            "main.go",
            "main_test.go",
            "PROJECT",
            "target/classes/META-INF/fabric8/a-v1.yml",
            "target/b.yaml",
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let (files, doubts) = files(folder.path()).unwrap();
        let files: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
        assert_eq!(
            files,
            ["PROJECT", "config/crd/a.yaml", "go.mod", "main.go", "target/classes/META-INF/fabric8/a-v1.yml"]
        );
        assert!(doubts.is_empty());
    }

    /// A listed file that was replaced by a link or a pipe is not read, so no read blocks.
    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::os::unix::fs::symlink("/etc/passwd", path("link.yaml")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe.yaml"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(text(folder.path(), Path::new("link.yaml")).is_err());
        assert_eq!(text(folder.path(), Path::new("pipe.yaml")).unwrap_err(), "it is no regular file");
        std::fs::write(path("large.go"), vec![b'x'; (1 << 20) + 1]).unwrap();
        assert!(text(folder.path(), Path::new("large.go")).unwrap_err().contains("more than the 1048576 bytes"));
        std::fs::write(path("bytes.yaml"), [0xff]).unwrap();
        assert_eq!(text(folder.path(), Path::new("bytes.yaml")).unwrap_err(), "it is not UTF-8");
        assert_eq!(files(folder.path()).unwrap().0.len(), 2, "links and pipes are not listed");
    }
}
