//! Tests that the documents which a new user reads first are short and begin with the download.

use std::path::{Path, PathBuf};

/// Maximum number of words of README.md, including commands.
const README_WORDS_MAX: usize = 800;
const START_WORDS_MAX: usize = 300;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is below the root").to_owned()
}

#[test]
fn the_readme_begins_with_the_download_then_the_action() {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let words = text.split_whitespace().count();
    assert!(words <= README_WORDS_MAX, "README.md has {words} words");
    let sections: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(sections[..3], ["Download", "In CI", "Two commands for those who build"]);
    let download = text.split("## ").nth(1).unwrap();
    assert!(download.contains("install.sh") && !download.contains("$ cargo"), "{download}");
}

#[test]
fn pages_to_start_from_are_short_and_linked() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let mut pages = 0;
    for entry in std::fs::read_dir(root().join("docs/start")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let words = text.split_whitespace().count();
        assert!(words <= START_WORDS_MAX, "{}: {words} words", path.display());
        let name = format!("docs/start/{}", path.file_name().unwrap().to_string_lossy());
        assert!(readme.contains(&name), "README.md does not link {name}");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let there = path.parent().unwrap().join(link);
            assert!(link.is_empty() || there.exists(), "{}: there is no {link}", path.display());
        }
        pages += 1;
    }
    assert_eq!(pages, 4);
}
