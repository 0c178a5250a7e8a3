//! The last output of a program that exited: changes with which it may run, and the next step for the user. Does no
//! I/O.

use std::sync::LazyLock;

use regex::Regex;

use super::Came;
use crate::init::help::Help;

/// A message about an unknown flag.
static UNKNOWN: LazyLock<Regex> = LazyLock::new(|| {
    crate::init::pattern(
        r"(?:flag provided but not defined: -|unknown flag: --|unexpected argument '--|unrecognized arguments: --|unknown option:? --)([\w.-]+)",
    )
});
/// A message about an invalid value of a flag.
static INVALID: LazyLock<Regex> = LazyLock::new(|| {
    crate::init::pattern(
        r#"invalid (?:argument|value|boolean value) "(?u:[^"]*)" for (?:flag -|"?(?:-\w, )?--)([\w.-]+)"#,
    )
});
/// A message about a port that another program uses.
static IN_USE: LazyLock<Regex> =
    LazyLock::new(|| crate::init::pattern(r"listen tcp[46]? (?u:\S)*:([0-9]+): bind: address already in use"));

/// A message about a missing object of the core group.
static ABSENT: LazyLock<Regex> =
    LazyLock::new(|| crate::init::pattern(r#"(?i)\b(secret|configmap)s? \\?"([a-z0-9.-]+)\\?" not found"#));

/// Texts in the output of a program that expects the API server's address and a token where a Pod finds them.
const IN_CLUSTER: [&str; 3] = ["in-cluster config", "KUBERNETES_SERVICE_HOST", "serviceaccount/token"];

/// Words of a message about a missing flag.
const REQUIRED: [&str; 4] = ["must be", "required", "missing", "not set"];

/// Maximum number of lines of the program's output that are shown.
const TOLD: usize = 6;

/// A change of arguments or objects before the next start of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mend {
    /// Remove this flag from the arguments.
    Without(String),
    /// Add this argument to the command.
    Word(String),
    Variable(&'static str, &'static str),
    /// Mount the service account of a Pod.
    Account,
    /// Create an empty object with this kind and name. Programs that rotate their own certificates fill an empty
    /// Secret.
    Object(&'static str, String),
}

impl Mend {
    /// The change as text for the scenario file.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Without(flag) => {
                format!("--{flag} was left out: the program does not accept the flag, or not this value")
            }
            Self::Word(word) => format!("{word} was added: without it the program ends"),
            Self::Variable(name, _) => format!("{name} was added: without it the program ends"),
            Self::Object(kind, name) => format!("{kind} {name} was created empty: without it the program ends"),
            Self::Account => "it got a service account where a Pod has one: without it it ends".to_owned(),
        }
    }
}

/// The change that the program's last output suggests; `None` if no change may help.
pub(crate) fn mend(words: &str, run: &[String], help: &Help, has_account: bool) -> Option<Mend> {
    let has = |flag: &str| run.iter().any(|word| word.trim_start_matches('-').split('=').next() == Some(flag));
    for pattern in [&UNKNOWN, &INVALID] {
        if let Some(found) = pattern.captures(words).filter(|found| has(&found[1])) {
            return Some(Mend::Without(found[1].to_owned()));
        }
    }
    if let Some(found) = ABSENT.captures(words) {
        let kind = if found[1].eq_ignore_ascii_case("secret") { "Secret" } else { "ConfigMap" };
        return Some(Mend::Object(kind, found[2].to_owned()));
    }
    if IN_CLUSTER.iter().any(|sign| words.contains(sign)) && !has_account {
        return Some(Mend::Account);
    }
    if words.contains("leader election namespace") {
        let flag = ["leader-election-namespace", "leader-elect-resource-namespace", "leader-election-ns"];
        let flag = flag.into_iter().find(|flag| help.flags.contains_key(*flag) && !has(flag));
        // Without a flag, the program reads its namespace where a Pod finds its service account.
        return flag.map(|flag| Mend::Word(format!("--{flag}=default"))).or((!has_account).then_some(Mend::Account));
    }
    if let Some(flag) = required(words, help).filter(|flag| !has(flag)) {
        return Some(Mend::Word(format!("--{flag}=default")));
    }
    if words.contains("k8s-webhook-server/serving-certs") {
        return Some(Mend::Variable("TMPDIR", "${LONGHAUL_TLS_DIR}"));
    }
    None
}

