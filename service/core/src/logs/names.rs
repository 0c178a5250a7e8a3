//! Names of log events: the list of this crate, and the macro with which other crates declare the names of their
//! events.
//!
//! Every event has a name and a list of field keys. The program passes the lists of all crates to [`super::init`]. A
//! line with an unlisted name is logged as [`LIBRARY`]. `docs/service.md` lists all names.

/// The name of an event, and the keys of its fields.
pub type Name = (&'static str, &'static [&'static str]);
/// The lists of event names of all crates.
pub type Names = &'static [&'static [Name]];

/// Declares events: a constant for each, and the list `ALL`.
#[macro_export]
macro_rules! events {
    ($($(#[$doc:meta])* $constant:ident = $name:literal $keys:tt),* $(,)?) => {
        $($(#[$doc])* pub const $constant: &str = $name;)*

        /// Every event of this crate with the keys of its fields.
        pub const ALL: &[$crate::logs::names::Name] = &[$(($name, &$keys)),*];
    };
}

/// Name prefix of events that record a change and its author.
pub const AUDIT_PREFIX: &str = "audit.";

crate::events! {
    /// An event of a library that this service uses.
    LIBRARY = "library" [],
    /// The allocator could not be set to return freed memory early.
    MEMORY_LATE = "process.memory-late" ["error"],
    /// A listener serves.
    SERVED = "edge.served" ["listener", "address"],
    /// Accepting a connection failed.
    ACCEPT_FAILED = "edge.accept-failed" ["error"],
    /// A connection was refused because of a limit.
    NO_ROOM = "edge.no-room" ["reason"],
    /// A connection ended with an error.
    CONNECTION_ENDED = "edge.connection-ended" ["error"],
    /// A client showed a valid certificate.
    TLS_ACCEPTED = "tls.accepted" ["listener", "address", "peer", "resumed", "left_out"],
    /// A client certificate was refused.
    TLS_REFUSED = "tls.refused" ["listener", "address", "peer", "reason", "error", "left_out"],
    /// A handshake failed for a reason other than the client certificate.
    TLS_FAILED = "tls.failed" ["listener", "address", "error", "left_out"],
    /// Changed certificates, authorities or revocation lists are in use.
    CERTIFICATES_REPLACED = "tls.replaced" ["file", "generation"],
    /// Changed certificates, authorities or revocation lists cannot be used.
    CERTIFICATES_KEPT = "tls.not-replaced" ["error"],
    /// The files of the connection to the API server have changed and are in use.
    API_REPLACED = "kube.replaced" [],
    /// The changed files of the connection to the API server cannot be used.
    API_KEPT = "kube.not-replaced" ["error"],
    /// The token of the API server connection could not be read.
    TOKEN_KEPT = "kube.token-not-read" ["error", "path"],
    /// An outgoing connection ended with an error.
    WIRE_ENDED = "wire.ended" ["error"],
}

pub fn is_known(names: Names, name: &str) -> bool {
    names.iter().copied().flatten().any(|(known, _)| *known == name)
}
