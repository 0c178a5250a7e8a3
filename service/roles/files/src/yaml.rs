//! Parses YAML into a tree whose nodes know their position in the text.
//!
//! This module resolves anchors, aliases and merge keys by the rules of Kubernetes' own parser, and finds nodes by JSON
//! pointers.

use std::collections::HashSet;
use std::ops::Range;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, Tag};

/// Largest YAML text, in bytes; a chart with thousands of objects has some megabytes.
pub const TEXT_BYTES_MAX: usize = 64 << 20;
/// Maximum number of nodes of one document after aliases are resolved, so that aliases of aliases cannot fill the
/// memory.
const NODES_MAX: usize = 4 << 20;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not valid YAML.
    #[error("line {line}, column {column}: {what}")]
    Syntax { line: usize, column: usize, what: String },
    #[error("the text has {bytes} bytes; at most {TEXT_BYTES_MAX} are read")]
    TooLarge { bytes: usize },
    #[error("line {line}: an alias makes the document endless or larger than {NODES_MAX} values")]
    Endless {
        /// First line of the document, from 1.
        line: usize,
    },
    #[error("line {line}: a key is a list or a map")]
    Key { line: usize },
}

/// The index of a node in its document.
pub type Id = usize;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The node's bytes in the text.
    pub range: Range<usize>,
    /// The node's line, from 1.
    pub line: usize,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// The text of a scalar without quotes and escapes, and its style.
    Scalar(String, ScalarStyle),
    List(Vec<Id>),
    /// A map, in the order of the text. The key `<<` has the merged maps.
    Map(Vec<(Id, Id)>),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    nodes: Vec<Node>,
    root: Id,
}

/// Parses all documents of a text; empty documents are left out.
pub fn documents(text: &str) -> Result<Vec<Document>, Error> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::TooLarge { bytes: text.len() });
    }
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut reader = Reader::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| {
            let place = error.marker();
            Error::Syntax { line: place.line(), column: place.col() + 1, what: error.info() }
        })?;
        reader.take(&event, &span)?;
    }
    Ok(reader.done)
}

/// A list or map whose end was not reached yet.
enum Open {
    List(Id),
    Map(Id, Option<Id>),
}

#[derive(Default)]
struct Reader {
    done: Vec<Document>,
    now: Document,
    open: Vec<Open>,
    /// The node of each anchor in this document, by anchor number.
    anchors: Vec<(usize, Id)>,
}

