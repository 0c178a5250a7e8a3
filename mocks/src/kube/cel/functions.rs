//! The functions that expressions may call: those of the language, and of its libraries those about texts, lists,
//! patterns and optional values (Kubernetes documentation, "Common Expression Language in Kubernetes").
//!
//! Owns their types and what they do. Every one pays for the bytes and items that it looks at.

use std::rc::Rc;

use regex::{Regex, RegexBuilder};

use super::check::Type;
use super::run::{Found, Run, Stop, error, no_overload};
use super::value::{List, Val};

/// Sizes of compiled patterns that are tried, with what each byte of a text costs then: a larger pattern may look at
/// every byte more often.
const PATTERN_SIZES: &[(usize, usize)] = &[(16 * 1024, 1), (64 * 1024, 4), (512 * 1024, 32)];
/// What compiling a pattern costs, and each byte of it.
const PATTERN_STEPS: usize = 200;
const PATTERN_BYTE_STEPS: usize = 20;

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
    "hasValue",
    "value",
    "orValue",
    "or",
];

/// A compiled pattern and what it costs for each byte.
pub(super) struct Pattern {
    regex: Regex,
    weight: usize,
}

pub(super) fn is_known(name: &str) -> bool {
    KNOWN.contains(&name)
}

/// The type of a call, or `None` where no overload fits.
pub(super) fn answers(name: &str, target: Option<&Type>, arguments: &[Type]) -> Option<Type> {
    let any_list = Type::list(Type::Dyn);
    let is = |found: &Type, wanted: &Type| found.fits(wanted);
    let texts = |list: &[Type]| list.iter().all(|found| is(found, &Type::Text));
    let ints = |list: &[Type]| list.iter().all(|found| is(found, &Type::Int));
    let sized = |found: &Type| matches!(found, Type::Dyn | Type::Text | Type::List(_) | Type::Map(..));
    let Some(target) = target else {
        let [first, rest @ ..] = arguments else { return None };
        return match (name, rest) {
            ("size", []) => sized(first).then_some(Type::Int),
            ("dyn", []) => Some(Type::Dyn),
            ("int", []) => converts(first).then_some(Type::Int),
            ("uint", []) => converts(first).then_some(Type::Uint),
            ("double", []) => converts(first).then_some(Type::Double),
            ("string", []) => (converts(first) || *first == Type::Bool).then_some(Type::Text),
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
        ("find", [_]) | ("replace", [_, _]) => (on_text && texts(arguments)).then_some(Type::Text),
        ("replace", [_, _, count]) => {
            (on_text && texts(&arguments[..2]) && is(count, &Type::Int)).then_some(Type::Text)
        }
        ("substring", [_] | [_, _]) | ("charAt", [_]) => (on_text && ints(arguments)).then_some(Type::Text),
        ("indexOf" | "lastIndexOf", [wanted]) => {
            ((on_text && is(wanted, &Type::Text)) || (on_list && is(wanted, &item()))).then_some(Type::Int)
        }
        ("isSorted", []) => on_list.then_some(Type::Bool),
        ("sum" | "min" | "max", []) => on_list.then(item),
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
        (None, [value]) => convert(run, name, value),
        (None, [Val::Text(text), Val::Text(pattern)]) if name == "matches" => matches(run, text, pattern),
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
        Val::List(list) => list.len() == 0,
        Val::Map(map) => map.len() == 0,
        Val::Optional(Some(_)) => false,
    }
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
        ("matches", [Val::Text(pattern)]) => matches(run, text, pattern),
        ("find", [Val::Text(by)]) => {
            let pattern = pattern(run, by)?;
            run.pay(text.len() * pattern.weight)?;
            Ok(Val::text(pattern.regex.find(text).map_or("", |found| found.as_str())))
        }
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

/// Whether a pattern compiles; the error says why not.
pub(super) fn check_pattern(pattern: &str) -> Result<(), String> {
    compile(pattern).map(|_| ())
}

fn compile(pattern: &str) -> Result<Pattern, String> {
    let mut failed = String::new();
    for (size, weight) in PATTERN_SIZES {
        match RegexBuilder::new(pattern).size_limit(*size).build() {
            Ok(regex) => return Ok(Pattern { regex, weight: *weight }),
            Err(regex::Error::CompiledTooBig(_)) => "the pattern is too large".clone_into(&mut failed),
            Err(error) => return Err(error.to_string().lines().last().unwrap_or_default().to_owned()),
        }
    }
    Err(failed)
}

fn pattern(run: &mut Run<'_, '_>, source: &str) -> Result<Rc<Pattern>, Stop> {
    if let Some(known) = run.patterns.get(source) {
        return Ok(known.clone());
    }
    run.pay(PATTERN_STEPS + source.len() * PATTERN_BYTE_STEPS)?;
    let made = compile(source).map_err(|why| Stop::Error(format!("error parsing regexp: {why}")))?;
    // One that is large was expensive to make.
    run.pay(PATTERN_STEPS * made.weight)?;
    let made = Rc::new(made);
    run.patterns.insert(source.to_owned(), made.clone());
    Ok(made)
}

fn matches<'a>(run: &mut Run<'a, '_>, text: &str, source: &str) -> Found<'a> {
    let pattern = pattern(run, source)?;
    run.pay(text.len() * pattern.weight)?;
    Ok(Val::Bool(pattern.regex.is_match(text)))
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
