//! Faults of workloads: which workloads a fault hits, and its effect on them.

use jiff::{SignedDuration, Timestamp};

use super::kind::{Key, Kind};

/// An active fault of workloads.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// The fault's number, which the caller chose.
    pub id: u64,
    pub how: How,
    /// The fraction of all workloads that the fault hits, from 0 to 1.
    pub share: f64,
    /// The resource to which the fault is limited: `deployments` or `deployments.apps`; `None` means all.
    pub resource: Option<String>,
    pub began: Timestamp,
}

/// The effect of a fault on a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The workload is not ready, and does not become ready.
    NotReady,
    /// The workload alternates between unready and ready, each for this long; it begins unready.
    Flapping(SignedDuration),
}

/// A workload that a fault kept from being ready or made unready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The fault's number, which the caller chose.
    pub trouble: u64,
    /// A description of the hit in one sentence.
    pub detail: String,
}

impl Trouble {
    /// Whether the fault hits the workload with this uid.
    pub(crate) fn strikes(&self, key: &Key, uid: &str, seed: u64) -> bool {
        self.concerns(key.kind) && chance(uid, seed ^ self.id.rotate_left(17)) < self.share
    }

    fn concerns(&self, kind: Kind) -> bool {
        let full = kind.full_name();
        let plural = full.split('.').next().unwrap_or_default();
        kind.is_workload() && self.resource.as_deref().is_none_or(|wanted| wanted == full || wanted == plural)
    }

    /// Whether the fault makes its workloads unready now, and until when.
    pub(crate) fn is_down(&self, now: Timestamp) -> (bool, Option<Timestamp>) {
        let How::Flapping(every) = self.how else { return (true, None) };
        let every_ms = every.as_millis().max(1);
        let turns = (now.as_millisecond() - self.began.as_millisecond()).max(0);
        let turns = i128::from(turns) / every_ms;
        let next = i64::try_from(every_ms * (turns + 1)).unwrap_or(i64::MAX);
        let next = Timestamp::from_millisecond(self.began.as_millisecond().saturating_add(next));
        (turns % 2 == 0, next.ok())
    }
}

/// A number from 0 to 1 that depends only on a uid and a seed.
fn chance(uid: &str, seed: u64) -> f64 {
    // FNV-1a, and the finish of SplitMix64, because uids of one seed differ in few bits.
    let mut hash = uid
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((hash ^ (hash >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_workloads_is_struck_and_always_the_same() {
        let trouble = |share: f64| Trouble {
            id: 3,
            how: How::NotReady,
            share,
            resource: Some("deployments".to_owned()),
            began: Timestamp::UNIX_EPOCH,
        };
        let struck = |trouble: &Trouble, kind| {
            let key = Key::new(kind, "n", "x");
            (0..1000).filter(|number| trouble.strikes(&key, &format!("uid-{number}"), 7)).count()
        };
        assert_eq!((struck(&trouble(0.0), Kind::Deployment), struck(&trouble(1.0), Kind::Deployment)), (0, 1000));
        assert!((250..350).contains(&struck(&trouble(0.3), Kind::Deployment)));
        assert_eq!(struck(&trouble(0.3), Kind::Deployment), struck(&trouble(0.3), Kind::Deployment));
        assert_eq!(struck(&trouble(1.0), Kind::StatefulSet), 0);
    }

    #[test]
    fn what_flaps_is_down_first_and_then_up_for_as_long() {
        let second = SignedDuration::from_secs(1);
        let trouble =
            Trouble { id: 0, how: How::Flapping(second), share: 1.0, resource: None, began: Timestamp::UNIX_EPOCH };
        for (at_ms, down, until_s) in [(0, true, 1), (999, true, 1), (1000, false, 2), (2500, true, 3)] {
            let now = Timestamp::from_millisecond(at_ms).unwrap();
            let until = Timestamp::from_second(until_s).unwrap();
            assert_eq!(trouble.is_down(now), (down, Some(until)), "{at_ms}");
        }
    }
}
