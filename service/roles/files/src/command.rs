//! The commands `pin` and `krm`, which pin images in files as the webhook does in objects.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use service_core::role::Review;
use service_registry::Image;
use service_registry::lock::{Lock, Locked};

use tokio::runtime::Runtime;

use crate::{Finding, Path as FieldPath, Pin, Pinned, Severity, TEXT_BYTES_MAX, Wanted, diff, pin, resource_list};

/// Default name of the lock file.
const LOCK: &str = "images.lock";
/// The argument that stands for standard input and output.
const STANDARD: &str = "-";
/// Maximum number of files in a folder, because a larger folder probably contains other files than manifests.
const FILES_MAX: usize = 100_000;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The command line or a file is invalid.
    Usage(anyhow::Error),
    /// An image was refused, something would change (`--check`), or a file could not be written.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

fn usage(error: impl Into<anyhow::Error>) -> Failure {
    Failure::Usage(error.into())
}

/// A function that opens a reviewer with the configuration in the first file (or the defaults) and the lock file in the
/// second file.
pub type Open = fn(Option<&Path>, Option<&Path>) -> anyhow::Result<Arc<dyn Review>>;

/// Options of `pin` and `krm`.
#[derive(Debug, Args)]
pub struct Common {
    /// The configuration file (YAML) with the webhook's rules. Without it, each image gets the digest that its registry
    /// has now.
    #[arg(long)]
    config: Option<PathBuf>,
    /// A further field with images, such as `spec.workers[*].image`.
    #[arg(long = "path", value_name = "FIELD")]
    paths: Vec<FieldPath>,
    /// The namespace of objects that name none.
    #[arg(long, default_value = "default")]
    namespace: String,
}

/// The arguments of `pin`.
#[derive(Debug, Args)]
#[group(skip)]
pub struct Arguments {
    /// Files and folders with manifests (`*.yaml`, `*.yml`, `*.json`). `-` reads from standard input and writes to
    /// standard output.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    common: Common,
    /// Change nothing, and fail if `pin` would change something.
    #[arg(long)]
    check: bool,
    /// Change nothing, and print what would change.
    #[arg(long)]
    diff: bool,
    /// Leave the manifests unchanged, and write the current digests of their images to this lock file. With --check:
    /// list images whose tags now refer to other digests.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = LOCK, require_equals = true)]
    lock: Option<PathBuf>,
    /// Also write new digests of images that the lock file already has.
    #[arg(long, requires = "lock", conflicts_with = "check")]
    update: bool,
}

/// The arguments of `krm`.
#[derive(Debug, Args)]
#[group(skip)]
pub struct Function {
    #[command(flatten)]
    common: Common,
    /// A lock file. Images in this file get their locked digests.
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
}

impl Common {
    /// Opens the reviewer, which takes locked digests from `lock`.
    fn review(&self, open: Open, lock: Option<&Path>) -> Result<Arc<dyn Review>, Failure> {
        open(self.config.as_deref(), lock).map_err(usage)
    }

    fn wanted(&self) -> Wanted {
        Wanted { paths: self.paths.clone(), namespace: self.namespace.clone() }
    }
}

/// Runs `krm`: reads a `ResourceList` from standard input, and writes the changed list to standard output.
pub fn function(arguments: &Function, open: Open, runtime: &Runtime) -> Result<(), Failure> {
    let text = read(Path::new(STANDARD))?;
    let review = runtime.block_on(async { arguments.common.review(open, arguments.lock.as_deref()) })?;
    let done = runtime.block_on(resource_list::run(&*review, &text, arguments.common.wanted())).map_err(usage)?;
    std::io::stdout().write_all(done.text.as_bytes()).context("failed to write standard output")?;
    for finding in done.findings.iter().filter(|finding| finding.severity > Severity::Info) {
        eprintln!("{}", line(STANDARD, finding));
    }
    failed(done.has_errors(), "images may not run, or were not found")
}

/// Runs `pin`: replaces images with their digests, or writes the digests to a lock file.
pub fn run(arguments: &Arguments, open: Open, runtime: &Runtime) -> Result<(), Failure> {
    let files = files(&arguments.files)?;
    runtime.block_on(async {
        match &arguments.lock {
            None => pin_files(arguments, open, &files).await,
            Some(path) if arguments.check => check_lock(arguments, open, &files, path).await,
            Some(path) => lock(arguments, open, &files, path).await,
        }
    })
}

/// A file and its new text.
struct Done {
    name: String,
    before: String,
    pinned: Pinned,
}

