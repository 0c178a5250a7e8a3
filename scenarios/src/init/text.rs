//! The text of the proposed scenario: YAML with comments that mark values to check.

use std::fmt::Write as _;
use std::path::Path;

use super::go::{Flags, Kind};
use super::seen::{Came, Refused, Seen, next_step, telling};
use super::witness::{Proposal, propose};
use super::yaml::{printable, quoted};
use super::{BASES, Crd, Found, Framework, Language, OBJECTS, witness};

/// Maximum number of further custom resources that the scenario's comments name.
const OTHERS: usize = 10;
/// Maximum number of kinds of children in the scenario, because the run watches each kind.
const CHILDREN: usize = 5;
/// Kinds that a controller must create again after a deletion. A deleted Job or Pod may have finished its work.
const RESTORED: [&str; 12] = [
    "configmaps/v1",
    "serviceaccounts/v1",
    "services/v1",
    "daemonsets.apps/v1",
    "deployments.apps/v1",
    "statefulsets.apps/v1",
    "cronjobs.batch/v1",
    "ingresses.networking.k8s.io/v1",
    "networkpolicies.networking.k8s.io/v1",
    "poddisruptionbudgets.policy/v1",
    "rolebindings.rbac.authorization.k8s.io/v1",
    "roles.rbac.authorization.k8s.io/v1",
];
/// Maximum number of last lines of the program's output that are quoted.
const WORDS: usize = 6;
const WORD_CHARS: usize = 200;
/// The default webhook port of controller-runtime.
const USUAL_PORT: u16 = 9443;

/// The scenario for the project's files and the observation. The comment of each section says whether its values were
/// `seen`, or must be checked (`check`).
pub(crate) fn scenario(found: &Found, seen: &Seen) -> String {
    let mut text = String::new();
    head(&mut text, found, seen);
    control_plane(&mut text, found, seen);
    let best = seen.best().filter(|_| seen.ran());
    let proposal = (!is_webhook_only(found)).then(|| propose(found, best));
    if seen.ran() {
        observed::subject(&mut text, found, seen, proposal.as_ref());
    } else {
        start::subject(&mut text, found, seen, proposal.as_ref());
    }
    load::load(&mut text, found, seen);
    budgets::budgets(&mut text, found, seen, proposal.as_ref());
    text
}

/// Whether the program ran and reacted to no object.
fn is_idle(seen: &Seen) -> bool {
    seen.ran() && seen.best().is_none() && seen.reactions.iter().any(|one| one.refused.is_none())
}

/// Whether the program is a controller with controller-runtime, not only a webhook.
fn is_of_controller_runtime(found: &Found) -> bool {
    found.program().and_then(|program| program.framework) == Some(Framework::ControllerRuntime)
        && !is_webhook_only(found)
}

/// Whether the program only answers reviews: it has a webhook and no custom resource.
fn is_webhook_only(found: &Found) -> bool {
    !found.hooks.is_empty() && found.crds.is_empty()
}

macro_rules! line {
    ($text:expr, $($argument:tt)*) => {
        // Names come from foreign files; whatever a name contains, it stays on this line. Writing to a string cannot
        // fail.
        let _ = writeln!($text, "{}", printable(&format!($($argument)*)));
    };
}

// These come after the macro, because they use it.
mod budgets;
mod load;
mod observed;
mod start;

