//! `Secret`: small confidential data.

use serde_json::{Value, json};

use super::print::entries;
use super::{Causes, Generation, Kind};
use crate::fields::set;
use crate::status::Cause;

pub(super) const SECRET: Kind = Kind {
    about: "Small confidential data: keys, passwords, certificates.",
    cells: |row| vec![row.name(), row.text("/type").into(), entries(row, "/data").into(), row.age()],
    defaults,
    check,
    fixed: &["/type"],
    check_update: super::config_map::check_update,
    data: &[("data", true)],
    generation: Generation::None,
    ..Kind::of("secrets")
};

/// Moves the values of `stringData` into `data`, in base64.
fn defaults(value: &mut Value) {
    set(value, &[], "type", json!("Opaque"));
    let plain = value.as_object_mut().and_then(|object| object.remove("stringData"));
    for (key, text) in plain.as_ref().and_then(Value::as_object).into_iter().flatten() {
        let Some(object) = value.as_object_mut() else { return };
        let data = object.entry("data").or_insert_with(|| json!({}));
        if data.is_object() {
            data[key] = Value::from(base64(text.as_str().unwrap_or_default()));
        }
    }
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn check(value: &Value, causes: &mut Causes) {
    super::config_map::check_keys(value, "data", causes);
    for key in required_keys(value["type"].as_str().unwrap_or_default()) {
        if value["data"].get(*key).is_none() {
            causes.push(Cause::required(&format!("data[{key}]"), ""));
        }
    }
    check_type(value, causes);
}

/// The keys that a secret of this type must have ("Types of Secret").
fn required_keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        _ => &[],
    }
}

/// Checks the requirements of a secret's type other than keys.
fn check_type(value: &Value, causes: &mut Causes) {
    let has = |key: &str| value["data"].get(key).is_some();
    match value["type"].as_str().unwrap_or_default() {
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            causes.push(Cause::required("data[username]", ""));
            causes.push(Cause::required("data[password]", ""));
        }
        "kubernetes.io/service-account-token" => {
            let account = "/metadata/annotations/kubernetes.io~1service-account.name";
            if value.pointer(account).and_then(Value::as_str).unwrap_or_default().is_empty() {
                causes.push(Cause::required("metadata.annotations[kubernetes.io/service-account.name]", ""));
            }
        }
        "kubernetes.io/dockerconfigjson" => {
            let data = value["data"][".dockerconfigjson"].as_str().unwrap_or_default();
            if has(".dockerconfigjson") && !is_json(data) {
                let why = "<secret contents redacted>";
                causes.push(Cause::invalid("data[.dockerconfigjson]", &format!("\"{why}\""), "not valid JSON"));
            }
        }
        _ => {}
    }
}

fn is_json(base64: &str) -> bool {
    use base64::Engine as _;
    let decoded = base64::engine::general_purpose::STANDARD.decode(base64).unwrap_or_default();
    serde_json::from_slice::<serde::de::IgnoredAny>(&decoded).is_ok()
}
