//! Checks whether Go can parse a `Content-Type` (`mime.ParseMediaType`). Any media type that Go can parse is accepted,
//! because kube-apiserver decodes a webhook's answer regardless of its type.

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text before the parameters is empty or no token.
    #[error("mime: no media type")]
    NoType,
    /// The `/` is missing, for example `text html`.
    #[error("mime: expected slash after first token")]
    NoSlash,
    /// The subtype is missing, for example `text/`.
    #[error("mime: expected token after slash")]
    NoSubtype,
    /// Text that is no parameter follows the type, for example `text/html x`.
    #[error("mime: unexpected content after media subtype")]
    Trailing,
    /// A parameter is incomplete, for example `text/html; charset`.
    #[error("mime: invalid media parameter")]
    Parameter,
    /// A parameter has two values, for example `text/html; a=1; a=2`.
    #[error("mime: duplicate parameter name")]
    Duplicate,
}

pub(crate) fn check(text: &[u8]) -> Result<(), Problem> {
    let end = text.iter().position(|&byte| byte == b';').unwrap_or(text.len());
    essence(text[..end].trim_ascii())?;
    let mut rest = &text[end..];
    let mut known: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(());
        }
        let Some((name, value, behind)) = parameter(rest) else {
            // One semicolon at the end is no error.
            return if rest.trim_ascii() == b";" { Ok(()) } else { Err(Problem::Parameter) };
        };
        match known.iter().find(|(other, _)| *other == name) {
            Some((_, other)) if *other != value => return Err(Problem::Duplicate),
            Some(_) => {}
            None => known.push((name, value)),
        }
        rest = behind;
    }
}

fn essence(text: &[u8]) -> Result<(), Problem> {
    let (first, rest) = token(text);
    if first.is_empty() {
        return Err(Problem::NoType);
    }
    let Some((slash, rest)) = rest.split_first() else { return Ok(()) };
    if *slash != b'/' {
        return Err(Problem::NoSlash);
    }
    match token(rest) {
        ([], _) => Err(Problem::NoSubtype),
        (_, []) => Ok(()),
        _ => Err(Problem::Trailing),
    }
}

/// Parses a parameter; returns its name, its value, and the remaining text.
fn parameter(text: &[u8]) -> Option<(Vec<u8>, Vec<u8>, &[u8])> {
    let (name, rest) = token(text.strip_prefix(b";")?.trim_ascii_start());
    if name.is_empty() {
        return None;
    }
    let rest = rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (value, behind) = value(rest)?;
    Some((name.to_ascii_lowercase(), value, behind))
}

fn value(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let (value, rest) = token(text);
        return (!value.is_empty()).then(|| (value.to_vec(), rest));
    };
    let (mut value, mut at) = (Vec::new(), 0);
    while let Some(&byte) = quoted.get(at) {
        match (byte, quoted.get(at + 1)) {
            (b'"', _) => return Some((value, &quoted[at + 1..])),
            (b'\\', Some(&next)) if is_special(next) => {
                value.push(next);
                at += 1;
            }
            (b'\r' | b'\n', _) => return None,
            _ => value.push(byte),
        }
        at += 1;
    }
    None
}

/// Parses a token of RFC 2045; returns the token and the remaining text.
fn token(text: &[u8]) -> (&[u8], &[u8]) {
    let is_token = |&byte: &u8| byte > 0x20 && byte < 0x7f && !is_special(byte);
    text.split_at(text.iter().position(|byte| !is_token(byte)).unwrap_or(text.len()))
}

fn is_special(byte: u8) -> bool {
    br#"()<>@,;:\"/[]?="#.contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_can_be_read_is_right() {
        for text in [
            "application/json",
            "text/plain; charset=utf-8",
            "text/plain; charset=\"a\\\"b\";",
            "text",
            "TEXT/HTML ; a=b ; a=b",
            " application/json ",
        ] {
            assert_eq!(check(text.as_bytes()), Ok(()), "{text}");
        }
        for (text, problem) in [
            (";a=b", Problem::NoType),
            ("text html", Problem::NoSlash),
            ("text/", Problem::NoSubtype),
            ("text/html x", Problem::Trailing),
            ("text/html; charset", Problem::Parameter),
            ("text/html; a=\"b", Problem::Parameter),
            ("text/html;; a=b", Problem::Parameter),
            ("text/html; a=1; A=2", Problem::Duplicate),
        ] {
            assert_eq!(check(text.as_bytes()), Err(problem), "{text}");
        }
    }
}
