//! The values of CEL expressions.
//!
//! Values of a JSON object are borrowed from the object; values that an expression makes are shared. Without a schema,
//! numbers without a fraction are of type `int`, as in a real server's unstructured objects. With a schema, a value has
//! the declared type.

use std::cmp::Ordering;
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;

use base64::Engine as _;
use jiff::Timestamp;
use serde_json::{Map as JsonMap, Value};

use super::addresses::Cidr;
use super::decl::{Decl, Order};
use super::formats::Format;
use super::semver::Semver;
use super::time;
use super::url::Url;
use crate::quantity::Quantity;

/// Deepest nesting of a value that an evaluation may return: less than the limit for stored objects.
const DEPTH_MAX: usize = 100;
/// Maximum number of nested values in a value that an evaluation may return: more than the largest stored object has.
const NODES_MAX: usize = 1_000_000;

#[derive(Debug, Clone)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    Bytes(Rc<[u8]>),
    Time(Timestamp),
    /// A duration in nanoseconds.
    Duration(i64),
    List(List<'a>),
    Map(Map<'a>),
    Optional(Option<Rc<Val<'a>>>),
    /// A type as a value; the text is its name.
    Type(&'static str),
    Thing(Rc<Thing>),
    /// A value that does not have the type that its schema declares; using it is an error.
    Broken(&'static str),
}

/// Values of the Kubernetes libraries.
#[derive(Debug, PartialEq)]
pub(super) enum Thing {
    Quantity(Quantity),
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Url),
    Format(Format),
    Semver(Semver),
}

#[derive(Debug, Clone)]
pub(super) enum Text<'a> {
    Lent(&'a str),
    Own(Rc<str>),
}

#[derive(Debug, Clone)]
pub(super) enum List<'a> {
    Json(&'a [Value]),
    Typed(&'a [Value], &'a Decl, &'a Order),
    /// A list that an expression made. If an item is added to a set, the result is also a set.
    Own(Rc<Vec<Val<'a>>>, &'a Order),
}

#[derive(Debug, Clone)]
pub(super) enum Map<'a> {
    Json(&'a JsonMap<String, Value>),
    Typed(&'a JsonMap<String, Value>, &'a Decl),
    /// A map that an expression made: sorted by keys, each of which occurs once.
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

impl Thing {
    fn type_name(&self) -> &'static str {
        match self {
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Semver(_) => "kubernetes.Semver",
        }
    }

    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Quantity(amount) => amount.canonical(),
            Self::Ip(address) => address.to_string(),
            Self::Cidr(network) => network.shown(),
            Self::Url(url) => url.shown().to_owned(),
            Self::Format(_) | Self::Semver(_) => String::new(),
        }
    }
}

impl<'a> Val<'a> {
    pub(crate) fn of(value: &'a Value) -> Self {
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

    /// A value of an object with the type that its schema declares.
    pub(crate) fn typed(value: &'a Value, decl: &'a Decl) -> Self {
        match (decl, value) {
            (_, Value::Null) => Self::Null,
            (Decl::Dyn, value) => Self::of(value),
            (Decl::Bool, Value::Bool(flag)) => Self::Bool(*flag),
            (Decl::Int, Value::Number(number)) => whole(number).map_or_else(|| Self::broken("an integer"), Self::Int),
            (Decl::Double, Value::Number(number)) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            (Decl::Text, Value::String(text)) => Self::lent(text),
            (Decl::Bytes, Value::String(text)) => match base64::engine::general_purpose::STANDARD.decode(text) {
                Ok(bytes) => Self::Bytes(bytes.into()),
                Err(_) => Self::broken("base64"),
            },
            (Decl::Time, Value::String(text)) => {
                time::read(text).map_or_else(|| Self::broken("a date-time"), Self::Time)
            }
            (Decl::Date, Value::String(text)) => {
                time::read_date(text).map_or_else(|| Self::broken("a date"), Self::Time)
            }
            (Decl::Duration, Value::String(text)) => {
                time::read_duration(text).map_or_else(|| Self::broken("a duration"), Self::Duration)
            }
            (Decl::List { item, order }, Value::Array(items)) => Self::List(List::Typed(items, item, order)),
            (Decl::Map(_) | Decl::Object(_), Value::Object(map)) => Self::Map(Map::Typed(map, decl)),
            _ => Self::broken("a value of the declared type"),
        }
    }

    fn broken(expected: &'static str) -> Self {
        Self::Broken(expected)
    }

    pub(crate) fn lent(text: &'a str) -> Self {
        Self::Text(Text::Lent(text))
    }

    pub(crate) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text::Own(text.into()))
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(List::own(items))
    }

    pub(crate) fn some(inner: Self) -> Self {
        Self::Optional(Some(Rc::new(inner)))
    }

    pub(crate) fn thing(thing: Thing) -> Self {
        Self::Thing(Rc::new(thing))
    }

    /// The order of two numbers, two texts, two times or two booleans; `None` for other pairs.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => Some(a.deref().cmp(b)),
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Time(a), Self::Time(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            (Self::Double(a), b) => a.partial_cmp(&b.as_double()?),
            (a, Self::Double(b)) => a.as_double()?.partial_cmp(b),
            (a, b) => Some(a.as_whole()?.cmp(&b.as_whole()?)),
        }
    }

    /// The value as an exact integer; `None` if it is not one.
    fn as_whole(&self) -> Option<i128> {
        match self {
            Self::Int(number) => Some(i128::from(*number)),
            Self::Uint(number) => Some(i128::from(*number)),
            _ => None,
        }
    }

    pub(crate) fn as_double(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::Uint(number) => Some(*number as f64),
            Self::Double(number) => Some(*number),
            _ => None,
        }
    }

    /// Whether the value is at most [`DEPTH_MAX`] deep and has at most [`NODES_MAX`] nodes. Values share their
    /// contents, so an expression can make a value that has far more nodes than the evaluation has operations.
    pub(crate) fn is_bounded(&self) -> bool {
        let mut nodes = NODES_MAX;
        self.fits(DEPTH_MAX, &mut nodes)
    }

    fn fits(&self, depth: usize, nodes: &mut usize) -> bool {
        let Some(left) = nodes.checked_sub(1) else { return false };
        *nodes = left;
        let Some(below) = depth.checked_sub(1) else { return false };
        match self {
            Self::List(list) => list.iter().all(|item| item.fits(below, nodes)),
            Self::Map(map) => map.entries().into_iter().all(|(_, value)| value.fits(below, nodes)),
            Self::Optional(Some(inner)) => inner.fits(below, nodes),
            _ => true,
        }
    }

    /// The value as JSON; `None` if JSON cannot represent the value.
    pub(crate) fn json(&self) -> Option<Value> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::from(*flag),
            Self::Int(number) => Value::from(*number),
            Self::Uint(number) => Value::from(*number),
            Self::Double(number) => serde_json::Number::from_f64(*number).map(Value::Number)?,
            Self::Text(text) => Value::from(&**text),
            Self::Bytes(bytes) => Value::from(base64::engine::general_purpose::STANDARD.encode(bytes)),
            Self::Time(time) => Value::from(time.to_string()),
            Self::Duration(nanoseconds) => Value::from(time::show_span(*nanoseconds)),
            Self::List(list) => list.iter().map(|item| item.json()).collect::<Option<Vec<_>>>()?.into(),
            Self::Map(map) => {
                let entries = map.entries().into_iter().map(|(key, value)| Some((key.shown(), value.json()?)));
                Value::Object(entries.collect::<Option<_>>()?)
            }
            Self::Optional(Some(inner)) => inner.json()?,
            Self::Optional(None) | Self::Type(_) | Self::Thing(_) | Self::Broken(_) => return None,
        })
    }

    /// The value of a key as error messages show it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.to_string(),
            Self::Int(number) => number.to_string(),
            Self::Uint(number) => number.to_string(),
            Self::Double(number) => number.to_string(),
            Self::Bool(flag) => flag.to_string(),
            _ => "…".to_owned(),
        }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Time(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Thing(thing) => thing.type_name(),
            Self::Broken(_) => "error",
        }
    }
}

