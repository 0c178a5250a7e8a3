//! Statistics: the methods that the judges compute with, and the histograms of a run record.
//!
//! Owns methods, never verdicts. Everything here is a pure function of its arguments: no file, no clock, no random
//! number. Bounds are one-sided at the confidence that the caller names, unless a function says otherwise. Input that
//! cannot be computed with is a typed [`Error`]; the work of each function is bounded by a stated cap on the number of
//! values.

pub mod binomial;
pub mod blocks;
pub mod change_point;
pub mod correlation;
pub mod hlog;
pub mod hodges_lehmann;
pub mod normal;
pub mod poisson;
pub mod proportion;
pub mod quantile;
pub mod saw_tooth;
pub mod theil_sen;
pub mod wilcoxon;

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Error {
    /// Fewer values than the method needs.
    #[error("{found} values are too few, {least} are needed")]
    TooFew { found: usize, least: usize },
    /// More values than the method's cap.
    #[error("{found} values are too many, {most} are the most")]
    TooMany { found: usize, most: usize },
    /// A value is infinite or not a number.
    #[error("value {index} is not finite")]
    NotFinite {
        /// Its index, from 0.
        index: usize,
    },
    /// Two lists that belong together have different lengths.
    #[error("{left} values cannot be paired with {right}")]
    Unpaired { left: usize, right: usize },
    /// Times do not rise.
    #[error("time {index} is not later than the one before")]
    NotRising {
        /// Its index, from 0.
        index: usize,
    },
    /// The x values of a slope are all the same.
    #[error("the axis does not move")]
    Flat,
    /// An argument is outside of its range.
    #[error("{what} is {value}, which is out of range")]
    OutOfRange { what: &'static str, value: f64 },
    /// The series is too short for its own correlation time and period.
    #[error("{span_s} s are too short, {needed_s} s are needed")]
    TooShort {
        /// From the first to the last sample, in seconds.
        span_s: f64,
        /// The length that would be enough, in seconds.
        needed_s: f64,
    },
}

/// Refuses values that are not finite, and lists that are too short or too long.
fn check(values: &[f64], least: usize, most: usize) -> Result<(), Error> {
    if values.len() < least {
        return Err(Error::TooFew { found: values.len(), least });
    }
    if values.len() > most {
        return Err(Error::TooMany { found: values.len(), most });
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(Error::NotFinite { index }),
        None => Ok(()),
    }
}

/// Refuses a confidence that makes no bound: it must lie above one half and below one.
fn check_confidence(confidence: f64) -> Result<(), Error> {
    if confidence > 0.5 && confidence < 1.0 {
        Ok(())
    } else {
        Err(Error::OutOfRange { what: "the confidence", value: confidence })
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// A count from a number that is known to be whole; negative numbers give zero.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, which is what is meant")]
fn whole(number: f64) -> usize {
    number as usize
}
