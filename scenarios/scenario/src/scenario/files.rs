//! `subject.files`: the files of a subject besides its program file, such as the script that an interpreter runs.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::reach::Ground;
use crate::machine;

/// Maximum number of files of all folders together. A folder with more files is typically `node_modules`.
const FILES_MAX: usize = 5_000;

/// Lists the named files. A folder contributes all its files, sorted by name. The error names the path and the problem.
pub fn list(ground: &Ground, named: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for path in named {
        let found = files.len();
        walk(ground, path, &mut files)?;
        if files.len() == found {
            return Err(problem(path, "is a folder without files"));
        }
    }
    Ok(files)
}

/// One SHA-256 over the files, as `sha256:<hex>`: the digest of the output of `sha256sum` for these files.
pub fn digest(ground: &Ground, named: &[PathBuf]) -> Result<String, String> {
    let mut all = Sha256::new();
    for path in list(ground, named)? {
        let place = ground.look(&path).map_err(|error| problem(&path, error))?;
        let one = machine::digest(place.real()).map_err(|error| problem(&path, error))?;
        all.update(printed(&one, &path));
    }
    Ok(format!("sha256:{}", hex::encode(all.finalize())))
}

/// The digest of a subject's programs. For one program this is the digest of its file, for several programs the digest
/// of the output of `sha256sum`. The digest is `None` if a program cannot be read.
pub fn digest_of_programs(programs: &[PathBuf]) -> Option<String> {
    let digests: Option<Vec<String>> = programs.iter().map(|program| machine::digest(program).ok()).collect();
    match digests?.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => {
            let mut all = Sha256::new();
            several.iter().zip(programs).for_each(|(one, program)| all.update(printed(one, program)));
            Some(format!("sha256:{}", hex::encode(all.finalize())))
        }
    }
}

/// A line with digest and path, in the format of `sha256sum`.
fn printed(digest: &str, path: &Path) -> String {
    format!("{}  {}\n", digest.trim_start_matches("sha256:"), path.display())
}

fn walk(ground: &Ground, path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let place = ground.look(path).map_err(|why| problem(path, why))?;
    if place.is_file() {
        if files.len() == FILES_MAX {
            return Err(problem(
                path,
                format!("is one more than the {FILES_MAX} files that are read: name fewer folders"),
            ));
        }
        files.push(path.to_owned());
        return Ok(());
    }
    if !place.is_folder() {
        return Err(problem(path, "is neither a file nor a folder"));
    }
    let mut inside = Vec::new();
    for entry in std::fs::read_dir(place.real()).map_err(|error| problem(path, error))? {
        let entry = entry.map_err(|error| problem(path, error))?;
        // A link inside a folder may lead to the folder itself; a link that is named is followed.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            inside.push(path.join(entry.file_name()));
        }
    }
    inside.sort();
    inside.iter().try_for_each(|path| walk(ground, path, files))
}

fn problem(path: &Path, why: impl std::fmt::Display) -> String {
    format!("`files`: {}: {why}", path.display())
}

#[cfg(test)]
mod tests {
    use super::super::reach::Reach;
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("lib")).unwrap();
        for (name, text) in [("hook.py", "one\n"), ("lib/b.py", "b\n"), ("lib/a.py", "a\n")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn ground(folder: &tempfile::TempDir) -> Ground {
        Ground::of(folder.path(), Reach::Folder)
    }

    /// The digest of a subject's files is that of the output of `sha256sum hook.py lib/a.py lib/b.py`, wherever their
    /// folder lies.
    #[test]
    fn the_digest_is_that_of_what_sha256sum_prints() {
        let (folder, named) = (folder(), ["hook.py".into(), "lib".into()]);
        let files = list(&ground(&folder), &named).unwrap();
        assert_eq!(files, ["hook.py", "lib/a.py", "lib/b.py"].map(PathBuf::from));
        let lines = ["one\n", "a\n", "b\n"].iter().zip(&files);
        let printed: Vec<String> =
            lines.map(|(text, path)| format!("{}  {}\n", hex::encode(Sha256::digest(text)), path.display())).collect();
        let expected = format!("sha256:{}", hex::encode(Sha256::digest(printed.concat())));
        assert_eq!(digest(&ground(&folder), &named).unwrap(), expected);
        let other = self::folder();
        assert_eq!(digest(&ground(&other), &named).unwrap(), expected, "the same files elsewhere");
    }

    #[test]
    fn another_text_or_another_name_is_another_digest() {
        let (folder, named) = (folder(), ["lib".into()]);
        let first = digest(&ground(&folder), &named).unwrap();
        std::fs::write(folder.path().join("lib/a.py"), "A\n").unwrap();
        let second = digest(&ground(&folder), &named).unwrap();
        std::fs::rename(folder.path().join("lib/a.py"), folder.path().join("lib/c.py")).unwrap();
        let third = digest(&ground(&folder), &named).unwrap();
        assert!(first != second && second != third && first != third);
    }

    #[test]
    fn what_cannot_be_read_is_told_by_its_name() {
        let folder = folder();
        std::fs::create_dir(folder.path().join("empty")).unwrap();
        for (path, why) in [("nowhere.py", "No such file"), ("empty", "is a folder without files")] {
            let error = digest(&ground(&folder), &[path.into()]).unwrap_err();
            assert!(error.starts_with(&format!("`files`: {path}: ")) && error.contains(why), "{error}");
        }
    }

    /// A symbolic link to its own folder does not make the search endless, and does not count as a file.
    #[test]
    fn a_link_in_a_circle_is_left_out() {
        let folder = folder();
        std::os::unix::fs::symlink("..", folder.path().join("lib/up")).unwrap();
        assert_eq!(list(&ground(&folder), &["lib".into()]).unwrap().len(), 2);
    }
}
