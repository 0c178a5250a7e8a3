//! Tests of the HTTP/2 frame filter with bytes in pieces of any size.

use mock_faults::{Fault, FaultId, Name};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

const ID: FaultId = FaultId(1);

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn any_frame() -> impl Strategy<Value = (u8, u8, u32, Vec<u8>)> {
    let kind = prop_oneof![Just(TYPE_PING), Just(TYPE_HEADERS), 0u8..=9];
    (kind, 0u8..=1, 0u32..9, proptest::collection::vec(any::<u8>(), 0..40))
}

/// A running fault that leaves PINGs unanswered, and a connection that the fault hits if `deaf` is set.
fn connection(deaf: bool) -> (Arc<Handle>, Arc<Faults>) {
    let (handle, faults) = (Arc::new(Handle::new(1, 0)), Arc::new(Faults::new(0)));
    faults.begin(ID, &Fault::armed(Name::NoPong)).unwrap();
    handle.speaks(2);
    if deaf {
        assert!(handle.ignore_pings(ID));
    }
    (handle, faults)
}

/// Sends `wire` through the filter in pieces of the sizes in `pieces`, and reads the filter's output in pieces of at
/// most `reads` bytes.
async fn passed(wire: &[u8], pieces: &[usize], reads: usize, deaf: bool) -> (Vec<u8>, u32, u64) {
    let (near, mut far) = duplex(64);
    let (handle, faults) = connection(deaf);
    let mut frames = Frames::new(near, handle, faults.clone());
    let writing = async {
        let mut rest = wire;
        for size in pieces.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            far.write_all(piece).await.unwrap();
            rest = after;
        }
        drop(far);
    };
    let mut got = Vec::new();
    let reading = async {
        let mut buffer = vec![0; reads];
        loop {
            match frames.read(&mut buffer).await.unwrap() {
                0 => break,
                count => got.extend_from_slice(&buffer[..count]),
            }
        }
    };
    tokio::join!(writing, reading);
    (got, frames.last_stream, faults.hits(ID))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Without a fault, the filter passes every byte unchanged; with a fault, the filter removes the client's PINGs and
    /// no other frames.
    #[test]
    fn only_pings_are_taken_out(
        frames in proptest::collection::vec(any_frame(), 0..12),
        pieces in proptest::collection::vec(1usize..30, 1..5),
        reads in 1usize..40,
        cut in 0usize..8,
    ) {
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let (mut all, mut kept) = (preface.to_vec(), preface.to_vec());
        let mut pings = 0;
        for (kind, flags, stream, payload) in &frames {
            let bytes = frame(*kind, *flags, *stream, payload);
            all.extend(&bytes);
            if *kind == TYPE_PING && flags & FLAG_ACK == 0 {
                pings += 1;
            } else {
                kept.extend(&bytes);
            }
        }
        // A connection that ends inside a header.
        let tail = &frame(0, 0, 1, b"")[..cut];
        all.extend(tail);
        kept.extend(tail);
        let last = frames.iter().filter(|(kind, ..)| *kind == TYPE_HEADERS).map(|(.., stream, _)| *stream).max();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (healthy, seen, _) = runtime.block_on(passed(&all, &pieces, reads, false));
        prop_assert_eq!(healthy, all.clone());
        prop_assert_eq!(seen, last.unwrap_or(0));
        let (deaf, _, hits) = runtime.block_on(passed(&all, &pieces, reads, true));
        prop_assert_eq!(deaf, kept);
        prop_assert_eq!(hits, pings);
    }

    /// The filter inserts a GOAWAY between two whole frames, however the writer splits its bytes.
    #[test]
    fn a_goaway_goes_between_frames(
        frames in proptest::collection::vec(any_frame(), 1..8),
        piece in 1usize..30,
        before in 0usize..60,
    ) {
        let wire: Vec<Vec<u8>> = frames.iter().map(|(kind, flags, stream, payload)| frame(*kind, *flags, *stream, payload)).collect();
        let all = wire.concat();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (got, sent_before) = runtime.block_on(async {
            let (near, mut far) = duplex(64 * 1024);
            let (handle, faults) = connection(false);
            let mut out = Frames::new(near, handle.clone(), faults);
            let mut sent = 0;
            let mut told_at = None;
            while sent < all.len() {
                if sent >= before && told_at.is_none() {
                    assert!(handle.go_away(Goaway { code: 0xb, drain: true }));
                    told_at = Some(sent);
                }
                let end = all.len().min(sent + piece);
                sent += out.write(&all[sent..end]).await.unwrap();
            }
            if told_at.is_none() {
                assert!(handle.go_away(Goaway { code: 0xb, drain: true }));
            }
            out.flush().await.unwrap();
            drop(out);
            let mut got = Vec::new();
            far.read_to_end(&mut got).await.unwrap();
            (got, told_at.unwrap_or(all.len()))
        });
        let mut at = 0;
        let boundaries = std::iter::once(0).chain(wire.iter().map(|frame| { at += frame.len(); at }));
        // The first boundary that the writer reached after the request for a GOAWAY.
        let inserted = goaway(0, 0xb);
        let fits = boundaries.filter(|at| *at >= sent_before).any(|at| {
            got == [&all[..at], &inserted[..], &all[at..]].concat()
        });
        prop_assert!(fits, "told at {sent_before} of {}", all.len());
    }
}
