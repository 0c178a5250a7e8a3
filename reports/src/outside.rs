//! Escapes text of other programs, so that a program displays it and does not act on it: in Markdown, in cells of a
//! spreadsheet, and on one line of a terminal.
//!
//! A record may come from an untrusted source, and so may its names, messages and log lines. This module owns the
//! escaping of text that could mention a person, become a link, a table or a formula, or change the writing direction.

use std::fmt::Write as _;

pub use record::is_hidden;

/// Text that is inserted into a possible mention, reference or link to break it. GitHub searches the displayed text for
/// mentions, so an HTML entity alone prevents nothing.
const APART: &str = "&#8203;";

/// Escapes a text for one line: line ends and tabs become spaces, and other hidden characters are shown by their code
/// point.
pub(crate) fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| plain(c, &mut out));
    out
}

fn plain(c: char, out: &mut String) {
    match c {
        '\n' | '\r' | '\t' => out.push(' '),
        // Writing to a String cannot fail.
        c if is_hidden(c) => drop(write!(out, "\\u{:04x}", u32::from(c))),
        c => out.push(c),
    }
}

/// Escapes a text for the Markdown of GitHub and GitLab. The escaped text becomes no table cell, link, mention,
/// reference to an issue, or HTML.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text.chars();
    let mut before = None;
    while let Some(c) = rest.next() {
        let next = rest.clone().next();
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '~' | '#' | '!' | '$' => out.extend(['\\', c]),
            // A hidden character, by its number: a backslash before it would escape nothing.
            c if is_hidden(c) && !matches!(c, '\n' | '\r' | '\t') => {
                let _ = write!(out, "\\\\u{:04x}", u32::from(c));
            }
            c => plain(c, &mut out),
        }
        let splits = match c {
            // `@somebody`, `somebody@example.com`; `#12`; GitLab's `!12`, `$3`, `~label`, `%milestone`.
            '@' | '#' | '!' | '$' | '~' | '%' => {
                next.is_some_and(|next| next.is_alphanumeric() || "\"_-".contains(next))
            }
            // `https://…`, `mailto:…`, `xmpp:…`.
            ':' => {
                next == Some('/')
                    || ["mailto:", "xmpp:"].iter().any(|scheme| out.to_ascii_lowercase().ends_with(scheme))
            }
            // `www.example.com`.
            'w' | 'W' => next == Some('.') && before.is_some_and(|before| matches!(before, 'w' | 'W')),
            // `GH-12`.
            '-' => {
                next.is_some_and(|next| next.is_ascii_digit())
                    && before.is_some_and(|before| matches!(before, 'h' | 'H'))
            }
            _ => false,
        };
        if splits {
            out.push_str(APART);
        }
        before = Some(c);
    }
    out
}

/// Escapes a text as code in Markdown, with a fence that is longer than any fence in the text.
pub(crate) fn code(text: &str) -> String {
    let line = line(text);
    let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{line}{pad}{fence}")
}

/// Escapes a text for a cell of a spreadsheet. A text that a program could take for a formula gets an apostrophe in
/// front, as OWASP recommends. A number stays a number.
pub(crate) fn cell(text: String) -> String {
    let acts = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
    if acts && text.parse::<f64>().is_err() { format!("'{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_markdown_mentions_links_or_turns() {
        for (text, expected) in [
            ("a|b <i> [x](y)\n`c`", "a\\|b &lt;i&gt; \\[x\\](y) \\`c\\`"),
            ("ask @octocat now", "ask @&#8203;octocat now"),
            ("a@b.example", "a@&#8203;b.example"),
            ("@ alone", "@ alone"),
            ("see #12 and x/y#3", "see \\#&#8203;12 and x/y\\#&#8203;3"),
            ("https://evil.example/x", "https:&#8203;//evil.example/x"),
            ("www.evil.example WWW.x", "www&#8203;.evil.example WWW&#8203;.x"),
            ("mailto:x", "mailto:&#8203;x"),
            ("GH-7, gh-pages", "GH-&#8203;7, gh-pages"),
            ("12:30 at p99: 4 ms", "12:30 at p99: 4 ms"),
            ("safe\u{202e}txt.exe", "safe\\\\u202etxt.exe"),
            ("&#64;x", "&amp;\\#64;x"),
            ("a\u{1b}[2Jb", "a\\\\u001b\\[2Jb"),
        ] {
            // `#64` is a reference as well.
            let expected = expected.replace("\\#64", "\\#&#8203;64");
            assert_eq!(markdown(text), expected, "{text:?}");
        }
    }

    #[test]
    fn code_stays_in_its_fence() {
        assert_eq!(code("a `b` c"), "``a `b` c``");
        assert_eq!(code("`b`"), "`` `b` ``");
        assert_eq!(code("a|b\nc\u{202e}"), "`a|b c\\u202e`");
    }

    #[test]
    fn a_cell_is_never_a_formula_and_a_number_stays_one() {
        for text in ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1"] {
            assert_eq!(cell(text.to_owned()), format!("'{text}"));
        }
        for text in ["-1.5", "+3", "-1e-3", "10412", "a=b", "", "-inf"] {
            assert_eq!(cell(text.to_owned()), text);
        }
    }
}
