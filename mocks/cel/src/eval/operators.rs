//! The evaluation of operators with two operands.

use std::cmp::Ordering;

use super::super::time;
use super::super::value::Val;
use super::{Failed, Found, Run, no_overload};

impl<'a> Run<'a, '_> {
    pub(super) fn binary(&mut self, sign: &str, left: &Val<'a>, right: &Val<'a>) -> Found<'a> {
        match sign {
            "==" => Ok(Val::Bool(self.equal(left, right)?)),
            "!=" => Ok(Val::Bool(!self.equal(left, right)?)),
            "<" | "<=" | ">" | ">=" => {
                let nan = matches!(left, Val::Double(n) if n.is_nan()) || matches!(right, Val::Double(n) if n.is_nan());
                let Some(order) = self.compare(left, right)? else {
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
                "/" if *b == 0 => Err(Failed::Division),
                "/" => whole(a.checked_div(*b)),
                _ if *b == 0 => Err(Failed::Modulus),
                _ => whole(a.checked_rem(*b)),
            },
            (Val::Uint(a), Val::Uint(b)) => {
                let made = match sign {
                    "+" => a.checked_add(*b),
                    "-" => a.checked_sub(*b),
                    "*" => a.checked_mul(*b),
                    "/" if *b == 0 => return Err(Failed::Division),
                    "/" => a.checked_div(*b),
                    _ if *b == 0 => return Err(Failed::Modulus),
                    _ => a.checked_rem(*b),
                };
                made.map_or_else(|| Err(Failed::Overflow("unsigned integer")), |number| Ok(Val::Uint(number)))
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
}

pub(super) fn whole<'a>(number: Option<i64>) -> Found<'a> {
    number.map_or_else(|| Err(Failed::Overflow("integer")), |number| Ok(Val::Int(number)))
}

fn span<'a>(nanos: Option<i64>) -> Found<'a> {
    nanos.map_or_else(|| Err(Failed::Overflow("integer")), |nanos| Ok(Val::Duration(nanos)))
}

fn moment<'a>(at: Option<jiff::Timestamp>) -> Found<'a> {
    at.map_or_else(|| Err(Failed::Overflow("timestamp")), |at| Ok(Val::Time(at)))
}