impl Reader {
    fn take(&mut self, event: &Event<'_>, span: &Span) -> Result<(), Error> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let style = if is_text(tag.as_deref()) { ScalarStyle::DoubleQuoted } else { *style };
                self.node(Value::Scalar(text.clone().into_owned(), style), span, *anchor)?;
            }
            Event::SequenceStart(_, anchor, _) => {
                let id = self.node(Value::List(Vec::new()), span, *anchor)?;
                self.open.push(Open::List(id));
            }
            Event::MappingStart(_, anchor, _) => {
                let id = self.node(Value::Map(Vec::new()), span, *anchor)?;
                self.open.push(Open::Map(id, None));
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Open::List(id) | Open::Map(id, _)) = self.open.pop() {
                    let range = &mut self.now.nodes[id].range;
                    range.end = range.end.max(span.byte_range().map_or(0, |span| span.end));
                }
            }
            Event::Alias(anchor) => {
                if let Some((_, id)) = self.anchors.iter().rev().find(|(known, _)| known == anchor) {
                    self.place(*id)?;
                }
            }
            Event::DocumentEnd => {
                self.anchors.clear();
                let document = std::mem::take(&mut self.now);
                if !document.nodes.is_empty() && !document.is_null(document.root) {
                    self.done.push(document);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn node(&mut self, value: Value, span: &Span, anchor: usize) -> Result<Id, Error> {
        let id = self.now.nodes.len();
        let range = span.byte_range().unwrap_or_default();
        self.now.nodes.push(Node { range, line: span.start.line(), value });
        if anchor > 0 {
            self.anchors.push((anchor, id));
        }
        self.place(id)?;
        Ok(id)
    }

    /// Adds a node to the list, map or document that is open.
    fn place(&mut self, id: Id) -> Result<(), Error> {
        match self.open.last_mut() {
            None => self.now.root = id,
            Some(Open::List(list)) => {
                if let Value::List(items) = &mut self.now.nodes[*list].value {
                    items.push(id);
                }
            }
            Some(Open::Map(map, key)) => match key.take() {
                None => {
                    if !matches!(self.now.nodes[id].value, Value::Scalar(..)) {
                        return Err(Error::Key { line: self.now.nodes[id].line });
                    }
                    *key = Some(id);
                }
                Some(key) => {
                    if let Value::Map(entries) = &mut self.now.nodes[*map].value {
                        entries.push((key, id));
                    }
                }
            },
        }
        Ok(())
    }
}

/// Whether the tag makes its scalar a string, whatever the text is.
fn is_text(tag: Option<&Tag>) -> bool {
    tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"))
}

impl Document {
    pub fn root(&self) -> Id {
        self.root
    }

    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id]
    }

    /// The value of `key` in a map; entries of the map itself take precedence over merged entries.
    pub fn get(&self, map: Id, key: &str) -> Option<Id> {
        self.get_within(map, key, MERGES_MAX)
    }

    /// Like [`Self::get`], through at most `steps` levels of merged maps.
    fn get_within(&self, map: Id, key: &str, steps: usize) -> Option<Id> {
        let Value::Map(entries) = &self.nodes[map].value else { return None };
        let named = |name: &'_ str| entries.iter().rev().find(|(key, _)| self.text(*key) == Some(name));
        if let Some((_, value)) = named(key) {
            return Some(*value);
        }
        let (_, merged) = named("<<").filter(|_| steps > 0)?;
        match &self.nodes[*merged].value {
            Value::List(maps) => maps.iter().find_map(|map| self.get_within(*map, key, steps - 1)),
            _ => self.get_within(*merged, key, steps - 1),
        }
    }

    /// The items of a list; empty for all other nodes.
    pub fn items(&self, list: Id) -> &[Id] {
        match &self.nodes[list].value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    pub fn text(&self, id: Id) -> Option<&str> {
        match &self.nodes[id].value {
            Value::Scalar(text, _) => Some(text),
            _ => None,
        }
    }

    pub fn text_of(&self, map: Id, key: &str) -> Option<&str> {
        self.text(self.get(map, key)?)
    }

    /// The node at the JSON pointer `pointer` (RFC 6901), below the node `from`.
    pub fn at(&self, from: Id, pointer: &str) -> Option<Id> {
        pointer.split('/').skip(1).try_fold(from, |at, part| match &self.nodes[at].value {
            Value::List(items) => items.get(part.parse::<usize>().ok()?).copied(),
            _ => self.get(at, &part.replace("~1", "/").replace("~0", "~")),
        })
    }

    fn is_null(&self, id: Id) -> bool {
        matches!(&self.nodes[id].value, Value::Scalar(text, ScalarStyle::Plain) if is_null(text))
    }

    pub fn json(&self, id: Id) -> Result<String, Error> {
        let (mut out, mut left) = (String::new(), NODES_MAX);
        let endless = Error::Endless { line: self.nodes[id].line };
        self.write(id, &mut out, &mut left, 0).ok_or(endless)?;
        Ok(out)
    }

    /// Writes a node as JSON; `None` if the JSON is too large or too deep.
    fn write(&self, id: Id, out: &mut String, left: &mut usize, depth: usize) -> Option<()> {
        // Twice the parser's own limit: a merged map is one level, and an alias in itself would have no end.
        const DEPTH_MAX: usize = 512;
        *left = left.checked_sub(1)?;
        if depth > DEPTH_MAX {
            return None;
        }
        match &self.nodes[id].value {
            Value::Scalar(text, style) => write_scalar(text, *style, out),
            Value::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    self.write(*item, out, left, depth + 1)?;
                }
                out.push(']');
            }
            Value::Map(_) => {
                out.push('{');
                let mut entries = Entries::default();
                self.merged(id, &mut entries, left, 0)?;
                for (index, (key, value)) in entries.list.into_iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    quote(key, out);
                    out.push(':');
                    self.write(value, out, left, depth + 1)?;
                }
                out.push('}');
            }
        }
        Some(())
    }

    /// Adds the entries of a map, and the entries of merged maps whose keys the map lacks. If a key is repeated, its
    /// last value counts.
    fn merged<'a>(&'a self, map: Id, into: &mut Entries<'a>, left: &mut usize, depth: usize) -> Option<()> {
        *left = left.checked_sub(1)?;
        let Value::Map(entries) = &self.nodes[map].value else { return Some(()) };
        let (mut own, mut merges) = (HashSet::new(), Vec::new());
        for (key, value) in entries.iter().rev() {
            let key = self.text(*key).unwrap_or_default();
            if key == "<<" && !matches!(self.nodes[*value].value, Value::Scalar(..)) {
                merges.push(*value);
            } else if into.known.insert(key) {
                own.insert(key);
                into.list.push((key, *value));
            }
        }
        let begin = into.list.len() - own.len();
        into.list[begin..].reverse();
        for merge in merges {
            let maps = if self.items(merge).is_empty() { vec![merge] } else { self.items(merge).to_vec() };
            for map in maps {
                (depth < MERGES_MAX).then_some(())?;
                self.merged(map, into, left, depth + 1)?;
            }
        }
        Some(())
    }
}

/// Maximum number of levels of merged maps.
const MERGES_MAX: usize = 16;

/// The entries of a map, with each key once.
#[derive(Default)]
struct Entries<'a> {
    list: Vec<(&'a str, Id)>,
    known: HashSet<&'a str>,
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// Writes a scalar as JSON. Plain scalars have the types of YAML 1.2's core schema, if JSON has them.
fn write_scalar(text: &str, style: ScalarStyle, out: &mut String) {
    if style == ScalarStyle::Plain {
        match text {
            _ if is_null(text) => return out.push_str("null"),
            "true" | "True" | "TRUE" => return out.push_str("true"),
            "false" | "False" | "FALSE" => return out.push_str("false"),
            _ => {}
        }
        let begins = text.trim_start_matches(['-', '+']).bytes().next();
        if begins.is_some_and(|byte| byte.is_ascii_digit() || byte == b'.')
            && let Ok(number) = serde_json::from_str::<serde_json::Number>(text)
        {
            return out.push_str(&number.to_string());
        }
    }
    quote(text, out);
}

fn quote(text: &str, out: &mut String) {
    // A text always has a JSON form.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

#[cfg(test)]
mod tests;
