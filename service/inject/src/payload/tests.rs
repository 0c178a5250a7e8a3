use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::images::tests::{Written, collected};

/// Random bytes, which cannot be compressed.
fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut random = seed | 1;
    let step = |_| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 56) as u8
    };
    (0..bytes).map(step).collect()
}

fn images(folder: &Path, layers: &[&[u8]]) -> Images {
    let mut written = Written::new(&folder.join("layout"));
    written.list(written.image(layers), Some("team/app:1"));
    let source = format!("oci:{}", written.folder.display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(collected(&[source], None)).unwrap()
}

/// Writes the files of a payload as a kubelet mounts them.
fn mounted(payload: &Payload, folder: &Path) -> (PathBuf, PathBuf) {
    let (chunks, index) = (folder.join("chunks"), folder.join("index"));
    for (place, chunk) in payload.index.chunks.iter().enumerate() {
        let into = chunks.join(payload.index.folder(place));
        fs::create_dir_all(&into).unwrap();
        fs::write(into.join(chunk.name()), payload.chunk(place).unwrap()).unwrap();
    }
    fs::write(&index, payload.index.to_text()).unwrap();
    (chunks, index)
}

#[test]
fn the_same_images_make_the_same_run_and_other_chunks_another() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path(), &[&noise(100_000, 1), b"text"]);
    let pack = |chunk_bytes| Payload::pack(&images, chunk_bytes, folder.path()).unwrap();
    let (a, b, c) = (pack(10_000), pack(10_000), pack(20_000));
    assert_eq!(a.index, b.index);
    assert_ne!(a.index.run, c.index.run);
    assert_eq!(a.index.payload_digest, c.index.payload_digest);
    let joined: Vec<u8> = (0..a.index.chunks.len()).flat_map(|place| a.chunk(place).unwrap()).collect();
    assert_eq!((joined.len() as u64, Digest::of(&joined)), (a.index.payload_bytes, a.index.payload_digest));
    assert_eq!(Index::parse(&a.index.to_text()).unwrap(), a.index);
}

#[test]
fn what_cannot_be_packed_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let mut images = images(folder.path(), &[&noise(50_000, 1)]);
    let says =
        |images: &Images, chunk_bytes| Payload::pack(images, chunk_bytes, folder.path()).unwrap_err().to_string();
    assert!(says(&images, 100).contains("4096 to 1048576 bytes, not 100"));
    assert!(says(&images, 1_048_577).contains("not 1048577, because of the limit of a ConfigMap"));
    let layer = Digest::of(&noise(50_000, 1));
    fs::write(folder.path().join("layout/blobs/sha256").join(layer.to_string()), noise(50_000, 2)).unwrap();
    assert_eq!(
        says(&images, 10_000),
        format!("sha256:{layer}: its bytes have the digest {}", Digest::of(&noise(50_000, 2)))
    );
    fs::write(folder.path().join("layout/blobs/sha256").join(layer.to_string()), b"short").unwrap();
    assert!(says(&images, 10_000).contains("became shorter"));
    let repository = images.catalog.repositories.get_mut("team/app").unwrap();
    let digest = repository.tags["1"];
    for number in 0..10_000 {
        repository.tags.insert(format!("tag-{number}"), digest);
    }
    assert!(says(&images, 10_000).contains("a catalog of 262144 is exceeded"));
}

/// The injected program unpacks a payload that this crate has packed, so the two programs agree on the formats.
#[test]
fn the_seed_unpacks_what_was_packed() {
    let folder = tempfile::tempdir().unwrap();
    let layer = noise(300_000, 7);
    let images = images(folder.path(), &[&layer, b"text text text"]);
    let payload = Payload::pack(&images, 4_096, folder.path()).unwrap();
    assert!(payload.index.chunks.len() > 2 * GROUP as usize);
    let (chunks, index) = mounted(&payload, folder.path());
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    let digest = Digest::of(payload.index.to_text().as_bytes()).to_string();
    let arguments =
        ["--index", index.to_str().unwrap(), "--index-sha256", &digest, "--chunks", chunks.to_str().unwrap()];
    let arguments = arguments.into_iter().chain(["--out", out.to_str().unwrap()]).map(Into::into);
    let args = service_seed::args::Args::parse(arguments).unwrap();
    let store = service_seed::assembled(&args).unwrap();
    assert_eq!(fs::read(store.join("blobs/sha256").join(Digest::of(&layer).to_string())).unwrap(), layer);
    assert_eq!(fs::read(store.join("catalog")).unwrap(), images.catalog.to_text().as_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// For any sizes of payload and chunks, all chunks but the last have the same size, and all chunks together are the
    /// payload.
    #[test]
    fn chunks_are_the_payload(bytes in 0..60_000_usize, chunk_bytes in 4_096..20_000_u32, seed in any::<u64>()) {
        let folder = tempfile::tempdir().unwrap();
        let images = images(folder.path(), &[&noise(bytes, seed)]);
        let payload = Payload::pack(&images, chunk_bytes, folder.path()).unwrap();
        let (last, others) = payload.index.chunks.split_last().unwrap();
        prop_assert!(others.iter().all(|chunk| chunk.bytes == chunk_bytes) && last.bytes <= chunk_bytes);
        let mut joined = Vec::new();
        for (place, chunk) in payload.index.chunks.iter().enumerate() {
            let bytes = payload.chunk(place).unwrap();
            prop_assert_eq!(Digest::of(&bytes), chunk.digest);
            joined.extend(bytes);
        }
        prop_assert_eq!(Digest::of(&joined), payload.index.payload_digest);
    }
}