/// Writes the facts about the program, and the user's next step if the program was not observed.
fn write_facts(text: &mut String, found: &Found, seen: &Seen) {
    if let Some(next) = next_step(&seen.came) {
        let (how, words) = match &seen.came {
            Came::Ran => ("", ""),
            Came::NotRun(_) => ("these lines were not observed", ""),
            Came::NotBuilt(_, words) => {
                ("the program was not built, so these lines were not observed. Its last output", words.as_str())
            }
            Came::Ended(words) => ("the program ended by itself. Its last output", words.as_str()),
            Came::Silent(words) => {
                ("the program ran and sent no request to the API server. Its last output", words.as_str())
            }
        };
        line!(text, "# check: {how}{}", if words.is_empty() { "." } else { ":" });
        for word in telling(words).into_iter().take(WORDS) {
            line!(text, "#   {}", word.chars().take(WORD_CHARS).collect::<String>());
        }
        line!(text, "# check: next: {next}.");
    }
    if seen.ran() {
        let followed: Vec<&str> = seen.followed.iter().map(|one| one.resource.as_str()).collect();
        line!(
            text,
            "# seen: it follows {}.",
            if followed.is_empty() { "nothing".to_owned() } else { followed.join(", ") }
        );
    }
    if let Some((namespace, name)) = &seen.lease {
        let lease = if name.is_empty() { "a Lease".to_owned() } else { format!("the Lease {name}") };
        line!(text, "# seen: it takes {lease} in the namespace {namespace}.");
    }
    for refused in &seen.refused {
        let Refused { verb, resource, status, why, times } = refused;
        line!(text, "# check: seen: `{verb} {resource}` was refused with {status}, {times} times: {why}");
    }
    for doubt in found.doubts.iter().filter(|doubt| doubt.starts_with("seen: ")) {
        line!(text, "# check: {doubt}.");
    }
    for kind in &seen.absent {
        line!(
            text,
            "# check: seen: it requests {kind}, which the API server does not have: put the definition into `controlPlane.manifests`."
        );
    }
}

fn head(text: &mut String, found: &Found, seen: &Seen) {
    let question = if is_webhook_only(found) {
        "Does it answer every review, in time, while the API server has trouble?"
    } else {
        "Does it see every change through a reset and a 410?"
    };
    line!(
        text,
        "# Written by `longhaul init`. `seen` was observed of the program itself. Look at the lines with `check:`, then: longhaul check --plan FILE,"
    );
    line!(text, "# longhaul soak FILE.");
    if let Some(project) = &found.project {
        line!(text, "# {}, as {} lays it out (PROJECT).", project.layout, project.tool());
    }
    write_facts(text, found, seen);
    line!(text, "# check: name and question are for people.");
    line!(text, "apiVersion: longhaul/v1");
    line!(text, "name: {}", found.name);
    line!(text, "description: {question}");
    line!(text, "seed: 1");
    line!(
        text,
        "# check: a first look takes a minute and a half. `longhaul soak FILE --for 1h` makes the steady phase longer, and decides growth."
    );
    if is_idle(seen) {
        line!(text, "# seen: it reacted to no object. It may look once a minute, so the drain is longer than that.");
        line!(text, "phases: {{warmUp: 10s, steady: 60s, drain: 90s}}");
    } else {
        line!(text, "phases: {{warmUp: 10s, steady: 60s, drain: 20s}}");
    }
    line!(text, "");
}

fn control_plane(text: &mut String, found: &Found, seen: &Seen) {
    let mut files: Vec<String> = found.crds.iter().map(|crd| crd.file.display().to_string()).collect();
    files.sort();
    files.dedup();
    let is_of_bases = !files.is_empty();
    if is_of_bases && found.crds.iter().all(|crd| crd.file.parent() == Some(Path::new(BASES))) {
        // The folder is named, so that kinds added later are included.
        files = vec![BASES.to_owned()];
    }
    files.extend(found.made.iter().filter(|(name, _)| *name == OBJECTS).map(|(name, _)| (*name).to_owned()));
    let makes_workloads = seen.makes_workloads();
    if files.is_empty() && !makes_workloads {
        return;
    }
    if files.is_empty() {
        line!(text, "# seen: the program ran with the mock.");
    } else {
        let how = if seen.ran() { "seen: the program ran with these" } else { "check: the definitions in the folder" };
        line!(text, "# {how}. Applied and established before the subject starts.");
    }
    line!(text, "controlPlane:");
    line!(text, "  kind: mock");
    if !files.is_empty() {
        line!(text, "  manifests:");
        for file in files {
            line!(text, "    - {}", quoted(&file));
        }
    }
    if makes_workloads {
        line!(text, "  # seen: it creates workloads; the mock makes them ready, as a kubelet and its controllers do.");
        line!(text, "  workloads: {{readyAfter: 200ms}}");
    }
    line!(text, "");
}

