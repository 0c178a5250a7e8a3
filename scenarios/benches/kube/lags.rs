//! Measures the time between sending a write and its arrival at the watchers.
//!
//! This module keeps the sending times of the writes and a histogram of the watchers' delays. Each write has a number,
//! which its object contains.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use hdrhistogram::Histogram;
use parking_lot::Mutex;

/// The text before a write's number in an object; the next constant is the number of its digits.
const KEY: &[u8] = br#""write":""#;
const DIGITS: usize = 16;
/// Maximum delay that is recorded, in microseconds; longer delays are recorded as this value.
const WAITED_US_MAX: u64 = 120_000_000;

pub(crate) struct Lags {
    begun: Instant,
    first: usize,
    sent_us: Vec<AtomicU64>,
    waited_us: Mutex<Histogram<u64>>,
}

/// Finds the numbers of writes in the data of a watch, wherever the data is split into chunks.
#[derive(Default)]
pub(crate) struct Reading(Vec<u8>);

impl Lags {
    /// Prepares the sending times of `count` writes that are numbered from `first` on.
    pub fn of(first: usize, count: usize) -> Result<Self> {
        let sent_us = std::iter::repeat_with(AtomicU64::default).take(count).collect();
        let waited_us = Mutex::new(Histogram::new_with_max(WAITED_US_MAX, 3)?);
        Ok(Self { begun: Instant::now(), first, sent_us, waited_us })
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Records the present time as the sending time of a write.
    pub fn sent(&self, write: usize) {
        if let Some(sent) = write.checked_sub(self.first).and_then(|index| self.sent_us.get(index)) {
            sent.store(self.now_us(), Ordering::Release);
        }
    }

    /// Records the present time as the arrival of all writes in this data of a watch.
    pub fn read(&self, reading: &mut Reading, data: &[u8]) {
        let now_us = self.now_us();
        let mut waited_us = self.waited_us.lock();
        reading.read(data, |write| {
            if let Some(sent) = write.checked_sub(self.first).and_then(|index| self.sent_us.get(index)) {
                waited_us.saturating_record(now_us.saturating_sub(sent.load(Ordering::Acquire)));
            }
        });
    }

    /// The delay within which 99 of 100 events arrived, in milliseconds.
    pub fn p99_ms(&self) -> Result<f64> {
        let waited_us = self.waited_us.lock();
        anyhow::ensure!(!waited_us.is_empty(), "no watch was told of a write");
        Ok(waited_us.value_at_quantile(0.99) as f64 / 1e3)
    }
}

impl Reading {
    fn read(&mut self, data: &[u8], mut each: impl FnMut(usize)) {
        self.0.extend_from_slice(data);
        let mut done = 0;
        for at in memchr::memmem::find_iter(&self.0, KEY) {
            let digits = at + KEY.len()..at + KEY.len() + DIGITS;
            let Some(text) = self.0.get(digits.clone()) else { break };
            if let Some(write) = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
                each(write);
            }
            done = digits.end;
        }
        // The rest may be the beginning of a number.
        let rest = self.0.len().saturating_sub(KEY.len() + DIGITS - 1);
        self.0.drain(..rest.max(done));
    }
}
