//! The evaluation of CEL macros: they visit the items of a list, the entries of a map, or the value of an optional.

use super::super::parse::{Macro, MacroKind, Node};
use super::super::value::{List, Map, Val};
use super::{Failed, Found, Run, no_overload};

/// The collection that a macro visits.
enum Over<'a> {
    List(List<'a>),
    Map(Vec<(Val<'a>, Val<'a>)>),
}

impl<'a> Over<'a> {
    fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Map(entries) => entries.len(),
        }
    }

    /// The variables of one iteration: the index or key, and the item or value.
    fn at(&self, index: usize) -> Option<(Val<'a>, Val<'a>)> {
        match self {
            Self::List(list) => Some((Val::Int(i64::try_from(index).ok()?), list.at(index)?)),
            Self::Map(entries) => entries.get(index).cloned(),
        }
    }
}

impl<'a> Run<'a, '_> {
    pub(super) fn in_macro(&mut self, inner: &'a Macro) -> Found<'a> {
        let over = self.of(&inner.over)?;
        if matches!(inner.kind, MacroKind::OptMap | MacroKind::OptFlatMap) {
            return self.in_optional(over, inner);
        }
        let over = match over {
            Val::List(list) => Over::List(list),
            Val::Map(map) => Over::Map(self.entries(&map)?),
            _ => return no_overload(),
        };
        let rounds = (0..over.len()).filter_map(|index| over.at(index));
        match inner.kind {
            MacroKind::All | MacroKind::Exists => {
                let deciding = inner.kind == MacroKind::Exists;
                let is_map = matches!(over, Over::Map(_));
                self.decide(deciding, rounds, |run, round| run.with(inner, is_map, round, &inner.body))
            }
            MacroKind::ExistsOne => {
                let mut count = 0_usize;
                for round in rounds {
                    count += usize::from(self.holds(inner, &over, round, &inner.body)?);
                }
                Ok(Val::Bool(count == 1))
            }
            MacroKind::TransformMap | MacroKind::TransformEntry => self.transformed(inner, &over),
            _ => {
                let mut kept = Vec::new();
                for round in rounds {
                    let condition =
                        if inner.kind == MacroKind::Filter { Some(&inner.body) } else { inner.filter.as_ref() };
                    if let Some(condition) = condition
                        && !self.holds(inner, &over, round.clone(), condition)?
                    {
                        continue;
                    }
                    kept.push(match (inner.kind, &over) {
                        (MacroKind::Map, over) => self.with(inner, matches!(over, Over::Map(_)), round, &inner.body)?,
                        (_, Over::Map(_)) => round.0,
                        _ => round.1,
                    });
                }
                Ok(Val::list(kept))
            }
        }
    }

    /// Evaluates a node with the variables of one iteration.
    fn with(&mut self, inner: &'a Macro, is_map: bool, round: (Val<'a>, Val<'a>), node: &'a Node) -> Found<'a> {
        let (place, item) = round;
        let length = self.scope.len();
        if !is_map {
            self.pay_for(&item)?;
        }
        match &inner.second {
            Some(second) => {
                self.scope.push((&inner.variable, place));
                self.scope.push((second, item));
            }
            None => self.scope.push((&inner.variable, if is_map { place } else { item })),
        }
        let found = self.of(node);
        self.scope.truncate(length);
        found
    }

    fn holds(
        &mut self,
        inner: &'a Macro,
        over: &Over<'a>,
        round: (Val<'a>, Val<'a>),
        node: &'a Node,
    ) -> Result<bool, Failed> {
        match self.with(inner, matches!(over, Over::Map(_)), round, node)? {
            Val::Bool(flag) => Ok(flag),
            _ => no_overload(),
        }
    }

    /// Evaluates `transformMap` and `transformMapEntry`, which make a map of the results for all entries.
    fn transformed(&mut self, inner: &'a Macro, over: &Over<'a>) -> Found<'a> {
        let mut entries = Vec::new();
        for round in (0..over.len()).filter_map(|index| over.at(index)) {
            if let Some(filter) = &inner.filter
                && !self.holds(inner, over, round.clone(), filter)?
            {
                continue;
            }
            let key = round.0.clone();
            let made = self.with(inner, matches!(over, Over::Map(_)), round, &inner.body)?;
            match (inner.kind, made) {
                (MacroKind::TransformMap, value) => entries.push((key, value)),
                (_, Val::Map(map)) => {
                    let more = self.entries(&map)?;
                    entries.extend(more);
                }
                _ => return no_overload(),
            }
        }
        self.pay(entries.len())?;
        match Map::own_once(entries) {
            Ok(map) => Ok(Val::Map(map)),
            Err(key) => Err(Failed::KeyTwice(key.shown())),
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
