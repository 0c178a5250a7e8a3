//! The environment variables of a command, and the placeholders `${NAME}` in the command's `run`, `env` and `files`.
//!
//! This module owns the names of variables, the syntax of placeholders, and the check that each placeholder has a
//! value. With `${NAME}`, a program that takes ports and files as flags needs no shell script. `$${NAME}` is passed on
//! as `${NAME}`, for a shell; `$NAME` without braces is never replaced.

use std::collections::BTreeMap;

use super::spelling::nearest;
use super::subject::{Command, Templated};
use super::{Auth, METRICS_PORT, Scenario, Witness};

/// The kubeconfig file for the API server of the run.
pub const KUBECONFIG: &str = "KUBECONFIG";
/// The resources to watch, separated by commas.
pub const WATCH: &str = "LONGHAUL_WATCH";
/// The namespace that the subject must watch; empty for all namespaces.
pub const NAMESPACE: &str = "LONGHAUL_NAMESPACE";
/// The URL to which a subject posts its observations.
pub const WITNESS_URL: &str = "LONGHAUL_WITNESS_URL";
/// The folder with the subject's login to the registry (`config.json`).
pub const DOCKER_CONFIG: &str = "DOCKER_CONFIG";
/// A free port for the subject's metrics page.
pub const METRICS_PORT_NAME: &str = "LONGHAUL_METRICS_PORT";
/// The port on which the subject must answer admission reviews.
pub const WEBHOOK_PORT: &str = "LONGHAUL_WEBHOOK_PORT";
/// The file with the subject's serving certificate.
pub const TLS_CERT: &str = "LONGHAUL_TLS_CERT";
/// The file with the key of [`TLS_CERT`].
pub const TLS_KEY: &str = "LONGHAUL_TLS_KEY";
/// The folder with certificate and key, as `tls.crt` and `tls.key`.
pub const TLS_DIR: &str = "LONGHAUL_TLS_DIR";
/// Free ports for other listeners of the subject. The harness reserves a port only if a setting of the scenario uses
/// the port's name.
pub const FREE_PORTS: [&str; 9] = [
    "LONGHAUL_PORT_1",
    "LONGHAUL_PORT_2",
    "LONGHAUL_PORT_3",
    "LONGHAUL_PORT_4",
    "LONGHAUL_PORT_5",
    "LONGHAUL_PORT_6",
    "LONGHAUL_PORT_7",
    "LONGHAUL_PORT_8",
    "LONGHAUL_PORT_9",
];
/// The variables that every process inherits from the harness. Other variables are not inherited, because they differ
/// between machines, and some are secrets.
const INHERITED: [&str; 3] = ["HOME", "PATH", "USER"];
/// Variables that every command gets.
const ALWAYS: [&str; 3] = [KUBECONFIG, WATCH, NAMESPACE];

/// Names of variables, each with its value.
#[derive(Debug, Clone, Default)]
pub struct Given(Vec<(String, String)>);

impl Given {
    /// Adds a name with its value. If a name is added twice, the later value counts.
    pub fn give(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    /// The names and values as environment variables of a process.
    pub fn variables(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.0.iter().cloned()
    }

    /// The text with each `${NAME}` replaced by its value.
    pub fn put(&self, text: &str) -> String {
        let value = |name: &str| self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let inherited = |name: &str| INHERITED.contains(&name).then(|| std::env::var(name).ok()).flatten();
        let put = |piece: Piece<'_>| match piece {
            Piece::Plain(text) | Piece::Open(text) => text.to_owned(),
            Piece::Name(name) => value(name).or_else(|| inherited(name)).unwrap_or_else(|| placeholder(name)),
        };
        pieces(text).into_iter().map(put).collect()
    }
}

