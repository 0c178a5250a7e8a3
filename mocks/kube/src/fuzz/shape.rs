//! Bytes as JSON: every input is some value, so a fuzzer need not find out the grammar first.
//!
//! Owns an alphabet of keys and texts that the code under test knows, so that values meet each other.

use serde_json::{Map, Value, json};

const KEYS: &[&str] = &[
    "metadata",
    "spec",
    "template",
    "containers",
    "name",
    "image",
    "env",
    "value",
    "ports",
    "containerPort",
    "labels",
    "a",
    "b",
    "finalizers",
    "annotations",
    "selector",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "webhooks",
    "port",
    "status",
    "conditions",
    "type",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "ownerReferences",
    "uid",
    "",
    "a/b",
    "a~b",
];
const TEXTS: &[&str] =
    &["a", "b", "", "delete", "replace", "merge", "In", "NotIn", "Exists", "0", "-", "example.com/hold", "é"];
const DEPTH_MAX: u8 = 6;
const ITEMS_MAX: u8 = 4;

pub(super) struct Shape<'a>(&'a [u8]);

/// Makes the value of a keyword.
type Make<'a> = fn(&mut Shape<'a>) -> Value;

impl<'a> Shape<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next byte; zeros without end after the last.
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                byte
            }
            None => 0,
        }
    }

    fn one(&mut self, of: &'static [&'static str]) -> &'static str {
        of[usize::from(self.byte()) % of.len()]
    }

    pub fn value(&mut self) -> Value {
        self.at(0)
    }

    pub fn object(&mut self) -> Value {
        self.map(0)
    }

    fn at(&mut self, depth: u8) -> Value {
        match self.byte() % 8 {
            0 | 1 if depth < DEPTH_MAX => self.map(depth),
            2 | 3 if depth < DEPTH_MAX => {
                let many = self.byte() % ITEMS_MAX;
                (0..many).map(|_| self.at(depth + 1)).collect()
            }
            4 => Value::Null,
            5 => Value::from(self.byte().is_multiple_of(2)),
            6 => Value::from(i64::from(self.byte()) - 128),
            _ => Value::from(self.one(TEXTS)),
        }
    }

    fn map(&mut self, depth: u8) -> Value {
        let many = self.byte() % ITEMS_MAX;
        let mut map = Map::new();
        for _ in 0..many {
            let key = self.one(KEYS);
            map.insert(key.to_owned(), self.at(depth + 1));
        }
        Value::Object(map)
    }

    fn pointer(&mut self) -> String {
        let many = self.byte() % ITEMS_MAX;
        let mut pointer = String::new();
        for _ in 0..many {
            pointer.push('/');
            match self.byte() % 5 {
                0 => pointer.push('-'),
                1 => pointer.push_str(&(self.byte() % 5).to_string()),
                2 => pointer.push_str(["01", "~", "~2", "18446744073709551616"][usize::from(self.byte() % 4)]),
                _ => pointer.push_str(&self.one(KEYS).replace('~', "~0").replace('/', "~1")),
            }
        }
        pointer
    }

    /// A JSON patch, with some operations that are none.
    pub fn operations(&mut self) -> Value {
        let many = self.byte() % 6;
        let operations = (0..many).map(|_| {
            let op = self.one(&["add", "remove", "replace", "move", "copy", "test", "other"]);
            json!({"op": op, "path": self.pointer(), "from": self.pointer(), "value": self.at(3)})
        });
        operations.collect()
    }

    /// A schema of a custom resource.
    pub fn schema(&mut self) -> Value {
        let mut schema = self.schema_at(0);
        schema["type"] = json!("object");
        schema
    }

    fn schema_at(&mut self, depth: u8) -> Value {
        let kind = self.one(&["object", "array", "string", "integer", "number", "boolean", "other"]);
        let mut schema = json!({"type": kind});
        let keywords = self.byte();
        if depth < 4 && kind == "object" {
            for _ in 0..self.byte() % ITEMS_MAX {
                let key = self.one(KEYS);
                schema["properties"][key] = self.schema_at(depth + 1);
            }
            if keywords & 1 != 0 {
                schema["additionalProperties"] = self.schema_at(depth + 1);
            }
            if keywords & 2 != 0 {
                schema["required"] = json!([self.one(KEYS)]);
            }
        }
        if kind == "array" && keywords & 1 != 0 && depth < 4 {
            schema["items"] = self.schema_at(depth + 1);
            schema["x-kubernetes-list-type"] = json!(self.one(&["atomic", "set", "map"]));
            schema["x-kubernetes-list-map-keys"] = json!([self.one(KEYS)]);
        }
        let more: [(u8, &str, Make<'a>); 6] = [
            (4, "default", |shape| shape.at(3)),
            (8, "enum", |shape| json!([shape.at(4), shape.at(4)])),
            (16, "pattern", |shape| json!(shape.one(&["^a+$", "(", "[a-z]*"]))),
            (32, "minimum", |shape| shape.at(5)),
            (64, "x-kubernetes-preserve-unknown-fields", |_| json!(true)),
            (128, "nullable", |_| json!(true)),
        ];
        for (bit, keyword, make) in more {
            if keywords & bit != 0 {
                schema[keyword] = make(self);
            }
        }
        schema
    }
}
