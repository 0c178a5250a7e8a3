//! The decompression of an answer, within a bound.

use std::io::Read as _;

use flate2::read::MultiGzDecoder;

/// A first guess of how much longer the text is.
const RATIO: usize = 4;

/// Why there is no text.
#[derive(Debug)]
pub enum Problem {
    /// The text would be too long.
    TooLarge,
    /// Invalid or truncated gzip.
    Broken(String),
}

/// Unpacks an answer. Never makes more than `most` bytes and one. One answer may have several members, as Go reads
/// them.
///
/// # Errors
///
/// When it is no gzip, or becomes too large.
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
