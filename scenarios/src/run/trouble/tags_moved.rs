//! The fault `tags-moved`: moves the tag of each locked image to another image, one after the other. A hit is a moved
//! tag.
//!
//! No fault of the registry can move these tags: such a fault waits until the subject reads a tag, and a subject with a
//! digest lock reads none.

use anyhow::Result;

use super::PlayedFault;

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let references = deed.with(|access| access.references()).await?;
    let began = tokio::time::Instant::now();
    let each = deed.fault.lasts.unwrap_or_default().0 / u32::try_from(references.len().max(1))?;
    for (number, reference) in (1..).zip(references) {
        // The tags that are left when the fault ends move at once.
        let _ = tokio::time::timeout_at(began + each * number, deed.ended.cancelled()).await;
        let detail = format!("the tag {reference} moved");
        deed.with(move |access| access.move_tag(&reference)).await??;
        deed.hit(detail);
    }
    Ok(())
}
