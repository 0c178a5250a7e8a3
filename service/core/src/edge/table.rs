//! Counts the entries that a client's HPACK encoder adds to the decoder's table (RFC 7541), by reading the bytes of the
//! client's heads.
//!
//! The HTTP/2 settings of the service limit the HPACK table to size 0, but h2 empties the table only when the client's
//! encoder announces the new size. While a stored value is in the table, it keeps the whole receive buffer of 8 to 16
//! KiB in memory. Each frame of a head may come in another buffer, so this code counts frames with stored fields. Names
//! and values of fields are skipped and not decoded. The code does no I/O.

/// Maximum number of bits of a string length or index in a head; h2 refuses larger numbers too.
const SHIFT_MAX: u32 = 28;

/// A reader of a connection's heads, byte by byte.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The number of frames of heads whose values are kept in the table.
    heads: u32,
    /// Whether the client's encoder announced a table of size 0.
    is_closed: bool,
    /// Whether the present frame completed a field that goes into the table.
    inserts: bool,
    /// Whether the present field goes into the table.
    will_insert: bool,
    number: Option<Number>,
    /// Number of texts (name, value) of the present field that are still to come.
    texts: u8,
    /// Number of bytes of the present text that are still to come.
    skip: usize,
}

#[derive(Debug, Clone, Copy)]
struct Number {
    of: Of,
    value: usize,
    shift: u32,
}

/// The meaning of an HPACK number in a request's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The table index of a whole field.
    Field,
    /// The table index of a name. A value follows the index; if the index is 0, the name follows first.
    Name,
    Size,
    Text,
}

