//! Refuses subjects in the notation of earlier versions, in which `kind` or `webhook` stands beside the other keys. The
//! error message shows the same subject in the new notation.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::keys;

/// The first key of the earlier notation in the text, and the section `subject` in the new notation; `None` if the text
/// has no such key.
pub(in crate::scenario) fn rewritten(text: &str) -> Option<(String, String)> {
    let file: Map<String, Value> = serde_saphyr::from_str(text).ok()?;
    let written = file.get("subject")?.as_object()?;
    let kinds = keys();
    let told = written.get("kind").and_then(Value::as_str);
    let (kind, own) =
        kinds.iter().find(|(name, _)| told.map_or(written.contains_key(**name), |told| told == **name))?;
    let belongs = |key: &str| own.iter().any(|own| own == key);
    let is_stray = |key: &&String| matches!(key.as_str(), "commands" | "webhook") || (key != kind && belongs(key));
    let stray = written.keys().find(|key| *key == "kind").or_else(|| written.keys().find(is_stray))?;
    let (mut settings, mut shared) = (Map::new(), Map::new());
    for (key, value) in written {
        match (key.as_str(), value) {
            ("kind", _) => {}
            (key, Value::Object(map)) if key == *kind => settings.extend(map.clone()),
            ("webhook", Value::Object(map)) => webhook(kind, map, &mut settings, &mut shared),
            ("command", value) => drop(settings.insert("run".to_owned(), value.clone())),
            ("commands", Value::Array(all)) => {
                settings.insert("processes".to_owned(), all.iter().map(process).collect());
            }
            (key, value) if belongs(key) => drop(settings.insert(key.to_owned(), value.clone())),
            // Its registration settings may already stand there.
            (key, value) => drop(shared.entry(key).or_insert_with(|| value.clone())),
        }
    }
    let mut lines = "subject:\n".to_owned();
    match (settings.len(), settings.get("run")) {
        (1, Some(run)) => line(&mut lines, 2, kind, run),
        (0, _) => line(&mut lines, 2, kind, &json!({})),
        _ => {
            let _ = writeln!(lines, "  {kind}:");
            settings.iter().for_each(|(key, value)| line(&mut lines, 4, key, value));
        }
    }
    shared.iter().for_each(|(key, value)| line(&mut lines, 2, key, value));
    Some((stray.clone(), lines))
}

/// Splits the earlier `webhook` section: `path` and `port` move to the keys of the subject's kind, and the rest to
/// `install`. If `install` already names a project's own configurations, it is not changed.
fn webhook(kind: &str, keys: &Map<String, Value>, settings: &mut Map<String, Value>, shared: &mut Map<String, Value>) {
    let (place, registered): (Map<_, _>, Map<_, _>) =
        keys.clone().into_iter().partition(|(key, _)| matches!(key.as_str(), "path" | "port"));
    match kind {
        "command" if !place.is_empty() => drop(settings.insert("serves".to_owned(), place.into())),
        "attach" if !place.is_empty() => {
            let port = place.get("port").and_then(Value::as_u64).unwrap_or(9443);
            let path = place.get("path").and_then(Value::as_str).unwrap_or("/");
            settings.entry("url").or_insert_with(|| format!("https://127.0.0.1:{port}{path}").into());
        }
        // The service has its own path, and a Deployment that of its Service.
        _ => {}
    }
    if !registered.is_empty() && !shared.get("install").is_some_and(Value::is_object) {
        shared.insert("install".to_owned(), json!({"webhook": registered}));
    }
}

fn process(one: &Value) -> Value {
    let mut one = one.clone();
    if let Some(map) = one.as_object_mut()
        && let Some(words) = map.remove("command")
    {
        map.insert("run".to_owned(), words);
    }
    one
}

fn line(lines: &mut String, indent: usize, key: &str, value: &Value) {
    let _ = writeln!(lines, "{:indent$}{key}: {}", "", flow(value));
}

/// A JSON value as YAML on one line.
pub(in crate::scenario) fn flow(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let all: Vec<String> = map.iter().map(|(key, value)| format!("{}: {}", plain(key), flow(value))).collect();
            format!("{{{}}}", all.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) => plain(text),
        other => other.to_string(),
    }
}

/// A text as YAML: without quotes if YAML reads back the same text, otherwise with quotes.
fn plain(text: &str) -> String {
    let is_word = text.starts_with(|c: char| c.is_ascii_alphanumeric() || "/.".contains(c))
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
        && serde_saphyr::from_str::<Value>(text).is_ok_and(|read| read == text);
    if is_word { text.to_owned() } else { json!(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(subject: &str) -> String {
        rewritten(&format!("name: x\nsubject: {subject}\n"))
            .map(|(key, text)| format!("{key}|{text}"))
            .unwrap_or_default()
    }

    #[test]
    fn what_was_flat_is_told_as_it_is_now() {
        assert_eq!(
            rewrite("{kind: service, witness: {kind: http}}"),
            "kind|subject:\n  service: {}\n  witness: {kind: http}\n"
        );
        assert_eq!(
            rewrite("{kind: command, command: [./x, '--a=1', '7']}"),
            "kind|subject:\n  command: [./x, \"--a=1\", \"7\"]\n"
        );
        assert_eq!(
            rewrite("{kind: command, command: [x], env: {A: 'true'}, startTimeout: 2s}"),
            "kind|subject:\n  command:\n    env: {A: \"true\"}\n    run: [x]\n  startTimeout: 2s\n"
        );
        assert_eq!(
            rewrite("{kind: command, commands: [{name: a, command: [x]}]}"),
            "kind|subject:\n  command:\n    processes: [{name: a, run: [x]}]\n"
        );
        assert_eq!(rewrite("{kind: attach, pid: 7, world: a}"), "kind|subject:\n  attach:\n    pid: 7\n  world: a\n");
        assert_eq!(
            rewrite("{command: [x], role: webhook}"),
            "role|subject:\n  command:\n    role: webhook\n    run: [x]\n"
        );
        assert_eq!(rewrite("{command: {run: [x], role: webhook}, worlds: 1}"), "", "that is another mistake");
        assert_eq!(
            rewrite("{command: [x], install: webhook, webhook: {path: /a, port: 1, timeout: 2s}}"),
            "webhook|subject:\n  command:\n    run: [x]\n    serves: {path: /a, port: 1}\n  install: {webhook: {timeout: 2s}}\n"
        );
        assert_eq!(
            rewrite("{attach: {pid: 7}, webhook: {path: /a, port: 1}}"),
            "webhook|subject:\n  attach:\n    pid: 7\n    url: \"https://127.0.0.1:1/a\"\n"
        );
        assert_eq!(rewrite("{service: {}, webhook: {path: /a}}"), "webhook|subject:\n  service: {}\n");
    }
}