/// The rank of a key's type in the order of keys; `None` if values of this type cannot be keys.
fn rank(key: &Val<'_>) -> Option<u8> {
    match key {
        Val::Bool(_) => Some(0),
        Val::Int(_) | Val::Uint(_) => Some(1),
        Val::Text(_) => Some(2),
        _ => None,
    }
}

/// The order of keys in a map. A floating-point number equals the integer with the same value.
fn order_of_keys(one: &Val<'_>, other: &Val<'_>) -> Ordering {
    let place = |key: &Val<'_>| if matches!(key, Val::Double(_)) { Some(1) } else { rank(key) };
    place(one).cmp(&place(other)).then_with(|| one.compare(other).unwrap_or(Ordering::Less))
}

/// The number as an integer; JSON's `1.0` is an integer too.
#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and within the range before")]
fn whole(number: &serde_json::Number) -> Option<i64> {
    let real = || number.as_f64().filter(|real| real.fract() == 0.0 && real.abs() < 9.223_372_036_854_776e18);
    number.as_i64().or_else(|| real().map(|real| real as i64))
}

impl<'a> List<'a> {
    pub(crate) fn own(items: Vec<Val<'a>>) -> Self {
        Self::Own(Rc::new(items), &Order::Atomic)
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(items) | Self::Typed(items, ..) => items.len(),
            Self::Own(items, _) => items.len(),
        }
    }

    pub(crate) fn at(&self, index: usize) -> Option<Val<'a>> {
        match self {
            Self::Json(items) => items.get(index).map(Val::of),
            Self::Typed(items, decl, _) => items.get(index).map(|item| Val::typed(item, decl)),
            Self::Own(items, _) => items.get(index).cloned(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Val<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.at(index))
    }

    /// The length of the base64 texts that must be decoded to compare the items.
    pub(crate) fn bytes_to_decode(&self) -> usize {
        match self {
            Self::Typed(items, Decl::Bytes, _) => items.iter().filter_map(Value::as_str).map(str::len).sum(),
            _ => 0,
        }
    }

    /// The sum of the list if it is empty; the type of this zero depends on the declared type of the items.
    pub(crate) fn zero(&self) -> Val<'a> {
        match self {
            Self::Typed(_, Decl::Double, _) => Val::Double(0.0),
            Self::Typed(_, Decl::Duration, _) => Val::Duration(0),
            _ => Val::Int(0),
        }
    }

    /// How the items of the list are identified.
    pub(crate) fn order(&self) -> &'a Order {
        match self {
            Self::Typed(_, _, order) | Self::Own(_, order) => order,
            Self::Json(_) => &Order::Atomic,
        }
    }
}