/// A flag for a namespace that an error message names as missing. The values of other flags cannot be guessed.
fn required<'h>(words: &str, help: &'h Help) -> Option<&'h str> {
    let is_missed = |line: &&str| REQUIRED.iter().any(|word| line.contains(word));
    let flags = || help.flags.keys().map(String::as_str).filter(|flag| flag.ends_with("namespace"));
    words.lines().filter(is_missed).find_map(|line| flags().find(|flag| line.contains(flag)))
}

/// The relevant lines of the last output: the error and the lines after it, without usage lines; without an error, the
/// last lines.
pub(crate) fn telling(words: &str) -> Vec<&str> {
    let names_error = |line: &&str| {
        let bare = line.trim_start();
        let begins = ["Error", "error", "panic:", "fatal", "FATAL", "Failed", "failed"]
            .iter()
            .any(|word| bare.starts_with(word));
        begins
            || ["level=error", "\"level\":\"error\"", "\tERROR\t", "\"L\":\"ERROR\""]
                .iter()
                .any(|sign| bare.contains(sign))
    };
    let lines: Vec<&str> = words.lines().collect();
    let Some(at) = lines.iter().rposition(names_error) else {
        return lines[lines.len().saturating_sub(TOLD)..].to_vec();
    };
    let is_usage =
        |line: &str| line.starts_with("Usage") || line.starts_with("Flags:") || line.trim_start().starts_with("--");
    let after = lines[at + 1..].iter().take_while(|line| !is_usage(line)).take(TOLD - 1);
    std::iter::once(lines[at]).chain(after.copied()).collect()
}

/// The next step for the user, by how far the observation came.
pub(crate) fn next_step(came: &Came) -> Option<String> {
    match came {
        Came::Ran => None,
        Came::NotRun(why) => Some(format!("{why}; `longhaul init --yes --force` runs it and fills in what it sees")),
        Came::NotBuilt(command, words) => Some(not_built(command, words)),
        Came::Ended(words) => Some(ended(words)),
        Came::Silent(words) => Some(silent(words)),
    }
}

fn not_built(command: &str, words: &str) -> String {
    let program = command.split_whitespace().next().unwrap_or(command);
    if words.contains("No such file or directory") && words.contains("start") {
        return format!("`{program}` is not on the PATH: install it, or build the program by hand, then init again");
    }
    format!("correct `{command}`, or build the program by hand and name it in `run`, then init again")
}

fn ended(words: &str) -> String {
    let says = |texts: &[&str]| texts.iter().any(|text| words.contains(text));
    if says(&IN_CLUSTER) {
        return "it needs a cluster around it, and a service account was not enough: run it in a Pod (`subject: {deployment: …}`, docs/deploy.md)"
            .to_owned();
    }
    if let Some(found) = IN_USE.captures(words) {
        return format!(
            "port {} is taken: end the program that has it, or give this one a flag with `${{LONGHAUL_PORT_1}}`",
            &found[1]
        );
    }
    if says(&["no matches for kind", "failed to wait for", "could not find the requested resource"]) {
        return "the program needs kinds that the API server does not have: put the definitions of the other project into \
                `controlPlane.manifests`".to_owned();
    }
    if says(&["required flag", "must be set", "must be specified", "is required", "environment variable", "not set"]) {
        return "the program needs a flag or a variable: put it into `run` or `env`".to_owned();
    }
    if says(&["no such file or directory", "cannot find"]) {
        return "the program needs a file: create it, or name another file by a flag in `run`".to_owned();
    }
    if says(&["DISPLAY", "cannot open display"]) {
        return "the program opens a window: start it without one".to_owned();
    }
    "its last output shows why it ended: put the missing flags or variables into `run` and `env`, then init again"
        .to_owned()
}

