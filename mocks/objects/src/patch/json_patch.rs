//! JSON patch (RFC 6902), applied by the crate `json-patch`. As in kube-apiserver, the operation `test` treats a
//! missing field as `null`. Controllers use this to add a finalizer only if an object has none.

use ::json_patch::{PatchOperation, TestOperation};
use serde_json::Value;

/// Maximum number of bytes that all `copy` operations of one patch may add, as in kube-apiserver.
const COPIED_MAX_BYTES: usize = 3 * 1024 * 1024;
/// Deepest nesting of a patched value: a little less than the JSON parser's limit (128), because stored objects are
/// parsed again.
const DEPTH_MAX: usize = 120;

/// Why a patch cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Operation(#[from] ::json_patch::PatchError),
    #[error(
        "Unable to complete the copy, the accumulated size increase of copy is {copied_bytes}, exceeding the limit \
         {COPIED_MAX_BYTES}"
    )]
    TooLarge { copied_bytes: usize },
    #[error("the object would be nested deeper than {DEPTH_MAX}")]
    TooDeep,
}

pub(super) type Operations = ::json_patch::Patch;

/// Applies all operations of a patch, or none if one fails.
pub(super) fn apply(value: &mut Value, operations: &Operations) -> Result<(), Error> {
    let is_special = |operation: &PatchOperation| match operation {
        PatchOperation::Test(test) => test.value.is_null(),
        PatchOperation::Copy(_) | PatchOperation::Move(_) => true,
        // Deep paths make deep objects.
        operation => operation.path().count() > DEPTH_MAX / 4,
    };
    if !operations.iter().any(is_special) {
        return Ok(::json_patch::patch(value, operations)?);
    }
    let mut candidate = value.clone();
    let mut steps = Steps::of(&candidate);
    for operation in operations.iter() {
        steps.apply(&mut candidate, operation)?;
    }
    *value = candidate;
    Ok(())
}

/// Applies the operations of one patch one by one, within the limits of a whole patch.
#[derive(Debug)]
pub struct Steps {
    growth: Growth,
    /// The index of the next operation.
    next: usize,
}

impl Steps {
    pub fn of(value: &Value) -> Self {
        Self { growth: Growth::new(value), next: 0 }
    }

    /// Applies the next operation. If the operation fails, the value stays unchanged.
    ///
    /// # Errors
    ///
    /// When the operation fails, or makes the value too large or too deep.
    pub fn apply(&mut self, value: &mut Value, operation: &PatchOperation) -> Result<(), Error> {
        let index = self.next;
        self.next += 1;
        self.growth.allow(operation, value)?;
        match operation {
            PatchOperation::Test(test) if test.value.is_null() && is_absent(value, test) => Ok(()),
            operation => {
                let patched = ::json_patch::patch(value, std::slice::from_ref(operation));
                patched.map_err(|mut error| {
                    error.operation = index;
                    error.into()
                })
            }
        }
    }
}

/// The allowed growth of a value by a patch: `copy` operations can double the content, and `move` operations can nest
/// it.
#[derive(Debug)]
struct Growth {
    copied_bytes: usize,
    /// An upper bound of the nesting depth of the patched value.
    depth: usize,
}

impl Growth {
    fn new(value: &Value) -> Self {
        Self { copied_bytes: 0, depth: depth(value) }
    }

    /// Refuses an operation that would make the value too large or too deep.
    fn allow(&mut self, operation: &PatchOperation, value: &Value) -> Result<(), Error> {
        let below = match operation {
            PatchOperation::Copy(copy) => {
                let source = copy.from.resolve(value).ok();
                self.copied_bytes += source.map_or(0, |source| source.to_string().len());
                if self.copied_bytes > COPIED_MAX_BYTES {
                    return Err(Error::TooLarge { copied_bytes: self.copied_bytes });
                }
                source.map_or(0, depth)
            }
            PatchOperation::Move(moved) => moved.from.resolve(value).map_or(0, depth),
            PatchOperation::Add(add) => depth(&add.value),
            PatchOperation::Replace(replace) => depth(&replace.value),
            _ => return Ok(()),
        };
        self.depth = self.depth.max(operation.path().count() + below);
        if self.depth > DEPTH_MAX {
            return Err(Error::TooDeep);
        }
        Ok(())
    }
}

