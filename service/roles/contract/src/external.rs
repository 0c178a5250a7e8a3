//! Gatekeeper's protocol for external data, `externaldata.gatekeeper.sh/v1beta1`: a request with keys, and a response
//! with an item for each key.
//!
//! Source of the protocol: open-policy-agent/frameworks, `constraint/pkg/externaldata/{request,response}.go`. The kinds
//! of messages are checked as in Gatekeeper's code.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::answer::{Breach, read};

/// `apiVersion` of request and response. Gatekeeper sends the stored version of its CRD; all versions of it have the
/// same fields.
pub const API_VERSION: &str = "externaldata.gatekeeper.sh/v1beta1";
const API_VERSION_ALPHA: &str = "externaldata.gatekeeper.sh/v1alpha1";
/// Largest response of a provider about one image, in bytes.
pub const ANSWER_BYTES_MAX: usize = 256 << 10;
/// Maximum number of keys of one request: the images of a large object.
pub const KEYS_MAX: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderRequest {
    #[serde(default)]
    pub api_version: String,
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub request: Request,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    #[serde(default)]
    pub keys: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderResponse {
    #[serde(default)]
    pub api_version: String,
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub response: Response,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// Whether the provider gives the same response to equal requests.
    #[serde(default)]
    pub idempotent: bool,
    /// The items of the response, one for each key.
    #[serde(default)]
    pub items: Vec<Item>,
    /// The reason why the provider returns no items.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system_error: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    #[serde(default)]
    pub key: String,
    /// The provider's result for the key. A JSON object with a repeated key is refused.
    #[serde(default, deserialize_with = "unambiguous")]
    pub value: Value,
    /// The reason why the key has no value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// A fault that the answers of any validator can have.
    #[error(transparent)]
    Breach(#[from] Breach),
    #[error("its answer is no ProviderResponse of {API_VERSION}")]
    Kind,
    #[error("the provider says: {0}")]
    System(String),
    /// The requested key has no item or several items.
    #[error("it answers other keys than asked: {items} items, {fitting} of them for this image")]
    Keys {
        items: usize,
        /// Number of items with the requested key.
        fitting: usize,
    },
}

/// Parses any value, but refuses objects with a repeated key, because two readers could choose different values of the
/// key.
pub fn unambiguous<'de, D: Deserializer<'de>>(value: D) -> Result<Value, D::Error> {
    Unambiguous.deserialize(value)
}

#[derive(Clone, Copy)]
struct Unambiguous;

impl<'de> DeserializeSeed<'de> for Unambiguous {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Value, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value without a key that is there twice")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            read.push(value);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(self)?;
            if read.insert(key, value).is_some() {
                return Err(A::Error::custom("a key is there twice"));
            }
        }
        Ok(Value::Object(read))
    }
}

pub fn question(keys: Vec<String>) -> ProviderRequest {
    let (api_version, kind) = (API_VERSION.to_owned(), "ProviderRequest".to_owned());
    ProviderRequest { api_version, kind, request: Request { keys } }
}

pub fn answer(items: Vec<Item>, system_error: String) -> ProviderResponse {
    let (api_version, kind) = (API_VERSION.to_owned(), "ProviderResponse".to_owned());
    ProviderResponse { api_version, kind, response: Response { idempotent: true, items, system_error } }
}

/// The keys in the request `body`; an error is a message for the caller.
pub fn read_question(body: &[u8]) -> Result<Vec<String>, String> {
    let question: ProviderRequest = read(body).map_err(|_| "the question is no ProviderRequest".to_owned())?;
    if ![API_VERSION, API_VERSION_ALPHA].contains(&&*question.api_version) || question.kind != "ProviderRequest" {
        return Err(format!("the question is no ProviderRequest of {API_VERSION}"));
    }
    if question.request.keys.len() > KEYS_MAX {
        return Err(format!("a question has at most {KEYS_MAX} keys"));
    }
    Ok(question.request.keys)
}

/// The item about `key` in `body`, which is the response to a request with only this key.
pub fn item(body: &[u8], key: &str) -> Result<(Item, bool), Wrong> {
    let ProviderResponse { api_version, kind, response } = read(body)?;
    if ![API_VERSION, API_VERSION_ALPHA].contains(&&*api_version) || kind != "ProviderResponse" {
        return Err(Wrong::Kind);
    }
    if !response.system_error.is_empty() {
        return Err(Wrong::System(response.system_error));
    }
    let items = response.items.len();
    let mut fitting: Vec<Item> = response.items.into_iter().filter(|item| item.key == key).collect();
    match (items, fitting.pop()) {
        (1, Some(item)) => Ok((item, response.idempotent)),
        (_, item) => Err(Wrong::Keys { items, fitting: fitting.len() + usize::from(item.is_some()) }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(change: impl FnOnce(&mut Value)) -> String {
        let mut value = json!({"apiVersion": API_VERSION, "kind": "ProviderResponse", "response": {
            "idempotent": true, "items": [{"key": "k", "value": {"isSuccess": true}}]}});
        change(&mut value);
        item(value.to_string().as_bytes(), "k")
            .map_or_else(|wrong| wrong.to_string(), |(item, _)| item.value.to_string())
    }

    #[test]
    fn only_the_key_that_was_asked_counts() {
        assert_eq!(refusal(|_| {}), r#"{"isSuccess":true}"#);
        let two = json!([{"key": "k", "value": 1}, {"key": "k", "value": 2}]);
        for (items, fitting) in [(json!([]), 0), (json!([{"key": "j", "value": true}]), 0), (two, 2)] {
            let count = items.as_array().unwrap().len();
            assert_eq!(
                refusal(|value| value["response"]["items"] = items),
                format!("it answers other keys than asked: {count} items, {fitting} of them for this image")
            );
        }
        assert_eq!(refusal(|value| value["response"]["systemError"] = "down".into()), "the provider says: down");
        assert!(refusal(|value| value["kind"] = "List".into()).starts_with("its answer is no ProviderResponse"));
        assert!(refusal(|value| value["response"] = 3.into()).contains("not the fields"));
    }

    #[test]
    fn a_question_names_its_kind_and_not_too_many_keys() {
        let text = |keys: usize| serde_json::to_vec(&question(vec!["k".into(); keys])).unwrap();
        assert_eq!(read_question(&text(2)).unwrap().len(), 2);
        assert!(read_question(&text(KEYS_MAX + 1)).unwrap_err().contains("at most 128"));
        assert!(read_question(b"{}").is_err() && read_question(b"[").is_err());
    }
}
