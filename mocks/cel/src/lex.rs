//! The tokens of CEL expressions (CEL language definition, "Syntax" and "String and Bytes Values").
//!
//! Owns tokens, numbers and escapes. Offsets count bytes of the expression.

use super::Issue;

/// One token and the offset of its first byte.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub at: usize,
    pub word: Word,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    Ident(String),
    /// An integer without its sign; `9223372036854775808` is valid only after a minus.
    Int(u64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// An operator, a bracket or `in`.
    Sign(&'static str),
    End,
}

/// Operators and brackets, longer operators first, so that `<=` is not read as `<`.
const SIGNS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")", "[", "]",
    "{", "}",
];

impl Word {
    /// The text of the token as error messages show it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Ident(name) => name.clone(),
            Self::Int(number) | Self::Uint(number) => number.to_string(),
            Self::Double(number) => number.to_string(),
            Self::Text(text) => format!("\"{text}\""),
            Self::Bytes(bytes) => format!("b\"{}\"", bytes.escape_ascii()),
            Self::Sign(sign) => (*sign).to_owned(),
            Self::End => "<EOF>".to_owned(),
        }
    }
}

/// Splits an expression into tokens; the last token is `End`.
pub(super) fn words(source: &str) -> Result<Vec<Token>, Issue> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        if matches!(first, ' ' | '\t' | '\n' | '\r' | '\u{c}') {
            at += 1;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else {
            let (word, length) = word(rest).map_err(|why| Issue::at(at, why))?;
            tokens.push(Token { at, word });
            at += length;
        }
    }
    tokens.push(Token { at, word: Word::End });
    Ok(tokens)
}

fn word(rest: &str) -> Result<(Word, usize), String> {
    if let Some((prefix, quoted)) = literal_start(rest) {
        let (lower, length) = (prefix.to_ascii_lowercase(), prefix.len());
        let (bytes, quoted) = quoted_bytes(quoted, lower.contains('r'), lower.contains('b'))?;
        if lower.contains('b') {
            return Ok((Word::Bytes(bytes), length + quoted));
        }
        let text = String::from_utf8(bytes).map_err(|_| "the text is not UTF-8".to_owned())?;
        return Ok((Word::Text(text), length + quoted));
    }
    let first = rest.chars().next().unwrap_or_default();
    let followed_by_digit = || rest[1..].starts_with(|next: char| next.is_ascii_digit());
    if first.is_ascii_digit() || (first == '.' && followed_by_digit()) {
        return number(rest);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = &rest[..end];
        return Ok((if name == "in" { Word::Sign("in") } else { Word::Ident(name.to_owned()) }, end));
    }
    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
    sign.map(|sign| (Word::Sign(sign), sign.len()))
        .ok_or_else(|| format!("Syntax error: token recognition error at: '{first}'"))
}

/// The prefix letters of a string literal, and the rest of the text from its quote on.
fn literal_start(rest: &str) -> Option<(&str, &str)> {
    // Two letters at most; a longer search would make the lexer quadratic.
    let quote = rest.bytes().take(3).position(|byte| matches!(byte, b'"' | b'\''))?;
    let (prefix, quoted) = rest.split_at(quote);
    let lower = prefix.to_ascii_lowercase();
    matches!(lower.as_str(), "" | "r" | "b" | "br" | "rb").then_some((prefix, quoted))
}

fn number(rest: &str) -> Result<(Word, usize), String> {
    if let Some(hex) = rest.strip_prefix("0x") {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        let value = u64::from_str_radix(&hex[..end], 16).map_err(|_| "invalid int literal".to_owned())?;
        return Ok(suffixed(value, hex, end, 2));
    }
    let digits =
        |from: usize| rest[from..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |length| from + length);
    let mut end = digits(0);
    let mut whole = true;
    if rest[end..].starts_with('.') && rest[end + 1..].starts_with(|next: char| next.is_ascii_digit()) {
        (end, whole) = (digits(end + 1), false);
    }
    if let Some(exponent) = rest[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        if exponent[sign..].starts_with(|next: char| next.is_ascii_digit()) {
            (end, whole) = (digits(end + 1 + sign), false);
        }
    }
    if whole {
        let value = rest[..end].parse().map_err(|_| "invalid int literal".to_owned())?;
        return Ok(suffixed(value, rest, end, 0));
    }
    let value = rest[..end].parse().map_err(|_| "invalid double literal".to_owned())?;
    Ok((Word::Double(value), end))
}

