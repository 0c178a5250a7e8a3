//! Macros: what goes over the items of a list, the keys of a map or what may be in an optional value.

use std::rc::Rc;

use super::super::parse::{Macro, MacroKind, Node};
use super::super::value::{List, Val};
use super::{Found, Run, no_overload};

impl<'a> Run<'a, '_> {
    pub(super) fn in_macro(&mut self, inner: &'a Macro) -> Found<'a> {
        let over = self.of(&inner.over)?;
        if matches!(inner.kind, MacroKind::OptMap | MacroKind::OptFlatMap) {
            return self.in_optional(over, inner);
        }
        let items = match over {
            Val::List(list) => list,
            Val::Map(map) => {
                self.pay(map.len())?;
                List::Own(Rc::new(map.keys()))
            }
            _ => return no_overload(),
        };
        let with = |run: &mut Self, item: Val<'a>, node: &'a Node| {
            run.scope.push((inner.variable.as_str(), item));
            let found = run.of(node);
            run.scope.pop();
            found
        };
        let holds = |run: &mut Self, item: Val<'a>, node: &'a Node| match with(run, item, node)? {
            Val::Bool(flag) => Ok(flag),
            _ => no_overload(),
        };
        match inner.kind {
            MacroKind::All | MacroKind::Exists => {
                let deciding = inner.kind == MacroKind::Exists;
                self.decide(deciding, items.iter(), |run, item| with(run, item, &inner.body))
            }
            MacroKind::ExistsOne => {
                let mut count = 0_usize;
                for item in items.iter() {
                    count += usize::from(holds(self, item, &inner.body)?);
                }
                Ok(Val::Bool(count == 1))
            }
            _ => {
                let mut kept = Vec::new();
                for item in items.iter() {
                    let condition =
                        if inner.kind == MacroKind::Filter { Some(&inner.body) } else { inner.filter.as_ref() };
                    if let Some(condition) = condition
                        && !holds(self, item.clone(), condition)?
                    {
                        continue;
                    }
                    kept.push(if inner.kind == MacroKind::Map { with(self, item, &inner.body)? } else { item });
                }
                Ok(Val::list(kept))
            }
        }
    }

    fn in_optional(&mut self, over: Val<'a>, inner: &'a Macro) -> Found<'a> {
        let Val::Optional(found) = over else { return no_overload() };
        let Some(found) = found else { return Ok(Val::Optional(None)) };
        self.scope.push((inner.variable.as_str(), (*found).clone()));
        let made = self.of(&inner.body);
        self.scope.pop();
        match (inner.kind, made?) {
            (MacroKind::OptMap, value) => Ok(Val::some(value)),
            (_, value @ Val::Optional(_)) => Ok(value),
            _ => no_overload(),
        }
    }
}
