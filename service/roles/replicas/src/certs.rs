//! The command `certs dev`: makes authorities and certificates, valid and invalid, to try the API that scales
//! Deployments.
//!
//! The certificates are for development and tests. In production, use an issuer that renews certificates, such as
//! cert-manager (`kind/manifests/replicas-cert-manager`). The command replaces each existing file; key files have mode
//! 0400.

use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevocationReason, RevokedCertParams, SanType, SerialNumber,
};
use time::{Duration, OffsetDateTime};

/// Time by which a certificate's validity starts before its creation, for clocks that are behind.
const BACKDATED: Duration = Duration::hours(1);
/// The SPIFFE trust domain of clients' names.
const TRUST_DOMAIN: &str = "longhaul.dev";
/// The names of the service inside a cluster.
const SERVICE_NAMES: [&str; 3] =
    ["longhaul-replicas", "longhaul-replicas.longhaul-system", "longhaul-replicas.longhaul-system.svc"];

/// Why no certificates were made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("failed to make a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    key_pem: String,
}

/// A certificate and its key, as PEM.
struct Pair {
    certificate: String,
    key: String,
}

pub const AUTHORITY: &str = "longhaul development CA";

/// The subcommands of `longhaul-service certs`.
#[derive(Debug, Subcommand)]
pub enum Certs {
    /// Make certificates of a CA, a server, two clients, and clients that the server must refuse. For development only.
    Dev {
        /// The folder for the files. Earlier files are replaced.
        folder: PathBuf,
        /// Days for which the certificates are valid.
        #[arg(long, default_value_t = 365)]
        days: u32,
        /// The name of the CA. If two CAs are trusted at the same time, their names must differ, because a revocation
        /// list names its CA.
        #[arg(long, default_value = AUTHORITY)]
        name: String,
    },
}

impl Certs {
    pub fn run(&self) -> anyhow::Result<()> {
        let Self::Dev { folder, days, name } = self;
        print!("{}", dev(folder, *days, name)?);
        Ok(())
    }
}

/// Writes all files into `folder`: an authority called `name` and its certificates, valid for `days` from now. Returns
/// the list of files as text.
pub fn dev(folder: &Path, days: u32, name: &str) -> Result<String, Error> {
    let now = OffsetDateTime::now_utc();
    let ends = now + Duration::days(days.into());
    let valid = (now - BACKDATED, ends);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed(folder))?;
    let ours = Authority::new(name, valid)?;
    let other = Authority::new("another CA", valid)?;
    put(folder, "ca.crt", &ours.pem, 0o644)?;
    put(folder, "ca.key", &ours.key_pem, 0o400)?;
    put(folder, "other-ca.crt", &other.pem, 0o644)?;

    ours.server(valid)?.put(folder, "server")?;
    ours.client("client", 2, valid)?.put(folder, "client")?;
    ours.client("reader", 3, valid)?.put(folder, "reader")?;
    ours.client("revoked", 4, valid)?.put(folder, "revoked")?;
    ours.client("expired", 5, (now - Duration::days(2), now - Duration::days(1)))?.put(folder, "expired")?;
    ours.client("early", 6, (now + Duration::days(1), ends + Duration::days(2)))?.put(folder, "early")?;
    ours.wrong_purpose(valid)?.put(folder, "wrong-purpose")?;
    other.client("client", 2, valid)?.put(folder, "other")?;
    put(folder, "crl.pem", &ours.revoke(4, now, ends)?, 0o644)?;
    Ok(format!(
        "{dir}: ca.crt (ca.key signs), server, client and reader are good; revoked (crl.pem), expired, early, wrong-purpose and\n\
         other (of other-ca.crt) are refused. Each is NAME.crt and NAME.key; clients are called spiffe://{TRUST_DOMAIN}/client/NAME.\n",
        dir = folder.display()
    ))
}

type Valid = (OffsetDateTime, OffsetDateTime);

impl Authority {
    fn new(name: &str, valid: Valid) -> Result<Self, Error> {
        let mut params = params(name, 1, valid);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let (pem, key_pem) = (params.self_signed(&key)?.pem(), key.serialize_pem());
        Ok(Self { issuer: Issuer::new(params, key), pem, key_pem })
    }

    fn server(&self, valid: Valid) -> Result<Pair, Error> {
        let mut params = params("longhaul-replicas", 10, valid);
        let addresses = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])];
        params.subject_alt_names = addresses.into_iter().map(SanType::IpAddress).collect();
        for name in std::iter::once("localhost").chain(SERVICE_NAMES) {
            params.subject_alt_names.push(SanType::DnsName(name.try_into()?));
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&params)
    }

    fn client(&self, name: &str, serial: u64, valid: Valid) -> Result<Pair, Error> {
        let mut params = params(name, serial, valid);
        let uri = format!("spiffe://{TRUST_DOMAIN}/client/{name}");
        params.subject_alt_names = vec![SanType::URI(uri.as_str().try_into()?)];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    /// A certificate that states use by servers only. A server must refuse a client with such a certificate.
    fn wrong_purpose(&self, valid: Valid) -> Result<Pair, Error> {
        let mut params = params("wrong-purpose", 7, valid);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Result<Pair, Error> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }

    fn revoke(&self, serial: u64, now: OffsetDateTime, ends: OffsetDateTime) -> Result<String, Error> {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from(serial),
            revocation_time: now,
            reason_code: Some(RevocationReason::KeyCompromise),
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: now - BACKDATED,
            next_update: ends,
            crl_number: SerialNumber::from(1u64),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        Ok(params.signed_by(&self.issuer)?.pem()?)
    }
}

fn params(name: &str, serial: u64, (begins, ends): Valid) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.serial_number = Some(SerialNumber::from(serial));
    (params.not_before, params.not_after) = (begins, ends);
    params
}

impl Pair {
    fn put(&self, folder: &Path, name: &str) -> Result<(), Error> {
        put(folder, &format!("{name}.crt"), &self.certificate, 0o644)?;
        put(folder, &format!("{name}.key"), &self.key, 0o400)
    }
}

/// Replaces a file by a rename, so that no reader sees a half-written file.
fn put(folder: &Path, name: &str, text: &str, mode: u32) -> Result<(), Error> {
    use std::io::Write as _;
    let (path, fresh) = (folder.join(name), folder.join(format!(".{name}.fresh")));
    let write = || {
        let _ = std::fs::remove_file(&fresh);
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        std::fs::rename(&fresh, &path)
    };
    write().map_err(failed(&path))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Write { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_whole_set_is_written_and_keys_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("certs");
        for _ in 0..2 {
            let said = dev(&folder, 30, AUTHORITY).unwrap();
            assert!(said.contains("spiffe://longhaul.dev/client/NAME"), "{said}");
        }
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let mode = path.metadata().unwrap().permissions().mode() & 0o777;
            let is_key = path.extension().is_some_and(|extension| extension == "key");
            assert_eq!(mode, if is_key { 0o400 } else { 0o644 }, "{}", path.display());
        }
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2 * 8 + 4);
    }
}
