//! The section `alerting`: receivers of alerts, their settings, and the listener for alerts from other processes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};
use serde::Deserialize;
use serde_json::{Map, Value};
use service_contract::alerts::BODY_BYTES_MAX;
use service_contract::link::{self, Files};
use service_contract::listen::{Listen, RawListen};
use service_core::config::quantity::Span;
use service_core::config::{Checker, Error, Section, YamlError, yaml};
use service_core::wire::keeps_secrets;

use crate::markup::Markup;
use crate::template;

/// Default time limit of one attempt to send an alert.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of attempts to send an alert.
const ATTEMPTS: u64 = 3;
/// Default limit of alerts that wait for a receiver: the alerts of some minutes in a busy cluster, with some kilobytes
/// each.
const QUEUE: u64 = 1000;
/// Default priority of alerts. For most receivers, priority 1 is urgent.
const PRIORITY: u32 = 3;
/// Maximum number of receivers of alerts about admitted objects, and of receivers about refused objects; each receiver
/// has a queue and a connection.
const RECEIVERS_MAX: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alerting {
    /// The cluster's name in alert messages.
    pub cluster: String,
    /// Receivers of alerts about admitted objects.
    pub admit: Vec<Receiver>,
    /// Receivers of alerts about refused objects.
    pub reject: Vec<Receiver>,
    /// Another process, which sends the alerts to its receivers.
    pub remote: Option<Remote>,
    /// The file for alerts that could not be delivered.
    pub dead_letters: Option<PathBuf>,
    /// The listener for alerts from other processes.
    pub listener: Option<Listen>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    pub url: String,
    pub files: Files,
    /// Whether a review waits for its alert and is refused if the alert fails.
    pub blocking: bool,
    /// Time limit of one attempt to send an alert.
    pub timeout: Duration,
    pub queue: usize,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawRemote {
    url: String,
    ca_file: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    #[serde(default)]
    fail_if_alert_sending_fails: bool,
    timeout: Option<Span>,
    queue: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receiver {
    /// The receiver's name in messages and metrics.
    pub name: String,
    /// The template of the receiver's messages.
    pub template: Template,
    pub url: Secret,
    /// PEM file with the authorities that are trusted for the receiver instead of the system's.
    pub ca_file: Option<PathBuf>,
    pub priority: u32,
    pub headers: Vec<(String, Secret)>,
    /// Keys that replace keys of the template.
    pub payload: Map<String, Value>,
    pub blocking: bool,
    pub timeout: Duration,
    pub attempts: u32,
    pub queue: usize,
    /// Alerts about the same images within this time are joined into one alert with a count; `None` sends every alert.
    pub collapse: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Template {
    /// A built-in template with this name.
    Shipped(&'static str),
    /// A template file of the user, and the markup that the receiver understands.
    File(PathBuf, Markup),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
    Text(String),
    /// A secret that is the content of this file, without a final newline.
    File(PathBuf),
}

impl Secret {
    pub fn read(&self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
                Ok(text.trim_end_matches(['\r', '\n']).to_owned())
            }
        }
    }
}

#[doc(hidden)]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RawFile {
    alerting: Option<RawAlerting>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawAlerting {
    cluster: String,
    admit: RawStream,
    reject: RawStream,
    remote: Option<RawRemote>,
    dead_letters: Option<PathBuf>,
    listener: Option<RawListen>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawStream {
    receivers: Vec<RawReceiver>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RawReceiver {
    name: Option<String>,
    template: Option<String>,
    template_file: Option<PathBuf>,
    markup: Option<Markup>,
    url: Option<String>,
    url_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    priority: Option<u32>,
    headers: BTreeMap<String, String>,
    header_files: BTreeMap<String, PathBuf>,
    payload: BTreeMap<String, Value>,
    fail_if_alert_sending_fails: bool,
    timeout: Option<Span>,
    attempts: Option<u64>,
    queue: Option<u64>,
    collapse: Option<Span>,
}

impl Section for Alerting {
    const KEYS: &'static [&'static str] = &["alerting"];
    const FORMER: &'static [(&'static str, &'static str)] = &[("alerts", "alerting")];
    type Raw = RawFile;

    fn read(text: &str) -> Result<Self::Raw, YamlError> {
        yaml(text)
    }

    fn check(raw: RawFile, check: &Checker<'_>) -> Result<Option<Self>, Error> {
        let Some(raw) = raw.alerting else { return Ok(None) };
        let stream = |name: &str, raw: RawStream| {
            let key = format!("alerting.{name}.receivers");
            check.within(&key, raw.receivers.len() as u64, 0, RECEIVERS_MAX as u64)?;
            let each = raw.receivers.into_iter().enumerate();
            each.map(|(at, one)| receiver(check, &format!("{key}[{at}]"), name, at, one)).collect::<Result<Vec<_>, _>>()
        };
        let (admit, reject) = (stream("admit", raw.admit)?, stream("reject", raw.reject)?);
        let mut names: Vec<_> = admit.iter().chain(&reject).map(|one| &one.name).collect();
        names.sort();
        if let Some((twice, _)) = names.iter().zip(names.iter().skip(1)).find(|(one, next)| one == next) {
            return Err(
                check.value("alerting", format!("two receivers are called `{twice}`: give each its own `name`"))
            );
        }
        let remote = raw.remote.map(|raw| remote(check, raw)).transpose()?;
        let listener =
            raw.listener.map(|raw| Listen::check(raw, "alerting.listener", BODY_BYTES_MAX, check)).transpose()?;
        let dead_letters = raw.dead_letters.map(|path| check.folder.join(path));
        let cluster = if raw.cluster.is_empty() { "not specified".to_owned() } else { raw.cluster };
        Ok(Some(Self { cluster, admit, reject, remote, dead_letters, listener }))
    }
}

fn remote(check: &Checker<'_>, raw: RawRemote) -> Result<Remote, Error> {
    let of = |name: &str| format!("alerting.remote.{name}");
    link::address(&raw.url).map_err(|error| check.value(of("url"), error.to_string()))?;
    let joined = |path: PathBuf| check.folder.join(path);
    let identity = match (raw.certificate, raw.key) {
        (Some(certificate), Some(key)) => Some((joined(certificate), joined(key))),
        (None, None) => None,
        _ => return Err(check.value(of("certificate"), "certificate and key go together: write both, or none")),
    };
    Ok(Remote {
        url: raw.url,
        files: Files { ca: raw.ca_file.map(joined), identity },
        blocking: raw.fail_if_alert_sending_fails,
        timeout: check.positive(&of("timeout"), raw.timeout, TIMEOUT)?,
        queue: check.within(&of("queue"), raw.queue.unwrap_or(QUEUE), 1, 100_000)?,
    })
}

fn receiver(check: &Checker<'_>, key: &str, stream: &str, at: usize, raw: RawReceiver) -> Result<Receiver, Error> {
    let of = |name: &str| format!("{key}.{name}");
    let one_of = |text: Option<String>, file: Option<PathBuf>, name: &str| match (text, file) {
        (Some(text), None) => Ok(Secret::Text(text)),
        (None, Some(file)) => Ok(Secret::File(check.folder.join(file))),
        (None, None) => Err(check.value(of(name), format!("is missing: write `{name}` or `{name}File`"))),
        (Some(_), Some(_)) => Err(check.value(of(name), format!("stands beside `{name}File`: remove one of them"))),
    };
    let url = one_of(raw.url, raw.url_file, "url")?;
    if let Secret::Text(text) = &url {
        address(text).map_err(|what| check.value(of("url"), what))?;
    }
    if raw.markup.is_some() && raw.template_file.is_none() {
        return Err(check.value(of("markup"), "is of `templateFile`: a template that is built in has its own"));
    }
    let template = match (raw.template, raw.template_file) {
        (Some(name), None) => {
            if let Some((known, ..)) = template::shipped().find(|(known, ..)| *known == name) {
                Template::Shipped(known)
            } else {
                let known = template::shipped().map(|(name, ..)| name).collect::<Vec<_>>().join(", ");
                return Err(
                    check.value(of("template"), format!("`{name}` is none: use one of {known}, or `templateFile`"))
                );
            }
        }
        (None, Some(file)) => Template::File(check.folder.join(file), raw.markup.unwrap_or_default()),
        (None, None) => return Err(check.value(of("template"), "is missing: write `template` or `templateFile`")),
        (Some(_), Some(_)) => {
            return Err(check.value(of("template"), "stands beside `templateFile`: remove one of them"));
        }
    };
    let mut headers = Vec::new();
    let files = raw.header_files.into_iter().map(|(name, path)| (name, Secret::File(check.folder.join(path))));
    for (name, value) in raw.headers.into_iter().map(|(name, value)| (name, Secret::Text(value))).chain(files) {
        let is_value = !matches!(&value, Secret::Text(text) if HeaderValue::from_str(text).is_err());
        if HeaderName::from_bytes(name.as_bytes()).is_err() || !is_value {
            return Err(check.value(of("headers"), format!("`{name}` is no header, or its value is none")));
        }
        headers.push((name, value));
    }
    if let Secret::Text(text) = &url
        && let Some(what) = shown_to_others(text, &url, &headers)
    {
        return Err(check.value(of("url"), what));
    }
    let attempts = check.within(&of("attempts"), raw.attempts.unwrap_or(ATTEMPTS), 1, 10)?;
    Ok(Receiver {
        name: raw.name.unwrap_or_else(|| format!("{stream}-{at}")),
        template,
        url,
        ca_file: raw.ca_file.map(|path| check.folder.join(path)),
        priority: raw.priority.unwrap_or(PRIORITY),
        headers,
        payload: raw.payload.into_iter().collect(),
        blocking: raw.fail_if_alert_sending_fails,
        timeout: check.positive(&of("timeout"), raw.timeout, TIMEOUT)?,
        attempts: u32::try_from(attempts).unwrap_or(1),
        queue: check.within(&of("queue"), raw.queue.unwrap_or(QUEUE), 1, 100_000)?,
        collapse: raw.collapse.map(|span| span.0).filter(|span| !span.is_zero()),
    })
}

/// The first secret from a file that would be sent without TLS to `address`, so that others on the network could read
/// it; `None` if there is none.
pub fn shown_to_others(address: &str, url: &Secret, headers: &[(String, Secret)]) -> Option<&'static str> {
    let uri = address.parse::<Uri>().ok()?;
    let from_file = |secret: &Secret| matches!(secret, Secret::File(_));
    if keeps_secrets(uri.scheme_str() == Some("https"), uri.host().unwrap_or_default()) {
        None
    } else if headers.iter().any(|(_, value)| from_file(value)) {
        Some("would show the headers of `headerFiles` to everybody on the way: write https://")
    } else {
        from_file(url).then_some("is kept in a file, and would be shown to everybody on the way: write https://")
    }
}

/// Checks the address of a receiver, which must have scheme, host and path.
pub fn address(text: &str) -> Result<Uri, String> {
    let remedy = "write it as https://host/path";
    let uri: Uri = text.parse().map_err(|error| format!("is no URL ({error}): {remedy}"))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(_)) if uri.authority().is_some_and(|one| !one.as_str().contains('@')) => Ok(uri),
        (Some("http" | "https"), Some(_)) => Err("has a user in it: write a header `Authorization`".into()),
        _ => Err(format!("is no URL of HTTP: {remedy}")),
    }
}
