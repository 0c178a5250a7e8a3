//! The state of one evaluation of a CEL expression: the budget, the variables and the compiled patterns.
//!
//! Owns the budget; every operation fails once it is used up. The module `equality` compares values.

use std::collections::HashMap;
use std::sync::Arc;

use super::Failed;
use super::pattern::Pattern;
use super::value::{Map, Val};

mod equality;

/// Number of bytes that may be read or copied at the cost of one operation, as in a real server.
const BYTES_PER_STEP: usize = 10;

pub(super) type Found<'a> = Result<Val<'a>, Failed>;

pub(super) struct Run<'a, 'b> {
    pub budget: &'b mut u64,
    /// The variables of the expression, then those of the surrounding macros, the innermost last.
    pub scope: Vec<(&'a str, Val<'a>)>,
    /// Compiled patterns that the expression contains as literals.
    pub written: &'a HashMap<String, Arc<Pattern>>,
    /// Patterns that were compiled during this evaluation, so that a macro compiles each of them only once.
    pub patterns: HashMap<String, Arc<Pattern>>,
}

pub(super) fn no_overload<T>() -> Result<T, Failed> {
    Err(Failed::Overload)
}

impl<'a> Run<'a, '_> {
    /// Subtracts `steps` units from the budget.
    pub(crate) fn pay(&mut self, steps: usize) -> Result<(), Failed> {
        let left = self.budget.checked_sub(steps as u64);
        *self.budget = left.unwrap_or(0);
        left.map(|_| ()).ok_or(Failed::Budget)
    }

    pub(crate) fn pay_for_bytes(&mut self, bytes: usize) -> Result<(), Failed> {
        self.pay(bytes / BYTES_PER_STEP)
    }

    /// Subtracts the cost of the bytes that were decoded when the value was read from its object.
    pub(crate) fn pay_for(&mut self, value: &Val<'a>) -> Result<(), Failed> {
        match value {
            Val::Bytes(bytes) => self.pay_for_bytes(bytes.len()),
            _ => Ok(()),
        }
    }

    /// The entries of a map; the cost of all entries is subtracted from the budget.
    pub(crate) fn entries(&mut self, map: &Map<'a>) -> Result<Vec<(Val<'a>, Val<'a>)>, Failed> {
        self.pay(map.len())?;
        let entries = map.entries();
        entries.iter().try_for_each(|(_, value)| self.pay_for(value))?;
        Ok(entries)
    }
}

/// A map of the entries that an expression computed.
pub(super) fn map_of<'a>(pairs: Vec<(Val<'a>, Val<'a>)>) -> Found<'a> {
    match Map::own(pairs) {
        Ok(map) => Ok(Val::Map(map)),
        Err(key) => Err(Failed::KeyType(key.type_name())),
    }
}
