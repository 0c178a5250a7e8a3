//! Parses the lines of a metrics page, in Prometheus' text format and in `OpenMetrics`.
//!
//! The parser of this module does no I/O and is strict. A line that is not a valid sample is an error with its line
//! number, because wrong values are worse than none.

use std::borrow::Cow;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    pub(super) value: f64,
}

/// The error for a line that is not a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is no sample: {why}")]
pub(super) struct Error {
    line: usize,
    why: &'static str,
}

pub(super) fn points(page: &str) -> impl Iterator<Item = Result<Point<'_>, Error>> {
    let lines = page.lines().enumerate().map(|(index, line)| (index + 1, line.trim_end_matches('\r').trim_start()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(line, text)| point(text).map_err(|why| Error { line, why }))
}

fn point(text: &str) -> Result<Point<'_>, &'static str> {
    let (name, rest) = text.split_at(text.find(['{', ' ', '\t']).ok_or("it has no value")?);
    let mut name = Cow::Borrowed(name);
    let mut labels = Vec::new();
    let mut rest = rest.trim_start_matches([' ', '\t']);
    if let Some(inside) = rest.strip_prefix('{') {
        let (given, all, after) = braces(inside)?;
        if let Some(given) = given {
            if !name.is_empty() {
                return Err("it has two names");
            }
            name = given;
        }
        (labels, rest) = (all, after);
    }
    if name.is_empty() {
        return Err("it has no name");
    }
    // A time stamp and an exemplar may follow the value; they are not used.
    let value = rest.split([' ', '\t']).find(|word| !word.is_empty()).ok_or("it has no value")?;
    Ok(Point { name, labels, value: number(value).ok_or("its value is no number")? })
}

/// The result of parsing braces: the quoted metric name if there is one, the labels, and the text after the closing
/// brace.
type Braces<'a> = (Option<Cow<'a, str>>, Vec<(Cow<'a, str>, Cow<'a, str>)>, &'a str);

/// Parses the text after an opening brace.
pub(super) fn braces(mut text: &str) -> Result<Braces<'_>, &'static str> {
    let (mut name, mut labels) = (None, Vec::new());
    loop {
        text = text.trim_start_matches([' ', '\t']);
        if let Some(after) = text.strip_prefix('}') {
            return Ok((name, labels, after));
        }
        let (key, rest) = if let Some(inside) = text.strip_prefix('"') {
            quoted(inside)?
        } else {
            let end = text.find(['=', ',', '}', ' ', '\t']).ok_or("its braces are not closed")?;
            (Cow::Borrowed(&text[..end]), &text[end..])
        };
        let rest = rest.trim_start_matches([' ', '\t']);
        text = match rest.strip_prefix('=') {
            Some(value) => {
                let value =
                    value.trim_start_matches([' ', '\t']).strip_prefix('"').ok_or("a label's value has no quotes")?;
                let (value, rest) = quoted(value)?;
                if key.is_empty() {
                    return Err("a label has no name");
                }
                labels.push((key, value));
                rest
            }
            // Only a quoted name may stand without a value.
            None if text.starts_with('"') && name.is_none() => {
                name = Some(key);
                rest
            }
            None => return Err("a label has no value"),
        };
        text = text.trim_start_matches([' ', '\t']);
        match text.strip_prefix(',') {
            Some(rest) => text = rest,
            None if text.starts_with('}') => {}
            None => return Err("its braces are not closed"),
        }
    }
}

/// Parses the text after an opening quote. Returns the quoted text, and the text after the closing quote.
fn quoted(text: &str) -> Result<(Cow<'_, str>, &str), &'static str> {
    let mut unescaped: Option<String> = None;
    let mut characters = text.char_indices();
    let mut plain_from = 0;
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let tail = &text[plain_from..at];
                let value = unescaped.map_or(Cow::Borrowed(tail), |before| Cow::Owned(before + tail));
                return Ok((value, &text[at + 1..]));
            }
            '\\' => {
                let (_, escaped) = characters.next().ok_or("a quote is not closed")?;
                let meant = match escaped {
                    'n' => '\n',
                    '\\' | '"' => escaped,
                    _ => return Err("a label's value has an unknown escape"),
                };
                let before = unescaped.get_or_insert_default();
                before.push_str(&text[plain_from..at]);
                before.push(meant);
                plain_from = at + 1 + escaped.len_utf8();
            }
            _ => {}
        }
    }
    Err("a quote is not closed")
}

fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" | "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        // Rust also parses `infinity` and `nan`, which no exporter writes.
        text if text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) => {
            text.parse().ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Read = (String, Vec<(String, String)>, f64);

    fn read(page: &str) -> Vec<Read> {
        let owned = |(name, value): (Cow<'_, str>, Cow<'_, str>)| (name.into_owned(), value.into_owned());
        let points = points(page).map(Result::unwrap);
        points.map(|one| (one.name.into_owned(), one.labels.into_iter().map(owned).collect(), one.value)).collect()
    }

    /// The parser reads lines with all features that exporters use: escapes, braces inside values, time stamps,
    /// exemplars, trailing commas, quoted names.
    #[test]
    fn lines_of_real_pages_are_read() {
        let page = "# HELP a Some help\n# TYPE a gauge\na 1\n\n  b{} 2.5e3 1700000000\nc{path=\"C:\\\\a\\\"}{\\n\", x = \"\",} +Inf\r\n\
                    d_total{le=\"0.5\"} 7 # {trace=\"1\"} 0.3\n{\"my.metric\",unit=\"}\"} -4\n# EOF\n";
        let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            read(page),
            [
                ("a".into(), vec![], 1.0),
                ("b".into(), vec![], 2500.0),
                ("c".into(), vec![label("path", "C:\\a\"}{\n"), label("x", "")], f64::INFINITY),
                ("d_total".into(), vec![label("le", "0.5")], 7.0),
                ("my.metric".into(), vec![label("unit", "}")], -4.0),
            ]
        );
    }

    #[test]
    fn what_is_no_sample_is_refused_with_its_line() {
        let refused = |line: &str| {
            let page = format!("a 1\n{line}\n");
            points(&page).find_map(Result::err).map(|error| error.to_string())
        };
        for (line, why) in [
            ("<html>", "it has no value"),
            ("a{b=\"c\"", "its braces are not closed"),
            ("a{b=\"c} 1", "a quote is not closed"),
            ("a{b=c} 1", "a label's value has no quotes"),
            ("a{b} 1", "a label has no value"),
            ("a{b=\"\\t\"} 1", "a label's value has an unknown escape"),
            ("a x", "its value is no number"),
            ("a nan", "its value is no number"),
            ("{b=\"c\"} 1", "it has no name"),
            ("a{\"b\"} 1", "it has two names"),
        ] {
            assert_eq!(refused(line), Some(format!("line 2 is no sample: {why}")), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic(page in ".{0,200}") {
            points(&page).for_each(drop);
        }

        #[test]
        fn any_label_is_read_back(value in "\\PC{0,20}") {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let page = format!("a{{b=\"{escaped}\"}} 1\n");
            prop_assert_eq!(&read(&page)[0].1[0].1, &value);
        }
    }
}
