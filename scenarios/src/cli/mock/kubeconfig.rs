//! The kubeconfig file of `longhaul mock kube`: which existing file may be overwritten, and the permissions of the
//! file.
//!
//! Other tools use the same default file name, and an existing file may hold the only access to a cluster.

use std::io::{Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use aws_lc_rs::rand;

/// First line of every kubeconfig file that this program writes.
const MARK: &str = "# Written by `longhaul mock kube`, which overwrites it at its next start.\n";
const TOKEN_BYTES: usize = 32;

/// Refuses a path at which another program's file exists, unless `force` is set. Called before the mock starts.
pub(super) fn check(path: &Path, force: bool) -> Result<()> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("failed to look at {}", path.display())),
    };
    ensure!(metadata.is_file(), "--kubeconfig {}: it is no file", path.display());
    if force {
        return Ok(());
    }
    let mut begin = Vec::new();
    let file = std::fs::File::open(path).with_context(|| format!("failed to read {}", path.display()))?;
    file.take(MARK.len() as u64).read_to_end(&mut begin)?;
    if begin != MARK.as_bytes() {
        bail!(
            "--kubeconfig {}: another program wrote this file; give another name, or --force to overwrite it",
            path.display()
        );
    }
    Ok(())
}

/// Writes the kubeconfig file so that only this user can read it. The write is atomic and follows no symbolic link.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    let written = || -> std::io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The temporary file is created with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(MARK.as_bytes())?;
        file.write_all(text.as_bytes())?;
        file.persist(path)?;
        Ok(())
    };
    written().with_context(|| format!("failed to write {}", path.display()))
}

/// A random token in hexadecimal.
pub(super) fn token() -> Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    rand::fill(&mut bytes).map_err(|_| anyhow::anyhow!("the system gives no random numbers"))?;
    Ok(hex::encode(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_its_own_file_is_overwritten_and_nobody_else_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig.yaml");
        for text in ["a: 1\n", "b: 2\n"] {
            check(&path, false).unwrap();
            write(&path, text).unwrap();
            assert!(std::fs::read_to_string(&path).unwrap().ends_with(text));
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        std::fs::write(&path, "apiVersion: v1\nkind: Config\n").unwrap();
        let refused = check(&path, false).unwrap_err().to_string();
        assert!(refused.contains("another program wrote this file") && refused.contains("--force"), "{refused}");
        check(&path, true).unwrap();
        for force in [false, true] {
            assert!(check(Path::new("/dev/null"), force).unwrap_err().to_string().contains("it is no file"));
        }
    }

    #[test]
    fn tokens_differ() {
        assert_ne!(token().unwrap(), token().unwrap());
        assert_eq!(token().unwrap().len(), 64);
    }
}
