//! Tests of CEL expressions: their values, their errors, and that each expression ends.

use std::time::Instant;

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

mod libraries;

fn object() -> Value {
    json!({
        "metadata": {"name": "web-1", "namespace": "prod", "labels": {"app": "web", "tier.example.com/x": "1"}},
        "spec": {"replicas": 3, "ratio": 0.5, "containers": [
            {"name": "a", "image": "reg.io/a:1"}, {"name": "b", "image": "reg.io/b@sha256:00"},
        ]},
        "list": [3, 1, 2], "words": ["x", "y"], "empty": null,
    })
}

fn request() -> Value {
    json!({
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"}, "operation": "CREATE", "name": "web-1",
        "userInfo": {"username": "system:serviceaccount:a:b", "groups": ["system:authenticated"]}, "dryRun": false,
    })
}

fn run(source: &str) -> Result<bool, String> {
    let (object, request) = (object(), request());
    let program = Program::compile(source).map_err(|why| format!("refused: {why}"))?;
    let input = Input { object: &object, old_object: &Value::Null, request: &request };
    program.run(&input, &mut BUDGET.clone()).map_err(|why| why.to_string())
}

/// If each variable contains the previous one twice, thirty variables would contain a thousand million values; the
/// evaluation fails.
#[test]
fn a_value_that_grows_by_sharing_does_not_leave_an_evaluation() {
    let (object, request) = (object(), request());
    let input = Input { object: &object, old_object: &Value::Null, request: &request };
    let mut evaluation = Evaluation::new(&input, &Surroundings { params: &Value::Null, namespace: &Value::Null });
    let names: Vec<String> = (0..30).map(|number| format!("v{number}")).collect();
    let compile = |source: &str| Program::compile_in_policy(source, None).unwrap();
    let programs: Vec<Program> = std::iter::once("[object]".to_owned())
        .chain(names.iter().map(|name| format!("[variables.{name}, variables.{name}]")))
        .map(|source| compile(&source))
        .collect();
    let (last, early) = (compile("variables.v29"), compile("variables.v3"));
    let mut budget = BUDGET;
    for (name, program) in names.iter().zip(&programs) {
        evaluation.define(name, program, &mut budget);
    }
    assert!(evaluation.value(&early, &mut budget).is_ok());
    assert!(evaluation.value(&last, &mut budget).is_err(), "too large");
}

