//! The scenario that is proposed: YAML with comments that say what to look at.

use std::fmt::Write as _;
use std::path::Path;

use super::go::Flags;
use super::witness::{Proposal, propose};
use super::yaml::{block, printable, quoted};
use super::{BASES, Crd, Found, Framework, Language, sample, witness};

/// Custom resources that are named beside the first one.
const OTHERS: usize = 10;
/// Kinds of children that are named: each is followed by a watch of its own.
const CHILDREN: usize = 5;
/// Kinds that a controller makes again as they were when somebody deletes one. A Job or a Pod that is gone may have done its work.
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
/// Where controller-runtime serves reviews unless it is told otherwise.
const USUAL_PORT: u16 = 9443;

/// The scenario for what was found.
pub(crate) fn scenario(found: &Found) -> String {
    let mut text = String::new();
    head(&mut text, found);
    control_plane(&mut text, found);
    let proposal = (!is_webhook_only(found)).then(|| propose(found));
    subject(&mut text, found, proposal.as_ref());
    load(&mut text, found);
    budgets::budgets(&mut text, found, proposal.as_ref());
    text
}

/// Whether it is a controller that client-go's work queue drives.
fn is_of_controller_runtime(found: &Found) -> bool {
    found.program().and_then(|program| program.framework) == Some(Framework::ControllerRuntime)
        && !is_webhook_only(found)
}

/// Whether it only answers reviews: it has a webhook, and no resource of its own.
fn is_webhook_only(found: &Found) -> bool {
    !found.hooks.is_empty() && found.crds.is_empty()
}

macro_rules! line {
    ($text:expr, $($argument:tt)*) => {
        // Names come from somebody's files: whatever is in one, this stays a line. Writing to a string cannot fail.
        let _ = writeln!($text, "{}", printable(&format!($($argument)*)));
    };
}

// Behind the macro, which it uses.
mod budgets;

fn head(text: &mut String, found: &Found) {
    let question = if is_webhook_only(found) {
        "Does it answer every review, in time, while the API server has trouble?"
    } else {
        "Does it see every change through a reset and a 410?"
    };
    line!(
        text,
        "# Written by `longhaul init`. Look at the lines with `check:`, then: longhaul check --plan FILE, longhaul soak FILE."
    );
    if let Some(project) = &found.project {
        line!(text, "# {}, as {} lays it out (PROJECT).", project.layout, project.tool());
    }
    line!(text, "apiVersion: longhaul/v1");
    line!(text, "name: {}", found.name);
    line!(text, "description: {question}");
    line!(text, "seed: 1");
    line!(
        text,
        "# A first look takes a minute and a half. `longhaul soak FILE --for 1h` makes the steady phase longer, and decides growth."
    );
    line!(text, "phases: {{warmUp: 10s, steady: 60s, drain: 15s}}");
    line!(text, "");
}

