//! Catalogue entries of registry faults, which the crate `mock_registry` injects. The crate has a file for each
//! behaviour.

use units::{Span, Throughput};

use super::How;
use super::settings::{Family, Row};
use super::settings::{error_status, keys, not_zero};

const fn row(name: &'static str, doc: &'static str) -> Row {
    Row::new(Family::Registry, name, doc)
}

keys! {
    pub struct ErrorKeys {
        status "status": u16 = ("503", ""),
        retry_after "retryAfter": Span = ("none", "in whole seconds"),
    }
}

keys! {
    pub struct SlowKeys {
        delay "delay": Span = ("1s without `rate`", ""),
        rate "rate": Throughput = ("unlimited", ""),
    }
}

keys! {
    pub struct DownKeys {
        how "how": How = ("`reset`", "`reset`, `close`, `hang`"),
    }
}

pub(super) const ERROR: Row = row("registry-error", "Requests to the registry are answered with an HTTP error.")
    .takes::<ErrorKeys>()
    .refuses(|fault| error_status(fault.keys::<ErrorKeys>().status))
    .sees("an HTTP error")
    .hit("an answer");

pub(super) const HANG: Row = row("registry-hang", "Requests to the registry are read and never answered.")
    .sees("no answer; the connection is closed when the fault ends")
    .hit("a request");

pub(super) const SLOW: Row = row("registry-slow", "Answers of the registry come late, or trickle.")
    .takes::<SlowKeys>()
    .refuses(|fault| not_zero("rate", fault.keys::<SlowKeys>().rate.is_some_and(|rate| rate.bytes_per_second == 0)))
    .sees("the answer is late or slow")
    .hit("an answer");

pub(super) const CUT: Row = row("registry-cut", "Answers of the registry end in the middle.")
    .sees("half of the promised body, then the end; a HEAD gets no answer")
    .hit("an answer");

pub(super) const DOWN: Row = row("registry-down", "Nobody can connect to the registry, and open connections end.")
    .chooses(&["nth", "every"])
    .takes::<DownKeys>()
    .sees("open connections end and new ones fail; with `hang` they stay open without data until the fault ends")
    .hit("a connection");

pub(super) const AUTH_FAILING: Row =
    row("registry-auth-failing", "The registry refuses everybody with 401, and gives no tokens.")
        .sees("401 with the usual challenge, and no token")
        .hit("a 401");

pub(super) const WRONG_DIGEST: Row =
    row("registry-wrong-digest", "Content of the registry does not have the digest that its header names.")
        .sees("a manifest or blob with another digest than `Docker-Content-Digest`")
        .hit("a body");

pub(super) const TAG_MOVED: Row = row("registry-tag-moved", "A tag points elsewhere when it is read again.")
    .sees("a tag that was read once names another image at the next reading, for every client")
    .hit("a second reading");

pub(super) const REFERRERS_404: Row =
    row("registry-referrers-404", "The referrers API answers 404, as registries before v1.1 of the specification do.")
        .sees("the referrers API answers 404, as before v1.1 of the specification")
        .hit("a 404");

pub(super) const REDIRECT_LOOP: Row =
    row("registry-redirect-loop", "Manifests and blobs redirect to themselves for ever.")
        .sees("manifests and blobs redirect to themselves")
        .hit("a redirect");
