//! The files of a project that are worth reading: a bounded walk that leaves out what others wrote.

use std::path::{Path, PathBuf};

/// Folders below the project's. `config/crd/bases` of kubebuilder is the third, a chart in a monorepo the fifth.
const DEPTH: usize = 6;
/// Files and folders that are looked at.
const ENTRIES: usize = 20_000;
/// Files that are read.
const FILES: usize = 2_000;
/// The CRDs of large operators have two megabytes.
const FILE_BYTES: u64 = 8 << 20;
/// Folders of dependencies, builds and tests: what is in them is not the project's, or not for its users.
const SKIPPED: &[&str] = &[
    "node_modules",
    "target",
    "vendor",
    "dist",
    "build",
    "bin",
    "obj",
    "testdata",
    "tests",
    "test",
    "venv",
    "__pycache__",
];

/// The files worth reading, in the order of their paths, and what had to be left out.
///
/// # Errors
///
/// The folder cannot be read.
pub(super) fn files(root: &Path) -> std::io::Result<(Vec<PathBuf>, Vec<String>)> {
    let (mut found, mut doubts, mut seen) = (Vec::new(), Vec::new(), 0);
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = match std::fs::read_dir(root.join(&folder)) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(error),
            Err(error) => {
                doubts.push(format!("{}: {error}", folder.display()));
                continue;
            }
        };
        let mut names: Vec<_> = entries.flatten().map(|entry| (entry.file_name(), entry.file_type())).collect();
        names.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (name, kind) in names {
            seen += 1;
            if seen > ENTRIES || found.len() >= FILES {
                doubts.push(format!("only the first {ENTRIES} entries and {FILES} files were looked at"));
                found.sort();
                return Ok((found, doubts));
            }
            let (path, name) = (folder.join(&name), name.to_string_lossy().into_owned());
            // Links are not followed: they could lead anywhere, and in circles.
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
                _ => {}
            }
        }
    }
    found.sort();
    Ok((found, doubts))
}

fn is_telling(path: &Path, name: &str) -> bool {
    super::manifests::is_manifest(path)
        || super::language::is_telling(name)
        || name == "Dockerfile"
        || name == "Containerfile"
}

/// A file as text, or why it is none.
pub(super) fn text(root: &Path, file: &Path) -> Result<String, String> {
    let path = root.join(file);
    let size = path.metadata().map_err(|error| error.to_string())?.len();
    if size > FILE_BYTES {
        return Err(format!("{size} bytes are more than the {FILE_BYTES} that are read"));
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_and_hidden_folders_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        for path in
            ["go.mod", "config/crd/a.yaml", "node_modules/x/package.json", ".git/a.yaml", "notes.txt", "main.go"]
        {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let (files, doubts) = files(folder.path()).unwrap();
        let files: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
        assert_eq!(files, ["config/crd/a.yaml", "go.mod", "main.go"]);
        assert!(doubts.is_empty());
    }
}
