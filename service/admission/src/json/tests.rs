//! Tests that the cursor reads JSON as `serde_json` does.

use proptest::prelude::*;
use serde_json::Value;

use super::{Cursor, Error};

fn read(cursor: &mut Cursor<'_>) -> Result<Value, Error> {
    match cursor.peek() {
        Some(b'{') => {
            let (mut inside, mut map) = (cursor.enter(b'{')?, serde_json::Map::new());
            while let Some(key) = cursor.key(&mut inside)? {
                map.insert(key.into_owned(), read(cursor)?);
            }
            Ok(map.into())
        }
        Some(b'[') => {
            let (mut inside, mut items) = (cursor.enter(b'[')?, Vec::new());
            while cursor.item(&mut inside)? {
                items.push(read(cursor)?);
            }
            Ok(items.into())
        }
        Some(b'"') => cursor.string().map(|text| text.into_owned().into()),
        _ => {
            let from = cursor.position();
            cursor.skip()?;
            Ok(serde_json::from_str(cursor.since(from).unwrap()).unwrap_or_default())
        }
    }
}

fn skipped(text: &str) -> Result<(), Error> {
    let mut cursor = Cursor::new(text);
    cursor.skip()?;
    cursor.end()
}

fn json_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![any::<String>(), r#"[\\"{}\[\],: ]{0,9}"#, "[a-z]{0,90}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Not every double comes back the same from serde_json.
        any::<i32>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 80, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

#[test]
fn what_is_not_closed_does_not_end() {
    for text in ["", " ", "\"a", "\"a\\", "\"a\\\"", "[", "{\"a\":[}", "[\"]", "[\"\\\"]", "tru", "nul", "}", ","] {
        assert!(skipped(text).is_err(), "{text}");
    }
    for text in ["{} {}", "\"a\"b", "1 2", "[]]", "nullx"] {
        assert!(skipped(text).is_err(), "{text}");
    }
    for text in ["{\"a\":1,}", "{,}", "{\"a\"}", "{\"a\" 1}", "[1,]", "[1 2]", "[\"a\u{1}\"]", "{1:2}", "[\"\\x\"]"] {
        assert!(read(&mut Cursor::new(text)).is_err(), "{text}");
    }
}

proptest! {
    /// A value that `serde_json` wrote, with or without spaces, is read as the same value, and is skipped to its end.
    #[test]
    fn what_is_read_is_what_was_written(value in json_value()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let mut cursor = Cursor::new(&text);
            prop_assert_eq!(read(&mut cursor), Ok(value.clone()));
            prop_assert_eq!(cursor.end(), Ok(()));
            prop_assert_eq!(skipped(&text), Ok(()));
            let (mut list, two) = (0, format!("[{text},{text}]"));
            let mut cursor = Cursor::new(&two);
            let mut inside = cursor.enter(b'[').unwrap();
            while cursor.item(&mut inside).unwrap() {
                let from = cursor.position();
                cursor.skip().unwrap();
                prop_assert_eq!(cursor.since(from), Some(&*text));
                list += 1;
            }
            prop_assert_eq!((list, cursor.end()), (2, Ok(())));
        }
    }

    /// All JSON is skipped to its end; for truncated JSON the cursor finds no end.
    #[test]
    fn cut_off_text_does_not_end(value in json_value(), at in any::<prop::sample::Index>()) {
        let text = Value::from(vec![value]).to_string();
        let mut at = at.index(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        prop_assert!(skipped(&text[..at]).is_err());
    }
}
