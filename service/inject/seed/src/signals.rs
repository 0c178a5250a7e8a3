//! The signals SIGTERM and SIGINT. As process 1 of a container this program ends only by signals that it handles.

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::Failure;

/// The signals that end this process.
pub struct Signals(signal_hook::iterator::Signals);

impl Signals {
    pub fn catch() -> Result<Self, Failure> {
        let caught = signal_hook::iterator::Signals::new([SIGTERM, SIGINT]);
        caught.map(Self).map_err(|source| Failure::System { what: "signals cannot be caught".to_owned(), source })
    }

    /// Waits for the first signal.
    pub fn wait(mut self) {
        self.0.forever().next();
    }

    /// Whether a signal came already.
    pub fn came(&mut self) -> bool {
        self.0.pending().next().is_some()
    }
}
