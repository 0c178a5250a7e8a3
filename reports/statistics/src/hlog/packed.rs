//! Reads one histogram of an interval log: base64 text of HdrHistogram's V2 format, usually deflated.
//!
//! Owns the checks of a histogram's bytes before memory is allocated. Five kilobytes can claim to be a histogram of
//! fifty megabytes, or to have four gigabytes of counts; the library `hdrhistogram` would allocate that memory.

use std::io::Read as _;

use base64::Engine as _;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::Deserializer;

use super::Histogram;

/// The first four bytes of a plain histogram, and of a deflated one.
const COOKIE: u32 = 0x1c84_9313;
const COOKIE_DEFLATED: u32 = 0x1c84_9314;
/// Length of the head of a histogram, in bytes: cookie, length of the counts, offset, digits, lowest and highest value,
/// ratio.
const HEAD_BYTES: usize = 40;
/// The precision of the writer's histograms, in digits: values are exact to one part in a thousand.
const DIGITS_MAX: u32 = 3;
/// Maximum number of counts in a histogram: buckets of this precision up to the largest value, rounded up to 40 times
/// 1024 (38 are needed).
const COUNTS_MAX: usize = 40 << 10;
/// Maximum length of a plain histogram, in bytes: a count has at most nine bytes.
const PLAIN_BYTES_MAX: usize = HEAD_BYTES + 9 * COUNTS_MAX;

/// The histogram, or the reason why it is refused. A histogram's range must not exceed `highest_us`, rounded as
/// histograms round.
pub(super) fn histogram(encoded: &str, highest_us: u64) -> Result<Histogram, String> {
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(encoded)
        .map_err(|error| format!("the histogram is not base64: {error}"))?;
    let plain = inflated(bytes)?;
    check(&plain, highest_us.checked_next_power_of_two().unwrap_or(u64::MAX))?;
    Deserializer::new().deserialize(&mut plain.as_slice()).map_err(|error| format!("damaged histogram: {error}"))
}

/// The decompressed bytes of a histogram, in bounded memory.
fn inflated(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    match number(&bytes, 0)? {
        COOKIE => Ok(bytes),
        COOKIE_DEFLATED => {
            let mut plain = Vec::new();
            let deflated = bytes.get(8..).unwrap_or_default();
            let mut inflating = ZlibDecoder::new(deflated).take(PLAIN_BYTES_MAX as u64 + 1);
            inflating.read_to_end(&mut plain).map_err(|error| format!("damaged histogram: {error}"))?;
            if number(&plain, 0)? == COOKIE {
                Ok(plain)
            } else {
                Err("damaged histogram: its cookie is unknown".into())
            }
        }
        _ => Err("damaged histogram: its cookie is unknown".into()),
    }
}

/// Refuses a histogram that no run writes.
fn check(plain: &[u8], highest_max: u64) -> Result<(), String> {
    if plain.len() > PLAIN_BYTES_MAX {
        return Err(format!("a histogram of more than {PLAIN_BYTES_MAX} bytes, the most that a run writes"));
    }
    let (lowest, highest) = (long(plain, 16)?, long(plain, 24)?);
    let (digits, counts) = (number(plain, 12)?, plain.get(HEAD_BYTES..).ok_or_else(short)?);
    if digits > DIGITS_MAX || lowest == 0 || highest > highest_max {
        return Err(format!("a histogram of {digits} digits from {lowest} to {highest}, which no run writes"));
    }
    if number(plain, 4)? as usize != counts.len() {
        return Err("damaged histogram: its counts are not as long as it says".into());
    }
    check_counts(counts)
}

