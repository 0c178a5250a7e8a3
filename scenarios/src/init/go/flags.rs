//! The flags that a program defines, and which of them a run has something to say to. Pure.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::init::help::Help;

/// A call that defines a flag, of `flag` and `pflag`: its name and what it is without being given.
static DEFINED: LazyLock<Regex> = LazyLock::new(|| {
    super::pattern(
        r#"\.(?:String|Bool|Int|Int32|Uint|Duration)(?:Var)?P?\(\s*(?:&?[\w.\[\]]+\s*,\s*)?"([A-Za-z0-9][\w.-]*)"\s*,\s*(?:"[A-Za-z]?"\s*,\s*)?((?u:[^,\n]+)),"#,
    )
});
/// zap's own flags, as `opts.BindFlags(flag.CommandLine)` defines them.
const ZAP: &str = ".BindFlags(";
/// A server that is built with a port, which nobody chooses then.
static PORT: LazyLock<Regex> = LazyLock::new(|| super::pattern(r"\bPort:\s*([0-9]{2,5})\b"));
/// More than any program has.
const FLAGS_MAX: usize = 500;

/// The folder of the webhook's certificate: kubebuilder's, then names that other projects have.
const FOLDER: &[&str] =
    &["webhook-cert-path", "webhook-cert-dir", "cert-dir", "webhook-certs-dir", "certs-dir", "tls-cert-dir"];
const WEBHOOK_PORT: &[&str] = &["webhook-port", "webhook-server-port", "webhook-bind-port"];
/// The files of it, where it takes no folder.
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

/// What flags of probes have in their names.
const PROBED: &[&str] = &["health", "probe", "readiness", "liveness"];
/// One for each sort of probe.
const PROBE_PORTS: usize = 3;

fn has_one(name: &str, words: &[&str]) -> bool {
    words.iter().any(|word| name.contains(word))
}

/// Flags by their names, and what they are by default, as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    defined: BTreeMap<String, String>,
    has_zap: bool,
    port: Option<u16>,
    /// Whether the program itself told of them: then a name that nobody knows means what its words say.
    is_told: bool,
}

impl Flags {
    /// Those of a text without comments.
    pub(super) fn read(text: &str) -> Self {
        let defined = DEFINED.captures_iter(text).take(FLAGS_MAX);
        let defined = defined.map(|found| (found[1].to_owned(), found[2].trim().to_owned())).collect();
        let port = PORT.captures(text).and_then(|found| found[1].parse().ok());
        Self { defined, has_zap: text.contains(ZAP), port, is_told: false }
    }

    /// Those that the program itself tells of.
    pub(crate) fn of_help(help: &Help) -> Self {
        Self {
            defined: help.flags.clone(),
            has_zap: help.flags.contains_key("zap-log-level"),
            port: None,
            is_told: true,
        }
    }

    /// Whether a run says something to a flag of this name, whatever a manifest says.
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

    /// Whether there is one that means something here.
    pub(super) fn is_known(&self) -> bool {
        [FOLDER, WEBHOOK_PORT, METRICS, PROBES, LEADER].into_iter().flatten().any(|name| self.has(name))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.defined.contains_key(name)
    }

    /// A flag of one of these names, or else the first one that means the same by the words in its name.
    fn meant(&self, names: &[&'static str], means: fn(&str) -> bool) -> Option<&str> {
        let first = names.iter().copied().find(|name| self.has(name));
        first.or_else(|| self.defined.keys().map(String::as_str).find(|name| means(name)).filter(|_| self.is_told))
    }

    /// The flag that takes the folder of the webhook's certificate.
    pub(crate) fn folder(&self) -> Option<&str> {
        self.meant(FOLDER, |name| {
            has_one(name, &["webhook", "tls", "serving"])
                && name.contains("cert")
                && has_one(name, &["dir", "path", "folder"])
        })
    }

    /// The flag that takes the webhook's port.
    pub(crate) fn webhook_port(&self) -> Option<&str> {
        self.meant(WEBHOOK_PORT, |name| name.contains("webhook") && name.ends_with("port"))
    }

    /// The flags that take its certificate and the key of it as files.
    pub(crate) fn pair(&self) -> Option<(&'static str, &'static str)> {
        PAIRS.iter().copied().find(|(certificate, key)| self.has(certificate) && self.has(key))
    }

    /// The flag that takes the port of the metrics alone.
    pub(crate) fn metrics_port(&self) -> Option<&str> {
        self.meant(METRICS_PORT, |name| name.contains("metrics") && name.ends_with("port"))
    }

    /// Whether one of its flags takes the address or the port of its page of metrics.
    pub(crate) fn serves_metrics(&self) -> bool {
        self.metrics().is_some() || self.metrics_port().is_some()
    }

    /// The port that stands in the program itself.
    pub(crate) fn fixed_port(&self) -> Option<u16> {
        self.port
    }

    /// The flag that takes the address of the metrics, and the one by which they are served over plain HTTP.
    pub(crate) fn metrics(&self) -> Option<(&str, Option<&str>)> {
        let address =
            self.meant(METRICS, |name| name.contains("metrics") && has_one(name, &["addr", "bind", "listen"]))?;
        Some((address, self.meant(SECURE, |_| false)))
    }

    /// The flag that takes the address of the probes.
    pub(crate) fn probes(&self) -> Option<&str> {
        self.meant(PROBES, |name| has_one(name, PROBED) && has_one(name, &["addr", "bind", "listen"]))
    }

    /// The flags that take a port of the probes alone, of which 0 may mean none.
    pub(crate) fn probe_ports(&self) -> Vec<&str> {
        let is_it = |name: &&str| self.is_told && has_one(name, PROBED) && name.ends_with("port");
        self.defined.keys().map(String::as_str).filter(is_it).take(PROBE_PORTS).collect()
    }

    /// The flag that ends the wait for a lease.
    pub(crate) fn leader(&self) -> Option<&str> {
        self.meant(LEADER, |_| false)
    }

    /// Whether `--zap-log-level` is one.
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