async fn pinned(arguments: &Arguments, files: &[PathBuf], review: &dyn Review) -> Result<(Vec<Done>, bool), Failure> {
    let (mut done, mut has_errors) = (Vec::new(), false);
    for path in files {
        let name = path.display().to_string();
        let before = read(path)?;
        let pinned = pin(review, &before, &arguments.common.wanted()).await;
        let pinned = pinned.with_context(|| name.clone()).map_err(usage)?;
        for finding in pinned.findings.iter().filter(|finding| finding.severity > Severity::Info) {
            eprintln!("{}", line(&name, finding));
        }
        has_errors |= pinned.has_errors();
        done.push(Done { name, before, pinned });
    }
    Ok((done, has_errors))
}

async fn pin_files(arguments: &Arguments, open: Open, files: &[PathBuf]) -> Result<(), Failure> {
    let review = arguments.common.review(open, None)?;
    let (done, has_errors) = pinned(arguments, files, &*review).await?;
    let writes = !arguments.diff && !arguments.check;
    // Checked before anything is written, so that no change is incomplete.
    for Done { name, .. } in
        done.iter().filter(|done| writes && done.name != STANDARD && done.before != done.pinned.text)
    {
        no_link(Path::new(name)).map_err(usage)?;
    }
    let mut changed = 0;
    for Done { name, before, pinned } in &done {
        let differs = *before != pinned.text;
        changed += usize::from(differs);
        if arguments.diff {
            print!("{}", if differs { diff(name, before, &pinned.text) } else { String::new() });
        } else if arguments.check {
            for finding in pinned.findings.iter().filter(|finding| finding.severity == Severity::Info) {
                println!("{}", line(name, finding));
            }
        } else if name == STANDARD {
            std::io::stdout().write_all(pinned.text.as_bytes()).context("failed to write standard output")?;
        } else if differs {
            replace(Path::new(name), &pinned.text)?;
            println!("{name}: {} pinned", count(pinned.pins.len(), "image"));
        }
    }
    failed(has_errors, "images may not run, or were not found")?;
    failed(arguments.check && changed > 0, &format!("{} would change", count(changed, "file")))
}

/// Adds all images that are not locked yet to the lock file at `path`; with `--update`, all images.
async fn lock(arguments: &Arguments, open: Open, files: &[PathBuf], path: &Path) -> Result<(), Failure> {
    let before = if path.exists() { locked(path)? } else { Lock::default() };
    let review = arguments.common.review(open, Some(path).filter(|path| path.exists() && !arguments.update))?;
    let (done, has_errors) = pinned(arguments, files, &*review).await?;
    // Nothing is written if there are errors: a later run would otherwise skip the images that were right.
    failed(has_errors, "images may not run, or were not found: nothing was locked")?;
    let (mut now, mut changes) = (before.clone(), 0);
    let resolved = jiff::Timestamp::now();
    let resolved = resolved.round(jiff::Unit::Second).unwrap_or(resolved).to_string();
    for Pin { image, pinned, evidence } in done.iter().flat_map(|done| &done.pinned.pins) {
        let Some((_, digest)) = pinned.split_once('@') else { continue };
        let parsed = Image::parse(image).map_err(|error| usage(anyhow::anyhow!("{image}: {error}")))?;
        let name = parsed.clone().into_reference().map(|reference| reference.full_name()).ok();
        if name.and_then(|name| now.get(&name)).is_some_and(|known| known.digest == *digest) {
            continue;
        }
        let (digest, evidence) = (digest.to_owned(), evidence.clone());
        let entry = Locked { digest: digest.clone(), resolved: resolved.clone(), registry: parsed.host, evidence };
        match now.insert(image, entry).map_err(usage)? {
            Some(before) => println!("{image}: {} -> {digest}", before.digest),
            None => println!("{image}: {digest}"),
        }
        changes += 1;
    }
    if changes > 0 || !path.exists() {
        replace(path, &now.text())?;
    }
    println!("{}: {} locked, {changes} of them now", path.display(), count(now.images().count(), "image"));
    Ok(())
}

