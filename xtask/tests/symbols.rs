//! Tests that no two C libraries in `longhaul-service` define the same name. A linker silently takes the first
//! definition, so one library would call into the other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use serde_json::Value;

fn cargo(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The packages that are linked into the service, and the folder of their build output.
fn packages() -> Option<(BTreeSet<String>, PathBuf)> {
    let tree = cargo(&[
        "tree",
        "--offline",
        "--package=service",
        "--features=full",
        "--edges=normal",
        "--prefix=none",
        "--format={p}",
    ])?;
    let names = tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--offline", "--no-deps", "--format-version=1"])?).ok()?;
    Some((names, PathBuf::from(metadata["target_directory"].as_str()?).join("debug/build")))
}

/// The static libraries of each package, from the latest output of its build script.
fn libraries(packages: &BTreeSet<String>, builds: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    let mut newest: BTreeMap<String, (SystemTime, PathBuf)> = BTreeMap::new();
    for folder in std::fs::read_dir(builds).into_iter().flatten().flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        let Some((package, _hash)) = name.rsplit_once('-') else { continue };
        let output = folder.path().join("output");
        let Some(at) = std::fs::metadata(&output).and_then(|file| file.modified()).ok() else { continue };
        if packages.contains(package) && newest.get(package).is_none_or(|(known, _)| *known < at) {
            newest.insert(package.to_owned(), (at, output));
        }
    }
    let found = newest
        .into_iter()
        .map(|(package, (_, output))| (package, archives(&std::fs::read_to_string(output).unwrap_or_default())));
    found.filter(|(_, archives)| !archives.is_empty()).collect()
}

/// The static libraries that the output of a build script names.
fn archives(output: &str) -> Vec<PathBuf> {
    let said = |key: &str| -> Vec<&str> {
        let lines = output
            .lines()
            .filter_map(|line| line.trim_start_matches("cargo:").trim_start_matches(':').strip_prefix(key));
        lines.collect()
    };
    let folders: Vec<&str> =
        said("rustc-link-search=").iter().map(|one| one.strip_prefix("native=").unwrap_or(one)).collect();
    let names = said("rustc-link-lib=");
    let names = names.iter().filter_map(|one| one.strip_prefix("static")?.split_once('=')).map(|(_, name)| name);
    let mut found: Vec<_> = names
        .flat_map(|name| folders.iter().map(move |folder| Path::new(folder).join(format!("lib{name}.a"))))
        .collect();
    found.retain(|path| path.exists());
    found.sort();
    found.dedup();
    found
}

/// The names that a static library defines for other libraries; `None` if the names cannot be read.
fn defined(archive: &Path) -> Option<BTreeSet<String>> {
    let output =
        Command::new("nm").args(["--defined-only", "--extern-only", "--format=posix"]).arg(archive).output().ok()?;
    output.status.success().then(|| strong(&String::from_utf8_lossy(&output.stdout)))
}

/// The names of functions and data in the output of `nm`. Weak names are left out, because they may be defined twice by
/// design.
fn strong(listing: &str) -> BTreeSet<String> {
    let symbol = |line: &str| {
        let mut words = line.split(' ');
        let (name, kind) = (words.next()?, words.next()?);
        matches!(kind, "T" | "D" | "B" | "R" | "S" | "C").then(|| name.to_owned())
    };
    listing.lines().filter_map(symbol).collect()
}

/// Every name that two libraries define, with both libraries.
fn twice(libraries: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (library, names) in libraries {
        for name in names {
            owners.entry(name).or_default().push(library);
        }
    }
    owners.into_iter().filter(|(_, of)| of.len() > 1).map(|(name, of)| format!("{name}: {}", of.join(", "))).collect()
}

#[test]
#[ignore = "slow: looks into what is built"]
fn no_two_c_libraries_define_one_name() {
    let Some((packages, builds)) = packages() else { return println!("skipped: needs cargo") };
    let libraries = libraries(&packages, &builds);
    if libraries.is_empty() {
        return println!("skipped: needs longhaul-service built in {}", builds.display());
    }
    let mut names = BTreeMap::new();
    for (package, archives) in libraries {
        for archive in archives {
            let Some(defined) = defined(&archive) else { return println!("skipped: needs nm") };
            let all: &mut BTreeSet<_> = names.entry(package.clone()).or_default();
            all.extend(defined);
        }
    }
    println!("{:?}", names.iter().map(|(package, names)| (package, names.len())).collect::<Vec<_>>());
    assert!(names.contains_key("aws-lc-sys"), "the library of TLS is not among {:?}", names.keys());
    assert_eq!(twice(&names), Vec::<String>::new());
}

#[test]
fn a_name_that_two_libraries_define_is_found() {
    let one = strong("libone.a[a.o]:\nshared T 0 10\nown D 0 8\nweak W 0 1\n");
    let two = strong("libtwo.a[b.o]:\nshared T 0 20\nweak W 0 1\nelse U\n");
    let all = BTreeMap::from([("one".to_owned(), one), ("two".to_owned(), two)]);
    assert_eq!(twice(&all), ["shared: one, two"]);
    let output = "cargo:rustc-link-search=native=/nowhere\ncargo::rustc-link-lib=static=z\nnoise\n";
    assert!(archives(output).is_empty(), "there is no such file");
}
