//! The fault `children-drift`: deletes or edits children of the subject. A hit is a changed child.

use anyhow::{Context as _, Result};

use super::PlayedFault;

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let drifts = deed.ground()?.drifts.as_ref().context("no fault of the scenario changes children")?;
    let changed = drifts.change(deed.fault, usize::try_from(deed.id.0)?).await;
    deed.hits(changed.context("the harness could not delete or edit the children")?);
    Ok(())
}
