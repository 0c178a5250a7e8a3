//! The check of a fault's keys and values.
//!
//! Owns the comparison of a fault with its catalogue entry. The refusal of a key names the faults that have the key.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::row::Row;
use super::shared::{CHOOSING, OF_ALL};
use super::{Error, Every, Fault, Lasting, Name, Nth};

/// Refuses keys that do not belong to the fault, and values that it cannot use.
pub(super) fn check(fault: &Fault) -> Result<(), Error> {
    let row = fault.name.row();
    for key in given(fault).keys().filter(|key| !OF_ALL.contains(&key.as_str())) {
        if !row.chooses.contains(&key.as_str()) && row.key(key).is_none() {
            return Err(Error::NotItsKey { key: key.clone(), fault: row.name, owners: owners(key) });
        }
    }
    fault.settings.check()?;
    values(fault)?;
    (row.refuses)(fault)
}

/// The keys of the fault and their values, as the scenario writes them.
fn given(fault: &Fault) -> Map<String, Value> {
    match serde_json::to_value(fault) {
        Ok(Value::Object(keys)) => keys,
        _ => Map::new(),
    }
}

/// The faults that have a key, as text.
fn owners(key: &str) -> String {
    if let Some((_, words)) = CHOOSING.iter().find(|(choosing, _)| *choosing == key) {
        return (*words).to_owned();
    }
    those(|row| row.key(key).is_some())
}

pub(super) fn quoted(name: Name) -> String {
    format!("`{}`", name.as_str())
}

/// The faults whose catalogue entry fulfils `is`, as text: `` `a`, `b` and `c` ``.
pub(crate) fn those(is: impl Fn(&Row) -> bool) -> String {
    let names: Vec<String> = Name::ALL.iter().filter(|name| is(name.row())).copied().map(quoted).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

/// Refuses a list with duplicate labels, or with a fault that waits for a fault which can never have a hit.
pub fn check_all(faults: &[Fault]) -> Result<(), (usize, Error)> {
    let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, fault) in faults.iter().enumerate() {
        fault.check().map_err(|error| (index, error))?;
        if let Some(id) = fault.id.as_deref()
            && by_id.insert(id, index).is_some()
        {
            return Err((index, Error::IdTwice { id: id.to_owned() }));
        }
    }
    for (index, fault) in faults.iter().enumerate() {
        let mut at = fault;
        for _ in 0..=faults.len() {
            let Some(hit) = at.when.as_ref().and_then(|when| when.hit.as_ref()) else { break };
            let Some(next) = by_id.get(hit.as_str()) else {
                let known: Vec<String> = by_id.keys().map(|id| format!("`{id}`")).collect();
                let why = if known.is_empty() {
                    "but no fault has an `id`: give one to the fault that is meant".to_owned()
                } else {
                    format!("which no fault has as its `id`: there is {}", known.join(", "))
                };
                return Err((index, Error::When { id: hit.clone(), why }));
            };
            at = &faults[*next];
            if *next == index {
                let why = "which waits for this one: neither would ever begin".to_owned();
                let id = fault.when.as_ref().and_then(|when| when.hit.clone()).unwrap_or_default();
                return Err((index, Error::When { id, why }));
            }
        }
    }
    Ok(())
}

/// Refuses values of shared keys that no fault could use.
fn values(fault: &Fault) -> Result<(), Error> {
    if let Some(given) = fault.probability.filter(|p| !(0.0..=1.0).contains(p)) {
        return Err(Error::Probability { given: given.to_string() });
    }
    if fault.count == Some(0) {
        return Err(Error::NoCount);
    }
    if fault.at.is_some() && fault.when.is_some() {
        return Err(Error::TwoBeginnings);
    }
    if let Some(when) = &fault.when {
        when.check()?;
    }
    let wrong = |key, given: String, instead| Err(Error::Value { key, given, instead });
    if let Some((given, instead)) = fault.nth.as_ref().and_then(Nth::problem) {
        return wrong("nth", given, instead);
    }
    if let Some((given, instead)) = fault.every.and_then(Every::problem) {
        return wrong("every", given, instead);
    }
    if let Some(every) = fault.every.filter(|_| fault.nth.is_some()) {
        return wrong("every", every.to_string(), "leave it out, or `nth`");
    }
    if fault.lasting() == Lasting::For(units::Span::default()) {
        return wrong("for", "0s".to_owned(), "leave it out for one moment, or write how long");
    }
    Ok(())
}
