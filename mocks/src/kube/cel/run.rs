//! Running a compiled expression on a budget.
//!
//! Owns operators, fields, macros and the count of steps. `&&`, `||`, `all` and `exists` forgive an error where the other
//! side decides, as the language says; nothing forgives an empty budget.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::decl::Order;
use super::functions;
use super::parse::{Kind, Node};
use super::pattern::Pattern;
use super::value::{List, Map, Val};
use super::{library, time};

mod macros;

/// Bytes that are looked at or copied for the price of one step, as in a real server.
const BYTES_PER_STEP: usize = 10;

/// Why there is no value.
#[derive(Debug)]
pub(super) enum Stop {
    Error(String),
    Budget,
}

pub(super) type Found<'a> = Result<Val<'a>, Stop>;

pub(super) struct Run<'a, 'b> {
    budget: &'b mut u64,
    /// Variables that are given and those of the macros around, the innermost last.
    scope: Vec<(&'a str, Val<'a>)>,
    /// Patterns that the expression writes out, compiled with it.
    pub written: &'a HashMap<String, Arc<Pattern>>,
    /// Others that were compiled, so that a macro compiles one once.
    pub patterns: HashMap<String, Arc<Pattern>>,
}

/// Runs an expression that may look at the variables of `scope`.
pub(super) fn run<'a>(
    root: &'a Node,
    written: &'a HashMap<String, Arc<Pattern>>,
    scope: Vec<(&'a str, Val<'a>)>,
    budget: &mut u64,
) -> Found<'a> {
    Run { budget, scope, written, patterns: HashMap::new() }.of(root)
}

pub(super) fn error<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Error(why.into()))
}

pub(super) fn no_overload<T>() -> Result<T, Stop> {
    error("no such overload")
}

