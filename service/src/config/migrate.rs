//! Migrates a configuration file from an older format version to the present version; comments are kept.
//!
//! Each format version has one migration function in this module. So far the only migration writes `version: 1` into a
//! file without a version.

use std::path::Path;

use super::{Error, VERSION, parse};

/// The text of the file at `path`, in the present format version. A file that `longhaul-service run` would refuse gives
/// an error.
pub fn migrate(path: &Path) -> Result<String, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.into(), source })?;
    parse(&text, path)?;
    let migrated = if names_a_version(&text) { text } else { stamped(&text) };
    // The printed text is used next: it must be as valid as the input.
    parse(&migrated, path)?;
    Ok(migrated)
}

fn names_a_version(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("version:")) || text.trim_start().starts_with('{')
}

/// Inserts the key `version` above the first key, below the comment at the top of the file.
fn stamped(text: &str) -> String {
    let is_head = |line: &&str| line.starts_with('#') || line.starts_with("---") || line.starts_with('%');
    let head: usize = text.split_inclusive('\n').take_while(is_head).map(str::len).sum();
    let (head, rest) = text.split_at(head);
    let newline = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{newline}version: {VERSION}\n{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_migrated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service.yaml");
        let migrated = |text: &str| {
            std::fs::write(&path, text).unwrap();
            migrate(&path).map_err(|error| error.to_string())
        };
        let old = "# mine\n# and yours\nlog: {level: debug} # loud\n";
        let new = "# mine\n# and yours\nversion: 1\nlog: {level: debug} # loud\n";
        assert_eq!(migrated(old).as_deref(), Ok(new));
        assert_eq!(migrated(new).as_deref(), Ok(new), "once is enough");
        assert_eq!(migrated("").as_deref(), Ok("version: 1\n"));
        assert_eq!(migrated("# only this").as_deref(), Ok("# only this\nversion: 1\n"));
        assert_eq!(migrated("---\nlog: {}\n").as_deref(), Ok("---\nversion: 1\nlog: {}\n"));
        assert!(migrated("log: {levl: debug}\n").unwrap_err().contains("did you mean `level`?"));
        assert!(migrated("version: 2\n").unwrap_err().contains("version: 2 is not known to this program: it knows 1"));
    }
}
