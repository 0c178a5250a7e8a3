//! The functions of lists (Kubernetes documentation, "Kubernetes list library").

use std::cmp::Ordering;
use std::rc::Rc;

use super::super::Failed;
use super::super::run::{Found, Run, no_overload};
use super::super::value::{List, Val};
use super::count;

pub(super) fn on_list<'a>(run: &mut Run<'a, '_>, name: &str, list: &List<'a>, arguments: &[Val<'a>]) -> Found<'a> {
    run.pay(list.len())?;
    run.pay_for_bytes(list.bytes_to_decode())?;
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
                match run.compare(&one, &next)? {
                    Some(Ordering::Greater) => return Ok(Val::Bool(false)),
                    Some(_) => {}
                    None => return no_overload(),
                }
            }
            Ok(Val::Bool(true))
        }
        ("min" | "max", []) => {
            let wanted = if name == "min" { Ordering::Less } else { Ordering::Greater };
            let mut items = list.iter();
            let Some(mut best) = items.next() else { return Err(Failed::Empty(name.to_owned())) };
            for item in items {
                let Some(order) = run.compare(&item, &best)? else { return no_overload() };
                if order == wanted {
                    best = item;
                }
            }
            Ok(best)
        }
        ("sum", []) => sum(list),
        ("first", []) => Ok(Val::Optional(list.at(0).map(Rc::new))),
        ("last", []) => Ok(Val::Optional(list.len().checked_sub(1).and_then(|last| list.at(last)).map(Rc::new))),
        ("unwrapOpt", []) => {
            let mut present = Vec::new();
            for item in list.iter() {
                match item {
                    Val::Optional(inner) => present.extend(inner.map(|inner| (*inner).clone())),
                    _ => return no_overload(),
                }
            }
            Ok(Val::list(present))
        }
        _ => no_overload(),
    }
}

fn sum<'a>(list: &List<'a>) -> Found<'a> {
    let mut items = list.iter();
    let Some(first) = items.next() else { return Ok(list.zero()) };
    items.try_fold(first, |sum, item| match (&sum, &item) {
        (Val::Int(a), Val::Int(b)) => {
            a.checked_add(*b).map_or_else(|| Err(Failed::Overflow("integer")), |number| Ok(Val::Int(number)))
        }
        (Val::Uint(a), Val::Uint(b)) => {
            a.checked_add(*b).map_or_else(|| Err(Failed::Overflow("unsigned integer")), |number| Ok(Val::Uint(number)))
        }
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a + b)),
        (Val::Duration(a), Val::Duration(b)) => {
            a.checked_add(*b).map_or_else(|| Err(Failed::Overflow("integer")), |nanos| Ok(Val::Duration(nanos)))
        }
        _ => no_overload(),
    })
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
