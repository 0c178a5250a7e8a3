//! Logs of the process: one line per event, each event with a name of a closed list.
//!
//! This module owns the two formats, the form of names, and the limit on lines that strangers can cause. Each crate owns
//! its events; the program hands all of them to [`init`]. Secrets never reach a line: no caller passes a key, a token or a body.

mod format;
mod lines;
pub mod names;
mod throttle;

use tracing_subscriber::filter::LevelFilter;

use crate::config;
use format::{Json, Syslog};
use lines::Lines;
pub use throttle::Throttle;

/// Writes lines of `format` at `level` and above to standard error from now on; `names` are those of all crates. A second
/// call changes nothing.
pub fn init(format: config::LogFormat, level: config::Level, names: names::Names) {
    let level = match level {
        config::Level::Trace => LevelFilter::TRACE,
        config::Level::Debug => LevelFilter::DEBUG,
        config::Level::Info => LevelFilter::INFO,
        config::Level::Warn => LevelFilter::WARN,
        config::Level::Error => LevelFilter::ERROR,
    };
    let builder = tracing_subscriber::fmt().with_max_level(level).with_writer(|| Lines(std::io::stderr()));
    // Only tests initialise a second time; the first one stays.
    let _ = match format {
        config::LogFormat::Text => builder.event_format(Syslog::of_this_process(names)).try_init(),
        config::LogFormat::Json => builder.event_format(Json { names }).try_init(),
    };
}
