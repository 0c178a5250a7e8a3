//! A few different texts of errors, so that a count of errors in a report can be understood. Only a bounded number of
//! texts is kept: the first ones.

/// Maximum number of example texts in an interval.
const MOST: usize = 5;
/// Maximum number of example texts of one kind, so that a frequent error does not hide a rare one.
const MOST_OF_A_SORT: usize = 2;
/// Maximum number of characters of an example text, because it may quote a subject's answer.
const MOST_CHARS: usize = 400;

/// Different example texts, each with its kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Examples(Vec<(&'static str, String)>);

impl Examples {
    /// Keeps the text if it is new and the limits allow it. The closure that makes the text runs only if the text may
    /// be kept.
    pub(crate) fn note(&mut self, sort: &'static str, text: impl FnOnce() -> String) {
        let of_sort = self.0.iter().filter(|(s, _)| *s == sort).count();
        if self.0.len() >= MOST || of_sort >= MOST_OF_A_SORT {
            return;
        }
        let text = format!("{sort}: {}", cut(text()));
        if !self.0.iter().any(|(_, known)| *known == text) {
            self.0.push((sort, text));
        }
    }

    pub(crate) fn into_texts(self) -> Vec<String> {
        self.0.into_iter().map(|(_, text)| text).collect()
    }
}

/// Merges example texts of two intervals, at most [`MOST`].
pub(crate) fn merge(texts: &mut Vec<String>, more: &[String]) {
    for text in more {
        if texts.len() >= MOST {
            return;
        }
        if !texts.contains(text) {
            texts.push(text.clone());
        }
    }
}

fn cut(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(MOST_CHARS) {
        text.truncate(at);
        text.push_str(" ..");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frequent_error_does_not_hide_a_rare_one() {
        let mut examples = Examples::default();
        for i in 0..100 {
            examples.note("timeout", || format!("call {i}"));
        }
        examples.note("tls", || "bad certificate".to_owned());
        examples.note("tls", || "bad certificate".to_owned());
        examples.note("http error", || "é".repeat(1000));
        let texts = examples.into_texts();
        assert_eq!(texts[..3], ["timeout: call 0", "timeout: call 1", "tls: bad certificate"]);
        assert_eq!(texts[3].chars().count(), "http error: ".len() + MOST_CHARS + 3);
        assert_eq!(texts.len(), 4);
    }
}
