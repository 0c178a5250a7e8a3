//! The fault `certificate-rotation`: replaces the serving certificate of the subject again and again. A hit is a pair of
//! new files.

use std::time::Duration;

use anyhow::Result;
use mock_faults::{CERTIFICATE_VALID, CertificateRotationKeys, Fault, Name, PAUSE};

use super::PlayedFault;

pub(super) async fn play(deed: &PlayedFault<'_>) -> Result<()> {
    let rate = deed.with(|access| access.scenario().clock_rate()).await?;
    // The pause counts on the subject's clock, like the validity of certificates.
    let pause = deed.fault.keys::<CertificateRotationKeys>().pause.unwrap_or(PAUSE).0 / rate;
    let valid = valid(deed.fault);
    deed.repeat(pause, || async move {
        deed.with(move |access| access.rotate_certificate(valid)).await??;
        Ok("the certificate files were replaced".to_owned())
    })
    .await
}

/// The validity of the certificate before the first change; `None` if no fault replaces the certificate.
pub(in crate::run) fn first_valid(faults: &[Fault]) -> Option<Duration> {
    faults.iter().find(|fault| fault.name == Name::CertificateRotation).map(valid)
}

fn valid(fault: &Fault) -> Duration {
    fault.keys::<CertificateRotationKeys>().valid.unwrap_or(CERTIFICATE_VALID).0
}
