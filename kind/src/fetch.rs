//! The download of a control plane's official programs: kube-apiserver, kubectl and etcd.
//!
//! Owns the downloads, the check of their digests, and the folder of the programs, which envtest can use as
//! `KUBEBUILDER_ASSETS`. An interrupted download starts again from the beginning. A downloaded file gets its final name
//! only after its digest was found right.
//!
//! By default two servers are contacted: `dl.k8s.io`, which redirects to `cdn.dl.k8s.io`, and `github.com`, which
//! redirects to `release-assets.githubusercontent.com`. [`Fetch::sources`] can name other servers for the downloads.
//! Connections use HTTPS and trust the platform's authorities; plain HTTP is only for servers on this machine. The
//! digests come from the same servers as the programs, so they protect only against broken and mixed-up files. HTTPS
//! protects against false servers.

mod archive;
mod client;
mod error;

use std::fmt::{self, Write as _};
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use client::Client;

pub use error::Error;

/// The server of Kubernetes' programs: `<base>/v1.x.y/bin/linux/amd64/kube-apiserver`, with a digest file `.sha256`
/// beside each program.
pub const KUBERNETES_SOURCE: &str = "https://dl.k8s.io";
/// The server of etcd's releases: `<base>/v3.x.y/etcd-v3.x.y-linux-amd64.tar.gz`, with the digest file `SHA256SUMS`
/// beside it.
pub const ETCD_SOURCE: &str = "https://github.com/etcd-io/etcd/releases/download";
/// The version of etcd. Kubernetes has used this minor version of etcd since 1.22; older Kubernetes versions work with
/// it too.
pub const ETCD_VERSION: &str = "3.5.21";
/// Largest accepted program in bytes: kube-apiserver has about 100 MiB, or 200 MiB with debug symbols.
const PROGRAM_BYTES_MAX: u64 = 512 << 20;
/// Largest accepted digest file in bytes; digest files have one digest or a few dozen.
const DIGEST_BYTES_MAX: u64 = 64 << 10;

/// The programs to fetch, their servers and their folder.
#[derive(Debug, Clone)]
pub struct Fetch {
    /// The version of Kubernetes, with or without `v`, for example `1.33.0`.
    pub version: String,
    pub etcd_version: String,
    /// The folder for the programs, which is made if it does not exist.
    pub destination: PathBuf,
    pub sources: Sources,
    /// PEM certificates of authorities that are trusted instead of the platform's, for a mirror server with its own
    /// authority.
    pub ca_pem: Option<String>,
}

/// The base URLs of the programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    /// The base URL of Kubernetes' programs, as in [`KUBERNETES_SOURCE`].
    pub kubernetes: String,
    /// The base URL of etcd's releases, as in [`ETCD_SOURCE`].
    pub etcd: String,
}

/// The programs that a fetch wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The folder of the programs, for `KUBEBUILDER_ASSETS`.
    pub destination: PathBuf,
    /// The names of the programs, with their sizes in bytes.
    pub programs: Vec<(&'static str, u64)>,
}

/// A file that is being written. Dropping the value removes the file.
#[derive(Debug)]
struct Partial {
    path: PathBuf,
    file: File,
    bytes: u64,
    renamed: bool,
}

impl Default for Sources {
    fn default() -> Self {
        Self { kubernetes: KUBERNETES_SOURCE.to_owned(), etcd: ETCD_SOURCE.to_owned() }
    }
}

impl Fetch {
    /// The settings to fetch the official programs of a Kubernetes version and a compatible etcd into `destination`.
    pub fn new(version: &str, destination: impl Into<PathBuf>) -> Self {
        Self {
            version: version.to_owned(),
            etcd_version: ETCD_VERSION.to_owned(),
            destination: destination.into(),
            sources: Sources::default(),
            ca_pem: None,
        }
    }
}

/// Fetches kube-apiserver, kubectl and etcd for this machine. Each fetched program atomically replaces an older file
/// with the same name.
pub async fn fetch(fetch: &Fetch) -> Result<Fetched, Error> {
    let kubernetes = version(&fetch.version)?;
    let etcd = version(&fetch.etcd_version)?;
    let platform = platform(std::env::consts::OS, std::env::consts::ARCH)?;
    let client = Client::new(fetch.ca_pem.as_deref());
    let destination = std::path::absolute(&fetch.destination).map_err(failed(&fetch.destination))?;
    fs::create_dir_all(&destination).map_err(failed(&destination))?;
    let mut programs = Vec::new();
    let base = fetch.sources.kubernetes.trim_end_matches('/');
    for program in ["kube-apiserver", "kubectl"] {
        let url = format!("{base}/v{kubernetes}/bin/{}/{program}", platform.replace('-', "/"));
        let digests = format!("{url}.sha256");
        let text = client.text(&digests, DIGEST_BYTES_MAX).await?;
        let expected = text.split_whitespace().next().and_then(digest).ok_or_else(|| no_digest(program, &digests))?;
        let partial = download(&client, &url, &expected, &destination, program).await?;
        programs.push((program, partial.finish(&destination.join(program))?));
    }
    let base = format!("{}/v{etcd}", fetch.sources.etcd.trim_end_matches('/'));
    let folder = format!("etcd-v{etcd}-{platform}");
    programs.push(("etcd", fetch_etcd(&client, &base, &folder, &destination).await?));
    Ok(Fetched { destination, programs })
}

