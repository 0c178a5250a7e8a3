//! Parses JSON that registries or signers wrote. The whole text must be UTF-8 (RFC 8259, section 8.1), so that skipped
//! values are valid for other programs too.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Why bytes are not the expected JSON. The text of the error becomes the cause of a rejected signature.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JsonError {
    #[error("not UTF-8")]
    Encoding(#[from] std::str::Utf8Error),
    #[error(transparent)]
    Shape(#[from] serde_json::Error),
}

pub(crate) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, JsonError> {
    // serde_json alone would check only the texts that are read, and skip over all others.
    Ok(serde_json::from_str(std::str::from_utf8(bytes)?)?)
}

/// A list of at most `MAX` items; a longer list is refused at item `MAX` + 1. Without a limit, a list of empty items
/// would take twenty times the memory of its text.
#[derive(Debug)]
pub(crate) struct Few<T, const MAX: usize>(Vec<T>);

/// The last `MAX` items of a longer list.
#[derive(Debug)]
pub(crate) struct Last<T, const MAX: usize> {
    /// The last items, in order.
    pub(crate) items: VecDeque<T>,
    /// Number of items in the whole list.
    pub(crate) count: usize,
}

impl<T, const MAX: usize> Default for Few<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const MAX: usize> Deref for Few<T, MAX> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T, const MAX: usize> IntoIterator for Few<T, MAX> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for Few<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfFew<T, const MAX: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for OfFew<T, MAX> {
            type Value = Few<T, MAX>;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(out, "a list of at most {MAX}")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    if items.len() == MAX {
                        return Err(A::Error::custom(format_args!("a list of more than {MAX}")));
                    }
                    items.push(item);
                }
                Ok(Few(items))
            }
        }
        deserializer.deserialize_seq(OfFew(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for Last<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfLast<T, const MAX: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for OfLast<T, MAX> {
            type Value = Last<T, MAX>;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut last = Last { items: VecDeque::new(), count: 0 };
                while let Some(item) = list.next_element()? {
                    if last.items.len() == MAX {
                        last.items.pop_front();
                    }
                    last.items.push_back(item);
                    last.count += 1;
                }
                Ok(last)
            }
        }
        deserializer.deserialize_seq(OfLast(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_costs_no_more_than_its_bound() {
        assert_eq!(*read::<Few<u8, 3>>(b"[1,2,3]").unwrap(), [1, 2, 3]);
        let error = read::<Few<u8, 3>>(b"[1,2,3,4]").unwrap_err().to_string();
        assert!(error.starts_with("a list of more than 3"), "{error}");
        let last = read::<Last<u8, 3>>(b"[1,2,3,4,5]").unwrap();
        assert_eq!((Vec::from(last.items), last.count), (vec![3, 4, 5], 5));
    }
}
