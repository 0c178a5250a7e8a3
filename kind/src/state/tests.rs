//! Tests of the state entries of control planes: they are found again, never belong to another process, and are removed
//! unless they are kept.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn linux() -> bool {
    if !cfg!(target_os = "linux") {
        println!("skipped: needs Linux");
    }
    cfg!(target_os = "linux")
}

#[test]
fn an_entry_is_found_again_as_it_was_written() {
    if !linux() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let root = root.path().join("deep/state");
    assert!(entries(&root).unwrap().is_empty());
    let mut registration = Registration::begin(&root, "local", Purpose::Lasting, None).unwrap();
    registration.started("etcd", std::process::id()).unwrap();
    let ready = Ready { version: "v1.34.1".into(), url: "https://127.0.0.1:1".into(), kubeconfig: None };
    registration.ready(ready).unwrap();
    let path = root.join("local/cluster.json");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(root.join("local")).unwrap().permissions().mode() & 0o777, 0o700);

    let taken = Registration::begin(&root, "local", Purpose::Lasting, None).unwrap_err();
    assert!(matches!(taken, Error::Exists { .. }), "{taken}");
    let entry = registration.keep();
    assert!(is_ours(&entry));
    let [Found { folder, entry: Ok(found) }] = &entries(&root).unwrap()[..] else { panic!("one that can be read") };
    assert_eq!((folder, found), (&root.join("local"), &entry));
    assert_eq!(entry.processes[0].identity, entry.owner);
    assert!(entry.started_at.ends_with('Z'), "{}", entry.started_at);
    assert!(!is_ours(&Entry { id: "another".into(), ..entry.clone() }));
    assert!(!is_ours(&Entry { directory: root, ..entry }));
}

#[test]
fn what_nobody_keeps_is_gone() {
    if !linux() {
        return;
    }
    let (root, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let registration = Registration::begin(root.path(), "run-1", Purpose::Run, Some(work.path())).unwrap();
    assert!(is_ours(registration.entry()));
    drop(registration);
    assert_eq!(fs::read_dir(root.path()).unwrap().count() + fs::read_dir(work.path()).unwrap().count(), 0);
}

#[test]
fn files_that_are_no_entries_are_named_and_folders_of_others_ignored() {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in [("broken", "{"), ("future", r#"{"format": 2}"#)] {
        fs::create_dir(root.path().join(name)).unwrap();
        fs::write(root.path().join(name).join(ENTRY), text).unwrap();
    }
    fs::create_dir(root.path().join("other")).unwrap();
    let found = entries(root.path()).unwrap();
    let names: Vec<_> = found.iter().map(|each| each.folder.file_name().unwrap()).collect();
    assert_eq!(names, ["broken", "future"]);
    assert!(found.iter().all(|each| each.entry.is_err()));
}

#[test]
fn names_are_folder_names() {
    let root = tempfile::tempdir().unwrap();
    for name in ["", "..", "a/b", "-a", "A", "1", &"a".repeat(41)] {
        let error = Registration::begin(root.path(), name, Purpose::Lasting, None).unwrap_err();
        assert!(matches!(error, Error::Name { .. }), "{error}");
    }
}

#[test]
fn the_default_directory_follows_xdg() {
    let path = |text: &str| Some(PathBuf::from(text));
    assert_eq!(directory_for(path("/s"), path("/h")), path("/s/longhaul/clusters"));
    assert_eq!(directory_for(None, path("/h")), path("/h/.local/state/longhaul/clusters"));
    assert_eq!(directory_for(None, None), None);
}
