//! Tests of CEL rules in schemas: which rules are valid, and their results on objects. The expected messages are those
//! in the real server's sources.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::schema::read;
use crate::status::Cause;

const AT: &str = "spec.validation.openAPIV3Schema";

fn root(spec: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec}})
}

fn shown(causes: &[Cause]) -> Vec<String> {
    causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

/// The errors and warnings of a schema's rules for a `spec` and its old state.
fn messages(schema: &Value, spec: &Value, old: Option<&Value>) -> Vec<String> {
    let schema = read(&root(schema), AT).unwrap();
    let object = |spec: &Value| json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n"}, "spec": spec});
    let verdict = schema.judge(&object(spec), old.map(object).as_ref());
    let warnings = verdict.warnings.into_iter().map(|warning| format!("warning {warning}"));
    shown(&verdict.causes).into_iter().chain(warnings).collect()
}

fn refused(schema: &Value) -> Vec<String> {
    shown(&read(&root(schema), AT).map(|_| ()).unwrap_err())
}

fn with(mut schema: Value, rules: &Value) -> Value {
    schema["x-kubernetes-validations"] = rules.clone();
    schema
}

fn one(schema: Value, rule: &str) -> Value {
    with(schema, &json!([{"rule": rule}]))
}

/// A schema with all types of values.
fn rich() -> Value {
    let text = json!({"type": "string"});
    json!({"type": "object", "properties": {
        "n": {"type": "integer"}, "r": {"type": "number"}, "t": text, "flag": {"type": "boolean"},
        "any": {"x-kubernetes-int-or-string": true},
        "at": {"type": "string", "format": "date-time"}, "day": {"type": "string", "format": "date"},
        "wait": {"type": "string", "format": "duration"}, "raw": {"type": "string", "format": "byte"},
        "none": {"type": "object", "nullable": true, "properties": {"a": text}},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": text}}},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                  "items": {"type": "object", "properties": {"k": text, "v": {"type": "integer"}}}},
        "namespace": text, "x-dash": text, "a.b/c": text, "un__der": text,
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": text}},
    }})
}

fn full() -> Value {
    json!({
        "n": 3, "r": 2, "t": "x", "flag": true, "any": "50%", "at": "2024-01-01T00:00:00Z", "day": "2024-01-01",
        "wait": "90s", "raw": "/w==", "none": null, "map": {"a-b": 1}, "set": ["a", "b"], "list": [{"a": "1"}, {}],
        "keyed": [{"k": "1", "v": 1}, {"k": "2", "v": 2}], "namespace": "ns", "x-dash": "d", "a.b/c": "s", "un__der": "u",
        "free": {"x": 1}, "inner": {"kind": "Pod", "metadata": {"name": "p"}, "spec": "s"},
    })
}

#[test]
fn values_have_the_types_of_their_schema() {
    for rule in [
        "self.n == 3 && self.r == 2.0 && self.r / 4.0 == 0.5 && self.flag && self.t + 'y' == 'xy'",
        "type(self.any) == string ? self.any == '50%' : self.any == 50",
        "self.at < timestamp('2024-01-02T00:00:00Z') && self.at.getFullYear() == 2024 && self.day == self.at",
        "self.wait == duration('1m30s') && self.wait > duration('1m') && self.raw == b'\\xff'",
        "has(self.none) && self.none == null && (self.none == null || self.none.a == '')",
        "self.map.all(k, k == 'a-b') && self.map['a-b'] == 1 && self.map.exists(k, self.map[k] > 0)",
        "self.set == ['b', 'a'] && 'a' in self.set && self.set + ['a', 'c'] == ['a', 'b', 'c'] && size(self.set) == 2",
        "has(self.list[0].a) && !has(self.list[1].a) && self.list.exists_one(i, has(i.a))",
        "self.keyed.map(i, i.k) == ['1', '2'] && self.keyed == self.keyed && (self.keyed + self.keyed).size() == 2",
        "self.__namespace__ == 'ns' && self.x__dash__dash == 'd' && self.a__dot__b__slash__c == 's'",
        "self.un__underscores__der == 'u' && has(self.x__dash__dash)",
        "self.inner.kind == 'Pod' && self.inner.metadata.name == 'p' && self.inner.spec == 's' && has(self.free)",
        "self.at + self.wait > self.at && self.at - self.day == duration('0') && self.set.all(e, !(e in ['z']))",
        "(self.list.size() == 0) != (self.set.size() == 0) || self.keyed.map(i, i.v).sum() == 3 && self.set.isSorted()",
        "(has(self.t) ? 1 : 0) + (has(self.none) && self.none != null ? 1 : 0) == 1 && type(self.any) in [string, int]",
        "self.keyed.filter(i, i.k == '1').all(i, i.v < 2) && self.map.map(k, self.map[k]).max() == 1",
        "self.?t.orValue('') == 'x' && self.?none.hasValue()",
        // A set stays a set after an addition, and a list with keys stays one.
        "self.set + ['c'] == ['c', 'b', 'a'] && (self.set + ['a']) + ['c'] == ['c', 'a', 'b'] && self.set + ['a'] == ['b', 'a']",
        "(self.keyed + [self.keyed[1]]) == self.keyed && ([self.keyed[1]] + [self.keyed[0]]) != self.keyed",
        "self.keyed == [self.keyed[1], self.keyed[0]] && [self.keyed[1], self.keyed[0]] != self.keyed",
        "self.keyed.all(i, item, item.k == string(i + 1)) && self.map.all(k, v, self.map[k] == v)",
        "self.keyed.transformMapEntry(i, item, {item.k: item.v}) == {'1': 1, '2': 2}",
    ] {
        assert_eq!(messages(&one(rich(), rule), &full(), None), Vec::<String>::new(), "{rule}");
    }
    let whole = one(json!({"type": "object", "properties": {"n": {"type": "integer"}}}), "self.n + 1 == 4");
    assert_eq!(messages(&whole, &json!({"n": 3.0}), None), Vec::<String>::new(), "3.0 is an integer");
}

#[test]
fn what_a_rule_may_not_be() {
    let compile = |schema: Value, rule: &str| {
        let found = refused(&one(schema, rule));
        assert_eq!(found.len(), 1, "{rule}: {found:?}");
        found[0].clone()
    };
    let place = format!("{AT}.properties[spec].x-kubernetes-validations[0]");
    assert_eq!(
        compile(rich(), "self.n == 'a'"),
        format!(
            "{place}.rule: Invalid value: apiextensions.ValidationRule{{Rule:\"self.n == 'a'\", Message:\"\", \
             MessageExpression:\"\", Reason:(*apiextensions.FieldValueErrorReason)(nil), FieldPath:\"\", \
             OptionalOldSelf:(*bool)(nil)}}: compilation failed: ERROR: <input>:1:8: found no matching overload for '_==_' applied \
             to '(int, string)'\n | self.n == 'a'\n | .......^"
        )
    );
    for (rule, why) in [
        ("self.nothing == 1", "undefined field 'nothing'"),
        ("has(self.nothing)", "undefined field 'nothing'"),
        ("self.free.x == 1", "undefined field 'x'"),
        ("self.inner.metadata.labels == 1", "undefined field 'labels'"),
        ("self.namespace == ''", "undefined field 'namespace'"),
        ("self.n", "cel expression must evaluate to a bool"),
        ("self.t == null", "found no matching overload for '_==_' applied to '(string, null)'"),
        ("self.all(k, true)", "cannot be range of a comprehension"),
        ("'t' in self", "found no matching overload for '@in' applied to '(string, object)'"),
        ("self['t'] == ''", "found no matching overload for '_[_]' applied to '(object, string)'"),
        ("self.at == self.t", "found no matching overload for '_==_'"),
        ("self.list[0] == self.keyed[0]", "found no matching overload for '_==_' applied to '(object, object)'"),
        ("object.n == 1", "undeclared reference to 'object'"),
        ("authorizer.path('/').check('get').allowed()", "undeclared reference to 'authorizer'"),
        ("self.t.matches('(')", "invalid matches argument"),
        ("'%s'.format([self]) == ''", "and timestamps, was given object"),
    ] {
        let found = compile(rich(), rule);
        assert!(found.contains(why), "{rule}: {found}");
    }
    let free = json!({"x-kubernetes-preserve-unknown-fields": true});
    for schema in
        [free.clone(), json!({"type": "array", "items": free}), json!({"type": "object", "additionalProperties": free})]
    {
        assert!(compile(schema, "true").contains("does not support validation rules"));
    }
    let within = json!({"type": "object", "properties": {"list": {"type": "array", "items": one(json!({"type": "string"}), "self == oldSelf")}}});
    assert_eq!(
        refused(&within),
        [format!(
            "{AT}.properties[spec].properties[list].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf \
             cannot be used on the uncorrelatable portion of the schema within {AT}.properties[spec].properties[list]"
        )]
    );
    let any_of = json!({"type": "string", "anyOf": [one(json!({"minLength": 1}), "true")]});
    assert_eq!(
        refused(&any_of),
        [format!("{AT}.properties[spec].anyOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural")]
    );
}

#[test]
fn the_form_of_a_rule() {
    let place = format!("{AT}.properties[spec].x-kubernetes-validations[0]");
    let cases = r#"
{"rule": " "} => rule: Required value: rule is not specified
{"rule": "true", "message": " "} => message: Invalid value: " ": message must be non-empty if specified
{"rule": "true", "message": "a\nb"} => message: Invalid value: "a\nb": message must not contain line breaks
{"rule": "true &&\ntrue"} => message: Required value: message must be specified if rule contains line breaks
{"rule": "true", "messageExpression": " "} => messageExpression: Required value: messageExpression must be non-empty if specified
{"rule": "true", "reason": "Other"} => reason: Unsupported value: "Other": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"
{"rule": "true", "fieldPath": ".nothing"} => fieldPath: Invalid value: ".nothing": fieldPath must be a valid path: does not refer to a valid field
{"rule": "true", "fieldPath": "t"} => fieldPath: Invalid value: "t": fieldPath must be a valid path: expected [ or . but got: t
{"rule": "true", "fieldPath": ".map[a]"} => fieldPath: Invalid value: ".map[a]": fieldPath must be a valid path: expected single quoted string but got a"#;
    let cases = cases.lines().filter_map(|line| line.split_once(" => "));
    let long = format!(r#"{{"rule": "true", "message": "{}"}}"#, "a".repeat(2_049));
    let too_long = "message: Invalid value: \"aaaaaaaaaa...\": message must have a maximum length of 2048 characters";
    for (rule, found) in cases.chain([(&long[..], too_long)]) {
        let rule: Value = serde_json::from_str(rule).unwrap();
        assert_eq!(refused(&with(rich(), &json!([rule]))), [format!("{place}.{found}")], "{rule}");
    }
    let found = refused(&with(rich(), &json!([{"rule": "true", "optionalOldSelf": true}])));
    let why = "optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule";
    assert_eq!(found, [format!("{place}.{why}")]);
    let found = refused(&with(rich(), &json!([{"rule": "true", "messageExpression": "1"}])));
    assert!(found[0].starts_with(&format!("{place}.messageExpression: Invalid value: apiextensions.")), "{found:?}");
    assert!(found[0].ends_with(": messageExpression must evaluate to a string"), "{found:?}");
    let found = refused(&with(rich(), &json!([{"rule": "true", "messageExpression": "self.x"}])));
    assert!(
        found[0].contains(": messageExpression compilation failed: ERROR: <input>:1:5: undefined field 'x'"),
        "{found:?}"
    );
    let many: Vec<Value> = (0..1_001).map(|_| json!({"rule": "true"})).collect();
    assert_eq!(refused(&with(rich(), &json!(many))), [format!("{AT}: Too many: 1001: this server takes 1000 rules")]);
    let three = |n: u32| (0..3).map(|m| format!("self.t.matches('{n}x{m}')")).collect::<Vec<_>>().join(" || ");
    let many: Vec<Value> = (0..700).map(|n| json!({"rule": three(n)})).collect();
    let found = format!("{AT}: Too many: 2001: this server takes 2000 patterns in rules");
    assert_eq!(refused(&with(rich(), &json!(many))), [found]);
    assert!(read(&root(&with(rich(), &json!(many[..666]))), AT).is_ok());
}

#[test]
fn where_errors_point_to_and_what_they_say() {
    let spec = |rule: Value| with(rich(), &json!([rule]));
    let cases = r#"
{"rule": " self.n > 5 "} => spec: Invalid value: "object": failed rule: self.n > 5
{"rule": "self.n > 5", "message": " more "} => spec: Invalid value: "object": more
{"rule": "self.n > 5", "messageExpression": "'%d is few'.format([self.n])", "message": "m"} => spec: Invalid value: "object": 3 is few
{"rule": "self.n > 5", "messageExpression": "self.list[9].a", "message": "m"} => spec: Invalid value: "object": m
{"rule": "self.n > 5", "messageExpression": "' '"} => spec: Invalid value: "object": failed rule: self.n > 5
{"rule": "self.n > 5", "fieldPath": ".n", "reason": "FieldValueForbidden", "message": "m"} => spec.n: Forbidden: m
{"rule": "self.n > 5", "fieldPath": ".map['a-b']", "reason": "FieldValueRequired", "message": "m"} => spec.map[a-b]: Required value: m
{"rule": "self.n > 5", "fieldPath": ".inner.spec", "reason": "FieldValueDuplicate"} => spec.inner.spec: Duplicate value: "object"
{"rule": "self.list[5].a == ''"} => spec: Invalid value: "object": index out of bounds: 5 evaluating rule: self.list[5].a == ''
{"rule": "self.list[1].a == ''", "message": "m"} => spec: Invalid value: "object": no such key: a evaluating rule: m
{"rule": "self.any > 5", "message": "m"} => spec: Invalid value: "object": 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: m"#;
    for (rule, found) in cases.lines().filter_map(|line| line.split_once(" => ")) {
        let rule: Value = serde_json::from_str(rule).unwrap();
        assert_eq!(messages(&spec(rule.clone()), &full(), None), [found], "{rule}");
    }
    let text = one(json!({"type": "string"}), "self.size() > 5");
    let deep = json!({"type": "object", "properties": {
        "list": {"type": "array", "items": text}, "map": {"type": "object", "additionalProperties": text},
        "all": {"type": "integer", "allOf": [one(json!({"minimum": 0}), "self < 2")]},
        "any": one(json!({"x-kubernetes-int-or-string": true}), "self == 1"),
        "none": one(json!({"type": "string", "nullable": true}), "false"),
    }});
    let found =
        messages(&deep, &json!({"list": ["aaaaaa", "b"], "map": {"k": "v"}, "all": 2, "any": "1", "none": null}), None);
    assert_eq!(
        found,
        [
            "spec.all: Invalid value: \"integer\": failed rule: self < 2",
            "spec.any: Invalid value: \"\": failed rule: self == 1",
            "spec.list[1]: Invalid value: \"string\": failed rule: self.size() > 5",
            "spec.map[k]: Invalid value: \"string\": failed rule: self.size() > 5",
        ]
    );
    let whole = one(root(&rich()), "self.metadata.name == 'other' && self.kind == 'K'");
    let verdict = read(&whole, AT).unwrap().judge(&json!({"kind": "K", "metadata": {"name": "n"}}), None);
    let rule = "self.metadata.name == 'other' && self.kind == 'K'";
    assert_eq!(shown(&verdict.causes), [format!("<nil>: Invalid value: \"object\": failed rule: {rule}")]);
}

/// A rule with `oldSelf` is evaluated only if the value has an old value, found by field or by key.
#[test]
fn what_was_there_before() {
    let fixed = one(json!({"type": "integer"}), "self == oldSelf");
    let item = json!({"type": "object", "properties": {"k": {"type": "string"}, "v": fixed}});
    let schema = json!({"type": "object", "properties": {
        "n": fixed, "map": {"type": "object", "additionalProperties": fixed},
        "keyed": {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
    }});
    let old = json!({"n": 1, "map": {"a": 1, "b": 1}, "keyed": [{"k": "x", "v": 1}, {"k": "y", "v": 2}]});
    let new =
        json!({"n": 2, "map": {"a": 2, "c": 1}, "keyed": [{"k": "y", "v": 3}, {"k": "x", "v": 1}, {"k": "z", "v": 9}]});
    let failed = "Invalid value: \"integer\": failed rule: self == oldSelf";
    assert_eq!(messages(&schema, &new, None), Vec::<String>::new(), "never when it is created");
    assert_eq!(
        messages(&schema, &new, Some(&old)),
        [format!("spec.keyed[0].v: {failed}"), format!("spec.map[a]: {failed}"), format!("spec.n: {failed}")]
    );
    assert_eq!(messages(&schema, &json!({}), Some(&old)), Vec::<String>::new(), "what goes is not asked");
    assert_eq!(messages(&schema, &new, Some(&json!({"n": null}))), Vec::<String>::new());

    let optional =
        json!([{"rule": "oldSelf.hasValue() ? self >= oldSelf.value() : self == 0", "optionalOldSelf": true}]);
    let schema = json!({"type": "object", "properties": {"n": with(json!({"type": "integer"}), &optional)}});
    let failed =
        [format!("spec.n: Invalid value: \"integer\": failed rule: {}", optional[0]["rule"].as_str().unwrap())];
    let (zero, two) = (json!({"n": 0}), json!({"n": 2}));
    assert_eq!(messages(&schema, &two, None), failed);
    assert_eq!(messages(&schema, &zero, None), Vec::<String>::new());
    assert_eq!(messages(&schema, &two, Some(&zero)), Vec::<String>::new());
    assert_eq!(messages(&schema, &zero, Some(&two)), failed);
    assert_eq!(messages(&schema, &two, Some(&json!({}))), failed);
}

/// A rule that fails on an unchanged value gives only a warning; a rule with `oldSelf` always refuses.
#[test]
fn what_was_wrong_before_is_a_warning() {
    let small = one(json!({"type": "integer"}), "self < 5");
    let list = |kind: &str| {
        json!({"type": "array", "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": ["k"],
               "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": small}}})
    };
    let schema = json!({"type": "object", "properties": {
        "a": small, "b": small, "keyed": list("map"), "loose": list("atomic"),
    }});
    let failed = "Invalid value: \"integer\": failed rule: self < 5";
    let item = |k: &str, v: u32| json!({"k": k, "v": v});
    let old = json!({"a": 9, "b": 9, "keyed": [item("x", 9), item("y", 9)], "loose": [item("x", 9)]});
    let new = json!({"a": 9, "b": 8, "keyed": [item("y", 9), item("x", 8)], "loose": [item("x", 9)]});
    assert_eq!(
        messages(&schema, &new, Some(&old)),
        [
            format!("spec.b: {failed}"),
            format!("spec.keyed[1].v: {failed}"),
            format!("warning spec.a: {failed}"),
            format!("warning spec.keyed[0].v: {failed}"),
            format!("warning spec.loose[0].v: {failed}"),
        ]
    );
    let new = json!({"loose": [item("x", 9), item("y", 1)]});
    assert_eq!(
        messages(&schema, &new, Some(&old)),
        [format!("spec.loose[0].v: {failed}")],
        "items without keys go together"
    );
    let back = one(json!({"type": "object", "properties": {"a": {"type": "integer"}}}), "self.a > oldSelf.a");
    let same = json!({"a": 1});
    assert_eq!(
        messages(&back, &same, Some(&same)),
        ["spec: Invalid value: \"object\": failed rule: self.a > oldSelf.a"]
    );
}

#[test]
fn rules_that_would_never_end() {
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let loops = "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))";
    let schema = |rules: Value| with(json!({"type": "object", "properties": {"l": list}}), &rules);
    let long = json!({"l": (0..1_000).collect::<Vec<u32>>()});
    assert_eq!(
        messages(&schema(json!([{"rule": loops}, {"rule": "false"}])), &long, None),
        [format!(
            "spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no further validation rules will be \
             run due to call cost exceeds limit for rule: {loops}"
        )]
    );
    // Each rule fits the budget, but all together exceed it.
    let some = json!({"rule": "self.l.all(a, self.l.all(b, a + b >= 0))"});
    let short = json!({"l": (0..350).collect::<Vec<u32>>()});
    assert_eq!(messages(&schema(json!([some])), &short, None), Vec::<String>::new());
    assert_eq!(
        messages(&schema(json!(vec![some; 20])), &short, None),
        [
            "spec: Invalid value: \"object\": validation failed due to running out of cost budget, no further validation rules will be run"
        ]
    );
    let all = json!({"type": "object", "properties": {"l": {"type": "array", "items": one(json!({"type": "integer"}), "false")}}});
    assert_eq!(messages(&all, &long, None).len(), 64, "no answer grows without end");
}

/// A rule that forbids changes to a list with keys takes time proportional to the list's length, in any order of items.
#[test]
fn long_lists_with_keys_are_compared_by_their_keys() {
    let item = json!({"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer"}}});
    let fixed = |kind: &str, items: &Value| {
        one(
            json!({"type": "array", "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": ["k", "n"], "items": items}),
            "self == oldSelf && self + oldSelf == self && (self + oldSelf).size() == self.size()",
        )
    };
    let schema = json!({"type": "object", "properties": {
        "keyed": fixed("map", &item), "set": fixed("set", &json!({"type": "string"})),
    }});
    let keyed: Vec<Value> = (0..5_000).map(|n| json!({"k": format!("name-{n}"), "n": n})).collect();
    let set: Vec<Value> = (0..5_000).map(|n| json!(format!("name-{n}"))).collect();
    let turned = |items: &[Value]| items.iter().rev().cloned().collect::<Vec<Value>>();
    let old = json!({"keyed": keyed, "set": set});
    let mut new = json!({"keyed": turned(&keyed), "set": turned(&set)});
    assert_eq!(messages(&schema, &new, Some(&old)), Vec::<String>::new());
    new["keyed"][7]["n"] = json!(-1);
    new["set"][7] = json!("other");
    assert_eq!(messages(&schema, &new, Some(&old)).len(), 2);
}

