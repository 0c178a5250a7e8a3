//! The flags that a program defines, and the flags that a run must set. Does no I/O.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::init::help::Help;

/// A call of `flag` or `pflag` that defines a flag: its name and its default.
static DEFINED: LazyLock<Regex> = LazyLock::new(|| {
    super::pattern(
        r#"\.(?:String|Bool|Int|Int32|Uint|Duration)(?:Var)?P?\(\s*(?:&?[\w.\[\]]+\s*,\s*)?"([A-Za-z0-9][\w.-]*)"\s*,\s*(?:"[A-Za-z]?"\s*,\s*)?((?u:[^,\n]+)),"#,
    )
});
/// The call that defines zap's own flags: `opts.BindFlags(flag.CommandLine)`.
const ZAP: &str = ".BindFlags(";
/// The initialization of a server struct with a constant port.
static PORT: LazyLock<Regex> = LazyLock::new(|| super::pattern(r"\bPort:\s*([0-9]{2,5})\b"));
const FLAGS_MAX: usize = 500;

/// Names of the flag for the folder with the webhook's certificate: first the names that kubebuilder uses, then names
/// in other projects.
const FOLDER: &[&str] =
    &["webhook-cert-path", "webhook-cert-dir", "cert-dir", "webhook-certs-dir", "certs-dir", "tls-cert-dir"];
const WEBHOOK_PORT: &[&str] = &["webhook-port", "webhook-server-port", "webhook-bind-port"];
/// Names of the flags for certificate and key file, for programs without a flag for the folder.
const PAIRS: &[(&str, &str)] = &[
    ("tls-cert-file", "tls-private-key-file"),
    ("webhook-cert-file", "webhook-key-file"),
    ("tls-cert-file", "tls-key-file"),
    ("tls-cert", "tls-key"),
];
const METRICS: &[&str] = &[
    "metrics-bind-address",
    "metrics-addr",
    "metrics-bind-addr",
    "metrics-address",
    "metrics-listen-address",
    "metrics-server-bind-address",
];
const METRICS_PORT: &[&str] = &["metrics-port", "prometheus-port", "prometheus-metrics-port"];
const SECURE: &[&str] = &["metrics-secure"];
const PROBES: &[&str] = &[
    "health-probe-bind-address",
    "health-probe-addr",
    "health-probe-bind-addr",
    "health-addr",
    "probe-addr",
    "healthz-bind-address",
    "healthz-addr",
    "healthz-address",
];
const LEADER: &[&str] = &["leader-elect", "enable-leader-election", "leader-election", "enable-leader-elect"];

const PROBED: &[&str] = &["health", "probe", "readiness", "liveness"];
const PROBE_PORTS: usize = 3;

fn has_one(name: &str, words: &[&str]) -> bool {
    words.iter().any(|word| name.contains(word))
}

/// Flags by name, with the default as written in the source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    defined: BTreeMap<String, String>,
    has_zap: bool,
    port: Option<u16>,
    /// Whether the flags come from the program's help text. If the flags come from a help text, the meaning of an
    /// unknown name is guessed from its words.
    is_told: bool,
}

impl Flags {
    /// Reads flags from Go code without comments.
    pub(super) fn read(text: &str) -> Self {
        let defined = DEFINED.captures_iter(text).take(FLAGS_MAX);
        let defined = defined.map(|found| (found[1].to_owned(), found[2].trim().to_owned())).collect();
        let port = PORT.captures(text).and_then(|found| found[1].parse().ok());
        Self { defined, has_zap: text.contains(ZAP), port, is_told: false }
    }

    /// Reads flags from a program's help text.
    pub(crate) fn of_help(help: &Help) -> Self {
        Self {
            defined: help.flags.clone(),
            has_zap: help.flags.contains_key("zap-log-level"),
            port: None,
            is_told: true,
        }
    }

    /// Whether the run itself sets a flag of this name, so that the manifest's value is ignored.
    pub(crate) fn is_ours(name: &str) -> bool {
        let lists = [FOLDER, WEBHOOK_PORT, METRICS, METRICS_PORT, SECURE, PROBES, LEADER];
        lists.into_iter().flatten().any(|one| *one == name)
            || PAIRS.iter().any(|(one, other)| [*one, *other].contains(&name))
    }

    pub(super) fn add(&mut self, more: Self) {
        let room = FLAGS_MAX.saturating_sub(self.defined.len());
        self.defined.extend(more.defined.into_iter().take(room));
        self.has_zap |= more.has_zap;
        self.port = self.port.or(more.port);
    }

    /// Whether at least one flag has a known meaning.
    pub(super) fn is_known(&self) -> bool {
        [FOLDER, WEBHOOK_PORT, METRICS, PROBES, LEADER].into_iter().flatten().any(|name| self.has(name))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.defined.contains_key(name)
    }

