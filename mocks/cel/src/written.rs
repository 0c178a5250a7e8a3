//! `'…'.format([…])` and the conversion of CEL values to text (CEL string extensions, version 2, as in Kubernetes:
//! "Format").
//!
//! Owns the verbs, the types of their arguments, and the English notation of numbers. The cost of the resulting text is
//! subtracted from the budget.

use std::fmt::Write as _;

use super::failed::{Failed, Unfilled};
use super::run::{Found, Run};
use super::time;
use super::types::{DURATION, TIME, Type};
use super::value::{List, Map, Val};

/// Default number of decimal places of the verbs `%f` and `%e`.
const PLACES: usize = 6;
/// Maximum number of decimal places: far more than a 64-bit floating-point number distinguishes.
const PLACES_MAX: usize = 100;
/// Texts that the verbs `%f` and `%e` accept instead of a number.
const NUMBER_WORDS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// A verb and its precision in decimal places.
#[derive(Debug, Clone, Copy)]
struct Clause {
    verb: char,
    places: Option<usize>,
}

/// A part of a format text: plain text or a verb.
enum FormatPart<'t> {
    Plain(&'t str),
    Clause(Clause),
}

/// Splits a format text into plain texts and verbs; `given` is the number of arguments.
struct Parts<'t> {
    rest: &'t str,
    next: usize,
    given: usize,
}

impl<'t> Parts<'t> {
    fn new(text: &'t str, given: usize) -> Self {
        Self { rest: text, next: 0, given }
    }

    fn part(&mut self) -> Result<Option<FormatPart<'t>>, Unfilled> {
        let Some(at) = self.rest.find('%') else {
            let plain = std::mem::take(&mut self.rest);
            return Ok((!plain.is_empty()).then_some(FormatPart::Plain(plain)));
        };
        if at > 0 {
            let (plain, rest) = self.rest.split_at(at);
            self.rest = rest;
            return Ok(Some(FormatPart::Plain(plain)));
        }
        let after = &self.rest[1..];
        if let Some(rest) = after.strip_prefix('%') {
            self.rest = rest;
            return Ok(Some(FormatPart::Plain("%")));
        }
        if self.next >= self.given {
            return Err(Unfilled::TooFew { index: self.next });
        }
        if after.is_empty() {
            return Err(Unfilled::End);
        }
        let (places, after) = precision(after)?;
        let verb = after.chars().next().unwrap_or_default();
        if !"sdfebxXo".contains(verb) {
            return Err(Unfilled::Verb(verb));
        }
        self.rest = &after[verb.len_utf8()..];
        self.next += 1;
        Ok(Some(FormatPart::Clause(Clause { verb, places })))
    }
}

/// Reads the precision before a verb, such as `.3`; returns the precision and the rest of the text.
fn precision(rest: &str) -> Result<(Option<usize>, &str), Unfilled> {
    let Some(digits) = rest.strip_prefix('.') else { return Ok((None, rest)) };
    let end = digits.find(|c: char| !c.is_ascii_digit()).ok_or(Unfilled::PlacesEnd)?;
    match digits[..end].parse() {
        Ok(places) if places <= PLACES_MAX => Ok((Some(places), &digits[end..])),
        _ => Err(Unfilled::Places(digits[..end].to_owned())),
    }
}

fn misfit(verb: char, given: impl Into<String>) -> Unfilled {
    Unfilled::Misfit { verb, given: given.into() }
}

/// Checks a literal format text against the types of its arguments. An error has the index of the wrong argument, if
/// there is one.
pub(super) fn check(text: &str, types: &[Type]) -> Result<(), (Option<usize>, Unfilled)> {
    let mut parts = Parts::new(text, types.len());
    while let Some(part) = parts.part().map_err(|why| (None, why))? {
        let FormatPart::Clause(clause) = part else { continue };
        let at = parts.next - 1;
        if !fits(clause.verb, &types[at]) {
            return Err((Some(at), misfit(clause.verb, types[at].to_string())));
        }
    }
    match (parts.next, types.len()) {
        (taken, given) if taken == given => Ok(()),
        (taken, given) => Err((None, Unfilled::TooMany { taken, given })),
    }
}

