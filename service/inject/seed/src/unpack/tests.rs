use super::*;
use crate::tar::header;

const CATALOG_TEXT: &str = "longhaul-catalog 1\n";

fn bounds() -> Bounds {
    Bounds { bytes: 1 << 20, files: 10, window_bytes: 1 << 17 }
}

/// An archive of files, with its end.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, content) in files {
        bytes.extend_from_slice(&header(name, content.len() as u64, b'0', ""));
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(tar::BLOCK), 0);
    }
    bytes.resize(bytes.len() + 2 * tar::BLOCK, 0);
    bytes
}

fn compressed(bytes: &[u8], window_log: u32) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(window_log).unwrap();
    io::copy(&mut &bytes[..], &mut encoder).unwrap();
    encoder.finish().unwrap()
}

fn outcome(archive: &[u8], bounds: Bounds) -> Result<tempfile::TempDir, String> {
    let folder = tempfile::tempdir().unwrap();
    let result = unpack(&compressed(archive, 17)[..], folder.path(), bounds);
    result.map(|_| folder).map_err(|failure| failure.to_string())
}

#[test]
fn a_payload_is_unpacked() {
    let blob = format!("{BLOBS}/{}", Digest::of(b"blob"));
    let folder =
        outcome(&archive(&[(CATALOG, CATALOG_TEXT.as_bytes()), (&blob, b"blob"), ("oci-layout", b"{}")]), bounds());
    assert_eq!(fs::read(folder.unwrap().path().join(blob)).unwrap(), b"blob");
}

#[test]
fn no_name_leads_out_and_no_link_is_made() {
    let hex = Digest::of(b"x").to_string();
    let catalog = (CATALOG, CATALOG_TEXT.as_bytes());
    for name in [
        "../evil",
        "/etc/passwd",
        "blobs/sha256/../../evil",
        "blobs/sha256/evil",
        "blobs/../catalog",
        "./catalog",
        "referrers/x",
        "blobs/sha256//x",
        "evil",
        &format!("blobs/sha256/../sha256/{hex}"),
        &format!("blobs/sha512/{hex}"),
        &format!("/blobs/sha256/{hex}"),
    ] {
        let refusal = outcome(&archive(&[catalog, (name, b"x")]), bounds()).unwrap_err();
        assert_eq!(refusal, format!("payload: `{name}` is no name that a payload has"));
    }
    for kind in [b'1', b'2'] {
        let mut bytes = header(&format!("{BLOBS}/{hex}"), 0, kind, "/etc/passwd").to_vec();
        bytes.extend_from_slice(&archive(&[catalog]));
        assert_eq!(outcome(&bytes, bounds()).unwrap_err(), format!("payload: `{BLOBS}/{hex}` is a link"));
    }
    for kind in [b'3', b'6', b'L', b'x', b'g', b'S'] {
        let mut bytes = header("catalog", 0, kind, "").to_vec();
        bytes.extend_from_slice(&archive(&[catalog]));
        let refusal = outcome(&bytes, bounds()).unwrap_err();
        assert!(refusal.ends_with("which is neither file nor folder"), "{refusal}");
    }
}

#[test]
fn sizes_and_counts_are_bounded_and_each_name_comes_once() {
    let catalog = (CATALOG, CATALOG_TEXT.as_bytes());
    let large = [0; 100];
    let few = Bounds { bytes: 100, ..bounds() };
    let refusal = outcome(&archive(&[catalog, ("index.json", &large)]), few).unwrap_err();
    assert_eq!(refusal, "payload: `index.json` is larger than the index says");
    let refusal = outcome(&archive(&[catalog, ("index.json", b"")]), Bounds { files: 1, ..bounds() }).unwrap_err();
    assert_eq!(refusal, "payload: `index.json` is one file more than the index says");
    assert_eq!(outcome(&archive(&[catalog, catalog]), bounds()).unwrap_err(), "payload: `catalog` comes twice");
    assert_eq!(outcome(&archive(&[]), bounds()).unwrap_err(), "payload: it has no catalog");
    let long = vec![b'x'; CATALOG_BYTES_MAX + 1];
    let refusal = outcome(&archive(&[(CATALOG, &long)]), bounds()).unwrap_err();
    assert_eq!(refusal, "payload: its catalog has more than 262144 bytes");
    // A header can state 8 GiB without a single byte behind it.
    let mut bytes = header("index.json", (8 << 30) - 1, b'0', "").to_vec();
    bytes.extend_from_slice(&archive(&[catalog]));
    let all = Bounds { bytes: u64::MAX, ..bounds() };
    assert_eq!(outcome(&bytes, all).unwrap_err(), "payload: it ends within `index.json`");
}

#[test]
fn what_is_cut_off_or_appended_is_noticed() {
    let whole = archive(&[(CATALOG, CATALOG_TEXT.as_bytes())]);
    let frame = compressed(&whole, 17);
    let refusal = |bytes: &[u8]| {
        let folder = tempfile::tempdir().unwrap();
        unpack(bytes, folder.path(), bounds()).unwrap_err().to_string()
    };
    assert!(refusal(&[]).starts_with("payload: not a zstd frame"));
    assert!(refusal(b"PK\x03\x04 and so on").starts_with("payload: not a zstd frame"));
    for length in [frame.len() - 1, frame.len() / 2] {
        assert!(refusal(&frame[..length]).starts_with("payload: "), "{length}");
    }
    let appended = [&frame[..], b"x"].concat();
    assert_eq!(refusal(&appended), "payload: there is something behind the compressed archive");
    assert_eq!(outcome(&whole[..whole.len() - 1024], bounds()).unwrap_err(), "payload: it ends too early");
    // Some zeros are padding; gigabytes of them cost their author nothing.
    let mut more = whole.clone();
    more.resize(whole.len() + (1 << 20), 0);
    assert!(outcome(&more, bounds()).is_ok());
    more.resize(whole.len() + (5 << 20), 0);
    let refusal = outcome(&more, bounds()).unwrap_err();
    assert_eq!(refusal, "payload: there are more than 4194304 zeros behind the end of the archive");
    let mut more = whole.clone();
    more.extend_from_slice(b"more");
    assert_eq!(outcome(&more, bounds()).unwrap_err(), "payload: there is something behind the end of the archive");
}

#[test]
fn a_window_larger_than_announced_is_refused_before_it_is_made() {
    let noise: Vec<u8> = (0..600_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let whole = archive(&[(CATALOG, CATALOG_TEXT.as_bytes()), ("index.json", &noise)]);
    let folder = tempfile::tempdir().unwrap();
    let refusal = unpack(&compressed(&whole, 19)[..], folder.path(), bounds()).unwrap_err().to_string();
    assert!(refusal.contains("a window of at most 131072 bytes"), "{refusal}");
}

proptest::proptest! {
    /// Whatever an archive contains, files appear only below the folder, and no link is made.
    #[test]
    fn nothing_leaves_the_folder(name in "[./a-z0-9]{1,40}", kind in proptest::sample::select(&b"0125\0"[..]), target in "[./a-z]{0,20}") {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("in");
        fs::create_dir(&folder).unwrap();
        let mut bytes = header(&name, 0, kind, &target).to_vec();
        bytes.extend_from_slice(&archive(&[]));
        let _ = unpack(&compressed(&bytes, 17)[..], &folder, bounds());
        proptest::prop_assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 1);
        let mut todo = vec![folder];
        while let Some(folder) = todo.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                proptest::prop_assert!(!entry.file_type().unwrap().is_symlink());
                if entry.file_type().unwrap().is_dir() {
                    todo.push(entry.path());
                }
            }
        }
    }
}
