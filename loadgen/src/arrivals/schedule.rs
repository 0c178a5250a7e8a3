//! [`Schedule`]: the planned times of requests over a whole run, without their contents. Pure: no I/O.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use units::Rate;

use super::shape::Misfit;
use super::{Arrivals, Entries, Profile, Recording, Shape, Times};
use crate::seed;

/// Maximum number of rows of the printed table: enough to see a shape, and few enough for a screen.
const ROWS: u32 = 10;
/// The number of arrivals that [`Schedule::describe`] lists.
const FIRST: usize = 5;

/// The planned times of requests, which are cheap to clone. Equal arguments give equal times, to the nanosecond.
#[derive(Debug, Clone)]
pub struct Schedule {
    arrivals: Arrivals,
    /// How the rate changes over time, as text.
    curve: String,
    source: Source,
    seed: u64,
    length: Duration,
}

/// The source of the planned times: a rate or a recording.
#[derive(Debug, Clone)]
enum Source {
    Profile(Arc<Profile>),
    Recording(Arc<Recording>),
}

impl Schedule {
    /// The schedule of a shape for a run of this length.
    pub(crate) fn new(
        arrivals: Arrivals,
        rate: Rate,
        shape: Option<&Shape>,
        seed: u64,
        length: Duration,
    ) -> Result<Self, Misfit> {
        let profile = match shape {
            None => Profile::flat(rate, length),
            Some(shape) => shape.profile(rate, length)?,
        };
        let curve = shape.map_or_else(|| rate.to_string(), |shape| shape.describe(rate));
        Ok(Self { arrivals, curve, source: Source::Profile(Arc::new(profile)), seed, length })
    }

    /// The schedule with the times of a recording.
    pub(crate) fn recorded(recording: Arc<Recording>) -> Self {
        let curve = format!("as in {}", recording.path().display());
        let length = recording.length();
        Self { arrivals: Arrivals::Constant, curve, source: Source::Recording(recording), seed: 0, length }
    }

    /// The number of planned requests in the whole run.
    pub fn total(&self) -> u64 {
        match &self.source {
            Source::Profile(profile) => profile.count(),
            Source::Recording(recording) => recording.count(),
        }
    }

    pub fn length(&self) -> Duration {
        self.length
    }

    /// The number of requests before a time, as it follows from the rate. Random arrivals vary around this number.
    pub fn expected(&self, until: Duration) -> f64 {
        match &self.source {
            Source::Profile(profile) => profile.expected(until),
            Source::Recording(recording) => recording.before(until) as f64,
        }
    }

    /// The highest rate per second; `None` for a recording.
    pub fn peak(&self) -> Option<f64> {
        match &self.source {
            Source::Profile(profile) => Some(profile.peak()),
            Source::Recording(_) => None,
        }
    }

    /// The planned times in order, as offsets from the beginning, made one after another.
    pub fn times(&self) -> impl Iterator<Item = Duration> + Send + use<> {
        self.stream().map(|(at, _)| at)
    }

    /// The planned times, each with its review if a recording contains one.
    pub(crate) fn stream(&self) -> Stream {
        match &self.source {
            Source::Profile(profile) => {
                let rng = seed::stream(self.seed, "arrivals");
                Stream::Planned(Box::new(Times::along(self.arrivals, Arc::clone(profile), rng)))
            }
            Source::Recording(recording) => Stream::Recorded(recording.entries()),
        }
    }

    /// Number, rate and spacing of the requests in one line.
    pub fn summary(&self) -> String {
        let spacing = match (&self.source, self.arrivals) {
            (Source::Recording(_), _) => "",
            (_, Arrivals::Constant) => ", evenly spaced",
            (_, Arrivals::Poisson) => ", Poisson",
        };
        format!("{} requests in {:.1} s ({}{spacing})", self.total(), self.length.as_secs_f64(), self.curve)
    }

    /// The summary, a table of the rate over the run, and the first planned times.
    pub fn describe(&self) -> String {
        let mut text = self.summary() + "\n";
        let is_flat = matches!(&self.source, Source::Profile(profile) if profile.flat_length().is_some());
        if !is_flat {
            text += &self.table();
        }
        let first: Vec<String> =
            self.times().take(FIRST).map(|at| format!("{:.3} ms", at.as_secs_f64() * 1e3)).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "first requests at {}", first.join(", "));
        text
    }

    fn table(&self) -> String {
        let mut text = format!("{:>10} {:>10} {:>10} {:>11}\n", "from", "to", "requests", "rate");
        for row in 0..ROWS {
            let (from, to) = (self.length * row / ROWS, self.length * (row + 1) / ROWS);
            let requests = self.expected(to) - self.expected(from);
            let (from_s, to_s) = (from.as_secs_f64(), to.as_secs_f64());
            let rate = requests / (to_s - from_s).max(f64::MIN_POSITIVE);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{from_s:>9.1}s {to_s:>9.1}s {requests:>10.0} {rate:>9.1}/s");
        }
        text
    }
}

/// Planned times, each with the number of its review if the review is fixed.
#[derive(Debug, Clone)]
pub(crate) enum Stream {
    Planned(Box<Times>),
    Recorded(Entries),
}

impl Iterator for Stream {
    type Item = (Duration, Option<u32>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Planned(times) => times.next().map(|at| (at, None)),
            Self::Recorded(entries) => entries.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_adds_up_and_shows_the_shape() {
        let shape: Shape = serde_json::from_str(r#"{"ramp": {"to": "200/s"}}"#).unwrap();
        let length = Duration::from_secs(20);
        let schedule = Schedule::new(Arrivals::Constant, Rate::per_second(100.0), Some(&shape), 1, length).unwrap();
        assert_eq!(
            schedule.describe(),
            "\
3000 requests in 20.0 s (from 100/s to 200/s, evenly spaced)
      from         to   requests        rate
      0.0s       2.0s        210     105.0/s
      2.0s       4.0s        230     115.0/s
      4.0s       6.0s        250     125.0/s
      6.0s       8.0s        270     135.0/s
      8.0s      10.0s        290     145.0/s
     10.0s      12.0s        310     155.0/s
     12.0s      14.0s        330     165.0/s
     14.0s      16.0s        350     175.0/s
     16.0s      18.0s        370     185.0/s
     18.0s      20.0s        390     195.0/s
first requests at 0.000 ms, 9.998 ms, 19.990 ms, 29.978 ms, 39.960 ms
"
        );
        assert_eq!(schedule.times().count(), 3000);
    }
}
