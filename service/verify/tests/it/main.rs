//! Tests over what real cosign made (`fixtures/`), and over changes to it.

mod fixtures;
mod golden;
mod mutated;
mod mutation;
