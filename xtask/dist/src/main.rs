//! `cargo xtask dist`: builds the release files and writes them into one folder.
//!
//! Each target gets static, stripped programs, and tarballs with licences, a bill of materials, completions and man
//! pages. The images of a target contain only the programs. The same commit gives the same release bytes on machines
//! with the same toolchain. `docs/decisions/024` gives the reasons for this form of a release.

mod action;
mod archive;
mod build;
mod demonstration;
mod elf;
mod emulated;
#[path = "../../../reports/src/exit.rs"]
#[expect(dead_code, reason = "this program needs a part of what all of Longhaul's programs share")]
mod exit;
mod image;
mod installation;
mod licences;
mod page;
mod sbom;
mod suite;
mod target;
mod workflows;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use flate2::Compression;

use crate::archive::{Entry, Sums};
use crate::build::{Release, Texts};
use crate::target::Target;

/// Build the release: static programs, tarballs with checksums, images.
#[derive(Parser)]
#[command(name = "cargo xtask dist", bin_name = "cargo xtask dist")]
struct Arguments {
    /// Build only this target. May be given several times. Default: every target that this machine can build.
    #[arg(long, value_enum)]
    target: Vec<Target>,
    /// The folder for the files. Earlier files are replaced.
    #[arg(long, default_value = "target/dist")]
    out: PathBuf,
    /// The address at which the files will be published. Without this address, the index for setup-envtest and the
    /// manifest for krew, which contain it, are not written.
    #[arg(long, value_name = "URL")]
    address: Option<String>,
    /// After the build, run the commands of docs/ci.md, action.yml and the workflows of `longhaul gate init` against the built files.
    #[arg(long)]
    check: bool,
    /// Build nothing, and run only the checks of `--check` against the files in the folder.
    #[arg(long, conflicts_with_all = ["check", "target"])]
    check_only: bool,
}

/// The feature with which `longhaul` and `longhaul-service` are built for releases.
const FEATURE: &str = "dist";
/// The released programs.
const PROGRAMS: [Program; 2] = [
    Program {
        name: "longhaul",
        package: "scenarios",
        title: "Longhaul",
        says: "Soak tests and benchmarks for admission webhooks and watch controllers",
        // Its first subject is found beside it.
        with: &["longhaul", "longhaul-service"],
        writes: true,
    },
    Program {
        name: "longhaul-service",
        package: "service",
        title: "Longhaul service",
        says: "A lean admission webhook and watcher for Kubernetes",
        with: &["longhaul-service"],
        writes: false,
    },
];

/// The injected program, which `longhaul-service inject` sends into a cluster. The service searches the injected
/// program in the service's own folder, so both programs are released together.
const SEED: &str = "longhaul-seed";
/// The Cargo package of the injected program.
const SEED_PACKAGE: &str = "service-seed";

/// The program that replaces `kube-apiserver`, `etcd` and `kubectl` in test suites; it has its own archive.
const SUITE: &str = "longhaul-envtest";
/// The Cargo package of the program for test suites.
const SUITE_PACKAGE: &str = "mock-envtest";

/// A released program, which gives its name to a tarball and an image.
struct Program {
    name: &'static str,
    package: &'static str,
    title: &'static str,
    says: &'static str,
    /// All programs in the tarball and the image, including this program.
    with: &'static [&'static str],
    /// Whether the program needs a folder to which it can write.
    writes: bool,
}

fn main() -> ExitCode {
    match dist(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dist: {error:#}");
            ExitCode::from(exit::SOFTWARE)
        }
    }
}

