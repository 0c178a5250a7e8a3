//! `cargo xtask matrix`: real clients against documented bugs, as one table.
//!
//! Owns the table (`table`), its renderers (`render`) and the order in which cells are filled (`fill`). Each cell is
//! one `longhaul soak bugs/NAME` in its own process, so that runs cannot affect each other. A cell shows only facts
//! from that run's record.

mod fill;
mod render;
mod table;

pub use fill::{Choice, Error, fill, table_for};
pub use render::{html, markdown};
pub use table::{Cell, ColumnHead, Outcome, RowHead, Table};
