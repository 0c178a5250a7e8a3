//! Checks the load of a scenario: reviews, calls, alerts, the shared cache, and the steps of a script.

use std::time::Duration;

use loadgen::admission::Through;
use mock_faults::{Family, Name, Target};

use super::super::{ControlPlaneKind, Scenario};
use super::{Item, PathPart, Problem, meant, problem, problem_in};

/// Minimum warm-up if the run measures how fast the subject handles objects. In a shorter warm-up, a subject that
/// handles one object per second would handle too few objects for this measurement.
const FIND_OUT_MIN: Duration = Duration::from_secs(5);

pub(super) fn load(scenario: &Scenario) -> Result<(), Problem> {
    if let Some(config) = &scenario.admission {
        let length = scenario.phases.loaded();
        if let Err(error) = config.check().and_then(|()| config.schedule(scenario.seed, length)) {
            let part = admission_key(&error).map(PathPart::Key);
            return Err(Problem { section: Some("admission"), part, text: error.to_string() });
        }
    }
    calls(scenario)?;
    if let Err(error) = scenario.churn.check() {
        return problem("churn", error.to_string());
    }
    if scenario.churn.iter().any(|churn| churn.rate.steer().is_some()) && scenario.phases.warm_up.0 < FIND_OUT_MIN {
        let text = format!(
            "`rate: auto` measures the subject's rate in the warm-up: make `phases.warmUp` {FIND_OUT_MIN:?} or longer, or write a rate"
        );
        return Err(Problem { section: Some("churn"), part: Some(PathPart::Key("rate")), text });
    }
    if scenario.churn.len() > 1 && scenario.control_plane.kind != ControlPlaneKind::Mock {
        let text =
            "several sections can be judged only with the mock: use `controlPlane: {kind: mock}`, or one section";
        return problem("churn", text);
    }
    let subject = &scenario.subject;
    if let Some(config) = &scenario.script {
        script(scenario, config)?;
    }
    if scenario.admission.is_none() && scenario.churn.is_empty() && scenario.script.is_none() {
        return problem("subject", "this scenario has no load: add `admission`, `churn` or `script`");
    }
    if scenario.admission.is_some() && !subject.serves() {
        return problem(
            "admission",
            format!("the subject has no address for reviews: add {} to it", subject.profile().serving),
        );
    }
    if scenario.budgets.crashes.is_some() && subject.upkeep().restart.is_none() {
        let text = "`crashes` needs a subject that is restarted; otherwise any end of it fails the run: add `restart: always` to \
                    `subject`, or leave it out";
        return Err(Problem { section: Some("budgets"), part: Some(PathPart::Key("crashes")), text: text.to_owned() });
    }
    through(scenario)?;
    workers(scenario)?;
    about_nothing(scenario)?;
    if scenario.budgets.events.is_some() && subject.watches_nothing() {
        return problem("budgets", "`events` is judged by a witness, and `role: webhook` has none: leave it out");
    }
    if scenario.budgets.events.is_some() && scenario.churn.is_empty() && scenario.script.is_none() {
        return problem(
            "budgets",
            "`events` is judged from changes of objects, and there are none: add `churn` or `script`",
        );
    }
    if scenario.budgets.events.as_ref().is_some_and(|events| events.restored == Some(true))
        && subject.children.is_empty()
    {
        return problem("budgets", "`events.restored` needs children: add `children` to `subject`");
    }
    if scenario.budgets.children.is_some() && subject.children.is_empty() {
        return problem("budgets", "the budget `children` needs children: add `children` to `subject`");
    }
    let writes = [
        ("writes", scenario.budgets.writes.is_some()),
        ("finalizers", scenario.budgets.finalizers.is_some()),
        ("objects", scenario.budgets.objects.is_some()),
    ];
    if let Some((key, _)) = writes.iter().find(|(_, is_asked)| *is_asked)
        && scenario.churn.is_empty()
        && scenario.script.is_none()
    {
        let text = format!("`{key}` needs changes of objects, and there are none: add `churn` or `script`");
        return problem("budgets", text);
    }
    let asks = scenario.admission.is_some() || (subject.own_webhooks_file().is_some() && !scenario.churn.is_empty());
    if scenario.budgets.admission.as_ref().is_some_and(|budget| !budget.is_only_consistent()) && !asks {
        return problem(
            "budgets",
            "`admission` has a budget but there is no admission load: add `admission`, or `install: {webhooks: FILE}` to `subject` for \
             webhooks of what is churned",
        );
    }
    consistent(scenario)?;
    if subject.own_webhooks_file().is_none() && scenario.churn.iter().any(loadgen::churn::Config::expects_denials) {
        return problem(
            "churn",
            "`expect: denied` is for webhooks that see what is churned, and none is registered: add `install: {webhooks: \
             config/webhook/manifests.yaml}` to `subject`",
        );
    }
    attacks(scenario)?;
    alerts(scenario)?;
    shared_cache(scenario)?;
    sickness(scenario)
}

