//! The folder of a control plane: keys, certificates, tokens, audit policy, data, logs.
//!
//! This module writes these files before the programs start, and removes them. Other users of the machine cannot read
//! these files, because the files contain an administrator's token.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};

use super::Error;

/// How long before the present the validity of a new certificate begins. Clocks of containers and machines differ a
/// little, and a new certificate must be valid by each of them.
const BACKDATED_BY: Duration = Duration::from_hours(1);
/// The validity of a certificate: longer than the longest run (100 hours), with time for an inspection afterwards.
const VALID_FOR: Duration = Duration::from_hours(10 * 24);
/// The user of readiness requests, which has no right except these requests.
const PROBE: &str = "longhaul:probe";
/// The audit policy. Metadata is enough to show each user's requests and their times; request bodies would be most of
/// what a run writes to disk (Kubernetes documentation, "Auditing").
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    nonResourceURLs: [/readyz*, /livez*, /healthz*, /version, /openapi*]
  - level: None
    users: ['system:apiserver']
  - level: Metadata
";

/// A user that may log in with a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The user name that RBAC sees.
    pub name: String,
    /// The groups that RBAC sees; `system:masters` has all rights.
    pub groups: Vec<String>,
}

impl User {
    /// The user `admin` with all rights.
    pub(crate) fn admin() -> Self {
        Self { name: "admin".to_owned(), groups: vec!["system:masters".to_owned()] }
    }
}

/// The settings in which the files of different kinds of control planes differ.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// The name of the control plane's certificate authority.
    pub(crate) authority: &'static str,
    /// The names and addresses in the API server's certificate.
    pub(crate) names: Vec<String>,
    /// The folder of the control plane's data.
    pub(crate) data: &'static str,
    /// Whether the API server has a client certificate for kubelets, `kubelet-client.crt`.
    pub(crate) calls_kubelets: bool,
}

/// The files of one control plane. Dropping the value removes keys and data.
pub(crate) struct Files {
    directory: PathBuf,
    data: &'static str,
    ca_pem: String,
    /// The name and the token of each user.
    tokens: Vec<(String, String)>,
    /// Whether keys and data stay after this value is dropped.
    kept: bool,
}

impl Files {
    /// Makes all folders and files of a control plane. Files of an earlier control plane in the folder are replaced.
    pub(crate) fn write(directory: &Path, users: &[User], server: &Server) -> Result<Self, Error> {
        let mut files = Self::folders(directory, server.data)?;
        files.fill(users, server)?;
        Ok(files)
    }

    /// Makes only the folders of a control plane. Files of an earlier control plane in these folders are removed.
    pub(crate) fn folders(directory: &Path, data: &'static str) -> Result<Self, Error> {
        let directory = std::path::absolute(directory).map_err(failed(directory))?;
        let files = Self { directory, data, ca_pem: String::new(), tokens: Vec::new(), kept: false };
        files.remove_secrets();
        for folder in [files.directory.clone(), files.key(""), files.data(), files.logs()] {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
            made.map_err(failed(&folder))?;
        }
        Ok(files)
    }

    /// Writes keys, certificates, tokens and the audit policy into the folders.
    pub(crate) fn fill(&mut self, users: &[User], server: &Server) -> Result<(), Error> {
        let files = self;
        files.write_keys(server)?;
        files.write_tokens(users)?;
        files.save("audit-policy.yaml", AUDIT_POLICY)
    }

    /// Leaves keys and data in place.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }

    pub(crate) fn key(&self, name: &str) -> PathBuf {
        self.directory.join("pki").join(name)
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.logs().join(name)
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join(self.data)
    }

    pub(crate) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    pub(crate) fn token(&self, user: &str) -> Option<&str> {
        self.tokens.iter().find(|(name, _)| name == user).map(|(_, token)| token.as_str())
    }

    pub(crate) fn probe_token(&self) -> &str {
        self.token(PROBE).unwrap_or_default()
    }

    pub(crate) fn kubeconfig(&self, user: &str, url: &str) -> Option<String> {
        Some(kubeconfig(user, self.token(user)?, &self.ca_pem, url))
    }

    fn write_keys(&mut self, wanted: &Server) -> Result<(), Error> {
        let mut authority = params(wanted.authority);
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)?;
        self.ca_pem = authority.pem();

        let mut server = params("kube-apiserver");
        server.subject_alt_names = CertificateParams::new(wanted.names.clone())?.subject_alt_names;
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        let server_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let server = server.signed_by(&server_key, &authority)?;
        let accounts = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;

