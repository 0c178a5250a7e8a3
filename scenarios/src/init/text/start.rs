//! The proposed subject, from the project's files alone. Without an observation, every value gets the comment `check`.

use std::fmt::Write as _;
use std::path::Path;

use super::{OTHERS, USUAL_PORT, arguments, flags, is_webhook_only, owned, owned_kinds, witness};
use crate::init::go::Flags;
use crate::init::seen::Seen;
use crate::init::witness::Proposal;
use crate::init::yaml::{printable, quoted};
use crate::init::{Found, Language};

pub(super) fn subject(text: &mut String, found: &Found, seen: &Seen, proposal: Option<&Proposal>) {
    line!(text, "subject:");
    line!(text, "  command:");
    if is_webhook_only(found) {
        line!(text, "    # check: no definition was found, so it watches nothing: it is ready when its port answers.");
        line!(text, "    role: webhook");
    } else if !found.hooks.is_empty() {
        line!(
            text,
            "    # check: it watches and answers reviews. Its policy is not known here, so every valid answer counts as right."
        );
        line!(text, "    role: both");
    }
    let mut cwd = ".".to_owned();
    if let Some(language) = found.program() {
        start(text, found, seen, language);
        if !language.folder().as_os_str().is_empty() {
            cwd = language.folder().display().to_string();
        }
    } else {
        line!(
            text,
            "    # check: no file in the folder shows how it is started. KUBECONFIG names the API server of the run."
        );
        line!(text, "    run: [./path/to/your/program]");
    }
    if let Some((file, command)) = &found.image {
        line!(text, "    # check: the image ({}) starts it like this: {}", file.display(), command.join(" "));
    }
    line!(text, "    # check: it is started here.");
    line!(text, "    cwd: {}", quoted(&cwd));
    let mut env: Vec<(&str, &str)> = proposal.iter().filter_map(|proposal| proposal.env).collect();
    let flags = flags(found);
    if !found.hooks.is_empty() && flags.is_some_and(|flags| flags.folder().is_none()) {
        // It looks for its certificate in the default folder of controller-runtime:
        // $TMPDIR/k8s-webhook-server/serving-certs.
        env.push(("TMPDIR", "${LONGHAUL_TLS_DIR}"));
    }
    if !env.is_empty() {
        let pairs: Vec<String> = env.iter().map(|(name, value)| format!("{name}: {}", quoted(value))).collect();
        line!(text, "    # check: without these it would find no certificate, or log less than its witness needs.");
        line!(text, "    env: {{{}}}", pairs.join(", "));
    }
    serves(text, found, flags);
    install(text, found);
    metrics(text, flags);
    children(text, found);
    if let Some(proposal) = proposal {
        witness(text, proposal);
    }
    line!(text, "");
}

fn start(text: &mut String, found: &Found, seen: &Seen, language: &Language) {
    let Language { name, file, framework, build, command, habits, .. } = language;
    let with = framework.map(|framework| format!(" with {}", framework.name())).unwrap_or_default();
    line!(text, "    # check: {name}{with}, by {}. KUBECONFIG names the API server of the run.", file.display());
    if let Some(build) = build {
        let folder = language.folder();
        let place = if folder.as_os_str().is_empty() { String::new() } else { format!(" (in {})", folder.display()) };
        line!(text, "    # Build it first{place}: {build}");
    }
    if command.is_empty() {
        line!(text, "    # check: no file in the folder shows how it is started.");
        line!(text, "    run: [./path/to/your/program]");
        return;
    }
    if !seen.run.is_empty() {
        line!(text, "    # check: it was started with these arguments.");
        line!(text, "    run:");
        for word in &seen.run {
            line!(text, "      - {}", quoted(word));
        }
        return;
    }
    let arguments =
        habits.flags.as_ref().map(|flags| arguments(flags, found, !found.hooks.is_empty())).unwrap_or_default();
    if arguments.is_empty() {
        let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
        line!(text, "    run: [{}]", words.join(", "));
        return;
    }
    line!(text, "    # check: its main package defines these flags.");
    line!(text, "    run:");
    for word in command.iter().chain(&arguments) {
        line!(text, "      - {}", quoted(word));
    }
}