/// The same questions can be asked again only if the run starts the subject beside the mock.
fn consistent(scenario: &Scenario) -> Result<(), Problem> {
    let budget = scenario.budgets.admission.as_ref().and_then(|budget| budget.consistent.as_ref());
    let Some(budget) = budget else { return Ok(()) };
    if budget.under.is_empty() {
        let text = "`admission.consistent.under` is empty: list conditions, or leave `under` out for all of them";
        return problem("budgets", text);
    }
    if scenario.can_ask() {
        return Ok(());
    }
    problem(
        "budgets",
        "`admission.consistent` asks the webhooks of a subject that the run starts, beside the mock: use `controlPlane: {kind: \
         mock}`, and `subject: {command: {role: webhook}}` (or `role: both`) with `serves`, or the service with `admission`",
    )
}

/// If load is sent to a project's own webhooks, they must be registered for at least one of the sent objects.
fn about_nothing(scenario: &Scenario) -> Result<(), Problem> {
    let Some(file) = scenario.subject.own_webhooks_file() else { return Ok(()) };
    if !scenario.admission.as_ref().is_some_and(loadgen::admission::Config::is_left_to_webhooks) {
        return Ok(());
    }
    let webhooks = scenario.subject.own_webhooks().unwrap_or_default();
    if webhooks
        .iter()
        .flat_map(super::super::webhook::Configuration::hooks)
        .any(|hook| hook.covers("CREATE", "", "v1", "pods"))
    {
        return Ok(());
    }
    problem(
        "admission",
        format!(
            "no webhook in {} is asked about anything that is churned, or defined under `controlPlane.manifests`: add the definitions of its \
             kinds there (`manifests: [config/crd/bases]`), or `churn` with one of them",
            file.display()
        ),
    )
}

/// Refuses calls to a subject that does not offer the API that scales Deployments.
fn calls(scenario: &Scenario) -> Result<(), Problem> {
    let Some(config) = &scenario.api else {
        if scenario.budgets.api.is_some() {
            return problem("budgets", "`api` has a budget but nothing is called: add `api`");
        }
        return Ok(());
    };
    if !scenario.subject.profile().is_service {
        return problem(
            "api",
            "the API over Deployments is the service's: write `subject: {service: {}}`, or leave it out",
        );
    }
    match loadgen::calls::Plan::build(config, scenario.seed, scenario.phases.loaded()) {
        Ok(_) => Ok(()),
        Err(error) => problem("api", error.to_string()),
    }
}

/// Refuses attacks that do not end before load ends, because a run must show whether the subject recovers.
fn attacks(scenario: &Scenario) -> Result<(), Problem> {
    let loaded = units::Span(scenario.phases.loaded());
    let mut attacks = scenario.admission.iter().flat_map(|config| &config.attacks);
    let late = attacks.find(|attack| attack.at.0 + attack.lasts.0 > loaded.0);
    late.map_or(Ok(()), |attack| {
        let name = attack.name.as_str();
        let text =
            format!("`attacks`: `{name}` ends after the load ({loaded}): make it shorter, or `phases.steady` longer");
        problem("admission", text)
    })
}

