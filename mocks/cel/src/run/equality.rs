//! Equality, membership and concatenation of CEL values (Kubernetes documentation, "Custom Resources: validation
//! rules": equality and concatenation by `x-kubernetes-list-type`).
//!
//! Owns the search for matching items of two lists. In a set or a list with keys, a hash map finds items by their
//! identity, so that a comparison takes time proportional to the lists' length.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;

use super::super::decl::Order;
use super::super::value::{List, Val};
use super::{Failed, Found, Run, no_overload};

impl<'a> Run<'a, '_> {
    /// The order of two values; `None` if they cannot be compared.
    pub(crate) fn compare(&mut self, one: &Val<'a>, other: &Val<'a>) -> Result<Option<Ordering>, Failed> {
        let length = match (one, other) {
            (Val::Text(a), Val::Text(b)) => a.len().min(b.len()),
            (Val::Bytes(a), Val::Bytes(b)) => a.len().min(b.len()),
            _ => 0,
        };
        self.pay_for_bytes(length)?;
        Ok(one.compare(other))
    }

    /// Joins two lists. A set gets the items that it lacks. In a list with keys, items of `other` replace items with
    /// the same keys.
    pub(crate) fn joined(&mut self, one: &List<'a>, other: &List<'a>) -> Found<'a> {
        let order = one.order();
        let mut items = Vec::with_capacity(one.len() + other.len());
        for item in one.iter() {
            self.pay_for(&item)?;
            items.push(item);
        }
        let mut places = self.places(&items, order)?;
        for item in other.iter() {
            self.pay_for(&item)?;
            match self.place(&items, &mut places, &item, order)? {
                Some(known) if known < items.len() => items[known] = item,
                _ => items.push(item),
            }
        }
        Ok(Val::List(List::Own(Rc::new(items), order)))
    }

    /// Makes a map from the identities of a list's items to their indices; empty for an atomic list.
    fn places(&mut self, items: &[Val<'a>], order: &Order) -> Result<HashMap<String, usize>, Failed> {
        let mut places = HashMap::new();
        if *order != Order::Atomic {
            for (index, item) in items.iter().enumerate() {
                let name = self.name(item, order)?;
                places.extend(name.map(|name| (name, index)));
            }
        }
        Ok(places)
    }

    /// The index of the item that has the same identity as `item`; if there is none, the index after the last item.
    fn place(
        &mut self,
        items: &[Val<'a>],
        places: &mut HashMap<String, usize>,
        item: &Val<'a>,
        order: &Order,
    ) -> Result<Option<usize>, Failed> {
        if *order == Order::Atomic {
            return Ok(None);
        }
        if let Some(name) = self.name(item, order)? {
            return Ok(Some(*places.entry(name).or_insert(items.len())));
        }
        for (index, present) in items.iter().enumerate() {
            self.pay(1)?;
            if self.equal(present, item)? {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// The identity of an item as text: its value or its keys. `None` means that callers must compare the item with
    /// every other item.
    fn name(&mut self, item: &Val<'a>, order: &Order) -> Result<Option<String>, Failed> {
        let mut name = String::new();
        let named = match (order, item) {
            (Order::Keys(keys), Val::Map(map)) => keys.iter().all(|key| {
                map.named(&Val::lent(key)).is_none_or(|value| add(&mut name, &value)) && {
                    name.push(',');
                    true
                }
            }),
            _ => add(&mut name, item),
        };
        self.pay(1)?;
        self.pay_for_bytes(name.len())?;
        Ok(named.then_some(name))
    }

    /// Whether a list contains an equal item, or a map contains the key.
    pub(crate) fn contains(&mut self, within: &Val<'a>, wanted: &Val<'a>) -> Result<bool, Failed> {
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
                let found = map.find(wanted);
                found.iter().try_for_each(|found| self.pay_for(found))?;
                Ok(found.is_some())
            }
            _ => no_overload(),
        }
    }

    /// Whether two values are equal. Values of different types are unequal, except numbers.
    pub(crate) fn equal(&mut self, left: &Val<'a>, right: &Val<'a>) -> Result<bool, Failed> {
        match (left, right) {
            (Val::List(a), Val::List(b)) => self.equal_lists(a, b),
            (Val::Map(a), Val::Map(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (key, one) in self.entries(a)? {
                    if let Val::Text(text) = &key {
                        self.pay_for_bytes(text.len())?;
                    }
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
            (Val::Broken(expected), _) | (_, Val::Broken(expected)) => Err(Failed::Data(expected)),
            _ => {
                self.pay_for(left)?;
                self.pay_for(right)?;
                Ok(self.compare(left, right)? == Some(Ordering::Equal))
            }
        }
    }

    fn equal_lists(&mut self, one: &List<'a>, other: &List<'a>) -> Result<bool, Failed> {
        if one.len() != other.len() {
            return Ok(false);
        }
        let order = one.order();
        if *order == Order::Atomic {
            for (one, other) in one.iter().zip(other.iter()) {
                self.pay(1)?;
                if !self.equal(&one, &other)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let items: Vec<Val<'a>> = one.iter().collect();
        let mut places = self.places(&items, order)?;
        for item in other.iter() {
            let place = self.place(&items, &mut places, &item, order)?;
            let Some(partner) = place.and_then(|place| items.get(place)) else { return Ok(false) };
            if !self.equal(partner, &item)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Appends a value to the text of an identity; returns `false` if equal values may have different texts.
fn add(name: &mut String, value: &Val<'_>) -> bool {
    // Writing into a text does not fail.
    let _ = match value {
        Val::Text(text) => write!(name, "{}:{}", text.len(), &**text),
        Val::Bool(flag) => write!(name, "{flag}"),
        Val::Int(number) => write!(name, "#{number}"),
        Val::Uint(number) => write!(name, "#{number}"),
        _ => return false,
    };
    true
}
