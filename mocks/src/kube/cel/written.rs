//! `'…'.format([…])` and what a value looks like in a text (CEL string extensions, "Format").
//!
//! Owns the verbs. A text that is made is paid for as it grows.

use super::run::{Found, Run, Stop, error};
use super::time;
use super::value::{List, Map, Thing, Val};

/// Decimal places where a verb does not say how many.
const PLACES: usize = 6;
/// Decimal places at most; a number has no more that mean something.
const PLACES_MAX: usize = 100;

/// Puts arguments into a text.
pub(super) fn format<'a>(run: &mut Run<'a, '_>, text: &str, arguments: &List<'a>) -> Found<'a> {
    let (mut out, mut rest, mut next) = (String::new(), text, 0);
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let (places, after) = precision(rest)?;
        let Some(verb) = after.chars().next() else {
            return error("could not parse formatting clause: unexpected end of string");
        };
        rest = &after[verb.len_utf8()..];
        let Some(value) = arguments.at(next) else { return error(format!("index {next} out of range")) };
        next += 1;
        let made = clause(run, verb, places, &value)?;
        run.pay_for_bytes(made.len())?;
        out.push_str(&made);
    }
    out.push_str(rest);
    if next < arguments.len() {
        return error(format!(
            "too many arguments supplied to string.format (expected {next}, got {})",
            arguments.len()
        ));
    }
    run.pay_for_bytes(out.len())?;
    Ok(Val::text(out))
}

/// `.3` in front of a verb.
fn precision(rest: &str) -> Result<(Option<usize>, &str), Stop> {
    let Some(digits) = rest.strip_prefix('.') else { return Ok((None, rest)) };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    match digits[..end].parse() {
        Ok(places) if places <= PLACES_MAX => Ok((Some(places), &digits[end..])),
        _ => error("error while parsing precision"),
    }
}

fn clause<'a>(run: &mut Run<'a, '_>, verb: char, places: Option<usize>, value: &Val<'a>) -> Result<String, Stop> {
    let misfit = |verb: &str| error(format!("could not format: {verb} clause cannot be used on {}", value.type_name()));
    match (verb, value) {
        ('s', value) => {
            let mut out = String::new();
            show(run, value, &mut out)?;
            Ok(out)
        }
        ('d', Val::Int(_) | Val::Uint(_)) => Ok(value.shown()),
        ('d', Val::Double(number)) if !number.is_finite() => Ok(number_text(*number)),
        ('d', _) => misfit("decimal"),
        ('f' | 'e', number) => match number.as_double() {
            Some(number) if !number.is_finite() => Ok(number_text(number)),
            Some(number) if verb == 'f' => Ok(format!("{number:.*}", places.unwrap_or(PLACES))),
            Some(number) => Ok(exponent(number, places.unwrap_or(PLACES))),
            None => misfit("fixed-point"),
        },
        ('b', Val::Bool(flag)) => Ok(if *flag { "1" } else { "0" }.to_owned()),
        ('x' | 'X', Val::Text(text)) => hex(run, text.as_bytes(), verb),
        ('x' | 'X', Val::Bytes(bytes)) => hex(run, bytes, verb),
        ('b' | 'o' | 'x' | 'X', Val::Int(number)) => {
            let sign = if *number < 0 { "-" } else { "" };
            Ok(format!("{sign}{}", radix(number.unsigned_abs(), verb)))
        }
        ('b' | 'o' | 'x' | 'X', Val::Uint(number)) => Ok(radix(*number, verb)),
        ('b' | 'o' | 'x' | 'X', _) => misfit("radix"),
        (verb, _) => error(format!("could not parse formatting clause: unrecognized formatting clause \"{verb}\"")),
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

fn hex(run: &mut Run<'_, '_>, bytes: &[u8], verb: char) -> Result<String, Stop> {
    run.pay(bytes.len())?;
    let shown = |byte: &u8| if verb == 'x' { format!("{byte:02x}") } else { format!("{byte:02X}") };
    Ok(bytes.iter().map(shown).collect())
}

/// `1.5e+03`: an exponent has a sign and two digits.
fn exponent(number: f64, places: usize) -> String {
    let plain = format!("{number:.places$e}");
    let Some((mantissa, power)) = plain.split_once('e') else { return plain };
    let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
    format!("{mantissa}e{sign}{power:0>2}")
}

fn number_text(number: f64) -> String {
    match number {
        number if number.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        number => number.to_string(),
    }
}

/// Writes a value as `%s` does.
fn show<'a>(run: &mut Run<'a, '_>, value: &Val<'a>, out: &mut String) -> Result<(), Stop> {
    run.pay(1)?;
    match value {
        Val::Null => out.push_str("null"),
        Val::Text(text) => {
            run.pay_for_bytes(text.len())?;
            out.push_str(text);
        }
        Val::Bool(_) | Val::Int(_) | Val::Uint(_) => out.push_str(&value.shown()),
        Val::Double(number) => out.push_str(&number_text(*number)),
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
                show(run, &item, out)?;
            }
            out.push(']');
        }
        Val::Map(map) => show_map(run, map, out)?,
        Val::Thing(thing) => match &**thing {
            Thing::Url(_) | Thing::Format(_) => {
                return error(format!("could not format: {} cannot be shown", value.type_name()));
            }
            shown => out.push_str(&shown.shown()),
        },
        Val::Optional(_) => return error("could not format: optional values cannot be shown"),
        Val::Broken(why) => return error(&**why),
    }
    Ok(())
}

fn show_map<'a>(run: &mut Run<'a, '_>, map: &Map<'a>, out: &mut String) -> Result<(), Stop> {
    let mut pairs = Vec::new();
    for (key, value) in map.entries() {
        let (mut shown_key, mut shown_value) = (String::new(), String::new());
        show(run, &key, &mut shown_key)?;
        show(run, &value, &mut shown_value)?;
        pairs.push((shown_key, shown_value));
    }
    // No order of a map can be told apart.
    pairs.sort();
    let pairs: Vec<String> = pairs.into_iter().map(|(key, value)| format!("{key}: {value}")).collect();
    out.push('{');
    out.push_str(&pairs.join(", "));
    out.push('}');
    Ok(())
}
