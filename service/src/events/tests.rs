//! Tests that every log call uses a listed event, and that `docs/service.md` has the same list.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use service_core::logs::names::Name;

use crate::roles::EVENTS;

fn all() -> impl Iterator<Item = &'static Name> {
    EVENTS.iter().copied().flatten()
}

/// The arguments of every call of a `tracing` macro such as `tracing::info!` in a source text.
fn calls(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for level in ["error", "warn", "info", "debug", "trace"] {
        for (at, start) in text.match_indices(&format!("tracing::{level}!(")) {
            let rest = &text[at + start.len()..];
            let mut depth = 1;
            let end = rest.char_indices().find(|(_, c)| {
                depth += match c {
                    '(' => 1,
                    ')' => -1,
                    _ => 0,
                };
                depth == 0
            });
            found.push(&rest[..end.map_or(rest.len(), |(at, _)| at)]);
        }
    }
    found
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The folders below `folder` that are crates; they lie at most two levels deep.
fn crates(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let below = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    for one in below(folder) {
        found.extend(below(&one));
        found.push(one);
    }
    found.retain(|one| one.join("Cargo.toml").is_file() && one.join("src").is_dir());
    found
}

#[test]
fn every_line_has_a_name_of_the_list() {
    let mut files = Vec::new();
    let service = Path::new(env!("CARGO_MANIFEST_DIR"));
    for crate_folder in crates(service) {
        sources(&crate_folder.join("src"), &mut files);
    }
    let mut unnamed = Vec::new();
    let mut count = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        if file.ends_with("events/tests.rs") || file.ends_with("logs/format.rs") {
            continue;
        }
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for call in calls(text) {
            count += 1;
            let of_a_list = call.trim_start().strip_prefix("name: ").is_some_and(|name| {
                let name = name.split(',').next().unwrap_or_default();
                ["events::", "names::", "Self::"].iter().any(|list| name.contains(list))
            });
            if !of_a_list {
                unnamed.push(format!("{}: {}", file.display(), call.trim()));
            }
        }
    }
    assert!(count > 40, "{count} calls: the sources were not found");
    assert!(unnamed.is_empty(), "{unnamed:#?}");
}

/// Every crate that declares events is in the list of `roles.rs`.
#[test]
fn every_crate_with_events_is_in_the_list() {
    let service = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = include_str!("../roles.rs");
    let declaring: Vec<_> =
        crates(service).into_iter().filter(|one| one != service && one.join("src/events.rs").is_file()).collect();
    assert!(declaring.len() > 8, "{declaring:?}: the crates were not found");
    for one in declaring {
        let name = one.file_name().unwrap_or_default().to_string_lossy().replace('-', "_");
        assert!(list.contains(&format!("service_{name}::events::ALL,")), "{name}");
    }
}

#[test]
fn names_are_distinct_and_fit_a_message_id() {
    let names: BTreeSet<_> = all().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), all().count());
    // RFC 5424: MSGID has at most 32 characters, all of them visible.
    for name in names {
        assert!(name.len() <= 32 && name.bytes().all(|byte| byte.is_ascii_graphic()), "{name}");
    }
}

#[test]
fn the_page_has_the_list() {
    let page = include_str!("../../../docs/service.md");
    let (_, table) = page.split_once("<!-- events -->\n").expect("docs/service.md has the list of events");
    let table = table.split("<!-- end of events -->").next().unwrap_or_default();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    let documented: BTreeSet<(String, Vec<String>)> = rows
        .map(|row| {
            let (name, rest) = row.split_once("` | ").unwrap();
            let keys = rest.split('|').next().unwrap_or_default();
            (name.to_owned(), keys.split('`').skip(1).step_by(2).map(str::to_owned).collect())
        })
        .collect();
    let listed: BTreeSet<(String, Vec<String>)> =
        all().map(|(name, keys)| ((*name).to_owned(), keys.iter().map(|key| (*key).to_owned()).collect())).collect();
    assert_eq!(documented, listed);
}
