//! Reads results of `longhaul size` for a comparison.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use reports::size::{SCHEMA, Sizes};

use crate::size::FILES;

/// Maximum size of a result; one row has about a kilobyte.
const BYTES_MAX: u64 = 16 << 20;

/// The result in a folder, or in a file `size.json`; `None` if the path is something else.
pub(super) fn read(path: &Path) -> Result<Option<Sizes>> {
    let [_, _, json] = FILES;
    let file = if path.is_dir() { path.join(json) } else { path.to_owned() };
    let is_one = file.file_name().is_some_and(|name| name == json) && file.is_file();
    if !is_one {
        return Ok(None);
    }
    let failed = || format!("failed to read {}", file.display());
    let bytes = std::fs::metadata(&file).with_context(failed)?.len();
    ensure!(bytes <= BYTES_MAX, "{} is no result of `longhaul size`: it has {bytes} bytes", file.display());
    let text = std::fs::read_to_string(&file).with_context(failed)?;
    let sizes: Sizes = serde_json::from_str(&text).with_context(failed)?;
    ensure!(
        sizes.schema == SCHEMA,
        "{} has the schema {:?}; this version reads {SCHEMA}",
        file.display(),
        sizes.schema
    );
    Ok(Some(sizes))
}
