//! Paths of image fields in objects of unknown kinds: `spec.image`, `spec.workers[*].image`.

use std::str::FromStr;

use crate::yaml::{Document, Id, Value};

const STEPS_MAX: usize = 32;

/// A path from the root of an object to image fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    /// Every item of a list, or every value of a map, at this step of the path.
    Each,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no path of fields: write keys with dots between, and `[*]` for every item, as in spec.workers[*].image"
)]
pub struct PathError(String);

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let wrong = || PathError(text.to_owned());
        let mut steps = Vec::new();
        for part in text.split('.') {
            let (key, mut rest) = part.find('[').map_or((part, ""), |at| part.split_at(at));
            if key == "*" {
                steps.push(Step::Each);
            } else if key.is_empty() || key.contains([']', '*']) {
                return Err(wrong());
            } else {
                steps.push(Step::Key(key.to_owned()));
            }
            while !rest.is_empty() {
                rest = rest.strip_prefix("[*]").or_else(|| rest.strip_prefix("[]")).ok_or_else(wrong)?;
                steps.push(Step::Each);
            }
        }
        if steps.len() > STEPS_MAX { Err(wrong()) } else { Ok(Self(steps)) }
    }
}

impl Path {
    /// The scalars of `object` to which this path leads, each with its JSON pointer.
    pub fn find(&self, document: &Document, object: Id) -> Vec<(String, Id)> {
        let mut found = vec![(String::new(), object)];
        for step in &self.0 {
            let mut next = Vec::new();
            for (pointer, id) in found {
                let below = |part: &str| format!("{pointer}/{}", part.replace('~', "~0").replace('/', "~1"));
                match (step, &document.node(id).value) {
                    (Step::Key(key), Value::Map(_)) => next.extend(document.get(id, key).map(|one| (below(key), one))),
                    (Step::Each, Value::List(items)) => {
                        next.extend(items.iter().enumerate().map(|(index, item)| (below(&index.to_string()), *item)));
                    }
                    (Step::Each, Value::Map(entries)) => {
                        let named = entries.iter().filter_map(|(key, value)| Some((document.text(*key)?, *value)));
                        next.extend(named.map(|(key, value)| (below(key), value)));
                    }
                    _ => {}
                }
            }
            found = next;
        }
        found.retain(|(_, id)| document.text(*id).is_some());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::documents;

    #[test]
    fn every_item_and_every_value() {
        let text = "spec:\n  image: a\n  workers:\n  - image: b\n  - {image: c, n: 1}\n  by: {x: {image: d}}\n";
        let document = &documents(text).unwrap()[0];
        let found = |path: &str| -> Vec<String> {
            let found = path.parse::<Path>().unwrap().find(document, document.root());
            found.into_iter().map(|(pointer, id)| format!("{pointer}={}", document.text(id).unwrap())).collect()
        };
        assert_eq!(found("spec.image"), ["/spec/image=a"]);
        assert_eq!(found("spec.workers[*].image"), ["/spec/workers/0/image=b", "/spec/workers/1/image=c"]);
        assert_eq!(found("spec.by.*.image"), ["/spec/by/x/image=d"]);
        assert_eq!(found("spec.workers"), Vec::<String>::new());
        for wrong in ["", "a..b", "a[0]", "a[*", "*a", "a]"] {
            assert!(wrong.parse::<Path>().is_err(), "{wrong}");
        }
    }
}
