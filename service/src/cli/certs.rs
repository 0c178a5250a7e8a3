//! The command `certs`: certificates for trying the service.

use std::path::PathBuf;

use clap::Subcommand;

/// Certificates.
#[derive(Debug, Subcommand)]
pub(super) enum Certs {
    /// Make certificates of a CA, a server, two clients, and clients that the server must refuse. For development only.
    Dev {
        /// The folder. Earlier files are replaced.
        folder: PathBuf,
        /// Days for which the certificates are valid.
        #[arg(long, default_value_t = 365)]
        days: u32,
        /// The name of the CA. Two CAs that are trusted at the same time need different names, because a revocation list is matched by the
        /// CA's name.
        #[arg(long, default_value = crate::certs::AUTHORITY)]
        name: String,
    },
}

impl Certs {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let Self::Dev { folder, days, name } = self;
        print!("{}", crate::certs::dev(folder, *days, name)?);
        Ok(())
    }
}
