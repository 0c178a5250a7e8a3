//! The command line: parses it, refuses unusable input, builds the runtime, starts the roles and waits for a signal.
//!
//! This module owns exit codes and the set-up of logging. The module `run` assembles the roles.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Parser, Subcommand};

use service_core::config::Log;
use service_core::kube::Cluster;
use service_core::logs;

use crate::config::{self, Config};
#[cfg(feature = "admission")]
use crate::manifests;
use crate::roles::{Roles, all};
use crate::run::{ALL, App, FORMER_ROLES, NO_FEATURES, Options, roles};

#[cfg(feature = "dist")]
mod definitions;
#[cfg(feature = "files")]
mod files;
#[cfg(feature = "inject")]
mod inject;
#[cfg(feature = "admission")]
mod verify;

/// The exit code of success. A service that stopped in order after a signal also ends with this code.
pub const EXIT_OK: u8 = 0;
/// The exit code of a service that could not start, or that stopped because of an error.
pub const EXIT_FAILURE: u8 = 1;
/// The exit code if command line, environment or configuration cannot be used (`EX_USAGE` of BSD's sysexits).
pub const EXIT_USAGE: u8 = 64;

/// The value of `Options::features` in a program with planted bugs.
const PLANTED: &str = "planted-bugs";
/// The environment variable that names a planted bug.
const PLANTED_VARIABLE: &str = "LONGHAUL_PLANTED_BUG";
/// The environment variable with the URL that receives observations of events.
const WITNESS_VARIABLE: &str = "LONGHAUL_WITNESS_URL";
/// Maximum number of threads of the runtime. One thread can compute a TLS handshake while the other serves calls; more
/// threads would only cost memory.
const WORKER_THREADS_MAX: usize = 2;

/// A function that finds the API server that a kubeconfig names. Without a kubeconfig, the function searches
/// `$KUBECONFIG` and the files of a Pod.
pub type Find = fn(Option<&Path>) -> anyhow::Result<Cluster>;

/// The planted bugs of a program. Each function in this struct takes the name of a bug.
#[derive(Clone, Copy)]
pub struct Bugs {
    /// All roles, changed by the named bug.
    pub roles: fn(&str) -> anyhow::Result<Roles>,
    /// The connection of the `inject` commands to the API server, changed by the named bug.
    pub inject: fn(&str) -> anyhow::Result<Find>,
}

/// A lean admission webhook and watcher for Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "longhaul-service", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a role until SIGTERM or SIGINT.
    Run {
        /// The role of this process.
        #[arg(long, value_parser = PossibleValuesParser::new(role_names()))]
        role: String,
        /// The configuration file (YAML).
        #[arg(long)]
        config: PathBuf,
    },
    /// Check a configuration file, explain its rule for an image, or print it with every default.
    Config {
        #[command(subcommand)]
        question: Question,
    },
    /// Verify the signatures of one image, as in a review, and print the signers.
    #[cfg(feature = "admission")]
    Verify(verify::Arguments),
    /// Replace the images in manifests with their digests, as the webhook would, or write the digests to a lock file.
    #[cfg(feature = "files")]
    Pin(service_files::command::Arguments),
    /// Do the work of `pin` as a KRM function for kpt and kustomize: reads and writes a `ResourceList`.
    #[cfg(feature = "files")]
    Krm(service_files::command::Function),
    /// Read or set replica counts of Deployments through a running `longhaul-service`.
    #[cfg(feature = "replicas")]
    Replicas {
        #[command(subcommand)]
        call: service_replicas::command::Call,
    },
    /// Make certificates for a trial of the API that scales Deployments.
    #[cfg(feature = "certs-dev")]
    Certs {
        #[command(subcommand)]
        what: service_replicas::certs::Certs,
    },
    /// Print all manifests that the webhook needs in a cluster, for `kubectl apply -f -`.
    #[cfg(feature = "admission")]
    Manifests(manifests::Arguments),
    /// Print the field that makes the API server trust your own certificate, for `kubectl apply --server-side`.
    #[cfg(feature = "admission")]
    CaBundle(manifests::CaBundle),
    /// Bring images into a cluster that has no registry.
    #[cfg(feature = "inject")]
    Inject {
        #[command(subcommand)]
        command: Box<service_inject::command::Command>,
    },
    /// Check a validator in any language against docs/contract.md.
    #[cfg(feature = "validator")]
    Contract {
        #[command(subcommand)]
        what: service_validator::command::Contract,
    },
    /// Print the completion script for a shell.
    #[cfg(feature = "dist")]
    Completions {
        /// The shell that the script is for.
        shell: clap_complete::Shell,
    },
    /// Write man pages of all commands; `cargo xtask dist` packs them.
    #[cfg(feature = "dist")]
    #[command(hide = true)]
    Man {
        /// An existing folder that receives the man pages.
        directory: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
enum Question {
    /// Check that the file is valid.
    Check {
        /// The configuration file (YAML).
        #[arg(long)]
        config: PathBuf,
    },
    /// Print the rule that matches an image, and its result. No request is sent to a registry.
    #[cfg(feature = "admission")]
    Explain {
        /// The image, spelled as in a Pod.
        image: String,
        /// The namespace of the object that contains the image.
        #[arg(long)]
        namespace: Option<String>,
        /// The configuration file (YAML).
        #[arg(long)]
        config: PathBuf,
    },
    /// Translate the helm values of Connaisseur to a configuration file. Values without a translation are listed on
    /// stderr.
    #[cfg(feature = "admission")]
    ImportConnaisseur {
        /// The file with the values (YAML), as `helm get values --all` prints them.
        file: PathBuf,
    },
    /// Print the file in the present version of the configuration format, with its comments.
    Migrate {
        /// The configuration file (YAML).
        #[arg(long)]
        config: PathBuf,
    },
    /// Print the configuration in effect, with every default. Secrets are masked.
    Show {
        /// The configuration file (YAML).
        #[arg(long)]
        config: PathBuf,
    },
}

/// Runs the command line of this process.
pub fn main(bugs: Option<Bugs>) -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { EXIT_USAGE } else { EXIT_OK });
        }
    };
    let code = match command(cli, bugs) {
        Ok(()) => EXIT_OK,
        Err(Failure { code, error }) => {
            eprintln!("longhaul-service: {error:#}");
            code
        }
    };
    ExitCode::from(code)
}

