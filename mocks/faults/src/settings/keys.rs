//! Which key belongs to which fault, and what its value may be.
//!
//! Owns the table. A key that a fault does not understand is refused with the faults that do.

use std::collections::BTreeMap;

use super::{Code, Error, ErrorBody, Family, Fault, Form, How, Lasting, Name, On};

/// The largest buffer of `hold-buffer`: what one stream may hold in memory.
const HELD_MAX: units::Bytes = units::Bytes(16 * 1024 * 1024);

/// Which faults a key belongs to.
enum Owners {
    Names(&'static [Name]),
    /// Words for the message, and the rule.
    Rule(&'static str, fn(Name) -> bool),
}

use Owners::{Names, Rule};

/// Refuses keys that do not belong to the fault, and values that it cannot use.
pub(super) fn check(fault: &Fault) -> Result<(), Error> {
    for (key, given, owners) in choosing(fault).into_iter().chain(parameters(fault)) {
        if given && !owners.include(fault.name) {
            return Err(Error::NotItsKey { key, fault: fault.name.as_str(), owners: owners.words() });
        }
    }
    values(fault)?;
    codes(fault)
}

/// Refuses a list of faults whose labels are not unique, or where one waits for a fault that cannot come.
pub fn check_all(faults: &[Fault]) -> Result<(), (usize, Error)> {
    let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, fault) in faults.iter().enumerate() {
        fault.check().map_err(|error| (index, error))?;
        if let Some(id) = fault.id.as_deref()
            && by_id.insert(id, index).is_some()
        {
            return Err((index, Error::IdTwice { id: id.to_owned() }));
        }
    }
    for (index, fault) in faults.iter().enumerate() {
        let mut at = fault;
        for _ in 0..=faults.len() {
            let Some(when) = &at.when else { break };
            let Some(next) = by_id.get(when.hit.as_str()) else {
                let known: Vec<String> = by_id.keys().map(|id| format!("`{id}`")).collect();
                let why = if known.is_empty() {
                    "but no fault has an `id`: give one to the fault that is meant".to_owned()
                } else {
                    format!("which no fault has as its `id`: there is {}", known.join(", "))
                };
                return Err((index, Error::When { id: when.hit.clone(), why }));
            };
            at = &faults[*next];
            if *next == index {
                let why = "which waits for this one: neither would ever begin".to_owned();
                return Err((
                    index,
                    Error::When { id: fault.when.as_ref().map_or_else(String::new, |w| w.hit.clone()), why },
                ));
            }
        }
    }
    Ok(())
}

impl Owners {
    fn include(&self, name: Name) -> bool {
        match self {
            Names(names) => names.contains(&name),
            Rule(_, rule) => rule(name),
        }
    }

    fn words(&self) -> String {
        match self {
            Names(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_str())).collect();
                match names.split_last() {
                    Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
                    _ => names.concat(),
                }
            }
            Rule(words, _) => (*words).to_owned(),
        }
    }
}

/// Faults that choose watches: the stream verbs, and the connection verbs that look for connections with a watch.
fn chooses_watches(name: Name) -> bool {
    name.family() == Family::Watches || matches!(name, Name::Freeze | Name::NoPong | Name::Goaway)
}

/// Faults that choose requests, of which watches are one kind.
fn chooses_requests(name: Name) -> bool {
    name.family() == Family::Requests || chooses_watches(name)
}

/// Faults that choose requests to the registry.
fn asks_registry(name: Name) -> bool {
    name.family() == Family::Registry && name != Name::RegistryDown
}

/// Faults whose n-th request, watch or connection may be meant.
fn counts_turns(name: Name) -> bool {
    name.family() != Family::Server
}

