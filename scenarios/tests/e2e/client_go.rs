//! Tests of a client-go client after hours of its own, faster clock.

use std::path::{Path, PathBuf};

use installer::GoError;

use crate::support::soak;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/subjects/client-go");
const SCENARIO: &str = include_str!("../files/client-go-resync.yaml");

/// The path of the client-go program, which is built unless the cache has it. Prints a message and returns `None` if Go
/// or its modules are missing.
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

/// If a transform removes resource versions, a handler of client-go gets no updates after the first resync, which comes
/// after ten hours. The same client without the transform receives all updates.
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