struct Failure {
    code: u8,
    error: anyhow::Error,
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self { code: EXIT_FAILURE, error }
    }
}

fn usage(error: impl Into<anyhow::Error>) -> Failure {
    Failure { code: EXIT_USAGE, error: error.into() }
}

fn command(cli: Cli, bugs: Option<Bugs>) -> Result<(), Failure> {
    match cli.command {
        Command::Config { question } => {
            print!("{}", answer(&question).map_err(usage)?);
            Ok(())
        }
        #[cfg(feature = "admission")]
        Command::Manifests(arguments) => {
            print!("{}", arguments.run().map_err(usage)?);
            Ok(())
        }
        #[cfg(feature = "admission")]
        Command::CaBundle(arguments) => {
            print!("{}", arguments.run().map_err(usage)?);
            Ok(())
        }
        #[cfg(feature = "admission")]
        Command::Verify(arguments) => verify::run(&arguments),
        #[cfg(feature = "files")]
        Command::Pin(arguments) => files::run(&arguments),
        #[cfg(feature = "files")]
        Command::Krm(arguments) => files::function(&arguments),
        #[cfg(feature = "replicas")]
        Command::Replicas { call } => Ok(call.run()?),
        #[cfg(feature = "certs-dev")]
        Command::Certs { what } => Ok(what.run()?),
        #[cfg(feature = "validator")]
        Command::Contract { what } => {
            if what.run(&runtime()?)? {
                Ok(())
            } else {
                Err(Failure { code: EXIT_FAILURE, error: anyhow::anyhow!("it does not keep the contract") })
            }
        }
        #[cfg(feature = "dist")]
        Command::Completions { shell } => Ok(definitions::completions(shell)?),
        #[cfg(feature = "dist")]
        Command::Man { directory } => Ok(definitions::man(&directory)?),
        #[cfg(feature = "inject")]
        Command::Inject { command } => {
            if inject::run(*command, bugs)? {
                Ok(())
            } else {
                Err(Failure { code: EXIT_FAILURE, error: anyhow::anyhow!("it does not serve") })
            }
        }
        Command::Run { role, config } => {
            let planted = std::env::var_os(PLANTED_VARIABLE);
            let options = options(bugs, planted, std::env::var(WITNESS_VARIABLE).ok()).map_err(usage)?;
            let path = config;
            let config = config::load(&path).map_err(usage)?;
            roles(&role, &options.roles, &config).map_err(usage)?;
            let log = *config.of::<Log>();
            logs::init(log.format, log.level, crate::roles::EVENTS);
            service_core::allocator::give_memory_back();
            runtime()?.block_on(run(&role, config, path, options))?;
            Ok(())
        }
    }
}

/// The possible values of `--role`, with the help text of each role.
fn role_names() -> Vec<PossibleValue> {
    let every =
        "Webhook, watch and reconciler in one process, and the API that scales Deployments when it has a section";
    let roles = all();
    let roles = roles.iter().map(|role| PossibleValue::new(role.about().name).help(role.about().help));
    // Accepted here, so that `roles` can name the new one.
    let former = FORMER_ROLES.iter().map(|(former, _)| PossibleValue::new(*former).hide(true));
    std::iter::once(PossibleValue::new(ALL).help(every)).chain(roles).chain(former).collect()
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(worker_threads()).enable_all().build();
    runtime.context("failed to start the runtime")
}

