//! Who the processes of a subject are: the commands that it has, or what runs already.
//!
//! Owns the keys of `commands` and of `kind: attach`, and which keys belong to which kind of subject.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Subject, SubjectKind};

/// More is no subject but a cluster.
const COMMANDS_MAX: usize = 16;

/// One of several processes of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NamedCommand {
    /// How it is called in the log and in the report.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables for it alone, beside those of the subject.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Its working directory, relative to the scenario file. Default: that of the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
}

/// A key that is wrong, and what is wrong with it.
pub(super) type Wrong = (&'static str, String);

/// Refuses what does not belong to the kind of subject.
pub(super) fn check(subject: &Subject) -> Result<(), Wrong> {
    match subject.kind {
        SubjectKind::Command => command(subject),
        SubjectKind::Service => service(subject),
        SubjectKind::Attach => attach(subject),
    }?;
    if subject.kind != SubjectKind::Attach {
        let only = [
            ("pid", subject.pid.is_some()),
            ("url", subject.url.is_some()),
            ("ca", subject.ca.is_some()),
            ("kubeconfig", subject.kubeconfig.is_some()),
        ];
        if let Some((key, _)) = only.into_iter().find(|(_, is_there)| *is_there) {
            return wrong(key, format!("`{key}` belongs to `kind: attach`, a subject that runs already"));
        }
    }
    restart(subject)
}

fn wrong<T>(key: &'static str, text: impl Into<String>) -> Result<T, Wrong> {
    Err((key, text.into()))
}

fn command(subject: &Subject) -> Result<(), Wrong> {
    match (subject.command.is_empty(), subject.commands.is_empty()) {
        (true, true) => {
            return wrong(
                "kind",
                "`kind: command` needs `command: [program, argument, …]`, or `commands` with several",
            );
        }
        (false, false) => return wrong("commands", "has both `command` and `commands`: keep one"),
        _ => {}
    }
    if subject.config.is_some() || subject.settings.is_some() {
        let key = if subject.config.is_some() { "config" } else { "settings" };
        return wrong(key, "`config` and `settings` belong to `kind: service`: use `env` and `command`");
    }
    if subject.commands.len() > COMMANDS_MAX {
        return wrong("commands", format!("`commands`: {} processes; at most {COMMANDS_MAX}", subject.commands.len()));
    }
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    for (index, one) in subject.commands.iter().enumerate() {
        let NamedCommand { name, command, .. } = one;
        if name.is_empty() || name.len() > 63 || !name.chars().all(is_fine) {
            return wrong(
                "commands",
                format!("`commands`: `{name}`: a name has 1 to 63 lower-case letters, digits and `-`"),
            );
        }
        if command.is_empty() {
            return wrong("commands", format!("`commands`: `{name}` needs `command: [program, argument, …]`"));
        }
        if subject.commands[..index].iter().any(|other| other.name == *name) {
            return wrong("commands", format!("`commands`: two are called `{name}`: give each a name of its own"));
        }
    }
    if subject.webhook.as_ref().is_some_and(|webhook| webhook.port.is_some()) && subject.restarts.is_some() {
        let text = "`restarts` starts one process before the other ends, and both cannot serve at the one `webhook.port`: give the program a \
                    flag for `${LONGHAUL_WEBHOOK_PORT}`, or leave one of both out";
        return wrong("restarts", text);
    }
    if subject.commands.len() > 1 && subject.restarts.is_some() {
        let text = "`restarts` puts one process in the place of another: name one `command`, or leave it out";
        return wrong("restarts", text);
    }
    Ok(())
}

fn service(subject: &Subject) -> Result<(), Wrong> {
    let only = [
        ("command", !subject.command.is_empty()),
        ("commands", !subject.commands.is_empty()),
        ("cwd", subject.cwd.is_some()),
        ("files", !subject.files.is_empty()),
    ];
    if let Some((key, _)) = only.into_iter().find(|(_, is_there)| *is_there) {
        return wrong(key, "`command`, `commands`, `cwd` and `files` belong to `kind: command`");
    }
    if subject.ready.is_some() {
        return wrong("ready", "`ready` belongs to `kind: command`: the service says so itself");
    }
    if subject.webhook.as_ref().is_some_and(|webhook| webhook.path.is_some() || webhook.port.is_some()) {
        return wrong("webhook", "`webhook: {path: …, port: …}` belongs to `kind: command`: the service has its own");
    }
    if subject.config.is_some() && subject.settings.is_some() {
        return wrong("settings", "has both `config` and `settings`: keep one");
    }
    Ok(())
}

/// A subject that runs already is started by nobody, so nothing is given to it.
fn attach(subject: &Subject) -> Result<(), Wrong> {
    let given = [
        ("command", !subject.command.is_empty()),
        ("commands", !subject.commands.is_empty()),
        ("env", !subject.env.is_empty()),
        ("cwd", subject.cwd.is_some()),
        ("files", !subject.files.is_empty()),
        ("config", subject.config.is_some()),
        ("settings", subject.settings.is_some()),
        ("restart", subject.restart.is_some()),
        ("restarts", subject.restarts.is_some()),
        ("certificates", subject.certificates.is_some()),
        ("trustedKeys", subject.trusted_keys.is_some()),
        ("clockRate", subject.clock_rate.is_some()),
    ];
    if let Some((key, _)) = given.into_iter().find(|(_, is_there)| *is_there) {
        let text = format!(
            "`{key}` is for a subject that the harness starts, and `kind: attach` runs already: leave it out, or use `kind: command`"
        );
        return wrong(key, text);
    }
    if subject.pid == Some(0) {
        return wrong("pid", "`pid: 0` is no process: write the number that `pgrep` tells");
    }
    if let Some(text) = subject.url.as_ref().and_then(|url| super::attach::problem(url)) {
        return wrong("url", text);
    }
    match (&subject.url, &subject.ca) {
        (Some(_), None) => {
            return wrong("url", "`url` needs `ca: FILE`: the certificate of who signed that of the webhook, as PEM");
        }
        (None, Some(_)) => return wrong("ca", "`ca` is for a webhook: add `url: https://127.0.0.1:9443/validate`"),
        _ => {}
    }
    if subject.webhook.as_ref().is_some_and(|webhook| webhook.path.is_some() || webhook.port.is_some()) {
        let text = "`webhook: {path: …, port: …}`: where a webhook that runs already serves stands in `url`";
        return wrong("webhook", text);
    }
    if matches!(subject.ready, Some(super::Readiness::Log(_))) {
        return wrong(
            "ready",
            "`ready: {log: …}` reads the output of a process that the harness starts: use `url` or `request`",
        );
    }
    if subject
        .metrics
        .as_ref()
        .and_then(|metrics| metrics.url.as_ref())
        .is_some_and(|url| url.contains(super::METRICS_PORT))
    {
        return wrong(
            "metrics",
            format!("`metrics`: nobody gives `{}` to a process that runs already: write its port", super::METRICS_PORT),
        );
    }
    if matches!(subject.witness, super::Witness::Log(_)) {
        let text =
            "`witness: {kind: log}` reads the output of a process that the harness starts: use `http` or `status`";
        return wrong("witness", text);
    }
    Ok(())
}

fn restart(subject: &Subject) -> Result<(), Wrong> {
    if let Some(text) = subject.back_off.as_ref().and_then(super::BackOff::problem) {
        return wrong("backOff", text);
    }
    if subject.back_off.is_some() && subject.restart.is_none() {
        return wrong(
            "backOff",
            "`backOff` is between a crash and the next start, and nothing starts it again: add `restart: always`",
        );
    }
    Ok(())
}
