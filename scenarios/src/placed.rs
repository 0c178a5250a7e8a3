//! Writes files into a project's folder, and never outside of this folder.
//!
//! Follows no symbolic link: a link in place of the file is replaced, and a link in its path is refused.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

/// Writes a file into a folder and returns its path. `replace` says whether an existing file may be replaced.
pub(crate) fn write(folder: &Path, name: &Path, text: &str, replace: bool) -> io::Result<PathBuf> {
    let path = folder.join(name);
    let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "names no file");
    let file = path.file_name().ok_or_else(no_name)?;
    let parent = inside(folder, name)?;
    if !replace {
        let mut out = OpenOptions::new().write(true).create_new(true).open(parent.join(file))?;
        out.write_all(text.as_bytes())?;
        return Ok(path);
    }
    let mut part = OsString::from(".");
    part.push(file);
    part.push(".part");
    let part = parent.join(part);
    match std::fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut out = OpenOptions::new().write(true).create_new(true).open(&part)?;
    out.write_all(text.as_bytes())?;
    std::fs::rename(&part, parent.join(file))?;
    Ok(path)
}

/// Creates the folders above a file.
pub(crate) fn make_room(folder: &Path, name: &Path) -> io::Result<()> {
    let path = folder.join(name);
    let parent = path.parent().unwrap_or(folder);
    let there = parent.ancestors().find(|ancestor| ancestor.symlink_metadata().is_ok()).unwrap_or(folder);
    below(folder, name, &there.canonicalize()?)?;
    std::fs::create_dir_all(parent)
}

/// The path, without symbolic links, of the folder that contains the file.
fn inside(folder: &Path, name: &Path) -> io::Result<PathBuf> {
    let path = folder.join(name);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let real = parent.canonicalize()?;
    below(folder, name, &real)?;
    Ok(real)
}

/// Checks that a relative path does not lead out of the folder. A user may write `..` or an absolute path on purpose.
fn below(folder: &Path, name: &Path, real: &Path) -> io::Result<()> {
    let meant = name.is_absolute() || name.components().any(|part| part == Component::ParentDir);
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if meant || real.starts_with(folder.canonicalize()?) {
        return Ok(());
    }
    let why = format!("a link leads out of the folder, to {}: remove it, or name another file", real.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_is_written_through() {
        let outer = tempfile::tempdir().unwrap();
        let (folder, victim) = (outer.path().join("project"), outer.path().join("victim"));
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        std::fs::write(&victim, "mine").unwrap();
        symlink(&victim, folder.join("longhaul.yaml")).unwrap();
        symlink(outer.path(), folder.join("out")).unwrap();
        symlink("sub", folder.join("own")).unwrap();
        let name = Path::new("longhaul.yaml");
        assert_eq!(write(&folder, name, "new", false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        write(&folder, name, "new", true).unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
        let written = folder.join(name);
        assert!(written.symlink_metadata().unwrap().is_file());
        assert_eq!(std::fs::read_to_string(&written).unwrap(), "new");
        for replace in [true, false] {
            let error = write(&folder, Path::new("out/victim"), "new", replace).unwrap_err().to_string();
            assert!(error.contains("a link leads out of the folder"), "{error}");
        }
        assert!(make_room(&folder, Path::new("out/.github/x.yml")).is_err());
        assert!(!outer.path().join(".github").exists());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
        // Paths within the folder, and paths that the user names, stay possible.
        make_room(&folder, Path::new("own/deep/x.yml")).unwrap();
        write(&folder, Path::new("own/deep/x.yml"), "x", false).unwrap();
        write(&folder, Path::new("../beside.yaml"), "x", false).unwrap();
        assert!(outer.path().join("beside.yaml").exists() && folder.join("sub/deep/x.yml").exists());
    }
}
