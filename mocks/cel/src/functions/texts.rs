//! The CEL functions of strings (CEL string extensions). Positions count characters.

use super::super::Failed;
use super::super::run::{Found, Run, no_overload};
use super::super::value::Val;
use super::super::written;
use super::{count, patterns};

pub(super) fn on_text<'a>(run: &mut Run<'a, '_>, name: &str, text: &str, arguments: &[Val<'a>]) -> Found<'a> {
    run.pay_for_bytes(text.len())?;
    match (name, arguments) {
        ("contains", [Val::Text(part)]) => Ok(Val::Bool(text.contains(&**part))),
        ("startsWith", [Val::Text(part)]) => Ok(Val::Bool(text.starts_with(&**part))),
        ("endsWith", [Val::Text(part)]) => Ok(Val::Bool(text.ends_with(&**part))),
        ("matches", [Val::Text(by)]) => patterns::matches(run, text, by),
        ("find", [Val::Text(by)]) => patterns::find(run, text, by),
        ("findAll", [Val::Text(by)]) => patterns::find_all(run, text, by, -1),
        ("findAll", [Val::Text(by), Val::Int(most)]) => patterns::find_all(run, text, by, *most),
        ("format", [Val::List(values)]) => written::format(run, text, values),
        ("lowerAscii", []) => Ok(Val::text(text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Val::text(text.to_ascii_uppercase())),
        ("trim", []) => Ok(Val::text(text.trim())),
        ("split", [Val::Text(by)]) => split(run, text, by, -1),
        ("split", [Val::Text(by), Val::Int(most)]) => split(run, text, by, *most),
        ("replace", [Val::Text(old), Val::Text(new)]) => replace(run, text, old, new, -1),
        ("replace", [Val::Text(old), Val::Text(new), Val::Int(most)]) => replace(run, text, old, new, *most),
        ("substring", [Val::Int(from)]) => match count(text.chars().count()) {
            length if *from > length => Err(Failed::Place(*from)),
            length => substring(text, *from, length),
        },
        ("substring", [Val::Int(from), Val::Int(to)]) => substring(text, *from, *to),
        ("charAt", [Val::Int(at)]) if *at == count(text.chars().count()) => Ok(Val::lent("")),
        ("charAt", [Val::Int(at)]) => substring(text, *at, at.saturating_add(1)),
        ("indexOf", [Val::Text(part)]) => index_of(text, part, 0),
        ("indexOf", [Val::Text(part), Val::Int(from)]) => index_of(text, part, *from),
        ("lastIndexOf", [Val::Text(part)]) => last_index_of(text, part, None),
        ("lastIndexOf", [Val::Text(part), Val::Int(from)]) => last_index_of(text, part, Some(*from)),
        _ => no_overload(),
    }
}

fn split<'a>(run: &mut Run<'a, '_>, text: &str, by: &str, most: i64) -> Found<'a> {
    run.pay(text.len())?;
    let owned = |part: &str| Val::text(part);
    Ok(Val::list(match most {
        0 => Vec::new(),
        _ if by.is_empty() => letters(text, most).into_iter().map(owned).collect(),
        1.. => text.splitn(usize::try_from(most).unwrap_or(usize::MAX), by).map(owned).collect(),
        _ => text.split(by).map(owned).collect(),
    }))
}

/// The single characters of a text; if `most` limits the results, the last result is the rest of the text.
fn letters(text: &str, most: i64) -> Vec<&str> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some(letter) = rest.chars().next() {
        let length = if parts.len() + 1 < most { letter.len_utf8() } else { rest.len() };
        let (part, after) = rest.split_at(length);
        parts.push(part);
        rest = after;
    }
    parts
}

fn replace<'a>(run: &mut Run<'a, '_>, text: &str, old: &str, new: &str, most: i64) -> Found<'a> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let places = text.matches(old).take(most).count();
    run.pay_for_bytes(text.len() + places.saturating_mul(new.len()))?;
    Ok(Val::text(text.replacen(old, new, most)))
}

/// The characters from position `from` to before position `to`.
fn substring<'a>(text: &str, from: i64, to: i64) -> Found<'a> {
    let length = count(text.chars().count());
    if from > to {
        return Err(Failed::Range { from, to });
    }
    if from < 0 || to > length {
        return Err(Failed::Place(if from < 0 || from > length { from } else { to }));
    }
    let (from, to) = (usize::try_from(from).unwrap_or(0), usize::try_from(to).unwrap_or(0));
    Ok(Val::text(text.chars().skip(from).take(to - from).collect::<String>()))
}

/// The position of the first `part` at or after `from`; -1 if there is none.
fn index_of<'a>(text: &str, part: &str, from: i64) -> Found<'a> {
    if part.is_empty() {
        return Ok(Val::Int(from));
    }
    let Some(start) = byte_of(text, from) else { return out_of(text, from) };
    Ok(place(text, text[start..].find(part).map(|at| start + at)))
}

/// The position of the last `part` at or before `from`; -1 if there is none.
fn last_index_of<'a>(text: &str, part: &str, from: Option<i64>) -> Found<'a> {
    let length = count(text.chars().count());
    if part.is_empty() {
        return Ok(Val::Int(from.unwrap_or(length)));
    }
    let from = from.unwrap_or(length - 1);
    let Some(start) = byte_of(text, from) else { return out_of(text, from) };
    // The part may extend behind its starting position. A position inside a letter is no start.
    let mut end = (start + part.len()).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Ok(place(text, text[..end].rfind(part)))
}

/// The result for a position outside the text: an error, or -1 if the text is empty.
fn out_of<'a>(text: &str, place: i64) -> Found<'a> {
    if text.is_empty() && place <= 0 { Ok(Val::Int(-1)) } else { Err(Failed::Place(place)) }
}

/// The byte offset of the character at position `place`.
fn byte_of(text: &str, place: i64) -> Option<usize> {
    text.char_indices().nth(usize::try_from(place).ok()?).map(|(at, _)| at)
}

/// Converts a byte offset into a position in characters; `None` becomes -1.
fn place<'a>(text: &str, at: Option<usize>) -> Val<'a> {
    Val::Int(at.map_or(-1, |at| count(text[..at].chars().count())))
}
