//! The functions that expressions may call: those of the language, and of its libraries those about texts, lists,
//! patterns and optional values (Kubernetes documentation, "Common Expression Language in Kubernetes"). Those with values of
//! their own are in `library`.
//!
//! Owns their types and what they do. Every one pays for the bytes and items that it looks at.

use std::rc::Rc;

use super::run::{Found, Run, Stop, error, no_overload};
use super::types::{DURATION, TIME, Type};
use super::value::{List, Val};
use super::{pattern, time, written};

const KNOWN: &[&str] = &[
    "size",
    "int",
    "uint",
    "double",
    "string",
    "bool",
    "dyn",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "lowerAscii",
    "upperAscii",
    "trim",
    "split",
    "join",
    "replace",
    "substring",
    "indexOf",
    "lastIndexOf",
    "charAt",
    "isSorted",
    "sum",
    "min",
    "max",
    "find",
    "findAll",
    "format",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "sets.contains",
    "sets.equivalent",
    "sets.intersects",
    "strings.quote",
    "type",
    "hasValue",
    "value",
    "orValue",
    "or",
];

pub(super) fn is_known(name: &str) -> bool {
    KNOWN.contains(&name)
}

/// The type of a call, or `None` where no overload fits.
pub(super) fn answers(name: &str, target: Option<&Type>, arguments: &[Type]) -> Option<Type> {
    let any_list = Type::list(Type::Dyn);
    let is = |found: &Type, wanted: &Type| found.fits(wanted);
    let texts = |list: &[Type]| list.iter().all(|found| is(found, &Type::Text));
    let ints = |list: &[Type]| list.iter().all(|found| is(found, &Type::Int));
    let sized = |found: &Type| matches!(found, Type::Dyn | Type::Text | Type::Bytes | Type::List(_) | Type::Map(..));
    let Some(target) = target else {
        let [first, rest @ ..] = arguments else {
            return (name == "optional.none").then(|| Type::optional(Type::Dyn));
        };
        return match (name, rest) {
            ("optional.of" | "optional.ofNonZeroValue", []) => Some(Type::optional(first.clone())),
            ("type", []) => Some(Type::Meta),
            ("strings.quote", []) => is(first, &Type::Text).then_some(Type::Text),
            ("sets.contains" | "sets.equivalent" | "sets.intersects", [other]) => {
                (is(first, &any_list) && is(other, first)).then_some(Type::Bool)
            }
            ("size", []) => sized(first).then_some(Type::Int),
            ("dyn", []) => Some(Type::Dyn),
            ("int", []) => (converts(first) || *first == TIME).then_some(Type::Int),
            ("uint", []) => converts(first).then_some(Type::Uint),
            ("double", []) => converts(first).then_some(Type::Double),
            ("string", []) => {
                let shown = matches!(first, Type::Bool | Type::Bytes | Type::Struct("net.IP" | "net.CIDR"));
                (converts(first) || shown || *first == TIME || *first == DURATION).then_some(Type::Text)
            }
            ("bool", []) => matches!(first, Type::Dyn | Type::Text | Type::Bool).then_some(Type::Bool),
            ("matches", [pattern]) => texts(&[first.clone(), pattern.clone()]).then_some(Type::Bool),
            _ => None,
        };
    };
    let on_text = is(target, &Type::Text);
    let on_list = is(target, &any_list);
    let item = || match target {
        Type::List(item) => (**item).clone(),
        _ => Type::Dyn,
    };
    match (name, arguments) {
        ("size", []) => sized(target).then_some(Type::Int),
        ("contains" | "startsWith" | "endsWith" | "matches", [_]) => {
            (on_text && texts(arguments)).then_some(Type::Bool)
        }
        ("lowerAscii" | "upperAscii" | "trim", []) => on_text.then_some(Type::Text),
        ("split", [_]) => (on_text && texts(arguments)).then(|| Type::list(Type::Text)),
        ("split", [by, count]) => {
            (on_text && is(by, &Type::Text) && is(count, &Type::Int)).then(|| Type::list(Type::Text))
        }
        ("join", []) => is(target, &Type::list(Type::Text)).then_some(Type::Text),
        ("join", [_]) => (is(target, &Type::list(Type::Text)) && texts(arguments)).then_some(Type::Text),
        ("findAll", [_]) => (on_text && texts(arguments)).then(|| Type::list(Type::Text)),
        ("findAll", [by, most]) => {
            (on_text && is(by, &Type::Text) && is(most, &Type::Int)).then(|| Type::list(Type::Text))
        }
        ("format", [values]) => (on_text && is(values, &any_list)).then_some(Type::Text),
        ("find", [_]) | ("replace", [_, _]) => (on_text && texts(arguments)).then_some(Type::Text),
        ("replace", [_, _, count]) => {
            (on_text && texts(&arguments[..2]) && is(count, &Type::Int)).then_some(Type::Text)
        }
        ("substring", [_] | [_, _]) | ("charAt", [_]) => (on_text && ints(arguments)).then_some(Type::Text),
        ("indexOf" | "lastIndexOf", [wanted]) => {
            ((on_text && is(wanted, &Type::Text)) || (on_list && is(wanted, &item()))).then_some(Type::Int)
        }
        ("isSorted", []) => on_list.then_some(Type::Bool),
        ("sum", []) => {
            let item = item();
            (on_list && (converts(&item) || item == DURATION) && item != Type::Text).then_some(item)
        }
        ("min" | "max", []) => on_list.then(item),
        ("hasValue", []) => matches!(target, Type::Optional(_) | Type::Dyn).then_some(Type::Bool),
        ("value", []) => inside(target),
        ("orValue", [other]) => inside(target).filter(|inner| inner.fits(other)),
        ("or", [other]) => {
            matches!(target, Type::Optional(_) | Type::Dyn).then(|| target.clone()).filter(|t| t.fits(other))
        }
        _ => None,
    }
}

