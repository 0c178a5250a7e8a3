//! A burst of the same alert as one line with a count. Pure: time is an argument.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use service_core::alert::Alert;
use tokio::time::Instant;

/// Images that are told apart at one time; more are told one by one.
const KEYS_MAX: usize = 10_000;

/// What was told of late.
#[derive(Debug)]
pub struct Collapse {
    window: Duration,
    open: BTreeMap<String, Burst>,
}

#[derive(Debug)]
struct Burst {
    until: Instant,
    more: u64,
    last: Arc<Alert>,
}

impl Collapse {
    /// Alerts about the same images within `window` are one.
    pub fn new(window: Duration) -> Self {
        Self { window, open: BTreeMap::new() }
    }

    /// The alert, when it is to be told now.
    pub fn take(&mut self, alert: Arc<Alert>, now: Instant) -> Option<Arc<Alert>> {
        let key = format!("{} {}", alert.admitted, alert.images.join(" "));
        if let Some(burst) = self.open.get_mut(&key).filter(|burst| now < burst.until) {
            burst.more += 1;
            burst.last = alert;
            return None;
        }
        if self.open.len() < KEYS_MAX {
            let burst = Burst { until: now + self.window, more: 0, last: Arc::clone(&alert) };
            self.open.insert(key, burst);
        }
        Some(alert)
    }

    /// When a burst ends next.
    pub fn due(&self) -> Option<Instant> {
        self.open.values().map(|burst| burst.until).min()
    }

    /// Bursts that have ended by `now`, each with its last alert and how many came after the first.
    pub fn ended(&mut self, now: Instant) -> Vec<(Arc<Alert>, u64)> {
        let ended = self.open.extract_if(.., |_, burst| burst.until <= now);
        ended.filter(|(_, burst)| burst.more > 0).map(|(_, burst)| (burst.last, burst.more)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_one_and_one_with_a_count() {
        let alert = |image: &str| {
            Arc::new(Alert {
                admitted: false,
                message: image.into(),
                kind: "Pod".into(),
                namespace: "n".into(),
                name: "p".into(),
                request_id: "u".into(),
                images: vec![image.into()],
            })
        };
        let (mut collapse, start) = (Collapse::new(Duration::from_mins(1)), Instant::now());
        assert!(collapse.take(alert("a"), start).is_some());
        assert!(collapse.take(alert("b"), start).is_some());
        for second in 1..10 {
            assert!(collapse.take(alert("a"), start + Duration::from_secs(second)).is_none());
        }
        assert_eq!(collapse.due(), Some(start + Duration::from_mins(1)));
        let ended = collapse.ended(start + Duration::from_mins(1));
        assert_eq!(ended.iter().map(|(alert, more)| (&*alert.message, *more)).collect::<Vec<_>>(), [("a", 9)]);
        assert_eq!(collapse.due(), None);
        assert!(collapse.take(alert("a"), start + Duration::from_secs(61)).is_some());
    }
}
