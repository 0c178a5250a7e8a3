//! Logs of the process: one line per event. Each event has a name from a closed list.
//!
//! This module owns the two log formats, the form of event names, and a limit on log lines that clients can cause. Each
//! crate owns its events; the program passes all of them to [`init`]. Secrets are never logged: no caller passes a key,
//! a token or a body.

mod format;
mod lines;
pub mod names;
mod throttle;

use tracing_subscriber::filter::LevelFilter;

use crate::config;
use format::{Json, Syslog};
use lines::Lines;
pub use throttle::Throttle;

/// Starts logging to standard error: lines in `format`, at `level` and above. `names` are the event names of all
/// crates. A second call of this function changes nothing.
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
