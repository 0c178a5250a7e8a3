//! The translation of Connaisseur's helm values to a configuration of this service, with a list of untranslated values.
//!
//! The translation does no I/O. Every unknown key in the values that has an effect is named in a note. No policy
//! becomes weaker: a validator of a kind that this service lacks becomes a validator that refuses every image.

#[cfg(feature = "alerting")]
mod alerts;
mod features;

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{Error, parse_error};
use service_admission::config::Pattern;

#[derive(Debug)]
pub struct Imported {
    pub config: String,
    /// Notes on values that were not translated or have another meaning in this service; one sentence each.
    pub left: Vec<String>,
}

/// Keys of a rule's `with` that mean the same in Connaisseur and this service.
const SAME_IN_WITH: [&str; 6] = ["trustRoot", "threshold", "required", "mode", "verifyInTransparencyLog", "verifySCT"];
/// The file with the keys of the public Sigstore instance. Connaisseur downloads these keys; this service does not.
const TRUSTED_ROOT: &str = "trusted_root.json";

/// Translates the helm values in `text`, which was read from `path`.
pub fn connaisseur(text: &str, path: &Path) -> Result<Imported, Error> {
    let values: Value = serde_saphyr::from_str(text).map_err(|error| parse_error(&error, path))?;
    let wrong = |key: &str, what: &str| Error::Value { path: path.into(), key: key.into(), what: what.into() };
    // Charts of version 3 have a section for it; Connaisseur's own file has not.
    let application = values.get("application").unwrap_or(&values);
    let list = |key: &str| match application.get(key) {
        Some(Value::Array(entries)) => Ok(entries.as_slice()),
        _ => Err(wrong(
            key,
            "is missing: these are no values of Connaisseur 3 (application.validators, application.policy)",
        )),
    };
    let (validators, rules) = (list("validators")?, list("policy")?);
    let mut left = Vec::new();
    let mut config = Map::new();
    let mut policy = Map::new();
    policy.insert("noMatch".into(), json!("deny"));
    features::translate(application, &mut config, &mut policy, &mut left);
    let rules = translate_rules(rules, validators, &mut left);
    let translated: Vec<Value> =
        validators.iter().map(|validator| translate_validator(validator, &rules, &mut left)).collect();
    policy.insert(
        "rules".into(),
        rules.into_iter().map(|rule| without_validator_of_refusal(rule, &translated)).collect(),
    );
    config.insert("validators".into(), translated.into());
    config.insert("policy".into(), policy.into());
    let alerting = [values.get("alerting"), values.pointer("/application/alerting")].into_iter().flatten();
    if let Some(alerting) = alerting.into_iter().find(|alerting| !alerting.is_null()) {
        #[cfg(feature = "alerting")]
        config.extend(alerts::translate(alerting, &mut left).map(|alerts| ("alerting".to_owned(), alerts)));
        #[cfg(not(feature = "alerting"))]
        left.push(format!(
            "alerting was left out: this build sends no alerts ({} keys).",
            alerting.as_object().map_or(0, Map::len)
        ));
    }
    features::around(&values, &mut left);
    let text =
        serde_saphyr::to_string(&Value::Object(config)).map_err(|error| wrong("the values", &error.to_string()))?;
    if let Err(error) = super::parse(&text, path) {
        left.push(format!("The result is not accepted as it is and has to be changed by hand: {error}."));
    }
    Ok(Imported { config: text, left })
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The translated rules. If two rules have the same pattern, only the later rule is kept, as in Connaisseur.
fn translate_rules(rules: &[Value], validators: &[Value], left: &mut Vec<String>) -> Vec<Value> {
    let mut out: Vec<(Option<Pattern>, Value)> = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let written = text(rule, "pattern");
        let pattern = Pattern::new(written).ok();
        if let (Some(pattern), Some(at)) = (
            &pattern,
            out.iter().position(|(other, _)| pattern.as_ref().zip(other.as_ref()).is_some_and(|(a, b)| a.equals(b))),
        ) {
            let earlier = out.remove(at);
            let what = text(&earlier.1, "pattern");
            left.push(format!(
                "The rule `{what}` was left out: `{}` matches the same images and comes later, so Connaisseur uses that.",
                pattern.as_str()
            ));
        }
        let name = match text(rule, "validator") {
            "" => "default",
            name => name,
        };
        let mut translated = Map::new();
        translated.insert("pattern".into(), json!(written));
        translated.insert("validator".into(), json!(name));
        let kind = validators.iter().find(|other| text(other, "name") == name).map(|other| text(other, "type"));
        if let (Some(Value::Object(with)), Some("cosign")) = (rule.get("with"), kind) {
            let mut kept = Map::new();
            for (key, value) in with {
                if SAME_IN_WITH.contains(&key.as_str()) {
                    kept.insert(key.clone(), value.clone());
                } else {
                    left.push(format!("policy[{index}].with.{key} has no meaning for cosign and was left out."));
                }
            }
            if !kept.is_empty() {
                translated.insert("with".into(), kept.into());
            }
        }
        out.push((pattern, translated.into()));
    }
    out.into_iter().map(|(_, rule)| rule).collect()
}

