//! The progress of a transfer of chunks, with its rate and estimated end. A terminal shows one line that is
//! overwritten; other outputs get a line from time to time.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Time between two changes of the line on a terminal.
const REDRAW: Duration = Duration::from_millis(250);
/// Time between two lines on outputs that are no terminal.
const LINE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    total: u64,
    total_bytes: u64,
    done: u64,
    /// Number of bytes that this process has sent. Only sent bytes count for the rate.
    sent_bytes: u64,
    left_bytes: u64,
    began: Instant,
    shown: Option<Instant>,
    terminal: bool,
}

impl Progress {
    /// Progress of `total` chunks with `total_bytes` in total.
    pub fn new(what: &'static str, total: u64, total_bytes: u64) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let (done, sent_bytes, left_bytes) = (0, 0, total_bytes);
        Self { what, total, total_bytes, done, sent_bytes, left_bytes, began: Instant::now(), shown: None, terminal }
    }

    pub fn found(&mut self, bytes: u64) {
        self.done += 1;
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
    }

    pub fn sent(&mut self, bytes: u64) {
        self.found(bytes);
        self.sent_bytes += bytes;
        let now = Instant::now();
        let every = if self.terminal { REDRAW } else { LINE };
        if self.shown.unwrap_or(self.began) + every <= now {
            self.shown = Some(now);
            self.show(now, "");
        }
    }

    /// Shows why no chunk is being sent.
    pub fn waits(&mut self, why: &str) {
        let now = Instant::now();
        if self.shown.is_none_or(|shown| shown + REDRAW <= now) {
            self.shown = Some(now);
            self.show(now, why);
        }
    }

    /// Writes the last line of the progress.
    pub fn end(self) {
        if self.terminal {
            self.show(Instant::now(), "");
            eprintln!();
        }
    }

    fn show(&self, now: Instant, why: &str) {
        let text = self.line(now.saturating_duration_since(self.began), why);
        let mut stderr = std::io::stderr().lock();
        // A closed terminal is no reason to stop.
        let _ = if self.terminal { write!(stderr, "\r\x1b[K{text}") } else { writeln!(stderr, "{text}") };
        let _ = stderr.flush();
    }

    fn line(&self, elapsed: Duration, why: &str) -> String {
        let Self { what, done, total, .. } = self;
        let percent = 100 * self.total_bytes.saturating_sub(self.left_bytes) / self.total_bytes.max(1);
        let mut text = format!("{done} of {total} {what} ({percent} %)");
        let seconds = elapsed.as_secs_f64();
        if self.sent_bytes > 0 && seconds > 0.0 {
            let rate = self.sent_bytes as f64 / seconds;
            let left_s = self.left_bytes as f64 / rate;
            let (minutes, seconds) = ((left_s / 60.0).floor(), (left_s % 60.0).floor());
            let _ = write!(text, ", {:.1} MB/s, {minutes:.0}:{seconds:02.0} left", rate / 1e6);
        }
        if !why.is_empty() {
            text.push_str(": ");
            text.push_str(why);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_already_does_not_count_for_the_rate() {
        let mut progress = Progress::new("chunks", 10, 10_000_000);
        for _ in 0..4 {
            progress.found(1_000_000);
        }
        assert_eq!(progress.line(Duration::from_secs(2), ""), "4 of 10 chunks (40 %)");
        progress.sent(1_000_000);
        let line = progress.line(Duration::from_secs(2), "the server asks to wait");
        assert_eq!(line, "5 of 10 chunks (50 %), 0.5 MB/s, 0:10 left: the server asks to wait");
    }
}