fn converts(found: &Type) -> bool {
    matches!(found, Type::Dyn | Type::Int | Type::Uint | Type::Double | Type::Text)
}

fn inside(found: &Type) -> Option<Type> {
    match found {
        Type::Optional(inner) => Some((**inner).clone()),
        Type::Dyn => Some(Type::Dyn),
        _ => None,
    }
}

/// Calls a function.
pub(super) fn call<'a>(
    run: &mut Run<'a, '_>,
    name: &str,
    target: Option<&Val<'a>>,
    arguments: &[Val<'a>],
) -> Found<'a> {
    match (target, arguments) {
        (None, []) if name == "optional.none" => Ok(Val::Optional(None)),
        (None, [value]) => match name {
            "optional.ofNonZeroValue" if is_zero(value) => Ok(Val::Optional(None)),
            "optional.of" | "optional.ofNonZeroValue" => Ok(Val::some(value.clone())),
            "type" => Ok(Val::Type(value.type_name())),
            _ => convert(run, name, value),
        },
        (None, [Val::List(one), Val::List(other)]) => match name {
            "sets.contains" => Ok(Val::Bool(is_subset(run, other, one)?)),
            "sets.equivalent" => Ok(Val::Bool(is_subset(run, other, one)? && is_subset(run, one, other)?)),
            "sets.intersects" => intersects(run, one, other),
            _ => no_overload(),
        },
        (None, [Val::Text(text), Val::Text(pattern)]) if name == "matches" => pattern::matches(run, text, pattern),
        (Some(target), []) if name == "size" => convert(run, name, target),
        (Some(Val::Text(text)), _) => on_text(run, name, text, arguments),
        (Some(Val::List(list)), _) => on_list(run, name, list, arguments),
        (Some(Val::Optional(inner)), _) => on_optional(name, inner.as_ref(), arguments),
        _ => no_overload(),
    }
}