#[test]
fn what_is_true() {
    for source in [
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && -7 / 2 == -3 && -7 % 2 == -1",
        "true ? 1 == 1 : false",
        "1 < 2 && 1u < 2u && 1.5 < 2.5 && 'a' < 'b' && 'a' + 'b' == \"ab\"",
        "object.spec.replicas == 3 && object.spec.replicas < 3.5 && object.spec.ratio == 0.5",
        "has(object.metadata.labels) && !has(object.metadata.annotations) && !has(oldObject.metadata)",
        "'app' in object.metadata.labels && !('x' in object.metadata.labels)",
        "object.metadata.labels['tier.example.com/x'] == '1'",
        "object.metadata.namespace == 'prod'",
        "object.spec.containers.all(c, c.image.startsWith('reg.io/'))",
        "object.spec.containers.exists(c, c.image.contains('@sha256:'))",
        "object.spec.containers.exists_one(c, c.name == 'b')",
        "object.spec.containers.map(c, c.name) == ['a', 'b']",
        "object.spec.containers.map(c, c.name == 'a', c.image) == ['reg.io/a:1']",
        "object.spec.containers.filter(c, c.name != 'a').size() == 1 && size(object.list) == 3",
        "object.metadata.labels.all(k, k.size() > 2)",
        "request.operation in ['CREATE', 'UPDATE'] && request.kind.group == 'apps' && !request.dryRun",
        "!request.userInfo.username.startsWith('system:node:') && 'system:authenticated' in request.userInfo.groups",
        "object.metadata.name.matches('^web-[0-9]+$') && matches('abc', 'b')",
        "'a-b'.split('-') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b' && 'aXa'.replace('a', 'b') == 'bXb'",
        "'h\u{e9}llo'.substring(1, 3) == '\u{e9}l' && 'h\u{e9}llo'.indexOf('l') == 2 && 'ab'.charAt(1) == 'b'",
        "' A '.trim().lowerAscii() == 'a' && 'x1y2'.find('[0-9]') == '1'",
        "object.list.max() == 3 && object.list.sum() == 6 && !object.list.isSorted() && [1, 2].isSorted()",
        "object.?metadata.?annotations['x'].orValue('none') == 'none'",
        "object.metadata.?labels[?'app'].orValue('') == 'web' && !object.?status.hasValue()",
        "optional.of(1).value() == 1 && optional.none().orValue(2) == 2",
        "int('7') == 7 && string(7) == '7' && double(1) == 1.0 && bool('true') && uint(3) == 3u && int(2.9) == 2",
        "dyn(1) == 1.0 && dyn(1) != 'a' && {'a': 1}.a == 1 && {'a': [1]} == {'a': [1]}",
        // An error counts only if it decides.
        "object.nothing.here == 1 || true",
        "!(object.nothing.here == 1 && false)",
        "[0, 1].exists(x, 1 / x == 1)",
        "'\\u00e9' == '\u{e9}' && r'\\d' == '\\\\d' && 0x10 == 16 // a comment",
        "--1 == 1 && !!true && -9223372036854775808 < 0",
        "[[1, 2], [3]].map(x, x.map(x, x + 1)) == [[2, 3], [4]]",
        "false // up to the end of the line || false\n || true",
        "'\\U0001F600' == '\u{1f600}' && '\\u0041\\x42\\103' == 'ABC'",
        "(false ? 1 : true ? 2 : 3) == 2 && (true ? 1 : false ? 2 : 3) == 1",
        "1 <= 1 && 1 >= 1 && !(2 <= 1) && !(1 >= 2) && 'a' <= 'a' && !(1 < 1) && !(1 > 1)",
        "1.5 + 1.0 == 2.5 && 1.5 - 1.0 == 0.5 && 1.5 * 2.0 == 3.0 && 3.0 / 2.0 == 1.5",
        "5u - 2u == 3u && 2u * 3u == 6u && 7u / 2u == 3u && 7u % 2u == 1u && 2u + 3u == 5u",
        "!(0.0 / 0.0 < 1.0) && !(0.0 / 0.0 >= 1.0) && 0.0 / 0.0 != 0.0 / 0.0 && 1.0 / 0.0 > 1.0",
        // Whole numbers are compared as such: as doubles these two are equal.
        "9007199254740993 > 9007199254740992 && 9007199254740993 != 9007199254740992",
        "dyn(1) == 1u && dyn(-1) != 18446744073709551615u && dyn(1u) < 2 && dyn(2) > 1.5",
        "null == null && optional.none() == optional.none() && optional.of(1) == optional.of(1)",
        "optional.none() != optional.of(1) && optional.of(1) != optional.of(2)",
        "![1, 1].exists_one(x, x == 1) && ![2].exists_one(x, x == 1) && [1, 2].existsOne(x, x == 1)",
        "has(object.empty) && object.empty == null && oldObject == null && !(request.kind == null)",
        // The variable of a macro exists only inside it, and the innermost one counts.
        "[1].all(object, object == 1) && object.spec.replicas == 3 && [2].all(x, [3].all(x, x == 3) && x == 2)",
        "[dyn(1), dyn('a')][1] == 'a' && {'a': dyn(1), 'b': dyn('x')}['b'] == 'x' && {1: 'one'}[1] == 'one'",
        "{1: 'a'}[dyn(1u)] == 'a' && {1: 'a'}[dyn(1.0)] == 'a' && !has({'b': 1}.a) && {true: 1}[true] == 1",
        "{'a': 1, 'b': 2, 'a': 3} == {'b': 2, 'a': 3} && {'b': 1, 'a': 2}.map(k, k) == ['a', 'b'] && [7][dyn(0.0)] == 7",
        "dyn(0.0 / 0.0) != dyn(1) && !(dyn(0.0 / 0.0) in {1: 1}) && !(dyn([1]) in {1: 1})",
        "(true ? object.spec.replicas : 'x') == 3 && (false ? 1 : object.metadata.name) == 'web-1'",
        "[1, 2].filter(x, x > 1)[0] + 1 == 3 && {'a': 1, 'b': 2}.filter(k, k != 'a') == ['b']",
        "'a-b-c'.split('-', 2) == ['a', 'b-c'] && 'a-b'.split('-', 0) == [] && 'a-b'.split('-', -1) == ['a', 'b']",
        "'ab'.split('') == ['a', 'b'] && ['a', 'b'].join() == 'ab' && [].join('-') == '' && ['a'].join('-') == 'a'",
        "'aaa'.replace('a', 'b', 2) == 'bba' && 'aaa'.replace('a', 'b', 0) == 'aaa' && 'aa'.replace('a', 'b', -1) == 'bb'",
        "'ab'.charAt(2) == '' && ''.charAt(0) == '' && 'ab'.substring(1) == 'b' && 'ab'.substring(2) == ''",
        "'abab'.lastIndexOf('ab') == 2 && 'abab'.indexOf('ab') == 0 && 'abab'.indexOf('x') == -1",
        "[1, 2, 1].lastIndexOf(1) == 2 && [1, 2, 1].indexOf(1) == 0 && [1].indexOf(5) == -1",
        "[1, 1, 2].isSorted() && !['b', 'a'].isSorted() && [].isSorted() && object.list.min() == 1",
        "[1.5, 2.5].sum() == 4.0 && [].sum() == 0 && [1u, 2u].sum() == 3u && ['b', 'a'].max() == 'b'",
        "'x'.upperAscii() == 'X' && 'h\u{c9}'.lowerAscii() == 'h\u{c9}' && 'abc'.find('x') == '' && 'abc'.endsWith('c')",
        "['', 'a'].map(x, optional.ofNonZeroValue(x).hasValue()) == [false, true]",
        "[0, 1].map(x, optional.ofNonZeroValue(x).hasValue()) == [false, true]",
        "!optional.ofNonZeroValue([]).hasValue() && !optional.ofNonZeroValue({}).hasValue()",
        "!optional.ofNonZeroValue(null).hasValue() && !optional.ofNonZeroValue(false).hasValue()",
        "optional.of(1).or(optional.of(2)).value() == 1 && optional.none().or(optional.of(2)).value() == 2",
        "object.?metadata.name.orValue('x') == 'web-1' && object.?nothing.name.orValue('x') == 'x'",
        "int(7u) == 7 && int('-7') == -7 && double('1.5') == 1.5 && string(true) == 'true' && string(1.5) == '1.5'",
        "!bool('0') && bool('t') && uint(2.9) == 2u && string(7u) == '7' && size({'a': 1}) == 1 && size('\u{e9}') == 1",
        // Two variables.
        "[1, 2, 3].all(i, v, i < v) && !{'a': 'a', 'b': 'c'}.all(k, v, k == v) && [].all(i, v, i == v)",
        "{'a': 'x', 'b': 'y'}.exists(k, v, v == 'y') && [5, 6].exists(i, v, i == 1 && v == 6)",
        "[0, 1].exists(i, v, 1 / v == 1) && ![1, 1].exists_one(i, v, v == 1) && [1, 2].existsOne(i, v, i == 1)",
        "[1, 2, 3].transformList(i, v, i * v + v) == [1, 4, 9] && {'a': 1}.transformList(k, v, k) == ['a']",
        "[1, 2, 3].transformList(i, v, i % 2 == 0, i * v + v) == [1, 9]",
        "[1, 2].transformMap(i, v, v * 2) == {0: 2, 1: 4} && {'a': 1, 'b': 2}.transformMap(k, v, v > 1, v + 1) == {'b': 3}",
        "{'a': 'x'}.transformMapEntry(k, v, {v: k}) == {'x': 'a'} && ['a', 'b'].transformMapEntry(i, v, {v: i})['b'] == 1",
        "object.metadata.labels.transformMap(k, v, k == 'app', v + '!') == {'app': 'web!'}",
        "['a', 'b'].transformList(i, v, ['x'].transformList(i, w, v + w)[0])[1] == 'bx' && [[1]].all(i, l, l.all(v, v > i))",
        // Optional values.
        "[1, ?optional.of(2), ?optional.none()] == [1, 2] && [?object.?nothing.x, ?object.?spec.replicas] == [3]",
        "{'a': 1, ?'b': optional.of(2), ?'c': optional.none()} == {'a': 1, 'b': 2}",
        "[optional.of(1), optional.none()].unwrapOpt() == [1] && optional.unwrap([optional.of(1)]) == [1]",
        "[1, 2].first().value() == 1 && [1, 2].last().orValue(0) == 2 && ![].first().hasValue() && ![].last().hasValue()",
        "[[], [1]][1][0] == 1 && [optional.none(), optional.of(1)].size() == 2 && [1,].size() == 1 && {'a': 1,}.size() == 1",
        "'%s'.format([[1, 'a']]) == '[1, \"a\"]' && '%s %d'.format([{'a': [1, 'x']}, 2]) != ''",
        "'abcb'.indexOf('b', 2) == 3 && 'abcb'.indexOf('b', 1) == 1 && 'a\u{e9}ba'.indexOf('a', 1) == 3 && 'abc'.indexOf('', 2) == 2",
        "'abcb'.lastIndexOf('b', 2) == 1 && 'abcb'.lastIndexOf('b', 3) == 3 && '\u{e9}\u{e9}a'.lastIndexOf('\u{e9}a', 2) == 1",
        "''.indexOf('a') == -1 && ''.lastIndexOf('a') == -1 && 'abc'.lastIndexOf('') == 3 && 'aaa'.lastIndexOf('aa') == 1",
        "'abc'.split('', 2) == ['a', 'bc'] && 'abc'.split('', 5) == ['a', 'b', 'c'] && ''.split('', 2) == []",
        "string(1500000.0) == '1.5e+06' && string(0.00001) == '1e-05' && string(100000.0) == '100000' && string(-0.5) == '-0.5'",
        "int(duration('1s')) == 1000000000 && duration(1000000000) == duration('1s') && string(1e21) == '1e+21'",
        "type(duration('1s')) == google.protobuf.Duration && type(timestamp(0)) == google.protobuf.Timestamp",
        "dyn(timestamp(10)) - duration('10s') == timestamp(0) && timestamp(10) - dyn(timestamp(0)) == duration('10s')",
        "\tobject.spec.replicas\u{c} == 3 && type(optional.none()) == optional_type",
        "-1 * -1 == 1 && -(1 + 1) == -2 && - -1 == 1 && !!!false && -1.5 < 0.0",
    ] {
        assert_eq!(run(source), Ok(true), "{source}");
    }
}

