//! The cursor of a list: the last Deployment of a page, as a text with which the client requests the next page.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use service_watch::Key;

use super::names;

/// The last Deployment of a page, after which the next page starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(Key);

impl Cursor {
    /// Parses a text that [`Self::written`] returned; `None` for any other text.
    pub fn read(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (namespace, name) = std::str::from_utf8(&bytes).ok()?.split_once('/')?;
        names::are_names(namespace, name).then(|| Self(Key { namespace: namespace.into(), name: name.into() }))
    }

    /// The cursor, as text, of a page that ends with `key`.
    pub fn written(key: &Key) -> String {
        URL_SAFE_NO_PAD.encode(format!("{}/{}", key.namespace, key.name))
    }

    pub fn key(&self) -> &Key {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_nothing_else_is() {
        let key = Key { namespace: "team-a".into(), name: "web.v2".into() };
        assert_eq!(Cursor::read(&Cursor::written(&key)), Some(Cursor(key)));
        for text in ["", "x", "####", &URL_SAFE_NO_PAD.encode("a"), &URL_SAFE_NO_PAD.encode("../x/y")] {
            assert_eq!(Cursor::read(text), None, "{text}");
        }
    }
}