    /// The first flag with one of these names. If no flag has one of the names and the flags come from a help text, the
    /// first flag whose name passes `means`.
    fn meant(&self, names: &[&'static str], means: fn(&str) -> bool) -> Option<&str> {
        let first = names.iter().copied().find(|name| self.has(name));
        first.or_else(|| self.defined.keys().map(String::as_str).find(|name| means(name)).filter(|_| self.is_told))
    }

    pub(crate) fn folder(&self) -> Option<&str> {
        self.meant(FOLDER, |name| {
            has_one(name, &["webhook", "tls", "serving"])
                && name.contains("cert")
                && has_one(name, &["dir", "path", "folder"])
        })
    }

    pub(crate) fn webhook_port(&self) -> Option<&str> {
        self.meant(WEBHOOK_PORT, |name| name.contains("webhook") && name.ends_with("port"))
    }

    /// The flags for the webhook's certificate and key files.
    pub(crate) fn pair(&self) -> Option<(&'static str, &'static str)> {
        PAIRS.iter().copied().find(|(certificate, key)| self.has(certificate) && self.has(key))
    }

    /// The flag for the port of the metrics, if it takes a port without a host.
    pub(crate) fn metrics_port(&self) -> Option<&str> {
        self.meant(METRICS_PORT, |name| name.contains("metrics") && name.ends_with("port"))
    }

    /// Whether a flag sets the address or the port of the metrics page.
    pub(crate) fn serves_metrics(&self) -> bool {
        self.metrics().is_some() || self.metrics_port().is_some()
    }

    /// The port of the webhook server, if it is constant in the program's source.
    pub(crate) fn fixed_port(&self) -> Option<u16> {
        self.port
    }

    /// The flag for the address of the metrics, and the flag that selects plain HTTP for the metrics.
    pub(crate) fn metrics(&self) -> Option<(&str, Option<&str>)> {
        let address =
            self.meant(METRICS, |name| name.contains("metrics") && has_one(name, &["addr", "bind", "listen"]))?;
        Some((address, self.meant(SECURE, |_| false)))
    }

    pub(crate) fn probes(&self) -> Option<&str> {
        self.meant(PROBES, |name| has_one(name, PROBED) && has_one(name, &["addr", "bind", "listen"]))
    }

    /// The flags for a probe port without a host; 0 may switch the probe off.
    pub(crate) fn probe_ports(&self) -> Vec<&str> {
        let is_it = |name: &&str| self.is_told && has_one(name, PROBED) && name.ends_with("port");
        self.defined.keys().map(String::as_str).filter(is_it).take(PROBE_PORTS).collect()
    }

    pub(crate) fn leader(&self) -> Option<&str> {
        self.meant(LEADER, |_| false)
    }

    /// Whether the program has the flag `--zap-log-level`.
    pub(crate) fn has_zap(&self) -> bool {
        self.has_zap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_packages_of_flags_are_read() {
        let flags = Flags::read(
            r#"
            flag.StringVar(&metrics, "metrics-bind-address", "0", "Where. "+
                "Or not.")
            flag.BoolVar(&secure, "metrics-secure", true, "x")
            pflag.StringVarP(&config.probe, "health-probe-bind-address", "p", ":8081", "x")
            folder := fs.String("cert-dir", filepath.Join(a), "x")
            elect := flag.Bool("enable-leader-election", false, "x")
            opts.BindFlags(flag.CommandLine)
            server := webhook.NewServer(webhook.Options{Port: 9443, TLSOpts: o})
            "#,
        );
        assert_eq!(flags.metrics(), Some(("metrics-bind-address", Some("metrics-secure"))));
        assert_eq!((flags.probes(), flags.folder()), (Some("health-probe-bind-address"), Some("cert-dir")));
        assert_eq!((flags.leader(), flags.webhook_port()), (Some("enable-leader-election"), None));
        assert!(flags.has_zap() && flags.fixed_port() == Some(9443));
        assert_eq!(flags.defined["metrics-secure"], "true");
    }

    #[test]
    fn a_flag_that_the_program_tells_of_means_what_its_name_says() {
        let help = Help::read(
            "Flags:\n      --webhook-certificate-dir string   x\n      --metrics-port int   x (default 9402)\n      --readiness-probe-port int   x (default \
             6060)\n      --webhook-port int   x (default 6443)\n      --leader-elect   x\n",
        );
        let flags = Flags::of_help(&help);
        assert_eq!((flags.folder(), flags.metrics_port()), (Some("webhook-certificate-dir"), Some("metrics-port")));
        assert_eq!((flags.metrics(), flags.probes()), (None, None));
        assert_eq!((flags.probe_ports(), flags.leader()), (vec!["readiness-probe-port"], Some("leader-elect")));
    }

    #[test]
    fn names_that_could_hurt_are_none() {
        let flags = Flags::read("flag.String(\"a\\nb\", \"\", \"x\")\nflag.String(\"--x y\", \"\", \"x\")\n");
        assert!(flags.defined.is_empty(), "{flags:?}");
        assert!(!flags.is_known());
    }
}
