//! Builds the operator of `scenarios/subjects/kubebuilder` as its author would: a project folder that contains
//! `bin/manager`.

use std::path::{Path, PathBuf};

use installer::GoError;

/// The folder with the operator's source.
pub const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/subjects/kubebuilder");

/// The path of the operator's program, which is built unless the cache has it. Prints a message and returns `None` if
/// Go or its modules are missing.
fn manager() -> Option<PathBuf> {
    match installer::go_module("cache-operator", Path::new(SOURCE), "./cmd") {
        Ok(program) => Some(program),
        Err(GoError::Needs(what)) => {
            println!("skipped: needs go: {what}");
            None
        }
        Err(error @ GoError::Source(_)) => panic!("{SOURCE}: {error}"),
    }
}

/// A copy of the operator's project folder that a test may change.
pub fn project() -> Option<tempfile::TempDir> {
    let manager = manager()?;
    let folder = tempfile::tempdir().unwrap();
    copy(Path::new(SOURCE), folder.path());
    let bin = folder.path().join("bin");
    let _ = std::fs::remove_dir_all(&bin);
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(manager, bin.join("manager")).unwrap();
    Some(folder)
}

/// The names of all mistakes that can be planted, from `internal/planted/planted.go`.
pub fn mistakes() -> Vec<String> {
    let source = std::fs::read_to_string(Path::new(SOURCE).join("internal/planted/planted.go")).unwrap();
    let quoted = source.lines().filter_map(|line| line.split_once("= mistake(\"")?.1.strip_suffix("\")"));
    let names: Vec<String> = quoted.map(str::to_owned).collect();
    assert!(!names.is_empty(), "{source}");
    names
}

/// Copies a folder with its content.
pub fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
