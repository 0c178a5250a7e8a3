//! What a command is given by the run: names that are variables of its process, and that stand for their values as `${NAME}` in the words and
//! variables that the scenario names.
//!
//! Owns the names, and the check that each which is used is given. A program that takes ports and files by flags needs no script around it.

use super::{METRICS_PORT, Subject};

/// A free port for its page of metrics, as a variable.
pub const METRICS_PORT_NAME: &str = "LONGHAUL_METRICS_PORT";
/// Where it is to serve reviews.
pub const WEBHOOK_PORT: &str = "LONGHAUL_WEBHOOK_PORT";
/// Its serving certificate, and the key of it.
pub const TLS_CERT: &str = "LONGHAUL_TLS_CERT";
/// See [`TLS_CERT`].
pub const TLS_KEY: &str = "LONGHAUL_TLS_KEY";
/// The folder that has both, as `tls.crt` and `tls.key`.
pub const TLS_DIR: &str = "LONGHAUL_TLS_DIR";

/// Names, each with its value.
#[derive(Debug, Clone, Default)]
pub struct Given(Vec<(&'static str, String)>);

impl Given {
    /// One more.
    pub fn give(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.push((name, value.into()));
    }

    /// As variables of a process.
    pub fn variables(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.0.iter().map(|(name, value)| ((*name).to_owned(), value.clone()))
    }

    /// A text with the values in the places of the names.
    pub fn put(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.0 {
            text = text.replace(&placeholder(name), value);
        }
        text
    }
}

fn placeholder(name: &str) -> String {
    format!("${{{name}}}")
}

/// What is used and given by nobody: the key, and why.
pub(super) fn problem(subject: &Subject) -> Option<(&'static str, String)> {
    let has_port =
        subject.metrics.iter().filter_map(|metrics| metrics.url.as_ref()).any(|url| url.contains(METRICS_PORT));
    let metrics = [(METRICS_PORT_NAME, "`metrics: http://127.0.0.1:${LONGHAUL_METRICS_PORT}/metrics` to `subject`")];
    let webhook =
        [WEBHOOK_PORT, TLS_CERT, TLS_KEY, TLS_DIR].map(|name| (name, "`serves: {path: /mutate}` to `command`"));
    let missing: Vec<(&str, &str)> =
        metrics.into_iter().filter(|_| !has_port).chain(webhook.into_iter().filter(|_| !subject.serves())).collect();
    let used = |(key, text): (&'static str, &str)| {
        let (name, remedy) = missing.iter().find(|(name, _)| text.contains(&placeholder(name)))?;
        Some((key, format!("`{}` is given by nobody here: add {remedy}", placeholder(name))))
    };
    subject.kind().texts().into_iter().find_map(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_for_names_and_nothing_else_changes() {
        let mut given = Given::default();
        given.give(WEBHOOK_PORT, "4711");
        given.give(TLS_DIR, "/run/tls");
        let text = "--port=${LONGHAUL_WEBHOOK_PORT} --dir ${LONGHAUL_TLS_DIR} $LONGHAUL_WEBHOOK_PORT ${HOME}";
        assert_eq!(given.put(text), "--port=4711 --dir /run/tls $LONGHAUL_WEBHOOK_PORT ${HOME}");
        assert_eq!(given.variables().next(), Some((WEBHOOK_PORT.to_owned(), "4711".to_owned())));
    }

    #[test]
    fn what_nobody_gives_is_told_with_what_to_add() {
        let subject = |text: &str| serde_saphyr::from_str::<Subject>(text).unwrap();
        let of = |text: &str| problem(&subject(text)).map(|(key, text)| format!("{key}: {text}")).unwrap_or_default();
        let port = of("{command: [a, '${LONGHAUL_METRICS_PORT}']}");
        assert!(port.starts_with("command: `${LONGHAUL_METRICS_PORT}`") && port.contains("add `metrics: "), "{port}");
        let folder = of("{command: {run: [a], env: {TMPDIR: '${LONGHAUL_TLS_DIR}'}}}");
        assert!(folder.starts_with("env: ") && folder.contains("`serves: {path: /mutate}` to `command`"), "{folder}");
        assert_eq!(of("{command: {run: [a, '${LONGHAUL_TLS_DIR}'], serves: {path: /mutate}}}"), "");
        assert_eq!(of("{command: [sh, -c, 'echo ${LONGHAUL_WITNESS_URL}']}"), "");
    }
}
