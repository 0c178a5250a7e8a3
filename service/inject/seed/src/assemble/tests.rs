use std::io::Write as _;

use super::*;
use crate::index::Chunk;
use crate::tar::header;

/// A payload of one catalog and one blob of `bytes`, cut into chunks of `chunk` bytes, as the injector would write it.
fn sample(folder: &Path, bytes: usize, chunk: usize) -> (Args, Index) {
    let mut random = 1_u64;
    let blob: Vec<u8> = (0..bytes)
        .map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 56) as u8
        })
        .collect();
    let mut archive = Vec::new();
    let name = format!("blobs/sha256/{}", Digest::of(&blob));
    for (name, content) in [("catalog", &b"longhaul-catalog 1\n"[..]), (&name, &blob)] {
        archive.extend_from_slice(&header(name, content.len() as u64, b'0', ""));
        archive.extend_from_slice(content);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(17).unwrap();
    encoder.write_all(&archive).unwrap();
    let payload = encoder.finish().unwrap();
    let chunks = payload.chunks(chunk).enumerate().map(|(number, content)| Chunk {
        number: number as u32,
        bytes: content.len() as u32,
        digest: Digest::of(content),
    });
    let index = Index {
        run: "0".repeat(16),
        payload_bytes: payload.len() as u64,
        payload_digest: Digest::of(&payload),
        unpacked_bytes: bytes as u64 + 19,
        files: 2,
        window_bytes: 1 << 17,
        group: 8,
        chunks: chunks.collect(),
    };
    for (place, content) in payload.chunks(chunk).enumerate() {
        let into = folder.join("chunks").join(index.folder(place));
        fs::create_dir_all(&into).unwrap();
        fs::write(into.join(index.chunks[place].name()), content).unwrap();
    }
    fs::create_dir(folder.join("out")).unwrap();
    let args = args(folder, &index);
    (args, index)
}

fn args(folder: &Path, index: &Index) -> Args {
    fs::write(folder.join("index"), index.to_text()).unwrap();
    Args {
        index: folder.join("index"),
        index_sha256: Digest::of(index.to_text().as_bytes()),
        chunks: folder.join("chunks"),
        out: folder.join("out"),
        listen: None,
    }
}

#[test]
fn chunks_become_the_folder_that_was_packed() {
    let folder = tempfile::tempdir().unwrap();
    let (args, _) = sample(folder.path(), 100_000, 4_000);
    let store = assemble(&args).unwrap();
    assert_eq!(fs::read_dir(store.folder.join("blobs/sha256")).unwrap().count(), 1);
    // A restarted container in the same Pod begins anew.
    assemble(&args).unwrap();
}

#[test]
fn nothing_is_left_when_a_chunk_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let (args, index) = sample(folder.path(), 100_000, 4_000);
    let path = folder.path().join("chunks/00001/00013");
    let mut bytes = fs::read(&path).unwrap();
    bytes[17] ^= 1;
    fs::write(&path, bytes).unwrap();
    let failure = assemble(&args).unwrap_err().to_string();
    assert!(failure.starts_with(&format!("chunk 00013 (14 of {}): corrupt: ", index.chunks.len())), "{failure}");
    assert_eq!(fs::read_dir(folder.path().join("out")).unwrap().count(), 0);
}

#[test]
fn an_index_that_was_not_announced_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (args, _) = sample(folder.path(), 1_000, 400);
    fs::write(&args.index, "rubbish").unwrap();
    assert!(matches!(assemble(&args), Err(Failure::IndexDigest { .. })));
}

#[test]
fn the_whole_is_compared_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut index) = sample(folder.path(), 10_000, 400);
    index.payload_digest = Digest::of(b"other");
    let failure = assemble(&args(folder.path(), &index)).unwrap_err();
    assert!(matches!(failure, Failure::Whole { .. }), "{failure}");
    assert_eq!(fs::read_dir(folder.path().join("out")).unwrap().count(), 0);
}

#[test]
fn two_chunks_in_the_wrong_order_do_not_make_a_payload() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut index) = sample(folder.path(), 10_000, 400);
    // Every chunk is right, and the index has another order: the files lie where it says.
    let folders = folder.path().join("chunks/00000");
    index.chunks.swap(2, 3);
    assert!(folders.join("00002").exists());
    let failure = assemble(&args(folder.path(), &index)).unwrap_err();
    assert!(matches!(failure, Failure::Whole { .. } | Failure::Payload(_)), "{failure}");
}