        self.save("ca.crt", &self.ca_pem)?;
        self.save("apiserver.crt", &server.pem())?;
        self.save("apiserver.key", &server_key.serialize_pem())?;
        if wanted.calls_kubelets {
            let mut client = params("kube-apiserver-kubelet-client");
            client.distinguished_name.push(DnType::OrganizationName, "system:masters");
            client.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
            self.save("kubelet-client.crt", &client.signed_by(&key, &authority)?.pem())?;
            self.save("kubelet-client.key", &key.serialize_pem())?;
        }
        self.save("service-account.key", &accounts.serialize_pem())?;
        self.save("service-account.pub", &accounts.public_key_pem())
    }

    /// Writes the token file (Kubernetes documentation, "Static token file"): token, user name, user id, and the groups
    /// in one quoted column.
    fn write_tokens(&mut self, users: &[User]) -> Result<(), Error> {
        let probe = User { name: PROBE.to_owned(), groups: Vec::new() };
        let mut text = String::new();
        for user in users.iter().chain([&probe]) {
            let mut words = user.groups.iter().chain([&user.name]);
            if words.any(|word| word.contains([',', '"', '\n', '\r'])) || user.name.is_empty() {
                return Err(Error::UserName { name: user.name.clone() });
            }
            let token = URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
            // Writing to a string cannot fail.
            let _ =
                writeln!(text, "{token},{name},{name},\"{groups}\"", name = user.name, groups = user.groups.join(","));
            self.tokens.push((user.name.clone(), token));
        }
        self.save("tokens.csv", &text)
    }

    /// Writes a file into the folder of keys, readable only by this user.
    pub(crate) fn save(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.key(name);
        let mut options = fs::OpenOptions::new();
        let opened = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed(&path))
    }

    fn remove_secrets(&self) {
        for folder in [self.key(""), self.data()] {
            // A missing folder is fine; other errors appear when it is written again.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if !self.kept {
            self.remove_secrets();
        }
    }
}

impl std::fmt::Debug for Files {
    /// Formats the value without its tokens.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// A kubeconfig that contains the user's token and the authority's certificate. The names in the YAML text are JSON
/// strings, which YAML accepts.
pub(crate) fn kubeconfig(user: &str, token: &str, ca_pem: &str, url: &str) -> String {
    let ca = STANDARD.encode(ca_pem);
    let quoted = serde_json::Value::from(user);
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: local\n\
         clusters:\n- name: local\n  cluster:\n    server: {url}\n    certificate-authority-data: {ca}\n\
         users:\n- name: {quoted}\n  user:\n    token: {token}\n\
         contexts:\n- name: local\n  context:\n    cluster: local\n    user: {quoted}\n"
    )
}

fn params(common_name: &str) -> CertificateParams {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = epoch + now.saturating_sub(BACKDATED_BY);
    params.not_after = epoch + now + VALID_FOR;
    params
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { path: path.clone(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn server() -> Server {
        Server { authority: "test", names: vec!["localhost".to_owned()], data: "etcd", calls_kubelets: true }
    }

    fn user(name: &str, groups: &[&str]) -> User {
        User { name: name.to_owned(), groups: groups.iter().map(|&group| group.to_owned()).collect() }
    }

    #[test]
    fn nobody_else_can_read_the_keys_and_they_go_with_the_control_plane() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::write(directory.path(), &[user("admin", &["system:masters", "more"])], &server()).unwrap();
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(files.key("")), 0o700);
        for name in ["tokens.csv", "apiserver.key", "service-account.key", "kubelet-client.key"] {
            assert_eq!(mode(files.key(name)), 0o600, "{name}");
        }
        let tokens = fs::read_to_string(files.key("tokens.csv")).unwrap();
        let token = files.token("admin").unwrap();
        assert_eq!(tokens.lines().next().unwrap(), format!("{token},admin,admin,\"system:masters,more\""));
        assert!(token.len() >= 43, "256 bits");
        assert!(!format!("{files:?}").contains(token));
        drop(files);
        let left: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["logs"]);
    }

    #[test]
    fn a_kubeconfig_is_yaml_for_any_user_name() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::write(directory.path(), &[user("a: #b", &[])], &server()).unwrap();
        let config: serde_json::Value =
            serde_saphyr::from_str(&files.kubeconfig("a: #b", "https://h:1").unwrap()).unwrap();
        assert_eq!(config["users"][0]["name"], "a: #b");
        assert_eq!(config["contexts"][0]["context"]["user"], "a: #b");
        assert_eq!(config["clusters"][0]["cluster"]["server"], "https://h:1");
        assert_eq!(config["users"][0]["user"]["token"], files.token("a: #b").unwrap());
        assert!(files.kubeconfig("nobody", "https://h:1").is_none());
    }

    #[test]
    fn names_that_would_break_the_token_file_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        for bad in [user("a,b", &[]), user("", &[]), user("a", &["x\ny"])] {
            assert!(matches!(Files::write(directory.path(), &[bad], &server()), Err(Error::UserName { .. })));
        }
    }
}
