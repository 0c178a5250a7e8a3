//! Decompresses a webhook's answer, up to a maximum size.

use std::io::Read as _;

use flate2::read::MultiGzDecoder;

/// The expected ratio of decompressed to compressed size.
const RATIO: usize = 4;

/// Why an answer cannot be decompressed.
#[derive(Debug)]
pub enum Problem {
    /// The decompressed text would be longer than the limit.
    TooLarge,
    /// Invalid or truncated gzip.
    Broken(String),
}

/// Decompresses an answer to at most `most` bytes, plus one byte that shows that the answer is too large. An answer may
/// consist of several gzip members, as in Go.
///
/// # Errors
///
/// When the bytes are no gzip, or the text is longer than `most`.
pub fn unpack(packed: &[u8], most: usize) -> Result<Vec<u8>, Problem> {
    let mut plain = Vec::with_capacity(packed.len().saturating_mul(RATIO).min(most));
    let unpacked = MultiGzDecoder::new(packed).take(most as u64 + 1).read_to_end(&mut plain);
    unpacked.map_err(|error| Problem::Broken(error.to_string()))?;
    if plain.len() > most { Err(Problem::TooLarge) } else { Ok(plain) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn packed(plain: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_bound_holds_to_the_byte() {
        assert_eq!(unpack(&packed(&[7; 1000]), 1000).unwrap(), [7; 1000]);
        assert!(matches!(unpack(&packed(&[7; 1001]), 1000), Err(Problem::TooLarge)));
        assert!(
            unpack(&packed(&vec![0; 100 << 20]), 1 << 20).is_err_and(|problem| matches!(problem, Problem::TooLarge))
        );
        let two = [packed(b"one, "), packed(b"two")].concat();
        assert_eq!(unpack(&two, 100).unwrap(), b"one, two");
        assert!(matches!(unpack(b"", 100), Err(Problem::Broken(_))));
    }
}