fn suffixed(value: u64, rest: &str, end: usize, before: usize) -> (Word, usize) {
    if rest[end..].starts_with(['u', 'U']) {
        (Word::Uint(value), before + end + 1)
    } else {
        (Word::Int(value), before + end)
    }
}

/// The content of a quoted literal, and the literal's length with its quotes. If `bytes` is true, an escape stands for
/// one byte, else for a character.
fn quoted_bytes(quoted: &str, raw: bool, bytes: bool) -> Result<(Vec<u8>, usize), String> {
    let long = quoted.starts_with("\"\"\"") || quoted.starts_with("'''");
    let quote = &quoted[..if long { 3 } else { 1 }];
    let unclosed = || format!("Syntax error: token recognition error at: '{quote}': the text has no end");
    let mut found = Vec::new();
    let mut at = quote.len();
    loop {
        let rest = &quoted[at..];
        if rest.starts_with(quote) {
            return Ok((found, at + quote.len()));
        }
        let next = rest.chars().next().ok_or_else(unclosed)?;
        if matches!(next, '\n' | '\r') && !long {
            return Err(unclosed());
        }
        if next == '\\' && !raw {
            if bytes && rest[1..].starts_with(['u', 'U']) {
                return Err("unable to unescape string".to_owned());
            }
            let (letter, length) = escape(&rest[1..])?;
            match u8::try_from(letter) {
                Ok(byte) if bytes => found.push(byte),
                _ => push(letter, &mut found),
            }
            at += 1 + length;
        } else {
            push(next, &mut found);
            at += next.len_utf8();
        }
    }
}

fn push(letter: char, into: &mut Vec<u8>) {
    into.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}

/// The character of an escape sequence, and the number of bytes read.
fn escape(rest: &str) -> Result<(char, usize), String> {
    let wrong = || "Syntax error: token recognition error: unknown escape sequence".to_owned();
    let coded = |from: usize, digits: usize, radix: u32| {
        let text = rest.get(from..from + digits).filter(|text| text.chars().all(|digit| digit.is_digit(radix)));
        let code = text.and_then(|text| u32::from_str_radix(text, radix).ok());
        Ok((code.and_then(char::from_u32).ok_or_else(wrong)?, from + digits))
    };
    let letter = match rest.chars().next().ok_or_else(wrong)? {
        'x' | 'X' => return coded(1, 2, 16),
        'u' => return coded(1, 4, 16),
        'U' => return coded(1, 8, 16),
        '0'..='3' => return coded(0, 3, 8),
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        same @ ('\\' | '?' | '"' | '\'' | '`') => same,
        _ => return Err(wrong()),
    };
    Ok((letter, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(source: &str) -> Word {
        let tokens = words(source).unwrap();
        assert_eq!(tokens.len(), 2, "{tokens:?}");
        tokens[0].word.clone()
    }

    #[test]
    fn literals() {
        assert_eq!(one("0x1F"), Word::Int(31));
        assert_eq!(one("7u"), Word::Uint(7));
        assert_eq!(one("1.5e-3"), Word::Double(1.5e-3));
        assert_eq!(one(".5"), Word::Double(0.5));
        assert_eq!(one(r#""a\n\x41\u00e9\101""#), Word::Text("a\nA\u{e9}A".to_owned()));
        assert_eq!(one(r"r'\d+'"), Word::Text(r"\d+".to_owned()));
        assert_eq!(one("'''it's\ntwo'''"), Word::Text("it's\ntwo".to_owned()));
        assert_eq!(one(r"b'\xff\303é'"), Word::Bytes(b"\xff\xc3\xc3\xa9".to_vec()));
        assert_eq!(one(r"bR'\x'"), Word::Bytes(br"\x".to_vec()));
        for wrong in
            ["'a", "\"\\q\"", "99999999999999999999", "b'x", "#", "'\u{e9}\\u12'", r"'\x+1'", r"b'\u0041'", "'a\r'"]
        {
            assert!(words(wrong).is_err(), "{wrong}");
        }
    }
}
