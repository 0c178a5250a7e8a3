//! Lists the third-party code in the released programs, and its licences.
//!
//! `cargo tree` gives the linked packages, and `cargo metadata` the folders of these packages. The licence texts are
//! files of the packages; the list contains each text once. Code that is linked without Cargo (Rust's own library, the
//! C library) is listed by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::target::Target;
use crate::{FEATURE, PROGRAMS, cargo, output_of};

/// The beginnings of names of files with licence terms.
const TERMS: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
/// Third-party code that rustc itself links. The toolchain determines the versions of this code.
const TOOLCHAIN: &str = "\
Rust's standard library  MIT OR Apache-2.0  https://github.com/rust-lang/rust
LLVM's libunwind         Apache-2.0 WITH LLVM-exception  https://github.com/llvm/llvm-project
musl libc                MIT  https://musl.libc.org
                         Copyright 2005-2020 Rich Felker and others; the list of authors is in its file COPYRIGHT
";
/// The names of the licence texts of code that rustc links. These texts are installed with the toolchain.
const TOOLCHAIN_TEXTS: [&str; 3] = ["MIT.txt", "Apache-2.0.txt", "LLVM-exception.txt"];

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Linked {
    name: String,
    version: String,
    licence: String,
    repository: String,
}

/// The list of third-party code in some packages of Longhaul on a target.
pub(crate) fn list(target: Target, packages: &[&str]) -> Result<String> {
    let linked = linked(target, packages)?;
    ensure!(!linked.is_empty(), "`cargo tree` names no dependency");
    let folders = folders()?;
    let mut text = format!("What others wrote and is linked into these programs, {} packages.\n\n", linked.len());
    let mut terms: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for one in &linked {
        let _ = writeln!(text, "{} {}  {}  {}", one.name, one.version, one.licence, one.repository);
        let folder = folders.get(&(one.name.clone(), one.version.clone()));
        let found = files(folder.with_context(|| format!("cargo does not say where {} lies", one.name))?)?;
        if found.is_empty() {
            without.push(format!("{} {}", one.name, one.version));
        }
        for found in found {
            let bytes = std::fs::read(&found).with_context(|| format!("failed to read {}", found.display()))?;
            let body = String::from_utf8_lossy(&bytes).replace("\r\n", "\n").trim().to_owned();
            let of = terms.entry(body).or_default();
            let name = format!("{} {}", one.name, one.version);
            if of.last() != Some(&name) {
                of.push(name);
            }
        }
    }
    let _ = write!(text, "\nLinked by the toolchain:\n\n{TOOLCHAIN}");
    if !without.is_empty() {
        let _ = write!(text, "\nThese bring no text of their own: {}.\n", without.join(", "));
    }
    for (name, body) in toolchain_texts()? {
        terms.entry(body).or_default().push(format!("the toolchain ({name})"));
    }
    let mut terms: Vec<_> = terms.into_iter().map(|(body, of)| (of, body)).collect();
    terms.sort();
    for (of, body) in terms {
        let _ = write!(text, "\n{}\n{}\n\n{body}\n", "=".repeat(80), of.join(", "));
    }
    Ok(text)
}

/// The linked packages, without build dependencies.
fn linked(target: Target, packages: &[&str]) -> Result<BTreeSet<Linked>> {
    let mut command = cargo();
    command.args(["tree", "--locked", "--edges=normal,no-proc-macro", "--prefix=none", "--target", target.triple()]);
    command.args(["--format", "{p}|{l}|{r}"]).args(packages.iter().map(|name| format!("--package={name}")));
    // The program for test-suites has nothing that only shipped programs have.
    let with_feature = packages.iter().filter(|name| PROGRAMS.iter().any(|program| program.package == **name));
    command.args(with_feature.map(|name| format!("--features={name}/{FEATURE}")));
    Ok(output_of(&mut command)?.lines().filter_map(read_line).collect())
}