async fn fetch_etcd(client: &Client, base: &str, folder: &str, destination: &Path) -> Result<u64, Error> {
    let file = format!("{folder}.tar.gz");
    let digests = format!("{base}/SHA256SUMS");
    let text = client.text(&digests, DIGEST_BYTES_MAX).await?;
    let expected = digest_of(&text, &file).ok_or_else(|| no_digest(&file, &digests))?;
    let partial = download(client, &format!("{base}/{file}"), &expected, destination, "etcd.tar.gz").await?;
    let mut program = Partial::create(destination, "etcd")?;
    let path = format!("{folder}/etcd");
    let unpacking = tokio::task::spawn_blocking(move || {
        archive::unpack(&partial, &file, &path, &mut program, PROGRAM_BYTES_MAX)?;
        Ok(program)
    });
    // A panic in there is a defect and is raised again here.
    let program = unpacking.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))?;
    program.finish(&destination.join("etcd"))
}

/// Downloads a file and checks its digest; the file still has a temporary name.
async fn download(
    client: &Client,
    url: &str,
    expected: &str,
    destination: &Path,
    name: &str,
) -> Result<Partial, Error> {
    let mut partial = Partial::create(destination, name)?;
    let mut hash = Sha256::new();
    let mut take = |bytes: &[u8]| {
        hash.update(bytes);
        partial.write(bytes)
    };
    client.get(url, PROGRAM_BYTES_MAX, &mut take).await?;
    let found = hex(&hash.finalize());
    if found != expected {
        return Err(Error::Digest { url: url.to_owned(), expected: expected.to_owned(), found });
    }
    Ok(partial)
}

impl Partial {
    /// Makes a temporary file in the folder of the final file, so that renaming is atomic.
    fn create(destination: &Path, name: &str) -> Result<Self, Error> {
        let path = destination.join(format!(".{name}.{}-{:08x}.partial", std::process::id(), rand::random::<u32>()));
        let file = File::create_new(&path).map_err(failed(&path))?;
        Ok(Self { path, file, bytes: 0, renamed: false })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(failed(&self.path))
    }

    /// Renames the file to the program; returns its size in bytes.
    fn finish(mut self, path: &Path) -> Result<u64, Error> {
        self.file.set_permissions(fs::Permissions::from_mode(0o755)).map_err(failed(&self.path))?;
        self.file.sync_all().map_err(failed(&self.path))?;
        fs::rename(&self.path, path).map_err(failed(path))?;
        self.renamed = true;
        Ok(self.bytes)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The Kubernetes version without `v`. The version text is checked, because it becomes part of URLs and paths.
fn version(text: &str) -> Result<&str, Error> {
    let version = text.strip_prefix('v').unwrap_or(text);
    let number = |part: &str| !part.is_empty() && part.len() < 6 && part.bytes().all(|byte| byte.is_ascii_digit());
    let (numbers, rest) = version.split_once('-').map_or((version, None), |(numbers, rest)| (numbers, Some(rest)));
    let word = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
    if numbers.split('.').count() == 3 && numbers.split('.').all(number) && rest.is_none_or(word) {
        return Ok(version);
    }
    Err(Error::Version { version: text.to_owned() })
}

/// The platform in Go's terms, for example `linux-amd64`.
fn platform(os: &'static str, arch: &'static str) -> Result<&'static str, Error> {
    match (os, arch) {
        ("linux", "x86_64") => Ok("linux-amd64"),
        ("linux", "aarch64") => Ok("linux-arm64"),
        _ => Err(Error::Platform { os, arch }),
    }
}

/// The digest of `file`, read from `text`, which has the format of sha256sum(1).
fn digest_of(text: &str, file: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
    // A star before the name means that it was read as binary.
    let (found, _) = lines.find(|(_, name)| name.trim_start().trim_start_matches('*') == file)?;
    digest(found)
}

fn digest(word: &str) -> Option<String> {
    (word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| word.to_ascii_lowercase())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn no_digest(file: &str, url: &str) -> Error {
    Error::NoDigest { file: file.to_owned(), url: url.to_owned() }
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Error::NoSpace { path: path.clone() },
        _ => Error::File { path: path.clone(), source },
    }
}

impl fmt::Display for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (program, bytes) in &self.programs {
            writeln!(f, "fetched {program} ({:.1} MB), its digest matches", *bytes as f64 / 1e6)?;
        }
        write!(f, "use them: export KUBEBUILDER_ASSETS={}", self.destination.display())
    }
}

#[cfg(test)]
mod tests;
