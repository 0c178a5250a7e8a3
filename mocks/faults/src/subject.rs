//! Catalogue entries of faults of a subject that a run starts: of its processes, of its files, and of the programs that
//! it calls. The run itself injects the faults.

use serde_json::{Map, Value};
use units::Span;

use super::later::{begins_later, lasts};
use super::settings::{Family, Row, Target};
use super::settings::{keys, not_zero};
use super::{Error, Fault, PAUSE};

/// Default of `lag`: the time in which every node of a cluster without much load learns that a Pod is terminating.
pub const LAG: Span = Span::from_millis(300);

/// Default validity of the certificates of `certificate-rotation`: three times its default pause.
pub const CERTIFICATE_VALID: Span = Span::from_secs(60);
/// Default of `delay` of `validator-delay`.
pub const VALIDATOR_LATE: Span = Span::from_secs(1);
/// Shortest time between two certificates, so that a subject that looks each second can load each of them.
const CERTIFICATES_LEAST: Span = Span::from_secs(1);
/// Shortest time between two changes of keys: one second in which the service may still use the old key, and one
/// second in which it must not.
const KEYS_LEAST: Span = Span::from_secs(2);

const fn row(name: &'static str, doc: &'static str) -> Row {
    Row::new(Family::Subject, name, doc).refuses(begins_later)
}

keys! {
    pub struct SubjectRestartKeys {
        pause "pause": Span = ("20s", "from one start to the next, with `count`"),
        lag "lag": Span = ("300ms", "time after SIGTERM in which new connections still reach the old process"),
    }
}

pub(super) const SUBJECT_RESTART: Row =
    row("subject-restart", "A new process takes the place of the subject's process, as in a rolling update.")
        .takes::<SubjectRestartKeys>()
        .acts_on(&[Target::Process])
        .instant()
        .once()
        .sees("a new process becomes ready and gets new connections; then the old one gets SIGTERM and drains")
        .hit("a process that took over")
        .drawn(20, None);

keys! {
    pub struct CertificateRotationKeys {
        pause "pause": Span = ("20s", "from one certificate to the next, by the subject's own clock"),
        valid "valid": Span = ("1m", "validity of each, from the first one on"),
    }
}

keys! {
    pub struct TrustedKeysKeys {
        pause "pause": Span = ("20s", "from one change to the next"),
    }
}

pub(super) const CERTIFICATE_ROTATION: Row = row(
    "certificate-rotation",
    "The serving certificate of the subject is replaced, as by cert-manager and the kubelet.",
)
.takes::<CertificateRotationKeys>()
.acts_on(&[Target::Certificate])
.refuses(rotates_in_time)
.sees("certificate and key change in one step, again and again; a certificate that is kept too long expires")
.hit("new certificate files");

pub(super) const TRUSTED_KEYS: Row =
    row("trusted-keys", "One of the keys that the service trusts is replaced by another one, and comes back.")
        .takes::<TrustedKeysKeys>()
        .acts_on(&[Target::Service, Target::Signatures])
        .refuses(leaves_time_to_notice)
        .sees("the file of a key changes, again and again; for a second after each change, either answer is right")
        .hit("a changed key file");

keys! {
    pub struct ValidatorRestartKeys {
        pause "pause": Span = ("20s", "from one start to the next, with `count`"),
        away "away": Span = ("0s", "time from the end of a validator to the start of its next process"),
    }
}

keys! {
    pub struct ValidatorDelayKeys {
        delay "delay": Span = ("1s", "added to each answer: half on the way to the validator, half on the way back"),
    }
}

pub(super) const VALIDATOR_RESTART: Row = row(
    "validator-restart",
    "The validators of the service are replaced one after the other, as Pods of a `StatefulSet`.",
)
.takes::<ValidatorRestartKeys>()
.acts_on(&[Target::Validators])
.instant()
.once()
.sees("a validator gets SIGTERM, is gone for a while, and comes back at its address")
.hit("a validator that listens again")
.drawn(20, None);

pub(super) const VALIDATOR_DELAY: Row = row("validator-delay", "The validators of the service answer late.")
    .takes::<ValidatorDelayKeys>()
    .acts_on(&[Target::Validators])
    .refuses(delays)
    .sees("verdicts come late, or not before the deadline of a review")
    .hit("a connection to a validator whose bytes come late");

pub(super) const SHARED_CACHE_AWAY: Row =
    row("shared-cache-away", "The shared cache of the service cuts every connection, including new ones.")
        .acts_on(&[Target::SharedCache])
        .refuses(lasts)
        .sees("connections to the cache end at once")
        .hit("a cut connection");

pub(super) const SHARED_CACHE_FORGES: Row =
    row("shared-cache-forges", "The shared cache of the service answers every read with a forged verdict.")
        .acts_on(&[Target::SharedCache])
        .refuses(|_| Ok(()))
        .sees("each read gives a verdict that no process of the service has stored")
        .hit("a forged verdict");

pub(super) const TAGS_MOVED: Row =
    row("tags-moved", "Every tag of a locked image moves once to another image, one after the other.")
        .acts_on(&[Target::Lock])
        .refuses(lasts)
        .sees("each tag names another image; the moves are spread over `for`")
        .hit("a moved tag");

