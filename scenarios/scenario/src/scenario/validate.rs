//! Checks that settings in different sections of a scenario do not contradict each other.

mod load;

use super::{ControlPlaneKind, Scenario, Subject, Witness};

/// A mistake in a scenario, and the top-level section that it is in.
pub(super) struct Problem {
    pub section: Option<&'static str>,
    /// The key or the list item with the mistake, if a single key or item has the mistake.
    pub part: Option<PathPart<'static>>,
    pub text: String,
}

#[derive(Debug, Clone)]
pub(super) enum PathPart<'a> {
    Key(&'a str),
    Item(Item),
    /// A text that occurs in the section.
    Text(String),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    /// The key of the list in the section; `None` if the section itself is the list.
    pub list: Option<&'static str>,
    /// Index of the item, counted from 0.
    pub index: usize,
}

/// Refuses settings that would fail later in the run. The check returns only the first mistake. The check reads the
/// recording of a replay, but no other file.
pub(super) fn validate(scenario: &Scenario) -> Result<(), Problem> {
    name(scenario)?;
    phases(scenario)?;
    subject(scenario)?;
    scenario.subject.witness.check(&scenario.about()).or_else(|text| problem("subject", text))?;
    if let Some((section, key, text)) = super::metrics::problem(scenario) {
        return Err(Problem { section: Some(section), part: Some(PathPart::Key(key)), text });
    }
    clocks(scenario)?;
    workloads(scenario)?;
    pods(scenario)?;
    faults(scenario)?;
    load::load(scenario)
}

/// Maximum of `compress`: with this value a day takes a minute and a half. With a larger `compress`, lifetimes would be
/// shorter than the time that a busy machine needs for an answer.
const COMPRESS_MAX: u32 = 1000;
/// Maximum clock rate: with this rate a timeout of ten seconds lasts ten real milliseconds. From a rate of about 100
/// on, clients on a busy machine hit timeouts that they would not hit in a cluster. A client that only waits tolerates
/// a higher clock rate.
const CLOCK_RATE_MAX: u32 = mock_clock::RATE_MAX;

/// Checks `compress` and `clockRate`.
fn clocks(scenario: &Scenario) -> Result<(), Problem> {
    let (plane, upkeep) = (&scenario.control_plane, scenario.subject.upkeep());
    let at = |section, key, text: String| Err(Problem { section: Some(section), part: Some(PathPart::Key(key)), text });
    match plane.compress {
        Some(0) => return at("controlPlane", "compress", "`compress: 0`: write 1 or more".to_owned()),
        Some(times) if times > COMPRESS_MAX => {
            return at("controlPlane", "compress", format!("`compress: {times}`: at most {COMPRESS_MAX}"));
        }
        Some(2..) if plane.kind != ControlPlaneKind::Mock => {
            let text = "`compress`: a real control plane keeps its own lifetimes: leave it out, or use `kind: mock`";
            return at("controlPlane", "compress", text.to_owned());
        }
        _ => {}
    }
    match upkeep.clock_rate {
        Some(0) => at("subject", "clockRate", "`clockRate: 0`: write 1 or more".to_owned()),
        Some(rate) if rate > CLOCK_RATE_MAX => {
            at("subject", "clockRate", format!("`clockRate: {rate}`: at most {CLOCK_RATE_MAX}"))
        }
        Some(2..) if plane.kind != ControlPlaneKind::Mock => {
            let text = "`clockRate`: a real control plane keeps its own clock, so the subject's clock would differ: use `kind: mock`";
            at("subject", "clockRate", text.to_owned())
        }
        _ => Ok(()),
    }
}

/// Refuses `workloads` if etcd and kube-apiserver run alone, and values that the mock cannot simulate.
fn workloads(scenario: &Scenario) -> Result<(), Problem> {
    let plane = &scenario.control_plane;
    let Some(workloads) = plane.workloads else { return Ok(()) };
    let at = |key, text: String| Err(Problem { section: Some("controlPlane"), part: Some(PathPart::Key(key)), text });
    if plane.kind == ControlPlaneKind::Local {
        let text = "`workloads`: kube-apiserver and etcd alone let none become ready: use `kind: mock`, or `kind: node`, which \
                    runs them";
        return at("workloads", text.to_owned());
    }
    workloads.problem().map_or(Ok(()), |(key, text)| at(key, text))
}

