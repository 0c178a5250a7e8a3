//! Tests over what real cosign made (`fixtures/`), over forgeries of each link, and over changes to both.

mod fixtures;
mod forge;
mod forged;
mod golden;
mod mutated;
mod mutation;