/// Whether the webhooks review Pods and Deployments, as far as known. A webhook for custom resources cannot review
/// Pods, and a webhook for Pods cannot review custom resources.
fn is_asked_of_pods(found: &Found) -> bool {
    !found.hooks.is_empty() && found.own_hooks().next().is_none()
}

/// The flags of the started program; `None` if its flags were not searched.
fn flags(found: &Found) -> Option<&Flags> {
    found.program().and_then(|program| program.habits.flags.as_ref())
}

/// The kinds in `Owns(…)` for the churned kind, from its own controller or from controllers whose kind is not known.
fn owned_kinds<'f>(found: &Found, program: &'f Language) -> Vec<&'f Kind> {
    let of = found.crd().map(|crd| crd.kind.as_str()).unwrap_or_default();
    [of, ""].into_iter().filter_map(|of| program.habits.owned.get(of)).flatten().collect()
}

/// The resources of the kinds in `Owns(…)`, as far as known.
fn owned(found: &Found) -> Vec<String> {
    let Some(program) = found.program().filter(|_| found.crd().is_some()) else { return Vec::new() };
    let own = found.crd().map(Crd::resource);
    let known = owned_kinds(found, program).into_iter().filter_map(|kind| kind.resource(&found.crds));
    known.filter(|one| Some(one) != own.as_ref()).take(CHILDREN).collect()
}

fn is_restored(resource: &str) -> bool {
    RESTORED.contains(&resource)
}

pub(super) fn arguments(flags: &Flags, found: &Found, has_webhook: bool) -> Vec<String> {
    let mut words = Vec::new();
    if let Some((address, secure)) = flags.metrics() {
        words.push(format!("--{address}=127.0.0.1:${{LONGHAUL_METRICS_PORT}}"));
        words.extend(secure.map(|flag| format!("--{flag}=false")));
    } else if let Some(port) = flags.metrics_port() {
        words.push(format!("--{port}=${{LONGHAUL_METRICS_PORT}}"));
    }
    // Any port will do: no client connects to it.
    words.extend(flags.probes().map(|flag| format!("--{flag}=127.0.0.1:0")));
    let ports = flags.probe_ports().into_iter().zip(crate::scenario::FREE_PORTS);
    words.extend(ports.map(|(flag, port)| format!("--{flag}=${{{port}}}")));
    words.extend(flags.leader().map(|flag| format!("--{flag}=false")));
    if has_webhook {
        words.extend(flags.folder().map(|flag| format!("--{flag}=${{LONGHAUL_TLS_DIR}}")));
        if let Some((certificate, key)) = flags.pair().filter(|_| flags.folder().is_none()) {
            words.push(format!("--{certificate}=${{LONGHAUL_TLS_CERT}}"));
            words.push(format!("--{key}=${{LONGHAUL_TLS_KEY}}"));
        }
        words.extend(flags.webhook_port().map(|flag| format!("--{flag}=${{LONGHAUL_WEBHOOK_PORT}}")));
    }
    if flags.has_zap() && !is_webhook_only(found) && witness::needs_lines(found) {
        words.push("--zap-log-level=5".to_owned());
    }
    words
}

fn witness(text: &mut String, proposal: &Proposal) {
    line!(text, "  # {}: how it proves what it saw.", if proposal.is_seen { "seen" } else { "check" });
    for comment in &proposal.comments {
        line!(text, "  # {comment}");
    }
    if !proposal.untold.is_empty() {
        let untold: Vec<String> = proposal.untold.iter().map(ToString::to_string).collect();
        line!(text, "  # It does not report {}, so no budget below needs them.", untold.join(", nor "));
    }
    line!(text, "  witness: {}", proposal.keys);
}
