//! Tests of the library functions and types of CEL: their results and their errors.

use super::run;

fn all_true(sources: &[&str]) {
    for source in sources {
        assert_eq!(run(source), Ok(true), "{source}");
    }
}

fn fail(cases: &[(&str, &str)]) {
    for (source, why) in cases {
        let failed = run(source).unwrap_err();
        assert!(failed.contains(why), "{source}: {failed}");
    }
}

/// Functions of quantities return the results that the Kubernetes documentation shows.
#[test]
fn amounts() {
    all_true(&[
        "isQuantity('1.3Gi') && isQuantity('10000k') && !isQuantity('1,3G') && !isQuantity('200K') && !isQuantity('Mi')",
        "quantity('50k').isInteger() && quantity('50k').asInteger() == 50000 && !quantity('1500m').isInteger()",
        "quantity('50k').sub(20000).asApproximateFloat() == 30000.0 && quantity('-1').sign() == -1 && quantity('0').sign() == 0",
        "quantity('50k').add(20).sub(quantity('100k')).sub(-50000) == quantity('20') && quantity('1Ki') == quantity('1024')",
        "quantity('200M').compareTo(quantity('0.2G')) == 0 && quantity('50M').compareTo(quantity('50Mi')) == -1",
        "quantity('150Mi').isGreaterThan(quantity('100Mi')) && !quantity('50Mi').isGreaterThan(quantity('50Mi'))",
        "quantity('50M').isLessThan(quantity('100M')) && quantity('1') != quantity('2')",
    ]);
    fail(&[
        ("quantity('x').sign() == 1", "quantities must match the regular expression"),
        ("quantity('500m').asInteger() == 1", "cannot convert value to integer"),
        ("quantity('1') < quantity('2')", "found no matching overload for '_<_'"),
        ("quantity('1').add('1').sign() == 1", "found no matching overload for 'add'"),
        ("quantity('1').x == 1", "undefined field 'x'"),
    ]);
}

#[test]
fn addresses_and_networks() {
    all_true(&[
        "isIP('127.0.0.1') && isIP('::1') && !isIP('127.0.0.256') && !isIP('::ffff:1.2.3.4')",
        "ip('127.0.0.1').family() == 4 && ip('::1').family() == 6 && ip('127.0.0.1').isLoopback()",
        "ip.isCanonical('127.0.0.1') && ip.isCanonical('2001:db8::abcd') && !ip.isCanonical('2001:DB8::ABCD')",
        "ip('::1') == ip('0:0:0:0:0:0:0:1') && string(ip('2001:DB8::1')) == '2001:db8::1'",
        "isCIDR('192.168.0.0/16') && !isCIDR('192.168.0.0/33') && !isCIDR('::1/129') && !isCIDR('192.168.0.1')",
        "cidr('192.168.0.0/24').containsIP(ip('192.168.0.1')) && !cidr('192.168.0.0/24').containsIP('192.168.1.1')",
        "cidr('192.168.0.0/16').containsCIDR('192.168.10.0/24') && !cidr('192.168.1.0/24').containsCIDR(cidr('192.168.2.0/24'))",
        "cidr('192.168.0.1/24').ip() == ip('192.168.0.1') && cidr('::1/128').prefixLength() == 128",
        "cidr('192.168.0.1/24') != cidr('192.168.0.1/24').masked() && string(cidr('10.1.2.3/8').masked()) == '10.0.0.0/8'",
        // A variable may have the function's name.
        "['::1'].all(ip, isIP(ip) && ip.contains(':'))",
    ]);
    fail(&[
        ("ip('x').family() == 4", "IP Address \"x\" parse error during conversion from string"),
        ("cidr('x').prefixLength() == 4", "network address parse error during conversion from string"),
        ("ip('::1').isGlobal()", "undeclared reference to 'isGlobal'"),
        ("cidr('::/0').containsIP(1)", "found no matching overload for 'containsIP'"),
    ]);
}

#[test]
fn urls_and_formats() {
    all_true(&[
        "isURL('https://a.b:80/x') && isURL('/x') && !isURL('../x') && !isURL('a.b/x')",
        "url('https://a.b:80/x?k=1&k=2').getHost() == 'a.b:80' && url('https://a.b:80/').getPort() == '80'",
        "url('https://[::1]:80/').getHostname() == '::1' && url('/x y').getEscapedPath() == '/x%20y'",
        "url('https://a/?k=1&k=2').getQuery() == {'k': ['1', '2']} && url('https://a/').getScheme() == 'https'",
        "!format.dns1123Label().validate('a-b').hasValue() && format.dns1123Label().validate('A').value().size() == 1",
        "format.named('uuid').value().validate('x').value() == ['does not match the UUID format']",
        "!format.named('nothing').hasValue() && format.named('dns1123Label').hasValue()",
    ]);
    fail(&[
        ("url('a').getHost() == ''", "URL parse error during conversion from string"),
        ("format.dns1123label().validate('a').hasValue()", "undeclared reference to 'format'"),
    ]);
}

