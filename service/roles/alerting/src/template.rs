//! Templates: JSON texts with placeholders such as `{{ alert_message }}`.
//!
//! This module owns the list of placeholders and the built-in templates. Values are escaped, so that no text from an
//! object can add a field to an alert, or markup to a chat message.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::markup::Markup;

pub const NAMES: [&str; 11] = [
    "alert_message",
    "priority",
    "cluster",
    "namespace",
    "kind",
    "name",
    "images",
    "request_id",
    "timestamp",
    "pod_id",
    // The name in Connaisseur's templates.
    "connaisseur_pod_id",
];

pub fn shipped() -> impl Iterator<Item = (&'static str, Markup, &'static str)> {
    [
        ("slack", Markup::Slack, include_str!("templates/slack.json")),
        ("opsgenie", Markup::Plain, include_str!("templates/opsgenie.json")),
        ("keybase", Markup::Keybase, include_str!("templates/keybase.json")),
        ("msteams", Markup::Teams, include_str!("templates/msteams.json")),
        ("msteams-adaptive", Markup::Teams, include_str!("templates/msteams-adaptive.json")),
        ("ecs-1-12-0", Markup::Plain, include_str!("templates/ecs-1-12-0.json")),
    ]
    .into_iter()
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("line {line}: there is no `{name}`: the places are {}", NAMES.join(", "))]
    Unknown { line: usize, name: String },
    #[error("line {line}: `{{{{` without `}}}}`")]
    Open { line: usize },
    /// With values for the placeholders, the template's text is no JSON object.
    #[error("filled in it is no JSON object: {0}")]
    Json(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// The texts between the template's placeholders, each with the placeholder that follows.
    parts: Vec<(String, Option<String>)>,
    markup: Markup,
}

impl Template {
    /// Parses a template whose values are escaped for `markup`. With test values for its placeholders, the template
    /// must be JSON.
    pub fn parse(text: &str, markup: Markup) -> Result<Self, TemplateError> {
        let (mut parts, mut rest, mut line) = (Vec::new(), text, 1);
        while let Some((before, after)) = rest.split_once("{{") {
            line += before.matches('\n').count();
            let (name, after) = after.split_once("}}").ok_or(TemplateError::Open { line })?;
            let name = name.trim();
            if !NAMES.contains(&name) {
                return Err(TemplateError::Unknown { line, name: name.to_owned() });
            }
            parts.push((before.to_owned(), Some(name.to_owned())));
            rest = after;
        }
        parts.push((rest.to_owned(), None));
        let template = Self { parts, markup };
        let tried = NAMES.iter().map(|name| (*name, "\"x\" \\ \n".to_owned())).collect();
        template.fill(&tried, &Map::new())?;
        Ok(template)
    }

    /// The template's JSON with `values` for its placeholders, and with keys replaced by those of `payload`; `None` for
    /// an empty template.
    pub fn fill(
        &self,
        values: &BTreeMap<&str, String>,
        payload: &Map<String, Value>,
    ) -> Result<Option<String>, TemplateError> {
        let mut text = String::new();
        for (before, name) in &self.parts {
            text.push_str(before);
            if let Some(value) = name.as_ref().and_then(|name| values.get(name.as_str())) {
                let quoted = Value::from(self.markup.escaped(value)).to_string();
                text.push_str(&quoted[1..quoted.len() - 1]);
            }
        }
        if text.trim().is_empty() {
            return Ok(None);
        }
        let mut object: Map<String, Value> =
            serde_json::from_str(&text).map_err(|error| TemplateError::Json(error.to_string()))?;
        object.extend(payload.clone());
        Ok(Some(Value::from(object).to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> BTreeMap<&'static str, String> {
        NAMES.iter().map(|name| (*name, text.to_owned())).collect()
    }

    #[test]
    fn every_shipped_template_is_filled_whatever_is_said() {
        for (name, markup, text) in shipped() {
            let template = Template::parse(text, markup).unwrap_or_else(|error| panic!("{name}: {error}"));
            let filled = template.fill(&values("a\", \"admin\": \"yes"), &Map::new()).unwrap().unwrap();
            let object: Map<String, Value> = serde_json::from_str(&filled).unwrap();
            assert!(!filled.contains("\"admin\":") && !object.is_empty(), "{name}: {filled}");
        }
    }

    /// Every string in a JSON value.
    fn texts(value: &Value) -> Vec<&str> {
        match value {
            Value::String(text) => vec![text],
            Value::Array(all) => all.iter().flat_map(texts).collect(),
            Value::Object(map) => map.values().flat_map(texts).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn names_are_no_markup_wherever_a_shipped_template_has_them() {
        let name = "<!channel> <https://e.vil|docs.corp> [k](https://e.vil) <a href=https://e.vil>k</a>";
        for (template, signs) in
            [("slack", &["<"][..]), ("msteams", &["<", "[k]("]), ("msteams-adaptive", &["<", "[k]("])]
        {
            let (_, markup, text) = shipped().find(|(known, ..)| *known == template).unwrap();
            let filled = Template::parse(text, markup).unwrap().fill(&values(name), &Map::new()).unwrap().unwrap();
            let filled: Value = serde_json::from_str(&filled).unwrap();
            assert!(texts(&filled).iter().any(|text| text.contains("e.vil")));
            for text in texts(&filled) {
                assert!(!signs.iter().any(|sign| text.contains(sign)), "{template}: {text}");
            }
        }
    }

    #[test]
    fn payload_is_put_over_the_template() {
        let template = Template::parse("{\"a\": \"{{alert_message}}\", \"b\": 1}", Markup::Plain).unwrap();
        let payload = Map::from_iter([("b".to_owned(), Value::from("x")), ("c".to_owned(), Value::from(2))]);
        assert_eq!(template.fill(&values("m"), &payload).unwrap().unwrap(), r#"{"a":"m","b":"x","c":2}"#);
        assert_eq!(Template::parse("  \n", Markup::Plain).unwrap().fill(&values("m"), &payload), Ok(None));
    }

    #[test]
    fn what_is_no_template_says_where() {
        let parse = |text| Template::parse(text, Markup::Plain);
        assert_eq!(parse("{\n\"a\": \"{{ x }}\"}"), Err(TemplateError::Unknown { line: 2, name: "x".into() }));
        assert_eq!(parse("{\"a\": \"{{ name\"}"), Err(TemplateError::Open { line: 1 }));
        assert!(matches!(parse("[1]"), Err(TemplateError::Json(_))));
        assert!(matches!(parse("{\"a\": {{name}}}"), Err(TemplateError::Json(_))));
    }
}
