//! The command `certs`: certificates for trying the service.

use std::path::PathBuf;

use clap::Subcommand;

/// Certificates.
#[derive(Debug, Subcommand)]
pub(super) enum Certs {
    /// Make a CA, a server, two clients, and clients that have to be refused. For development only.
    Dev {
        /// The folder; files of before are replaced.
        folder: PathBuf,
        /// How long they are valid.
        #[arg(long, default_value_t = 365)]
        days: u32,
        /// What the authority is called. Two that are trusted at one time need names of their own: a list of revoked certificates is known by it.
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
