//! Tests over what real cosign made (`fixtures/`).

mod fixtures;
mod golden;