/// Whether one of these texts contains `${name}`.
pub fn is_written<'t>(name: &str, texts: impl IntoIterator<Item = &'t str>) -> bool {
    texts.into_iter().any(|text| pieces(text).into_iter().any(|piece| matches!(piece, Piece::Name(one) if one == name)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'t> {
    Plain(&'t str),
    /// The name in `${…}`, without `$` and braces.
    Name(&'t str),
    /// A `${` without a closing brace, and the text after it.
    Open(&'t str),
}

/// Splits a text at each placeholder `${NAME}`. `$${` stands for a literal `${`.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            pieces.extend([Piece::Plain(before), Piece::Plain(&from[..2])]);
            rest = &from[2..];
            continue;
        }
        pieces.push(Piece::Plain(before));
        let Some(end) = from.find('}') else {
            pieces.push(Piece::Open(from));
            return pieces;
        };
        pieces.push(Piece::Name(&from[2..end]));
        rest = &from[end + 1..];
    }
    pieces.push(Piece::Plain(rest));
    pieces
}

fn placeholder(name: &str) -> String {
    format!("${{{name}}}")
}

/// Finds a placeholder without a value; returns the key that contains it, and a message.
pub(super) fn problem(scenario: &Scenario) -> Option<(String, String)> {
    let subject = &scenario.subject;
    let has_port =
        subject.metrics.iter().filter_map(|metrics| metrics.url.as_ref()).any(|url| url.contains(METRICS_PORT));
    let mut known: Vec<&str> = ALWAYS.into_iter().chain(FREE_PORTS).chain(INHERITED).collect();
    // Names that a run has if another key is set as well.
    let mut elsewhere: BTreeMap<&str, &str> = BTreeMap::new();
    let mut on = |names: &[&'static str], is: bool, remedy| {
        if is {
            known.extend(names);
        } else {
            elsewhere.extend(names.iter().map(|name| (*name, remedy)));
        }
    };
    on(&[METRICS_PORT_NAME], has_port, "`metrics: http://127.0.0.1:${LONGHAUL_METRICS_PORT}/metrics` to `subject`");
    on(&[WEBHOOK_PORT, TLS_CERT, TLS_KEY, TLS_DIR], subject.serves(), "`serves: {path: /mutate}` to `command`");
    on(&[WITNESS_URL], matches!(subject.witness, Witness::Http(_)), "`witness: {kind: http}` to `subject`");
    on(&[DOCKER_CONFIG], scenario.registry.auth != Auth::None, "`registry: {auth: basic}`");
    subject.profile().texts.into_iter().find_map(|Templated { key, text, own }| {
        let why = pieces(text).into_iter().find_map(|piece| match piece {
            Piece::Plain(_) => None,
            Piece::Open(_) => Some(format!("`{key}`: `${{` is not closed: write `$${{` for a `${{` that is passed on")),
            Piece::Name(name) if known.contains(&name) || own.contains(&name) => None,
            Piece::Name(name) => Some(unknown(key, name, &elsewhere, known.iter().chain(&own).copied().collect())),
        })?;
        Some((text.to_owned(), why))
    })
}

/// Replaces the command's own variables in its `files`. Values of the run do not exist yet when this function is
/// called.
pub(super) fn in_files(command: &mut Command) -> Result<(), String> {
    let mut given = Given::default();
    command.env.iter().for_each(|(name, value)| given.give(name, value));
    let own: Vec<&str> = command.env.keys().map(String::as_str).chain(INHERITED).collect();
    for file in &mut command.files {
        let text = file.to_string_lossy().into_owned();
        for piece in pieces(&text) {
            match piece {
                Piece::Name(name) if ALWAYS.contains(&name) || name.starts_with("LONGHAUL_") => {
                    let name = placeholder(name);
                    return Err(format!("`files`: `{name}` is created for the run, after the build: leave it out"));
                }
                Piece::Name(name) if !own.contains(&name) => {
                    return Err(unknown("files", name, &BTreeMap::new(), own));
                }
                Piece::Open(_) => return Err(format!("`files`: `${{` of `{text}` is not closed")),
                Piece::Plain(_) | Piece::Name(_) => {}
            }
        }
        *file = given.put(&text).into();
    }
    Ok(())
}

/// The error message for a name without a value.
fn unknown(key: &str, name: &str, elsewhere: &BTreeMap<&str, &str>, mut known: Vec<&str>) -> String {
    let written = placeholder(name);
    if let Some(remedy) = elsewhere.get(name) {
        return format!("`{key}`: `{written}` has no value here: add {remedy}");
    }
    let all: Vec<&str> = known.iter().copied().chain(elsewhere.keys().copied()).collect();
    let near = nearest(name, &all).map(|near| format!(" did you mean `{}`?", placeholder(near))).unwrap_or_default();
    known.retain(|name| !FREE_PORTS[1..].contains(name));
    let known = known.join(", ");
    format!(
        "`{key}`: nothing gives a value to `{written}`:{near} Known here: {known}. A name of your own goes into `env`; `${written}` is passed on as \
         `{written}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Source;

    fn given() -> Given {
        let mut given = Given::default();
        given.give(WEBHOOK_PORT, "4711");
        given.give(TLS_DIR, "/run/tls");
        given.give(KUBECONFIG, "/run/${HOME}");
        given
    }

    #[test]
    fn values_stand_for_names_and_nothing_else_changes() {
        let text = "--port=${LONGHAUL_WEBHOOK_PORT} --dir ${LONGHAUL_TLS_DIR} $LONGHAUL_WEBHOOK_PORT $$ $${LONGHAUL_TLS_DIR} ${";
        let put = "--port=4711 --dir /run/tls $LONGHAUL_WEBHOOK_PORT $$ ${LONGHAUL_TLS_DIR} ${";
        assert_eq!(given().put(text), put);
        assert_eq!(given().put("--kubeconfig=${KUBECONFIG}"), "--kubeconfig=/run/${HOME}", "a value is no text");
        assert_eq!(given().variables().next(), Some((WEBHOOK_PORT.to_owned(), "4711".to_owned())));
        let mut twice = given();
        twice.give(WEBHOOK_PORT, "1");
        assert_eq!(twice.put("${LONGHAUL_WEBHOOK_PORT}"), "1");
        assert!(is_written("A", ["x${A}"]) && !is_written("A", ["$${A}", "$A", "${AB}"]));
    }

    /// The error message for a scenario with this subject.
    fn problem(subject: &str) -> String {
        let text = format!(
            "apiVersion: longhaul/v1\nname: a\ndescription: b\nseed: 1\nphases: {{warmUp: 1s, steady: 20s, drain: 15s}}\nsubject:\n{subject}\n  witness: \
             {{kind: status}}\nchurn: {{resource: configmaps/v1, population: 5, rate: 1/s}}\n"
        );
        let folder = tempfile::tempdir().unwrap();
        Source::parse(&text, "a.yaml", folder.path()).map_or_else(|error| error.to_string(), |_| "ok".to_owned())
    }

    #[test]
    fn every_variable_of_the_process_can_be_written() {
        assert_eq!(
            problem("  command: [a, '--kubeconfig=${KUBECONFIG}', '${LONGHAUL_WATCH}', '${LONGHAUL_PORT_1}']"),
            "ok"
        );
        assert_eq!(
            problem("  command:\n    run: [a, '--name=${NAME}']\n    env: {NAME: 'x-${LONGHAUL_NAMESPACE}'}"),
            "ok"
        );
        assert_eq!(problem("  command: [sh, -c, 'echo $KUBECONFIG $$ $${OTHER:-x}']"), "ok");
        assert_eq!(
            problem("  command: {processes: [{name: a, run: [a, '${ONE}'], env: {ONE: x}}, {name: b, run: [b]}]}"),
            "ok"
        );
    }

    #[test]
    fn an_unknown_one_is_refused_where_it_stands_with_the_nearest() {
        let typo = problem("  command:\n    run:\n      - a\n      # why\n      - --kubeconfig=${KUBECONFG}");
        assert!(typo.starts_with("a.yaml:11:"), "{typo}");
        assert!(typo.contains("`${KUBECONFG}`: did you mean `${KUBECONFIG}`?"), "{typo}");
        assert!(typo.contains("`$${KUBECONFG}` is passed on as `${KUBECONFG}`"), "{typo}");
        let of_others = "  command: {processes: [{name: a, run: [a], env: {ONE: x}}, {name: b, run: [b, '${ONE}']}]}";
        assert!(problem(of_others).contains("nothing gives a value to `${ONE}`"));
        let shell = problem("  command: [sh, -c, 'echo ${OTHER:-x}']");
        assert!(shell.contains("`$${OTHER:-x}` is passed on"), "{shell}");
        assert!(problem("  command: [a, '${KUBECONFIG']").contains("is not closed"));
    }

    #[test]
    fn what_nobody_gives_is_told_with_what_to_add() {
        let page =
            problem("  command: [a, '${LONGHAUL_PORT_1}']\n  metrics: 'http://127.0.0.1:${LONGHAUL_PORT_1}/metrics'");
        assert!(page.contains("the only variable of this address is `${LONGHAUL_METRICS_PORT}`"), "{page}");
        let port = problem("  command: [a, '${LONGHAUL_METRICS_PORT}']");
        assert!(port.contains("`${LONGHAUL_METRICS_PORT}` has no value here: add `metrics: "), "{port}");
        let folder = problem("  command:\n    run: [a]\n    env: {TMPDIR: '${LONGHAUL_TLS_DIR}'}");
        assert!(folder.starts_with("a.yaml:9:") && folder.contains("`env`: "), "{folder}");
        assert!(folder.contains("`serves: {path: /mutate}` to `command`"), "{folder}");
        assert_eq!(problem("  command: {run: [a, '${LONGHAUL_TLS_DIR}'], serves: {path: /mutate}}"), "ok");
        let witness = problem("  command: [a, '${LONGHAUL_WITNESS_URL}']");
        assert!(witness.contains("add `witness: {kind: http}`"), "{witness}");
    }

    /// `files` may use only values that exist before the run.
    #[test]
    fn files_of_a_build_take_what_does_not_change() {
        let made = problem("  command: {run: [a], files: ['${KUBECONFIG}']}");
        assert!(made.contains("`files`: `${KUBECONFIG}` is created for the run"), "{made}");
        let there = problem("  command: {run: [a], env: {PART: lib}, files: ['${PART}/a.py']}");
        assert!(there.contains("lib/a.py"), "it looks for the file: {there}");
        let typo = problem("  command: {run: [a], env: {PART: lib}, files: ['${PARTS}/a.py']}");
        assert!(typo.contains("did you mean `${PART}`?"), "{typo}");
    }
}
