//! Recognizes secrets in texts and masks them.
//!
//! Run records are kept and shared, and environment variables and arguments of a subject may contain passwords. Only a
//! name shows that its value is secret: a value is masked if its name looks secret. A masked harmless value is better
//! than a secret that is not masked. Does no I/O.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

pub(crate) const MASK: &str = "***";
/// Words in names whose values are secret, in upper or lower case.
const SECRET: [&str; 9] = ["token", "secret", "passw", "passphrase", "credential", "key", "auth", "cookie", "bearer"];

/// `name=value` and `name: value` in a text, with a name that looks secret.
static ASSIGNED: LazyLock<Regex> = LazyLock::new(|| {
    let names = SECRET.join("|");
    let pattern = format!(r#"(?i)([\w.-]*(?:{names})[\w.-]*"?(?:=|:\s+))("[^"]*"|'[^']*'|[^\s&;,"'}}]+)"#);
    Regex::new(&pattern).expect("a constant expression")
});
/// User and password before the host of a URL.
static USER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)([a-z][a-z0-9+.-]*://)[^/?#\s]*@").expect("a constant expression"));
/// The credentials of an `Authorization` header.
static SCHEME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)\b(bearer|basic)\s+[\w.+/=~-]{4,}").expect("a constant expression"));

/// Whether the value of this name counts as secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET.iter().any(|part| name.contains(part))
}

pub(crate) fn masked(text: &str) -> String {
    let text = SCHEME.replace_all(text, format!("$1 {MASK}"));
    let text = USER.replace_all(&text, format!("${{1}}{MASK}@"));
    ASSIGNED.replace_all(&text, format!("${{1}}{MASK}")).into_owned()
}

/// Arguments of a command with masked secrets: `--token=…` and `--token …`, URLs with a password.
pub(crate) fn arguments(arguments: &[String]) -> Vec<String> {
    let mut secret = false;
    let mask = |argument: &String| {
        let follows = std::mem::take(&mut secret);
        secret = argument.starts_with('-') && !argument.contains(['=', ' ']) && is_secret(argument);
        if follows && !argument.starts_with('-') { MASK.to_owned() } else { masked(argument) }
    };
    arguments.iter().map(mask).collect()
}

/// A scenario for the record, with masked secrets of its subject.
pub(crate) fn scenario(mut scenario: Value) -> Value {
    let churn = scenario.get_mut("churn").into_iter().flat_map(|churn| match churn {
        Value::Array(sections) => sections.iter_mut().collect::<Vec<_>>(),
        one => vec![one],
    });
    for companion in churn.filter_map(|section| section.get_mut("with")?.as_array_mut()).flatten() {
        if companion["kind"] == "Secret" {
            for data in ["data", "stringData"] {
                let values = companion.get_mut(data).and_then(Value::as_object_mut).into_iter().flatten();
                values.for_each(|(_, value)| *value = MASK.into());
            }
        }
    }
    let Some(subject) = scenario.get_mut("subject").and_then(Value::as_object_mut) else { return scenario };
    subject.retain(|_, value| !value.is_null());
    for (_, kind) in subject {
        let Some(settings) = kind.as_object_mut() else { continue };
        given(settings);
        let processes = settings.get_mut("processes").and_then(Value::as_array_mut).into_iter().flatten();
        processes.filter_map(Value::as_object_mut).for_each(given);
    }
    scenario
}

/// Masks secrets in the settings of one of the subject's processes.
fn given(settings: &mut serde_json::Map<String, Value>) {
    settings.retain(|_, value| !value.is_null());
    for (key, value) in settings {
        match (key.as_str(), value) {
            ("run", Value::Array(run)) => {
                let texts: Vec<String> = run.iter().map(|part| part.as_str().unwrap_or_default().to_owned()).collect();
                *run = arguments(&texts).into_iter().map(Value::String).collect();
            }
            ("env" | "settings", value) => values(value),
            _ => {}
        }
    }
}

/// Masks values whose names look secret, and secrets in all other texts.
fn values(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                match value {
                    Value::String(_) | Value::Number(_) if is_secret(name) => *value = MASK.into(),
                    value => values(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(values),
        Value::String(text) => *text = masked(text),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_look_secret_are() {
        for name in [
            "TOKEN",
            "GITHUB_TOKEN",
            "clientSecret",
            "DB_PASSWORD",
            "MYSQL_PASSWD",
            "API_KEY",
            "apikey",
            "AWS_ACCESS_KEY_ID",
            "Credentials",
            "PROXY_AUTH",
            "authorization",
            "SSH_PASSPHRASE",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "RUST_LOG", "LONGHAUL_WATCH", "user", "PORT"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn arguments_keep_all_but_their_secrets() {
        let given = [
            "./controller",
            "--token=abc",
            "--password",
            "hunter2",
            "--verbose",
            "--url",
            "https://user:pw@a.test/x?y=1",
            "--header",
            "Authorization: Bearer abcdef",
            "-c",
            "DB_PASSWORD='a b' run --port=1",
            "--api-key",
            "--next",
            "https://auth.example.test:8443/keys",
        ];
        let shown = [
            "./controller",
            "--token=***",
            "--password",
            "***",
            "--verbose",
            "--url",
            "https://***@a.test/x?y=1",
            "--header",
            "Authorization: ***",
            "-c",
            "DB_PASSWORD=*** run --port=1",
            "--api-key",
            "--next",
            "https://auth.example.test:8443/keys",
        ];
        let masked = arguments(&given.map(str::to_owned));
        assert_eq!(masked[..8], shown[..8]);
        assert!(masked[8].starts_with("Authorization: ***") && !masked[8].contains("abcdef"), "{}", masked[8]);
        assert_eq!(masked[9..], shown[9..]);
    }

    #[test]
    fn a_recorded_scenario_has_no_secrets() {
        let recorded = scenario(json!({
            "controlPlane": {"authorization": "rbac"},
            "churn": {"resource": "a/v1", "with": [{"kind": "Secret", "stringData": {"login": "abc"}}]},
            "subject": {
                "command": {
                    "run": ["run", "--token=abc"],
                    "processes": [{"name": "a", "run": ["--token=abc"], "env": {"TOKEN": "abc"}}],
                    "env": {"GITHUB_TOKEN": "abc", "MODE": "fast", "URL": "https://u:abc@h/"},
                },
                "service": {"settings": {"resolve": {"registries": [{"host": "a", "password": "abc", "token": 7}]}}},
            },
        }));
        let text = recorded.to_string();
        assert!(!text.contains("abc") && !text.contains('7'), "{text}");
        assert_eq!(recorded["subject"]["command"]["env"]["MODE"], "fast");
        assert_eq!(recorded["controlPlane"]["authorization"], "rbac");
    }
}
