//! [`Profile`]: the integral of a rate over time, and the inverse function from the integral to the time. Pure: no I/O.
//!
//! The profile owns no list of arrivals, so a run of 100 hours takes as much memory as a run of a second.

use std::f64::consts::TAU;
use std::time::Duration;

use units::Rate;

/// The number of bisections that find the time of an arrival. The found time is exact to less than a nanosecond within
/// a day, and for longer times to the precision of an `f64`.
const HALVINGS: usize = 60;

/// A rate over a period of time.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    curve: Curve,
    length: Duration,
}

#[derive(Debug, Clone)]
enum Curve {
    /// A constant rate. The measure of a constant rate is the time itself, so that no conversion loses precision.
    Flat { per_second: f64 },
    /// Periods with a linear rate, one after another.
    Pieces(Vec<Piece>),
    /// The rate `mean + amplitude * sin(omega * t)`, with a mean above 0.
    Sine { mean: f64, amplitude: f64, omega: f64 },
}

/// A period in which the rate changes linearly.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start_s: f64,
    length_s: f64,
    from: f64,
    to: f64,
    before: f64,
}

impl Piece {
    fn amount(&self) -> f64 {
        f64::midpoint(self.from, self.to) * self.length_s
    }

    fn rate_at(&self, t_s: f64) -> f64 {
        self.from + (self.to - self.from) * (t_s / self.length_s)
    }

    /// The time in the period at which `amount` arrivals have come: the root of a quadratic equation, in the form that
    /// stays exact for a small slope.
    fn when(&self, amount: f64) -> f64 {
        let slope = (self.to - self.from) / self.length_s;
        let root = (self.from * self.from + 2.0 * slope * amount).max(0.0).sqrt();
        let t_s = if amount <= 0.0 { 0.0 } else { 2.0 * amount / (self.from + root) };
        t_s.min(self.length_s)
    }
}

impl Profile {
    pub(crate) fn flat(rate: Rate, length: Duration) -> Self {
        Self { curve: Curve::Flat { per_second: rate.as_per_second() }, length }
    }

    /// The periods as (length in seconds, rate at the start, rate at the end), one after another.
    pub(super) fn pieces(pieces: &[(f64, f64, f64)], length: Duration) -> Self {
        let mut list = Vec::with_capacity(pieces.len());
        let (mut start_s, mut before) = (0.0, 0.0);
        for &(length_s, from, to) in pieces.iter().filter(|(length_s, ..)| *length_s > 0.0) {
            let piece = Piece { start_s, length_s, from, to, before };
            start_s += length_s;
            before += piece.amount();
            list.push(piece);
        }
        Self { curve: Curve::Pieces(list), length }
    }

    pub(super) fn sine(mean: f64, amplitude: f64, period_s: f64, length: Duration) -> Self {
        Self { curve: Curve::Sine { mean, amplitude, omega: TAU / period_s }, length }
    }

    /// The number of arrivals in the whole run, rounded to the nearest number.
    pub(crate) fn count(&self) -> u64 {
        whole(self.expected(self.length))
    }

    /// The number of arrivals before this time, by the integral.
    pub(crate) fn expected(&self, until: Duration) -> f64 {
        let t_s = until.min(self.length).as_secs_f64();
        match &self.curve {
            Curve::Flat { per_second } => per_second * t_s,
            Curve::Pieces(pieces) => pieces.iter().rev().find(|piece| piece.start_s <= t_s).map_or(0.0, |piece| {
                let inside = (t_s - piece.start_s).min(piece.length_s);
                piece.before + f64::midpoint(piece.from, piece.rate_at(inside)) * inside
            }),
            Curve::Sine { mean, amplitude, omega } => under_sine(*mean, *amplitude, *omega, t_s),
        }
    }

    /// The highest rate per second.
    pub(crate) fn peak(&self) -> f64 {
        match &self.curve {
            Curve::Flat { per_second } => *per_second,
            Curve::Pieces(pieces) => pieces.iter().map(|piece| piece.from.max(piece.to)).fold(0.0, f64::max),
            Curve::Sine { mean, amplitude, .. } => mean + amplitude,
        }
    }

    /// The length of the run, if the rate never changes.
    pub(super) fn flat_length(&self) -> Option<Duration> {
        matches!(self.curve, Curve::Flat { .. }).then_some(self.length)
    }

    /// The measure of the whole run, over which arrivals are spread: seconds if the rate is constant, otherwise
    /// arrivals.
    pub(super) fn measure(&self) -> f64 {
        match self.curve {
            Curve::Flat { .. } => self.length.as_secs_f64(),
            Curve::Pieces(_) | Curve::Sine { .. } => self.expected(self.length),
        }
    }

    /// The time at which `passed` of the measure has passed. `passed` must not decrease between calls; `cursor` is 0 at
    /// the first call.
    pub(super) fn when(&self, passed: f64, cursor: &mut usize) -> Duration {
        let t_s = match &self.curve {
            Curve::Flat { .. } => passed,
            Curve::Pieces(pieces) => {
                let past = |piece: &Piece| passed >= piece.before + piece.amount();
                while *cursor + 1 < pieces.len() && past(&pieces[*cursor]) {
                    *cursor += 1;
                }
                pieces.get(*cursor).map_or(0.0, |piece| piece.start_s + piece.when(passed - piece.before))
            }
            Curve::Sine { mean, amplitude, omega } => along_sine(*mean, *amplitude, *omega, passed),
        };
        Duration::try_from_secs_f64(t_s.max(0.0)).unwrap_or(self.length).min(self.length)
    }
}

/// The number of arrivals of `mean + amplitude * sin(omega * t)` before a time.
fn under_sine(mean: f64, amplitude: f64, omega: f64, t_s: f64) -> f64 {
    mean * t_s + amplitude / omega * (1.0 - (omega * t_s).cos())
}

/// The inverse of [`under_sine`]. The integral never decreases, so bisection finds the time, even where the rate is 0
/// and Newton's method fails. The sine adds between 0 and 2a/w to the integral, so the searched range does not grow
/// with the run.
fn along_sine(mean: f64, amplitude: f64, omega: f64, passed: f64) -> f64 {
    let mut high = passed / mean;
    let mut low = ((passed - 2.0 * amplitude / omega) / mean).max(0.0);
    for _ in 0..HALVINGS {
        let middle = low + (high - low) / 2.0;
        if under_sine(mean, amplitude, omega, middle) < passed { low = middle } else { high = middle }
    }
    high
}

fn whole(number: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and `as` saturates")]
    let whole = number.round() as u64;
    whole
}
