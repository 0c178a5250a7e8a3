//! The release gate, which finds out whether build B is worse than build A.
//!
//! Owns the method of a gate, from the order of the measurements (short times of load on one build) to the verdict. The
//! method is pure: measurements are given as [`Slice`]s, and judging the same measurements again gives the same
//! verdict. Decision 043 describes the method of a gate:
//!
//! 1. Both builds run at the same time on one machine, and at each time one of them is under load. Measurements
//!    alternate in the order ABBA or BAAB, which the seed chooses for each block of four ([`order`]).
//! 2. If the machine was under more pressure than usual in a measurement, its pair is dropped ([`pressure`]), and both
//!    builds are measured again.
//! 3. Two neighbouring measurements, one of each build, are a pair. A pair compares B with A by the logarithm of their
//!    ratio ([`pairs`]).
//! 4. The Hodges–Lehmann estimate and one-sided 95 % bounds by Wilcoxon decide whether B is worse, together with a
//!    limit and a floor ([`decide`]).
//! 5. A metric that is worse must be worse again in a second session with new processes ([`verdict`]).
//! 6. The same measurements show how often this gate would raise a false alarm on this machine, and which change it
//!    would detect ([`certificate`]).

pub mod certificate;
pub mod decide;
pub mod junit;
pub mod metric;
pub mod order;
pub mod pairs;
pub mod pressure;
pub mod record;
pub mod slice;
pub mod verdict;

#[cfg(test)]
pub(crate) mod simulation;

pub use decide::Word;
pub use metric::{Metric, Rule};
pub use order::Side;
pub use record::{Header, Record};
pub use slice::{Counted, Pressure, Slice};
pub use verdict::{Judgement, Outcome, halves_dropped, judge, wants_confirmation};
