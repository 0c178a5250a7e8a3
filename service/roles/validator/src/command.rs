//! The command `contract check`: checks a validator in any language against the protocol in docs/contract.md.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use service_contract::kit::{self, Case, Subject};
use service_contract::link::Files;
use service_core::judge;
use service_core::wire::Protocol;
use service_registry::Image;

#[derive(Debug, Subcommand)]
pub enum Contract {
    /// Test a validator in any language against docs/contract.md, and print each demand that it breaks.
    Check(Box<Arguments>),
}

#[derive(Debug, Args)]
pub struct Arguments {
    /// The validator's address: https://host:port, optionally with a path prefix.
    url: String,
    /// An image, with its digest, about which the validator can rule.
    #[arg(long)]
    image: String,
    /// The expected result: `verified` or a failure class.
    #[arg(long)]
    verdict: Option<String>,
    /// The name of the validator to test. Default: the first that the address lists.
    #[arg(long)]
    validator: Option<String>,
    /// The demands that the validator must check, as JSON in the format of a policy rule's key `with`.
    #[arg(long)]
    demands: Option<String>,
    /// The CAs (PEM file) that may have issued the validator's certificate. Default: those of the system.
    #[arg(long)]
    ca: Option<PathBuf>,
    /// The certificate (PEM file) by which this command authenticates to the validator.
    #[arg(long, requires = "key")]
    certificate: Option<PathBuf>,
    /// The key (PEM file) of --certificate.
    #[arg(long, requires = "certificate")]
    key: Option<PathBuf>,
    /// Use HTTP/1.1.
    #[arg(long)]
    http1: bool,
}

impl Contract {
    /// Returns whether every check passed.
    pub fn run(self, runtime: &tokio::runtime::Runtime) -> anyhow::Result<bool> {
        let Self::Check(arguments) = self;
        let image = Image::parse(&arguments.image).context("--image is no reference")?;
        let digest = image.digest.context("--image needs its digest: name@sha256:…")?;
        let demands = arguments.demands.as_deref().map(serde_json::from_str).transpose();
        let subject = Subject {
            url: arguments.url,
            files: Files { ca: arguments.ca, identity: arguments.certificate.zip(arguments.key) },
            protocol: if arguments.http1 { Protocol::Http1 } else { Protocol::Http2 },
            validator: arguments.validator,
            image: judge::Subject { host: image.host, repository: image.repository, digest },
            verdict: arguments.verdict,
            demands: demands.context("--demands is no JSON")?,
        };
        let cases = runtime.block_on(kit::check(subject))?;
        for Case { demand, failed } in &cases {
            match failed {
                None => println!("holds   {demand}"),
                Some(why) => println!("BROKEN  {demand}: {why}"),
            }
        }
        let broken = cases.iter().filter(|case| case.failed.is_some()).count();
        println!("{} of {} hold", cases.len() - broken, cases.len());
        Ok(broken == 0)
    }
}
