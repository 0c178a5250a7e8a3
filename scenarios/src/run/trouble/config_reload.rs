//! The fault `config-reload`: replaces the configuration file of the running service, and the next time restores it. A
//! hit is a replaced file.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use mock_faults::ConfigReloadKeys;
use mock_objects::patch::merge_patch;
use serde_json::Value;

use super::{Access, PlayedFault};

/// The option of the service that names its configuration file.
const OPTION: &str = "--config";

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let keys = deed.fault.keys::<ConfigReloadKeys>();
    let patch = Value::Object(keys.settings.unwrap_or_default());
    let mut first: Option<(PathBuf, Value)> = None;
    let mut times = deed.times(keys.pause);
    while let Some(number) = times.next().await? {
        let (path, before) = match first.take() {
            Some(known) => known,
            None => deed.with(configuration).await??,
        };
        let mut next = before.clone();
        if number % 2 == 0 {
            merge_patch(&mut next, &patch);
        }
        times.does(async { replace(&path, &next) }).await?;
        first = Some((path, before));
    }
    Ok(())
}

/// The configuration file of the running process, and its content.
fn configuration(access: &mut dyn Access) -> Result<(PathBuf, Value)> {
    let pid = access.processes().pids().first().copied().context("the service does not run")?;
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).context("the service has ended")?;
    let words: Vec<String> =
        line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let named = words.iter().position(|word| word == OPTION).and_then(|index| words.get(index + 1));
    let path = PathBuf::from(named.context("the service has no configuration file")?);
    let text = std::fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let before = serde_json::from_str(&text).with_context(|| format!("failed to read {}", path.display()))?;
    Ok((path, before))
}

/// Replaces a file atomically, so that no reader sees an incomplete file.
fn replace(path: &Path, content: &Value) -> Result<String> {
    let fresh = path.with_extension("fresh");
    std::fs::write(&fresh, content.to_string())
        .and_then(|()| std::fs::rename(&fresh, path))
        .with_context(|| format!("failed to write {}", path.display()))?;
    Ok("the configuration file was replaced".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_is_replaced_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service-1.yaml");
        std::fs::write(&path, "{}").unwrap();
        replace(&path, &json!({"a": 1})).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), r#"{"a":1}"#);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no second file stays");
    }
}
