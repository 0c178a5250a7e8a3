//! The state of a run: its budget, its variables and its compiled patterns.
//!
//! Owns the count of steps; `equality` compares values. No operator ignores an empty budget.

use std::collections::HashMap;
use std::sync::Arc;

use super::Failed;
use super::pattern::Pattern;
use super::value::{Map, Val};

mod equality;

/// Bytes that are read or copied for the price of one step, as in a real server.
const BYTES_PER_STEP: usize = 10;

pub(super) type Found<'a> = Result<Val<'a>, Failed>;

/// The state of a run.
pub(super) struct Run<'a, 'b> {
    pub budget: &'b mut u64,
    /// The given variables and those of the surrounding macros, the innermost last.
    pub scope: Vec<(&'a str, Val<'a>)>,
    /// The literal patterns of the expression, compiled with it.
    pub written: &'a HashMap<String, Arc<Pattern>>,
    /// Other compiled patterns, so that a macro compiles each one once.
    pub patterns: HashMap<String, Arc<Pattern>>,
}

pub(super) fn no_overload<T>() -> Result<T, Failed> {
    Err(Failed::Overload)
}

impl<'a> Run<'a, '_> {
    /// Takes steps from the budget.
    pub(crate) fn pay(&mut self, steps: usize) -> Result<(), Failed> {
        let left = self.budget.checked_sub(steps as u64);
        *self.budget = left.unwrap_or(0);
        left.map(|_| ()).ok_or(Failed::Budget)
    }

    pub(crate) fn pay_for_bytes(&mut self, bytes: usize) -> Result<(), Failed> {
        self.pay(bytes / BYTES_PER_STEP)
    }

    /// Pays for a value taken from an object, whose bytes were decoded.
    pub(crate) fn pay_for(&mut self, value: &Val<'a>) -> Result<(), Failed> {
        match value {
            Val::Bytes(bytes) => self.pay_for_bytes(bytes.len()),
            _ => Ok(()),
        }
    }

    /// The entries of a map, all of them paid for.
    pub(crate) fn entries(&mut self, map: &Map<'a>) -> Result<Vec<(Val<'a>, Val<'a>)>, Failed> {
        self.pay(map.len())?;
        let entries = map.entries();
        entries.iter().try_for_each(|(_, value)| self.pay_for(value))?;
        Ok(entries)
    }
}

/// A map of the pairs that an expression made.
pub(super) fn map_of<'a>(pairs: Vec<(Val<'a>, Val<'a>)>) -> Found<'a> {
    match Map::own(pairs) {
        Ok(map) => Ok(Val::Map(map)),
        Err(key) => Err(Failed::KeyType(key.type_name())),
    }
}
