//! The evaluation of compiled CEL expressions.
//!
//! Owns the evaluation of fields and calls; operators and macros have their own files. As CEL demands, `&&`, `||`,
//! `all` and `exists` ignore an error of one operand if another operand decides the result.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::parse::{Kind, Node};
use super::pattern::Pattern;
use super::run::{Found, Run, map_of, no_overload};
use super::types::NAMES;
use super::value::Val;
use super::{Failed, functions, library};

mod macros;
mod operators;

/// Evaluates an expression with the variables in `scope`.
pub(super) fn run<'a>(
    root: &'a Node,
    written: &'a HashMap<String, Arc<Pattern>>,
    scope: Vec<(&'a str, Val<'a>)>,
    budget: &mut u64,
) -> Found<'a> {
    Run { budget, scope, written, patterns: HashMap::new() }.of(root)
}

impl<'a> Run<'a, '_> {
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
                self.pick(&of, &Val::lent(field), *optional)
            }
            Kind::Has { of, field } => {
                let of = self.of(of)?;
                let found = lookup(&of, &Val::lent(field));
                found.iter().try_for_each(|found| self.pay_for(found))?;
                Ok(Val::Bool(found.is_some()))
            }
            Kind::Index { of, key, optional } => {
                let of = self.of(of)?;
                let key = self.of(key)?;
                self.pick(&of, &key, *optional)
            }
            Kind::Call { target, name, arguments } => self.call(target.as_deref(), name, arguments),
            Kind::Unary(sign, inner) => match (*sign, self.of(inner)?) {
                ("!", Val::Bool(flag)) => Ok(Val::Bool(!flag)),
                ("-", Val::Int(number)) => operators::whole(number.checked_neg()),
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
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.extend(self.part(item)?);
                }
                Ok(Val::list(list))
            }
            Kind::Map(entries) => {
                let mut pairs = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    let key = self.of(key)?;
                    pairs.extend(self.part(value)?.map(|value| (key, value)));
                }
                map_of(pairs)
            }
            Kind::Message { fields, .. } => {
                let mut pairs = Vec::with_capacity(fields.len());
                for (name, value) in fields {
                    pairs.extend(self.part(value)?.map(|value| (Val::lent(name), value)));
                }
                map_of(pairs)
            }
            // It occurs only in a literal.
            Kind::Maybe(inner) => self.of(inner),
            Kind::Macro(inner) => self.in_macro(inner),
        }
    }

    /// Evaluates one item of a list or map literal; `None` if the item is optional and absent.
    fn part(&mut self, node: &'a Node) -> Result<Option<Val<'a>>, Failed> {
        let Kind::Maybe(inner) = &node.kind else { return self.of(node).map(Some) };
        match self.of(inner)? {
            Val::Optional(found) => Ok(found.map(|found| (*found).clone())),
            _ => no_overload(),
        }
    }

    fn ident(&self, name: &str) -> Found<'a> {
        if let Some((_, value)) = self.scope.iter().rev().find(|(known, _)| *known == name) {
            return usable(value.clone());
        }
        match NAMES.iter().find(|known| **known == name) {
            Some(known) => Ok(Val::Type(known)),
            None => Err(Failed::Name(name.to_owned())),
        }
    }

    /// Evaluates `a.b`, `a[b]`, and their optional forms.
    fn pick(&mut self, of: &Val<'a>, key: &Val<'_>, optional: bool) -> Found<'a> {
        let found = lookup(of, key);
        found.iter().try_for_each(|found| self.pay_for(found))?;
        if optional || matches!(of, Val::Optional(_)) {
            return Ok(Val::Optional(found.map(Rc::new)));
        }
        match (found, of) {
            (Some(value), _) => usable(value),
            (None, Val::List(_)) if matches!(key, Val::Int(_) | Val::Uint(_) | Val::Double(_)) => {
                Err(Failed::Index(key.shown()))
            }
            (None, Val::List(_)) => no_overload(),
            (None, _) => Err(Failed::Key(key.shown())),
        }
    }

    /// Evaluates operands or items until one of them has the value `deciding`. An error in an item counts only if no
    /// item has the value `deciding`.
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
                Ok(_) => failed = failed.or(Some(Failed::Overload)),
                Err(Failed::Budget) => return Err(Failed::Budget),
                Err(why) => failed = failed.or(Some(why)),
            }
        }
        failed.map_or(Ok(Val::Bool(!deciding)), Err)
    }

    fn call(&mut self, target: Option<&'a Node>, name: &str, arguments: &'a [Node]) -> Found<'a> {
        let target = target.map(|target| self.of(target)).transpose()?;
        let values: Result<Vec<Val<'a>>, Failed> = arguments.iter().map(|argument| self.of(argument)).collect();
        let values = values?;
        if library::is_known(name) && !functions::is_known(name) {
            return library::call(self, name, target.as_ref(), &values);
        }
        match (&target, &values[..]) {
            // Both libraries know this name.
            (Some(Val::Thing(_) | Val::Time(_) | Val::Duration(_)), _) => {
                library::call(self, name, target.as_ref(), &values)
            }
            _ => functions::call(self, name, target.as_ref(), &values),
        }
    }
}

/// Returns the value, or an error if the value differs from its schema's declaration.
fn usable(value: Val<'_>) -> Found<'_> {
    match value {
        Val::Broken(expected) => Err(Failed::Data(expected)),
        value => Ok(value),
    }
}

/// The value at a key or an index; `None` if it is absent.
fn lookup<'a>(of: &Val<'a>, key: &Val<'_>) -> Option<Val<'a>> {
    match of {
        Val::Map(map) => map.find(key),
        Val::List(list) => match key {
            Val::Int(index) => list.at(usize::try_from(*index).ok()?),
            Val::Uint(index) => list.at(usize::try_from(*index).ok()?),
            Val::Double(index) => list.at(place(*index)?),
            _ => None,
        },
        Val::Optional(inner) => lookup(inner.as_ref()?, key),
        _ => None,
    }
}

/// Converts a floating-point number to an index; `None` if it is not a whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be whole and within the range before"
)]
fn place(index: f64) -> Option<usize> {
    (index.fract() == 0.0 && (0.0..4_294_967_296.0).contains(&index)).then_some(index as usize)
}