/// Every CEL operation that decodes bytes costs budget.
#[test]
fn bytes_are_not_for_nothing() {
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let raw = json!({"type": "string", "format": "byte"});
    let map = json!({"type": "object", "additionalProperties": raw});
    let properties = json!({"l": list, "raw": raw, "raws": {"type": "array", "items": raw}, "map": map});
    let long = "AAAA".repeat(50_000);
    let numbers: Vec<u32> = (0..1_000).collect();
    let spec = json!({"l": numbers, "raw": long, "raws": [long], "map": {"a": long}});
    for rule in [
        "self.l.all(a, self.l.all(b, self.raw != b'x'))",
        "self.l.all(a, self.l.all(b, self.raws.all(r, true)))",
        "self.l.all(a, self.l.all(b, self.raws[?0].hasValue()))",
        "self.l.all(a, self.l.all(b, !(b'x' in self.raws)))",
        "self.l.all(a, self.l.all(b, (self.raws + self.raws).size() == 2))",
        "self.l.all(a, self.l.all(b, has(self.raw)))",
        "self.l.all(a, self.l.all(b, self.raws.first().hasValue()))",
        "self.l.all(a, self.l.all(b, dyn(self.raws).join() == '' || true))",
        "self.l.all(a, self.l.all(b, 'a' in self.map))",
        "self.l.all(a, self.l.all(b, self.map.exists(k, true)))",
    ] {
        let found = messages(&one(json!({"type": "object", "properties": properties}), rule), &spec, None);
        assert!(found[0].contains("actual cost limit exceeded"), "{rule}: {found:?}");
    }
}