/// Checks the counts of a histogram. Each count is a zigzag varint of at most nine bytes; a negative number stands for
/// that many zeros.
fn check_counts(mut counts: &[u8]) -> Result<(), String> {
    let (mut places, mut sum) = (0_u64, 0_u64);
    while !counts.is_empty() {
        let last = counts.iter().take(8).position(|byte| byte & 0x80 == 0).unwrap_or(8);
        let (varint, rest) = counts.split_at_checked(last + 1).ok_or_else(short)?;
        counts = rest;
        let bits = |(at, byte): (usize, &u8)| u64::from(if at == 8 { *byte } else { byte & 0x7f }) << (7 * at);
        let zigzag: u64 = varint.iter().enumerate().map(bits).fold(0, |all, part| all | part);
        let size = zigzag >> 1;
        let zeros = if zigzag & 1 == 1 { size.saturating_add(1) } else { 1 };
        places = places.saturating_add(zeros);
        sum = sum.saturating_add(if zigzag & 1 == 0 { size } else { 0 });
        if places > COUNTS_MAX as u64 {
            return Err("a histogram of more counts than its range has".into());
        }
    }
    // Thousands of such sums are added up later.
    if sum > 1 << 40 { Err(format!("a histogram of {sum} values, which no run measures")) } else { Ok(()) }
}

fn number(bytes: &[u8], at: usize) -> Result<u32, String> {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map(u32::from_be_bytes).ok_or_else(short)
}

fn long(bytes: &[u8], at: usize) -> Result<u64, String> {
    Ok((u64::from(number(bytes, at)?) << 32) | u64::from(number(bytes, at + 4)?))
}

fn short() -> String {
    "damaged histogram: it ends too early".into()
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer, V2Serializer};
    use proptest::prelude::*;
    use std::io::Write as _;

    use super::*;

    /// Four years, in microseconds, as the highest value of a histogram.
    const HIGHEST_US: u64 = 4 * 366 * 24 * 3_600_000_000;

    fn histogram(encoded: &str) -> Result<Histogram, String> {
        super::histogram(encoded, HIGHEST_US)
    }

    fn text(bytes: &[u8]) -> String {
        base64::engine::general_purpose::STANDARD.encode(bytes)
    }

    fn head(length: u32, digits: u32, lowest: u64, highest: u64) -> Vec<u8> {
        let mut head = [COOKIE, length, 0, digits].map(u32::to_be_bytes).concat();
        head.extend([lowest.to_be_bytes(), highest.to_be_bytes(), 1f64.to_be_bytes()].concat());
        head
    }

    fn deflated(plain: &[u8]) -> Vec<u8> {
        let mut out = ZlibEncoder::new(Vec::new(), Compression::best());
        out.write_all(plain).unwrap();
        let out = out.finish().unwrap();
        [&COOKIE_DEFLATED.to_be_bytes()[..], &u32::try_from(out.len()).unwrap().to_be_bytes(), &out].concat()
    }

    /// A histogram that claims more memory than its bytes can fill is refused with the reason, before memory is
    /// allocated.
    #[test]
    fn histograms_that_no_run_writes_are_refused() {
        let zeros = vec![0; 1 << 20];
        for (plain, why) in [
            (head(0, 5, 1, u64::MAX >> 1), "5 digits"),
            (head(0, 3, 1, u64::MAX >> 1), "which no run writes"),
            (head(u32::MAX, 3, 1, 1000), "not as long as it says"),
            ([head(1 << 20, 3, 1, 1000), zeros].concat(), "more than 368680 bytes"),
            // Nine bytes that encode i64::MIN: that many zeros follow.
            ([head(9, 3, 1, 1000), vec![0xff; 9]].concat(), "more counts than its range has"),
            ([head(1, 3, 1, 1000), vec![0x80]].concat(), "ends too early"),
        ] {
            for bytes in [deflated(&plain), plain] {
                let error = histogram(&text(&bytes)).unwrap_err();
                assert!(error.contains(why), "{error}");
            }
        }
        assert!(histogram("AAAA").unwrap_err().contains("ends too early"));
        assert!(histogram("!").unwrap_err().contains("not base64"));
    }

    proptest! {
        /// Every histogram that was written can be read back, plain and deflated.
        #[test]
        fn what_was_written_is_read(values in proptest::collection::vec(1..HIGHEST_US, 0..50)) {
            let mut whole = Histogram::new(3).unwrap();
            for value in values {
                whole.record(value).unwrap();
            }
            let (mut plain, mut packed) = (Vec::new(), Vec::new());
            V2Serializer::new().serialize(&whole, &mut plain).unwrap();
            V2DeflateSerializer::new().serialize(&whole, &mut packed).unwrap();
            for bytes in [plain, packed] {
                prop_assert_eq!(&histogram(&text(&bytes)).unwrap(), &whole);
            }
        }
    }
}