/// A shared cache needs signed images, because it holds verdicts about signatures.
fn shared_cache(scenario: &Scenario) -> Result<(), Problem> {
    let is_service = matches!(scenario.subject.kind, super::super::SubjectKind::Service(_));
    if scenario.shared_cache.is_some() && !(is_service && scenario.registry.signed) {
        let text = "only the service has a shared cache: write `subject: {service: {}}` and `registry: {signed: true}`";
        return problem("sharedCache", text);
    }
    Ok(())
}

/// Alerts and locks need the built-in service, and reviews that are sent to the service directly.
fn alerts(scenario: &Scenario) -> Result<(), Problem> {
    let (alerts, lock) = (scenario.alerts.is_some(), scenario.registry.lock.is_some());
    let budgets = &scenario.budgets;
    if budgets.alerts.is_some() && !alerts {
        return problem("budgets", "`alerts` has a budget but there is no receiver: add `alerts: {}`");
    }
    if budgets.admission.as_ref().is_some_and(|budget| budget.unlocked.is_some()) && !lock {
        return problem("budgets", "`admission.unlocked` needs a lock: add `registry: {lock: handed}`");
    }
    if !alerts && !lock {
        return Ok(());
    }
    let (section, what) = if alerts { ("alerts", "`alerts`") } else { ("registry", "`lock`") };
    let is_started = matches!(scenario.subject.kind, super::super::SubjectKind::Service(_));
    if !is_started {
        let text = format!("{what}: only the service gets it: write `subject: {{service: {{}}}}`, or leave it out");
        return problem(section, text);
    }
    if scenario.admission.as_ref().is_none_or(|load| load.through == Through::Apiserver) {
        let text =
            format!("{what} is judged by the webhook's own answers: add `admission` without `through: apiserver`");
        return problem(section, text);
    }
    if lock && scenario.registry.signed {
        return problem("registry", "`lock`: tags move to unsigned images: leave out `signed` or `lock`");
    }
    if lock && !scenario.faults.has(Name::TagsMoved) {
        let (at, to) = (scenario.phases.warm_up.0 / 2, scenario.phases.loaded() / 2);
        let (at, lasts) = (units::Span(at), units::Span(to.saturating_sub(at)));
        let text = format!(
            "`lock` decides something only if tags move: add this to `faults`: `- {{name: tags-moved, at: {at}, for: {lasts}}}`"
        );
        return problem("registry", text);
    }
    Ok(())
}

/// The budgets `registry.unavailable` and `registry.staleness` need reviews that the load generator sends to the
/// webhook itself.
fn sickness(scenario: &Scenario) -> Result<(), Problem> {
    let judged = scenario.budgets.registry.as_ref();
    if judged.is_none_or(|budget| budget.unavailable.is_none() && budget.staleness.is_none()) {
        return Ok(());
    }
    match scenario.admission.as_ref().map(|config| config.through) {
        None => problem(
            "budgets",
            "`registry.unavailable` and `registry.staleness` are about reviews, and there are none: add `admission`",
        ),
        Some(Through::Apiserver) => problem(
            "budgets",
            "`registry.unavailable` and `registry.staleness` are judged from the webhook's own answers, which `through: \
             apiserver` hides: leave one of them out",
        ),
        Some(Through::Webhook) => Ok(()),
    }
}

