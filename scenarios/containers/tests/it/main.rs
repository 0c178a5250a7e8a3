//! Tests with containers. `cargo xtask test --rest` runs them; without a container engine each test is skipped.

mod others;
mod own;
mod recipes;
