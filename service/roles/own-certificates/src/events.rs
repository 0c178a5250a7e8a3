//! The events of the rotation, each with the keys of its context.

service_core::events! {
    /// A step of the rotation of own certificates was done.
    OWN_STEP = "certificates.step" ["step"],
    /// Own certificates could not be kept; the next attempt follows.
    OWN_FAILED = "certificates.failed" ["error"],
    /// The certificate could not be read from its Secret, and is read again.
    OWN_NOT_READ = "certificates.not-read" ["error"],
}