fn fits(verb: char, given: &Type) -> bool {
    match (verb, given) {
        (_, Type::Dyn)
        | ('d' | 'b' | 'o' | 'x' | 'X', Type::Int | Type::Uint)
        | ('b', Type::Bool)
        | ('f' | 'e', Type::Double | Type::Text)
        | ('x' | 'X', Type::Text | Type::Bytes) => true,
        ('s', Type::Object(_) | Type::Optional(_)) => false,
        ('s', Type::Struct(_)) => *given == TIME || *given == DURATION,
        (verb, _) => verb == 's',
    }
}

pub(super) fn format<'a>(run: &mut Run<'a, '_>, text: &str, arguments: &List<'a>) -> Found<'a> {
    let mut out = String::new();
    let mut parts = Parts::new(text, arguments.len());
    while let Some(part) = parts.part()? {
        match part {
            FormatPart::Plain(plain) => out.push_str(plain),
            FormatPart::Clause(clause) => {
                let Some(value) = arguments.at(parts.next - 1) else {
                    return Err(Unfilled::TooFew { index: parts.next - 1 }.into());
                };
                let made = made(run, clause, &value)?;
                run.pay_for_bytes(made.len())?;
                out.push_str(&made);
            }
        }
    }
    run.pay_for_bytes(out.len())?;
    Ok(Val::text(out))
}

fn made<'a>(run: &mut Run<'a, '_>, clause: Clause, value: &Val<'a>) -> Result<String, Failed> {
    let Clause { verb, places } = clause;
    match (verb, value) {
        ('s', value) => {
            let mut out = String::new();
            show(run, value, &mut out)?;
            Ok(out)
        }
        ('d', Val::Int(_) | Val::Uint(_)) => Ok(value.shown()),
        ('f', Val::Double(number)) => Ok(fixed(*number, places.unwrap_or(PLACES))),
        // Here the precision is a width, as in the real server.
        ('e', Val::Double(number)) => Ok(format!("{:>width$}", scientific(*number), width = places.unwrap_or(PLACES))),
        ('f' | 'e', Val::Text(word)) if NUMBER_WORDS.contains(&&**word) => {
            made(run, clause, &Val::Double(word.parse().unwrap_or(f64::NAN)))
        }
        ('b', Val::Bool(flag)) => Ok(if *flag { "1" } else { "0" }.to_owned()),
        ('x' | 'X', Val::Text(text)) => hex(run, text.as_bytes(), verb),
        ('x' | 'X', Val::Bytes(bytes)) => hex(run, bytes, verb),
        ('b' | 'o' | 'x' | 'X', Val::Int(number)) => {
            let sign = if *number < 0 { "-" } else { "" };
            Ok(format!("{sign}{}", radix(number.unsigned_abs(), verb)))
        }
        ('b' | 'o' | 'x' | 'X', Val::Uint(number)) => Ok(radix(*number, verb)),
        (verb, value) => Err(misfit(verb, value.type_name()).into()),
    }
}

fn radix(number: u64, verb: char) -> String {
    match verb {
        'b' => format!("{number:b}"),
        'o' => format!("{number:o}"),
        'x' => format!("{number:x}"),
        _ => format!("{number:X}"),
    }
}

fn hex(run: &mut Run<'_, '_>, bytes: &[u8], verb: char) -> Result<String, Failed> {
    run.pay(bytes.len())?;
    let shown = |byte: &u8| if verb == 'x' { format!("{byte:02x}") } else { format!("{byte:02X}") };
    Ok(bytes.iter().map(shown).collect())
}

/// Formats a number as in English: `-1,234.50`.
fn fixed(number: f64, places: usize) -> String {
    if !number.is_finite() {
        return endless(number);
    }
    let plain = format!("{number:.places$}");
    let (sign, plain) = plain.strip_prefix('-').map_or(("", &*plain), |plain| ("-", plain));
    let (whole, part) = plain.find('.').map_or((plain, ""), |at| plain.split_at(at));
    let mut out = sign.to_owned();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + part
}

