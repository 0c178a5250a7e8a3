use proptest::prelude::*;

use super::*;

fn sample() -> Index {
    let chunk = |number, bytes| Chunk { number, bytes, digest: Digest::of(&[number as u8]) };
    Index {
        run: "0123456789abcdef".to_owned(),
        payload_bytes: 12,
        payload_digest: Digest::of(b"payload"),
        unpacked_bytes: 100,
        files: 3,
        window_bytes: 1024,
        group: 2,
        chunks: vec![chunk(1, 5), chunk(0, 5), chunk(100_000, 2)],
    }
}

fn refusal(text: &str) -> String {
    Index::parse(text).unwrap_err().to_string()
}

#[test]
fn what_was_written_is_read_and_the_order_is_the_one_of_the_lines() {
    let index = Index::parse(&sample().to_text()).unwrap();
    assert_eq!(index, sample());
    assert_eq!(index.chunks.iter().map(Chunk::name).collect::<Vec<_>>(), ["00001", "00000", "100000"]);
    assert_eq!([0, 1, 2].map(|place| index.folder(place)), ["00000", "00000", "00001"]);
}

#[test]
fn each_break_of_the_format_is_named_with_its_line() {
    let text = sample().to_text();
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        refusal(&text.replacen(from, to, 1))
    };
    assert_eq!(refusal(""), "index: line 1: the index ends too early");
    assert_eq!(
        changed("index 1", "index 2"),
        "index: line 1: not an index: the first line is not `longhaul-seed-index 1`"
    );
    assert_eq!(changed("run 0", "run G"), "index: line 2: a run has 16 lower-case hex digits");
    assert_eq!(changed("payload 12", "payload 13"), "index: line 10: the chunks do not add up to the payload");
    assert_eq!(changed("payload 12 ", "payload "), "index: line 3: too few words");
    assert_eq!(changed("unpacked 100", "unpacked 99999999999999"), "index: line 4: a number out of range");
    assert_eq!(changed("100 3", "100 +3"), "index: line 4: not a number");
    assert_eq!(changed("window 1024", "window 1073741824"), "index: line 5: a number out of range");
    assert_eq!(changed("group 2", "group 0"), "index: line 6: a number out of range");
    assert_eq!(changed("chunks 3", "chunks 12001"), "index: line 7: a number out of range");
    assert_eq!(changed("chunks 3", "chunks 2"), "index: line 9: the chunks do not add up to the payload");
    assert_eq!(changed("chunks 3", "chunks 4"), "index: line 11: the index ends too early");
    assert_eq!(changed("00000 5", "00001 5"), "index: line 9: a chunk's number comes twice");
    assert_eq!(
        changed("00000 5", "0000 5"),
        "index: line 9: a chunk's number has five digits, or more without zeros in front"
    );
    assert_eq!(
        changed("00000 5", "000000 5"),
        "index: line 9: a chunk's number has five digits, or more without zeros in front"
    );
    assert_eq!(changed("00000 5", "00000 5 5"), "index: line 9: too many words");
    assert_eq!(changed("00000 5", "00000 05"), "index: line 9: a number with zeros in front");
    assert_eq!(refusal(&format!("{text}00009 1 {}\n", Digest::of(b""))), "index: line 11: more lines than chunks");
    assert_eq!(refusal(text.trim_end()), "index: line 10: the index ends too early");
}

proptest! {
    /// Every index that the injector can write is parsed to the same index.
    #[test]
    fn round_trip(
        sizes in prop::collection::vec(1..=CHUNK_BYTES_MAX, 1..200),
        group in 1..=64_u32,
        unpacked in 0..=UNPACKED_BYTES_MAX,
        reverse in any::<bool>(),
    ) {
        let last = sizes.len() as u32 - 1;
        let number = |place: usize| if reverse { last - place as u32 } else { place as u32 };
        let chunks: Vec<Chunk> = sizes
            .iter()
            .enumerate()
            .map(|(place, &bytes)| Chunk { number: number(place), bytes, digest: Digest::of(&bytes.to_le_bytes()) })
            .collect();
        let payload_bytes = sizes.iter().map(|&bytes| u64::from(bytes)).sum();
        let index = Index { payload_bytes, unpacked_bytes: unpacked, group, chunks, ..sample() };
        prop_assert_eq!(Index::parse(&index.to_text()).unwrap(), index);
    }

    /// If an index is still parsed after random changes of a few bytes, it satisfies all limits.
    #[test]
    fn noise_never_breaks_a_bound(place in 0..400_usize, byte in any::<u8>()) {
        let mut bytes = sample().to_text().into_bytes();
        let place = place % bytes.len();
        bytes[place] = byte;
        if let Ok(index) = Index::parse(&String::from_utf8_lossy(&bytes)) {
            prop_assert!(index.chunks.len() <= CHUNKS_MAX && index.group > 0 && index.window_bytes <= WINDOW_BYTES_MAX);
            prop_assert_eq!(index.chunks.iter().map(|chunk| u64::from(chunk.bytes)).sum::<u64>(), index.payload_bytes);
        }
    }
}
