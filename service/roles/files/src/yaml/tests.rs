use super::*;

fn one(text: &str) -> Document {
    let mut all = documents(text).unwrap();
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

fn json(text: &str) -> String {
    let document = one(text);
    document.json(document.root()).unwrap()
}

#[test]
fn scalars_have_the_types_of_kubernetes() {
    for (text, expected) in [
        ("a: 1\nb: -2.5\nc: 1e3", r#"{"a":1,"b":-2.5,"c":1000.0}"#),
        ("a: true\nb: 'true'\nc: ~\nd:", r#"{"a":true,"b":"true","c":null,"d":null}"#),
        ("a: !!str 1\nb: 1.2.3\nc: 0x", r#"{"a":"1","b":"1.2.3","c":"0x"}"#),
        ("- \"a\\nb\"\n- |\n  c\n  d\n", r#"["a\nb","c\nd\n"]"#),
        ("{\"a\": [1, {\"b\": \"c\"}]}", r#"{"a":[1,{"b":"c"}]}"#),
        ("a: 1\na: 2", r#"{"a":2}"#),
    ] {
        assert_eq!(json(text), expected, "{text}");
    }
}

#[test]
fn anchors_and_merges_are_followed() {
    let text = "base: &base {image: a, n: 1}\nc:\n  <<: *base\n  n: 2\nd: {<<: [*base, {m: 3}]}\n";
    assert_eq!(json(text), r#"{"base":{"image":"a","n":1},"c":{"n":2,"image":"a"},"d":{"image":"a","n":1,"m":3}}"#);
    let document = one(text);
    let image = document.at(document.root(), "/c/image").unwrap();
    assert_eq!(document.text(image), Some("a"));
    assert_eq!(&text[document.node(image).range.clone()], "a");
    assert_eq!(document.at(document.root(), "/d/m").map(|id| document.text(id)), Some(Some("3")));
    assert_eq!(document.at(document.root(), "/c/image/x"), None);
}

#[test]
fn documents_are_told_apart_and_empty_ones_left_out() {
    let all = documents("---\n# nothing\n---\na: 1\n---\n---\nb: 2\n...\n").unwrap();
    let texts: Vec<_> = all.iter().map(|one| one.json(one.root()).unwrap()).collect();
    assert_eq!(texts, [r#"{"a":1}"#, r#"{"b":2}"#]);
    assert_eq!(all[1].node(all[1].root()).line, 7);
}

#[test]
fn what_cannot_be_read_says_where() {
    let wrong = documents("a: 1\nb: [1\nc: d\n").unwrap_err();
    assert!(matches!(wrong, Error::Syntax { line: 2.., .. }), "{wrong}");
    assert_eq!(documents("? [a]\n: b\n"), Err(Error::Key { line: 1 }));
}

#[test]
fn aliases_without_end_are_refused() {
    let document = one("a: &a [*a]\n");
    assert_eq!(document.json(document.root()), Err(Error::Endless { line: 1 }));
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..9 {
        let before = format!("*a{}", n - 1);
        laughs = format!("{laughs}a{n}: &a{n} [{}]\n", vec![before; 10].join(", "));
    }
    let document = one(&laughs);
    assert_eq!(document.json(document.root()), Err(Error::Endless { line: 1 }));
    let document = one("a: &a\n  <<: *a\n  b: 1\n");
    assert_eq!(document.json(document.root()), Err(Error::Endless { line: 1 }));
}