impl<'a> Map<'a> {
    /// A map of these entries; of entries with equal keys, the last one counts. The error is a value that cannot be a
    /// key.
    pub(crate) fn own(mut entries: Vec<(Val<'a>, Val<'a>)>) -> Result<Self, Val<'a>> {
        if let Some(wrong) = entries.iter().position(|(key, _)| rank(key).is_none()) {
            return Err(entries.swap_remove(wrong).0);
        }
        // A later entry comes first, and the others are dropped.
        entries.reverse();
        entries.sort_by(|(one, _), (other, _)| order_of_keys(one, other));
        entries.dedup_by(|(later, _), (kept, _)| order_of_keys(later, kept) == Ordering::Equal);
        Ok(Self::Own(Rc::new(entries)))
    }

    /// A map of entries with valid keys; the error is a key that occurs twice.
    pub(crate) fn own_once(mut entries: Vec<(Val<'a>, Val<'a>)>) -> Result<Self, Val<'a>> {
        entries.sort_by(|(one, _), (other, _)| order_of_keys(one, other));
        let twice = entries.windows(2).find(|pair| order_of_keys(&pair[0].0, &pair[1].0) == Ordering::Equal);
        match twice {
            Some(pair) => Err(pair[0].0.clone()),
            None => Ok(Self::Own(Rc::new(entries))),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(map) | Self::Typed(map, _) => map.len(),
            Self::Own(entries) => entries.len(),
        }
    }

    /// The value of a key. If the map is an object of a schema, the key is the escaped name of a field.
    pub(crate) fn find(&self, key: &Val<'_>) -> Option<Val<'a>> {
        match (self, key) {
            (Self::Typed(map, Decl::Object(fields)), Val::Text(text)) => {
                let (name, decl) = fields.find(text)?;
                map.get(name).map(|value| Val::typed(value, decl))
            }
            _ => self.named(key),
        }
    }

    /// The value of a key. If the map is an object of a schema, the key is the original name of a field.
    pub(crate) fn named(&self, key: &Val<'_>) -> Option<Val<'a>> {
        match (self, key) {
            (Self::Json(map), Val::Text(text)) => map.get(&**text).map(Val::of),
            (Self::Typed(map, decl), Val::Text(text)) => map.get(&**text).map(|value| Self::member(decl, text, value)),
            (Self::Json(_) | Self::Typed(..), _) => None,
            (Self::Own(entries), key) => {
                let found = entries.binary_search_by(|(known, _)| order_of_keys(known, key)).ok()?;
                // Numbers of two types may be the same key; NaN is none.
                let (known, value) = &entries[found];
                (known.compare(key) == Some(Ordering::Equal)).then(|| value.clone())
            }
        }
    }

    /// All entries; the fields of an object have their original names.
    pub(crate) fn entries(&self) -> Vec<(Val<'a>, Val<'a>)> {
        match self {
            Self::Json(map) => map.iter().map(|(key, value)| (Val::lent(key), Val::of(value))).collect(),
            Self::Typed(map, decl) => {
                map.iter().map(|(key, value)| (Val::lent(key), Self::member(decl, key, value))).collect()
            }
            Self::Own(entries) => entries.to_vec(),
        }
    }

    fn member(decl: &'a Decl, name: &str, value: &'a Value) -> Val<'a> {
        match decl {
            Decl::Map(item) => Val::typed(value, item),
            Decl::Object(fields) => fields.named(name).map_or_else(|| Val::of(value), |decl| Val::typed(value, decl)),
            _ => Val::of(value),
        }
    }
}