impl<'a> Run<'a, '_> {
    /// Takes steps from the budget.
    pub fn pay(&mut self, steps: usize) -> Result<(), Stop> {
        let left = self.budget.checked_sub(steps as u64);
        *self.budget = left.unwrap_or(0);
        left.map(|_| ()).ok_or(Stop::Budget)
    }

    pub fn pay_for_bytes(&mut self, bytes: usize) -> Result<(), Stop> {
        self.pay(bytes / BYTES_PER_STEP)
    }

    /// A map that an expression made has its entries in a row.
    fn pay_for_search(&mut self, within: &Val<'a>) -> Result<(), Stop> {
        match within {
            Val::Map(Map::Own(entries)) => self.pay(entries.len() / BYTES_PER_STEP),
            _ => Ok(()),
        }
    }

    fn of(&mut self, node: &'a Node) -> Found<'a> {
        self.pay(1)?;
        match &node.kind {
            Kind::Null => Ok(Val::Null),
            Kind::Bool(flag) => Ok(Val::Bool(*flag)),
            Kind::Int(number) => Ok(Val::Int(*number)),
            Kind::Uint(number) => Ok(Val::Uint(*number)),
            Kind::Double(number) => Ok(Val::Double(*number)),
            Kind::Text(text) => Ok(Val::lent(text)),
            Kind::Bytes(bytes) => {
                self.pay_for_bytes(bytes.len())?;
                Ok(Val::Bytes(bytes.as_slice().into()))
            }
            Kind::Ident(name) => self.ident(name),
            Kind::Select { of, field, optional } => {
                let of = self.of(of)?;
                self.pay_for_search(&of)?;
                pick(&of, &Val::lent(field), *optional)
            }
            Kind::Has { of, field } => {
                let of = self.of(of)?;
                Ok(Val::Bool(lookup(&of, &Val::lent(field)).is_some()))
            }
            Kind::Index { of, key, optional } => {
                let of = self.of(of)?;
                let key = self.of(key)?;
                self.pay_for_search(&of)?;
                pick(&of, &key, *optional)
            }
            Kind::Call { target, name, arguments } => self.call(target.as_deref(), name, arguments),
            Kind::Unary(sign, inner) => match (*sign, self.of(inner)?) {
                ("!", Val::Bool(flag)) => Ok(Val::Bool(!flag)),
                ("-", Val::Int(number)) => whole(number.checked_neg()),
                ("-", Val::Double(number)) => Ok(Val::Double(-number)),
                _ => no_overload(),
            },
            Kind::Binary(sign, left, right) => {
                let left = self.of(left)?;
                let right = self.of(right)?;
                self.binary(sign, &left, &right)
            }
            Kind::Logic { and, operands } => {
                let deciding = !*and;
                self.decide(deciding, operands, Self::of)
            }
            Kind::Ternary(parts) => {
                let [condition, yes, no] = &**parts;
                match self.of(condition)? {
                    Val::Bool(true) => self.of(yes),
                    Val::Bool(false) => self.of(no),
                    _ => no_overload(),
                }
            }
            Kind::List(items) => {
                let items: Result<Vec<Val<'a>>, Stop> = items.iter().map(|item| self.of(item)).collect();
                Ok(Val::list(items?))
            }
            Kind::Map(entries) => {
                let pairs: Result<Vec<_>, Stop> =
                    entries.iter().map(|(key, value)| Ok((self.of(key)?, self.of(value)?))).collect();
                Ok(Val::Map(Map::Own(Rc::new(pairs?))))
            }
            Kind::Macro(inner) => self.in_macro(inner),
        }
    }

    fn ident(&self, name: &str) -> Found<'a> {
        if let Some((_, value)) = self.scope.iter().rev().find(|(known, _)| *known == name) {
            return usable(value.clone());
        }
        let types = ["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"];
        match types.iter().find(|known| **known == name) {
            Some(known) => Ok(Val::Type(known)),
            None => error(format!("no such attribute(s): {name}")),
        }
    }

    /// Looks for one that is `deciding`; an error counts only when none is.
    fn decide<T>(
        &mut self,
        deciding: bool,
        items: impl IntoIterator<Item = T>,
        mut answer: impl FnMut(&mut Self, T) -> Found<'a>,
    ) -> Found<'a> {
        let mut failed = None;
        for item in items {
            match answer(self, item) {
                Ok(Val::Bool(flag)) if flag == deciding => return Ok(Val::Bool(deciding)),
                Ok(Val::Bool(_)) => {}
                Ok(_) => failed = failed.or(Some("no such overload".to_owned())),
                Err(Stop::Error(why)) => failed = failed.or(Some(why)),
                Err(Stop::Budget) => return Err(Stop::Budget),
            }
        }
        failed.map_or(Ok(Val::Bool(!deciding)), error)
    }

    fn call(&mut self, target: Option<&'a Node>, name: &str, arguments: &'a [Node]) -> Found<'a> {
        let target = target.map(|target| self.of(target)).transpose()?;
        let values: Result<Vec<Val<'a>>, Stop> = arguments.iter().map(|argument| self.of(argument)).collect();
        let values = values?;
        if library::is_known(name) && !functions::is_known(name) {
            return library::call(self, name, target.as_ref(), &values);
        }
        match (&target, &values[..]) {
            // A name that both know.
            (Some(Val::Thing(_) | Val::Time(_) | Val::Duration(_)), _) => {
                library::call(self, name, target.as_ref(), &values)
            }
            _ => functions::call(self, name, target.as_ref(), &values),
        }
    }

    fn binary(&mut self, sign: &str, left: &Val<'a>, right: &Val<'a>) -> Found<'a> {
        match sign {
            "==" => Ok(Val::Bool(self.equal(left, right)?)),
            "!=" => Ok(Val::Bool(!self.equal(left, right)?)),
            "<" | "<=" | ">" | ">=" => {
                if let (Val::Text(a), Val::Text(b)) = (left, right) {
                    self.pay_for_bytes(a.len().min(b.len()))?;
                }
                let nan = matches!(left, Val::Double(n) if n.is_nan()) || matches!(right, Val::Double(n) if n.is_nan());
                let Some(order) = left.compare(right) else {
                    return if nan { Ok(Val::Bool(false)) } else { no_overload() };
                };
                Ok(Val::Bool(match sign {
                    "<" => order == Ordering::Less,
                    "<=" => order != Ordering::Greater,
                    ">" => order == Ordering::Greater,
                    _ => order != Ordering::Less,
                }))
            }
            "in" => Ok(Val::Bool(self.contains(right, left)?)),
            _ => self.arithmetic(sign, left, right),
        }
    }

    fn arithmetic(&mut self, sign: &str, left: &Val<'a>, right: &Val<'a>) -> Found<'a> {
        match (left, right) {
            (Val::Int(a), Val::Int(b)) => match sign {
                "+" => whole(a.checked_add(*b)),
                "-" => whole(a.checked_sub(*b)),
                "*" => whole(a.checked_mul(*b)),
                "/" if *b == 0 => error("division by zero"),
                "/" => whole(a.checked_div(*b)),
                _ if *b == 0 => error("modulus by zero"),
                _ => whole(a.checked_rem(*b)),
            },
            (Val::Uint(a), Val::Uint(b)) => {
                let made = match sign {
                    "+" => a.checked_add(*b),
                    "-" => a.checked_sub(*b),
                    "*" => a.checked_mul(*b),
                    "/" if *b == 0 => return error("division by zero"),
                    "/" => a.checked_div(*b),
                    _ if *b == 0 => return error("modulus by zero"),
                    _ => a.checked_rem(*b),
                };
                made.map_or_else(|| error("unsigned integer overflow"), |number| Ok(Val::Uint(number)))
            }
            (Val::Double(a), Val::Double(b)) => match sign {
                "+" => Ok(Val::Double(a + b)),
                "-" => Ok(Val::Double(a - b)),
                "*" => Ok(Val::Double(a * b)),
                "/" => Ok(Val::Double(a / b)),
                _ => no_overload(),
            },
            (Val::Text(a), Val::Text(b)) if sign == "+" => {
                self.pay_for_bytes(a.len() + b.len())?;
                Ok(Val::text(format!("{}{}", &**a, &**b)))
            }
            (Val::Bytes(a), Val::Bytes(b)) if sign == "+" => {
                self.pay_for_bytes(a.len() + b.len())?;
                Ok(Val::Bytes([&**a, &**b].concat().into()))
            }
            (Val::List(a), Val::List(b)) if sign == "+" => {
                self.pay(a.len() + b.len())?;
                self.joined(a, b)
            }
            (Val::Duration(a), Val::Duration(b)) => match sign {
                "+" => span(a.checked_add(*b)),
                "-" => span(a.checked_sub(*b)),
                _ => no_overload(),
            },
            (Val::Time(at), Val::Duration(nanos)) | (Val::Duration(nanos), Val::Time(at)) if sign == "+" => {
                moment(time::shift(*at, *nanos))
            }
            (Val::Time(at), Val::Duration(nanos)) if sign == "-" => {
                moment(nanos.checked_neg().and_then(|nanos| time::shift(*at, nanos)))
            }
            (Val::Time(a), Val::Time(b)) if sign == "-" => span(time::between(*a, *b)),
            _ => no_overload(),
        }
    }

    /// Two lists as one: of a set what is new is added, and in a list with keys the second one's items take the places of those
    /// with the same keys.
    fn joined(&mut self, one: &List<'a>, other: &List<'a>) -> Found<'a> {
        let mut items: Vec<Val<'a>> = one.iter().collect();
        for item in other.iter() {
            let mut known = None;
            for (index, present) in items.iter().enumerate() {
                if *one.order() == Order::Atomic {
                    break;
                }
                self.pay(1)?;
                if self.same(one.order(), present, &item)? {
                    known = Some(index);
                    break;
                }
            }
            match known {
                Some(index) => items[index] = item,
                None => items.push(item),
            }
        }
        Ok(Val::list(items))
    }

    /// Whether two items of a list are one: they are equal, or have the same keys.
    fn same(&mut self, order: &Order, one: &Val<'a>, other: &Val<'a>) -> Result<bool, Stop> {
        let (Order::Keys(keys), Val::Map(one_map), Val::Map(other_map)) = (order, one, other) else {
            return self.equal(one, other);
        };
        for key in keys {
            let key = Val::lent(key);
            let same = match (one_map.named(&key), other_map.named(&key)) {
                (Some(one), Some(other)) => self.equal(&one, &other)?,
                (None, None) => true,
                _ => false,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a list has an equal item, or a map the key.
    pub fn contains(&mut self, within: &Val<'a>, wanted: &Val<'a>) -> Result<bool, Stop> {
        match within {
            Val::List(list) => {
                for item in list.iter() {
                    self.pay(1)?;
                    if self.equal(&item, wanted)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Val::Map(map) => {
                self.pay_for_search(within)?;
                Ok(map.find(wanted).is_some())
            }
            _ => no_overload(),
        }
    }

    /// Values of different types are unequal, except numbers.
    pub fn equal(&mut self, left: &Val<'a>, right: &Val<'a>) -> Result<bool, Stop> {
        match (left, right) {
            (Val::List(a), Val::List(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                if *a.order() != Order::Atomic {
                    let within = Val::List(b.clone());
                    for item in a.iter() {
                        if !self.contains(&within, &item)? {
                            return Ok(false);
                        }
                    }
                    return Ok(true);
                }
                for (one, other) in a.iter().zip(b.iter()) {
                    self.pay(1)?;
                    if !self.equal(&one, &other)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Val::Map(a), Val::Map(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                self.pay(a.len())?;
                for (key, one) in a.entries() {
                    let Some(other) = b.named(&key) else { return Ok(false) };
                    if !self.equal(&one, &other)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Val::Null, Val::Null) | (Val::Optional(None), Val::Optional(None)) => Ok(true),
            (Val::Optional(Some(a)), Val::Optional(Some(b))) => self.equal(a, b),
            (Val::Type(a), Val::Type(b)) => Ok(a == b),
            (Val::Thing(a), Val::Thing(b)) => Ok(a == b),
            (Val::Broken(why), _) | (_, Val::Broken(why)) => error(&**why),
            _ => {
                if let (Val::Text(a), Val::Text(b)) = (left, right) {
                    self.pay_for_bytes(a.len().min(b.len()))?;
                }
                Ok(left.compare(right) == Some(Ordering::Equal))
            }
        }
    }
}

fn whole<'a>(number: Option<i64>) -> Found<'a> {
    number.map_or_else(|| error("integer overflow"), |number| Ok(Val::Int(number)))
}

fn span<'a>(nanos: Option<i64>) -> Found<'a> {
    nanos.map_or_else(|| error("integer overflow"), |nanos| Ok(Val::Duration(nanos)))
}

fn moment<'a>(at: Option<jiff::Timestamp>) -> Found<'a> {
    at.map_or_else(|| error("timestamp overflow"), |at| Ok(Val::Time(at)))
}

/// A value, unless it is not what its schema declares.
fn usable(value: Val<'_>) -> Found<'_> {
    match value {
        Val::Broken(why) => error(&*why),
        value => Ok(value),
    }
}

/// The value at a key or an index, if it is there.
fn lookup<'a>(of: &Val<'a>, key: &Val<'_>) -> Option<Val<'a>> {
    match of {
        Val::Map(map) => map.find(key),
        Val::List(list) => match key {
            Val::Int(index) => list.at(usize::try_from(*index).ok()?),
            Val::Uint(index) => list.at(usize::try_from(*index).ok()?),
            _ => None,
        },
        Val::Optional(inner) => lookup(inner.as_ref()?, key),
        _ => None,
    }
}

/// `a.b`, `a[b]`, and their optional forms.
fn pick<'a>(of: &Val<'a>, key: &Val<'_>, optional: bool) -> Found<'a> {
    let found = lookup(of, key);
    if optional || matches!(of, Val::Optional(_)) {
        return Ok(Val::Optional(found.map(Rc::new)));
    }
    match (found, of) {
        (Some(value), _) => usable(value),
        (None, Val::List(_)) if matches!(key, Val::Int(_) | Val::Uint(_)) => {
            error(format!("index out of bounds: {}", key.shown()))
        }
        (None, Val::List(_)) => no_overload(),
        (None, _) => error(format!("no such key: {}", key.shown())),
    }
}
