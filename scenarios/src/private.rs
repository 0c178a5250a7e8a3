//! Folders that only their owner can read, because the log of a subject may contain secrets.
//!
//! Creates a folder that only its owner can read, or restricts an existing folder.

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use rustix::fs::{Mode, OFlags};

/// File mode with access for the owner only.
pub(crate) const MODE: u32 = 0o700;

/// Creates a folder, or accepts an existing folder that is empty and belongs to the user. `option` is the flag with the
/// folder's path.
pub(crate) fn folder(path: &Path, option: &str) -> Result<()> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(MODE).create(path);
    made.with_context(|| format!("failed to make the folder {}", path.display()))?;
    // The same open folder is checked and then restricted.
    let opened = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let opened = std::fs::File::from(opened.with_context(|| format!("failed to read {}", path.display()))?);
    let about = opened.metadata().with_context(|| format!("failed to read {}", path.display()))?;
    ensure!(
        std::fs::read_dir(path).with_context(|| format!("failed to read {}", path.display()))?.next().is_none(),
        "{option} {}: there is something in it already; name another folder or empty it",
        path.display()
    );
    ensure!(
        about.uid() == rustix::process::geteuid().as_raw(),
        "{option} {}: it belongs to another user, who could read the logs; name a folder that does not exist yet, and Longhaul creates it \
         readable by you only",
        path.display()
    );
    if about.mode() & 0o777 != MODE {
        rustix::fs::fchmod(&opened, Mode::from_raw_mode(MODE)).with_context(|| {
            format!("{option} {}: others may read it, and that could not be changed", path.display())
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// An existing folder that a CI pipeline created is restricted like a new folder.
    #[test]
    fn a_folder_that_exists_is_closed_to_others() {
        let outer = tempfile::tempdir().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let open = outer.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
        for path in [open.clone(), outer.path().join("a/b")] {
            folder(&path, "--run-dir").unwrap();
            assert_eq!(mode(&path), MODE);
        }
        std::fs::write(open.join("x"), "").unwrap();
        let error = folder(&open, "--run-dir").unwrap_err().to_string();
        assert!(error.starts_with("--run-dir ") && error.contains("there is something in it already"), "{error}");
    }

    #[test]
    fn a_folder_of_somebody_else_is_not_taken() {
        let outer = tempfile::tempdir().unwrap();
        let theirs = outer.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        if std::os::unix::fs::chown(&theirs, Some(65_534), None).is_err() {
            println!("skipped: needs root");
            return;
        }
        let error = folder(&theirs, "--out").unwrap_err().to_string();
        assert!(
            error.contains("belongs to another user") && error.contains("name a folder that does not exist"),
            "{error}"
        );
    }
}
