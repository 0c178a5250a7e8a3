//! The static table and the dynamic table of HPACK (RFC 7541, sections 2.3 and 4, appendix A). Pure: no I/O.

use std::collections::VecDeque;

use super::{Coding, Fault, Head, Name, TEXT_MAX_BYTES, broken};

/// The default of `SETTINGS_HEADER_TABLE_SIZE` (RFC 9113, section 6.5.2).
const TABLE_MAX_BYTES: usize = 4096;
/// The size that counts for each table entry besides its texts (RFC 7541, section 4.1).
const ENTRY_BYTES: usize = 32;

/// The names in the static table; neighbouring entries may have the same name.
const NAMES: [&str; 61] = [
    ":authority",
    ":method",
    ":method",
    ":path",
    ":path",
    ":scheme",
    ":scheme",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "accept",
    "access-control-allow-origin",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "link",
    "location",
    "max-forwards",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "refresh",
    "retry-after",
    "server",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "user-agent",
    "vary",
    "via",
    "www-authenticate",
];

/// The index of the first status in the static table.
const FIRST_STATUS: usize = 8;
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];

/// A field of the dynamic table, with its value if it is needed.
#[derive(Debug)]
pub(super) struct Entry {
    field: Field,
    name_bytes: usize,
    /// The size that counts for the entry, in bytes.
    bytes: usize,
}

#[derive(Debug)]
enum Field {
    /// A status; `None` for a value that is no status.
    Status(Option<u16>),
    ContentLength(Option<u64>),
    ContentEncoding(Coding),
    ContentType(Box<[u8]>),
    Other,
}

impl Entry {
    pub(super) fn new(name: Name, name_bytes: usize, value: &[u8]) -> Result<Self, Fault> {
        let field = match name {
            Name::Status => Field::Status(digits(value).filter(|_| value.len() == 3).and_then(|n| n.try_into().ok())),
            Name::ContentLength => Field::ContentLength(digits(value)),
            Name::ContentEncoding => Field::ContentEncoding(Coding::of(value)),
            Name::ContentType if value.len() > TEXT_MAX_BYTES => {
                return Err(broken("a content-type is longer than 1 KiB"));
            }
            Name::ContentType => Field::ContentType(value.into()),
            Name::Other => Field::Other,
        };
        Ok(Self { field, name_bytes, bytes: name_bytes + value.len() + ENTRY_BYTES })
    }

    fn name(&self) -> Name {
        match self.field {
            Field::Status(_) => Name::Status,
            Field::ContentLength(_) => Name::ContentLength,
            Field::ContentEncoding(_) => Name::ContentEncoding,
            Field::ContentType(_) => Name::ContentType,
            Field::Other => Name::Other,
        }
    }

    /// Writes the field's value into `head`; a `Content-Type` is returned instead.
    pub(super) fn tell(&self, head: &mut Head) -> Result<Option<&[u8]>, Fault> {
        match &self.field {
            Field::Status(status) => tell_status(*status, head)?,
            Field::ContentLength(length) => {
                let length = length.ok_or(Fault::protocol("a content-length is no number"))?;
                if head.length.replace(length).is_some_and(|known| known != length) {
                    return Err(Fault::protocol("an answer has two different content-lengths"));
                }
            }
            Field::ContentEncoding(coding) => head.coding = *coding,
            Field::ContentType(text) => return Ok(Some(text)),
            Field::Other => {}
        }
        Ok(None)
    }
}

fn tell_status(status: Option<u16>, head: &mut Head) -> Result<(), Fault> {
    let status = status.ok_or(Fault::protocol("a :status is no status"))?;
    match head.status.replace(status) {
        None => Ok(()),
        Some(_) => Err(Fault::protocol("an answer has two statuses")),
    }
}

fn digits(text: &[u8]) -> Option<u64> {
    let all_digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| all_digits)?.parse().ok()
}

/// The static and the dynamic table under one index, which starts at 1.
#[derive(Debug)]
pub(super) struct Table {
    /// The entries of the dynamic table, newest first.
    entries: VecDeque<Entry>,
    bytes: usize,
    bytes_max: usize,
}

impl Table {
    pub(super) fn new() -> Self {
        // The full size that it can ever need, so that it never grows between two calls.
        let entries = VecDeque::with_capacity(TABLE_MAX_BYTES / ENTRY_BYTES);
        Self { entries, bytes: 0, bytes_max: TABLE_MAX_BYTES }
    }

    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Changes the size of the table, which the server may make smaller, or larger again up to the limit.
    pub(super) fn resize(&mut self, bytes_max: usize) -> Result<(), Fault> {
        if bytes_max > TABLE_MAX_BYTES {
            return Err(broken("the table grows beyond 4 KiB"));
        }
        self.bytes_max = bytes_max;
        self.evict(0);
        Ok(())
    }

    /// Adds an entry to the dynamic table. An entry that is larger than the whole table empties the table (RFC 7541,
    /// section 4.4).
    pub(super) fn insert(&mut self, entry: Entry) {
        self.evict(entry.bytes);
        if entry.bytes <= self.bytes_max {
            self.bytes += entry.bytes;
            self.entries.push_front(entry);
        }
    }

    fn evict(&mut self, room: usize) {
        while self.bytes + room > self.bytes_max
            && let Some(entry) = self.entries.pop_back()
        {
            self.bytes -= entry.bytes;
        }
    }

    /// The name at an index, and its length.
    pub(super) fn name(&self, index: usize) -> Result<(Name, usize), Fault> {
        if let Some(name) = index.checked_sub(1).and_then(|at| NAMES.get(at)) {
            return Ok((Name::of(name.as_bytes()), name.len()));
        }
        self.dynamic(index).map(|entry| (entry.name(), entry.name_bytes))
    }

    /// Writes the value of the field at an index into `head`; a `Content-Type` is returned instead.
    pub(super) fn field(&self, index: usize, head: &mut Head) -> Result<Option<&[u8]>, Fault> {
        if let Some(status) = index.checked_sub(FIRST_STATUS).and_then(|at| STATUSES.get(at)) {
            return tell_status(Some(*status), head).map(|()| None);
        }
        // Fields without a value, and those of requests, are ignored.
        if (1..=NAMES.len()).contains(&index) { Ok(None) } else { self.dynamic(index)?.tell(head) }
    }

    fn dynamic(&self, index: usize) -> Result<&Entry, Fault> {
        let at = index.checked_sub(NAMES.len() + 1);
        at.and_then(|at| self.entries.get(at)).ok_or(broken("a field is in no table"))
    }
}
