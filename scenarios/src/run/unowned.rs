//! Hints that an object without an owner reference is the child of another object: a label contains the parent's name
//! or uid, or the child's name contains the parent's name. Does no I/O.

use serde_json::Value;

/// A text that may be the name or the uid of a parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hint<'a> {
    pub(super) text: &'a str,
    /// The label that contains the text; `None` if the object's name contains it.
    label: Option<&'a str>,
}

impl Hint<'_> {
    /// The hint as text, to be written after the name of the child.
    pub(super) fn known(&self) -> String {
        match self.label {
            Some(label) => format!("known by its label {label}"),
            None => "known by its name".to_owned(),
        }
    }
}

/// The hints of an object, best first: the values of its labels, its whole name, and the parts before or behind a
/// hyphen in the name, longest first. A name has at most 253 characters, which bounds the number of hints.
pub(super) fn hints<'a>(name: &'a str, labels: &'a Value) -> Vec<Hint<'a>> {
    let labels = labels.as_object().into_iter().flatten();
    let labelled = labels.filter_map(|(key, value)| Some(Hint { text: value.as_str()?, label: Some(key) }));
    let hyphens = || name.match_indices('-').map(|(at, _)| at);
    let before = hyphens().map(|at| &name[..at]);
    let behind = hyphens().map(|at| &name[at + 1..]);
    let mut parts: Vec<&str> = before.chain(behind).filter(|part| !part.is_empty()).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    let named = std::iter::once(name).chain(parts).map(|text| Hint { text, label: None });
    labelled.chain(named).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_come_before_the_name_and_long_parts_before_short_ones() {
        let labels = json!({"app": "cache", "of": "cache-7"});
        let texts: Vec<(String, &str)> = hints("cache-7-config", &labels)
            .into_iter()
            .map(|hint| (hint.label.unwrap_or_default().to_owned(), hint.text))
            .collect();
        let texts: Vec<(&str, &str)> = texts.iter().map(|(label, text)| (label.as_str(), *text)).collect();
        let named = ["cache-7-config", "7-config", "cache-7", "config", "cache"].map(|text| ("", text));
        assert_eq!(texts, [[("app", "cache"), ("of", "cache-7")].as_slice(), &named].concat());
        assert_eq!(hints("a", &Value::Null).len(), 1);
        assert_eq!(hints("a", &labels)[0].known(), "known by its label app");
    }
}
