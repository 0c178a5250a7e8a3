//! Folders that a program finds where a kubelet would mount a service account, a `Secret` or a `ConfigMap`.
//!
//! Keeps the files in the folders equal to the objects. `subject::Mounts` makes a program find the folders.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::{Method, StatusCode};
use serde_json::Value;

use super::Api;
use crate::scenario::Mount;
use crate::subject::Mounts;

/// Interval between two reads of an object. A kubelet may take a minute to show a change.
const POLL: Duration = Duration::from_millis(500);
/// The symbolic link to the current files, with the name that a kubelet uses.
const LINK: &str = "..data";
const JSON: &str = "application/json";

/// Folders that follow their objects until this value is dropped.
#[derive(Debug)]
pub(crate) struct Mounted {
    mounts: Mounts,
    environment: Vec<(String, String)>,
    follower: Option<tokio::task::JoinHandle<()>>,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(follower) = &self.follower {
            follower.abort();
        }
    }
}

impl Mounted {
    /// Creates the folders below `folder`, and reads the objects through `api`. `kubeconfig` is the program's
    /// kubeconfig.
    ///
    /// # Errors
    ///
    /// Fails if a folder cannot be created, an object cannot be read, or a service account is wanted and the kubeconfig has no token. An
    /// object that does not exist is no error, because the program may create it.
    pub(crate) async fn open(
        wanted: &BTreeMap<PathBuf, Mount>,
        folder: &Path,
        api: loadgen::churn::Api,
        kubeconfig: &str,
    ) -> Result<Self> {
        let make =
            |path: &Path| std::fs::create_dir_all(path).with_context(|| format!("failed to make {}", path.display()));
        let scratch = folder.join("scratch");
        make(&scratch)?;
        let (mut folders, mut followed, mut environment) = (Vec::new(), Vec::new(), Vec::new());
        for (number, (target, mount)) in wanted.iter().enumerate() {
            let source = folder.join(number.to_string());
            make(&source)?;
            match (mount, mount.object()) {
                (_, Some((resource, namespace, name))) => {
                    let path = format!("/api/v1/namespaces/{namespace}/{resource}/{name}");
                    followed.push(Followed { path, folder: source.clone(), version: String::new(), count: 0 });
                }
                (Mount::ServiceAccount(namespace), None) => environment = account(&source, kubeconfig, namespace)?,
                (_, None) => {}
            }
            folders.push((target.clone(), source));
        }
        // As with a kubelet, the files exist before the program starts.
        for one in &mut followed {
            one.read(&api).await?;
        }
        let follower = (!followed.is_empty()).then(|| tokio::spawn(follow(api, followed)));
        Ok(Self { mounts: Mounts { scratch, folders }, environment, follower })
    }

    pub(crate) fn mounts(&self) -> Mounts {
        self.mounts.clone()
    }

    /// Environment variables with which a program in a cluster finds the API server.
    pub(crate) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }
}

/// Writes the files of a service account from a kubeconfig, and returns the environment variables for them.
fn account(folder: &Path, kubeconfig: &str, namespace: &str) -> Result<Vec<(String, String)>> {
    let read: Value = serde_saphyr::from_str(kubeconfig).context("failed to read the kubeconfig of the run")?;
    let (cluster, user) = (&read["clusters"][0]["cluster"], &read["users"][0]["user"]);
    let server = cluster["server"].as_str().context("the kubeconfig of the run names no server")?;
    let authority = cluster["certificate-authority-data"].as_str().unwrap_or_default();
    let authority = STANDARD.decode(authority).context("failed to read the authority in the kubeconfig of the run")?;
    match (user["token"].as_str(), user["tokenFile"].as_str()) {
        (_, Some(file)) => std::os::unix::fs::symlink(file, folder.join("token"))?,
        (Some(token), None) => write(&folder.join("token"), token.as_bytes())?,
        (None, None) => {
            anyhow::bail!("`serviceAccount` in `mounts` needs a control plane that gives the subject a token")
        }
    }
    write(&folder.join("ca.crt"), &authority)?;
    write(&folder.join("namespace"), namespace.as_bytes())?;
    let (host, port) = crate::scenario::host_and_port(server).context("the kubeconfig of the run names no server")?;
    let variables = [("KUBERNETES_SERVICE_HOST", host), ("KUBERNETES_SERVICE_PORT", port.to_string())];
    Ok(variables.map(|(name, value)| (name.to_owned(), value)).to_vec())
}

/// An object, and the folder with its keys as files.
#[derive(Debug)]
struct Followed {
    path: String,
    folder: PathBuf,
    version: String,
    count: u64,
}

async fn follow(api: loadgen::churn::Api, mut all: Vec<Followed>) {
    loop {
        tokio::time::sleep(POLL).await;
        for one in &mut all {
            // If the API server is away, the files stay as they are, as on a node. The run itself notices a full disk.
            let _ = one.read(&api).await;
        }
    }
}