fn silent(words: &str) -> String {
    if words.trim().is_empty() {
        return "the program runs and prints nothing: does it read $KUBECONFIG? A flag for it goes into `run`, as \
                `--kubeconfig=${KUBECONFIG}`"
            .to_owned();
    }
    "the program runs and sends no request to the API server: does it read $KUBECONFIG, or wait for something first? See its last \
     output".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn an_unknown_flag_is_left_out() {
        let run = run(&["bin/a", "--leader-elect=false", "--x"]);
        let of = |words: &str| mend(words, &run, &Help::default(), true);
        let without = |flag: &str| Some(Mend::Without(flag.to_owned()));
        assert_eq!(of("flag provided but not defined: -leader-elect\nUsage of a"), without("leader-elect"));
        assert_eq!(of("Error: unknown flag: --x"), without("x"));
        assert_eq!(of("invalid argument \"false\" for \"--leader-elect\" flag"), without("leader-elect"));
        assert_eq!(of("unknown flag: --other"), None, "which nobody gave");
    }

    #[test]
    fn what_it_misses_is_given() {
        let help = Help::read("  --leader-election-namespace string   where\n");
        let words = "unable to find leader election namespace: not running in-cluster";
        assert_eq!(mend(words, &[], &help, true), Some(Mend::Word("--leader-election-namespace=default".to_owned())));
        assert_eq!(mend(words, &[], &Help::read(""), false), Some(Mend::Account));
        let help = Help::read("  --operator-namespace string   where\n  --size string   how much\n");
        let words = "Error: operator namespace must be specified using operator-namespace";
        let mended = Some(Mend::Word("--operator-namespace=default".to_owned()));
        assert_eq!(mend(words, &[], &help, true), mended);
        assert_eq!(mend(words, &["--operator-namespace=a".to_owned()], &help, true), None);
        assert_eq!(mend("Error: size must be set", &[], &help, true), None);
        let words = "unable to find leader election namespace: not running in-cluster";
        assert_eq!(mend(words, &[], &Help::read(""), true), None);
        let words = "open /tmp/k8s-webhook-server/serving-certs/tls.crt: no such file or directory";
        assert_eq!(mend(words, &[], &help, true), Some(Mend::Variable("TMPDIR", "${LONGHAUL_TLS_DIR}")));
        let words = r#"{"error": "acquiring secret to update certificates: Secret \"hook-cert\" not found"}"#;
        assert_eq!(mend(words, &[], &help, true), Some(Mend::Object("Secret", "hook-cert".to_owned())));
        let words = "panic: unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined";
        assert_eq!(mend(words, &[], &help, false), Some(Mend::Account));
        assert_eq!(mend(words, &[], &help, true), None, "once");
        let words = "configmaps \"settings\" not found";
        assert_eq!(mend(words, &[], &help, true), Some(Mend::Object("ConfigMap", "settings".to_owned())));
    }

    #[test]
    fn a_usage_does_not_hide_the_error() {
        let words = "starting\nError: unable to read the secret\nUsage:\n  shop [flags]\nFlags:\n      --a string\n      --b string\n";
        assert_eq!(telling(words), ["Error: unable to read the secret"]);
        assert_eq!(telling("a\nb"), ["a", "b"]);
    }

    #[test]
    fn the_next_step_follows_from_the_last_words() {
        let of = |words: &str| next_step(&Came::Ended(words.to_owned())).unwrap();
        assert!(of("unable to load in-cluster configuration").contains("needs a cluster around it"));
        assert!(of("listen tcp :8080: bind: address already in use").contains("port 8080 is taken"));
        assert!(of("no matches for kind \"Certificate\" in version").contains("definitions of the other project"));
        assert!(of("FOO environment variable must be set").contains("`env`"));
        assert!(of("boom").contains("last output"));
        assert!(next_step(&Came::Silent(String::new())).unwrap().contains("--kubeconfig=${KUBECONFIG}"));
        assert_eq!(next_step(&Came::Ran), None);
    }
}