/// Removes the demands on signatures from a rule whose validator became a validator that refuses every image.
fn without_validator_of_refusal(mut rule: Value, validators: &[Value]) -> Value {
    let name = text(&rule, "validator").to_owned();
    let is_static = validators.iter().any(|other| text(other, "name") == name && text(other, "type") == "static");
    if let (true, Some(rule)) = (is_static, rule.as_object_mut()) {
        rule.remove("with");
    }
    rule
}

fn translate_validator(validator: &Value, rules: &[Value], left: &mut Vec<String>) -> Value {
    let name = text(validator, "name");
    let refuses = json!({"name": name, "type": "static", "approve": false});
    match text(validator, "type") {
        "static" => {
            json!({"name": name, "type": "static", "approve": validator.get("approve").and_then(Value::as_bool).unwrap_or(false)})
        }
        "cosign" => cosign(validator, name, rules, left).unwrap_or(refuses),
        other => {
            left.push(format!(
                "The validator `{name}` is of type `{other}`, which is not built in: it refuses every image until it is replaced."
            ));
            refuses
        }
    }
}

/// The translated cosign validator; `None` if none of its trust roots could be translated.
fn cosign(validator: &Value, name: &str, rules: &[Value], left: &mut Vec<String>) -> Option<Value> {
    let mut roots = Vec::new();
    for root in validator.get("trustRoots").and_then(Value::as_array).into_iter().flatten() {
        let (key, root_name) = (text(root, "key"), text(root, "name"));
        if root.get("keyless").is_some() {
            roots.push(json!({"name": root_name, "keyless": root["keyless"]}));
        } else if key.contains("-----BEGIN ") {
            roots.push(json!({"name": root_name, "key": key}));
        } else {
            left.push(format!(
                "The trust root `{root_name}` of the validator `{name}` was left out: its key is no PEM text (KMS keys and certificates \
                 are not supported)."
            ));
        }
    }
    if roots.is_empty() {
        left.push(format!("The validator `{name}` has no trust root left: it refuses every image until it has one."));
        return None;
    }
    let host = validator.get("host").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut kept = Map::new();
    for (key, value) in &host {
        match key.as_str() {
            "rekorPubkey" | "fulcioCert" | "ctLogPubkey" => drop(kept.insert(key.clone(), value.clone())),
            _ => left.push(format!(
                "validators[{name}].host.{key} was left out: no log is asked; the log entry that comes with a signature is verified."
            )),
        }
    }
    for (key, instead) in [
        ("auth", "credentials of registries are in `resolve.registries` and `resolve.keychain`"),
        ("cert", "authorities of registries are in `resolve.registries[].caFile`"),
    ] {
        if validator.get(key).is_some() {
            left.push(format!("validators[{name}].{key} was left out: {instead}."));
        }
    }
    let mut translated = Map::new();
    translated.insert("name".into(), json!(name));
    translated.insert("type".into(), json!("cosign"));
    let asked = rules.iter().filter(|rule| text(rule, "validator") == name);
    let logged = |rule: &Value| rule.pointer("/with/verifyInTransparencyLog") != Some(&Value::Bool(false));
    let needs_log = asked.into_iter().any(logged) && !kept.contains_key("rekorPubkey");
    let keyless = roots.iter().any(|root| root.get("keyless").is_some());
    if needs_log || keyless && !kept.contains_key("fulcioCert") {
        left.push(format!(
            "The validator `{name}` needs the keys of sigstore's public instance, which Connaisseur fetches: put its \
             {TRUSTED_ROOT} beside the configuration."
        ));
        translated.insert("trustedRootFile".into(), json!(TRUSTED_ROOT));
    }
    translated.insert("trustRoots".into(), roots.into());
    if !kept.is_empty() {
        translated.insert("host".into(), kept.into());
    }
    Some(translated.into())
}

#[cfg(test)]
mod tests;