#[test]
fn what_fails_when_it_runs() {
    for (source, why) in [
        ("object.spec.paused == true", "no such key: paused"),
        ("oldObject.metadata.name == 'a'", "no such key: metadata"),
        ("object.list[3] == 1", "index out of bounds: 3"),
        ("object.spec.replicas + 'a' == ''", "no such overload"),
        ("object.spec.replicas / 0 == 1", "division by zero"),
        ("9223372036854775807 + object.spec.replicas > 0", "integer overflow"),
        ("object.metadata.name && true", "no such overload"),
        ("object.metadata.name.matches(object.metadata.name + '(')", "error parsing regexp"),
        ("'abc'.substring(2, 9) == ''", "index out of range: 9"),
        ("object.?status.value() == 1", "optional.none() dereference"),
        ("5 % 0 == 1", "modulus by zero"),
        ("5u / 0u == 1u", "division by zero"),
        ("5u % 0u == 1u", "modulus by zero"),
        ("1u - 2u == 0u", "unsigned integer overflow"),
        ("-9223372036854775807 - 2 < 0", "integer overflow"),
        ("-9223372036854775808 / -1 > 0", "integer overflow"),
        ("-(-9223372036854775807 - 1) > 0", "integer overflow"),
        ("9223372036854775807 * 2 > 0", "integer overflow"),
        ("[9223372036854775807, 1].sum() > 0", "integer overflow"),
        ("[18446744073709551615u, 1u].sum() > 0u", "unsigned integer overflow"),
        ("uint(-1) == 0u", "unsigned integer overflow"),
        ("int(18446744073709551615u) == 0", "integer overflow"),
        ("int(1e30) == 1", "integer overflow"),
        ("int(9223372036854775808.0) == 1", "integer overflow"),
        ("uint(-0.5) == 0u", "unsigned integer overflow"),
        ("int('7x') == 7", "type conversion error to 'int'"),
        ("bool('yes')", "type conversion error to 'bool'"),
        ("'abc'.charAt(4) == ''", "index out of range: 4"),
        ("'abc'.substring(-1) == ''", "index out of range: -1"),
        ("'abc'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1"),
        ("'abc'.substring(4) == ''", "index out of range: 4"),
        ("'abc'.indexOf('a', 3) == 0", "index out of range: 3"),
        ("'abc'.lastIndexOf('a', -1) == 0", "index out of range: -1"),
        ("{dyn(1.5): 1}.size() == 1", "unsupported key type: double"),
        ("uint('+1') == 1u", "type conversion error to 'uint'"),
        ("double('1e999') > 1.0", "type conversion error to 'double'"),
        ("[1, 1].transformMapEntry(i, v, {v: i}).size() == 1", "insert failed: key 1 already exists"),
        ("[?dyn(object.spec.replicas)].size() == 1", "no such overload"),
        ("[].max() == 1", "max called on empty list"),
        ("object.list[-1] == 1", "index out of bounds: -1"),
        ("object.list['a'] == 1", "no such overload"),
        ("object.list < 1", "no such overload"),
        ("object.list.all(x, x)", "no such overload"),
        ("object.list.exists_one(x, x)", "no such overload"),
        ("object.words.sum() == 'xy'", "no such overload"),
        ("1 in object.spec.replicas", "no such overload"),
    ] {
        let failed = run(source).unwrap_err();
        assert!(failed.starts_with(&format!("expression '{source}' resulted in error: {why}")), "{failed}");
    }
}

