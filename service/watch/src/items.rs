//! Splits the JSON text of a list into its items; the chunks of the text may end anywhere.
//!
//! Only one item and the text around the items are in memory: a page of five hundred objects may be larger than the
//! memory of the process. The code finds only the ends of items; its callers parse them.

use crate::decode::LINE_BYTES_MAX;

/// Largest item, in bytes: as long as the longest line of a watch, because such a line contains the same object.
const ITEM_BYTES_MAX: usize = LINE_BYTES_MAX;
/// Maximum number of bytes of a list around its items: kind, version and continue token.
const ENVELOPE_BYTES_MAX: usize = 64 << 10;
/// An item buffer that grew above this size for one large item is freed afterwards.
const KEEP_BYTES: usize = 256 << 10;
const KEY: &[u8] = b"\"items\"";

/// Why the bytes are not a list with items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ItemsError {
    #[error("an item is longer than {ITEM_BYTES_MAX} bytes")]
    LongItem,
    #[error("a list has more than {ENVELOPE_BYTES_MAX} bytes beside its items")]
    LongEnvelope,
    #[error("an item of the list is no object")]
    Shape,
    #[error("the list broke off")]
    Torn,
}

/// A splitter of a list into its items.
#[derive(Debug, Default)]
pub struct Items {
    at: At,
    string: Text,
    /// Number of open brackets, in the text around the items or in the item.
    depth: u32,
    /// Whether the current position is after the colon of a pair in the text around the items.
    in_value: bool,
    /// Start and end of the last key in the text around the items.
    key: (usize, usize),
    item: Vec<u8>,
    envelope: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum At {
    #[default]
    Envelope,
    Between,
    Item,
}

/// The position of the reader relative to JSON strings.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Inside,
    /// The reader is in a string, directly after a backslash.
    Escaped,
}

impl Items {
    /// Reads a chunk of the list and passes every complete item to `each`.
    pub fn push<E: From<ItemsError>>(
        &mut self,
        mut chunk: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while !chunk.is_empty() {
            let taken = match self.at {
                At::Between => self.between(chunk)?,
                At::Envelope => self.around(chunk)?,
                At::Item => {
                    let taken = self.within(chunk)?;
                    if self.depth == 0 {
                        each(&self.item)?;
                        self.item.clear();
                        if self.item.capacity() > KEEP_BYTES {
                            self.item = Vec::new();
                        }
                        (self.at, self.depth) = (At::Between, 1);
                    }
                    taken
                }
            };
            chunk = &chunk[taken..];
        }
        Ok(())
    }

    /// Ends the list; returns the JSON text around the list's items.
    pub fn finish(self) -> Result<Vec<u8>, ItemsError> {
        let is_whole = self.at == At::Envelope && self.string == Text::Outside && self.depth == 0;
        if is_whole && !self.envelope.is_empty() { Ok(self.envelope) } else { Err(ItemsError::Torn) }
    }

    /// Reads from the end of an item to the next item or the end of the array; returns the number of bytes used from
    /// the chunk.
    fn between(&mut self, chunk: &[u8]) -> Result<usize, ItemsError> {
        let is_gap = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
        let gap = chunk.iter().take_while(|byte| is_gap(byte)).count();
        match chunk.get(gap) {
            None => {}
            Some(b'{') => (self.at, self.depth) = (At::Item, 0),
            // The closing bracket is part of the envelope, as the opening one is.
            Some(b']') => (self.at, self.depth) = (At::Envelope, 2),
            Some(_) => return Err(ItemsError::Shape),
        }
        Ok(gap)
    }

    /// Reads the text around the items up to the first item; returns the number of bytes used from the chunk.
    fn around(&mut self, chunk: &[u8]) -> Result<usize, ItemsError> {
        for (at, byte) in chunk.iter().enumerate() {
            if self.envelope.len() == ENVELOPE_BYTES_MAX {
                return Err(ItemsError::LongEnvelope);
            }
            self.envelope.push(*byte);
            let before = self.string;
            self.string = before.after(*byte);
            let end = self.envelope.len();
            match (before, self.string) {
                (Text::Outside, Text::Outside) => match byte {
                    b'[' if self.depth == 1 && self.in_value && self.is_items() => {
                        (self.at, self.depth) = (At::Between, 1);
                        return Ok(at + 1);
                    }
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    b':' if self.depth == 1 => self.in_value = true,
                    b',' if self.depth == 1 => self.in_value = false,
                    _ => {}
                },
                (Text::Outside, _) if self.depth == 1 && !self.in_value => self.key.0 = end - 1,
                (_, Text::Outside) if self.depth == 1 && !self.in_value => self.key.1 = end,
                _ => {}
            }
        }
        Ok(chunk.len())
    }