/// Writes the address of the webhook. If the project registers webhooks, the path comes from the registration of these
/// webhooks.
fn serves(text: &mut String, found: &Found, flags: Option<&Flags>) {
    let Some(hook) = found.hooks.iter().find(|hook| hook.is_mutating).or(found.hooks.first()) else { return };
    let is_own = found.own_hooks().next().is_some();
    let path = (!is_own).then(|| format!("path: {}", quoted(&hook.path)));
    let from = if is_own { String::new() } else { format!("check: from {}. ", hook.file.display()) };
    let port = match flags {
        None => {
            line!(
                text,
                "    # {from}check: it must serve TLS on $LONGHAUL_WEBHOOK_PORT with the files $LONGHAUL_TLS_CERT and $LONGHAUL_TLS_KEY;"
            );
            line!(
                text,
                "    # if it takes flags instead, write them into `run`, as ${{LONGHAUL_WEBHOOK_PORT}} and ${{LONGHAUL_TLS_DIR}}."
            );
            None
        }
        Some(flags) => {
            if !from.is_empty() {
                line!(text, "    # {}", from.trim_end());
            }
            flags.webhook_port().is_none().then(|| {
                fixed(text);
                format!("port: {}", flags.fixed_port().unwrap_or(USUAL_PORT))
            })
        }
    };
    let keys: Vec<String> = path.into_iter().chain(port).collect();
    if !keys.is_empty() {
        line!(text, "    serves: {{{}}}", keys.join(", "));
    }
}

/// Writes webhooks for the project's own kinds, as the project registers them.
pub(super) fn install(text: &mut String, found: &Found) {
    let mut files: Vec<&Path> = found.own_hooks().map(|hook| hook.file.as_path()).collect();
    files.sort_unstable();
    files.dedup();
    let place = match files.as_slice() {
        [file] => file,
        // All files lie in one folder.
        [file, ..] => file.parent().unwrap_or(file),
        [] => return,
    };
    line!(
        text,
        "  # check: registered unchanged: rules, selectors, policies. Churned objects go through them, and their answers are judged."
    );
    line!(text, "  install: {{webhooks: {}}}", quoted(&place.display().to_string()));
}

/// Writes the comment about a port that the program's source fixes.
fn fixed(text: &mut String) {
    line!(
        text,
        "    # check: its main package has no flag for the port, so it is the one that stands in the program, and two runs at a time"
    );
    line!(
        text,
        "    # (or the builds of a gate) would meet there. With `--webhook-port` in it: --webhook-port=${{LONGHAUL_WEBHOOK_PORT}}."
    );
}

fn metrics(text: &mut String, flags: Option<&Flags>) {
    match flags.map(Flags::serves_metrics) {
        Some(true) => {
            line!(text, "  # check: this page has the heap in use, by which growth is judged before the resident set.");
            line!(text, "  metrics:");
            line!(text, "    url: http://127.0.0.1:${{LONGHAUL_METRICS_PORT}}/metrics");
            line!(text, "    series: [go_goroutines]");
        }
        Some(false) => {
            line!(
                text,
                "  # check: its main package has no flag for the address of its metrics: heap and goroutines are not followed."
            );
        }
        None => {}
    }
}

fn children(text: &mut String, found: &Found) {
    let Some(program) = found.program().filter(|_| found.crd().is_some()) else { return };
    let owned_kinds = owned_kinds(found, program);
    let unknown = owned_kinds.into_iter().filter(|kind| kind.resource(&found.crds).is_none());
    for kind in unknown.take(OTHERS) {
        line!(text, "  # check: it owns {} too, but their resource is not known here.", kind.name);
    }
    let known = owned(found);
    if known.is_empty() {
        return;
    }
    line!(
        text,
        "  # check: it owns these. Remove the `#` if each object has one of them; for two, write `perParent: 2`."
    );
    line!(text, "  # children:");
    for resource in &known {
        line!(text, "  #   - {{resource: {}, by: owner}}", quoted(resource));
    }
}
