//! Creates links to this program in the folders where test kits look for kube-apiserver, etcd and kubectl.
//!
//! If the program is started by a link, it acts as the tool with the link's name.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use mock_envtest::PROGRAMS;

#[derive(Debug, Clone, Copy)]
pub(crate) enum LinkFolder<'a> {
    /// The cache folder of this user, where the links stay.
    Cache,
    /// A folder of the caller's choice.
    At(&'a Path),
}

/// Creates a folder with a link for each program.
pub(crate) fn links(place: LinkFolder<'_>) -> Result<PathBuf> {
    let folder = match place {
        LinkFolder::Cache => below_home("XDG_CACHE_HOME", ".cache")?.join("longhaul/envtest"),
        LinkFolder::At(folder) => folder.to_owned(),
    };
    let own = std::env::current_exe().context("failed to find this program")?;
    std::fs::create_dir_all(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
    for name in PROGRAMS {
        let link = folder.join(name);
        // The link is replaced atomically, because a suite may be starting it.
        let beside = folder.join(format!(".{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&beside);
        std::os::unix::fs::symlink(&own, &beside)
            .and_then(|()| std::fs::rename(&beside, &link))
            .with_context(|| format!("failed to make {}", link.display()))?;
    }
    Ok(folder)
}

/// Creates links in the folder layouts of setup-envtest and of fabric8's test kit.
pub(crate) fn install(version: &str, bin_dir: Option<&Path>, force: bool) -> Result<Vec<PathBuf>> {
    let store = match bin_dir {
        Some(folder) => folder.to_owned(),
        None => below_home("XDG_DATA_HOME", ".local/share")?.join("kubebuilder-envtest"),
    };
    let java = match std::env::var_os("KUBE_API_TEST_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => home()?.join(".kubeapitest"),
    };
    let folders = [layout(&store, version), layout(&java, version)];
    for folder in &folders {
        let real = PROGRAMS.iter().map(|name| folder.join(name)).find(|file| file.exists() && !file.is_symlink());
        if let Some(real) = real.filter(|_| !force) {
            bail!(
                "{} was not installed by Longhaul: write `--force` to replace it, or another `--version`",
                real.display()
            );
        }
    }
    folders.iter().map(|folder| links(LinkFolder::At(folder))).collect()
}

/// The folder for the programs of a version, inside a test kit's folder. If `version` is empty or a pattern, the
/// version of the mock is used.
pub(crate) fn layout(folder: &Path, version: &str) -> PathBuf {
    let version = if version.is_empty() || version.contains('*') { mock_kube::VERSION } else { version };
    let version = version.trim_start_matches('v');
    folder.join("k8s").join(format!("{version}-{}-{}", std::env::consts::OS, architecture()))
}

/// The user's real kubectl, to which all other commands of a suite are passed.
pub(crate) fn real_kubectl() -> Option<PathBuf> {
    let own = std::env::current_exe().and_then(|own| own.canonicalize()).ok()?;
    let named = std::env::var_os("TEST_ASSET_KUBECTL").map(PathBuf::from);
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(|folder| PathBuf::from(folder).join("kubectl"));
    let on_path = installer::folders().into_iter().map(|folder| folder.join("kubectl"));
    named.into_iter().chain(assets).chain(on_path).find(|file| file.canonicalize().is_ok_and(|file| file != own))
}

/// The processor architecture, as Go names it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn home() -> Result<PathBuf> {
    std::env::home_dir().context("this user has no home folder: set HOME")
}

fn below_home(variable: &str, usual: &str) -> Result<PathBuf> {
    match std::env::var_os(variable).filter(|folder| !folder.is_empty()) {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => Ok(home()?.join(usual)),
    }
}
