//! The proposed subject, from the observation of the program.

use std::fmt::Write as _;

use super::{CHILDREN, is_webhook_only, witness};
use crate::init::Found;
use crate::init::seen::{By, Open, Seen};
use crate::init::witness::Proposal;
use crate::init::yaml::{printable, quoted};
use crate::scenario::{METRICS_PORT_NAME, Mount, WEBHOOK_PORT};

/// The lowest port that Linux assigns for port 0.
const EPHEMERAL: u16 = 32_768;

pub(super) fn subject(text: &mut String, found: &Found, seen: &Seen, proposal: Option<&Proposal>) {
    line!(text, "subject:");
    line!(text, "  command:");
    role(text, found, seen);
    if let Some(build) = &seen.built {
        line!(text, "    # seen: `{build}` builds it. KUBECONFIG names the API server of the run.");
    }
    for mended in &seen.mended {
        line!(text, "    # seen: {mended}.");
    }
    line!(text, "    # seen: it ran with these arguments.");
    line!(text, "    run:");
    for word in &seen.run {
        line!(text, "      - {}", quoted(word));
    }
    let folder = found.program().map(|program| program.folder().display().to_string()).unwrap_or_default();
    line!(text, "    # seen: it was started here.");
    line!(text, "    cwd: {}", quoted(if folder.is_empty() { "." } else { &folder }));
    variables(text, seen, proposal);
    mounts(text, seen);
    ports(text, seen);
    serves(text, found, seen);
    super::start::install(text, found);
    metrics(text, seen);
    children(text, seen);
    if let Some(proposal) = proposal {
        witness(text, proposal);
    }
    line!(text, "");
}

fn role(text: &mut String, found: &Found, seen: &Seen) {
    if is_webhook_only(found) {
        line!(
            text,
            "    # seen: it follows {} kinds. check: as a webhook alone it is ready when its port answers.",
            seen.followed.len()
        );
        line!(text, "    role: webhook");
    } else if !found.hooks.is_empty() || seen.is_given_certificate() {
        line!(
            text,
            "    # check: it watches and answers reviews. Its policy is not known here, so every valid answer counts as right."
        );
        line!(text, "    role: both");
    }
}

fn variables(text: &mut String, seen: &Seen, proposal: Option<&Proposal>) {
    let of_witness = proposal.and_then(|proposal| proposal.env);
    let of_witness = of_witness.filter(|(name, _)| seen.variables.iter().all(|(known, _)| known != name));
    if seen.variables.is_empty() && of_witness.is_none() {
        return;
    }
    line!(text, "    # seen: it ran with these variables, which the manifests that deploy it have.");
    line!(text, "    env:");
    for (name, value) in &seen.variables {
        line!(text, "      {}: {}", quoted(name), quoted(value));
    }
    if let Some((name, value)) = of_witness {
        line!(text, "      # check: its witness needs this.");
        line!(text, "      {name}: {}", quoted(value));
    }
}

/// Writes the folders that a kubelet would mount for the program.
fn mounts(text: &mut String, seen: &Seen) {
    if seen.mounts.is_empty() {
        return;
    }
    line!(text, "    # seen: it ran with these folders, which it alone finds.");
    line!(text, "    mounts:");
    for (path, mount) in &seen.mounts {
        let (key, value) = match mount {
            Mount::ServiceAccount(namespace) => ("serviceAccount", namespace),
            Mount::Secret(object) => ("secret", object),
            Mount::ConfigMap(object) => ("configMap", object),
        };
        line!(text, "      {}: {{{key}: {}}}", quoted(&path.display().to_string()), quoted(value));
    }
}

