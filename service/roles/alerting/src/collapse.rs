//! Joins repeated alerts about the same images into one alert with a count. The functions of this module get the
//! present time as an argument.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use service_core::alert::Alert;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// Number of bytes of a group of equal alerts besides its last alert: key, map entry and free space in the map.
const BURST_BYTES: usize = 160;

#[derive(Debug)]
pub struct Collapse {
    window: Duration,
    open: BTreeMap<Key, Burst>,
    bytes: usize,
    bytes_max: usize,
}

/// The digest of the fields in which equal alerts agree; names in these fields may be long.
type Key = [u8; 32];

#[derive(Debug)]
struct Burst {
    until: Instant,
    more: u64,
    /// The last alert of the group; `None` if the group has only its first alert.
    last: Option<Arc<Alert>>,
}

impl Burst {
    fn bytes(&self) -> usize {
        BURST_BYTES + self.last.as_ref().map_or(0, |alert| alert.bytes())
    }
}

impl Collapse {
    /// Alerts about the same images within `window` count as equal. Groups use at most `bytes_max` of memory; alerts
    /// beyond this limit are sent separately.
    pub fn new(window: Duration, bytes_max: usize) -> Self {
        Self { window, open: BTreeMap::new(), bytes: 0, bytes_max }
    }

    /// Whether `alert` must be sent now and not only counted.
    pub fn take(&mut self, alert: &Arc<Alert>, now: Instant) -> bool {
        let key = key(alert);
        if let Some(burst) = self.open.get_mut(&key).filter(|burst| now < burst.until) {
            let others = self.bytes - burst.bytes();
            let is_fitting = others + BURST_BYTES + alert.bytes() <= self.bytes_max;
            if !is_fitting && burst.last.is_none() {
                return true;
            }
            burst.more += 1;
            if is_fitting {
                burst.last = Some(Arc::clone(alert));
            }
            self.bytes = others + burst.bytes();
            return false;
        }
        self.forget(&key);
        if self.bytes + BURST_BYTES <= self.bytes_max {
            self.open.insert(key, Burst { until: now + self.window, more: 0, last: None });
            self.bytes += BURST_BYTES;
        }
        true
    }

    fn forget(&mut self, key: &Key) {
        if let Some(burst) = self.open.remove(key) {
            self.bytes -= burst.bytes();
        }
    }

    /// The time at which the next group of equal alerts ends.
    pub fn due(&self) -> Option<Instant> {
        self.open.values().map(|burst| burst.until).min()
    }

    /// Groups that have ended by `now`, each with its last alert and the number of alerts after the first.
    pub fn ended(&mut self, now: Instant) -> Vec<(Arc<Alert>, u64)> {
        let ended: Vec<_> = self.open.extract_if(.., |_, burst| burst.until <= now).collect();
        self.bytes -= ended.iter().map(|(_, burst)| burst.bytes()).sum::<usize>();
        ended.into_iter().filter_map(|(_, burst)| Some((burst.last?, burst.more))).collect()
    }
}

fn key(alert: &Alert) -> Key {
    let mut digest = Sha256::new();
    digest.update([u8::from(alert.admitted)]);
    digest.update(alert.more_images.to_be_bytes());
    for image in &alert.images {
        digest.update(image.len().to_be_bytes());
        digest.update(image);
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(image: &str) -> Arc<Alert> {
        Arc::new(Alert {
            admitted: false,
            message: image.into(),
            kind: "Pod".into(),
            namespace: "n".into(),
            name: "p".into(),
            request_id: "u".into(),
            images: vec![image.into()],
            more_images: 0,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_one_and_one_with_a_count() {
        let (mut collapse, start) = (Collapse::new(Duration::from_mins(1), 1 << 20), Instant::now());
        assert!(collapse.take(&alert("a"), start));
        assert!(collapse.take(&alert("b"), start));
        for second in 1..10 {
            assert!(!collapse.take(&alert("a"), start + Duration::from_secs(second)));
        }
        assert_eq!(collapse.due(), Some(start + Duration::from_mins(1)));
        let ended = collapse.ended(start + Duration::from_mins(1));
        assert_eq!(ended.iter().map(|(alert, more)| (&*alert.message, *more)).collect::<Vec<_>>(), [("a", 9)]);
        assert_eq!((collapse.due(), collapse.bytes), (None, 0));
        assert!(collapse.take(&alert("a"), start + Duration::from_secs(61)));
    }

    /// For any number and size of alerts, the groups of equal alerts use limited memory, and each alert is either sent
    /// or counted.
    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_has_a_bound_in_bytes() {
        let (mut collapse, start) = (Collapse::new(Duration::from_hours(1), 64 << 10), Instant::now());
        let (mut told, mut asked) = (0, 0);
        for number in 0..2000 {
            for _ in 0..3 {
                asked += 1;
                told += u64::from(collapse.take(&alert(&format!("{number}{}", "x".repeat(400))), start));
                let held: usize = collapse.open.values().map(Burst::bytes).sum();
                assert!(held == collapse.bytes && held <= 64 << 10, "{held} {}", collapse.bytes);
            }
        }
        let counted: u64 = collapse.ended(start + Duration::from_hours(1)).iter().map(|(_, more)| more).sum();
        assert_eq!((told + counted, collapse.bytes), (asked, 0));
        assert!(counted > 20, "{counted}");
    }
}