type Row = (&'static str, bool, Owners);

/// The keys that choose what is hit.
fn choosing(fault: &Fault) -> Vec<Row> {
    let requests = || Rule("faults on requests and watches", chooses_requests);
    let anywhere = |name: Name| !matches!(name.family(), Family::Network | Family::Server | Family::Registry);
    let resources = |name: Name| chooses_requests(name) || name == Name::Rewind;
    let agents = |name: Name| chooses_requests(name) || name == Name::Rewind || asks_registry(name);
    vec![
        ("resource", fault.resource.is_some(), Rule("faults on requests and watches", resources)),
        ("userAgent", fault.user_agent.is_some(), Rule("faults on requests and watches", agents)),
        ("repository", fault.repository.is_some(), Rule("faults on requests to the registry", asks_registry)),
        ("on", fault.on.is_some(), Rule("faults on requests", |name| name.family() == Family::Requests)),
        ("query", fault.query.is_some(), requests()),
        ("nth", fault.nth.is_some(), Rule("faults on requests, watches and connections", counts_turns)),
        ("endpoint", fault.endpoint.is_some(), Rule("faults on requests, watches and connections", anywhere)),
        ("afterEvents", fault.after_events.is_some(), Rule("faults on watches", chooses_watches)),
    ]
}

/// The parameters, in the order of the settings.
fn parameters(fault: &Fault) -> Vec<Row> {
    let f = fault;
    vec![
        ("form", f.form.is_some(), Names(&[Name::Watch410, Name::TooLarge])),
        ("newStreams", f.new_streams.is_some(), Names(&[Name::SilentWatch])),
        ("heals", f.heals.is_some(), Names(&[Name::SilentWatch, Name::Freeze, Name::NoPong, Name::NetFreeze])),
        ("change", f.change.is_some(), Names(&[Name::EventDropped])),
        ("age", f.age.is_some(), Names(&[Name::Rewind, Name::StaleView])),
        ("newer", f.newer.is_some(), Names(&[Name::Rewind])),
        ("watches", f.watches.is_some(), Names(&[Name::Rewind])),
        ("status", f.status.is_some(), Names(&[Name::HttpError, Name::RegistryError])),
        ("retryAfter", f.retry_after.is_some(), Names(&[Name::HttpError, Name::RegistryError])),
        ("reason", f.reason.is_some(), Names(&[Name::HttpError, Name::ErrorEvent])),
        ("body", f.body.is_some(), Names(&[Name::HttpError])),
        (
            "delay",
            f.delay.is_some(),
            Names(&[
                Name::DelayAnswer,
                Name::HoldHeaders,
                Name::EventDelayed,
                Name::InitialEndHeld,
                Name::NetLatency,
                Name::RegistrySlow,
            ]),
        ),
        ("jitter", f.jitter.is_some(), Names(&[Name::NetLatency])),
        ("stale", f.stale.is_some(), Names(&[Name::Empty200])),
        ("behind", f.behind.is_some(), Names(&[Name::StaleView])),
        ("connections", f.connections.is_some(), Names(&[Name::StaleView])),
        ("always", f.always.is_some(), Names(&[Name::TooLarge])),
        ("items", f.items.is_some(), Names(&[Name::ForcedPages])),
        ("keep", f.keep.is_some(), Names(&[Name::Compact])),
        ("contentType", f.content_type.is_some(), Names(&[Name::WrongContentType])),
        ("midLine", f.mid_line.is_some(), Names(&[Name::WatchEof])),
        ("code", f.code.is_some(), Names(&[Name::ErrorEvent, Name::WatchReset, Name::Goaway])),
        ("then", f.then.is_some(), Names(&[Name::ErrorEvent])),
        ("events", f.events.is_some(), Names(&[Name::EventRepeated, Name::MergeLines])),
        ("bytes", f.bytes.is_some(), Names(&[Name::Split, Name::HoldBuffer, Name::NetCut])),
        ("pause", f.pause.is_some(), Names(&[Name::Split])),
        ("headers", f.headers.is_some(), Names(&[Name::HoldBuffer])),
        ("rate", f.rate.is_some(), Names(&[Name::SlowDrip, Name::NetBandwidth, Name::RegistrySlow])),
        ("newConnections", f.new_connections.is_some(), Names(&[Name::Freeze, Name::NetFreeze, Name::NetLoss])),
        ("silent", f.silent.is_some(), Names(&[Name::NoPong])),
        ("drain", f.drain.is_some(), Names(&[Name::Goaway])),
        ("how", f.how.is_some(), Names(&[Name::RefuseConnections, Name::NetRefuse, Name::NetCut, Name::RegistryDown])),
        ("streams", f.streams.is_some(), Names(&[Name::MaxStreams])),
        ("kind", f.kind.is_some(), Names(&[Name::Certificate])),
        ("direction", f.direction.is_some(), Names(&[Name::NetFreeze, Name::NetLoss])),
    ]
}

/// Values that no fault could use.
fn values(fault: &Fault) -> Result<(), Error> {
    if let Some(given) = fault.probability.filter(|p| !(0.0..=1.0).contains(p)) {
        return Err(Error::Probability { given: given.to_string() });
    }
    if fault.count == Some(0) {
        return Err(Error::NoCount);
    }
    if fault.at.is_some() && fault.when.is_some() {
        return Err(Error::TwoBeginnings);
    }
    let wrong = |key, given: String, instead| Err(Error::Value { key, given, instead });
    if let Some(nth) = fault.nth.filter(|nth| nth.from == 0 || nth.to.is_some_and(|to| to < nth.from)) {
        let given = format!("from {} to {}", nth.from, nth.to.map_or("the end".to_owned(), |to| to.to_string()));
        return wrong(
            "nth",
            given,
            "requests are counted from 1, and a range goes upwards, for example `{from: 2, to: 7}`",
        );
    }
    if let Some(status) = fault.status.filter(|status| !(400..=599).contains(status)) {
        return wrong("status", status.to_string(), "write the status of an error, 400 to 599");
    }
    if fault.body == Some(ErrorBody::Empty) && fault.reason.is_some() {
        return wrong("reason", "set".to_owned(), "an empty body has none: leave it out, or write `body: status`");
    }
    let zero = [
        ("items", fault.items == Some(0)),
        ("events", fault.events == Some(0)),
        ("bytes", fault.bytes == Some(units::Bytes(0))),
        ("rate", fault.rate.is_some_and(|rate| rate.bytes_per_second == 0)),
        ("streams", fault.streams == Some(0)),
    ];
    if let Some((key, _)) = zero.into_iter().find(|(_, zero)| *zero) {
        return wrong(key, "0".to_owned(), "write 1 or more");
    }
    if fault.name == Name::HoldBuffer && fault.bytes.is_some_and(|bytes| bytes > HELD_MAX) {
        return wrong("bytes", format!("more than {HELD_MAX}"), "no proxy has a buffer as large as that");
    }
    if fault.behind.is_some() && fault.age.is_some() {
        return wrong("age", "set beside `behind`".to_owned(), "write one of the two");
    }
    if fault.name == Name::HoldHeaders && fault.on() != On::Watch {
        return wrong("on", "not `watch`".to_owned(), "only watches have headers that can be held; see `delay-answer`");
    }
    if fault.lasting() == Lasting::For(units::Span::default()) {
        return wrong("for", "0s".to_owned(), "leave it out for one moment, or write how long");
    }
    if let Some(media) = fault.content_type.as_deref().filter(|media| http::HeaderValue::from_str(media).is_err()) {
        return wrong("contentType", format!("`{media}`"), "write a media type such as `text/html`");
    }
    Ok(())
}

/// Keys that take different words for different faults.
fn codes(fault: &Fault) -> Result<(), Error> {
    let wrong = |key, given: String, instead| Err(Error::Value { key, given, instead });
    match (fault.name, fault.form) {
        (Name::Watch410, Some(form @ (Form::Modern | Form::Old))) => {
            return wrong("form", format!("{form:?}").to_lowercase(), "write `http`, `stream` or `both`");
        }
        (Name::TooLarge, Some(form @ (Form::Http | Form::Stream | Form::Both))) => {
            return wrong("form", format!("{form:?}").to_lowercase(), "write `modern` or `old`");
        }
        _ => {}
    }
    match (fault.name, fault.code) {
        (Name::ErrorEvent, Some(Code::Http2(_))) => {
            return wrong("code", "a word".to_owned(), "write the status as a number, for example `410`");
        }
        (Name::ErrorEvent, Some(Code::Status(status))) if !(400..=599).contains(&status) => {
            return wrong("code", status.to_string(), "write the status of an error, 400 to 599");
        }
        (Name::WatchReset | Name::Goaway, Some(Code::Status(status))) => {
            return wrong("code", status.to_string(), "write an HTTP/2 error, for example `internal-error`");
        }
        _ => {}
    }
    if fault.name == Name::NetCut && fault.how == Some(How::Hang) {
        return wrong("how", "hang".to_owned(), "a cut is `reset` or `close`");
    }
    Ok(())
}