fn control_plane(text: &mut String, found: &Found) {
    let mut files: Vec<String> = found.crds.iter().map(|crd| crd.file.display().to_string()).collect();
    files.sort();
    files.dedup();
    if files.is_empty() {
        return;
    }
    if found.crds.iter().all(|crd| crd.file.parent() == Some(Path::new(BASES))) {
        // The folder, so that a kind that comes later is there as well.
        files = vec![BASES.to_owned()];
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
    line!(text, "  command:");
    if is_webhook_only(found) {
        line!(text, "    # It watches nothing: ready when its port answers.");
        line!(text, "    role: webhook");
    } else if !found.hooks.is_empty() {
        line!(
            text,
            "    # It watches and answers reviews, by a policy that nobody here knows: every answer that an API server takes is right."
        );
        line!(text, "    role: both");
    }
    let mut cwd = ".".to_owned();
    if let Some(language) = found.program() {
        start(text, found, language);
        if !language.folder().as_os_str().is_empty() {
            cwd = language.folder().display().to_string();
        }
    } else {
        line!(
            text,
            "    # check: nothing in the folder tells how it is started. KUBECONFIG leads it to the API server of the run."
        );
        line!(text, "    run: [./path/to/your/program]");
    }
    if let Some((file, command)) = &found.image {
        line!(text, "    # The image ({}) starts it so: {}", file.display(), command.join(" "));
    }
    line!(text, "    cwd: {}", quoted(&cwd));
    let mut env: Vec<(&str, &str)> = proposal.iter().filter_map(|proposal| proposal.env).collect();
    let flags = flags(found);
    if !found.hooks.is_empty() && flags.is_some_and(|flags| flags.folder().is_none()) {
        // It looks for its certificate where controller-runtime does by itself: $TMPDIR/k8s-webhook-server/serving-certs.
        env.push(("TMPDIR", "${LONGHAUL_TLS_DIR}"));
    }
    if !env.is_empty() {
        let pairs: Vec<String> = env.iter().map(|(name, value)| format!("{name}: {}", quoted(value))).collect();
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

/// Whether it is reviews of pods and deployments that its webhooks answer, as far as anybody can tell. Those of its own kinds are no work for
/// webhooks of these, and reviews of them no work for theirs.
fn is_asked_of_pods(found: &Found) -> bool {
    !found.hooks.is_empty() && found.own_hooks().next().is_none()
}

/// The flags of the program that is started, where they were looked for.
fn flags(found: &Found) -> Option<&Flags> {
    found.program().and_then(|program| program.habits.flags.as_ref())
}

fn start(text: &mut String, found: &Found, language: &Language) {
    let Language { name, file, framework, build, command, habits } = language;
    let with = framework.map(|framework| format!(" with {}", framework.name())).unwrap_or_default();
    line!(text, "    # {name}{with}, by {}. KUBECONFIG leads it to the API server of the run.", file.display());
    if let Some(build) = build {
        let folder = language.folder();
        let place = if folder.as_os_str().is_empty() { String::new() } else { format!(" (in {})", folder.display()) };
        line!(text, "    # Build it first{place}: {build}");
    }
    if command.is_empty() {
        line!(text, "    # check: nothing in the folder tells how it is started.");
        line!(text, "    run: [./path/to/your/program]");
        return;
    }
    let arguments = habits.flags.as_ref().map(|flags| arguments(flags, found)).unwrap_or_default();
    if arguments.is_empty() {
        let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
        line!(text, "    run: [{}]", words.join(", "));
        return;
    }
    line!(text, "    # Its flags are those that its main package defines.");
    line!(text, "    run:");
    for word in command.iter().chain(&arguments) {
        line!(text, "      - {}", quoted(word));
    }
}

/// What a program with these flags is told.
fn arguments(flags: &Flags, found: &Found) -> Vec<String> {
    let mut words = Vec::new();
    if let Some((address, secure)) = flags.metrics() {
        words.push(format!("--{address}=127.0.0.1:${{LONGHAUL_METRICS_PORT}}"));
        words.extend(secure.map(|flag| format!("--{flag}=false")));
    }
    // Any port will do: nobody asks there.
    words.extend(flags.probes().map(|flag| format!("--{flag}=127.0.0.1:0")));
    words.extend(flags.leader().map(|flag| format!("--{flag}=false")));
    if !found.hooks.is_empty() {
        words.extend(flags.folder().map(|flag| format!("--{flag}=${{LONGHAUL_TLS_DIR}}")));
        words.extend(flags.webhook_port().map(|flag| format!("--{flag}=${{LONGHAUL_WEBHOOK_PORT}}")));
    }
    if flags.has_zap() && !is_webhook_only(found) && witness::needs_lines(found) {
        words.push("--zap-log-level=5".to_owned());
    }
    words
}

/// Where its webhook is; a registration of the project's own has the path.
fn serves(text: &mut String, found: &Found, flags: Option<&Flags>) {
    let Some(hook) = found.hooks.iter().find(|hook| hook.is_mutating).or(found.hooks.first()) else { return };
    let is_own = found.own_hooks().next().is_some();
    let path = (!is_own).then(|| format!("path: {}", quoted(&hook.path)));
    let from = if is_own { String::new() } else { format!("From {}. ", hook.file.display()) };
    let port = match flags {
        None => {
            line!(
                text,
                "    # {from}check: it must serve TLS on $LONGHAUL_WEBHOOK_PORT with the files $LONGHAUL_TLS_CERT and $LONGHAUL_TLS_KEY;"
            );
            line!(
                text,
                "    # a program that wants flags is given them in `run`, as ${{LONGHAUL_WEBHOOK_PORT}} and ${{LONGHAUL_TLS_DIR}}."
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

/// Webhooks of the project's own kinds, registered as the project has them.
fn install(text: &mut String, found: &Found) {
    let mut files: Vec<&Path> = found.own_hooks().map(|hook| hook.file.as_path()).collect();
    files.sort_unstable();
    files.dedup();
    let place = match files.as_slice() {
        [file] => file,
        // All of them lie in one folder.
        [file, ..] => file.parent().unwrap_or(file),
        [] => return,
    };
    line!(
        text,
        "  # Registered as they are: rules, selectors, policies. What is churned goes through them, and their answers are judged."
    );
    line!(text, "  install: {{webhooks: {}}}", quoted(&place.display().to_string()));
}

/// What is said of a port that nobody chooses.
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
    match flags.map(Flags::metrics) {
        Some(Some(_)) => {
            line!(text, "  # The heap in use is found on this page, and judges growth before the resident set does.");
            line!(text, "  metrics:");
            line!(text, "    url: http://127.0.0.1:${{LONGHAUL_METRICS_PORT}}/metrics");
            line!(text, "    series: [go_goroutines]");
        }
        Some(None) => {
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
    let unknown = program.habits.owned.iter().filter(|kind| kind.resource(&found.crds).is_none());
    for kind in unknown.take(OTHERS) {
        line!(text, "  # It owns {} too, of which nothing here tells the resource.", kind.name);
    }
    let known = owned(found);
    if known.is_empty() {
        return;
    }
    line!(
        text,
        "  # What `Owns` names. check: each object has one of each; `perParent: 2` says two, a line that is not always true goes."
    );
    if known.iter().any(|resource| is_restored(resource)) {
        line!(
            text,
            "  # `drift` deletes some when nobody writes any more. check: whoever does not make such a kind again leaves it out."
        );
    }
    let keys = |resource: &str| {
        let drift = if is_restored(resource) { ", drift: [{afterLoad: 1s, share: 0.3}]" } else { "" };
        format!("{{resource: {}, by: owner{drift}}}", quoted(resource))
    };
    if let [resource] = known.as_slice() {
        line!(text, "  children: {}", keys(resource));
        return;
    }
    line!(text, "  children:");
    for resource in &known {
        line!(text, "    - {}", keys(resource));
    }
}

/// What `Owns` names, of which the resource is known.
fn owned(found: &Found) -> Vec<String> {
    let Some(program) = found.program().filter(|_| found.crd().is_some()) else { return Vec::new() };
    let own = found.crd().map(Crd::resource);
    let known = program.habits.owned.iter().filter_map(|kind| kind.resource(&found.crds));
    known.filter(|one| Some(one) != own.as_ref()).take(CHILDREN).collect()
}

fn is_restored(resource: &str) -> bool {
    RESTORED.contains(&resource)
}

fn witness(text: &mut String, proposal: &Proposal) {
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
    if is_asked_of_pods(found) {
        line!(text, "# Reviews of pods and deployments, as users cause them.");
        line!(text, "admission: {{rate: 50/s}}");
        line!(text, "");
    }
    if found.own_hooks().next().is_some() {
        line!(
            text,
            "# Reviews of the same objects beside that, without the API server; a gate compares these: admission: {{rate: 50/s}}"
        );
    }
    if is_webhook_only(found) {
        return;
    }
    if let Some(crd) = found.crd() {
        churn(text, found, crd);
    } else {
        line!(text, "# Objects that come, change and go.");
        line!(text, "# check: no custom resource was found: what does it watch?");
        line!(text, "churn: {{resource: v1/configmaps, population: 50, rate: 10/s}}");
    }
    for other in found.crds.iter().skip(1).take(OTHERS) {
        line!(text, "# Another run may churn {} ({}).", other.kind, other.resource());
    }
    line!(text, "");
    line!(
        text,
        "# The two that clients forget most often. All faults: docs/faults.md, or `longhaul check --plan` for what these will do."
    );
    line!(text, "faults:");
    line!(text, "  - {{name: watch-reset, at: 20s}}");
    line!(text, "  - {{name: watch-410, at: 40s}}");
    if let Some(crd) = found.crd().filter(|_| is_of_controller_runtime(found)) {
        // Short: client-go doubles its back-off with each refusal.
        line!(
            text,
            "  # Writes of it that meet somebody else's: whoever takes 409 for done forgets what it had to write."
        );
        line!(
            text,
            "  - {{name: http-error, at: 50s, for: 1500ms, resource: {}, on: update, status: 409}}",
            quoted(&crd.plural)
        );
    }
    line!(text, "");
}

fn churn(text: &mut String, found: &Found, crd: &Crd) {
    let Some(template) = sample::template(&found.samples, crd) else {
        line!(
            text,
            "# Objects that come, change and go. A `template:` says what they look like; without one they are made from the schema."
        );
        line!(text, "churn: {{resource: {}, population: 50, rate: 10/s}}", quoted(&crd.resource()));
        return;
    };
    line!(text, "# Objects that come, change and go. They look like the sample in {}.", template.file.display());
    if let Some(pointer) = &template.varies {
        line!(text, "# Each write changes {pointer}; `longhaul show schema` tells of other placeholders.");
    } else {
        line!(
            text,
            "# check: nothing in it was found that may change, so updates change an annotation, which is no new generation."
        );
        line!(text, "# Write for example '${{random 1..3}}' for a value.");
    }
    line!(text, "churn:");
    line!(text, "  resource: {}", quoted(&crd.resource()));
    line!(text, "  population: 50");
    line!(text, "  rate: 10/s");
    line!(text, "  template:");
    block(&template.object, 4, text);
    if found.own_hooks().any(|hook| !hook.is_mutating) {
        line!(
            text,
            "  # check: what your webhook has to refuse is a `templates: [{{file: bad.yaml, expect: denied}}]` beside those that it lets in."
        );
    }
}