/// Reports images that are not locked, and locked images whose tags now refer to other digests.
async fn check_lock(arguments: &Arguments, open: Open, files: &[PathBuf], path: &Path) -> Result<(), Failure> {
    let lock = locked(path)?;
    let review = arguments.common.review(open, None)?;
    let (done, has_errors) = pinned(arguments, files, &*review).await?;
    let mut differences = BTreeMap::new();
    for Done { name, pinned, .. } in &done {
        for Pin { image, pinned, .. } in &pinned.pins {
            let reference = Image::parse(image).ok().and_then(|image| image.into_reference().ok());
            let known = reference.and_then(|reference| lock.get(&reference.full_name()).cloned());
            let now = pinned.split_once('@').map_or("", |(_, digest)| digest);
            let text = match known {
                None => format!("{name}: {image} is not locked: lock it with `pin --lock`"),
                Some(known) if known.digest != now => {
                    format!("{name}: {image} has moved: locked {} at {}, now {now}", known.digest, known.resolved)
                }
                Some(_) => continue,
            };
            differences.insert(image.clone(), text);
        }
    }
    for text in differences.values() {
        println!("{text}");
    }
    failed(has_errors, "images may not run, or were not found")?;
    failed(!differences.is_empty(), &format!("{} not as in {}", count(differences.len(), "image"), path.display()))
}

fn locked(path: &Path) -> Result<Lock, Failure> {
    Lock::parse(&read(path)?).with_context(|| path.display().to_string()).map_err(usage)
}

/// The text of a file, or of standard input.
fn read(path: &Path) -> Result<String, Failure> {
    let failed = || format!("failed to read {}", path.display());
    let input: Box<dyn std::io::Read> = if path == Path::new(STANDARD) {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).with_context(failed).map_err(usage)?)
    };
    let mut text = String::new();
    // One byte more than the limit, so that a larger text is refused and not cut.
    input.take(TEXT_BYTES_MAX as u64 + 1).read_to_string(&mut text).with_context(failed).map_err(usage)?;
    if text.len() > TEXT_BYTES_MAX {
        let what = anyhow::anyhow!("{}: it is larger than {} MiB: split it", path.display(), TEXT_BYTES_MAX >> 20);
        return Err(usage(what));
    }
    Ok(text)
}

/// Returns an error if `path` is a symbolic link. The replacement of a file would turn the link into a file and leave
/// the link's target unchanged. If the command wrote through the link, an attacker with access to the folder could
/// choose the written file.
fn no_link(path: &Path) -> anyhow::Result<()> {
    if !path.is_symlink() {
        return Ok(());
    }
    let target = std::fs::canonicalize(path).unwrap_or_default();
    anyhow::bail!("{} is a symbolic link: name its target ({})", path.display(), target.display())
}

/// Writes a new file beside the file at `path`, with the same permissions, and renames it to `path`.
fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    no_link(path)?;
    let failed = || format!("failed to write {}", path.display());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    // Such a file is left from a run that ended in the middle, or is a planted link.
    let _ = std::fs::remove_file(&beside);
    let mut file = std::fs::File::create_new(&beside).with_context(failed)?;
    file.write_all(text.as_bytes()).with_context(failed)?;
    drop(file);
    if let Ok(known) = std::fs::metadata(path) {
        std::fs::set_permissions(&beside, known.permissions()).with_context(failed)?;
    }
    std::fs::rename(&beside, path).with_context(failed)
}

/// The given files, and all manifests below the given folders, sorted.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let (mut folders, mut links) = (Vec::new(), Vec::new());
    for path in paths {
        if path.is_dir() { folders.push(path.clone()) } else { found.push(path.clone()) }
    }
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string()).map_err(usage)?;
        let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        for path in paths {
            let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            let kind = path.extension().and_then(|extension| extension.to_str());
            if path.is_dir() && !path.is_symlink() && !is_hidden {
                folders.push(path);
            } else if matches!(kind, Some("yaml" | "yml" | "json")) && path.is_file() {
                let into = if path.is_symlink() { &mut links } else { &mut found };
                into.push(path);
            }
        }
        if found.len() > FILES_MAX {
            return Err(usage(anyhow::anyhow!("more than {FILES_MAX} files: name the folders of the manifests")));
        }
    }
    // A link to one of these is covered by its target.
    let real: BTreeSet<PathBuf> = found.iter().filter_map(|path| path.canonicalize().ok()).collect();
    found.extend(links.into_iter().filter(|link| link.canonicalize().map_or(true, |file| !real.contains(&file))));
    Ok(found)
}

fn line(file: &str, finding: &Finding) -> String {
    let object = &finding.object;
    format!(
        "{file}:{}: {}: {}/{}: {}",
        finding.line,
        finding.severity.name(),
        object.kind,
        object.name,
        finding.message
    )
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn failed(failed: bool, why: &str) -> Result<(), Failure> {
    if failed { Err(Failure::Failed(anyhow::anyhow!("{why}"))) } else { Ok(()) }
}
