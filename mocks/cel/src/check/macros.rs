//! The types of macros: those of their variables and of their results.

use std::rc::Rc;

use super::super::parse::{Macro, MacroKind};
use super::super::types::Type;
use super::Checker;

impl<'a> Checker<'a> {
    pub(super) fn in_macro(&mut self, at: usize, inner: &'a Macro) -> Type {
        let over = self.of(&inner.over);
        if matches!(inner.kind, MacroKind::OptMap | MacroKind::OptFlatMap) {
            return self.in_optional(at, &over, inner);
        }
        let (place, item) = match &over {
            Type::List(item) => (Type::Int, (**item).clone()),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn => (Type::Dyn, Type::Dyn),
            other => {
                let why = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                (self.wrong(at, why), Type::Dyn)
            }
        };
        // A single variable holds the item of a list or the key of a map.
        let only = if matches!(over, Type::Map(..)) { place.clone() } else { item.clone() };
        let length = self.scope.len();
        if let Some(second) = &inner.second {
            self.scope.push((&inner.variable, place.clone()));
            self.scope.push((second, item));
        } else {
            self.scope.push((&inner.variable, only.clone()));
        }
        let filter = inner.filter.as_ref().map(|filter| (filter.at, self.of(filter)));
        let body = self.of(&inner.body);
        self.scope.truncate(length);
        let is_condition =
            matches!(inner.kind, MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne | MacroKind::Filter);
        let conditions = filter.into_iter().chain(is_condition.then(|| (inner.body.at, body.clone())));
        for (at, found) in conditions {
            if !found.fits(&Type::Bool) {
                self.wrong(at, format!("expected type 'bool' but found '{found}'"));
            }
        }
        match (inner.kind, body) {
            (MacroKind::Filter, _) => Type::list(only),
            (MacroKind::Map, body) => Type::list(body),
            (MacroKind::TransformMap, body) => Type::Map(Rc::new(place), Rc::new(body)),
            (MacroKind::TransformEntry, body @ (Type::Map(..) | Type::Dyn)) => body,
            (MacroKind::TransformEntry, other) => {
                let why =
                    format!("found no matching overload for 'cel.@mapInsert' applied to '(map(dyn, dyn), {other})'");
                self.wrong(inner.body.at, why)
            }
            _ => Type::Bool,
        }
    }

    /// `over.optMap(x, body)` and `over.optFlatMap(x, body)`.
    fn in_optional(&mut self, at: usize, over: &Type, inner: &'a Macro) -> Type {
        let item = match over {
            Type::Optional(item) => (**item).clone(),
            Type::Dyn => Type::Dyn,
            other => {
                let name = if inner.kind == MacroKind::OptMap { "optMap" } else { "optFlatMap" };
                return self.wrong(at, format!("found no matching overload for '{name}' applied to '{other}.()'"));
            }
        };
        self.scope.push((&inner.variable, item));
        let body = self.of(&inner.body);
        self.scope.pop();
        match (inner.kind, body) {
            (MacroKind::OptMap, body) => Type::optional(body),
            (_, body @ (Type::Optional(_) | Type::Dyn)) => body,
            (_, other) => self.wrong(inner.body.at, format!("expected type 'optional_type' but found '{other}'")),
        }
    }
}
