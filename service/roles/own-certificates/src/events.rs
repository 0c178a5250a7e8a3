//! The names of log events about the rotation of certificates, each with the keys of its fields.

service_core::events! {
    /// A step of the rotation was finished.
    OWN_STEP = "certificates.step" ["step"],
    /// An attempt to check or renew the certificates failed; another attempt follows.
    OWN_FAILED = "certificates.failed" ["error"],
    /// The certificate could not be read from its Secret; another attempt follows.
    OWN_NOT_READ = "certificates.not-read" ["error"],
}
