//! The configuration in effect: defaults replaced by the settings of the file, with secrets masked.
//!
//! The defaults are read from `example.yaml`. A test compares `example.yaml` with the code, so new keys are shown
//! without a change in this module.

use std::path::Path;

use serde_json::{Map, Value};

use super::{Error, is_empty, is_known, parse};

/// The text of a configuration file with every key at its default.
const EXAMPLE: &str = include_str!("../../example.yaml");
/// The text that is printed instead of a secret.
const MASK: &str = "(masked)";
/// Keys whose values are masked wherever they occur. Paths of files with secrets are shown.
const SECRET_KEYS: [&str; 4] = ["password", "secret", "token", "auth"];
/// The configuration in effect for the file at `path`, as YAML.
pub fn show(path: &Path) -> Result<String, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.into(), source })?;
    let config = parse(&text, path)?;
    let written = values(&text, path)?;
    let mut effective = values(EXAMPLE, Path::new("the built-in example"))?;
    effective.retain(|key, _| is_known(key));
    config.show(&mut effective);
    let mut effective = Value::Object(effective);
    lay_over(&mut effective, Value::Object(written));
    mask(&mut effective);
    if let Some(alerts) = effective.get_mut("alerting") {
        mask_alerts(alerts);
    }
    serde_saphyr::to_string(&effective).map_err(|error| cannot_show(path, &error))
}

/// Parses YAML into plain values. An empty text gives an empty map.
fn values(text: &str, path: &Path) -> Result<Map<String, Value>, Error> {
    if is_empty(text) {
        return Ok(Map::new());
    }
    match serde_saphyr::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Ok(Map::new()),
        Err(error) => Err(cannot_show(path, &error)),
    }
}

fn cannot_show(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Value { path: path.into(), key: "the file".into(), what: format!("cannot be shown: {error}") }
}

/// Merges `above` into `below`: maps are merged key by key; other values of `below` are replaced.
fn lay_over(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                lay_over(below.entry(key).or_insert(Value::Null), value);
            }
        }
        // A section that is written and empty keeps its defaults.
        (Value::Object(_), Value::Null) => {}
        (below, above) => *below = above,
    }
}

/// Masks the addresses and headers of alert receivers: addresses of chats contain a token, and headers often hold
/// secrets.
fn mask_alerts(alerts: &mut Value) {
    let streams = alerts.as_object_mut().into_iter().flat_map(Map::values_mut);
    let receivers = streams.filter_map(|stream| stream.get_mut("receivers")?.as_array_mut()).flatten();
    for receiver in receivers.filter_map(Value::as_object_mut) {
        if let Some(Value::String(url)) = receiver.get_mut("url") {
            let end = url
                .split_once("://")
                .map_or(0, |(scheme, rest)| scheme.len() + "://".len() + rest.find(['/', '?']).unwrap_or(rest.len()));
            if !matches!(&url[end..], "" | "/") {
                *url = format!("{}/{MASK}", &url[..end]);
            }
        }
        let headers = receiver.get_mut("headers").and_then(Value::as_object_mut);
        for value in headers.into_iter().flat_map(Map::values_mut) {
            *value = MASK.into();
        }
    }
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if value.is_string() && SECRET_KEYS.iter().any(|secret| key.eq_ignore_ascii_case(secret)) {
                    *value = MASK.into();
                } else {
                    mask(value);
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(mask),
        Value::String(text) if text.contains("PRIVATE KEY-----") => MASK.clone_into(text),
        Value::String(text) => {
            // A password in a URL: `scheme://user:password@host`.
            let Some((scheme, rest)) = text.split_once("://") else { return };
            let end = rest.find('/').unwrap_or(rest.len());
            let Some((login, host)) = rest[..end].rsplit_once('@') else { return };
            let user = login.split_once(':').map_or(login, |(user, _)| user);
            *text = format!("{scheme}://{user}:{MASK}@{host}{}", &rest[end..]);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service.yaml");
        std::fs::write(&path, text).unwrap();
        show(&path).unwrap()
    }

    /// The shown text parses to the same configuration as the original file.
    #[test]
    fn what_is_shown_means_what_was_written() {
        for text in [
            "",
            "health: {listen: \"[::1]:1\"}\nwatch:\nlog: {level: debug}\n",
            "admission: {listen: \"[::]:1\", certificate: c, key: k, maxInFlight: 8}\n\
             resolve: {cache: {ttl: 1s}, registries: [{host: h, username: u, passwordFile: f}]}\n",
        ] {
            let path = Path::new("/etc/service.yaml");
            let shown = shown(text);
            let (written, again) = (parse(text, path).unwrap(), parse(&shown, path).unwrap());
            assert_eq!(written.differences(&again), Vec::<&str>::new(), "{shown}");
            assert!(shown.contains("relistInterval: 10m"), "defaults are shown: {shown}");
        }
        assert!(
            shown("admission: {listen: \"[::]:1\", certificate: c, key: k, maxInFlight: 8}\n")
                .contains("maxInFlightPerPeer: 6")
        );
        assert!(!shown("").contains("admission"));
        #[cfg(feature = "own-certificates")]
        {
            let shown = shown("admission: {listen: \"[::]:1\", ownCertificates: {settle: 90s}, registration: {}}\n");
            parse(&shown, Path::new("/etc/service.yaml")).unwrap();
            let lines =
                ["secretName: longhaul-webhook-certificates", "settle: 90s", "leafLifetime: 604800s", "quiet: 300s"];
            assert!(lines.iter().all(|line| shown.contains(line)) && !shown.contains("tls.crt"), "{shown}");
        }
    }

    #[test]
    fn addresses_and_headers_of_alerts_are_masked() {
        let text = shown(
            "alerting:\n  reject:\n    receivers:\n    - {template: slack, url: \"https://hooks.slack.example/services/T0/B0/s3cret\"}\n    \
             - {template: opsgenie, url: \"https://api.example?key=s3cret\", headers: {Authorization: GenieKey s3cret}}\n  \
             admit: {receivers: [{template: keybase, url: \"https://plain.example/\"}]}\n",
        );
        assert!(!text.contains("s3cret") && text.contains("https://hooks.slack.example/(masked)"), "{text}");
        assert!(text.contains("https://api.example/(masked)") && text.contains("https://plain.example/"), "{text}");
        assert!(parse(&text, Path::new("/etc/service.yaml")).is_ok(), "{text}");
    }

    #[test]
    fn secrets_are_masked_and_names_of_files_are_not() {
        let mut value = json!({
            "password": "p1", "nested": [{"token": "p2", "passwordFile": "pw.txt"}],
            "proxy": "http://me:p3@proxy:3128/x", "key": "-----BEGIN PRIVATE KEY-----\np4", "plain": "https://host/a@b",
        });
        mask(&mut value);
        let text = value.to_string();
        assert!(!["p1", "p2", "p3", "p4"].iter().any(|secret| text.contains(secret)), "{text}");
        assert!(text.contains("pw.txt") && text.contains("http://me:(masked)@proxy:3128/x"), "{text}");
        assert!(text.contains("https://host/a@b"), "{text}");
    }
}
