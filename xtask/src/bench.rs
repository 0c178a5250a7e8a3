//! `cargo xtask bench`: measurements that take a quiet machine and minutes, so that no test and no gate runs them.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::{cargo, seed};

/// Arguments of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The part to measure.
    what: What,
    /// Passed on, for example `--quick` or `--json FILE`; `--help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// The service's webhook, beside a bare server over the same TLS, and beside k8s-digester if there is a Go toolchain. With `--verify`:
    /// the cost of verifying signatures, beside `cosign verify` if cosign is installed.
    Admission,
    /// The service's API over Deployments, beside a bare server over the same TLS. With a Go toolchain, also beside a Go server with
    /// client-go's informer.
    Replicas,
    /// Injection of images: chunks into the mock API server, beside Zarf's scheme, and the seed, beside SHA-256 alone. If
    /// `KUBEBUILDER_ASSETS` names a folder with kube-apiserver, also chunks into that.
    Inject,
    /// The mock Kubernetes API server. If `KUBEBUILDER_ASSETS` names a folder with kube-apiserver and etcd, beside those. With `--only
    /// scale-…`: its limits.
    Kube,
    /// The load generator, beside wrk, h2load, hey, ab and oha, as far as they are installed.
    Load,
    /// The ledger, and writing, reading, judging and rendering the record of an hour.
    Reports,
    /// The service in one process and in several: the cost of the split.
    Topology,
    /// Instructions per review in the service, without the sockets, counted by valgrind.
    Instructions,
}

/// Builds the benchmark with the programs that it measures, and runs it in the caller's own folder.
pub(crate) fn bench(arguments: &Arguments) -> Result<ExitCode> {
    let mut command = cargo::cargo();
    match arguments.what {
        What::Admission => {
            cargo::build_release()?;
            command.args(["bench", "--package=scenarios", "--bench=beside", "--", "admission"])
        }
        What::Replicas => {
            cargo::build_release()?;
            command.args(["bench", "--package=scenarios", "--bench=beside", "--", "replicas"])
        }
        What::Inject => {
            seed::built()?;
            cargo::build_release()?;
            command.args(["bench", "--package=scenarios", "--bench=beside", "--", "inject"])
        }
        What::Kube => command.args(["bench", "--package=scenarios", "--bench=beside", "--", "kube"]),
        What::Load => command.args(["bench", "--package=scenarios", "--bench=beside", "--", "load"]),
        What::Reports => {
            command.args(["bench", "--package=reports", "--package=ledger", "--bench=ledger", "--bench=record", "--"])
        }
        What::Topology => command.args(["bench", "--package=service", "--features=full", "--bench=topology", "--"]),
        What::Instructions => {
            command.args(["bench", "--package=service", "--features=full", "--bench=instructions", "--"])
        }
    };
    command.args(&arguments.arguments);
    let shown = cargo::shown(&command);
    let status = command.status().with_context(|| format!("failed to start `{shown}`"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::exit::SOFTWARE);
    Ok(ExitCode::from(code))
}
