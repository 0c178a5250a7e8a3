//! The two log formats: RFC 5424 lines and JSON objects.
//!
//! This module owns the formats; callers choose the fields. The length of a line is limited, whatever its values are.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::names::{self, Names};

/// Maximum number of bytes of one value in a log line: enough for an error with its causes.
const VALUE_BYTES_MAX: usize = 2048;
/// The enterprise number for documentation (RFC 5612). This project has no enterprise number.
const ENTERPRISE: &str = "longhaul@32473";
const DAEMON: u8 = 3;
const AUDIT: u8 = 13;

/// Lines of the form `<PRI>1 TIMESTAMP HOSTNAME APP-NAME PROCID MSGID [SD] MSG` (RFC 5424, section 6). MSGID is the
/// event's name.
pub(super) struct Syslog {
    host: String,
    process: u32,
    names: Names,
}

/// Lines of the form `{"timestamp", "severity", "event", "message", "context"}`.
pub(super) struct Json {
    pub(super) names: Names,
}

#[derive(Serialize)]
struct Line<'a> {
    timestamp: String,
    severity: &'static str,
    event: &'a str,
    message: &'a str,
    context: Map<String, Value>,
}

#[derive(Default)]
struct Fields {
    message: String,
    context: Map<String, Value>,
}

impl Syslog {
    /// The format with the names of this process and of its machine.
    pub(super) fn of_this_process(names: Names) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host: String = host.trim().chars().filter(char::is_ascii_graphic).take(255).collect();
        Self { host: if host.is_empty() { "-".into() } else { host }, process: std::process::id(), names }
    }
}

impl<S, N> FormatEvent<S, N> for Syslog
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (name, fields) = (name(self.names, event), Fields::of(event));
        let facility = if name.starts_with(names::AUDIT_PREFIX) { AUDIT } else { DAEMON };
        let priority = facility * 8 + severity(*event.metadata().level()).0;
        let (host, process) = (&self.host, self.process);
        write!(out, "<{priority}>1 {} {host} longhaul-service {process} {name} ", timestamp())?;
        fields.write_structured(&mut out)?;
        writeln!(out, " {}", fields.message)
    }
}

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let Fields { message, context } = Fields::of(event);
        let severity = severity(*event.metadata().level()).1;
        let line =
            Line { timestamp: timestamp(), severity, event: name(self.names, event), message: &message, context };
        writeln!(out, "{}", serde_json::to_string(&line).map_err(|_| fmt::Error)?)
    }
}

impl Fields {
    fn of(event: &Event<'_>) -> Self {
        let mut fields = Self::default();
        event.record(&mut fields);
        fields
    }

    fn put(&mut self, field: &Field, value: Value) {
        self.context.insert(field.name().to_owned(), value);
    }

    /// Writes the fields as structured data; `-` if there are none.
    fn write_structured(&self, out: &mut Writer<'_>) -> fmt::Result {
        if self.context.is_empty() {
            return out.write_char('-');
        }
        write!(out, "[{ENTERPRISE}")?;
        for (name, value) in &self.context {
            let text = value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed);
            write!(out, " {name}=\"")?;
            for c in text.chars() {
                if matches!(c, '"' | '\\' | ']') {
                    out.write_char('\\')?;
                }
                out.write_char(c)?;
            }
            out.write_char('"')?;
        }
        out.write_char(']')
    }
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else {
            self.put(field, cut(value).into());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(VALUE_BYTES_MAX);
    if end == text.len() { text.to_owned() } else { format!("{}…", &text[..end]) }
}

/// The name of a log event; `library` for events of libraries.
fn name(names: Names, event: &Event<'_>) -> &'static str {
    let name = event.metadata().name();
    if names::is_known(names, name) { name } else { names::LIBRARY }
}

/// Numeric severity (RFC 5424, 6.2.1) and its name.
fn severity(level: Level) -> (u8, &'static str) {
    match level {
        Level::ERROR => (3, "error"),
        Level::WARN => (4, "warning"),
        Level::INFO => (6, "info"),
        Level::DEBUG | Level::TRACE => (7, "debug"),
    }
}

/// The present time, with as many digits as RFC 5424 allows.
fn timestamp() -> String {
    format!("{:.6}", Timestamp::now())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;
    use crate::logs::lines::Lines;

    const NAMES: Names = &[&[("config.refused", &["error"]), ("audit.write", &["status", "dry_run"])]];

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn written(json: bool, say: impl FnOnce()) -> String {
        let buffer = Buffer::default();
        let to = buffer.clone();
        let builder = tracing_subscriber::fmt().with_writer(move || Lines(to.clone()));
        if json {
            tracing::subscriber::with_default(builder.event_format(Json { names: NAMES }).finish(), say);
        } else {
            let syslog = Syslog { host: "h".into(), process: 7, names: NAMES };
            tracing::subscriber::with_default(builder.event_format(syslog).finish(), say);
        }
        let bytes = buffer.0.lock().clone();
        String::from_utf8(bytes).unwrap()
    }

    fn say() {
        let error = "] \"x\" \\\nforged";
        tracing::warn!(name: "config.refused", error, "configuration not replaced");
        tracing::info!(name: "audit.write", status = 200_u64, dry_run = true, "a write");
        tracing::info!("what a library says");
    }

    #[test]
    fn text_is_as_syslog_has_it() {
        let text = written(false, say);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        let (front, rest) = lines[0].split_once(" h ").unwrap();
        let (priority, time) = front.split_once("1 ").unwrap();
        assert_eq!(priority, "<28>");
        assert!(time.parse::<Timestamp>().is_ok() && time.ends_with('Z') && time.len() == 27, "{time}");
        let expected = r#"longhaul-service 7 config.refused [longhaul@32473 error="\] \"x\" \\\nforged"] configuration not replaced"#;
        assert_eq!(rest, expected);
        assert!(lines[1].starts_with("<110>1 "), "facility 13: {}", lines[1]);
        assert!(
            lines[1].contains(r#" audit.write [longhaul@32473 dry_run="true" status="200"] a write"#),
            "{}",
            lines[1]
        );
        assert!(lines[2].ends_with(" library - what a library says"), "{}", lines[2]);
    }

    #[test]
    fn json_names_event_severity_and_context() {
        let text = written(true, say);
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["event"], "config.refused");
        assert_eq!(lines[0]["severity"], "warning");
        assert_eq!(lines[0]["context"]["error"], "] \"x\" \\\nforged");
        assert_eq!(lines[1]["context"], serde_json::json!({"status": 200, "dry_run": true}));
        assert_eq!(lines[2]["event"], "library");
        assert!(lines[1]["timestamp"].as_str().unwrap().parse::<Timestamp>().is_ok());
    }

    #[test]
    fn a_value_has_a_bound() {
        let long = "ä".repeat(5000);
        let text = written(true, || tracing::warn!(name: "config.refused", error = long, "x"));
        assert!(text.len() < VALUE_BYTES_MAX + 300, "{}", text.len());
    }
}
