//! The release gate: is build B worse than build A?
//!
//! Owns the method, from the order of the slices to the verdict. Pure: the measurements come in as [`Slice`]s, and
//! judging the same slices again gives the same verdict. The method is that of decision 043:
//!
//! 1. Both builds run at the same time on one machine, one of them under load. Slices of load alternate in the order
//!    ABBA or BAAB, which the seed chooses for each block ([`order`]).
//! 2. A slice on a machine that was under more pressure than usual is dropped, with its partner ([`pressure`]), and
//!    both are run again.
//! 3. Two neighbours are a pair: B against A, as the logarithm of their ratio ([`pairs`]).
//! 4. The estimate of Hodges and Lehmann and one-sided 95 % bounds of Wilcoxon decide, together with a limit and a
//!    floor ([`decide`]).
//! 5. A metric that is worse must be worse again in a second session with fresh processes ([`verdict`]).
//! 6. The same slices show how often this gate would have raised a false alarm here, and which change it could have
//!    detected ([`certificate`]).

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