/// Load through the API server needs a registered webhook. Stored objects can be judged only with load through the API
/// server.
fn through(scenario: &Scenario) -> Result<(), Problem> {
    let through = scenario.admission.as_ref().is_some_and(|config| config.through == Through::Apiserver);
    if through && scenario.subject.install.is_none() {
        return Err(Problem {
            section: Some("admission"),
            part: Some(PathPart::Key("through")),
            text: "`through: apiserver` asks the webhook that is registered, and none is: add `install: webhook` to \
                   `subject`"
                .to_owned(),
        });
    }
    let judged = scenario.budgets.admission.as_ref().is_some_and(|budget| budget.unpinned.is_some());
    if judged && !through {
        return problem(
            "budgets",
            "`unpinned` is judged from what the API server stores: add `through: apiserver` to `admission`",
        );
    }
    Ok(())
}

/// Refuses load from worker processes if the right answers may change during the run: workers learn them only before
/// the run.
fn workers(scenario: &Scenario) -> Result<(), Problem> {
    let Some(config) = scenario.admission.as_ref().filter(|config| config.workers.is_some()) else { return Ok(()) };
    let is_about_verdicts =
        |name: Name| name.row().targets.iter().any(|target| matches!(target, Target::Signatures | Target::Validators));
    let turns = |name: Name| name.row().family == Family::Registry || name == Name::NetworkPolicy;
    let why = if scenario.alerts.is_some() {
        "`alerts` is judged by each answer"
    } else if scenario.registry.lock.is_some() {
        "`registry.lock` lets tags move"
    } else if scenario.faults.iter().any(|fault| turns(fault.name)) {
        "a sick registry excuses denials"
    } else if scenario.faults.iter().any(|fault| is_about_verdicts(fault.name)) {
        "the answers of validators change the right answer"
    } else if scenario.clock_rate() > 1 {
        "`clockRate` makes the subject's certificates valid by another clock"
    } else if !config.objects.is_empty()
        || (scenario.subject.own_webhooks_file().is_some() && config.is_left_to_webhooks())
    {
        "requests to your own webhooks are created during the run"
    } else {
        return Ok(());
    };
    Err(Problem {
        section: Some("admission"),
        part: Some(PathPart::Key("workers")),
        text: format!("`workers` know the right answers only from before the run, and {why}: leave one of them out"),
    })
}

fn script(scenario: &Scenario, config: &loadgen::script::Config) -> Result<(), Problem> {
    if let Err(error) = config.check() {
        return match step_of(&error) {
            Some(index) => problem_in("script", Item { list: Some("steps"), index }, error.to_string()),
            None => problem("script", error.to_string()),
        };
    }
    let end = scenario.phases.loaded();
    for (index, step) in config.steps.iter().enumerate() {
        let item = Item { list: Some("steps"), index };
        if let Some(when) = &step.when
            && !scenario.faults.iter().any(|fault| fault.id.as_ref() == Some(&when.hit))
        {
            let near = meant(scenario, &when.hit);
            let text = format!(
                "step {} of the script waits for a hit of `{}`, which no fault has as its `id`{near}",
                index + 1,
                when.hit
            );
            return problem_in("script", item, text);
        }
        let last = step.at.map(|at| at.0 + step.every.unwrap_or_default().0 * (step.times() - 1));
        if last.is_some_and(|last| last >= end) {
            let text = format!(
                "step {} of the script makes its last write at {}, but load ends at {}: make `steady` longer",
                index + 1,
                units::Span(last.unwrap_or_default()),
                units::Span(end)
            );
            return problem_in("script", item, text);
        }
    }
    Ok(())
}

/// The key of `admission` that an error belongs to.
fn admission_key(error: &loadgen::admission::Error) -> Option<&'static str> {
    match error {
        loadgen::admission::Error::Config { key, .. } => Some(key),
        loadgen::admission::Error::Recording(_) => Some("replay"),
        _ => None,
    }
}

/// Index, from 0, of the script's step that an error belongs to.
fn step_of(error: &loadgen::script::Error) -> Option<usize> {
    let loadgen::script::Error::Config { key, .. } = error else { return None };
    let number: usize = key.strip_prefix("steps[")?.split(']').next()?.parse().ok()?;
    number.checked_sub(1)
}