/// Whether a value is what its type is without anything.
pub(super) fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null | Val::Optional(None) => true,
        Val::Bool(flag) => !flag,
        Val::Int(number) => *number == 0,
        Val::Uint(number) => *number == 0,
        Val::Double(number) => *number == 0.0,
        Val::Text(text) => text.is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::Duration(nanos) => *nanos == 0,
        Val::List(list) => list.len() == 0,
        Val::Map(map) => map.len() == 0,
        Val::Optional(Some(_)) | Val::Time(_) | Val::Type(_) | Val::Thing(_) | Val::Broken(_) => false,
    }
}

/// Whether the other list has everything that is in one.
fn is_subset<'a>(run: &mut Run<'a, '_>, one: &List<'a>, other: &List<'a>) -> Result<bool, Stop> {
    let within = Val::List(other.clone());
    for item in one.iter() {
        if !run.contains(&within, &item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects<'a>(run: &mut Run<'a, '_>, one: &List<'a>, other: &List<'a>) -> Found<'a> {
    let within = Val::List(other.clone());
    for item in one.iter() {
        if run.contains(&within, &item)? {
            return Ok(Val::Bool(true));
        }
    }
    Ok(Val::Bool(false))
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be within the range before")]
fn convert<'a>(run: &mut Run<'a, '_>, name: &str, value: &Val<'a>) -> Found<'a> {
    if let Val::Text(text) = value {
        run.pay_for_bytes(text.len())?;
    }
    let impossible = || error(format!("type conversion error to '{name}'"));
    let range = || error("integer overflow");
    match (name, value) {
        ("dyn", value) => Ok(value.clone()),
        ("size", Val::Text(text)) => Ok(Val::Int(count(text.chars().count()))),
        ("size", Val::Bytes(bytes)) => Ok(Val::Int(count(bytes.len()))),
        ("strings.quote", Val::Text(text)) => Ok(Val::text(quote(text))),
        ("string", Val::Bytes(bytes)) => {
            run.pay_for_bytes(bytes.len())?;
            std::str::from_utf8(bytes)
                .map_or_else(|_| error("invalid UTF-8 in bytes, cannot convert to string"), |text| Ok(Val::text(text)))
        }
        ("string", Val::Time(at)) => Ok(Val::text(at.to_string())),
        ("string", Val::Duration(nanos)) => Ok(Val::text(time::show_span(*nanos))),
        ("string", Val::Thing(thing)) => Ok(Val::text(thing.shown())),
        ("int", Val::Time(at)) => Ok(Val::Int(at.as_second())),
        ("size", Val::List(list)) => Ok(Val::Int(count(list.len()))),
        ("size", Val::Map(map)) => Ok(Val::Int(count(map.len()))),
        ("int", Val::Int(_))
        | ("uint", Val::Uint(_))
        | ("double", Val::Double(_))
        | ("string", Val::Text(_))
        | ("bool", Val::Bool(_)) => Ok(value.clone()),
        ("int", Val::Uint(number)) => i64::try_from(*number).map_or_else(|_| range(), |number| Ok(Val::Int(number))),
        // 2^63 and what is not a number do not fit.
        ("int", Val::Double(number)) if number.abs() < 9.223_372_036_854_776e18 => Ok(Val::Int(*number as i64)),
        ("int", Val::Text(text)) => text.parse().map_or_else(|_| impossible(), |number| Ok(Val::Int(number))),
        ("uint", Val::Int(number)) => u64::try_from(*number).map_or_else(|_| range(), |number| Ok(Val::Uint(number))),
        ("uint", Val::Double(number)) if (0.0..1.844_674_407_370_955_2e19).contains(number) => {
            #[expect(clippy::cast_sign_loss, reason = "it is not negative")]
            let number = *number as u64;
            Ok(Val::Uint(number))
        }
        ("int" | "uint", Val::Double(_)) => range(),
        ("uint", Val::Text(text)) => text.parse().map_or_else(|_| impossible(), |number| Ok(Val::Uint(number))),
        ("double", Val::Text(text)) => text.parse().map_or_else(|_| impossible(), |number| Ok(Val::Double(number))),
        ("double", number) => number.as_double().map_or_else(no_overload, |number| Ok(Val::Double(number))),
        ("string", Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Bool(_)) => Ok(Val::text(value.shown())),
        ("bool", Val::Text(text)) => match &**text {
            "1" | "t" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
            _ => impossible(),
        },
        _ => no_overload(),
    }
}

fn on_text<'a>(run: &mut Run<'a, '_>, name: &str, text: &str, arguments: &[Val<'a>]) -> Found<'a> {
    run.pay_for_bytes(text.len())?;
    match (name, arguments) {
        ("contains", [Val::Text(part)]) => Ok(Val::Bool(text.contains(&**part))),
        ("startsWith", [Val::Text(part)]) => Ok(Val::Bool(text.starts_with(&**part))),
        ("endsWith", [Val::Text(part)]) => Ok(Val::Bool(text.ends_with(&**part))),
        ("matches", [Val::Text(by)]) => pattern::matches(run, text, by),
        ("find", [Val::Text(by)]) => pattern::find(run, text, by),
        ("findAll", [Val::Text(by)]) => pattern::find_all(run, text, by, -1),
        ("findAll", [Val::Text(by), Val::Int(most)]) => pattern::find_all(run, text, by, *most),
        ("format", [Val::List(values)]) => written::format(run, text, values),
        ("lowerAscii", []) => Ok(Val::text(text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Val::text(text.to_ascii_uppercase())),
        ("trim", []) => Ok(Val::text(text.trim())),
        ("split", [Val::Text(by)]) => split(run, text, by, -1),
        ("split", [Val::Text(by), Val::Int(most)]) => split(run, text, by, *most),
        ("replace", [Val::Text(old), Val::Text(new)]) => replace(run, text, old, new, -1),
        ("replace", [Val::Text(old), Val::Text(new), Val::Int(most)]) => replace(run, text, old, new, *most),
        ("substring", [Val::Int(from)]) => substring(text, *from, count(text.chars().count())),
        ("substring", [Val::Int(from), Val::Int(to)]) => substring(text, *from, *to),
        ("charAt", [Val::Int(at)]) if *at == count(text.chars().count()) => Ok(Val::lent("")),
        ("charAt", [Val::Int(at)]) => substring(text, *at, at.saturating_add(1)),
        ("indexOf", [Val::Text(part)]) => Ok(place(text, text.find(&**part))),
        ("lastIndexOf", [Val::Text(part)]) => Ok(place(text, text.rfind(&**part))),
        _ => no_overload(),
    }
}

