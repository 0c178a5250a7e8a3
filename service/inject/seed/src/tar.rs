//! The headers of a tar archive (POSIX ustar), limited to what the payload needs: files and folders with short names.
//!
//! Links, devices, sparse files, long names and extended headers are refused by their type, and their content is never
//! read. So no length in an archive decides how much memory the program uses. A general tar library would accept all
//! these types.

/// Number of bytes of a tar header. File contents are padded to a multiple of 512 bytes.
pub const BLOCK: usize = 512;
pub const NAME_BYTES_MAX: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file: its name, and its size in bytes.
    File(String, u64),
    Folder(String),
    Link(String),
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The checksum is wrong, or the bytes are no header.
    #[error("a header whose checksum does not fit")]
    Checksum,
    /// The size is not octal, or too large for its field.
    #[error("a size that is no number")]
    Size,
    /// The name is empty, too long or not text.
    #[error("a name that is no short text")]
    Name,
    #[error("an entry of type {0:#04x}, which is neither file nor folder")]
    Type(u8),
}

pub fn entry(block: &[u8; BLOCK]) -> Result<Entry, HeaderError> {
    if block.iter().all(|byte| *byte == 0) {
        return Ok(Entry::End);
    }
    // The sum of all bytes, those of the checksum itself taken as blanks.
    let sum: u64 =
        block.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) }).sum();
    if octal(&block[148..156]) != Some(sum) {
        return Err(HeaderError::Checksum);
    }
    // A prefix would make the name longer than any name in a payload.
    if block[345] != 0 && &block[257..262] == b"ustar" {
        return Err(HeaderError::Name);
    }
    let name = text(&block[..NAME_BYTES_MAX]).ok_or(HeaderError::Name)?;
    match block[156] {
        b'0' | 0 => Ok(Entry::File(name, octal(&block[124..136]).ok_or(HeaderError::Size)?)),
        b'5' => Ok(Entry::Folder(name)),
        b'1' | b'2' => Ok(Entry::Link(name)),
        other => Err(HeaderError::Type(other)),
    }
}

/// Number of bytes of padding after a content of `bytes`.
pub fn padding(bytes: u64) -> u64 {
    bytes.wrapping_neg() % BLOCK as u64
}

/// The text in `field` before the first NUL; `None` if it is empty.
fn text(field: &[u8]) -> Option<String> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    let text = std::str::from_utf8(&field[..end]).ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// Parses octal digits with blanks or NULs around them. Eleven octal digits allow 8 GiB, more than the size of any
/// payload.
fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim_matches([' ', '\0']);
    let digits = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    digits.then(|| u64::from_str_radix(text, 8).ok()).flatten()
}

/// The header of a file, or of a link to `target` if `kind` is `b'2'`.
#[cfg(test)]
pub fn header(name: &str, bytes: u64, kind: u8, target: &str) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let name = &name.as_bytes()[..name.len().min(NAME_BYTES_MAX)];
    block[..name.len()].copy_from_slice(name);
    block[124..135].copy_from_slice(format!("{bytes:011o}").as_bytes());
    block[156] = kind;
    block[157..157 + target.len()].copy_from_slice(target.as_bytes());
    block[257..263].copy_from_slice(b"ustar\0");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    block
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn files_folders_links_and_nothing_else() {
        assert_eq!(entry(&[0; BLOCK]), Ok(Entry::End));
        assert_eq!(entry(&header("a/b", 1234, b'0', "")), Ok(Entry::File("a/b".into(), 1234)));
        assert_eq!(entry(&header("a/", 0, b'5', "")), Ok(Entry::Folder("a/".into())));
        assert_eq!(entry(&header("a", 0, b'2', "/etc")), Ok(Entry::Link("a".into())));
        for kind in [b'3', b'4', b'6', b'L', b'K', b'x', b'g', b'S'] {
            assert_eq!(entry(&header("a", 9, kind, "")), Err(HeaderError::Type(kind)));
        }
        assert_eq!(entry(&header("", 0, b'0', "")), Err(HeaderError::Name));
        let mut damaged = header("a", 1, b'0', "");
        damaged[0] ^= 1;
        assert_eq!(entry(&damaged), Err(HeaderError::Checksum));
    }

    proptest! {
        /// A written header is parsed to the same name and size, and the file's content is padded to whole blocks.
        #[test]
        fn round_trip(name in "[a-z0-9/]{1,100}", bytes in 0..(8_u64 << 30)) {
            prop_assert_eq!(entry(&header(&name, bytes, b'0', "")), Ok(Entry::File(name, bytes)));
            prop_assert_eq!((bytes + padding(bytes)) % BLOCK as u64, 0);
        }

        /// No bytes cause a panic of the tar parser.
        #[test]
        fn noise(bytes in prop::collection::vec(any::<u8>(), BLOCK)) {
            let _ = entry(&bytes.try_into().unwrap());
        }
    }
}