/// Writes comments about fixed ports, because two simultaneous runs would conflict.
fn ports(text: &mut String, seen: &Seen) {
    for open in &seen.ports {
        let Open { port, variable, is_tls, pages, .. } = open;
        let pages: Vec<&str> = pages.iter().map(|(page, _)| page.as_str()).collect();
        let answers = match (is_tls, pages.as_slice()) {
            (true, _) => "TLS".to_owned(),
            (false, []) => "no page that is known".to_owned(),
            (false, pages) => pages.join(", "),
        };
        if let Some(variable) = variable {
            line!(text, "    # seen: at ${{{variable}}}: {answers}.");
            continue;
        }
        if *port >= EPHEMERAL && seen.run.iter().any(|word| word.ends_with(":0")) {
            line!(text, "    # seen: at a port that the system chose: {answers}.");
            continue;
        }
        line!(
            text,
            "    # check: seen: it listens at {port} ({answers}), and no flag or variable sets that port: two runs at a time would \
             conflict."
        );
    }
}

fn serves(text: &mut String, found: &Found, seen: &Seen) {
    let hook = found.hooks.iter().find(|hook| hook.is_mutating).or(found.hooks.first());
    if hook.is_none() && !seen.is_given_certificate() {
        return;
    }
    let is_own = found.own_hooks().next().is_some();
    let path = match hook {
        Some(_) if is_own => None,
        Some(hook) => Some((hook.path.clone(), format!("from {}", hook.file.display()))),
        None => Some(("/".to_owned(), "no configuration of its webhooks was found: name the path of one".to_owned())),
    };
    let is_told = seen.run.iter().any(|word| word.contains(WEBHOOK_PORT));
    // A port with TLS that the harness did not choose.
    let fixed = seen.ports.iter().find(|open| open.is_tls && open.variable.is_none() && !is_told);
    let mut keys = Vec::new();
    if let Some((path, why)) = &path {
        line!(text, "    # check: {why}.");
        keys.push(format!("path: {}", quoted(path)));
    }
    if let Some(open) = fixed {
        line!(text, "    # seen: it speaks TLS at this port.");
        keys.push(format!("port: {}", open.port));
    }
    if !keys.is_empty() {
        line!(text, "    serves: {{{}}}", keys.join(", "));
    }
}

fn metrics(text: &mut String, seen: &Seen) {
    let Some(open) = seen.metrics() else {
        line!(
            text,
            "  # check: seen: no page of metrics answers over plain HTTP, so heap and goroutines are not followed."
        );
        return;
    };
    let at = if open.variable == Some(METRICS_PORT_NAME) {
        format!("${{{METRICS_PORT_NAME}}}")
    } else {
        open.port.to_string()
    };
    line!(
        text,
        "  # seen: this page answers and has the heap in use, by which growth is judged before the resident set."
    );
    line!(text, "  metrics:");
    line!(text, "    url: http://127.0.0.1:{at}/metrics");
    if open.counts_goroutines {
        line!(text, "    series: [go_goroutines]");
    }
}

/// Writes the children that the program created for the sample.
fn children(text: &mut String, seen: &Seen) {
    let Some(best) = seen.best() else { return };
    let mut lines = Vec::new();
    for child in best.children.iter().take(CHILDREN) {
        let by = match &child.by {
            By::Owner => "owner".to_owned(),
            By::Name(name) => format!("{{name: {}}}", quoted(name)),
            By::Nothing => {
                let (count, resource) = (child.count, &child.resource);
                line!(
                    text,
                    "  # check: seen: {count} {resource} for one {}, without an owner or a fixed name: write how they are recognised.",
                    best.kind
                );
                continue;
            }
        };
        if child.varies {
            let resource = &child.resource;
            line!(
                text,
                "  # check: seen: how many {resource} it makes depends on the {}; `perParent` would be wrong.",
                best.kind
            );
            continue;
        }
        let per = if child.count == 1 { String::new() } else { format!(", perParent: {}", child.count) };
        let back = match child.is_restored {
            Some(true) => "; one that was deleted came back",
            Some(false) => "; one that was deleted did not come back",
            None => "",
        };
        lines.push((
            format!("seen: {} {} for one {}{back}.", child.count, child.resource, best.kind),
            format!("{{resource: {}, by: {by}{per}}}", quoted(&child.churned)),
        ));
    }
    if lines.is_empty() {
        return;
    }
    line!(text, "  children:");
    for (comment, keys) in lines {
        line!(text, "    # {comment}");
        line!(text, "    - {keys}");
    }
}