    fn is_items(&self) -> bool {
        self.envelope.get(self.key.0..self.key.1) == Some(KEY)
    }

    /// Reads an item up to its end; returns the number of bytes used from the chunk.
    fn within(&mut self, chunk: &[u8]) -> Result<usize, ItemsError> {
        let mut at = 0;
        while at < chunk.len() {
            if self.string == Text::Inside {
                // Most bytes of a large object are in strings.
                at += memchr::memchr2(b'"', b'\\', &chunk[at..]).unwrap_or(chunk.len() - at);
            }
            let Some(byte) = chunk.get(at) else { break };
            at += 1;
            self.string = self.string.after(*byte);
            if self.string == Text::Outside {
                match byte {
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth -= 1,
                    _ => {}
                }
                if self.depth == 0 {
                    break;
                }
            }
        }
        if self.item.len() + at > ITEM_BYTES_MAX {
            return Err(ItemsError::LongItem);
        }
        self.item.extend_from_slice(&chunk[..at]);
        Ok(at)
    }
}

impl Text {
    /// The reader's position after one more `byte`.
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Outside, b'"') | (Self::Escaped, _) => Self::Inside,
            (Self::Inside, b'\\') => Self::Escaped,
            (Self::Inside, b'"') => Self::Outside,
            (same, _) => same,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Divides `text` into chunks with the lengths `cuts`; returns the items of the list and the text around them.
    fn cut(text: &str, cuts: &[usize]) -> Result<(Vec<String>, String), ItemsError> {
        let (mut items, mut found, mut rest) = (Items::default(), Vec::new(), text.as_bytes());
        let mut cuts = cuts.iter().cycle();
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            items.push(chunk, |item| {
                found.push(String::from_utf8(item.to_vec()).unwrap());
                Ok::<_, ItemsError>(())
            })?;
            rest = after;
        }
        Ok((found, String::from_utf8(items.finish()?).unwrap()))
    }

    proptest! {
        /// The result does not depend on how the bytes of a list are divided into chunks, whatever its strings contain.
        #[test]
        fn cuts_do_not_matter(
            texts in prop::collection::vec(r#"[a\]\[{},:"\\é]{0,9}"#, 0..6),
            cuts in prop::collection::vec(1usize..7, 1..40),
        ) {
            let item = |text: &String| serde_json::json!({"a": [text, {"items": [1]}], text.as_str(): {}}).to_string();
            let wanted: Vec<_> = texts.iter().map(item).collect();
            let token = serde_json::json!(texts.concat());
            let text = format!(r#"{{"items2": [0], "metadata": {{"continue": {token}, "items": [3]}}, "items" : [ {} ], "kind":"L"}} "#, wanted.join(" ,\n"));
            let (found, envelope) = cut(&text, &cuts).unwrap();
            prop_assert_eq!(found, wanted);
            let rest: serde_json::Value = serde_json::from_str(&envelope).unwrap();
            prop_assert_eq!(&rest["metadata"]["continue"], &token);
            prop_assert_eq!(&rest["items"], &serde_json::json!([]));
            prop_assert_eq!(&rest["kind"], "L");
        }
    }

    #[test]
    fn what_is_no_list_is_said() {
        assert_eq!(cut(r#"{"items":[{"a":1}"#, &[3]), Err(ItemsError::Torn));
        assert_eq!(cut("", &[3]), Err(ItemsError::Torn));
        assert_eq!(cut(r#"{"items":[{"a":1},2]}"#, &[3]), Err(ItemsError::Shape));
        assert_eq!(cut(r#"{"items":null}"#, &[3]), Ok((vec![], r#"{"items":null}"#.into())));
        let long = format!(r#"{{"items":[{{"a":"{}"}}]}}"#, "x".repeat(ITEM_BYTES_MAX));
        assert_eq!(cut(&long, &[1 << 16]), Err(ItemsError::LongItem));
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(ENVELOPE_BYTES_MAX));
        assert_eq!(cut(&long, &[1 << 16]), Err(ItemsError::LongEnvelope));
    }
}
