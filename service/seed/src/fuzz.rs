//! A door for the fuzz targets in `service/fuzz`: what reads outside data, called with bytes.
//!
//! Every function panics when a property is broken, and on nothing else.

use crate::catalog::Catalog;
use crate::http::{self, Range, Route};
use crate::index::{CHUNKS_MAX, Index, WINDOW_BYTES_MAX};
use crate::tar::{self, Entry};
use crate::unpack::{Bounds, unpack};

/// Indexes and catalogs: what is read is within every bound and is read again from what it is written as.
pub fn index(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(index) = Index::parse(&text) {
        assert!(index.chunks.len() <= CHUNKS_MAX && index.group > 0 && index.window_bytes <= WINDOW_BYTES_MAX);
        assert_eq!(index.chunks.iter().map(|chunk| u64::from(chunk.bytes)).sum::<u64>(), index.payload_bytes);
        assert_eq!(Index::parse(&index.to_text()).ok(), Some(index));
    }
    if let Ok(catalog) = Catalog::parse(&text) {
        assert_eq!(Catalog::parse(&catalog.to_text()).ok(), Some(catalog));
    }
}

/// Archives: as a header, and as a compressed payload that is unpacked below a folder and nowhere else.
pub fn tar(bytes: &[u8]) {
    if let Some(Ok(Entry::File(name, size))) = bytes.first_chunk().map(tar::entry) {
        assert!(name.len() <= tar::NAME_BYTES_MAX && size < 1 << 36);
    }
    let outer = std::env::temp_dir().join(format!("longhaul-seed-fuzz-{}", std::process::id()));
    let inner = outer.join("in");
    std::fs::create_dir_all(&inner).expect("the temporary folder can be written");
    let bounds = Bounds { bytes: 1 << 16, files: 8, window_bytes: 1 << 16 };
    // A frame of one raw block, so that the fuzzer need not find out how to compress.
    let size = bytes.len().min(1 << 16);
    let block = u32::try_from(size << 3 | 1).unwrap_or(u32::MAX).to_le_bytes();
    let frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0x30][..], &block[..3], &bytes[..size]].concat();
    let _ = unpack(&frame[..], &inner, bounds);
    let names: Vec<_> =
        std::fs::read_dir(&outer).expect("the folder is ours").flatten().map(|one| one.file_name()).collect();
    assert_eq!(names, ["in"], "something appeared beside the folder");
    std::fs::remove_dir_all(&outer).expect("the folder is ours");
}

/// Heads of requests: what is read has a path, what it asks for has a harmless name, a range lies within its content.
pub fn head(bytes: &[u8]) {
    let Some(length) = http::complete(bytes) else { return };
    let Ok(head) = http::parse(&bytes[..length]) else { return };
    assert!(head.path.starts_with('/'));
    match http::route(head.path) {
        Route::Tag(name, _)
        | Route::Manifest(name, _)
        | Route::Blob(name, _)
        | Route::Tags(name)
        | Route::Referrers(name, _) => {
            assert!(!name.split('/').any(|part| part.is_empty() || part.starts_with('.')), "{name}");
        }
        _ => {}
    }
    for size in [0, 1, 1000, u64::MAX] {
        if let Range::Part(from, to) = http::range(head.range, size) {
            assert!(from < to && to <= size);
        }
    }
}
