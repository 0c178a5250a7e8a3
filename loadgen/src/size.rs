//! [`Size`]: the size of objects. Owns the distribution of sizes, not the contents of objects. Pure: no I/O.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use units::Bytes;

/// The largest size of an object in bytes. etcd refuses requests above 1.5 MiB by default (`--max-request-bytes`), and
/// Kubernetes refuses `ConfigMap`s above 1 MiB.
const MOST: u64 = 1 << 20;

/// The size of objects: half of them are smaller than `median`, and none is larger than `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Size {
    /// The size below which half of the objects are.
    pub median: Bytes,
    /// The largest size of an object; at most 1MiB.
    pub max: Bytes,
}

impl Size {
    /// The problem with the size, and the size to write instead; `None` if the size can be used.
    pub(crate) fn problem(self) -> Option<String> {
        if self.median.0 == 0 {
            return Some("size.median is 0B: write a size such as `2KiB`, or leave `size` out".to_owned());
        }
        if self.max < self.median {
            return Some(format!(
                "size.max ({}) is below size.median ({}): write at least `max: {}`",
                self.max, self.median, self.median
            ));
        }
        if self.max.0 > MOST {
            return Some(format!("size.max is {}: Kubernetes refuses such objects, write at most `1MiB`", self.max));
        }
        None
    }

    /// Draws the size of an object in bytes. The distribution is log-normal around the median, like object sizes in
    /// clusters, and is cut off at the maximum.
    pub(crate) fn draw(self, rng: &mut ChaCha8Rng) -> u64 {
        let (median, max) = (self.median.0 as f64, self.max.0 as f64);
        // The maximum is two standard deviations out, so that about one object in forty reaches it.
        let sigma = (max / median).ln() / 2.0;
        let bytes = median * (sigma * normal(rng)).exp();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped: 1 to 2^20")]
        let whole = bytes.clamp(1.0, max) as u64;
        whole
    }
}

/// Draws a number from the standard normal distribution (Box and Muller, 1958).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed;

    #[test]
    fn half_are_below_the_median_and_none_above_the_maximum() {
        let size = Size { median: Bytes(2048), max: Bytes(65536) };
        let mut rng = seed::stream(1, "size");
        let drawn: Vec<u64> = (0..10_000).map(|_| size.draw(&mut rng)).collect();
        let below = drawn.iter().filter(|&&b| b < 2048).count();
        assert!((4_800..5_200).contains(&below), "{below} of 10000 below the median");
        assert_eq!(drawn.iter().max(), Some(&65536));
    }

    #[test]
    fn nonsense_is_refused_with_what_to_write() {
        let problem = |median, max| Size { median: Bytes(median), max: Bytes(max) }.problem().unwrap_or_default();
        assert_eq!(problem(2048, 65536), "");
        assert_eq!(problem(2048, 2048), "");
        assert!(problem(0, 10).contains("size.median is 0B"));
        assert!(problem(2048, 1024).contains("write at least `max: 2KiB`"));
        assert!(problem(2048, 1 << 21).contains("write at most `1MiB`"));
    }
}
