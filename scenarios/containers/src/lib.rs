//! Tests that start containers through testcontainers: Longhaul's own images, and programs that Longhaul works with.
//!
//! This library owns the images of the tests. No image is pulled: an image contains one program of this machine and
//! the libraries that the program loads. The engine keeps the newest image of each name, with the label
//! `dev.longhaul.test`; the tests remove their containers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use testcontainers::bollard::Docker;
use testcontainers::bollard::query_parameters::{CreateImageOptionsBuilder, RemoveImageOptionsBuilder};
use testcontainers::core::client::docker_client_instance;
use testcontainers::{ContainerAsync, Image};
use tokio::sync::Mutex;
use tokio_stream::StreamExt as _;

/// The folder with the programs under test, set by `cargo xtask test`.
const PROGRAMS: &str = "LONGHAUL_PROGRAMS";
/// The variable with the address of published ports, if it is not the engine's.
const PUBLISHED: &str = "TESTCONTAINERS_HOST_OVERRIDE";
/// The names of the images that this process has made.
static MADE: Mutex<BTreeSet<String>> = Mutex::const_new(BTreeSet::new());
/// The label of all images of these tests.
const LABEL: &str = "LABEL dev.longhaul.test=1";
/// The user id of programs in Longhaul's images.
pub const USER: u64 = 65532;
/// Longest time from the start of a container to its first answer. On an idle machine an answer takes seconds; beside
/// other tests an engine can need a minute.
pub const STARTUP: Duration = Duration::from_mins(3);
/// Interval between two attempts of [`until`].
const AGAIN: Duration = Duration::from_millis(100);
/// Folders in which programs lie that are not on the `PATH` of every user.
const SYSTEM: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/bin"];

/// Error of a test. A test ends at its first error.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The container engine of this machine. Prints a message and returns `None` if no engine answers.
pub async fn engine() -> Option<Docker> {
    let answer = match docker_client_instance().await {
        Ok(docker) => docker.ping().await.map(|_| docker).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    answer.inspect_err(|error| println!("skipped: needs an engine ({error})")).ok()
}

/// A program under test. Prints a message and returns `None` if the program is missing.
pub fn tested(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os(PROGRAMS).map(|folder| Path::new(&folder).join(name)).filter(|path| path.exists());
    if found.is_none() {
        println!("skipped: needs {name}, as `cargo xtask test` builds it");
    }
    found
}

/// A program of this machine. Prints a message and returns `None` if the program is missing.
pub fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SYSTEM.iter().map(PathBuf::from));
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: needs {name}");
    }
    found
}

/// An image to make: programs in `/usr/bin`, of which the first one runs.
pub struct Recipe<'a> {
    pub name: &'a str,
    pub programs: &'a [PathBuf],
    /// Further lines of a Dockerfile, such as `EXPOSE 6379`.
    pub changes: &'a [&'a str],
}

impl Recipe<'_> {
    /// Makes the image in the engine, tagged `latest`, once for all tests, in place of an earlier one. Programs run as [`USER`] in `/work`,
    /// as in the images of a release.
    pub async fn make(&self, docker: &Docker) -> Result<(), Error> {
        // Two tests that make one image at a time would leave an image without a name.
        let mut made = MADE.lock().await;
        if made.contains(self.name) {
            return Ok(());
        }
        let root = root(self.programs)?;
        let first = self.programs.first().and_then(|path| path.file_name()).ok_or("no program")?.to_string_lossy();
        let changes = [
            format!("ENTRYPOINT [\"/usr/bin/{first}\"]"),
            format!("USER {USER}:{USER}"),
            "WORKDIR /work".to_owned(),
            "ENV PATH=/usr/bin".to_owned(),
            LABEL.to_owned(),
        ];
        let changes = changes.into_iter().chain(self.changes.iter().copied().map(str::to_owned)).collect();
        let earlier = RemoveImageOptionsBuilder::new().force(true).build();
        // The first run finds no earlier image.
        drop(docker.remove_image(self.name, Some(earlier), None).await);
        let options = CreateImageOptionsBuilder::new().from_src("-").repo(self.name).tag("latest");
        let options = options.changes(changes).build();
        let mut steps = docker.create_image(Some(options), Some(testcontainers::bollard::body_full(root.into())), None);
        while let Some(step) = steps.next().await {
            step?;
        }
        made.insert(self.name.to_owned());
        Ok(())
    }
}

/// The files of an image as a tar: programs, their libraries, a folder for temporary files and a working folder.
fn root(programs: &[PathBuf]) -> Result<Vec<u8>, Error> {
    let mut tar = tar::Builder::new(Vec::new());
    // Older engines cannot read sparse files.
    tar.sparse(false);
    for (path, mode, user) in [("tmp/", 0o1777, 0), ("work/", 0o755, USER)] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(mode);
        header.set_uid(user);
        header.set_gid(user);
        header.set_size(0);
        tar.append_data(&mut header, path, std::io::empty())?;
    }
    let mut libraries = BTreeSet::new();
    for program in programs {
        let name = program.file_name().ok_or("a program without a name")?;
        tar.append_path_with_name(std::fs::canonicalize(program)?, Path::new("usr/bin").join(name))?;
        libraries.extend(loaded(program)?);
    }
    for library in libraries {
        let inside = library.strip_prefix("/")?;
        tar.append_path_with_name(std::fs::canonicalize(&library)?, inside)?;
    }
    Ok(tar.into_inner()?)
}

/// The libraries that the dynamic loader would load for a program, and the loader itself.
fn loaded(program: &Path) -> Result<Vec<PathBuf>, Error> {
    let output = Command::new("ldd").arg(program).output()?;
    // A static program has no libraries, and `ldd` then fails.
    let text = String::from_utf8_lossy(&output.stdout);
    let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(paths.map(|path| PathBuf::from(path.trim_end_matches(':'))).collect())
}

/// The host and the published port of a container's port.
pub async fn address<I: Image>(container: &ContainerAsync<I>, port: u16) -> Result<(String, u16), Error> {
    let published = container.get_host_port_ipv4(port).await?;
    let host = match std::env::var(PUBLISHED) {
        Ok(host) if !host.is_empty() => host,
        _ => container.get_host().await?.to_string(),
    };
    Ok((host, published))
}

/// Repeats an attempt until it succeeds, at most for [`STARTUP`].
pub async fn until<T, E: std::fmt::Display>(mut attempt: impl AsyncFnMut() -> Result<T, E>) -> Result<T, Error> {
    let deadline = Instant::now() + STARTUP;
    loop {
        match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) if Instant::now() > deadline => return Err(error.to_string().into()),
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

/// Runs a command to its end without standard input. The error contains the output.
pub fn run(command: &mut Command) -> Result<Output, Error> {
    let output = command.stdin(std::process::Stdio::null()).output()?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!("{command:?}: {}\n{}", output.status, printed(&output)).into())
}

/// The output of a command, both streams.
pub fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
