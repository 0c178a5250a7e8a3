//! Selects series of a page by name and labels.

use super::exposition::{self, Point};

/// Selects all series with this name and at least these labels. The samples of the selected series are added up to one
/// value.
#[derive(Debug, Clone, PartialEq)]
pub struct Selector {
    text: String,
    name: String,
    labels: Vec<(String, String)>,
}

impl Selector {
    /// Parses a selector such as `name` or `name{label="value"}`. The error describes the mistake in the text.
    pub fn read(text: &str) -> Result<Self, String> {
        let example = "write for example `workqueue_depth` or `workqueue_depth{name=\"pods\"}`";
        let wrong = |why: &str| format!("`{text}` names no series: {why}; {example}");
        let (name, inside) = match text.split_once('{') {
            Some((name, inside)) => (name, Some(inside)),
            None => (text, None),
        };
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.');
        if name.is_empty() || !name.chars().all(is_of_name) {
            return Err(wrong("it does not begin with a name"));
        }
        let mut labels = Vec::new();
        if let Some(inside) = inside {
            let (other, given, after) = exposition::braces(inside).map_err(wrong)?;
            if other.is_some() || !after.is_empty() {
                return Err(wrong("there is more than a name and labels"));
            }
            labels = given.into_iter().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        }
        Ok(Self { text: text.to_owned(), name: name.to_owned(), labels })
    }

    /// The selector as the user wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a sample belongs to a selected series.
    pub(super) fn is_of(&self, point: &Point<'_>) -> bool {
        point.name == self.name.as_str()
            && self
                .labels
                .iter()
                .all(|(name, value)| point.labels.iter().any(|label| label.0 == *name && label.1 == *value))
    }
}

/// A series of a metrics page, with its labels.
pub struct Labelled<'a>(Point<'a>);

/// 2^53: a sample is a 64-bit float, which can represent every whole number up to this limit.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

impl<'a> Labelled<'a> {
    pub fn of(page: &'a str, selector: &Selector) -> impl Iterator<Item = Result<Self, String>> {
        exposition::points(page).filter_map(move |point| match point {
            Ok(point) => selector.is_of(&point).then_some(Ok(Self(point))),
            Err(error) => Some(Err(error.to_string())),
        })
    }

    pub fn get(&self, label: &str) -> Option<&str> {
        self.0.labels.iter().find(|(name, _)| name == label).map(|(_, value)| &**value)
    }

    /// The sample's value, if it is a whole number of at most `EXACT_MAX`.
    #[expect(clippy::cast_possible_truncation, reason = "whole numbers up to 2^53 are what both types hold")]
    pub fn number(&self) -> Option<i64> {
        let value = self.0.value;
        (value.fract() == 0.0 && value.abs() <= EXACT_MAX).then_some(value as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_are_not_named_may_be_anything() {
        let selector = Selector::read("depth{name=\"pods\"}").unwrap();
        let is_of = |page: &str| selector.is_of(&exposition::points(page).next().unwrap().unwrap());
        assert!(is_of("depth{name=\"pods\"} 1") && is_of("depth{x=\"y\",name=\"pods\"} 1"));
        assert!(!is_of("depth{name=\"nodes\"} 1") && !is_of("depth 1") && !is_of("depth_total{name=\"pods\"} 1"));
    }

    #[test]
    fn what_names_no_series_is_refused() {
        for text in ["", "{a=\"b\"}", "a{", "a{b}", "a{b=\"c\"} 1", "rate(a)", "a b"] {
            let error = Selector::read(text).unwrap_err();
            assert!(error.contains("names no series") && error.contains("write for example"), "{error}");
        }
    }
}