impl Table {
    /// Reads further bytes of the present head.
    pub(super) fn read(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            if self.skip > 0 {
                let skipped = self.skip.min(bytes.len());
                self.skip -= skipped;
                bytes = &bytes[skipped..];
                self.complete();
                continue;
            }
            self.byte(first);
            bytes = rest;
        }
    }

    /// Ends a frame of the head; returns how many frames have values in the table. A field that is divided among frames
    /// counts in the frame that completes the field, because h2 decodes it from the buffer of that frame.
    pub(super) fn frame_end(&mut self) -> u32 {
        self.heads += u32::from(std::mem::take(&mut self.inserts) && !self.is_closed);
        self.heads
    }

    /// Ends the head after its last frame.
    pub(super) fn end(&mut self) {
        let (heads, is_closed) = (self.heads, self.is_closed);
        *self = Self { heads, is_closed, ..Self::default() };
    }

    /// Records a table entry if the last text of its field is complete.
    fn complete(&mut self) {
        if self.texts == 0 && self.skip == 0 {
            self.inserts |= std::mem::take(&mut self.will_insert);
        }
    }

    fn byte(&mut self, byte: u8) {
        if let Some(mut number) = self.number.take() {
            number.value = number.value.saturating_add(usize::from(byte & 0x7f) << number.shift);
            number.shift += 7;
            if byte & 0x80 != 0 && number.shift <= SHIFT_MAX {
                self.number = Some(number);
            } else {
                self.note(number.of, number.value);
            }
        } else if self.texts > 0 {
            self.begin(Of::Text, byte, 7);
        } else if byte & 0x80 != 0 {
            self.begin(Of::Field, byte, 7);
        } else if byte & 0x40 != 0 {
            self.will_insert = true;
            self.begin(Of::Name, byte, 6);
        } else if byte & 0x20 != 0 {
            self.begin(Of::Size, byte, 5);
        } else {
            self.begin(Of::Name, byte, 4);
        }
    }

    /// Starts a number in the lower bits of a byte (RFC 7541, section 5.1).
    fn begin(&mut self, of: Of, byte: u8, bits: u8) {
        let mask = (1 << bits) - 1;
        let value = usize::from(byte & mask);
        if byte & mask == mask {
            self.number = Some(Number { of, value, shift: 0 });
        } else {
            self.note(of, value);
        }
    }

    fn note(&mut self, of: Of, value: usize) {
        match of {
            Of::Field => {}
            Of::Name => self.texts = if value == 0 { 2 } else { 1 },
            Of::Text => {
                (self.texts, self.skip) = (self.texts - 1, value);
                self.complete();
            }
            Of::Size => {
                self.is_closed = value == 0;
                if self.is_closed {
                    self.heads = 0;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A literal field with a new name; `first` is its first byte.
    fn field(first: u8, value: usize) -> Vec<u8> {
        let mut bytes = vec![first, 1, b'x'];
        if value < 127 {
            bytes.push(u8::try_from(value).unwrap());
        } else {
            let rest = value - 127;
            bytes.extend([127, u8::try_from(rest % 128).unwrap() | 128, u8::try_from(rest / 128).unwrap()]);
        }
        // Bytes that would be insertions, were they fields.
        bytes.resize(bytes.len() + value, 0x41);
        bytes
    }

    fn heads(table: &mut Table, head: &[u8]) -> u32 {
        table.read(head);
        let heads = table.frame_end();
        table.end();
        heads
    }

    #[test]
    fn only_heads_that_insert_are_counted() {
        let mut table = Table::default();
        let plain = [&[0x83, 0x87, 0x04, 2, b'/', b'a'][..], &field(0x00, 7000), &field(0x10, 300)].concat();
        assert_eq!(heads(&mut table, &plain), 0);
        assert_eq!(heads(&mut table, &[plain.clone(), field(0x40, 5)].concat()), 1);
        assert_eq!(heads(&mut table, &[0x41, 1, b'h', 0x82, 0xff, 0x80, 0x01]), 2, "a name with an index");
        assert_eq!(heads(&mut table, &plain), 2);
    }

    /// The count does not depend on how the bytes of a head are divided into reads.
    #[test]
    fn pieces_make_no_difference() {
        let head = [field(0x00, 200), field(0x40, 130), vec![0x82], field(0x00, 126)].concat();
        for piece in 1..head.len() {
            let mut table = Table::default();
            head.chunks(piece).for_each(|piece| table.read(piece));
            assert_eq!((table.frame_end(), table.skip, table.texts), (1, 0, 0), "{piece}");
        }
    }

    #[test]
    fn each_frame_of_a_head_counts() {
        let (mut table, insertion) = (Table::default(), field(0x40, 5));
        for (number, frame) in (1..).zip([insertion.clone(), [insertion.clone(), insertion.clone()].concat()]) {
            table.read(&frame);
            assert_eq!(table.frame_end(), number);
        }
        table.read(&[0x82]);
        assert_eq!(table.frame_end(), 2, "a frame without an insertion");
    }

    /// A field that is divided between two frames counts once, in the frame that completes it.
    #[test]
    fn a_field_that_a_frame_cuts_counts_once() {
        for (name, insertion) in
            [("texts", field(0x40, 5)), ("a long length", field(0x40, 200)), ("nothing", vec![0x41, 0])]
        {
            for cut in 1..insertion.len() {
                let mut table = Table::default();
                table.read(&insertion[..cut]);
                assert_eq!(table.frame_end(), 0, "{name}: {cut}");
                table.read(&insertion[cut..]);
                assert_eq!(table.frame_end(), 1, "{name}: {cut}");
                table.end();
                assert_eq!(table.frame_end(), 1, "{name}: {cut}");
            }
        }
    }

    #[test]
    fn a_client_that_empties_the_table_keeps_nothing() {
        let mut table = Table::default();
        for number in 1..=5 {
            assert_eq!(heads(&mut table, &field(0x40, 5)), number);
        }
        assert_eq!(heads(&mut table, &[&[0x20][..], &field(0x40, 5)].concat()), 0);
        assert_eq!(heads(&mut table, &field(0x40, 5)), 0, "a table without room keeps nothing");
        assert_eq!(heads(&mut table, &[&[0x3f, 0xe1, 0x1f][..], &field(0x40, 5)].concat()), 1, "4096 again");
    }

    /// An invalid head makes this reader use neither memory nor time; h2 refuses such a head.
    #[test]
    fn nonsense_ends_with_its_head() {
        let mut table = Table::default();
        table.read(&[0xff; 1000]);
        table.read(&[0x40, 0x7f, 0xff, 0xff, 0xff, 0x7f]);
        table.end();
        assert_eq!((table.skip, table.texts, table.will_insert), (0, 0, false));
    }
}