#[test]
fn times_and_spans() {
    all_true(&[
        "duration('1h') + duration('30m') == duration('90m') && duration('1h') - duration('2h') == duration('-60m')",
        "timestamp('2024-01-01T00:00:00Z') + duration('24h') == timestamp('2024-01-02T00:00:00Z')",
        "duration('1s') + timestamp('2024-01-01T00:00:00Z') > timestamp('2024-01-01T00:00:00+00:00')",
        "timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')",
        "timestamp('2024-01-02T00:00:00Z') - duration('1h') < timestamp('2024-01-02T00:00:00Z')",
        "duration('90m').getHours() == 1 && duration('90m').getMinutes() == 90 && duration('1.5s').getMilliseconds() == 1500",
        "timestamp('2024-02-29T23:00:00Z').getFullYear() == 2024 && timestamp('2024-02-29T23:00:00Z').getHours('+02:00') == 1",
        "string(duration('1h')) == '3600s' && string(timestamp('2024-01-01T00:00:00.5Z')) == '2024-01-01T00:00:00.5Z'",
        "int(timestamp('1970-01-01T00:01:00Z')) == 60 && timestamp(60) == timestamp('1970-01-01T00:01:00Z')",
        "[duration('1s'), duration('2s')].sum() == duration('3s') && [duration('2s'), duration('1s')].min() == duration('1s')",
        "duration('1h') <= duration(duration('1h')) && timestamp(object.at) < timestamp('2025-01-01T00:00:00Z') || true",
    ]);
    fail(&[
        ("duration('1d' + '') > duration('1h')", "type conversion error to 'duration'"),
        ("timestamp('noon' + '') > timestamp(0)", "type conversion error to 'timestamp'"),
        ("duration('2562047h') + duration('2562047h') > duration('1h')", "integer overflow"),
        ("timestamp(9223372036854775807 + 0) > timestamp(0)", "timestamp overflow"),
        ("timestamp('0001-01-01T00:00:00Z') - duration('1s') > timestamp(0)", "timestamp overflow"),
        ("timestamp(0) - timestamp('9999-01-01T00:00:00Z') > duration('0')", "integer overflow"),
        ("timestamp(0) + timestamp(0) > timestamp(0)", "found no matching overload for '_+_'"),
        ("duration('1h') > 1", "found no matching overload for '_>_'"),
        ("timestamp(0).getHours('Mars') == 1", "unknown time zone Mars"),
    ]);
}

/// Functions of versions return the results that the Kubernetes documentation shows.
#[test]
fn versions() {
    all_true(&[
        "isSemver('1.0.0') && isSemver('0.1.0-alpha.1') && !isSemver('v1.0') && !isSemver('200K')",
        "isSemver('v1.0', true) && semver('v1.0.0', true) == semver('1.0', true) && semver('01.01.01', true) == semver('1.1.1')",
        "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
        "semver('1.2.3').isLessThan(semver('2.0.0')) && semver('1.2.3').compareTo(semver('0.1.2')) == 1",
        "semver('1.0.0-rc.1').compareTo(semver('1.0.0')) == -1 && !semver('1.0.0').isGreaterThan(semver('1.0.0+b'))",
        "quantity('1').isLessThan(quantity('2')) && type(semver('1.0.0')) != string",
    ]);
    fail(&[
        ("semver('Three').major() == 3", "No Major.Minor.Patch elements found"),
        ("semver('1.0.0') < semver('2.0.0')", "found no matching overload for '_<_'"),
        ("semver('1.0.0').isLessThan(quantity('1'))", "found no matching overload for 'isLessThan'"),
        ("semver('1.0-a', true).major() == 1", "short version cannot contain PreRelease"),
    ]);
}

