//! The core functions of CEL, and the library functions for texts, lists, patterns and optionals (Kubernetes
//! documentation, "Common Expression Language in Kubernetes"). Functions for other value types are in `library`.
//!
//! Owns the types and the evaluation of core functions. Every function subtracts the cost of the bytes and items that
//! it reads from the budget.

use std::rc::Rc;

use super::Failed;
use super::run::{Found, Run, no_overload};
use super::types::{DURATION, TIME, Type};
use super::value::{List, Val};
use super::{time, written};

mod lists;
mod patterns;
mod texts;

const KNOWN: &str = "size int uint double string bool dyn contains startsWith endsWith matches lowerAscii upperAscii \
    trim split join replace substring indexOf lastIndexOf charAt isSorted sum min max find findAll format \
    optional.none optional.of optional.ofNonZeroValue optional.unwrap unwrapOpt first last sets.contains \
    sets.equivalent sets.intersects strings.quote type hasValue value orValue or";

pub(super) fn is_known(name: &str) -> bool {
    KNOWN.split(' ').any(|known| known == name)
}

/// The result type of a call; `None` if no overload accepts the arguments.
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
            ("optional.unwrap", []) => unwrapped(first),
            ("strings.quote", []) => is(first, &Type::Text).then_some(Type::Text),
            ("sets.contains" | "sets.equivalent" | "sets.intersects", [other]) => {
                (is(first, &any_list) && is(other, first)).then_some(Type::Bool)
            }
            ("size", []) => sized(first).then_some(Type::Int),
            ("dyn", []) => Some(Type::Dyn),
            ("int", []) => (converts(first) || *first == TIME || *first == DURATION).then_some(Type::Int),
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
        ("indexOf" | "lastIndexOf", [wanted, from]) => {
            (on_text && is(wanted, &Type::Text) && is(from, &Type::Int)).then_some(Type::Int)
        }
        ("unwrapOpt", []) => unwrapped(target),
        ("first" | "last", []) => on_list.then(|| Type::optional(item())),
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

/// The type of `optional.unwrap` for a list of optionals: the list of their values.
fn unwrapped(found: &Type) -> Option<Type> {
    match found {
        Type::List(item) => inside(item).map(Type::list),
        Type::Dyn => Some(Type::list(Type::Dyn)),
        _ => None,
    }
}

fn inside(found: &Type) -> Option<Type> {
    match found {
        Type::Optional(inner) => Some((**inner).clone()),
        Type::Dyn => Some(Type::Dyn),
        _ => None,
    }
}

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
            "optional.unwrap" => match value {
                Val::List(list) => lists::on_list(run, "unwrapOpt", list, &[]),
                _ => no_overload(),
            },
            _ => convert(run, name, value),
        },
        (None, [Val::List(one), Val::List(other)]) => match name {
            "sets.contains" => Ok(Val::Bool(is_subset(run, other, one)?)),
            "sets.equivalent" => Ok(Val::Bool(is_subset(run, other, one)? && is_subset(run, one, other)?)),
            "sets.intersects" => intersects(run, one, other),
            _ => no_overload(),
        },
        (None, [Val::Text(text), Val::Text(pattern)]) if name == "matches" => patterns::matches(run, text, pattern),
        (Some(target), []) if name == "size" => convert(run, name, target),
        (Some(Val::Text(text)), _) => texts::on_text(run, name, text, arguments),
        (Some(Val::List(list)), _) => lists::on_list(run, name, list, arguments),
        (Some(Val::Optional(inner)), _) => on_optional(name, inner.as_ref(), arguments),
        _ => no_overload(),
    }
}

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

