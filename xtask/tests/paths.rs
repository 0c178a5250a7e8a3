//! Tests that every path in ARCHITECTURE.md and in docs/measured/attacks.md exists.
use std::path::Path;

/// The documents to check, each with one path that the document names.
const PAGES: [(&str, &str); 2] =
    [("ARCHITECTURE.md", "xtask/tests/arrows.rs"), ("docs/measured/attacks.md", "service/tests/it/memory.rs")];
/// The folder of paths that docs/measured/attacks.md writes without a crate name.
const BELOW: &str = "scenarios/src";
/// File extensions by which a name without a folder counts as a file.
const ENDINGS: [&str; 7] = [".rs", ".md", ".yaml", ".json", ".jsonl", ".toml", ".html"];

/// The texts between each `begins` and the next `ends` on a line.
fn between<'a>(line: &'a str, begins: &'a str, ends: &'a str) -> impl Iterator<Item = &'a str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let (found, after) = rest.split_once(begins)?.1.split_once(ends)?;
        rest = after;
        Some(found)
    })
}

fn is_path(text: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let file = ENDINGS.iter().any(|ending| text.ends_with(ending));
    // An image, such as `registry.corp/app`.
    let image = text.split_once('/').is_some_and(|(first, _)| first.contains('.') && !first.starts_with('.'));
    text.chars().all(known) && !text.starts_with('/') && !image && (file || text.contains('/'))
}

/// The paths in backticks and links of a document, except pictures, each with its line from 1.
fn paths(page: &str) -> Vec<(usize, &str)> {
    let (mut found, mut drawn) = (Vec::new(), false);
    for (number, line) in (1..).zip(page.lines()) {
        if line.starts_with("```") {
            drawn = !drawn;
        } else if !drawn {
            let links = between(line, "](", ")").map(|link| link.split('#').next().unwrap_or_default());
            let names = between(line, "`", "`").chain(links);
            found.extend(names.filter(|name| is_path(name)).map(|name| (number, name)));
        }
    }
    found
}

#[test]
fn paths_of_a_page() {
    let page = "a `b/c.rs` of `d`, [e](f.md#g), [h](https://i/j)\n```\n`no/picture`\n```\n`k.yaml` `l m/n` `/proc` `o/` `p.q/r`\n";
    assert_eq!(paths(page), [(1, "b/c.rs"), (1, "f.md"), (5, "k.yaml"), (5, "o/")]);
}

#[test]
fn every_path_of_a_page_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is below the root");
    for (name, known) in PAGES {
        let page = std::fs::read_to_string(root.join(name)).unwrap();
        let paths = paths(&page);
        let beside = root.join(name).parent().unwrap().to_owned();
        let is_there = |path: &str| [root, &root.join(BELOW), &beside].iter().any(|from| from.join(path).exists());
        let missing: Vec<String> = paths
            .iter()
            .filter(|(_, path)| !is_there(path))
            .map(|(line, path)| format!("{name}:{line}: `{path}` is neither at the root nor below {BELOW}"))
            .collect();
        assert!(missing.is_empty(), "{missing:#?}");
        assert!(paths.iter().any(|(_, path)| *path == known), "no paths were read: {paths:?}");
    }
}
