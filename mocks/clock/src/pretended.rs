//! The simulated memory of tests.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::change::Memory;

#[derive(Default)]
pub struct Pretended(RefCell<BTreeMap<u64, u8>>);

impl Memory for Pretended {
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let bytes = self.0.borrow();
        for (at, byte) in (address..).zip(into) {
            *byte = *bytes.get(&at)?;
        }
        Some(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Option<()> {
        self.0.borrow_mut().extend((address..).zip(from.iter().copied()));
        Some(())
    }

    fn clock_of_file(&self, file: i32) -> Option<i32> {
        (file == 7).then_some(libc::CLOCK_MONOTONIC)
    }

    fn clock_of_timer(&self, timer: i32) -> Option<i32> {
        [libc::CLOCK_REALTIME, libc::CLOCK_PROCESS_CPUTIME_ID].get(usize::try_from(timer).ok()?).copied()
    }
}