fn pods(scenario: &Scenario) -> Result<(), Problem> {
    let kind = scenario.subject.profile();
    if kind.needs_node && !scenario.control_plane.kind.has_nodes() {
        let text = "`deployment` runs in Pods, which only a node has: use `controlPlane: {kind: node}` (or `kind`, `kubeconfig`)";
        return problem("subject", text);
    }
    if kind.attached_pods.is_some() && !scenario.control_plane.kind.has_nodes() {
        let text = "`attach: {pods: …}` are in a cluster that is there already: use `controlPlane: {kind: kubeconfig}` (or `kind`)";
        return problem("subject", text);
    }
    Ok(())
}

fn problem<T>(section: &'static str, text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem { section: Some(section), part: None, text: text.into() })
}

fn problem_in<T>(section: &'static str, item: Item, text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem { section: Some(section), part: Some(PathPart::Item(item)), text: text.into() })
}

fn name(scenario: &Scenario) -> Result<(), Problem> {
    let name = &scenario.name;
    // The name becomes part of a folder's name, of the run's identifier, and of a command for copying.
    let within = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
    let first = name.chars().next().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if name.len() > 63 || !first || !name.chars().all(within) || name.contains("..") {
        let mut safe: String = name.to_lowercase().chars().map(|c| if within(c) { c } else { '-' }).take(63).collect();
        while safe.contains("..") {
            safe = safe.replace("..", ".");
        }
        let safe = safe.trim_matches(['-', '.', '_', '/']).to_owned();
        let instead = if safe.is_empty() { "my-scenario".to_owned() } else { safe };
        return problem(
            "name",
            format!(
                "`{name}`: a name has 1 to 63 lower-case letters, digits, `-`, `_` and single dots, and begins with a letter or digit: write `{instead}`"
            ),
        );
    }
    if scenario.description.trim().is_empty() {
        return problem("description", "is empty: write the question that the scenario answers");
    }
    Ok(())
}

fn phases(scenario: &Scenario) -> Result<(), Problem> {
    if scenario.phases.steady.0.is_zero() {
        return problem("phases", "`steady` is zero: nothing would be judged; write for example `steady: 40s`");
    }
    Ok(())
}

fn subject(scenario: &Scenario) -> Result<(), Problem> {
    let subject = &scenario.subject;
    subject.check().map_err(|(key, text)| Problem {
        section: Some("subject"),
        part: Some(PathPart::Key(key)),
        text,
    })?;
    if let Some((at, text)) = super::given::problem(scenario) {
        return Err(Problem { section: Some("subject"), part: Some(PathPart::Text(at)), text });
    }
    role(subject)?;
    if let Some(text) = subject.profile().ready.and_then(|ready| ready.problem()) {
        return problem("subject", text);
    }
    let (install, serves) = (subject.install.as_ref(), subject.profile().serves);
    let place = || serves.and_then(|serves| serves.problem(install));
    if let Some(text) = install.and_then(super::Install::problem).or_else(place) {
        return problem("subject", text);
    }
    if !subject.serves() && (install.is_some() || serves.is_some()) {
        return problem("subject", format!("has no address for reviews: add {}", subject.profile().serving));
    }
    if let Some(text) = subject.rbac.as_ref().and_then(super::Rbac::problem) {
        return problem("subject", text);
    }
    if let Some(text) =
        subject.world.as_ref().and_then(|url| crate::fetch::page_address(url, "http://127.0.0.1:9000/world").err())
    {
        return problem("subject", format!("`world`: {text}"));
    }
    if let Some(text) = subject.children.problem() {
        return problem("subject", text);
    }
    signed(scenario)?;
    for watch in &subject.watches {
        if loadgen::churn::names(watch).is_none() {
            return problem(
                "subject",
                format!(
                    "`watches`: `{watch}` is no resource: write for example `packages.longhaul.dev/v1alpha1` or `configmaps/v1`"
                ),
            );
        }
    }
    Ok(())
}

