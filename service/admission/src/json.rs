//! A cursor that reads JSON text. To skip a value, the cursor searches for quotes and brackets, 64 bytes at a time.
//!
//! Values that are read, and the keys before them, must follow the JSON grammar. Skipped values need only closed
//! strings and balanced brackets, because the API server has parsed and written them (decision 022). The code does not
//! recurse, so nesting uses no stack.

mod bits;
mod piece;

use std::borrow::Cow;

/// Calls `each` with the position of every byte of `text` that a JSON string must escape.
pub fn specials(text: &str, each: impl FnMut(usize)) {
    bits::specials(text.as_bytes(), each);
}

/// Whether `text` has a byte that a JSON string must escape.
pub fn needs_escape(text: &str) -> bool {
    bits::special(text.as_bytes()).is_some()
}

/// The text is not JSON; the number is the index of the first wrong byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not JSON at byte {0}")]
pub struct Error(pub usize);

#[derive(Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

/// The state of reading an object or array: whether its first member was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inside {
    first: bool,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The first byte of the next token, which is not consumed; `None` at the end.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if byte > b' ' || !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    pub fn position(&mut self) -> usize {
        self.peek();
        self.at
    }

    /// The text between `from`, the result of an earlier [`Self::position`], and the present position.
    pub fn since(&self, from: usize) -> Option<&'a str> {
        self.text.get(from..self.at)
    }

    /// Checks that only white space follows until the end.
    pub fn end(&mut self) -> Result<(), Error> {
        if self.peek().is_none() { Ok(()) } else { Err(Error(self.at)) }
    }

    /// Moves the cursor into an object (`{`) or an array (`[`).
    pub fn enter(&mut self, bracket: u8) -> Result<Inside, Error> {
        self.take(bracket)?;
        Ok(Inside { first: true })
    }

    /// The next key of an object; the cursor is then before the key's value. The result is `None` after the last key.
    #[inline]
    pub fn key(&mut self, inside: &mut Inside) -> Result<Option<Cow<'a, str>>, Error> {
        if !self.more(inside, b'}')? {
            return Ok(None);
        }
        let key = self.string()?;
        self.take(b':')?;
        Ok(Some(key))
    }

    /// Whether another item of an array follows; if not, the cursor is after the array.
    pub fn item(&mut self, inside: &mut Inside) -> Result<bool, Error> {
        self.more(inside, b']')
    }

    /// Reads a JSON string. A string without escapes is borrowed and not copied.
    #[inline]
    pub fn string(&mut self) -> Result<Cow<'a, str>, Error> {
        self.take(b'"')?;
        let (start, bytes) = (self.at, self.text.as_bytes());
        let end = start + bits::special(&bytes[start..]).ok_or(Error(bytes.len()))?;
        match bytes[end] {
            b'"' => {
                self.at = end + 1;
                self.text.get(start..end).map(Cow::Borrowed).ok_or(Error(start))
            }
            b'\\' => {
                self.at = end;
                self.close_string()?;
                let quoted = self.text.get(start - 1..self.at).ok_or(Error(start))?;
                serde_json::from_str(quoted).map(Cow::Owned).map_err(|_| Error(end))
            }
            _ => Err(Error(end)),
        }
    }

    pub fn text(&mut self) -> Result<Option<Cow<'a, str>>, Error> {
        if self.peek() == Some(b'n') {
            return self.skip().map(|()| None);
        }
        self.string().map(Some)
    }

    #[inline]
    pub fn skip(&mut self) -> Result<(), Error> {
        let bytes = self.text.as_bytes();
        match self.peek().ok_or(Error(bytes.len()))? {
            b'"' => {
                self.at += 1;
                self.close_string()
            }
            b'{' | b'[' => {
                self.at += bits::container(&bytes[self.at..]).ok_or(Error(bytes.len()))?;
                Ok(())
            }
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let rest = &bytes[self.at..];
                self.at += rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
                Ok(())
            }
            _ => {
                let word =
                    ["null", "true", "false"].into_iter().find(|word| bytes[self.at..].starts_with(word.as_bytes()));
                self.at += word.ok_or(Error(self.at))?.len();
                Ok(())
            }
        }
    }

    fn close_string(&mut self) -> Result<(), Error> {
        let bytes = self.text.as_bytes();
        loop {
            let rest = bytes.get(self.at..).ok_or(Error(bytes.len()))?;
            self.at += bits::quote_or_backslash(rest).ok_or(Error(bytes.len()))?;
            if bytes[self.at] == b'"' {
                self.at += 1;
                return Ok(());
            }
            // The escaped byte may be a quote or a backslash.
            self.at += 2;
        }
    }

    #[inline]
    fn more(&mut self, inside: &mut Inside, close: u8) -> Result<bool, Error> {
        let first = std::mem::replace(&mut inside.first, false);
        match self.peek() {
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            Some(_) if first => Ok(true),
            Some(b',') => {
                self.at += 1;
                // `[1,]` has no second item.
                if self.peek() == Some(close) { Err(Error(self.at)) } else { Ok(true) }
            }
            _ => Err(Error(self.at)),
        }
    }

    #[inline]
    fn take(&mut self, wanted: u8) -> Result<(), Error> {
        if self.peek() != Some(wanted) {
            return Err(Error(self.at));
        }
        self.at += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