/// The sum of an empty list has the type of the list's items.
#[test]
fn sums_of_empty_lists() {
    for (item, rule) in [
        (json!({"type": "integer"}), "self.sum() + 1 == 1"),
        (json!({"type": "number"}), "self.sum() + 1.5 == 1.5"),
        (json!({"type": "string", "format": "duration"}), "self.sum() < duration('1s')"),
    ] {
        let list = one(json!({"type": "array", "items": item}), rule);
        let schema = json!({"type": "object", "properties": {"l": list}});
        assert_eq!(messages(&schema, &json!({"l": []}), None), Vec::<String>::new(), "{rule}");
    }
}

#[test]
fn spans_may_be_in_words() {
    let wait = json!({"type": "string", "format": "duration"});
    let schema = json!({"type": "object", "properties": {"wait": one(wait, "self > duration('24h')")}});
    assert_eq!(messages(&schema, &json!({"wait": "2 days"}), None), Vec::<String>::new());
    assert_eq!(messages(&schema, &json!({"wait": "1d"}), None).len(), 1);
}

/// Comparing a long list with its old state takes time proportional to the list's length.
#[test]
fn long_lists_are_compared_item_by_item() {
    let item = |n: u32| json!({"k": n.to_string(), "v": n});
    let number = with(json!({"type": "integer"}), &json!([{"rule": "self == oldSelf"}, {"rule": "self < 0"}]));
    let list = |kind: &str, number: &Value| {
        json!({"type": "array", "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": ["k"],
               "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": number}}})
    };
    let schema = json!({"type": "object", "properties": {
        "keyed": list("map", &number), "loose": list("atomic", &one(json!({"type": "integer"}), "self < 0")),
    }});
    let items: Vec<Value> = (0..20_000).map(item).collect();
    let turned: Vec<Value> = items.iter().rev().cloned().collect();
    let old = json!({"keyed": items, "loose": items});
    let found = messages(&schema, &json!({"keyed": turned, "loose": items}), Some(&old));
    assert_eq!(found.len(), 64);
    assert!(found.iter().all(|found| found.starts_with("warning ")), "{found:?}");
}

