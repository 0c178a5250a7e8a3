//! A machine that others keep busy: a run on it has a verdict all the same.

use std::process::{Child, Command, Stdio};

use crate::support::{program, soak};

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/small.yaml");
/// Programs that never wait: the load that strangers' machines have.
const LOAD: usize = 10;

struct Busy(Vec<Child>);

impl Busy {
    fn begin() -> Self {
        let spin = || Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap();
        Self((0..LOAD).map(|_| spin()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What is counted does not depend on how long it took, and the harness needs little of a processor.
#[test]
#[ignore = "slow"]
fn a_run_at_load_ten_has_a_verdict() {
    let Some(service) = program("longhaul-service") else { return };
    let busy = Busy::begin();
    let soak = soak(&[SMALL, "--service", service.to_str().unwrap()]);
    drop(busy);
    assert_eq!(soak.code(), Some(0), "{}", soak.story());
    assert!(soak.stdout().contains("the machine was busy"), "{}", soak.story());
}
