//! Handles the signals SIGTERM and SIGINT. Process 1 of a container ignores a signal that it does not handle.

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::Failure;

pub struct Signals(signal_hook::iterator::Signals);

impl Signals {
    pub fn catch() -> Result<Self, Failure> {
        let caught = signal_hook::iterator::Signals::new([SIGTERM, SIGINT]);
        caught.map(Self).map_err(|source| Failure::System { what: "signals cannot be caught".to_owned(), source })
    }

    pub fn wait(mut self) {
        self.0.forever().next();
    }

    pub fn came(&mut self) -> bool {
        self.0.pending().next().is_some()
    }
}
