//! The signals SIGTERM and SIGINT. As process 1 of a container, a program that does not handle a signal is not ended by
//! it.

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

    /// Whether a signal has arrived already.
    pub fn came(&mut self) -> bool {
        self.0.pending().next().is_some()
    }
}