impl Followed {
    /// Reads the object, and writes its files if the object exists.
    async fn read(&mut self, api: &loadgen::churn::Api) -> Result<()> {
        let (status, body) = Api::from(api).ask_as(Method::GET, &self.path, String::new(), JSON, JSON).await?;
        match status {
            StatusCode::OK => {
                let object: Value = serde_json::from_slice(&body).context("an object that is mounted is no JSON")?;
                self.show(&object).with_context(|| format!("failed to write {}", self.folder.display()))
            }
            StatusCode::NOT_FOUND => Ok(()),
            _ => anyhow::bail!("`mounts`: GET {} answers {status}: the harness needs the right to get it", self.path),
        }
    }

    /// Replaces all files of an object at once: writes a new folder, then points the link to the new folder.
    fn show(&mut self, object: &Value) -> std::io::Result<()> {
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if version == self.version {
            return Ok(());
        }
        self.count += 1;
        let name = format!("..{}", self.count);
        let link = self.folder.join(LINK);
        let old = std::fs::read_link(&link).ok();
        let keys = self.turn(&name, object).inspect_err(|_| drop(std::fs::remove_dir_all(self.folder.join(&name))))?;
        version.clone_into(&mut self.version);
        for entry in std::fs::read_dir(&self.folder)?.flatten() {
            let key = entry.file_name().to_string_lossy().into_owned();
            if !key.starts_with("..") && !keys.contains(&key) && !entry.path().is_dir() {
                std::fs::remove_file(entry.path())?;
            }
        }
        for key in keys.iter().filter(|key| !self.folder.join(key).is_symlink()) {
            std::os::unix::fs::symlink(Path::new(LINK).join(key), self.folder.join(key))?;
        }
        if let Some(old) = old {
            std::fs::remove_dir_all(self.folder.join(old))?;
        }
        Ok(())
    }

    /// Writes the files into a new folder, and points the link to the new folder. Returns the keys.
    fn turn(&self, name: &str, object: &Value) -> std::io::Result<Vec<String>> {
        let fresh = self.folder.join(name);
        std::fs::create_dir(&fresh)?;
        let is_secret = object["kind"] == "Secret";
        let files = object["data"].as_object().into_iter().flatten();
        let mut keys = Vec::new();
        for (key, value) in files.filter(|(key, _)| is_key(key)) {
            let text = value.as_str().unwrap_or_default();
            let bytes = if is_secret { STANDARD.decode(text).unwrap_or_default() } else { text.as_bytes().to_vec() };
            write(&fresh.join(key), &bytes)?;
            keys.push(key.clone());
        }
        let turned = self.folder.join("..turned");
        // A failed attempt may have left a link.
        let _ = std::fs::remove_file(&turned);
        std::os::unix::fs::symlink(name, &turned)?;
        std::fs::rename(&turned, self.folder.join(LINK))?;
        Ok(keys)
    }
}

/// Whether a key is a valid file name (Kubernetes documentation, "Secrets"): letters, digits, `-`, `_` and `.`.
fn is_key(key: &str) -> bool {
    !key.is_empty()
        && !key.starts_with("..")
        && key != "."
        && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::write(path, bytes)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_follow_the_object() {
        let folder = tempfile::tempdir().unwrap();
        let mut one =
            Followed { path: String::new(), folder: folder.path().to_owned(), version: String::new(), count: 0 };
        let secret = |version: &str, data: &Value| json!({"kind": "Secret", "metadata": {"resourceVersion": version}, "data": data});
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        one.show(&secret("1", &json!({"tls.crt": "YQ==", "old": "Yg==", "../x": "Yw=="}))).unwrap();
        assert_eq!((read("tls.crt").as_str(), read("old").as_str()), ("a", "b"));
        one.show(&secret("2", &json!({"tls.crt": "Yw=="}))).unwrap();
        assert_eq!((read("tls.crt").as_str(), folder.path().join("old").is_symlink()), ("c", false));
        one.show(&secret("2", &json!({}))).unwrap();
        assert_eq!(read("tls.crt"), "c", "the same version is not read again");
        let names = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 3, "one folder of files, the link to it, and a link for the key");
    }

    #[test]
    fn an_account_is_made_of_a_kubeconfig() {
        let folder = tempfile::tempdir().unwrap();
        let text = "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:6443', certificate-authority-data: YQ==}}]\nusers: [{name: b, user: {token: t}}]\n";
        let variables = account(folder.path(), text, "shop").unwrap();
        assert_eq!(variables[0], ("KUBERNETES_SERVICE_HOST".to_owned(), "127.0.0.1".to_owned()));
        assert_eq!(variables[1].1, "6443");
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!([read("token"), read("ca.crt"), read("namespace")], ["t", "a", "shop"]);
        let without =
            "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:6443'}}]\nusers: [{name: b, user: {}}]\n";
        let error = account(tempfile::tempdir().unwrap().path(), without, "shop").unwrap_err();
        assert!(error.to_string().contains("gives the subject a token"), "{error}");
    }
}