/// Formats a number with an exponent and narrow spaces: `1.500000 × 10⁰³`.
fn scientific(number: f64) -> String {
    if !number.is_finite() {
        return endless(number);
    }
    let plain = format!("{number:.PLACES$e}");
    let Some((mantissa, power)) = plain.split_once('e') else { return plain };
    let (sign, power) = power.strip_prefix('-').map_or(("", power), |power| ("\u{207b}", power));
    let raised = |digit: char| match digit {
        '1' => '\u{b9}',
        '2' => '\u{b2}',
        '3' => '\u{b3}',
        digit => digit.to_digit(10).and_then(|digit| char::from_u32(0x2070 + digit)).unwrap_or(digit),
    };
    let power: String = format!("{power:0>2}").chars().map(raised).collect();
    format!("{mantissa}\u{202f}\u{d7}\u{202f}10{sign}{power}")
}

fn endless(number: f64) -> String {
    match number {
        f64::INFINITY => "\u{221e}".to_owned(),
        f64::NEG_INFINITY => "-\u{221e}".to_owned(),
        _ => "NaN".to_owned(),
    }
}

/// Formats a floating-point number as Go does: very large and very small numbers have an exponent.
pub(super) fn real(number: f64) -> String {
    if !number.is_finite() {
        let infinite = if number > 0.0 { "+Inf" } else { "-Inf" };
        return if number.is_nan() { "NaN" } else { infinite }.to_owned();
    }
    let plain = format!("{number:e}");
    let power = plain.split_once('e').and_then(|(mantissa, power)| Some((mantissa, power.parse::<i32>().ok()?)));
    match power {
        Some((mantissa, power)) if !(-4..6).contains(&power) => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", power.unsigned_abs())
        }
        _ => number.to_string(),
    }
}

/// Writes a value as the verb `%s` does.
fn show<'a>(run: &mut Run<'a, '_>, value: &Val<'a>, out: &mut String) -> Result<(), Failed> {
    run.pay(1)?;
    match value {
        Val::Null => out.push_str("null"),
        Val::Text(text) => {
            run.pay_for_bytes(text.len())?;
            out.push_str(text);
        }
        Val::Bool(_) | Val::Int(_) | Val::Uint(_) => out.push_str(&value.shown()),
        Val::Double(number) => out.push_str(&real(*number)),
        Val::Bytes(bytes) => {
            run.pay_for_bytes(bytes.len())?;
            out.push_str(&String::from_utf8_lossy(bytes));
        }
        Val::Time(at) => out.push_str(&at.to_string()),
        Val::Duration(nanos) => out.push_str(&time::show_span(*nanos)),
        Val::Type(name) => out.push_str(name),
        Val::List(list) => {
            out.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                show_inside(run, &item, out)?;
            }
            out.push(']');
        }
        Val::Map(map) => show_map(run, map, out)?,
        Val::Thing(_) | Val::Optional(_) => return Err(misfit('s', value.type_name()).into()),
        Val::Broken(expected) => return Err(Failed::Data(expected)),
    }
    Ok(())
}

/// Writes a value in a list or map in the syntax of expressions.
fn show_inside<'a>(run: &mut Run<'a, '_>, value: &Val<'a>, out: &mut String) -> Result<(), Failed> {
    let (before, after) = match value {
        Val::Double(number) if number.is_finite() => {
            // Writing into a text does not fail.
            let _ = write!(out, "{number:.PLACES$}");
            return Ok(());
        }
        Val::Text(_) | Val::Double(_) => ("", ""),
        Val::Bytes(_) => ("b", ""),
        Val::Time(_) => ("timestamp(", ")"),
        Val::Duration(_) => ("duration(", ")"),
        value => return show(run, value, out),
    };
    let mut shown = String::new();
    show(run, value, &mut shown)?;
    out.push_str(before);
    out.push_str(&quote(&shown));
    out.push_str(after);
    Ok(())
}

fn show_map<'a>(run: &mut Run<'a, '_>, map: &Map<'a>, out: &mut String) -> Result<(), Failed> {
    let mut pairs = Vec::new();
    for (key, value) in map.entries() {
        let (mut shown_key, mut shown_value) = (String::new(), String::new());
        show_inside(run, &key, &mut shown_key)?;
        show_inside(run, &value, &mut shown_value)?;
        pairs.push((shown_key, shown_value));
    }
    // The order of a map must not be visible.
    pairs.sort();
    let pairs: Vec<String> = pairs.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    out.push('{');
    out.push_str(&pairs.join(", "));
    out.push('}');
    Ok(())
}

/// Quotes a text in the syntax of expressions.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}
