//! Names of log lines: the list of this crate, and the macro with which every other crate writes its own.
//!
//! Every event has a name, and the keys of its context. The program puts the lists together and hands them to
//! [`super::init`]; a line whose name is in none of them gets the name [`LIBRARY`]. `docs/service.md` has all of them.

/// A name, and the keys of its context.
pub type Name = (&'static str, &'static [&'static str]);
/// The lists of all crates.
pub type Names = &'static [&'static [Name]];

/// Declares events: a constant for each, and `ALL`, the list.
#[macro_export]
macro_rules! events {
    ($($(#[$doc:meta])* $constant:ident = $name:literal $keys:tt),* $(,)?) => {
        $($(#[$doc])* pub const $constant: &str = $name;)*

        /// Every event with the keys of its context.
        pub const ALL: &[$crate::logs::names::Name] = &[$(($name, &$keys)),*];
    };
}

/// Prefix of events that record a change and its author.
pub const AUDIT_PREFIX: &str = "audit.";

crate::events! {
    /// An event of a library, not of this program.
    LIBRARY = "library" [],
    /// Freed memory is given back late.
    MEMORY_LATE = "process.memory-late" ["error"],
    /// A listener is open.
    SERVED = "edge.served" ["listener", "address"],
    /// A connection could not be accepted.
    ACCEPT_FAILED = "edge.accept-failed" ["error"],
    /// There was no room for a connection.
    NO_ROOM = "edge.no-room" ["reason"],
    /// A connection ended with an error.
    CONNECTION_ENDED = "edge.connection-ended" ["error"],
    /// A client proved its identity.
    TLS_ACCEPTED = "tls.accepted" ["listener", "address", "peer", "resumed", "left_out"],
    /// A client was refused.
    TLS_REFUSED = "tls.refused" ["listener", "address", "peer", "reason", "error", "left_out"],
    /// A handshake failed for another reason.
    TLS_FAILED = "tls.failed" ["listener", "address", "error", "left_out"],
    /// Certificates, authorities or revocation lists were replaced.
    CERTIFICATES_REPLACED = "tls.replaced" ["file", "generation"],
    /// New certificates, authorities or revocation lists could not be used.
    CERTIFICATES_KEPT = "tls.not-replaced" ["error"],
    /// The files of the connection to the API server have changed.
    API_REPLACED = "kube.replaced" [],
    /// The files of the connection could not be used.
    API_KEPT = "kube.not-replaced" ["error"],
    /// The token could not be read.
    TOKEN_KEPT = "kube.token-not-read" ["error", "path"],
    /// An outgoing connection ended with an error.
    WIRE_ENDED = "wire.ended" ["error"],
}

/// Whether `name` is in one of the lists.
pub fn is_known(names: Names, name: &str) -> bool {
    names.iter().copied().flatten().any(|(known, _)| *known == name)
}
