//! The closed list of events, each with the keys of its context. `docs/service.md` has the same list.
//!
//! A line whose name is not here is a defect, except [`LIBRARY`], the name of all events of dependencies at the level
//! `debug`.

macro_rules! events {
    ($($(#[$doc:meta])* $constant:ident = $name:literal $keys:tt),* $(,)?) => {
        $($(#[$doc])* pub const $constant: &str = $name;)*

        /// Every event with the keys of its context.
        pub const ALL: &[(&str, &[&str])] = &[$(($name, &$keys)),*];
    };
}

/// Prefix of events that record a change and its author.
pub const AUDIT_PREFIX: &str = "audit.";

events! {
    /// An event of a library, not of this program.
    LIBRARY = "library" [],
    /// A call that changes something, or would have: caller, change and outcome.
    AUDIT_WRITE = "audit.write" ["request_id", "peer", "address", "verb", "namespace", "name", "container", "before", "after",
        "dry_run", "status", "revision", "attempts", "duration_ms", "error"],
    /// Freed memory is given back late.
    MEMORY_LATE = "process.memory-late" ["error"],
    /// A signal arrived.
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
    /// A step of the rotation of own certificates was done.
    OWN_STEP = "certificates.step" ["step"],
    /// Own certificates could not be kept; the next attempt follows.
    OWN_FAILED = "certificates.failed" ["error"],
    /// The certificate could not be read from its Secret, and is read again.
    OWN_NOT_READ = "certificates.not-read" ["error"],
    /// A call was refused before its meaning was looked at.
    CALL_REFUSED = "api.refused" ["request_id", "peer", "address", "reason", "left_out"],
    CALL_PANICKED = "api.panicked" ["request_id"],
    /// No rule of the policy asks this validator.
    VALIDATOR_UNASKED = "policy.validator-unasked" ["reason"],
    /// Another configuration is in effect.
    CONFIG_REPLACED = "config.replaced" ["generation", "sections", "policy", "validators", "resolve", "replicas"],
    /// The configuration file cannot be used.
    CONFIG_REFUSED = "config.refused" ["error"],
    /// A `trusted_root.json` has keys that are not known here.
    TRUST_LEFT_OUT = "trust.left-out" ["validator", "what"],
    /// The file has changes that need a restart.
    CONFIG_WAITS = "config.waits" ["sections"],
    /// The files of the connection to the API server have changed.
    API_REPLACED = "kube.replaced" [],
    /// The files of the connection could not be used.
    API_KEPT = "kube.not-replaced" ["error"],
    /// The token could not be read.
    TOKEN_KEPT = "kube.token-not-read" ["error", "path"],
    /// A list was applied.
    WATCH_LISTED = "watch.listed" ["resource", "reason", "objects", "differences"],
    /// A stream began.
    WATCH_OPENED = "watch.opened" ["resource"],
    /// A stream ended.
    WATCH_ENDED = "watch.ended" ["resource", "how"],
    /// Something went wrong with the watch.
    WATCH_FAILED = "watch.failed" ["resource", "what"],
    /// An object was added, modified or deleted.
    WATCH_CHANGED = "watch.changed" ["resource", "change", "object", "uid", "revision"],
    /// An event is due for an action without a receiver.
    WATCHER_EVENT = "watcher.event" ["action", "resource", "change", "object", "uid", "revision"],
    /// A receiver of events cannot be reached; the watch waits for it.
    WATCHER_AWAY = "watcher.away" ["action", "why"],
    /// Events were left unsent at the end.
    WATCHER_LEFT = "watcher.left-over" ["action", "lines"],
    /// A receiver or hook rejects its input as wrong; it is not sent again.
    WATCHER_REFUSED = "watcher.refused" ["action", "object", "lines", "why"],
    /// A hook did not accept an object; another attempt follows.
    WATCHER_FAILED = "watcher.failed" ["action", "object", "attempts", "why"],
    /// A hook did not accept an object in all attempts; the next attempt comes when the object changes.
    WATCHER_GAVE_UP = "watcher.gave-up" ["action", "object", "attempts", "why"],
    /// The witness does not accept observations.
    WITNESS_AWAY = "witness.away" ["why"],
    /// The witness did not accept the last observations.
    WITNESS_LEFT = "witness.left-over" ["lines"],
    /// This replica leads.
    LEASE_TAKEN = "lease.taken" ["identity"],
    /// This replica is no longer the leader.
    LEASE_LOST = "lease.lost" ["why"],
    /// Another replica leads.
    LEASE_HELD = "lease.held" ["holder"],
    /// The lease was given back.
    LEASE_GIVEN_BACK = "lease.given-back" [],
    /// The lease could not be given back.
    LEASE_NOT_GIVEN_BACK = "lease.not-given-back" ["error"],
    /// The request for the lease failed.
    LEASE_FAILED = "lease.failed" ["lease", "error"],
    /// An object differed from its applied state.
    RECONCILE_RESTORED = "reconcile.restored" ["package", "restores"],
    /// A reconciliation failed.
    RECONCILE_FAILED = "reconcile.failed" ["package", "failures", "error"],
    /// The reconciler was stopped with work under way.
    RECONCILE_CUT = "reconcile.cut" [],
    /// An Event object could not be written.
    EVENT_LOST = "reconcile.event-lost" ["package", "error"],
    /// A policy left behind by a package was removed.
    ORPHAN_REMOVED = "reconcile.orphan-removed" ["policy", "uid"],
    /// A policy left behind by a package could not be removed.
    ORPHANS_FAILED = "reconcile.orphans-failed" ["uid", "error"],
    /// A review was not plainly allowed.
    REVIEW = "admission.review" ["uid", "operation", "kind", "namespace", "name", "cause"],
    /// The webhook is not called, or cannot be.
    UNCALLED = "admission.uncalled" ["why"],
    /// The webhook is called again, or can be.
    CALLED = "admission.called" [],
    /// The check whether the webhook is called failed.
    CALLS_UNKNOWN = "admission.calls-unknown" ["error"],
    /// An owner that could have approved its children could not be read.
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
    /// The certificates of the connection to another process were replaced.
    LINK_REPLACED = "link.replaced" ["validator"],
    /// The certificates of the connection to another process could not be replaced.
    LINK_KEPT = "link.not-replaced" ["validator", "error"],
    /// A call of another process was answered with an error.
    INTERNAL_REFUSED = "internal.refused" ["listener", "peer", "address", "status", "reason", "left_out"],
    /// The shared cache answers.
    SHARED_CACHE_FOUND = "shared-cache.found" [],
    /// The shared cache gives no answer, a late one or a wrong one: it is not asked for a while.
    SHARED_CACHE_LOST = "shared-cache.lost" ["error"],
    /// An outgoing connection ended with an error.
    WIRE_ENDED = "wire.ended" ["error"],
}

pub fn is_known(name: &str) -> bool {
    ALL.iter().any(|(known, _)| *known == name)
}

#[cfg(test)]
mod tests;
