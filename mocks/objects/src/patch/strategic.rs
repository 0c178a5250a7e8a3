//! Strategic merge patch: like a merge patch, but lists with a merge key are merged item by item (Kubernetes
//! documentation, "Update API Objects in Place Using kubectl patch", and the API conventions).
//!
//! Owns the directives `$patch: replace|delete|merge`, `$deleteFromPrimitiveList/…`, `$setElementOrder/…` and
//! `$retainKeys`.

use serde_json::{Map, Value};

use super::schema::{ListRule, list_rule};
use crate::catalogue::Resource;

const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";
const RETAIN: &str = "$retainKeys";
const DIRECTIVE: &str = "$patch";

/// Why a patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    #[error("a strategic merge patch must be an object")]
    NotAnObject,
    #[error("the target is not an object")]
    Target,
    #[error("unknown patch type: {0}")]
    Directive(String),
    #[error("an item of a list keyed by {key} is not an object")]
    Item { key: &'static str },
    #[error("map: {item} does not contain declared merge key: {key}")]
    Key { item: Value, key: &'static str },
}

pub(super) fn apply(value: &mut Value, patch: &Value, resource: &Resource) -> Result<(), Error> {
    let Some(patch) = patch.as_object() else { return Err(Error::NotAnObject) };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let object = value.as_object_mut().ok_or(Error::Target)?;
    merge_object(object, patch, resource, &mut Vec::new())
}

fn merge_object<'p>(
    object: &mut Map<String, Value>,
    patch: &'p Map<String, Value>,
    resource: &Resource,
    path: &mut Vec<&'p str>,
) -> Result<(), Error> {
    match patch.get(DIRECTIVE).map(|directive| directive.as_str().unwrap_or_default()) {
        None | Some("merge") => {}
        Some("replace") => {
            *object = without_directives(patch);
            return Ok(());
        }
        Some("delete") => {
            object.clear();
            return Ok(());
        }
        Some(other) => return Err(Error::Directive(other.to_owned())),
    }
    if let Some(keys) = patch.get(RETAIN).and_then(Value::as_array) {
        object.retain(|key, _| keys.iter().any(|kept| kept.as_str() == Some(key)));
    }
    for (key, change) in patch {
        if let Some(field) = key.strip_prefix(DELETE_FROM) {
            let gone = change.as_array().map(Vec::as_slice).unwrap_or_default();
            if let Some(list) = object.get_mut(field).and_then(Value::as_array_mut) {
                list.retain(|item| !gone.contains(item));
            }
        } else if !key.starts_with('$') {
            path.push(key);
            merge_field(object, key, change, resource, path)?;
            path.pop();
        }
    }
    for (key, order) in patch {
        if let (Some(field), Some(order)) = (key.strip_prefix(ORDER), order.as_array()) {
            path.push(field);
            let rule = list_rule(resource, path);
            path.pop();
            if let Some(list) = object.get_mut(field).and_then(Value::as_array_mut) {
                reorder(list, order, rule);
            }
        }
    }
    Ok(())
}

fn merge_field<'p>(
    object: &mut Map<String, Value>,
    key: &str,
    change: &'p Value,
    resource: &Resource,
    path: &mut Vec<&'p str>,
) -> Result<(), Error> {
    match change {
        Value::Null => {
            object.remove(key);
        }
        Value::Object(patch) => {
            let target = object.entry(key).or_insert_with(|| Value::Object(Map::new()));
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            if let Some(target) = target.as_object_mut() {
                merge_object(target, patch, resource, path)?;
            }
            if patch.get(DIRECTIVE).and_then(Value::as_str) == Some("delete") {
                object.remove(key);
            }
        }
        Value::Array(items) => {
            let target = object.entry(key).or_insert_with(|| Value::Array(Vec::new()));
            if !target.is_array() {
                *target = Value::Array(Vec::new());
            }
            let Some(list) = target.as_array_mut() else { return Ok(()) };
            merge_list(list, items, resource, path)?;
        }
        other => {
            object.insert(key.to_owned(), other.clone());
        }
    }
    Ok(())
}

fn merge_list<'p>(
    list: &mut Vec<Value>,
    items: &'p [Value],
    resource: &Resource,
    path: &mut Vec<&'p str>,
) -> Result<(), Error> {
    let directive = |item: &Value| item.get(DIRECTIVE).and_then(Value::as_str).map(str::to_owned);
    if items.iter().any(|item| directive(item).as_deref() == Some("replace")) {
        *list = items.iter().filter(|item| directive(item).is_none()).cloned().collect();
        return Ok(());
    }
    let rule = list_rule(resource, path);
    let before = list.clone();
    match rule {
        ListRule::Atomic => {
            *list = items.to_vec();
            return Ok(());
        }
        ListRule::Set => {
            for item in items {
                if !list.contains(item) {
                    list.push(item.clone());
                }
            }
        }
        ListRule::ByKey(key) => {
            for item in items {
                let patch = item.as_object().ok_or(Error::Item { key })?;
                let wanted = patch.get(key).ok_or_else(|| Error::Key { item: item.clone(), key })?;
                let found = list.iter().position(|known| known.get(key) == Some(wanted));
                if directive(item).as_deref() == Some("delete") {
                    list.retain(|known| known.get(key) != Some(wanted));
                } else if let Some(known) = found.and_then(|index| list[index].as_object_mut()) {
                    merge_object(known, patch, resource, path)?;
                } else {
                    let mut new = Map::new();
                    merge_object(&mut new, patch, resource, path)?;
                    list.push(Value::Object(new));
                }
            }
        }
    }
    arrange(list, items, &before, rule);
    Ok(())
}

