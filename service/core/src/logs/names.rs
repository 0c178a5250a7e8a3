//! The closed list of events, each with the keys that its context may have. `docs/service.md` has the same list.
//!
//! A line whose name is not here is a defect, except [`LIBRARY`], which is what dependencies say at the level `debug`.

macro_rules! events {
    ($($(#[$doc:meta])* $constant:ident = $name:literal $keys:tt),* $(,)?) => {
        $($(#[$doc])* pub const $constant: &str = $name;)*

        /// Every event with the keys of its context.
        pub const ALL: &[(&str, &[&str])] = &[$(($name, &$keys)),*];
    };
}

/// How the names of events begin that say who changed what.
pub const AUDIT_PREFIX: &str = "audit.";

events! {
    /// Something else than this program said it.
    LIBRARY = "library" [],
    /// A call that changes something, or would have: who, what, and how it ended.
    AUDIT_WRITE = "audit.write" ["request_id", "peer", "address", "verb", "namespace", "name", "container", "before", "after",
        "dry_run", "status", "revision", "attempts", "duration_ms", "error"],
    /// Freed memory is given back late.
    MEMORY_LATE = "process.memory-late" ["error"],
    /// A signal came.
    SIGNAL = "process.signal" ["signal"],
    /// The process ends.
    STOPPED = "process.stopped" [],
    /// A listener is open.
    SERVED = "edge.served" ["listener", "address"],
    /// Connections were cut at the end of the drain.
    CUT = "edge.cut" [],
    /// A connection could not be accepted.
    ACCEPT_FAILED = "edge.accept-failed" ["error"],
    /// There was no room for a connection.
    NO_ROOM = "edge.no-room" ["reason"],
    /// A connection ended with an error.
    CONNECTION_ENDED = "edge.connection-ended" ["error"],
    /// A client proved who it is.
    TLS_ACCEPTED = "tls.accepted" ["listener", "address", "peer", "resumed", "left_out"],
    /// A client was refused.
    TLS_REFUSED = "tls.refused" ["listener", "address", "peer", "reason", "error", "left_out"],
    /// A handshake failed for another reason.
    TLS_FAILED = "tls.failed" ["listener", "address", "error", "left_out"],
    /// Certificates, authorities or revocation lists were replaced.
    CERTIFICATES_REPLACED = "tls.replaced" ["file", "generation"],
    /// New certificates, authorities or revocation lists could not be used.
    CERTIFICATES_KEPT = "tls.not-replaced" ["error"],
    /// A step of the rotation of own certificates was done.
    OWN_STEP = "certificates.step" ["step"],
    /// Own certificates could not be kept; the next attempt follows.
    OWN_FAILED = "certificates.failed" ["error"],
    /// The certificate could not be read from its Secret, and is read again.
    OWN_NOT_READ = "certificates.not-read" ["error"],
    /// A call was refused before its meaning was looked at.
    CALL_REFUSED = "api.refused" ["request_id", "peer", "address", "reason", "left_out"],
    /// A call panicked.
    CALL_PANICKED = "api.panicked" ["request_id"],
    /// No rule of the policy asks a validator.
    VALIDATOR_UNASKED = "policy.validator-unasked" ["reason"],
    /// Another configuration is in effect.
    CONFIG_REPLACED = "config.replaced" ["generation", "sections", "policy", "validators", "resolve", "replicas"],
    /// The file cannot be used.
    CONFIG_REFUSED = "config.refused" ["error"],
    /// A `trusted_root.json` has keys that are not known here.
    TRUST_LEFT_OUT = "trust.left-out" ["validator", "what"],
    /// The file has changes that wait for a restart.
    CONFIG_WAITS = "config.waits" ["sections"],
    /// The files of the connection to the API server have changed.
    API_REPLACED = "kube.replaced" [],
    /// The files of the connection could not be used.
    API_KEPT = "kube.not-replaced" ["error"],
    /// The token could not be read.
    TOKEN_KEPT = "kube.token-not-read" ["error", "path"],
    /// A list was taken.
    WATCH_LISTED = "watch.listed" ["resource", "reason", "objects", "differences"],
    /// A stream began.
    WATCH_OPENED = "watch.opened" ["resource"],
    /// A stream ended.
    WATCH_ENDED = "watch.ended" ["resource", "how"],
    /// Something went wrong with the watch.
    WATCH_FAILED = "watch.failed" ["resource", "what"],
    /// An object was added, modified or deleted.
    WATCH_CHANGED = "watch.changed" ["resource", "change", "object", "uid", "revision"],
    /// An event is due to an action without a receiver.
    WATCHER_EVENT = "watcher.event" ["action", "resource", "change", "object", "uid", "revision"],
    /// A receiver of events cannot be reached; the watch waits for it.
    WATCHER_AWAY = "watcher.away" ["action", "why"],
    /// Events were left over at the end.
    WATCHER_LEFT = "watcher.left-over" ["action", "lines"],
    /// A receiver or hook calls what it is sent wrong; it is not sent again.
    WATCHER_REFUSED = "watcher.refused" ["action", "object", "lines", "why"],
    /// A hook did not take an object; the next attempt follows.
    WATCHER_FAILED = "watcher.failed" ["action", "object", "attempts", "why"],
    /// A hook did not take an object in all attempts; the next one is made when the object changes.
    WATCHER_GAVE_UP = "watcher.gave-up" ["action", "object", "attempts", "why"],
    /// The witness does not take observations.
    WITNESS_AWAY = "witness.away" ["why"],
    /// The witness did not take the last observations.
    WITNESS_LEFT = "witness.left-over" ["lines"],
    /// This replica leads.
    LEASE_TAKEN = "lease.taken" ["identity"],
    /// This replica does not lead any more.
    LEASE_LOST = "lease.lost" ["why"],
    /// Another one leads.
    LEASE_HELD = "lease.held" ["holder"],
    /// The lease was given back.
    LEASE_GIVEN_BACK = "lease.given-back" [],
    /// The lease could not be given back.
    LEASE_NOT_GIVEN_BACK = "lease.not-given-back" ["error"],
    /// The lease could not be asked for.
    LEASE_FAILED = "lease.failed" ["lease", "error"],
    /// An object was not as it was applied.
    RECONCILE_RESTORED = "reconcile.restored" ["package", "restores"],
    /// A reconciliation failed.
    RECONCILE_FAILED = "reconcile.failed" ["package", "failures", "error"],
    /// The reconciler was stopped with work under way.
    RECONCILE_CUT = "reconcile.cut" [],
    /// An Event object could not be written.
    EVENT_LOST = "reconcile.event-lost" ["package", "error"],
    /// A policy that a package left behind was removed.
    ORPHAN_REMOVED = "reconcile.orphan-removed" ["policy", "uid"],
    /// A policy that a package left behind could not be removed.
    ORPHANS_FAILED = "reconcile.orphans-failed" ["uid", "error"],
    /// A review was not simply allowed.
    REVIEW = "admission.review" ["uid", "operation", "kind", "namespace", "name", "cause"],
    /// The webhook is not called, or cannot be.
    UNCALLED = "admission.uncalled" ["why"],
    /// The webhook is called again, or can be.
    CALLED = "admission.called" [],
    /// Whether it is called could not be looked at.
    CALLS_UNKNOWN = "admission.calls-unknown" ["error"],
    /// An owner that would have approved its children could not be read.
    OWNER_NOT_READ = "admission.owner-not-read" ["path", "error"],
    /// Authorities of a registry were replaced.
    AUTHORITIES_REPLACED = "registry.authorities-replaced" ["file", "registry"],
    /// Authorities of a registry could not be replaced.
    AUTHORITIES_KEPT = "registry.authorities-kept" ["file", "registry", "what"],
    /// The docker configuration was replaced.
    DOCKER_REPLACED = "registry.docker-replaced" ["file"],
    /// The docker configuration could not be replaced.
    DOCKER_KEPT = "registry.docker-not-replaced" ["file", "what"],
    /// The digest lock was replaced.
    LOCK_REPLACED = "registry.lock-replaced" ["file"],
    /// The digest lock could not be replaced.
    LOCK_KEPT = "registry.lock-not-replaced" ["file", "what"],
    /// A password could not be read.
    PASSWORD_KEPT = "registry.password-not-read" ["file", "error"],
    /// An alert could not be sent.
    ALERT_FAILED = "alerts.failed" ["receiver", "error"],
    /// An alert that was not sent could not be kept either.
    LETTER_LOST = "alerts.letter-lost" ["receiver", "error"],
    /// The certificates of the way to another process were replaced.
    LINK_REPLACED = "link.replaced" ["validator"],
    /// They were not.
    LINK_KEPT = "link.not-replaced" ["validator", "error"],
    /// A call of another process was not answered with success.
    INTERNAL_REFUSED = "internal.refused" ["listener", "peer", "address", "status", "reason", "left_out"],
    /// The shared cache answers.
    SHARED_CACHE_FOUND = "shared-cache.found" [],
    /// The shared cache does not answer, or not in time, or not as it should: it is left alone for a while.
    SHARED_CACHE_LOST = "shared-cache.lost" ["error"],
    /// A connection of ours ended with an error.
    WIRE_ENDED = "wire.ended" ["error"],
}

/// Whether `name` is one of the list.
pub fn is_known(name: &str) -> bool {
    ALL.iter().any(|(known, _)| *known == name)
}

#[cfg(test)]
mod tests;
