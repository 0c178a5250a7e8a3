//! The keys of single faults: each catalogue entry has a type with its own keys.
//!
//! Owns the macro that declares these types, and the parsing of a fault. Shared keys are stored in [`Fault`], all
//! others in the type of the catalogue entry. An unknown key is kept as written, so that the check can name the faults
//! that have the key.

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::{Arc, LazyLock};

use schemars::JsonSchema;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::shared::{OF_ALL, is_shared};
use super::{Error, Fault, Name};

/// A key of a fault: its name in scenarios, its default (empty if it has none) and its description.
pub type Takes = (&'static str, &'static str, &'static str);

/// The settings that only one kind of fault has.
pub trait Keys: Default + Clone + Debug + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// Each key with its default and description.
    const TAKES: &'static [Takes];
}

/// Declares the settings of one kind of fault: for each key the field, the name, the type, the default and the
/// description.
macro_rules! keys {
    (
        $(#[$doc:meta])*
        $vis:vis struct $name:ident { $($key:ident $spelled:literal: $type:ty = ($default:literal, $words:literal),)* }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        $vis struct $name {
            $(
                #[doc = concat!("`", $spelled, "`. ", $words)]
                #[serde(rename = $spelled, skip_serializing_if = "Option::is_none")]
                pub $key: Option<$type>,
            )*
        }

        impl $crate::settings::Keys for $name {
            const TAKES: &'static [$crate::settings::Takes] = &[$(($spelled, $default, $words)),*];
        }
    };
}
pub(crate) use keys;

keys! {
    /// The settings of a fault that has only shared keys.
    pub(crate) struct NoKeys {}
}

/// The settings that only this kind of fault has, as they were written.
#[derive(Clone)]
pub struct Settings(Arc<dyn Written>);

/// The settings of any kind of fault.
trait Written: Any + Debug + Send + Sync {
    fn written(&self) -> Map<String, Value>;
}

impl<K: Keys> Written for K {
    fn written(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(keys)) => keys,
            _ => Map::new(),
        }
    }
}

/// Settings that cannot be parsed, and the reason.
#[derive(Debug)]
struct Unread(Map<String, Value>, String);

impl Written for Unread {
    fn written(&self) -> Map<String, Value> {
        self.0.clone()
    }
}

/// A function that parses the settings of one kind of fault.
pub(crate) type Read = fn(Map<String, Value>) -> Settings;

/// Parses the settings of one kind of fault; see [`Read`].
pub(crate) fn read<K: Keys>(keys: Map<String, Value>) -> Settings {
    match K::deserialize(Value::Object(keys.clone())) {
        Ok(read) => Settings(Arc::new(read)),
        Err(error) => Settings(Arc::new(Unread(keys, error.to_string()))),
    }
}

impl Settings {
    /// The settings of a fault whose kind is not known yet.
    pub(super) fn none() -> Self {
        Self(Arc::new(NoKeys {}))
    }

    pub(super) fn of(name: Name, keys: Map<String, Value>) -> Self {
        (name.row().read)(keys)
    }

    pub(super) fn get<K: Keys>(&self) -> K {
        let any: &dyn Any = &*self.0;
        any.downcast_ref::<K>().cloned().unwrap_or_default()
    }

    pub(super) fn written(&self) -> Map<String, Value> {
        self.0.written()
    }

    /// Refuses settings that could not be parsed.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.problem().map_or(Ok(()), |why| Err(Error::Unread { why: why.to_owned() }))
    }

    fn problem(&self) -> Option<&str> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref::<Unread>().map(|unread| unread.1.as_str())
    }
}

impl Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for Settings {
    fn eq(&self, other: &Self) -> bool {
        self.written() == other.written()
    }
}

/// All keys that belong to single faults and are not shared.
static KNOWN: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let own = Name::ALL.iter().flat_map(|name| name.row().takes).map(|(key, ..)| *key);
    let chosen = Name::ALL.iter().flat_map(|name| name.row().chooses).copied();
    let mut all: Vec<&str> = OF_ALL.iter().copied().chain(chosen).chain(own).collect();
    all.sort_unstable();
    all.dedup();
    all
});

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shared = Fault::serialize(self, serde_json::value::Serializer).map_err(serde::ser::Error::custom)?;
        let Value::Object(mut keys) = shared else { return shared.serialize(serializer) };
        keys.retain(|_, value| !value.is_null());
        keys.extend(self.settings.written());
        keys.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Fault;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a fault: a mapping with `name`")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Fault, A::Error> {
                let mut own = Map::new();
                let shared = Split { map, own: &mut own };
                let mut fault = Fault::deserialize(de::value::MapAccessDeserializer::new(shared))?;
                let is_its_own = own.keys().all(|key| fault.name.row().key(key).is_some());
                fault.settings = Settings::of(fault.name, own);
                match fault.settings.problem().filter(|_| is_its_own) {
                    Some(why) => Err(de::Error::custom(format!("`{}`: {why}", fault.name.as_str()))),
                    None => Ok(fault),
                }
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// Reads the shared keys of a fault's mapping, and collects the keys of single faults separately.
struct Split<'a, A> {
    map: A,
    own: &'a mut Map<String, Value>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Split<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key::<String>()? {
            if is_shared(&key) {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
            if !KNOWN.contains(&key.as_str()) {
                return Err(de::Error::unknown_field(&key, &KNOWN));
            }
            let value = self.map.next_value()?;
            if self.own.insert(key.clone(), value).is_some() {
                return Err(de::Error::custom(format!("the key `{key}` stands here a second time: keep one")));
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

pub(crate) fn not_zero(key: &'static str, is_zero: bool) -> Result<(), Error> {
    let given = "0".to_owned();
    if is_zero { Err(Error::Value { key, given, instead: "write 1 or more" }) } else { Ok(()) }
}

/// Refuses an HTTP status that is no error.
pub(crate) fn error_status(status: Option<u16>) -> Result<(), Error> {
    match status.filter(|status| !(400..=599).contains(status)) {
        Some(status) => {
            let instead = "write the status of an error, 400 to 599";
            Err(Error::Value { key: "status", given: status.to_string(), instead })
        }
        None => Ok(()),
    }
}