/// The nesting depth of a value. The recursion is bounded, because bodies and patches have a maximum depth.
fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Whether the parent object exists but lacks the field. As in a real server, a missing parent is an error.
fn is_absent(value: &Value, test: &TestOperation) -> bool {
    let Some((parent, member)) = test.path.split_back() else { return false };
    let parent = if parent.is_root() { Some(value) } else { parent.resolve(value).ok() };
    parent.and_then(Value::as_object).is_some_and(|object| !object.contains_key(&*member.decoded()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Error, apply};

    fn patched(operations: Value) -> Result<Value, Error> {
        let mut value = json!({"metadata": {"name": "a"}, "list": []});
        apply(&mut value, &serde_json::from_value(operations).unwrap()).map(|()| value)
    }

    #[test]
    fn a_missing_member_is_null_to_a_test_but_a_missing_parent_is_not() {
        let add =
            |at: &str| json!([{"op": "test", "path": at, "value": null}, {"op": "add", "path": at, "value": ["f"]}]);
        assert_eq!(patched(add("/metadata/finalizers")).unwrap()["metadata"]["finalizers"], json!(["f"]));
        assert_eq!(patched(add("/top")).unwrap()["top"], json!(["f"]));
        assert!(patched(add("/metadata/name")).is_err(), "it is there and not null");
        assert!(patched(add("/none/finalizers")).is_err());
        assert!(patched(add("/list/0")).is_err());
        let full = json!([{"op": "test", "path": "/metadata/finalizers", "value": []}]);
        assert!(patched(full).is_err());
    }

    #[test]
    fn a_small_patch_makes_no_large_or_deep_object() {
        let repeated = |operations: &[Value], times: usize| -> Value {
            operations.iter().cycle().take(operations.len() * times).cloned().collect()
        };
        let double = json!({"op": "copy", "from": "/list", "path": "/list/-"});
        let why = patched(json!(vec![double; 60])).unwrap_err().to_string();
        assert!(why.contains("exceeding the limit 3145728"), "{why}");
        let nest = [
            json!({"op": "add", "path": "/b", "value": {}}),
            json!({"op": "move", "from": "/list", "path": "/b/x"}),
            json!({"op": "move", "from": "/b", "path": "/list"}),
        ];
        assert!(patched(repeated(&nest, 30)).is_ok());
        let why = patched(repeated(&nest, 3000)).unwrap_err().to_string();
        assert!(why.contains("nested deeper than 120"), "{why}");
        let add = |depth: usize| json!({"op": "add", "path": "/d".repeat(depth), "value": {}});
        assert!(patched(json!((1..=100).map(add).collect::<Vec<_>>())).is_ok());
        assert!(patched(json!((1..=1000).map(add).collect::<Vec<_>>())).is_err());
    }

    /// Patches just below the limits of size and depth succeed, and patches just above fail. If a limit were missing,
    /// this test would fail at once without filling memory or the stack.
    #[test]
    fn the_guards_hold_at_their_edge() {
        let copies = |count: usize| {
            let mut value = json!({"text": "x".repeat(1024 * 1024)});
            let copy = |index: usize| json!({"op": "copy", "from": "/text", "path": format!("/copy{index}")});
            let operations = Value::from((0..count).map(copy).collect::<Vec<_>>());
            let applied = apply(&mut value, &serde_json::from_value(operations).unwrap());
            applied.map(|()| value.as_object().map_or(0, serde_json::Map::len))
        };
        assert_eq!(copies(2).unwrap(), 3);
        assert!(matches!(copies(3), Err(Error::TooLarge { .. })), "three times 1 MiB and its quotes");
        let moves = |times: usize| {
            let round = [
                json!({"op": "add", "path": "/b", "value": {}}),
                json!({"op": "move", "from": "/list", "path": "/b/x"}),
                json!({"op": "move", "from": "/b", "path": "/list"}),
            ];
            patched(round.iter().cycle().take(round.len() * times).cloned().collect())
        };
        let nested = moves(115).unwrap();
        assert!(serde_json::from_str::<Value>(&nested.to_string()).is_ok(), "what is accepted can be read again");
        assert!(matches!(moves(125), Err(Error::TooDeep)));
    }

    #[test]
    fn a_failure_leaves_everything_as_it_was() {
        let mut value = json!({"a": 1});
        let operations = json!([{"op": "test", "path": "/b", "value": null}, {"op": "replace", "path": "/a", "value": 2},
            {"op": "test", "path": "/a", "value": 3}]);
        let why = apply(&mut value, &serde_json::from_value(operations).unwrap()).unwrap_err().to_string();
        assert!(why.starts_with("operation '/2' failed at path '/a'"), "{why}");
        assert_eq!(value, json!({"a": 1}));
    }
}
