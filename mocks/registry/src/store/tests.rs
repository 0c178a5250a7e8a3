//! Tests of the store under any history of pushes and deletions.

use proptest::prelude::*;

use super::*;

fn manifest(text: &str, subject: Option<&Digest>) -> Manifest {
    let subject = subject.map_or(String::new(), |s| format!(r#","subject":{{"digest":"{s}"}}"#));
    let body = format!(r#"{{"schemaVersion":2,"annotations":{{"t":"{text}"}},"artifactType":"t/{text}"{subject}}}"#);
    Manifest::read(Some("application/json"), body.into()).unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    PutBlob(u8, u8),
    DeleteBlob(u8, u8),
    Mount(u8, u8, u8),
    PutManifest(u8, u8, u8),
    DeleteTag(u8, u8),
    DeleteManifest(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let n = 0..3_u8;
    prop_oneof![
        (n.clone(), n.clone()).prop_map(|(r, b)| Step::PutBlob(r, b)),
        (n.clone(), n.clone()).prop_map(|(r, b)| Step::DeleteBlob(r, b)),
        (n.clone(), n.clone(), n.clone()).prop_map(|(f, t, b)| Step::Mount(f, t, b)),
        (n.clone(), n.clone(), n.clone()).prop_map(|(r, m, t)| Step::PutManifest(r, m, t)),
        (n.clone(), n.clone()).prop_map(|(r, t)| Step::DeleteTag(r, t)),
        (n.clone(), n).prop_map(|(r, m)| Step::DeleteManifest(r, m)),
    ]
}

proptest! {
    /// After any history the cap holds, and removing all content frees all bytes but those of the repositories' names.
    #[test]
    fn bytes_are_neither_lost_nor_invented(steps in prop::collection::vec(step(), 0..60)) {
        let cap = 5_000;
        let mut store = Store::new(cap);
        let repo = |n: u8| format!("r{n}");
        let content = |n: u8| Bytes::from(vec![n; 100 + usize::from(n)]);
        for step in steps {
            match step {
                Step::PutBlob(r, b) => {
                    let _ = store.put_blob(&repo(r), &Digest::sha256(&content(b)), content(b));
                }
                Step::DeleteBlob(r, b) => {
                    store.delete_blob(&repo(r), &Digest::sha256(&content(b)));
                }
                Step::Mount(f, t, b) => {
                    let _ = store.mount(&repo(f), &repo(t), &Digest::sha256(&content(b)));
                }
                Step::PutManifest(r, m, t) => {
                    let manifest = manifest(&m.to_string(), Some(&Digest::sha256(b"s")));
                    let _ = store.put_manifest(&repo(r), manifest, Some(&t.to_string()));
                }
                Step::DeleteTag(r, t) => {
                    store.delete_manifest(&repo(r), &Reference::Tag(t.to_string()));
                }
                Step::DeleteManifest(r, m) => {
                    let digest = manifest(&m.to_string(), Some(&Digest::sha256(b"s"))).digest;
                    store.delete_manifest(&repo(r), &Reference::Digest(digest));
                }
            }
            prop_assert!(store.used_bytes() <= cap);
        }
        for (r, n) in (0..3).flat_map(|r| (0..3).map(move |n| (r, n))) {
            store.delete_blob(&repo(r), &Digest::sha256(&content(n)));
            store.delete_manifest(&repo(r), &Reference::Tag(n.to_string()));
            let digest = manifest(&n.to_string(), Some(&Digest::sha256(b"s"))).digest;
            store.delete_manifest(&repo(r), &Reference::Digest(digest));
        }
        let known = (0..3).filter(|n| store.knows(&repo(*n))).count() as u64;
        prop_assert_eq!(store.used_bytes(), known * (ENTRY_BYTES + 2));
    }

    /// Pages of any size together are the whole sorted list without gap or repetition.
    #[test]
    fn pages_add_up(tags in prop::collection::btree_set("[a-zA-Z0-9_]{1,4}", 0..20), most in 1..7_usize) {
        let mut store = Store::new(1 << 20);
        store.put_blob("r", &Digest::sha256(b""), Bytes::new()).unwrap();
        for tag in &tags {
            store.put_manifest("r", manifest("x", None), Some(tag)).unwrap();
        }
        let (mut seen, mut last) = (Vec::new(), None);
        loop {
            let page = store.tags("r", last.as_deref(), most).unwrap();
            prop_assert!(page.items.len() <= most);
            last = page.items.last().cloned();
            seen.extend(page.items);
            if !page.more {
                break;
            }
        }
        prop_assert_eq!(seen, tags.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_blob_is_visible_only_where_it_was_pushed_or_mounted() {
    let mut store = Store::new(1 << 20);
    let digest = Digest::sha256(b"x");
    store.put_blob("a", &digest, Bytes::from_static(b"x")).unwrap();
    assert!(store.blob("b", &digest).is_none());
    assert!(!store.mount("c", "b", &digest).unwrap());
    assert!(store.mount("a", "b", &digest).unwrap());
    assert!(store.delete_blob("a", &digest));
    assert_eq!(store.blob("b", &digest).unwrap(), "x");
    assert!(store.blob("a", &digest).is_none());
}

#[test]
fn referrers_are_filtered_and_paged() {
    let mut store = Store::new(1 << 20);
    let subject = Digest::sha256(b"s");
    for text in ["a", "b", "c"] {
        store.put_manifest("r", manifest(text, Some(&subject)), None).unwrap();
    }
    let first = store.referrers("r", &subject, None, None, 2);
    assert!(first.more && first.items.len() == 2);
    let last = first.items[1].digest.clone();
    let second = store.referrers("r", &subject, None, Some(&last), 2);
    assert!(!second.more && second.items.len() == 1);
    let filtered = store.referrers("r", &subject, Some("t/b"), None, 10);
    assert_eq!(filtered.items.len(), 1);
    assert!(store.referrers("r", &Digest::sha256(b"t"), None, None, 10).items.is_empty());
}

/// Names of emptied repositories still exist, so they are counted.
#[test]
fn repositories_that_come_and_go_fill_the_registry() {
    let (mut store, digest) = (Store::new(100_000), Digest::sha256(b"x"));
    let pushed = (0..10_000).take_while(|number| {
        let name = format!("r{number}");
        let fits = store.put_blob(&name, &digest, Bytes::from_static(b"x")).is_ok();
        store.delete_blob(&name, &digest);
        fits
    });
    assert!(pushed.count() < 1_000);
}

/// The values read from a manifest may be larger than its text.
#[test]
fn a_manifest_counts_with_what_is_read_out_of_it() {
    let lists = format!(r#"{{"schemaVersion":2,"annotations":{{"a":[{}0]}}}}"#, "0,".repeat(10_000));
    let manifest = Manifest::read(Some("application/json"), lists.into()).unwrap();
    assert!(manifest.held_bytes() > 320_000, "{}", manifest.held_bytes());
    assert!(Store::new(300_000).put_manifest("r", manifest, None).is_err());
}