#[test]
fn texts_bytes_and_types() {
    all_true(&[
        "'%s is %d of %.2f'.format(['a', 3, 1.5]) == 'a is 3 of 1.50'",
        "'%s %s %s'.format([[1, 'a'], {'k': true}, null]) == '[1, \"a\"] {\"k\":true} null'",
        "'%x %X %o %b %%'.format([255, 'hi', 8, -5]) == 'ff 6869 10 -101 %'",
        // From cel-go's own tests.
        "'%.6e %e'.format([1052.032911275, 2.71828]) == '1.052033\u{202f}\u{d7}\u{202f}10\u{2070}\u{b3} 2.718280\u{202f}\u{d7}\u{202f}10\u{2070}\u{2070}'",
        "'%e'.format([0.00015]) == '1.500000\u{202f}\u{d7}\u{202f}10\u{207b}\u{2070}\u{2074}'",
        "'%.3f %f %.1f'.format([1.2345, 2.71828, 1.0]) == '1.234 2.718280 1.0' && '%.0f'.format([2.5]) == '2'",
        "'%f %f %f'.format(['NaN', 'Infinity', '-Infinity']) == 'NaN \u{221e} -\u{221e}'",
        "'%.2f %.1f %.0f'.format([1234567.891, -1234.5, 999.0]) == '1,234,567.89 -1,234.5 999'",
        "'%s %s %s'.format([2.71, 0.000000002, 1.0 / 0.0]) == '2.71 2e-09 +Inf'",
        "'%s'.format([[2.71, 0.000000002]]) == '[2.710000, 0.000000]'",
        "'%s'.format([[double('NaN'), -1.0 / 0.0]]) == '[\"NaN\", \"-Inf\"]'",
        "'%s'.format([['a', 3.14, null, [9], timestamp(0)]]) == '[\"a\", 3.140000, null, [9], timestamp(\"1970-01-01T00:00:00Z\")]'",
        "'%s'.format([{'b': b'xyz', 'a': duration('2h'), 'c': true}]) == '{\"a\":duration(\"7200s\"), \"b\":b\"xyz\", \"c\":true}'",
        "'%s'.format([{1: 'x', 2u: 'y', true: double('NaN')}]) == '{1:\"x\", 2:\"y\", true:\"NaN\"}'",
        "'%s'.format(object.list) == '3' && '%d%d'.format(object.list) == '31'",
        "'%s %s'.format([duration('90s'), timestamp(0)]) == '90s 1970-01-01T00:00:00Z' && '%s'.format([int]) == 'int'",
        "'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1b22'.findAll('[0-9]+', 1) == ['1'] && 'a'.findAll('x') == []",
        "strings.quote('a\"b\\n') == '\"a\\\\\"b\\\\n\"'",
        "b'abc' + b'd' == bytes('abcd') && b'\\xff' > b'a' && size(b'\\xff\\xfe') == 2 && string(b'abc') == 'abc'",
        "type(1) == int && type('a') == string && type(object) == map && type([]) == list && type(null) == null_type",
        "type(object.spec.replicas) != string && type(type(1)) == type && type(1.0) == double && type(b'') == bytes",
        "sets.contains([1, 2, 3], [2, 3]) && !sets.contains([1], [2]) && sets.equivalent([1, 2, 2], [2, 1])",
        "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2]) && !sets.equivalent([1], [1, 2])",
        "object.?metadata.?name.optMap(n, n + '!').orValue('') == 'web-1!' && !object.?nothing.optMap(n, n).hasValue()",
        "optional.of(1).optFlatMap(n, n > 0 ? optional.of(n + 1) : optional.none()).value() == 2",
    ]);
    fail(&[
        ("'%d'.format(['a']) == ''", "decimal clause can only be used on integers, was given string"),
        ("'%f'.format([1]) == ''", "fixed-point clause can only be used on doubles, was given int"),
        ("'%f'.format(['x']) == ''", "fixed-point clause can only be used on doubles, was given string"),
        ("'%e'.format([true]) == ''", "scientific clause can only be used on doubles, was given bool"),
        ("'%b'.format(['a']) == ''", "only integers and bools can be formatted as binary, was given string"),
        (
            "'%x'.format([0.5]) == ''",
            "only integers, byte buffers, and strings can be formatted as hex, was given double",
        ),
        ("'%o'.format([object.metadata.name]) == ''", "octal clause can only be used on integers, was given string"),
        ("'%s'.format([quantity('1')]) == ''", "timestamps, was given kubernetes.Quantity"),
        ("'%s'.format([dyn(optional.of(1))]) == ''", "timestamps, was given optional_type"),
        ("'%.34'.format([1.0]) == ''", "could not find end of precision specifier"),
        ("'%s %s'.format(['a']) == ''", "index 1 out of range"),
        ("'%s%s%s%s'.format(object.list) == ''", "index 3 out of range"),
        ("'%s'.format([]) == ''", "index 0 out of range"),
        ("'x'.format([1]) == ''", "too many arguments supplied"),
        ("'%q'.format([1]) == ''", "unrecognized formatting clause \"q\""),
        ("'%'.format([1]) == ''", "unexpected end of string"),
        ("'%.101f'.format([1.0]) == ''", "error while parsing precision"),
        ("string(b'\\xff') == ''", "invalid UTF-8 in bytes"),
        ("type(1) == 1", "found no matching overload for '_==_' applied to '(type, int)'"),
        ("sets.contains([1], ['a'])", "found no matching overload for 'sets.contains'"),
        ("optional.of(1).optFlatMap(n, n).hasValue()", "expected type 'optional_type' but found 'int'"),
        ("'a'.optMap(n, n) == ''", "found no matching overload for 'optMap'"),
        ("['a'].sum() == 'a'", "found no matching overload for 'sum'"),
    ]);
}