#[test]
fn what_is_refused() {
    for (source, why) in [
        ("", "Syntax error: mismatched input '<EOF>'"),
        ("object.", "Syntax error"),
        ("1 +", "<input>:1:4: Syntax error"),
        ("a b", "<input>:1:3: Syntax error: mismatched input 'b' expecting <EOF>"),
        ("object.x == 'a", "token recognition error"),
        ("foo == 1", "undeclared reference to 'foo' (in container '')"),
        ("object.spec.foo(1)", "undeclared reference to 'foo'"),
        ("request.user == 'a'", "undefined field 'user'"),
        ("request.object == 1", "undefined field 'object'"),
        ("request.kind.resource == 'a'", "undefined field 'resource'"),
        ("authorizer.path('/x').check('get').allowed()", "'authorizer' is not supported by this server"),
        ("image('a') == 1", "'image' is not supported by this server"),
        ("[1].all(true)", "undeclared reference to 'all'"),
        ("[1].all(i, v.x, true)", "argument must be a simple name"),
        ("[1].all(i, v, v > i) || i == 1", "undeclared reference to 'i'"),
        ("['a'].all(i, v, v == i)", "found no matching overload for '_==_' applied to '(string, int)'"),
        ("['a'].transformMapEntry(i, v, v) == {}", "applied to '(map(dyn, dyn), string)'"),
        ("['a'].transformMap(i, v, i) == {'a': 1}", "'(map(int, int), map(string, int))'"),
        ("[1, 'a'] == []", "<input>:1:5: expected type 'int' but found 'string'"),
        ("[1, null].size() == 2", "expected type 'int' but found 'null'"),
        ("[object, 1].size() == 2", "expected type 'dyn' but found 'int'"),
        ("{'a': 1, 1: 1} == {}", "expected type 'string' but found 'int'"),
        ("{'a': 1, 'b': 'c'} == {}", "expected type 'int' but found 'string'"),
        ("[1] + ['a'] == []", "found no matching overload for '_+_' applied to '(list(int), list(string))'"),
        ("[?1] == []", "expected type 'optional_type(int)' but found 'int'"),
        ("duration('1d') > duration('1h')", "<input>:1:10: invalid duration argument"),
        ("timestamp('noon') > timestamp(0)", "invalid timestamp argument"),
        ("timestamp(9223372036854775807) > timestamp(0)", "invalid timestamp argument"),
        ("object.x.find('(') == ''", "program instantiation failed: error parsing regexp: "),
        (
            "'%d'.format(['a']) == ''",
            "<input>:1:14: error during formatting: decimal clause can only be used on integers",
        ),
        ("size(1,) == 1", "Syntax error"),
        ("object.true", "Syntax error"),
        ("'\\x+1' == ''", "unknown escape sequence"),
        ("b'\\u0041' == b''", "unable to unescape string"),
        ("1 + 'a' == 2", "found no matching overload for '_+_' applied to '(int, string)'"),
        ("request.name == 1", "found no matching overload for '_==_' applied to '(string, int)'"),
        ("1 && true", "found no matching overload for '_&&_' applied to '(int, bool)'"),
        ("'a'.startsWith(1)", "found no matching overload for 'startsWith' applied to 'string.(int)'"),
        ("1.all(x, true)", "cannot be range of a comprehension"),
        ("[1].all(x, x)", "expected type 'bool' but found 'int'"),
        ("[1].all(x.y, true)", "argument must be a simple name"),
        ("has(object)", "invalid argument to has() macro"),
        ("x.matches('a')", "undeclared reference to 'x'"),
        ("'a'.matches('(')", "invalid matches argument"),
        ("object.spec.replicas", "must evaluate to bool"),
        ("1", "must evaluate to bool"),
        ("namespace == 'a'", "reserved identifier: namespace"),
        ("b'a' == 'a'", "found no matching overload for '_==_' applied to '(bytes, string)'"),
        ("'a\nb' == ''", "the text has no end"),
        ("has(object.?a)", "invalid argument to has() macro"),
        ("'\u{e9}' + foo == ''", "<input>:1:7: undeclared reference to 'foo'"),
        ("1 == null", "found no matching overload for '_==_' applied to '(int, null)'"),
        ("request.name == null", "found no matching overload for '_==_' applied to '(string, null)'"),
        ("{'a': 1} == {'a': 'b'}", "found no matching overload for '_==_' applied to"),
        ("{'a': 1} == {1: 1}", "found no matching overload for '_==_' applied to"),
        ("(true ? 1 : 'a') == 1", "found no matching overload for '_?_:_' applied to '(bool, int, string)'"),
        ("(1 ? 1 : 2) == 1", "found no matching overload for '_?_:_' applied to '(int, int, int)'"),
        ("[1]['a'] == 1", "found no matching overload for '_[_]' applied to '(list(int), string)'"),
        ("{'a': 1}[1] == 1", "found no matching overload for '_[_]' applied to '(map(string, int), int)'"),
        ("1[0] == 1", "found no matching overload for '_[_]' applied to '(int, int)'"),
        ("[1].filter(x, x).size() == 1", "expected type 'bool' but found 'int'"),
        ("[1].map(x, x, x).size() == 1", "expected type 'bool' but found 'int'"),
        ("[1].filter(x, true)[0] == 'a'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("{'a': 1}.all(k, k == 1)", "found no matching overload for '_==_' applied to '(string, int)'"),
        ("1.5 % 1.0 == 0.5", "found no matching overload for '_%_' applied to '(double, double)'"),
        ("1 + 1u == 2", "found no matching overload for '_+_' applied to '(int, uint)'"),
        ("1 * 1.5 == 1.5", "found no matching overload for '_*_' applied to '(int, double)'"),
        ("[1] + 1 == [1]", "found no matching overload for '_+_' applied to '(list(int), int)'"),
        ("1 in ['a']", "found no matching overload for '@in' applied to '(int, list(string))'"),
        ("'a' < 1", "found no matching overload for '_<_' applied to '(string, int)'"),
        ("!1", "found no matching overload for '!_' applied to '(int)'"),
        ("-'a' == ''", "found no matching overload for '-_' applied to '(string)'"),
        ("optional.of(1).orValue('a') == 1", "found no matching overload for 'orValue'"),
        ("optional.of(1).value() == 'a'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("optional.of(1, 2).hasValue()", "found no matching overload for 'optional.of'"),
        ("request.kind.group.x == ''", "type 'string' does not support field selection"),
        ("[1].all(x, true) && x == 1", "undeclared reference to 'x'"),
        ("9223372036854775808 > 0", "invalid int literal"),
        ("1.size() == 1", "found no matching overload for 'size' applied to 'int.()'"),
    ] {
        let refused = Program::compile(source).unwrap_err().to_string();
        assert!(refused.contains(why), "{source}: {refused}");
    }
    let two = "foo &&\n bar";
    let refused = Program::compile(two).unwrap_err().to_string();
    assert!(refused.contains("<input>:1:1: ") && refused.contains("<input>:2:2: "), "{refused}");
    assert!(refused.ends_with("\n |  bar\n | .^"), "{refused}");
}

/// No deeply nested or long expression overflows the stack or takes a second.
#[test]
fn what_is_too_deep_or_too_long() {
    for source in [
        format!("{}true{}", "(".repeat(5_000), ")".repeat(5_000)),
        format!("{}1{} == 1", "[".repeat(5_000), "]".repeat(5_000)),
        format!("1{} == 1", "+1".repeat(5_000)),
        format!("object{} == 1", ".a".repeat(5_000)),
        format!("{}true", "true?true:".repeat(1_500)),
        format!("{}true{}", "[1].all(x,".repeat(1_000), ")".repeat(1_000)),
        format!("'{}' == ''", "a".repeat(EXPRESSION_MAX_BYTES)),
        "-".repeat(10_000),
    ] {
        assert!(Program::compile(&source).is_err(), "{}", &source[..40]);
    }
    // The last accepted depth, and the first refused one: brackets, fields, signs, and signs inside an index.
    let deep = |levels: usize| {
        let sum = format!("1{}", "+1".repeat(levels));
        [
            format!("{}true{}", "(".repeat(levels), ")".repeat(levels)),
            format!("has(object{})", ".a".repeat(levels)),
            format!("{} == 1", &sum[..sum.len() - 2]),
            format!("object[{}] == 1", &sum[..sum.len() - 4]),
        ]
    };
    for (taken, refused) in deep(63).into_iter().zip(deep(64)) {
        assert_eq!(Program::compile(&taken).map(|_| ()), Ok(()), "{taken}");
        let why = Program::compile(&refused).unwrap_err().to_string();
        assert!(why.contains("expression recursion limit exceeded: 64"), "{refused}: {why}");
    }
    assert_eq!(
        run(&format!("(true){}", " && (true)".repeat(100))),
        Ok(true),
        "brackets beside each other are no depth"
    );
    let long = format!("true{}", " && true".repeat(2_000));
    assert_eq!(run(&long), Ok(true), "a chain is no depth");
    assert_eq!(run(&format!("{}true", "!".repeat(10_000))), Ok(true));
}

/// Expressions that would run very long end when their budget is used up.
#[test]
fn what_would_never_end() {
    let items: Vec<u32> = (0..1_000).collect();
    let text = "a".repeat(200_000);
    let pairs = (0..40_000).map(|n: u32| n.to_string()).collect::<Vec<_>>().join("&");
    let long: Map<String, Value> = [("a".repeat(200_000), Value::from(1))].into_iter().collect();
    let object = json!({"items": items, "text": text, "pairs": pairs, "long": long});
    let loops = |body: &str| format!("object.items.all(a, object.items.all(b, object.items.all(c, {body})))");
    for source in [
        loops("true"),
        loops("a + b + c >= 0"),
        "object.items.map(a, object.text + object.text).size() == 1000".to_owned(),
        "object.items.all(a, object.items == object.items)".to_owned(),
        "object.items.all(a, (object.items + object.items).size() > 0)".to_owned(),
        "object.items.all(a, 5000 in object.items || true)".to_owned(),
        "object.items.all(a, object.items.max() > 0)".to_owned(),
        // An empty budget is not ignored where another error would be.
        format!("{} || true", loops("a + b + c >= 0")),
        "object.items.all(a, object.text.matches('(a?){200}b'))".to_owned(),
        "object.items.all(a, object.text.contains('b') || true)".to_owned(),
        "object.items.all(a, object.text.replace('a', object.text) != '')".to_owned(),
        "object.items.all(a, 'x'.matches('(a{9}){9}' + string(a)) || true)".to_owned(),
        "object.items.all(a, object.text.split('').size() > 0)".to_owned(),
        "object.text.findAll('.*[^a]|a').size() > 0".to_owned(),
        "object.items.all(a, '%s%s'.format([object.text, object.items]) != '')".to_owned(),
        "object.items.all(a, sets.contains(object.items, object.items))".to_owned(),
        "object.items.all(a, bytes(object.text) + bytes(object.text) != b'')".to_owned(),
        "object.items.all(a, url('/?' + object.text).getQuery().size() > 5 || true)".to_owned(),
        // Maps that an expression makes are compared in time proportional to their size.
        "[object.items.transformMap(i, v, v)].all(m, object.items.all(i, m == m))".to_owned(),
        "[url('/?' + object.pairs).getQuery()].all(q, object.items.all(i, q == q))".to_owned(),
        "object.items.all(i, object.long == object.long)".to_owned(),
        "object.items.all(i, object.items.all(j, [object.text, object.text].isSorted()))".to_owned(),
        "object.items.all(i, [object.text, object.text].min() == object.text)".to_owned(),
        "object.items.all(i, object.text.lastIndexOf('b', 5) < 0)".to_owned(),
        "object.items.all(i, isSemver(object.text, true) || true)".to_owned(),
    ] {
        let program = Program::compile(&source).unwrap();
        let input = Input { object: &object, old_object: &Value::Null, request: &Value::Null };
        let mut budget = BUDGET;
        let began = Instant::now();
        let failed = program.run(&input, &mut budget).unwrap_err().to_string();
        println!("{:?} {source}", began.elapsed());
        assert!(failed.ends_with("operation cancelled: actual cost limit exceeded"), "{failed}");
        assert_eq!(budget, 0);
    }
}

/// Random sequences of expression fragments, many of which parse.
fn source() -> impl Strategy<Value = String> {
    let words: Vec<_> = "object~request~oldObject~.~a~(~)~[~]~{~}~==~&&~||~!~-~+~1~2u~1.5~'x'~\"\\n\"~.all(x,~.map(x,~\
        x~has(~?~:~,~in~.size()~true~null~.?a~[?'a']~.orValue(1)~optional.of(~'\u{e9}'~%~/~\n~r'\\'~'''~\
        duration('1h')~timestamp('2024-01-01T00:00:00Z')~b'\\xff'~quantity('1Ki')~ip('::1')~.format([~type(~\
        .optMap(x,~sets.contains(~.transformMap(i, x,~.transformMapEntry(x, y, {y:~.exists(i, x,~[?~{?~'a{2'.matches(~\
        semver('1.0.0')~google.protobuf.Duration~.lastIndexOf('x', 1)"
        .split('~')
        .collect();
    prop::collection::vec(prop::sample::select(words), 0..24).prop_map(|words| words.join(" "))
}

proptest! {
    /// Any source text is rejected, or runs and ends without a panic.
    #[test]
    fn never_panics(source in source(), text in "\\PC{0,40}") {
        for source in [source, text] {
            if let Ok(program) = Program::compile(&source) {
                let object = json!({"a": [1, "x", {"a": null}]});
                let input = Input { object: &object, old_object: &Value::Null, request: &object };
                let _ = program.run(&input, &mut BUDGET.clone());
            }
        }
    }
}