/// Refuses keys that a webhook without watches cannot have, and requires keys that every other subject needs.
fn role(subject: &Subject) -> Result<(), Problem> {
    let has_no_witness = matches!(subject.witness, Witness::None(_));
    if let Some(role) = subject.profile().role.filter(|_| !subject.serves()) {
        let (role, serving) = (role.name(), subject.profile().serving);
        return problem("subject", format!("`role: {role}` serves reviews: add the address, for example {serving}"));
    }
    if !subject.watches_nothing() {
        if has_no_witness {
            return problem(
                "subject",
                "has no witness: add for example `witness: {kind: status}`, or `role: webhook` if it watches nothing",
            );
        }
        return Ok(());
    }
    if !has_no_witness || !subject.watches.is_empty() || subject.world.is_some() || !subject.children.is_empty() {
        return problem(
            "subject",
            "`role: webhook` watches nothing: leave out `witness`, `watches`, `world` and `children`, or write `role: both`",
        );
    }
    Ok(())
}

/// Checks `registry.signed` and the settings of validators.
fn signed(scenario: &Scenario) -> Result<(), Problem> {
    let subject = &scenario.subject;
    if !scenario.registry.signed {
        if subject.upkeep().validators > 0 {
            return problem("subject", "`validators` needs `registry: {signed: true}`");
        }
        return Ok(());
    }
    if !subject.profile().is_service {
        return problem("registry", "`signed`: the trusted keys are known only for `subject: {service: {}}`");
    }
    if scenario.admission.as_ref().is_some_and(|load| load.through == loadgen::admission::Through::Apiserver) {
        return problem(
            "registry",
            "`signed`: load through the API server is judged by digests alone: leave one of both out",
        );
    }
    if scenario.faults.iter().any(|fault| fault.name == mock_faults::Name::RegistryTagMoved) {
        return problem(
            "registry",
            "`signed`: `registry-tag-moved` moves tags to unsigned images: leave one of both out",
        );
    }
    Ok(())
}

/// Draws the random faults. The error says why the random faults do not fit into the run.
pub(super) fn drawn(scenario: &mut Scenario) -> Result<(), Problem> {
    scenario.draw().map_err(|error| Problem {
        section: Some("faults"),
        part: Some(PathPart::Key("random")),
        text: error.to_string(),
    })
}

fn faults(scenario: &Scenario) -> Result<(), Problem> {
    let list = scenario.faults.random().map(|_| "planned");
    let is_drawn = |index| index >= scenario.faults.planned().len();
    // A random fault has no line of its own, so the error points to the list that it was drawn from.
    let place = |index| Item { list: if is_drawn(index) { Some("random") } else { list }, index };
    let cannot = |(index, fault): (usize, &mock_faults::Fault)| {
        Some((index, fault.name, super::played::cannot(scenario, scenario.control_plane.kind, fault)?))
    };
    if let Some((index, name, why)) = scenario.faults.iter().enumerate().find_map(cannot) {
        return problem_in("faults", place(index), format!("`{}` {why}", name.as_str()));
    }
    if let Err((index, error)) = mock_faults::check_all(&scenario.faults) {
        let fault = &scenario.faults[index];
        let near = match (&error, &fault.when) {
            (mock_faults::Error::When { id, .. }, Some(_)) => meant(scenario, id),
            _ => String::new(),
        };
        let text = format!("fault {} (`{}`): {error}{near}", index + 1, fault.name.as_str());
        return problem_in("faults", place(index), text);
    }
    for (index, fault) in scenario.faults.iter().enumerate() {
        if let Some(text) = of_process(scenario, fault)
            .or_else(|| of_certificate(scenario, fault))
            .or_else(|| of_children(scenario, fault))
        {
            return problem_in(
                "faults",
                place(index),
                format!("fault {} (`{}`): {text}", index + 1, fault.name.as_str()),
            );
        }
    }
    let end = scenario.phases.loaded();
    for (index, fault) in scenario.faults.iter().enumerate() {
        let Some(at) = fault.at else { continue };
        let (which, end_at) = (format!("fault {} (`{}`)", index + 1, fault.name.as_str()), units::Span(end));
        if at.0 >= end {
            let text = format!("{which} begins at {at}, but load ends at {end_at}: let it begin earlier");
            return problem_in("faults", place(index), text);
        }
        if let Some(last) = fault.last_effect().filter(|last| last.0 >= end) {
            let text = format!(
                "{which} begins for the last time at {last}, but load ends at {end_at}: write less in `pause` or `count`"
            );
            return problem_in("faults", place(index), text);
        }
    }
    Ok(())
}