/// Orders a merged list like the real library. Items in the patch keep the patch's order, and all other items keep
/// their old order. Between an item of the patch and another item, their old order decides. A new item of the patch
/// comes before items that only the old list has.
fn arrange(list: &mut Vec<Value>, patch: &[Value], before: &[Value], rule: ListRule) {
    let place = |among: &[Value], item: &Value| match rule {
        ListRule::ByKey(key) => {
            among.iter().position(|other| other.get(key).is_some() && other.get(key) == item.get(key))
        }
        _ => among.iter().position(|other| other == item),
    };
    let (mut changed, kept): (Vec<Value>, Vec<Value>) =
        std::mem::take(list).into_iter().partition(|item| place(patch, item).is_some());
    changed.sort_by_key(|item| place(patch, item));
    let mut changed = changed.into_iter().peekable();
    for item in kept {
        // `None` means that the item is new; it is less than any index.
        while let Some(next) = changed.next_if(|next| place(before, next) < place(before, &item)) {
            list.push(next);
        }
        list.push(item);
    }
    list.extend(changed);
}

/// Sorts the items that `order` lists into the order of `order`; each other item stays after the item that it followed.
fn reorder(list: &mut [Value], order: &[Value], rule: ListRule) {
    let rank = |item: &Value| match rule {
        ListRule::ByKey(key) => {
            order.iter().position(|wanted| wanted.get(key).is_some() && wanted.get(key) == item.get(key))
        }
        _ => order.iter().position(|wanted| wanted == item),
    };
    let mut last = None;
    let mut ranked: Vec<(Option<usize>, Value)> = Vec::with_capacity(list.len());
    for item in list.iter() {
        last = rank(item).or(last);
        ranked.push((last, item.clone()));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    for (slot, (_, item)) in list.iter_mut().zip(ranked) {
        *slot = item;
    }
}

fn without_directives(patch: &Map<String, Value>) -> Map<String, Value> {
    patch.iter().filter(|(key, _)| !key.starts_with('$')).map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::catalogue::Catalogue;

    fn patched(kind: &str, before: Value, patch: &Value) -> Value {
        let catalogue = Catalogue::builtin();
        let mut value = before;
        apply(&mut value, patch, catalogue.by_full_name(kind).unwrap()).unwrap();
        value
    }

    fn deployment(containers: &Value) -> Value {
        json!({"spec": {"template": {"spec": {"containers": containers}}}})
    }

    #[test]
    fn containers_merge_by_name() {
        let before =
            deployment(&json!([{"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]));
        let patch =
            deployment(&json!([{"name": "a", "image": "a:2", "env": [{"name": "Y", "value": "2"}]}, {"name": "c"}]));
        let env = json!([{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]);
        // The answer of a real server: the new item comes before the one that the patch does not name.
        let after = deployment(&json!([{"name": "a", "image": "a:2", "env": env}, {"name": "c"}, {"name": "b"}]));
        assert_eq!(patched("deployments.apps", before, &patch), after);
    }

    #[test]
    fn directives() {
        let two = || deployment(&json!([{"name": "a"}, {"name": "b"}]));
        let gone = deployment(&json!([{"name": "a", "$patch": "delete"}]));
        assert_eq!(patched("deployments.apps", two(), &gone), deployment(&json!([{"name": "b"}])));
        let replaced = deployment(&json!([{"name": "c"}, {"$patch": "replace"}]));
        assert_eq!(patched("deployments.apps", two(), &replaced), deployment(&json!([{"name": "c"}])));
        let order = json!({"spec": {"template": {"spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}],
            "containers": [{"name": "c"}],
        }}}});
        let ordered = deployment(&json!([{"name": "c"}, {"name": "b"}, {"name": "a"}]));
        assert_eq!(patched("deployments.apps", two(), &order), ordered);
        let finalizers = json!({"metadata": {"finalizers": ["a", "b"]}});
        let fewer = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}});
        assert_eq!(patched("pods", finalizers, &fewer), json!({"metadata": {"finalizers": ["c", "b"]}}));
        let strategy = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
        let recreate = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
        assert_eq!(
            patched("deployments.apps", strategy, &recreate),
            json!({"spec": {"strategy": {"type": "Recreate"}}})
        );
    }

    #[test]
    fn taints_are_one_value() {
        let tainted = |key: &str| json!({"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}});
        assert_eq!(patched("nodes", tainted("a"), &tainted("b")), tainted("b"));
    }

    #[test]
    fn other_lists_are_replaced() {
        let before = json!({"rules": [{"verbs": ["get"]}]});
        let patch = json!({"rules": [{"verbs": ["list"]}]});
        assert_eq!(patched("roles.rbac.authorization.k8s.io", before, &patch), patch);
    }

    proptest! {
        /// Applying any patch ends with a value or an error.
        #[test]
        fn never_panics(before in crate::patch::tests::json(), patch in crate::patch::tests::json()) {
            let catalogue = Catalogue::builtin();
            let mut value = before;
            let _ = apply(&mut value, &patch, catalogue.by_full_name("pods").unwrap());
        }
    }
}
