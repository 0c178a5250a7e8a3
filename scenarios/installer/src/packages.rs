//! Lists the client packages that can be installed, each with its lock file.
//!
//! To add a package, add one folder under `packages/` and one line of [`PACKAGES`].

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use flate2::read::GzDecoder;

use crate::{Installed, Missing, Once};

/// A client package of one version.
#[derive(Debug)]
pub struct Package {
    /// The package's name in its registry.
    pub name: &'static str,
    pub version: &'static str,
    source: Source,
    folder: Once,
}

/// The registry of a package, with the files that lock its dependencies. The build script compresses the files.
#[derive(Debug)]
enum Source {
    Npm { manifest: &'static [u8], lock: &'static [u8] },
    Pip { lock: &'static [u8] },
}

/// A file of a package, as the build script leaves it.
macro_rules! packed {
    ($folder:expr, $version:literal, $file:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $folder, "-", $version, "/", $file, ".gz"))
    };
}

macro_rules! npm {
    ($name:literal, $version:literal, $folder:literal) => {
        Package {
            name: $name,
            version: $version,
            source: Source::Npm {
                manifest: packed!($folder, $version, "package.json"),
                lock: packed!($folder, $version, "package-lock.json"),
            },
            folder: Once::const_new(),
        }
    };
}

macro_rules! pip {
    ($name:literal, $version:literal) => {
        Package {
            name: $name,
            version: $version,
            source: Source::Pip { lock: packed!($name, $version, "requirements.txt") },
            folder: Once::const_new(),
        }
    };
}

/// All packages. The code generator of kubernetes-fluent-client 3.11.11 depends on a withdrawn version of
/// `quicktype-core`, so the package's manifest overrides that one version. The package's watcher and fluent API do not
/// use this code generator.
pub static PACKAGES: [Package; 13] = [
    npm!("@kubernetes/client-node", "2.0.1", "kubernetes-client-node"),
    npm!("kubernetes-fluent-client", "2.3.1", "kubernetes-fluent-client"),
    npm!("kubernetes-fluent-client", "2.6.5", "kubernetes-fluent-client"),
    npm!("kubernetes-fluent-client", "3.0.4", "kubernetes-fluent-client"),
    npm!("kubernetes-fluent-client", "3.1.1", "kubernetes-fluent-client"),
    npm!("kubernetes-fluent-client", "3.3.7", "kubernetes-fluent-client"),
    npm!("kubernetes-fluent-client", "3.11.6", "kubernetes-fluent-client"),
    npm!("kubernetes-fluent-client", "3.11.11", "kubernetes-fluent-client"),
    npm!("pepr", "0.29.2", "pepr"),
    npm!("pepr", "1.1.4", "pepr"),
    pip!("kubernetes", "37.0.2"),
    pip!("kopf", "1.45.2"),
    pip!("kubernetes_lite", "0.1.0"),
];

pub fn package(name: &str, version: &str) -> Option<&'static Package> {
    PACKAGES.iter().find(|package| package.name == name && package.version == version)
}

impl Package {
    /// Installs the package, unless it is already installed. Simultaneous callers share one installation.
    pub async fn install(&self) -> Result<Installed, Missing> {
        let interpreter = match self.source {
            Source::Npm { .. } => crate::node().await?,
            Source::Pip { .. } => crate::python().await?,
        };
        let folder = self.folder.get_or_init(|| self.fetch(&interpreter)).await.clone()?;
        Ok(Installed { interpreter, folder })
    }

    async fn fetch(&self, interpreter: &std::path::Path) -> Result<PathBuf, Missing> {
        match self.source {
            Source::Npm { manifest, lock } => {
                crate::npm(self.name, self.version, &unpacked(manifest)?, &unpacked(lock)?).await
            }
            Source::Pip { lock } => crate::pip(self.name, self.version, interpreter, &unpacked(lock)?).await,
        }
    }
}

fn unpacked(packed: &[u8]) -> Result<String, Missing> {
    let mut text = String::new();
    match GzDecoder::new(packed).read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Missing::Cache(Arc::new(error))),
    }
}
