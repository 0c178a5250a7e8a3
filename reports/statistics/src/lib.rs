//! The statistical methods that judges use, and the histograms of a run record.
//!
//! Every function of this crate is pure: it uses no file, clock or random number. The returned bounds are one-sided at
//! the confidence that the caller names, unless a function says otherwise. Input that a method cannot use is a typed
//! [`Error`]. Each function states a cap on the number of values, which bounds its work.

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
    #[error("{found} values are too few, {least} are needed")]
    TooFew { found: usize, least: usize },
    #[error("{found} values are too many, {most} are the most")]
    TooMany { found: usize, most: usize },
    #[error("value {index} is not finite")]
    NotFinite {
        /// The index of the value, from 0.
        index: usize,
    },
    #[error("{left} values cannot be paired with {right}")]
    Unpaired { left: usize, right: usize },
    #[error("time {index} is not later than the one before")]
    NotRising {
        /// The index of the time that does not rise, from 0.
        index: usize,
    },
    #[error("the axis does not move")]
    Flat,
    #[error("{what} is {value}, which is out of range")]
    OutOfRange { what: &'static str, value: f64 },
    #[error("{span_s} s are too short, {needed_s} s are needed")]
    TooShort {
        /// The time from the first to the last sample, in seconds.
        span_s: f64,
        /// The length of the series that would be enough, in seconds.
        needed_s: f64,
    },
}

/// Refuses values that are infinite or not a number, and lists that are too short or too long.
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

/// Refuses a confidence that gives no bound: it must be above one half and below one.
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

/// Converts a number that is known to be whole into a count; negative numbers give zero.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, which is what is meant")]
fn whole(number: f64) -> usize {
    number as usize
}
