//! Refuses keys of earlier versions whose effect is a fault now. The message shows the same effect in `faults`.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::subject::flow;

/// A key of an earlier version, and the fault that replaces it.
struct Moved {
    section: &'static str,
    key: &'static str,
    fault: &'static str,
    /// The earlier key, the fault's key, and the earlier default.
    keys: &'static [(&'static str, &'static str, &'static str)],
}

const MOVED: [Moved; 8] = [
    Moved {
        section: "subject",
        key: "restarts",
        fault: "subject-restart",
        keys: &[("at", "at", "3s"), ("count", "count", ""), ("every", "pause", ""), ("lag", "lag", "")],
    },
    Moved {
        section: "subject",
        key: "certificates",
        fault: "certificate-rotation",
        keys: &[("every", "at", ""), ("every", "pause", ""), ("valid", "valid", "")],
    },
    Moved {
        section: "subject",
        key: "trustedKeys",
        fault: "trusted-keys",
        keys: &[("every", "at", ""), ("every", "pause", "")],
    },
    Moved {
        section: "subject",
        key: "validatorRestarts",
        fault: "validator-restart",
        keys: &[("at", "at", "3s"), ("count", "count", ""), ("every", "pause", ""), ("away", "away", "")],
    },
    Moved {
        section: "subject",
        key: "validatorDelay",
        fault: "validator-delay",
        keys: &[("at", "at", ""), ("for", "for", ""), ("by", "delay", "")],
    },
    Moved {
        section: "sharedCache",
        key: "away",
        fault: "shared-cache-away",
        keys: &[("at", "at", ""), ("for", "for", "")],
    },
    Moved { section: "sharedCache", key: "forges", fault: "shared-cache-forges", keys: &[] },
    Moved {
        section: "subject",
        key: "drift",
        fault: "children-drift",
        keys: &[
            ("at", "at", ""),
            ("afterLoad", "afterLoad", ""),
            ("resource", "children", ""),
            ("share", "share", ""),
            ("edit", "edit", ""),
        ],
    },
];

/// The place of the first key that is a fault now (section and key), and the message for the author of the scenario.
pub(super) fn refused(text: &str) -> Option<(&'static str, &'static str, String)> {
    let file: Map<String, Value> = serde_saphyr::from_str(text).ok()?;
    let mut found = Vec::new();
    let mut lines = String::new();
    for moved in &MOVED {
        for value in values(&file, moved) {
            if !found.contains(&moved.key) {
                found.push(moved.key);
            }
            let _ = writeln!(lines, "  - {}", moved.fault(&value));
        }
    }
    let first = MOVED.iter().find(|moved| found.first() == Some(&moved.key))?;
    let names: Vec<String> = found.iter().map(|key| format!("`{key}`")).collect();
    let names = names.join(" and ");
    let (are, them) = if found.len() == 1 { ("is a fault", "it") } else { ("are faults", "them") };
    let text = format!(
        "{names} {are} now, with a time, hits and canaries. Leave {them} out here, and write\n\nfaults:\n{lines}"
    );
    Some((first.section, first.key, text))
}

/// The values of a moved key: in its section, in the keys of the subject's kind, or in the subject's children. Of a
/// list, each item is a value.
fn values(file: &Map<String, Value>, moved: &Moved) -> Vec<Value> {
    let Some(section) = file.get(moved.section).and_then(Value::as_object) else { return Vec::new() };
    let lists = section.values().filter_map(Value::as_array).flatten();
    let within = section.values().chain(lists).filter_map(Value::as_object);
    let mut values = Vec::new();
    for keys in std::iter::once(section).chain(within) {
        match keys.get(moved.key) {
            Some(Value::Array(items)) => values.extend(items.iter().map(|item| of_kind(item, keys))),
            Some(value) => values.push(value.clone()),
            None => {}
        }
    }
    values
}

/// One change of children, with the resource of the children.
fn of_kind(item: &Value, children: &Map<String, Value>) -> Value {
    let mut item = item.clone();
    if let (Some(keys), Some(resource)) = (item.as_object_mut(), children.get("resource")) {
        keys.insert("resource".to_owned(), resource.clone());
    }
    item
}

impl Moved {
    /// The fault as one line of YAML.
    fn fault(&self, value: &Value) -> String {
        let mut text = format!("{{name: {}", self.fault);
        for (was, key, default) in self.keys {
            let given = value.get(was).map(flow).or_else(|| (!default.is_empty()).then(|| (*default).to_owned()));
            if let Some(given) = given {
                let _ = write!(text, ", {key}: {given}");
            }
        }
        text + "}"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        refused(text).map_or_else(String::new, |(section, key, text)| format!("{section}.{key}|{text}"))
    }

    #[test]
    fn a_moved_key_is_refused_with_the_fault_that_replaces_it() {
        let told = message("subject: {service: {restarts: {count: 20, every: 3s, lag: 1ms}}}");
        let expected = "subject.restarts|`restarts` is a fault now, with a time, hits and canaries. Leave it out here, and write\n\n\
                        faults:\n  - {name: subject-restart, at: 3s, count: 20, pause: 3s, lag: 1ms}\n";
        assert_eq!(told, expected);
        assert_eq!(message("subject: {service: {}}\nfaults: [{name: subject-restart, at: 3s}]"), "");
    }

    /// The faults in the messages are valid faults.
    #[test]
    fn the_new_notation_is_read() {
        for text in [
            "subject: {command: {run: [x], restarts: {count: 1, at: 15s, every: 5s}}}",
            "subject: {service: {certificates: {every: 15s, valid: 40s}, trustedKeys: {every: 8s}}}",
            "subject: {command: [x], children: {resource: configmaps/v1, by: owner, drift: [{at: 1s, share: 1}, {afterLoad: 1s, share: 0.3, edit: {data: {a: b}}}]}}",
            "subject: {command: [x], children: [{resource: configmaps/v1, by: owner, drift: [{at: 1s, share: 1}]}]}",
            "sharedCache: {away: {at: 10s, for: 12s}, forges: true}",
            "subject: {service: {validatorRestarts: {count: 2, every: 12s, away: 7s}, validatorDelay: {at: 8s, for: 10s, by: 9s}}}",
        ] {
            let (_, _, message) = refused(text).unwrap();
            let (_, lines) = message.split_once("faults:\n").unwrap();
            let faults: Vec<mock_faults::Fault> = serde_saphyr::from_str(lines).unwrap();
            mock_faults::check_all(&faults).unwrap();
            assert!(!faults.is_empty(), "{message}");
        }
    }
}
