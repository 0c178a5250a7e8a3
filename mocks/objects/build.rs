//! Lists the tables of built-in kinds, so that a new file `src/builtin/RELEASE.kinds` needs no code.

use std::fmt::Write as _;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("src/builtin");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&root)? {
        let path = entry?.path();
        if let (Some("kinds"), Some(release)) =
            (path.extension().and_then(|kind| kind.to_str()), path.file_stem().and_then(|stem| stem.to_str()))
        {
            files.push((release.to_owned(), path.clone()));
        }
    }
    files.sort();
    let mut text = "/// `(minor release, compressed table)`.\nstatic PACKED: &[(&str, &[u8])] = &[\n".to_owned();
    for (release, path) in files {
        let _ = writeln!(text, "    ({release:?}, include_bytes!({:?})),", path.display().to_string());
    }
    text.push_str("];\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    std::fs::write(out.join("packed.rs"), text)
}