/// Whether the list `other` contains all items of `one`.
fn is_subset<'a>(run: &mut Run<'a, '_>, one: &List<'a>, other: &List<'a>) -> Result<bool, Failed> {
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
    let impossible = || Err(Failed::Conversion(name.to_owned()));
    let range = || Err(Failed::Overflow(if name == "uint" { "unsigned integer" } else { "integer" }));
    match (name, value) {
        ("dyn", value) => Ok(value.clone()),
        ("size", Val::Text(text)) => Ok(Val::Int(count(text.chars().count()))),
        ("size", Val::Bytes(bytes)) => Ok(Val::Int(count(bytes.len()))),
        ("strings.quote", Val::Text(text)) => Ok(Val::text(written::quote(text))),
        ("string", Val::Bytes(bytes)) => {
            run.pay_for_bytes(bytes.len())?;
            std::str::from_utf8(bytes).map_or_else(|_| Err(Failed::Utf8), |text| Ok(Val::text(text)))
        }
        ("string", Val::Double(number)) => Ok(Val::text(written::real(*number))),
        ("string", Val::Time(at)) => Ok(Val::text(at.to_string())),
        ("string", Val::Duration(nanos)) => Ok(Val::text(time::show_span(*nanos))),
        ("string", Val::Thing(thing)) => Ok(Val::text(thing.shown())),
        ("int", Val::Time(at)) => Ok(Val::Int(at.as_second())),
        ("int", Val::Duration(nanos)) => Ok(Val::Int(*nanos)),
        ("size", Val::List(list)) => Ok(Val::Int(count(list.len()))),
        ("size", Val::Map(map)) => Ok(Val::Int(count(map.len()))),
        ("int", Val::Int(_))
        | ("uint", Val::Uint(_))
        | ("double", Val::Double(_))
        | ("string", Val::Text(_))
        | ("bool", Val::Bool(_)) => Ok(value.clone()),
        ("int", Val::Uint(number)) => i64::try_from(*number).map_or_else(|_| range(), |number| Ok(Val::Int(number))),
        // 2^63 and NaN do not fit.
        ("int", Val::Double(number)) if number.abs() < 9.223_372_036_854_776e18 => Ok(Val::Int(*number as i64)),
        ("int", Val::Text(text)) => text.parse().map_or_else(|_| impossible(), |number| Ok(Val::Int(number))),
        ("uint", Val::Int(number)) => u64::try_from(*number).map_or_else(|_| range(), |number| Ok(Val::Uint(number))),
        ("uint", Val::Double(number)) if (0.0..1.844_674_407_370_955_2e19).contains(number) => {
            #[expect(clippy::cast_sign_loss, reason = "it is not negative")]
            let number = *number as u64;
            Ok(Val::Uint(number))
        }
        ("int" | "uint", Val::Double(_)) => range(),
        // Go accepts a sign before a signed integer only.
        ("uint", Val::Text(text)) if text.starts_with('+') => impossible(),
        ("uint", Val::Text(text)) => text.parse().map_or_else(|_| impossible(), |number| Ok(Val::Uint(number))),
        ("double", Val::Text(text)) => match text.parse::<f64>() {
            // A number that is too large is invalid, and infinity has a name of its own.
            Ok(number) if number.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) => impossible(),
            Ok(number) => Ok(Val::Double(number)),
            Err(_) => impossible(),
        },
        ("double", number) => number.as_double().map_or_else(no_overload, |number| Ok(Val::Double(number))),
        ("string", Val::Int(_) | Val::Uint(_) | Val::Bool(_)) => Ok(Val::text(value.shown())),
        ("bool", Val::Text(text)) => match &**text {
            "1" | "t" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
            _ => impossible(),
        },
        _ => no_overload(),
    }
}

fn on_optional<'a>(name: &str, inner: Option<&Rc<Val<'a>>>, arguments: &[Val<'a>]) -> Found<'a> {
    match (name, arguments) {
        ("hasValue", []) => Ok(Val::Bool(inner.is_some())),
        ("value", []) => inner.map_or_else(|| Err(Failed::Nothing), |inner| Ok((**inner).clone())),
        ("orValue", [other]) => Ok(inner.map_or_else(|| other.clone(), |inner| (**inner).clone())),
        ("or", [other]) => Ok(inner.map_or_else(|| other.clone(), |inner| Val::Optional(Some(inner.clone())))),
        _ => no_overload(),
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
