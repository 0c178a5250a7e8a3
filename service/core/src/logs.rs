//! Logs of the process: one line an event, each event with a name of a closed list.
//!
//! Owns the two formats, the list of names, and how many lines strangers may cause. Which event is worth a line is the business
//! of the roles. What is secret never reaches a line: none of them gives it a key, a token or a body.

mod format;
mod lines;
pub mod names;
mod throttle;

use tracing_subscriber::filter::LevelFilter;

use crate::config;
use format::{Json, Syslog};
use lines::Lines;
pub use throttle::Throttle;

/// Writes lines of `format` at `level` and above to the standard error from now on. A second call changes nothing.
pub fn init(format: config::LogFormat, level: config::Level) {
    let level = match level {
        config::Level::Trace => LevelFilter::TRACE,
        config::Level::Debug => LevelFilter::DEBUG,
        config::Level::Info => LevelFilter::INFO,
        config::Level::Warn => LevelFilter::WARN,
        config::Level::Error => LevelFilter::ERROR,
    };
    let builder = tracing_subscriber::fmt().with_max_level(level).with_writer(|| Lines(std::io::stderr()));
    // A second initialisation only happens in tests; the first one stays.
    let _ = match format {
        config::LogFormat::Text => builder.event_format(Syslog::of_this_process()).try_init(),
        config::LogFormat::Json => builder.event_format(Json).try_init(),
    };
}
