//! The flags and subcommands in a program's help text (`PROGRAM --help`): Go's `flag`, pflag with cobra and klog,
//! Rust's clap, Python's argparse. Does no I/O.
//!
//! This module parses help texts; `go/flags.rs` decides the meaning of a flag.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

const FLAGS_MAX: usize = 1000;
/// A line of help for a flag: an optional short name, the long name, and the name of its value.
static FLAG: LazyLock<Regex> = LazyLock::new(|| {
    super::pattern(
        r"^\s{1,12}(?:-[A-Za-z0-9],?\s+)?--?([A-Za-z0-9][\w.-]*)(?:[ =\[]?[ =]?<?([A-Za-z][\w.:|/-]*)>?\]?)?(?:\s|$|=)",
    )
});
/// The default value at the end of a flag's description.
static DEFAULT: LazyLock<Regex> = LazyLock::new(|| super::pattern(r#"[(\[]default:?\s+"?((?u:[^")\]\n]*))"?[)\]]"#));
/// A line in cobra's list of subcommands.
static COMMAND: LazyLock<Regex> =
    LazyLock::new(|| super::pattern(r"^\s{1,8}([a-z][a-z0-9-]*)(?:,\s*[a-z-]+)*\s{2,}(?u:\S)"));
/// Titles above the list of subcommands.
const COMMANDS: [&str; 4] = ["available commands", "commands", "subcommands", "positional arguments"];
/// Subcommands that do not run a controller.
const ASIDE: [&str; 9] = ["help", "completion", "version", "init", "install", "uninstall", "crd", "crds", "migrate"];
/// Subcommands that run a controller, the most specific first.
const STARTING: [&str; 14] = [
    "controller",
    "operator",
    "manager",
    "controller-manager",
    "run",
    "start",
    "serve",
    "server",
    "daemon",
    "watch",
    "main",
    "controllers",
    "run-controller",
    "leader",
];

/// The flags and subcommands in a help text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Help {
    /// Names of flags without dashes, with their defaults.
    pub(crate) flags: BTreeMap<String, String>,
    /// Subcommands in the order of the text.
    pub(crate) commands: Vec<String>,
}

impl Help {
    /// Parses a help text. A text that is no help text gives an empty result.
    pub(crate) fn read(text: &str) -> Self {
        let mut help = Self::default();
        let (mut last, mut lists): (Option<String>, bool) = (None, false);
        for line in text.lines() {
            if !line.starts_with([' ', '\t']) && line.trim_end().ends_with(':') {
                let title = line.trim_end().trim_end_matches(':').to_ascii_lowercase();
                lists = COMMANDS.iter().any(|name| title.ends_with(name));
                last = None;
                continue;
            }
            if let Some(found) = FLAG.captures(line) {
                lists = false;
                let name = found[1].to_owned();
                if help.flags.len() < FLAGS_MAX {
                    help.flags.entry(name.clone()).or_default();
                    last = Some(name);
                }
            } else if lists && let Some(found) = COMMAND.captures(line) {
                help.commands.push(found[1].to_owned());
            }
            if let (Some(name), Some(found)) = (&last, DEFAULT.captures(line)) {
                help.flags.insert(name.clone(), found[1].to_owned());
            }
        }
        help.commands.retain(|command| !ASIDE.contains(&command.as_str()));
        help
    }

    /// The subcommands that may run a controller, the most likely first.
    pub(crate) fn starting(&self) -> Vec<&str> {
        let rank = |command: &str| {
            let exact = STARTING.iter().position(|one| *one == command);
            exact.or_else(|| STARTING.iter().position(|one| command.contains(one)).map(|at| at + STARTING.len()))
        };
        let mut all: Vec<(usize, &str)> =
            self.commands.iter().filter_map(|one| Some((rank(one)?, one.as_str()))).collect();
        all.sort_by_key(|(rank, _)| *rank);
        all.into_iter().map(|(_, command)| command).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_package_of_go() {
        let help = Help::read(
            "Usage of ./manager:\n  -health-probe-bind-address string\n    \tThe address the probe endpoint binds to. (default \":8081\")\n  \
             -kubeconfig string\n    \tPaths to a kubeconfig.\n  -leader-elect\n    \tEnable leader election.\n  -v value\n    \tnumber for the log level\n",
        );
        assert_eq!(help.flags["health-probe-bind-address"], ":8081");
        assert_eq!(help.flags["kubeconfig"], "");
        assert!(help.flags.contains_key("leader-elect") && help.flags.contains_key("v"), "{help:?}");
    }

    #[test]
    fn pflag_with_cobra_and_klog() {
        let help = Help::read(
            "Runs it.\n\nUsage:\n  shop [command]\n\nAvailable Commands:\n  completion  Generate the autocompletion script\n  controller  Run the \
             controllers\n  help        Help about any command\n  webhook     Run the webhook\n\nFlags:\n      --add_dir_header                   If true, adds \
             the directory\n  -h, --help                             help for shop\n      --metrics-addr string              Where (default \
             \":8080\")\n  -v, --v Level                          number for verbosity\n      --watch strings                    names \
             (default [a,b])\n\nUse \"shop [command] --help\" for more.\n",
        );
        assert_eq!(help.flags["metrics-addr"], ":8080");
        assert!(help.flags.contains_key("v") && help.flags.contains_key("add_dir_header"), "{help:?}");
        assert_eq!(help.commands, ["controller", "webhook"]);
        assert_eq!(help.starting(), ["controller"]);
    }

    #[test]
    fn clap_and_argparse() {
        let clap = Help::read(
            "An operator\n\nUsage: shop [OPTIONS] <COMMAND>\n\nCommands:\n  run   Runs it\n  help  Print this message\n\nOptions:\n      --port <PORT>  Port \
             [default: 8080]\n  -h, --help         Print help\n",
        );
        assert_eq!((clap.flags["port"].as_str(), clap.starting()), ("8080", vec!["run"]));
        let argparse = Help::read(
            "usage: op.py [-h] [--port PORT]\n\noptions:\n  -h, --help   show this help message\n  --port PORT  where\n",
        );
        assert!(argparse.flags.contains_key("port"), "{argparse:?}");
    }

    #[test]
    fn another_text_is_none() {
        let panic = "panic: no config\n\ngoroutine 1 [running]:\nmain.main()\n\t/a/main.go:10 +0x1\n";
        assert_eq!((Help::read(panic), Help::read("")), (Help::default(), Help::default()));
    }
}