/// Parses a line such as `serde v1.0.229|MIT OR Apache-2.0|https://…`. Cargo marks a repeated line by ` (*)` at its
/// end. For packages of this workspace the line also contains the folder.
fn read_line(line: &str) -> Option<Linked> {
    let mut parts = line.trim_end_matches(" (*)").split('|').map(str::to_owned);
    let (package, licence, repository) = (parts.next()?, parts.next()?, parts.next()?);
    let (name, version) = package.split_once(" v")?;
    if version.contains(' ') {
        return None;
    }
    Some(Linked { name: name.to_owned(), version: version.to_owned(), licence, repository })
}

/// The folder of each package, by name and version.
fn folders() -> Result<BTreeMap<(String, String), PathBuf>> {
    let mut command = cargo();
    let metadata: Value = serde_json::from_str(&output_of(command.args([
        "metadata",
        "--locked",
        "--all-features",
        "--format-version=1",
    ]))?)?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` has no packages")?;
    let one = |package: &Value| {
        let text = |key: &str| package[key].as_str().map(str::to_owned);
        let folder = PathBuf::from(text("manifest_path")?).parent()?.to_owned();
        Some(((text("name")?, text("version")?), folder))
    };
    Ok(packages.iter().filter_map(one).collect())
}

/// Files with licence terms in a package's folder, and one folder deeper, where some packages keep the C code that they
/// wrap.
fn files(package: &Path) -> Result<Vec<PathBuf>> {
    let mut found = in_folder(package)?;
    for entry in package.read_dir()? {
        let path = entry?.path();
        if path.is_dir() {
            found.append(&mut in_folder(&path)?);
        }
    }
    found.sort();
    Ok(found)
}

fn in_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = folder.read_dir().with_context(|| format!("failed to look into {}", folder.display()))?;
    let mut found: Vec<PathBuf> = read
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file() && path.extension().is_none_or(|kind| kind != "rs" && kind != "html"))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
            TERMS.iter().any(|term| name.starts_with(term))
        })
        .collect();
    // zstd is under BSD's terms in `LICENSE`, or under the GPL in `COPYING`, at the user's choice.
    if found.iter().any(|path| path.file_name().is_some_and(|name| name == "LICENSE")) {
        found.retain(|path| path.file_name().is_some_and(|name| name != "COPYING"));
    }
    Ok(found)
}

/// Licence texts that rustup installs with the toolchain. If rustup did not install the toolchain, the texts may be
/// missing, but the linked code is still listed.
fn toolchain_texts() -> Result<Vec<(&'static str, String)>> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let root = output_of(Command::new(rustc).arg("--print=sysroot"))?;
    let folder = Path::new(root.trim()).join("share/doc/rust/licenses");
    let read = |name| Some((name, std::fs::read_to_string(folder.join(name)).ok()?.trim().to_owned()));
    Ok(TOOLCHAIN_TEXTS.into_iter().filter_map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cargo_tree_are_read_and_our_own_packages_left_out() {
        let read = read_line("aws-lc-rs v1.19.0|ISC AND (Apache-2.0 OR ISC)|https://example.org (*)").unwrap();
        assert_eq!((read.name.as_str(), read.version.as_str()), ("aws-lc-rs", "1.19.0"));
        assert_eq!(
            (read.licence.as_str(), read.repository.as_str()),
            ("ISC AND (Apache-2.0 OR ISC)", "https://example.org")
        );
        assert_eq!(read_line("service v0.1.0 (/home/me/longhaul/service)|Apache-2.0|"), None);
        assert_eq!(read_line(""), None);
    }

    #[test]
    fn terms_of_wrapped_code_are_found_and_of_two_choices_the_freer_is_taken() {
        let package = tempfile::tempdir().unwrap();
        for path in ["LICENSE-MIT", "licenses.rs", "jemalloc/COPYING", "zstd/LICENSE", "zstd/COPYING", "src/lib.rs"] {
            let path = package.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "text").unwrap();
        }
        let found = files(package.path()).unwrap();
        let found: Vec<_> =
            found.iter().map(|path| path.strip_prefix(package.path()).unwrap().to_str().unwrap()).collect();
        assert_eq!(found, ["LICENSE-MIT", "jemalloc/COPYING", "zstd/LICENSE"]);
    }
}
