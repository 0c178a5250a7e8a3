//! Compresses the lock files of the packages, which would otherwise be 0.6 MB of every released program.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() {
    // The variables are read at run time, because a target folder may serve checkouts at several places.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the folder of the package");
    let out = std::env::var_os("OUT_DIR").expect("cargo names the folder for what a build script makes");
    let folder = Path::new(&manifest).join("packages");
    println!("cargo:rerun-if-changed={}", folder.display());
    for package in entries(&folder) {
        let name = package.file_name().unwrap_or_default().to_owned();
        let into = Path::new(&out).join(name);
        fs::create_dir_all(&into).expect("the folder for build output can be written to");
        for file in entries(&package) {
            let text = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            packed.write_all(&text).expect("memory can be written to");
            let packed = packed.finish().expect("memory can be written to");
            let name = format!("{}.gz", file.file_name().unwrap_or_default().to_string_lossy());
            fs::write(into.join(name), packed).expect("the folder for build output can be written to");
        }
    }
}

/// The paths of the files and folders in a folder.
fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.flatten().map(|entry| entry.path()).collect()
}