/// The number of the runtime's threads: one if the process may use only one processor, else two.
fn worker_threads() -> usize {
    std::thread::available_parallelism().map_or(WORKER_THREADS_MAX, usize::from).min(WORKER_THREADS_MAX)
}

/// The text that a `config` command prints.
fn answer(question: &Question) -> anyhow::Result<String> {
    match question {
        Question::Check { config } => {
            let loaded = config::load(config)?;
            let roles = all();
            roles.iter().try_for_each(|role| role.check(&loaded))?;
            let notes = roles.iter().flat_map(|role| role.notes(&loaded));
            let mut lines: Vec<String> = notes.map(|note| format!("{}: {note}\n", config.display())).collect();
            lines.push(format!("{}: ok\n", config.display()));
            Ok(lines.concat())
        }
        #[cfg(feature = "admission")]
        Question::Explain { image, namespace, config } => {
            use service_admission::config::Config as Admission;
            let config = config::load(config)?;
            Ok(service_admission::Policy::new(&Admission::of(&config)).explain(image, namespace.as_deref()).to_string())
        }
        #[cfg(feature = "admission")]
        Question::ImportConnaisseur { file } => {
            let text = std::fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
            let imported = config::connaisseur(&text, file)?;
            for left in &imported.left {
                eprintln!("# {left}");
            }
            Ok(imported.config)
        }
        Question::Migrate { config } => Ok(config::migrate(config)?),
        Question::Show { config } => Ok(config::show(config)?),
    }
}

fn options(bugs: Option<Bugs>, planted: Option<OsString>, witness_url: Option<String>) -> anyhow::Result<Options> {
    let witness_url = witness_url.filter(|url| !url.is_empty());
    if let Some(url) = &witness_url {
        service_watch::witness_target(url).with_context(|| format!("{WITNESS_VARIABLE}={url}"))?;
    }
    let features = if bugs.is_some() { PLANTED } else { NO_FEATURES };
    let roles = plant(bugs.map(|bugs| bugs.roles), planted)?.unwrap_or_else(all);
    Ok(Options { witness_url, roles, features })
}

/// The result of `plant` for the bug that the environment names. A program without planted bugs refuses the variable,
/// because the harness would otherwise believe that its judge had missed the bug.
fn plant<T>(plant: Option<fn(&str) -> anyhow::Result<T>>, name: Option<OsString>) -> anyhow::Result<Option<T>> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let name = name.to_string_lossy();
    let asked = || format!("{PLANTED_VARIABLE}={name}");
    let plant = plant.context("this binary has no planted bugs: use longhaul-service-planted").with_context(asked)?;
    plant(&name).with_context(asked).map(Some)
}

async fn run(role: &str, config: Config, path: PathBuf, options: Options) -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    let mut hang_up = signal(SignalKind::hangup()).context("failed to listen for SIGHUP")?;
    let mut app = App::start(role, config, options).await?;
    app.follow_config(path);
    loop {
        tokio::select! {
            _ = terminate.recv() => break tracing::info!(name: crate::events::SIGNAL, signal = "SIGTERM", "draining"),
            _ = interrupt.recv() => break tracing::info!(name: crate::events::SIGNAL, signal = "SIGINT", "draining"),
            _ = hang_up.recv() => app.look_at_files(),
            result = app.broken() => return result,
        }
    }
    app.stop().await;
    tracing::info!(name: crate::events::STOPPED, "stopped");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clean_build_refuses_a_planted_bug() {
        let error = options(None, Some("missed-delete".into()), None).err().unwrap();
        assert!(format!("{error:#}").contains("use longhaul-service-planted"), "{error:#}");
        assert!(options(None, Some(OsString::new()), None).is_ok(), "an empty variable is an unset one");
    }

    #[test]
    fn a_role_that_does_not_exist_is_refused_with_those_that_do() {
        let error =
            Cli::try_parse_from(["longhaul-service", "run", "--role", "operator", "--config", "x"]).unwrap_err();
        let roles = all().iter().fold(String::from("all"), |names, role| names + ", " + role.about().name);
        assert!(error.to_string().contains(&format!("[possible values: {roles}]")), "{error}");
    }

    #[test]
    fn a_renamed_role_is_refused_with_the_new_name() {
        let config = config::parse("", Path::new("x")).unwrap();
        for (former, now) in FORMER_ROLES {
            assert!(Cli::try_parse_from(["longhaul-service", "run", "--role", former, "--config", "x"]).is_ok());
            let error = roles(former, &all(), &config).err().unwrap().to_string();
            assert!(error.contains(&format!("--role {now}")), "{error}");
        }
    }

    #[test]
    fn a_witness_that_is_no_plain_http_url_is_refused() {
        let error = options(None, None, Some("https://x/".into())).err().unwrap();
        assert!(format!("{error:#}").contains("http://"), "{error:#}");
    }
}
