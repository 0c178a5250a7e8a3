//! What expressions compute with.
//!
//! Owns values: those of a JSON object are borrowed from it, those that an expression makes are shared. Numbers without
//! a fraction are `int`, as in the unstructured objects of a real server.

use std::cmp::Ordering;
use std::ops::Deref;
use std::rc::Rc;

use serde_json::{Map as JsonMap, Value};

#[derive(Debug, Clone)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    List(List<'a>),
    Map(Map<'a>),
    Optional(Option<Rc<Val<'a>>>),
}

#[derive(Debug, Clone)]
pub(super) enum Text<'a> {
    Lent(&'a str),
    Own(Rc<str>),
}

#[derive(Debug, Clone)]
pub(super) enum List<'a> {
    Json(&'a [Value]),
    Own(Rc<Vec<Val<'a>>>),
}

#[derive(Debug, Clone)]
pub(super) enum Map<'a> {
    Json(&'a JsonMap<String, Value>),
    Own(Rc<Vec<(Val<'a>, Val<'a>)>>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Lent(text) => text,
            Self::Own(text) => text,
        }
    }
}

impl<'a> Val<'a> {
    pub fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => {
                number.as_i64().map_or_else(|| Self::Double(number.as_f64().unwrap_or(f64::NAN)), Self::Int)
            }
            Value::String(text) => Self::lent(text),
            Value::Array(items) => Self::List(List::Json(items)),
            Value::Object(map) => Self::Map(Map::Json(map)),
        }
    }

    pub fn lent(text: &'a str) -> Self {
        Self::Text(Text::Lent(text))
    }

    pub fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text::Own(text.into()))
    }

    pub fn list(items: Vec<Self>) -> Self {
        Self::List(List::Own(Rc::new(items)))
    }

    pub fn some(inner: Self) -> Self {
        Self::Optional(Some(Rc::new(inner)))
    }

    /// How two numbers, texts or truths compare; `None`: they do not.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => Some(a.deref().cmp(b)),
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Double(a), b) => a.partial_cmp(&b.as_double()?),
            (a, Self::Double(b)) => a.as_double()?.partial_cmp(b),
            (a, b) => Some(a.as_whole()?.cmp(&b.as_whole()?)),
        }
    }

    /// Any whole number, exactly.
    fn as_whole(&self) -> Option<i128> {
        match self {
            Self::Int(number) => Some(i128::from(*number)),
            Self::Uint(number) => Some(i128::from(*number)),
            _ => None,
        }
    }

    pub fn as_double(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::Uint(number) => Some(*number as f64),
            Self::Double(number) => Some(*number),
            _ => None,
        }
    }

    /// The value as errors show a key.
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.to_string(),
            Self::Int(number) => number.to_string(),
            Self::Uint(number) => number.to_string(),
            Self::Double(number) => number.to_string(),
            Self::Bool(flag) => flag.to_string(),
            _ => "…".to_owned(),
        }
    }
}

impl<'a> List<'a> {
    pub fn len(&self) -> usize {
        match self {
            Self::Json(items) => items.len(),
            Self::Own(items) => items.len(),
        }
    }

    pub fn at(&self, index: usize) -> Option<Val<'a>> {
        match self {
            Self::Json(items) => items.get(index).map(Val::of),
            Self::Own(items) => items.get(index).cloned(),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Val<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.at(index))
    }
}

impl<'a> Map<'a> {
    pub fn len(&self) -> usize {
        match self {
            Self::Json(map) => map.len(),
            Self::Own(entries) => entries.len(),
        }
    }

    /// The value of a key. A literal map is short, as the expression is.
    pub fn find(&self, key: &Val<'_>) -> Option<Val<'a>> {
        match (self, key) {
            (Self::Json(map), Val::Text(text)) => map.get(&**text).map(Val::of),
            (Self::Json(_), _) => None,
            (Self::Own(entries), key) => {
                entries.iter().find(|(known, _)| known.compare(key) == Some(Ordering::Equal)).map(|(_, v)| v.clone())
            }
        }
    }

    pub fn keys(&self) -> Vec<Val<'a>> {
        match self {
            Self::Json(map) => map.keys().map(|key| Val::lent(key)).collect(),
            Self::Own(entries) => entries.iter().map(|(key, _)| key.clone()).collect(),
        }
    }
}