/// Random CEL expressions: a start and operations that fit the start, so that many expressions compile.
fn expression() -> impl Strategy<Value = String> {
    let starts: Vec<_> = "self~oldSelf~self.n~self.r~self.t~self.list~self.keyed~self.set~self.map~self.at~self.wait~\
        self.raw~self.any~self.none~self.inner~oldSelf.n~oldSelf.keyed~oldSelf.?t~1~'a%s'~b'a'~[1, 2]~{'a': 1}~\
        duration('1h')~timestamp(0)~quantity('1')~optional.of(1)"
        .split('~')
        .collect();
    let suffixes: Vec<_> = "~.size()~.all(x, x == x)~.exists(x, x in [x])~.map(x, x)~.filter(x, true)~[0]~['a']~.a~.k~\
        .?t~.orValue('')~.hasValue()~.value()~.optMap(x, x)~.matches('a+')~.format([1])~.isSorted()~.sum()~.max()~\
        .findAll('a')~.getHours()~.asInteger()~.metadata.name~ + 1~ + self.set"
        .split('~')
        .collect();
    let parts = prop::collection::vec(prop::sample::select(suffixes), 0..4);
    (prop::sample::select(starts), parts).prop_map(|(start, parts)| start.to_owned() + &parts.concat())
}

/// Random rules with random expressions.
fn source() -> impl Strategy<Value = String> {
    let signs = prop::sample::select(vec!["==", "!=", "<", "in", "&&", "||", "? true :"]);
    let same = || expression().prop_map(|one| format!("{one} == {one}"));
    let two = (expression(), signs, expression()).prop_map(|(one, sign, other)| format!("{one} {sign} {other}"));
    prop_oneof![same(), two, (same(), same()).prop_map(|(one, other)| format!("!({one}) || {other}"))]
}

proptest! {
    /// Any random rule is refused, or its evaluation ends and gives the same result twice, so no object blocks the
    /// server.
    #[test]
    fn never_panics(rule in source(), message in expression(), path in "[.]?[a-z\\[\\]'.]{0,8}", optional in any::<bool>()) {
        let rules = json!([{"rule": rule, "messageExpression": message, "fieldPath": path, "optionalOldSelf": optional}]);
        let plain = json!([{"rule": rule, "optionalOldSelf": optional}]);
        for rules in [rules, plain] {
            let Ok(schema) = read(&root(&with(rich(), &rules)), AT) else { continue };
            let (empty, full) = (json!({"spec": {}}), json!({"spec": full()}));
            for (value, old) in [(&full, None), (&full, Some(&empty)), (&empty, Some(&full)), (&full, Some(&full))] {
                prop_assert_eq!(schema.judge(value, old), schema.judge(value, old));
            }
        }
    }
}