/// The reason why a fault of processes or their clocks would not affect any process; `None` if it affects one.
fn of_process(scenario: &Scenario, fault: &mock_faults::Fault) -> Option<String> {
    let kind = scenario.subject.profile();
    let is_clock = fault.name.row().family == mock_faults::Family::Clock;
    if is_clock && !kind.is_started {
        return Some(format!(
            "only a subject that the run starts can have its own clock, and `{}` is not started: use `command`",
            kind.name
        ));
    }
    let (process, names) = (mock_faults::process_of(fault)?, kind.processes);
    if names.contains(&process.as_str()) {
        return None;
    }
    let known = if names.is_empty() {
        "leave it out, the subject has one".to_owned()
    } else {
        format!("write one of {}", names.join(", "))
    };
    Some(format!("`process: {process}` is none of the subject's: {known}"))
}

/// The reason why a certificate of `certificate-rotation` would end before its successor; `None` if none would.
fn of_certificate(scenario: &Scenario, fault: &mock_faults::Fault) -> Option<String> {
    if fault.name != mock_faults::Name::CertificateRotation {
        return None;
    }
    let keys: mock_faults::CertificateRotationKeys = fault.keys();
    let (rate, valid) = (scenario.clock_rate(), keys.valid.unwrap_or(mock_faults::CERTIFICATE_VALID));
    if keys.pause.unwrap_or(mock_faults::PAUSE).0 / rate < std::time::Duration::from_secs(1) {
        return Some(format!(
            "`pause` is of the subject's clock, and at `clockRate: {rate}` it is less than a second: write at least {rate}s"
        ));
    }
    let at = fault.at.filter(|at| at.0 * rate >= valid.0)?;
    Some(format!("the first certificate has ended at {at}: let it begin earlier, or write more in `valid`"))
}

/// Minimum time from a change of children after the load until the drain ends, so that a subject has time to restore
/// the child.
const RESTORED_WITHIN: units::Span = units::Span::from_secs(3);

/// The reason why `children-drift` would change no children, or leave no time to restore them; `None` otherwise.
fn of_children(scenario: &Scenario, fault: &mock_faults::Fault) -> Option<String> {
    if fault.name != mock_faults::Name::ChildrenDrift {
        return None;
    }
    let keys: mock_faults::ChildrenDriftKeys = fault.keys();
    let (kinds, drain) = (&scenario.subject.children, scenario.phases.drain);
    if kinds.meant(keys.children.as_deref()).is_none() {
        let all: Vec<String> = kinds.iter().map(|kind| format!("`children: {}`", kind.resource)).collect();
        return Some(format!("say which children of the subject are changed: write {}", all.join(" or ")));
    }
    let after = keys.after_load.filter(|after| after.0.saturating_add(RESTORED_WITHIN.0) > drain.0)?;
    Some(format!(
        "{after} after load leaves less than {RESTORED_WITHIN} to restore anything, the drain has {drain}: make `drain` in `phases` longer"
    ))
}

/// A hint for an error message: the `id` in the scenario that is most similar to the misspelt `id`.
fn meant(scenario: &Scenario, id: &str) -> String {
    let ids: Vec<&str> = scenario.faults.iter().filter_map(|fault| fault.id.as_deref()).collect();
    super::nearest(id, &ids)
        .filter(|near| *near != id)
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default()
}
