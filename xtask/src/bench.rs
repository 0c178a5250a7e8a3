//! `cargo xtask bench`: measurements that need an idle machine and several minutes. No test and no gate runs these
//! measurements.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::{cargo, seed};

/// Arguments of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The part of Longhaul to measure.
    what: Benchmark,
    /// Arguments for the benchmark, for example `--quick` or `--json FILE`; `--help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Benchmark {
    /// The service's webhook, compared with a server that only reads and answers over the same TLS, and with
    /// k8s-digester if Go is installed. With `--verify`: the cost of verifying signatures, compared with `cosign
    /// verify` if cosign is installed.
    Admission,
    /// The service's API that scales Deployments, compared with a server that only reads and answers over the same TLS.
    /// If Go is installed, also compared with a Go server that uses client-go's informer.
    Replicas,
    /// Injection of images: chunks into the mock API server, compared with Zarf's method, and the injected program,
    /// compared with SHA-256 alone. If `KUBEBUILDER_ASSETS` names a folder with kube-apiserver, also chunks into
    /// kube-apiserver.
    Inject,
    /// The mock Kubernetes API server. If `KUBEBUILDER_ASSETS` names a folder with kube-apiserver and etcd, compared
    /// with them. With `--only scale-…`: the limits of the mock.
    Kube,
    /// The load generator, compared with those of wrk, h2load, hey, ab and oha that are installed.
    Load,
    /// The ledger, and writing, reading, judging and rendering the record of an hour.
    Reports,
    /// The service in one process and in several processes: the cost of the separation.
    Topology,
    /// Instructions of the service for one review, without sockets, counted by valgrind.
    Instructions,
}

/// Builds the benchmark and the programs that it measures, and runs it in the caller's folder.
pub(crate) fn bench(arguments: &Arguments) -> Result<ExitCode> {
    let mut command = cargo::cargo();
    match arguments.what {
        Benchmark::Admission => {
            cargo::build_release()?;
            command.args(["bench", "--package=scenarios", "--bench=beside", "--", "admission"])
        }
        Benchmark::Replicas => {
            cargo::build_release()?;
            command.args(["bench", "--package=scenarios", "--bench=beside", "--", "replicas"])
        }
        Benchmark::Inject => {
            seed::built()?;
            cargo::build_release()?;
            command.args(["bench", "--package=scenarios", "--bench=beside", "--", "inject"])
        }
        Benchmark::Kube => command.args(["bench", "--package=scenarios", "--bench=beside", "--", "kube"]),
        Benchmark::Load => command.args(["bench", "--package=scenarios", "--bench=beside", "--", "load"]),
        Benchmark::Reports => {
            command.args(["bench", "--package=reports", "--package=ledger", "--bench=ledger", "--bench=record", "--"])
        }
        Benchmark::Topology => {
            command.args(["bench", "--package=service", "--features=full", "--bench=topology", "--"])
        }
        Benchmark::Instructions => {
            command.args(["bench", "--package=service", "--features=full", "--bench=instructions", "--"])
        }
    };
    command.args(&arguments.arguments);
    let shown = cargo::shown(&command);
    let status = command.status().with_context(|| format!("failed to start `{shown}`"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::exit::SOFTWARE);
    Ok(ExitCode::from(code))
}
