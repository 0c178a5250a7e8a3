//! The subject's own metrics: its Prometheus page, read every few seconds into the record.
//!
//! Owns what is read of a page. `exposition` reads its lines, `selector` picks series, `heap` knows what runtimes and allocators call the
//! heap that is in use, `scraper` asks. Every library for this format that was tried takes a `}` in a label's value for the end of
//! the labels, or has a licence that does not fit; what is needed of it is small.

mod exposition;
mod heap;
mod scraper;
mod selector;

pub use scraper::{Scraper, every};
pub use selector::{Labelled, Selector};
