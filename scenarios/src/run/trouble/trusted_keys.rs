//! The fault `trusted-keys`: replaces one of the service's keys for signed images by another one, and back. A hit is a
//! changed key file.

use anyhow::Result;
use mock_faults::{PAUSE, TrustedKeysKeys};

use super::PlayedFault;

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let pause = deed.fault.keys::<TrustedKeysKeys>().pause.unwrap_or(PAUSE).0;
    deed.repeat(pause, || async {
        deed.with(|access| access.change_keys()).await??;
        Ok("a trusted key was replaced".to_owned())
    })
    .await
}