fn on_list<'a>(run: &mut Run<'a, '_>, name: &str, list: &List<'a>, arguments: &[Val<'a>]) -> Found<'a> {
    run.pay(list.len())?;
    match (name, arguments) {
        ("join", []) => join(run, list, ""),
        ("join", [Val::Text(by)]) => join(run, list, by),
        ("indexOf" | "lastIndexOf", [wanted]) => {
            let mut at = -1;
            for (index, item) in list.iter().enumerate() {
                if run.equal(&item, wanted)? {
                    at = count(index);
                    if name == "indexOf" {
                        break;
                    }
                }
            }
            Ok(Val::Int(at))
        }
        ("isSorted", []) => {
            for (one, next) in list.iter().zip(list.iter().skip(1)) {
                match one.compare(&next) {
                    Some(std::cmp::Ordering::Greater) => return Ok(Val::Bool(false)),
                    Some(_) => {}
                    None => return no_overload(),
                }
            }
            Ok(Val::Bool(true))
        }
        ("min" | "max", []) => {
            let wanted = if name == "min" { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater };
            let mut items = list.iter();
            let Some(mut best) = items.next() else { return error(format!("{name} called on empty list")) };
            for item in items {
                let Some(order) = item.compare(&best) else { return no_overload() };
                if order == wanted {
                    best = item;
                }
            }
            Ok(best)
        }
        ("sum", []) => sum(list),
        _ => no_overload(),
    }
}

fn sum<'a>(list: &List<'a>) -> Found<'a> {
    let mut items = list.iter();
    let Some(first) = items.next() else { return Ok(Val::Int(0)) };
    items.try_fold(first, |sum, item| match (&sum, &item) {
        (Val::Int(a), Val::Int(b)) => {
            a.checked_add(*b).map_or_else(|| error("integer overflow"), |number| Ok(Val::Int(number)))
        }
        (Val::Uint(a), Val::Uint(b)) => {
            a.checked_add(*b).map_or_else(|| error("unsigned integer overflow"), |number| Ok(Val::Uint(number)))
        }
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a + b)),
        (Val::Duration(a), Val::Duration(b)) => {
            a.checked_add(*b).map_or_else(|| error("integer overflow"), |nanos| Ok(Val::Duration(nanos)))
        }
        _ => no_overload(),
    })
}