/// Default share of the children that `children-drift` changes.
pub const DRIFT_SHARE: f64 = 0.3;

keys! {
    pub struct ChildrenDriftKeys {
        after_load "afterLoad": Span = ("", "instead of `at`: time after the load"),
        children "children": String = ("the only kind", "their resource"),
        share "share": f64 = ("0.3", "share of the children"),
        edit "edit": Map<String, Value> = ("they are deleted", "a merge patch"),
    }
}

pub(super) const CHILDREN_DRIFT: Row =
    row("children-drift", "Some children of the subject are deleted or edited, as by a user with kubectl.")
        .takes::<ChildrenDriftKeys>()
        .acts_on(&[Target::Children])
        .instant()
        .refuses(drifts)
        .sees("children are gone or changed; those whose parents are written soon are left out")
        .hit("a changed child");

fn drifts(fault: &Fault) -> Result<(), Error> {
    let keys: ChildrenDriftKeys = fault.keys();
    if keys.after_load.is_some() && (fault.at.is_some() || fault.when.is_some()) {
        let instead = "it begins at one time: keep one of `at`, `when` and `afterLoad`";
        return Err(Error::Needs { fault: fault.name.as_str(), instead });
    }
    begins_later(fault)?;
    if let Some(share) = keys.share.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
        let instead = "write a number above 0 and at most 1, such as `0.5`";
        return Err(Error::Value { key: "share", given: share.to_string(), instead });
    }
    if keys.edit.is_some_and(|edit| edit.is_empty()) {
        let instead = "write a patch, or leave it out to delete";
        return Err(Error::Value { key: "edit", given: "{}".to_owned(), instead });
    }
    Ok(())
}

fn delays(fault: &Fault) -> Result<(), Error> {
    lasts(fault)?;
    not_zero("delay", fault.keys::<ValidatorDelayKeys>().delay.is_some_and(|delay| delay.0.is_zero()))
}

keys! {
    pub struct ConfigReloadKeys {
        pause "pause": Span = ("20s", "from one file to the next, with `count`"),
        settings "settings": Map<String, Value> = ("none", "a merge patch of the file; every second time the first file is restored"),
    }
}

pub(super) const CONFIG_RELOAD: Row =
    row("config-reload", "The configuration file of the service is replaced while the service runs.")
        .takes::<ConfigReloadKeys>()
        .acts_on(&[Target::Service])
        .instant()
        .once()
        .sees("the file has other settings; those that can change at once take effect")
        .hit("a replaced file")
        .drawn(20, None);

fn rotates_in_time(fault: &Fault) -> Result<(), Error> {
    begins_later(fault)?;
    let keys: CertificateRotationKeys = fault.keys();
    let (pause, valid) = (keys.pause.unwrap_or(PAUSE), keys.valid.unwrap_or(CERTIFICATE_VALID));
    if pause < CERTIFICATES_LEAST {
        return Err(Error::Value { key: "pause", given: pause.to_string(), instead: "write 1s or more" });
    }
    if valid <= pause {
        let instead = "write more than `pause`, or there is always one that has ended";
        return Err(Error::Value { key: "valid", given: valid.to_string(), instead });
    }
    Ok(())
}

fn leaves_time_to_notice(fault: &Fault) -> Result<(), Error> {
    begins_later(fault)?;
    let pause = fault.keys::<TrustedKeysKeys>().pause.unwrap_or(PAUSE);
    if pause < KEYS_LEAST {
        let instead = "write 2s or more: the subject gets one second to notice";
        return Err(Error::Value { key: "pause", given: pause.to_string(), instead });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Fault;

    #[test]
    fn a_fault_that_leaves_a_subject_no_time_is_refused_with_what_to_write() {
        let refused = |text: &str| {
            let fault: Fault = serde_json::from_str(text).unwrap();
            fault.check().map_or_else(|error| error.to_string(), |()| String::new())
        };
        assert_eq!(refused(r#"{"name": "certificate-rotation", "at": "5s", "pause": "1s", "valid": "3s"}"#), "");
        let gap = refused(r#"{"name": "certificate-rotation", "at": "5s", "pause": "2s", "valid": "2s"}"#);
        assert!(gap.contains("there is always one that has ended"), "{gap}");
        assert_eq!(refused(r#"{"name": "trusted-keys", "at": "5s", "pause": "2s"}"#), "");
        assert!(refused(r#"{"name": "trusted-keys", "at": "5s", "pause": "1s"}"#).contains("write 2s or more"));
        assert_eq!(refused(r#"{"name": "children-drift", "afterLoad": "1s", "share": 1}"#), "");
        for (keys, why) in [
            (r#""at": "5s", "afterLoad": "1s""#, "keep one of `at`, `when` and `afterLoad`"),
            (r#""share": 0.5"#, "say when it begins"),
            (r#""at": "5s", "share": 0"#, "above 0"),
            (r#""at": "5s", "share": 20"#, "at most 1"),
            (r#""at": "5s", "edit": {}"#, "write a patch"),
        ] {
            let told = refused(&format!(r#"{{"name": "children-drift", {keys}}}"#));
            assert!(told.contains(why), "{keys}: {told}");
        }
    }
}
