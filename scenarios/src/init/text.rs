//! The scenario that is proposed: YAML with comments that say what to look at.

use std::fmt::Write as _;

use super::witness::{Proposal, propose};
use super::{Crd, Found, Language};

/// Custom resources that are named beside the first one.
const OTHERS: usize = 10;

/// The scenario for what was found.
pub(crate) fn scenario(found: &Found) -> String {
    let mut text = String::new();
    head(&mut text, found);
    control_plane(&mut text, found);
    let proposal = (!is_webhook_only(found)).then(|| propose(found));
    subject(&mut text, found, proposal.as_ref());
    load(&mut text, found);
    budgets(&mut text, found, proposal.as_ref());
    text
}

/// Whether it only answers reviews: it has a webhook, and no resource of its own.
fn is_webhook_only(found: &Found) -> bool {
    !found.hooks.is_empty() && found.crds.is_empty()
}

macro_rules! line {
    ($text:expr, $($argument:tt)*) => {
        // Writing to a string cannot fail.
        let _ = writeln!($text, $($argument)*);
    };
}

fn head(text: &mut String, found: &Found) {
    let question = if is_webhook_only(found) {
        "Does it answer every review, in time, while the API server has trouble?"
    } else {
        "Does it see every change through a reset and a 410?"
    };
    line!(
        text,
        "# Written by `longhaul init`. Look at the lines with `check:`, then: longhaul plan FILE, longhaul soak FILE."
    );
    line!(text, "apiVersion: longhaul/v1");
    line!(text, "name: {}", found.name);
    line!(text, "description: {question}");
    line!(text, "seed: 1");
    line!(
        text,
        "# A first look takes a minute. `longhaul soak FILE --for 1h` makes the steady phase longer, and decides growth."
    );
    line!(text, "phases: {{warmUp: 10s, steady: 40s, drain: 15s}}");
    line!(text, "");
}

fn control_plane(text: &mut String, found: &Found) {
    let mut files: Vec<String> = found.crds.iter().map(|crd| crd.file.display().to_string()).collect();
    files.dedup();
    if files.is_empty() {
        return;
    }
    line!(text, "# Applied and established before the subject starts.");
    line!(text, "controlPlane:");
    line!(text, "  kind: mock");
    line!(text, "  manifests:");
    for file in files {
        line!(text, "    - {}", quoted(&file));
    }
    line!(text, "");
}

fn subject(text: &mut String, found: &Found, proposal: Option<&Proposal>) {
    line!(text, "subject:");
    line!(text, "  kind: command");
    if is_webhook_only(found) {
        line!(text, "  # It watches nothing: ready when its port answers.");
        line!(text, "  role: webhook");
    } else if !found.hooks.is_empty() {
        line!(
            text,
            "  # It watches and answers reviews, by a policy that nobody here knows: every answer that an API server takes is right."
        );
        line!(text, "  role: both");
    }
    let told = found.languages.iter().find(|language| !language.command.is_empty()).or(found.languages.first());
    if let Some(language) = told {
        start(text, language);
    } else {
        line!(
            text,
            "  # check: nothing in the folder tells how it is started. KUBECONFIG leads it to the API server of the run."
        );
        line!(text, "  command: [./path/to/your/program]");
    }
    if let Some((file, command)) = &found.image {
        line!(text, "  # The image ({}) starts it so: {}", file.display(), command.join(" "));
    }
    line!(text, "  cwd: .");
    if let Some(hook) = found.hooks.iter().find(|hook| hook.is_mutating).or(found.hooks.first()) {
        line!(
            text,
            "  # From {}. check: it must serve TLS on $LONGHAUL_WEBHOOK_PORT with the files $LONGHAUL_TLS_CERT and $LONGHAUL_TLS_KEY;",
            hook.file.display()
        );
        line!(text, "  # a program that wants flags is started by a script that passes them.");
        line!(text, "  webhook: {{path: {}}}", quoted(&hook.path));
    }
    if let Some(proposal) = proposal {
        witness(text, proposal);
    }
    line!(text, "");
}

fn start(text: &mut String, language: &Language) {
    let Language { name, file, framework, build, command, finalizer: _ } = language;
    let with = framework.map(|framework| format!(" with {}", framework.name())).unwrap_or_default();
    line!(text, "  # {name}{with}, by {}. KUBECONFIG leads it to the API server of the run.", file.display());
    if let Some(build) = build {
        line!(text, "  # Build it first: {build}");
    }
    if command.is_empty() {
        line!(text, "  # check: nothing in the folder tells how it is started.");
        line!(text, "  command: [./path/to/your/program]");
    } else {
        let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
        line!(text, "  command: [{}]", words.join(", "));
    }
}

fn witness(text: &mut String, proposal: &Proposal) {
    if let Some((name, value)) = proposal.env {
        line!(text, "  env: {{{name}: {value}}}");
    }
    line!(text, "  # How it proves what it saw.");
    for comment in &proposal.comments {
        line!(text, "  # {comment}");
    }
    if !proposal.untold.is_empty() {
        let untold: Vec<String> = proposal.untold.iter().map(ToString::to_string).collect();
        line!(text, "  # It does not tell {}, so no budget below asks for them.", untold.join(", nor "));
    }
    line!(text, "  witness: {}", proposal.keys);
}

fn load(text: &mut String, found: &Found) {
    if !found.hooks.is_empty() {
        line!(text, "# Reviews of pods and deployments, as users cause them.");
        line!(text, "admission: {{rate: 50/s}}");
        line!(text, "");
    }
    if is_webhook_only(found) {
        return;
    }
    line!(
        text,
        "# Objects that come, change and go. A `template:` says what they look like; without one they are made from the schema."
    );
    if let Some(crd) = found.crds.first() {
        churn(text, crd);
    } else {
        line!(text, "# check: no custom resource was found: what does it watch?");
        line!(text, "churn: {{resource: v1/configmaps, population: 50, rate: 10/s}}");
    }
    for other in found.crds.iter().skip(1).take(OTHERS) {
        line!(text, "# Another run may churn {} ({}).", other.kind, other.resource());
    }
    line!(text, "");
    line!(
        text,
        "# The two that clients forget most often. All faults: docs/faults.md, or `longhaul plan` for what these will do."
    );
    line!(text, "faults:");
    line!(text, "  - {{name: watch-reset, at: 20s}}");
    line!(text, "  - {{name: watch-410, at: 30s}}");
    line!(text, "");
}

fn churn(text: &mut String, crd: &Crd) {
    line!(text, "churn: {{resource: {}, population: 50, rate: 10/s}}", crd.resource());
}

fn budgets(text: &mut String, found: &Found, proposal: Option<&Proposal>) {
    line!(text, "budgets:");
    if let Some(proposal) = proposal {
        line!(text, "  events: {}", proposal.budgets);
    }
    if !found.hooks.is_empty() {
        line!(text, "  # A p99 needs 10,000 reviews: at 50/s a steady phase of 200s.");
        line!(text, "  admission: {{errors: 0, p50: 100ms}}");
    }
    line!(text, "  # check: a minute decides no growth. An hour does: `longhaul plan FILE` says from which length on.");
    line!(text, "  # memory: {{growth: 5MiB/h}}");
}

/// A scalar of YAML that is read as the text that it is.
pub(super) fn quoted(text: &str) -> String {
    let plain = text.chars().all(|char| char.is_ascii_alphanumeric() || "./_-=".contains(char))
        && text.starts_with(|char: char| char.is_ascii_alphabetic() || char == '.' || char == '/');
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "''")) }
}
