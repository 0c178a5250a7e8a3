//! Includes every file of `library/bugs/` into the program, so that a new bug needs only a new file.

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    // The variable is read at run time, because a target folder may serve checkouts at several places.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the folder of the package");
    let folder = Path::new(&manifest).join("../library/bugs");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{} cannot be read: {error}", folder.display()))
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    let mut table = String::from("[");
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let path = file.display().to_string();
        let _ = write!(table, "({name:?}, include_str!({path:?})),");
    }
    table.push(']');
    let out = std::env::var_os("OUT_DIR").expect("cargo names the folder for what a build script makes");
    std::fs::write(Path::new(&out).join("bugs.rs"), table).expect("the folder for build output can be written to");
}