fn dist(arguments: &Arguments) -> Result<()> {
    let out = root().join(&arguments.out);
    if arguments.check_only {
        return play(&out);
    }
    // Everything that is missing is reported before the build: the next error would come only after minutes.
    let toolchains = target::usable(&arguments.target);
    let tools = [sbom::tool().map(drop), build::stripper().map(drop)];
    let mut missing: Vec<String> =
        tools.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    missing.extend(toolchains.as_ref().err().map(|error| format!("{error:#}")));
    ensure!(missing.is_empty(), "nothing was built:\n  {}", missing.join("\n  "));
    let toolchains = toolchains?;
    let release = Release::of_this_commit()?;
    // All files are made beside it first, so that a failed build leaves the old ones.
    let parent = out.parent().context("`--out` names no folder")?;
    std::fs::create_dir_all(parent).with_context(|| format!("failed to create {}", parent.display()))?;
    let fresh = tempfile::Builder::new().prefix(".dist-").tempdir_in(parent)?;
    let mut built = Vec::new();
    for toolchain in &toolchains {
        built.push((toolchain.target, build::programs(toolchain, &release)?));
    }
    let texts = build::texts(&built)?;
    let mut sums = Sums::default();
    let mut archives = suite::Archives::new(Compression::best());
    for (target, programs) in &built {
        ship(*target, programs, &texts, &release, fresh.path(), &mut sums)?;
        let others = vec![
            Entry::file("LICENSE", read(&root().join("LICENSE"))?),
            Entry::file("THIRD-PARTY.txt", licences::list(*target, &[SUITE_PACKAGE])?.into_bytes()),
        ];
        let program = read(&programs.join(SUITE))?;
        archives.add(*target, program, others, &release, fresh.path(), &mut sums)?;
    }
    let built: Vec<Target> = built.iter().map(|(target, _)| *target).collect();
    installation::script(fresh.path(), &mut sums)?;
    if let Some(address) = &arguments.address {
        archives.index(address, fresh.path(), &mut sums)?;
        installation::krew(address, &built, &release, fresh.path(), &mut sums)?;
    } else {
        println!("dist: the index for setup-envtest and the manifest for krew: skipped: needs --address");
    }
    sums.write(fresh.path())?;
    replace(&out, fresh)?;
    sums.show(&out);
    if arguments.check { play(&out) } else { Ok(()) }
}

/// Runs example pipelines of other projects with the release files in a folder.
fn play(out: &Path) -> Result<()> {
    page::check(out)?;
    action::check(out)?;
    workflows::check(out)?;
    demonstration::check(out)?;
    emulated::check(out)
}

/// Writes the tarballs and images of one target.
fn ship(target: Target, binaries: &Path, texts: &Texts, release: &Release, out: &Path, sums: &mut Sums) -> Result<()> {
    let bills = sbom::bills(target, release)?;
    for program in &PROGRAMS {
        let packages: Vec<&str> =
            PROGRAMS.iter().filter(|one| program.with.contains(&one.name)).map(|one| one.package).collect();
        // The files of both tarball and image.
        let mut both = vec![
            Entry::file("LICENSE", read(&root().join("LICENSE"))?),
            Entry::file("THIRD-PARTY.txt", licences::list(target, &packages)?.into_bytes()),
        ];
        for name in program.with {
            both.push(Entry::program(name, read(&binaries.join(name))?));
        }
        // The service depends on the seed's package, so that licences and bill contain its dependencies.
        if packages.contains(&"service") {
            both.push(Entry::program(SEED, read(&binaries.join(SEED))?));
        }
        let mut entries = both.clone();
        entries.extend(program.with.iter().filter_map(|name| texts.get(name)).flatten().cloned());
        entries.push(Entry::file("README.md", read(&root().join("README.md"))?));
        for one in PROGRAMS.iter().filter(|one| program.with.contains(&one.name)) {
            entries.push(Entry::file(&format!("{}.cdx.json", one.name), bills[one.package].clone()));
        }
        let folder = format!("{}-{}-{}", program.name, release.version, target.triple());
        let tarball = archive::tarball(&folder, entries, release.seconds, Compression::best())?;
        sums.add(out, &format!("{folder}.tar.gz"), &tarball)?;
        image::write(program, target, both, release, out, sums)?;
    }
    Ok(())
}

/// Replaces the folder `out` by the new folder `fresh`.
fn replace(out: &Path, fresh: tempfile::TempDir) -> Result<()> {
    if out.exists() {
        // Only a folder that looks like ours is removed: `--out` may be mistyped.
        ensure!(
            out.join(archive::SUMS).is_file() || out.read_dir()?.next().is_none(),
            "{} has no {}, so it was not made by this command: remove it, or name another folder with --out",
            out.display(),
            archive::SUMS
        );
        std::fs::remove_dir_all(out).with_context(|| format!("failed to remove {}", out.display()))?;
    }
    let fresh = fresh.keep();
    std::fs::rename(&fresh, out).with_context(|| format!("failed to move {} to {}", fresh.display(), out.display()))?;
    // The temporary folder was private; this one is for publication.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(out, open).with_context(|| format!("failed to open {}", out.display()))
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The standard output of a command. If the exit code is not 0, returns an error with the command's standard error.
fn output_of(command: &mut Command) -> Result<String> {
    let name = format!("{command:?}");
    let output = command.output().with_context(|| format!("failed to start {name}"))?;
    if !output.status.success() {
        bail!("{name} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{name} did not print text"))
}
