//! `longhaul mock registry --signed FOLDER`: signed images to try a signature policy manually.
//!
//! Owns the files in FOLDER, except the keys. [`Trusted`] defines which signatures are valid, as in a run.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use mock_registry::{Image, Population, Server};

use crate::run::Trusted;

const CONFIGURATION: &str = "service.yaml";
/// Name of the file with the password that the service sends to the registry.
const PASSWORD: &str = "registry.password";

/// Fills the registry with signed images. Writes the trusted keys and a configuration of the service into the new
/// folder `folder`.
pub(super) fn seed(
    server: &Server,
    population: &Population,
    folder: &Path,
    login: Option<(&str, &str)>,
) -> Result<Vec<Image>> {
    // Absolute, because the service resolves relative paths from the folder of its configuration.
    let folder = std::path::absolute(folder).context("failed to find the current folder")?;
    let trusted = Trusted::generate(folder.clone()).context("keys are fresh at each start: name a new folder")?;
    let images = server.seed_signed(population, trusted.keys())?;
    let password = folder.join(PASSWORD);
    if let Some((_, text)) = login {
        write(&password, text)?;
    }
    let configuration = trusted.configuration(server.host(), login.map(|(user, _)| (user, password.as_path())));
    let path = folder.join(CONFIGURATION);
    // JSON is YAML.
    write(&path, &format!("{configuration:#}\n"))?;
    let one = images.iter().find(|image| image.signing.is_some()).map_or("IMAGE", |image| image.reference.as_str());
    crate::out::out!("keys, trusted_root.json and a policy are in {}", folder.display());
    crate::out::out!("try: longhaul-service verify {one} --config {}", path.display());
    Ok(images)
}

/// Writes a new file that no other user can read.
fn write(path: &Path, text: &str) -> Result<()> {
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("failed to write {}", path.display()))
}
