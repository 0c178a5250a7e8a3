//! Behaviour of a client-go client after hours, by its own clock.

use std::path::{Path, PathBuf};

use installer::GoError;

use crate::support::soak;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/subjects/client-go");
const SCENARIO: &str = include_str!("../files/client-go-resync.yaml");

/// The client, built unless the cache has it. `None` (and a message) if Go or its modules are missing.
fn client() -> Option<PathBuf> {
    match installer::go_module("client-go", Path::new(SOURCE), ".") {
        Ok(program) => Some(program),
        Err(GoError::Needs(what)) => {
            println!("skipped: needs go: {what}");
            None
        }
        Err(error @ GoError::Source(_)) => panic!("{SOURCE}: {error}"),
    }
}

/// After the first resync, which comes after ten hours, a handler receives no update any more if a transform blanks the
/// revisions. With its revisions the same client receives all. Both take less than two minutes.
#[test]
#[ignore = "slow"]
fn nightly_updates_vanish_after_ten_hours_if_a_transform_blanks_revisions() {
    let Some(client) = client() else { return };
    let folder = tempfile::tempdir().unwrap();
    let played = |name: &str, flags: &str| {
        let text = SCENARIO.replace("[SUBJECT]", &format!("[{}, -after, 5m{flags}]", client.display()));
        let file = folder.path().join(format!("{name}.yaml"));
        std::fs::write(&file, text).unwrap();
        soak(&[file.to_str().unwrap()])
    };
    let clean = played("clean", "");
    assert_eq!(clean.code(), Some(0), "{}", clean.story());
    let blank = played("blank", ", -blank-revision");
    blank.fails_by(&["events.missed"]);
}