fn on_optional<'a>(name: &str, inner: Option<&Rc<Val<'a>>>, arguments: &[Val<'a>]) -> Found<'a> {
    match (name, arguments) {
        ("hasValue", []) => Ok(Val::Bool(inner.is_some())),
        ("value", []) => inner.map_or_else(|| error("optional.none() dereference"), |inner| Ok((**inner).clone())),
        ("orValue", [other]) => Ok(inner.map_or_else(|| other.clone(), |inner| (**inner).clone())),
        ("or", [other]) => Ok(inner.map_or_else(|| other.clone(), |inner| Val::Optional(Some(inner.clone())))),
        _ => no_overload(),
    }
}

/// A text as it is written in an expression.
fn quote(text: &str) -> String {
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

fn split<'a>(run: &mut Run<'a, '_>, text: &str, by: &str, most: i64) -> Found<'a> {
    run.pay(text.len())?;
    let owned = |part: &str| Val::text(part);
    Ok(Val::list(match most {
        0 => Vec::new(),
        // Between every two letters, and not before the first.
        _ if by.is_empty() => text.chars().map(|letter| Val::text(letter.to_string())).collect(),
        1.. => text.splitn(usize::try_from(most).unwrap_or(usize::MAX), by).map(owned).collect(),
        _ => text.split(by).map(owned).collect(),
    }))
}

fn replace<'a>(run: &mut Run<'a, '_>, text: &str, old: &str, new: &str, most: i64) -> Found<'a> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let places = text.matches(old).take(most).count();
    run.pay_for_bytes(text.len() + places.saturating_mul(new.len()))?;
    Ok(Val::text(text.replacen(old, new, most)))
}

fn join<'a>(run: &mut Run<'a, '_>, list: &List<'a>, by: &str) -> Found<'a> {
    let mut text = String::new();
    for (index, item) in list.iter().enumerate() {
        let Val::Text(part) = item else { return no_overload() };
        run.pay_for_bytes(part.len() + by.len())?;
        if index > 0 {
            text.push_str(by);
        }
        text.push_str(&part);
    }
    Ok(Val::text(text))
}

/// The letters from one place to before another.
fn substring<'a>(text: &str, from: i64, to: i64) -> Found<'a> {
    let length = count(text.chars().count());
    if from < 0 || from > to || to > length {
        return error(format!("index out of range: {}", if from < 0 || from > length { from } else { to }));
    }
    let (from, to) = (usize::try_from(from).unwrap_or(0), usize::try_from(to).unwrap_or(0));
    Ok(Val::text(text.chars().skip(from).take(to - from).collect::<String>()))
}

/// A place in bytes as one in letters; -1 is nowhere.
fn place<'a>(text: &str, at: Option<usize>) -> Val<'a> {
    Val::Int(at.map_or(-1, |at| count(text[..at].chars().count())))
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
