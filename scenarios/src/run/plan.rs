//! The plan of a scenario as text: the scenario's events, its length, and the budgets that a run of this length can
//! decide.

use std::fmt::Write as _;

use clap::ValueEnum as _;
use loadgen::admission::Through;
use reports::growth::length;
use reports::record::Sight;
use units::Span;

use super::Fingerprint;
use crate::scenario::{ControlPlaneKind, Install, Scenario, cannot};

/// The plan as text, one fact per line.
pub fn describe(scenario: &Scenario) -> String {
    let mut text = String::new();
    let phases = &scenario.phases;
    let mut line = |value: String| {
        let _ = writeln!(text, "{value}");
    };
    line(format!("{}: {}", scenario.name, scenario.description.trim()));
    line(format!("seed            {}", scenario.seed));
    line(format!(
        "length          {} (warm-up {}, steady {}, drain {}) after start-up",
        Span(phases.total()),
        phases.warm_up,
        phases.steady,
        phases.drain
    ));
    for text in own_time(scenario) {
        line(format!("{:15} {text}", ""));
    }
    line(format!("control plane   {}", scenario.control_plane.kind.name()));
    line(format!("subject         {}, witness {}", scenario.subject.profile().name, scenario.subject.witness.name()));
    for (key, text) in processes(scenario) {
        line(format!("{key:15} {text}"));
    }
    if let Some(text) = untold(scenario) {
        line(format!("{:15} {text}", "not told"));
    }
    line(format!("{:15} {}", "rights", rights(scenario)));
    for text in super::manifest::hurry(scenario) {
        line(format!("{:15} {text}", "hurry"));
    }
    if let Some(schedule) = &schedule(scenario) {
        for (row, text) in schedule.describe().lines().enumerate() {
            line(format!("{:15} {text}", if row == 0 { "admission" } else { "" }));
        }
        for text in super::load_workers::plan_text(scenario).into_iter().chain(fingerprint(scenario)) {
            line(format!("{:15} {text}", ""));
        }
    }
    for attack in super::attacks::of(scenario) {
        line(format!("{:15} {} at {}: {}", "attack", attack.name.as_str(), attack.at, attack.describe()));
    }
    if let Some(api) = &scenario.api {
        let planned = api.rate.as_per_second() * phases.loaded().as_secs_f64();
        line(format!("api             {} calls of {} deployments, about {planned:.0}", api.rate, api.deployments));
    }
    if let Some(alerts) = &scenario.alerts {
        let beside = alerts.beside.map_or("", |_| ", and a second receiver that fails");
        line(format!("{:15} compared with the alerts that a receiver gets{beside}", "alerts"));
    }
    if scenario.shared_cache.is_some() {
        line(format!("{:15} a Redis of this run", "shared cache"));
    }
    if let Some(text) = registered(scenario) {
        line(format!("{:15} {text}", "webhook"));
    }
    for hook in super::registration::webhook_plans(scenario).into_iter().filter(|hook| !hook.direct) {
        if let Some(why) = hook.unmatched {
            line(format!("{:15} {} would get no request: {why}", "NOT ASKED", hook.name));
        }
    }
    for churn in scenario.churn.iter() {
        let what =
            format!("churn           {} at {} on a population of {}", churn.resource, churn.rate, churn.population);
        line(match churn.rate.at() {
            Some(rate) => format!("{what}: about {:.0} writes", rate.as_per_second() * phases.loaded().as_secs_f64()),
            None => format!("{what}: half of what the subject sustains in the warm-up"),
        });
        for text in churn.lifecycle() {
            line(format!("{:15} {text}", ""));
        }
    }
    if let Some(script) = &scenario.script {
        let objects = script.objects.len() as u64 + u64::from(script.objects_many);
        line(format!("script          {}: {objects} objects and {} steps", script.resource, script.steps.len()));
    }
    for children in scenario.subject.children.iter() {
        line(format!("{:15} {}", "children", children.describe()));
    }
    for fault in scenario.faults.planned() {
        line(format!("fault           {}: {}", super::begins(fault), super::manifest::describe(fault)));
    }
    for text in unplayed(scenario) {
        line(format!("{:15} {text}", "CANNOT play"));
    }
    if let Some(random) = scenario.faults.random() {
        drawn(scenario.faults.drawn(), random, &mut line);
    }
    limits(scenario, &mut line);
    decides(scenario, &mut line);
    text
}

/// Lines about the subject's own clock, and the times that follow from this clock.
fn own_time(scenario: &Scenario) -> Vec<String> {
    let rate = scenario.clock_rate();
    let steady = scenario.phases.own_steady().filter(|_| rate > 1);
    let steady =
        steady.map(|steady| format!("steady for {steady} of the subject's own clock, which runs {rate} times faster"));
    let rates = own_rates(scenario).into_iter().map(|(what, per_second)| {
        let (own, real) = (per_second * 3600.0 / f64::from(rate), units::Rate::per_second(per_second));
        format!("{what}: {own:.0} in each hour of the subject's own clock, {real} really")
    });
    steady.into_iter().chain(rates).collect()
}

fn limits(scenario: &Scenario, line: &mut dyn FnMut(String)) {
    let Ok(serde_json::Value::Object(sections)) = serde_json::to_value(&scenario.budgets) else { return };
    for (section, limits) in &sections {
        let Some(limits) = limits.as_object() else { continue };
        let said = limits.iter().map(|(key, limit)| match limit {
            serde_json::Value::String(text) => format!("{key} {text}"),
            other => format!("{key} {other}"),
        });
        let said: Vec<String> = said.collect();
        let said = if said.is_empty() { "the budgets that are judged by default".to_owned() } else { said.join(", ") };
        line(format!("{:15} {section}: {said}", "limits"));
    }
}

/// Faults that other control planes cannot inject, with the reason. With another `--control-plane`, a run skips the
/// faults that it cannot inject.
fn unplayed(scenario: &Scenario) -> Vec<String> {
    // Equal lists of faults with the same reason are shown once.
    let mut lines: Vec<(Vec<&str>, String)> = Vec::new();
    for kind in ControlPlaneKind::value_variants() {
        let mut why: std::collections::BTreeMap<&str, Vec<&str>> = std::collections::BTreeMap::new();
        for fault in scenario.faults.planned() {
            let names = cannot(scenario, *kind, fault).map(|text| why.entry(text).or_default());
            names.into_iter().filter(|names| !names.contains(&fault.name.as_str())).for_each(|names| {
                names.push(fault.name.as_str());
            });
        }
        for (text, names) in why {
            // The remedy follows a colon or a semicolon.
            let text = text.split([':', ';']).next().unwrap_or(text);
            let text = format!("{} ({text})", names.join(", "));
            match lines.iter_mut().find(|(_, other)| *other == text) {
                Some((kinds, _)) => kinds.push(kind.name()),
                None => lines.push((vec![kind.name()], text)),
            }
        }
    }
    lines.into_iter().map(|(kinds, text)| format!("on {}: {text}", kinds.join(", "))).collect()
}

/// Maximum number of random faults listed one by one. If a scenario has more random faults, the plan lists the first of
/// them and counts each kind.
const DRAWN_SHOWN: usize = 100;

fn drawn(faults: &[mock_faults::Fault], random: &mock_faults::random::Random, line: &mut dyn FnMut(String)) {
    let mut of_each: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
    for fault in faults {
        *of_each.entry(fault.name.as_str()).or_default() += 1;
    }
    let each: Vec<String> = of_each.iter().map(|(name, count)| format!("{count} {name}")).collect();
    line(format!("drawn faults    {}, one every {}: {}", faults.len(), random.every, each.join(", ")));
    for fault in faults.iter().take(DRAWN_SHOWN) {
        line(format!("{:15} {}: {}", "", super::begins(fault), super::manifest::describe(fault)));
    }
    if faults.len() > DRAWN_SHOWN {
        line(format!("{:15} and {} more; all of them are in the manifest of the run", "", faults.len() - DRAWN_SHOWN));
    }
}

/// A text about the subject's processes: started, restarted, or already running.
fn processes(scenario: &Scenario) -> Vec<(&'static str, String)> {
    let subject = &scenario.subject;
    let mut lines: Vec<_> = subject.profile().plan.into_iter().collect();
    if let Some(restart) = subject.upkeep().restart {
        let delays = subject.upkeep().delays(scenario.compression());
        let (initial, max, reset) = (Span(delays.initial), Span(delays.max), Span(delays.reset_after));
        let text = format!(
            "{}: at once, then after {initial}, doubled up to {max}; from the start again after {reset} of running",
            restart.name()
        );
        lines.push(("restart", text));
    }
    lines
}

/// A text about the registration of the webhook, and its effect on the load.
fn registered(scenario: &Scenario) -> Option<String> {
    let install = scenario.subject.install.as_ref()?;
    let webhook = match install {
        Install::Webhook(webhook) => webhook,
        Install::Webhooks(file) => {
            let names: Vec<String> =
                super::registration::webhook_plans(scenario).into_iter().map(|hook| hook.name).collect();
            return Some(format!("registered in the control plane as in {}: {}", file.display(), names.join(", ")));
        }
    };
    let policy = webhook.failure_policy.map_or("as in the manifest".to_owned(), |policy| format!("{policy:?}"));
    let timeout = webhook.timeout.map_or("as in the manifest".to_owned(), |timeout| timeout.to_string());
    let through = scenario.admission.as_ref().is_some_and(|config| config.through == Through::Apiserver);
    let load = if through { "; the load goes through the API server, and stored objects are watched" } else { "" };
    Some(format!("registered in the control plane: failure policy {policy}, timeout {timeout}{load}"))
}

/// A text about the subject's rights at the control plane.
fn rights(scenario: &Scenario) -> String {
    let subject = &scenario.subject;
    let more = match &subject.rbac {
        Some(rbac) if rbac.admin => return "everything, as a cluster administrator".to_owned(),
        Some(rbac) => {
            let rules = (!rbac.rules.is_empty()).then(|| reports::words::counted(rbac.rules.len() as u64, "rule"));
            rbac.roles.iter().cloned().chain(rules).collect::<Vec<_>>().join(", ")
        }
        None if !subject.profile().is_service => return "everything, as a cluster administrator".to_owned(),
        None => String::new(),
    };
    match (subject.profile().is_service, more.as_str()) {
        (true, "") => "a service account with the roles of kind/manifests".to_owned(),
        (true, more) => format!("a service account with the roles of kind/manifests and {more}"),
        (false, more) => format!("a service account with {more}"),
    }
}

/// The times of reviews; `None` without load. A parsed scenario has been checked, so its schedule is valid.
fn schedule(scenario: &Scenario) -> Option<loadgen::Schedule> {
    scenario.admission.as_ref()?.schedule(scenario.seed, scenario.phases.loaded()).ok()
}

/// The fingerprint of the payloads, or the reason why it is not known before the run.
fn fingerprint(scenario: &Scenario) -> Option<String> {
    Some(match super::fingerprint(scenario) {
        Ok(fingerprint) => match fingerprint? {
            Fingerprint::Known(hex) => format!("fingerprint {hex}"),
            Fingerprint::OfTheRun => {
                "fingerprint known when the run begins: payloads name the registry's address".to_owned()
            }
        },
        Err(error) => format!("no fingerprint: {error:#}"),
    })
}

/// Lists the budgets that a run of this length can decide, and the budgets that it cannot decide.
fn decides(scenario: &Scenario, line: &mut dyn FnMut(String)) {
    let budgets = &scenario.budgets;
    let (warm_up, steady) = (scenario.phases.warm_up.0, scenario.phases.steady.0.as_secs_f64());
    if let Some(events) = &budgets.events {
        line("decides         events: every commit is accounted for".to_owned());
        for (key, lacks) in reports::judge::unseen_by(scenario.sees(), events) {
            let lacks: Vec<String> = lacks.iter().map(ToString::to_string).collect();
            line(format!("{:15} events {key}: the witness does not report {}", "CANNOT decide", lacks.join(", ")));
        }
    }
    if let (Some(budget), Some(load)) = (&budgets.admission, schedule(scenario)) {
        let requests = load.expected(load.length()) - load.expected(warm_up);
        for (name, wanted, beyond) in
            [("p50", budget.p50, 0.5), ("p99", budget.p99, 0.01), ("p999", budget.p999, 0.001)]
        {
            if wanted.is_some() {
                let samples = requests * beyond;
                let verdict = if samples >= 100.0 { "decides" } else { "CANNOT decide" };
                line(format!("{verdict:15} admission {name}: about {samples:.0} samples beyond it, 100 are needed"));
            }
        }
    }
    let Some(memory) = &budgets.memory else { return };
    if let Some(growth) = memory.growth {
        let budget = growth.bytes_per_hour as f64 / 3600.0;
        line(growth_decides(steady, &format!("memory growth {growth}"), budget, (3600.0, "h")));
    }
    if let Some(budget) = memory.growth_per_own_hour {
        let rate = f64::from(scenario.clock_rate());
        let name = format!("memory growth {budget}/own hour, {rate} of which are one");
        line(growth_decides(steady, &name, budget.0 as f64 * rate / 3600.0, (3600.0 / rate, "own hour")));
    }
    // Converts a budget per object or request into a budget per second.
    let mut counted = |budget: Option<units::Bytes>, per: &str, each_second: f64, what: &str| {
        let Some(budget) = budget else { return };
        let name = format!("memory growth {budget}/{per} at {each_second:.1} {what} a second");
        line(growth_decides(steady, &name, budget.0 as f64 * each_second, (1.0 / each_second, per)));
    };
    counted(memory.growth_per_object, "object", created_each_second(scenario), "new objects");
    counted(memory.growth_per_request, "request", requests_each_second(scenario), "requests");
}

/// Rates that the scenario file gives on the subject's clock.
fn own_rates(scenario: &Scenario) -> Vec<(&'static str, f64)> {
    if scenario.phases.own_rates().is_none() {
        return Vec::new();
    }
    let load = scenario.admission.iter().map(|load| ("admission", load.rate));
    let churn = scenario.churn.iter().filter_map(|section| Some(("churn", section.rate.at()?)));
    load.chain(churn).map(|(what, rate)| (what, rate.as_per_second())).collect()
}

/// Number of new objects per second.
fn created_each_second(scenario: &Scenario) -> f64 {
    let created = |churn: &loadgen::churn::Config| {
        let mix = churn.mix;
        let all = f64::from(mix.create) + f64::from(mix.update) + f64::from(mix.delete);
        // The population is constant, so creations and deletions are equally frequent: each has half of their sum.
        let created = f64::midpoint(f64::from(mix.create), f64::from(mix.delete));
        churn.rate.expected().as_per_second() * created / all.max(1.0)
    };
    scenario.churn.iter().map(created).sum()
}

/// Number of reviews per second in the steady phase.
fn requests_each_second(scenario: &Scenario) -> f64 {
    let steady_s = scenario.phases.steady.0.as_secs_f64();
    let sent = |load: loadgen::Schedule| load.expected(load.length()) - load.expected(scenario.phases.warm_up.0);
    schedule(scenario).map_or(0.0, |load| sent(load) / steady_s)
}

/// Whether the steady phase is long enough to decide a budget of this many bytes per second, computed with the judge's
/// own functions. `unit` is the unit of the budget, such as an hour or an object: its length in seconds, and its name.
fn growth_decides(steady_s: f64, what: &str, bytes_per_second: f64, unit: (f64, &str)) -> String {
    let needed_s = length::needed_s(length::SIGMA_BYTES, length::TAU_S, bytes_per_second);
    let Some((needed_s, quiet_s)) = needed_s.zip(length::quiet_s(bytes_per_second)) else {
        return format!("{:15} {what}: no length of run decides it", "CANNOT decide");
    };
    let needs = format!("needs about {:.1}h of steady load with the usual noise", needed_s / 3600.0);
    if steady_s >= needed_s {
        return format!("{:15} {what}: {needs}", "decides");
    }
    // Larger growth fails even in a shorter run.
    let found = reports::words::bytes(whole(length::found_per_s(steady_s, bytes_per_second) * unit.0));
    let fails = format!("from about {found}/{} on it fails", unit.1);
    if steady_s >= quiet_s {
        format!("{:15} {what}: a quiet subject passes, and {fails}; to be sure it {needs}", "may decide")
    } else {
        format!("{:15} {what}: it {needs} to pass; {fails}", "CANNOT pass")
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, saturates at u64::MAX")]
fn whole(bytes: f64) -> u64 {
    bytes.round() as u64
}

/// Facts that the witness cannot observe although a budget needs them.
fn untold(scenario: &Scenario) -> Option<String> {
    scenario.budgets.events.as_ref()?;
    let sees = scenario.sees();
    let untold: Vec<String> =
        Sight::EACH.into_iter().filter(|sight| !sees.can(*sight)).map(|sight| sight.to_string()).collect();
    (!untold.is_empty())
        .then(|| format!("by this witness: {}; a budget that needs it is inconclusive", untold.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Source;

    /// If the subject's clock runs faster, the plan shows the length on both clocks, and the clock of growth budgets.
    #[test]
    fn the_plan_says_both_times_of_a_faster_clock() {
        let mut source = Source::read("soak-10h").unwrap();
        source.hurry(None, Some(60)).unwrap();
        let text = describe(&source.scenario);
        assert!(text.contains("length          10m (warm-up 1m, steady 8m, drain 1m) after start-up"), "{text}");
        assert!(text.contains("steady for 8h of the subject's own clock, which runs 60 times faster"), "{text}");
        assert!(text.contains("memory growth 256KiB/own hour, 60 of which are one"), "{text}");
        let usual = describe(&Source::read("soak-10h").unwrap().scenario);
        assert!(usual.contains("length          10h (warm-up 1h, steady 8h, drain 1h)"), "{usual}");
    }

    /// If rates are given on the subject's clock, the load per hour of this clock is the same at every clock rate.
    #[test]
    fn the_plan_says_both_rates_of_a_faster_clock() {
        let text = include_str!("../../library/soak-10h.yaml").replace("{clock: own,", "{clock: own, rates: own,");
        let text = text.replace("rate: 20/s", "rate: 1200/h").replace("rate: 25/s", "rate: 3600/h");
        let mut source = Source::parse(&text, "x.yaml", std::path::Path::new(".")).unwrap();
        source.hurry(None, Some(60)).unwrap();
        let text = describe(&source.scenario);
        assert!(text.contains("admission: 3600 in each hour of the subject's own clock, 60/s really"), "{text}");
        assert!(text.contains("churn: 1200 in each hour of the subject's own clock, 20/s really"), "{text}");
    }

    #[test]
    fn the_plan_says_what_it_cannot_decide() {
        let mut scenario = Source::read("smoke").unwrap().scenario;
        let text = describe(&scenario);
        assert!(text.contains("decides         admission p99: about 105 samples beyond it, 100 are needed"), "{text}");
        assert!(!text.contains("CANNOT decide") && !text.contains("CANNOT pass"), "{text}");
        let elsewhere = "CANNOT play     on local, node, kind, kubeconfig: watch-reset, event-dropped, watch-410, silent-watch (is played by";
        assert!(text.contains(elsewhere), "{text}");
        assert!(
            text.lines().any(|line| line.starts_with("                fingerprint ") && line.len() == 16 + 12 + 64)
        );
        scenario.budgets.memory.as_mut().unwrap().growth = Some("1MiB/h".parse().unwrap());
        scenario.phases.steady = Span::from_secs(20);
        let text = describe(&scenario);
        assert!(text.contains("CANNOT decide   admission p99"), "{text}");
        assert!(text.contains("CANNOT pass     memory growth 1MiB/h: it needs about 2.5h"), "{text}");
    }

    /// The plan shows every limit of the scenario file, also the limits of requests.
    #[test]
    fn the_plan_names_every_limit() {
        let mut scenario = Source::read("smoke").unwrap().scenario;
        scenario.budgets.requests = serde_json::from_str(r#"{"blind": "5s", "staleResume": 0}"#).unwrap();
        let text = describe(&scenario);
        assert!(text.contains("limits          requests: blind 5s, staleResume 0\n"), "{text}");
        let named = serde_json::to_value(&scenario.budgets).unwrap();
        for (section, limits) in named.as_object().unwrap() {
            let line = text.lines().find(|line| line.starts_with(&format!("limits          {section}: "))).unwrap();
            for key in limits.as_object().unwrap().keys() {
                assert!(line.contains(&format!("{key} ")), "{key} is not in: {line}");
            }
        }
    }

    /// The plan says for each budget of memory growth whether it is decided. Without objects or requests, no length
    /// decides a budget per object or per request.
    #[test]
    fn the_plan_says_of_every_growth_whether_it_is_decided() {
        let mut scenario = Source::read("soak-1h").unwrap().scenario;
        let text = describe(&scenario);
        assert!(!text.contains("CANNOT decide   memory"), "{text}");
        assert!(
            text.contains("decides         memory growth 64B/object at 27.3 new objects a second: needs"),
            "{text}"
        );
        assert!(text.contains("decides         memory growth 16B/request at 250.0 requests a second: needs"), "{text}");
        scenario.phases.steady = Span::from_secs(600);
        let text = describe(&scenario);
        for budget in ["5MiB/h", "64B/object", "16B/request"] {
            assert!(text.contains(&format!("memory growth {budget}")), "{text}");
            assert!(!text.contains(&format!("decides         memory growth {budget}")), "{text}");
        }
        // Ten minutes suffice to find a kilobyte per object, even if they cannot prove a pass.
        let object = text.lines().find(|line| line.contains("growth 64B/object")).unwrap();
        assert!(object.contains("/object on it fails"), "{object}");
        scenario.admission = None;
        let text = describe(&scenario);
        assert!(
            text.contains("memory growth 16B/request at 0.0 requests a second: no length of run decides it"),
            "{text}"
        );
    }

    /// Soaks of the library are long enough to decide all their budgets.
    #[test]
    fn the_soaks_of_the_library_decide_their_budgets() {
        for name in ["soak-1h", "soak-night", "soak-100h", "watch-storm"] {
            let text = describe(&Source::read(name).unwrap().scenario);
            assert!(!text.contains("CANNOT"), "{text}");
        }
    }

    /// The plan shows the random faults. Equal seeds give equal faults, and different seeds different faults.
    #[test]
    fn the_plan_shows_what_was_drawn() {
        let mut source = Source::read("soak-1h").unwrap();
        let first = describe(&source.scenario);
        assert!(first.contains("drawn faults    59, one every 1m: "), "{first}");
        let times = first.lines().filter_map(|line| line.trim_start().strip_prefix("at ")?.split(':').next());
        assert!(times.clone().count() == 59 && times.clone().all(|at| !at.ends_with("ms")), "{first}");
        assert_eq!(first, describe(&Source::read("soak-1h").unwrap().scenario));
        let before = source.scenario.faults.clone();
        source.sow(12).unwrap();
        assert_ne!(source.scenario.faults, before);
        source.sow(11).unwrap();
        assert_eq!(source.scenario.faults, before);
        let hundred_hours = Source::read("soak-100h").unwrap().scenario;
        assert!(hundred_hours.faults.drawn().len() > 5900 && describe(&hundred_hours).lines().count() < 130);
    }

    /// The plan shows the shape of the rate. A shape that is longer than the run is refused with its key.
    #[test]
    fn the_plan_shows_how_the_rate_changes() {
        let smoke = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/library/smoke.yaml")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shaped.yaml");
        let read = |shape: &str| {
            let text = smoke.replace("  arrivals: poisson", &format!("  arrivals: poisson\n  shape: {shape}"));
            std::fs::write(&file, text).unwrap();
            Source::read(file.to_str().unwrap()).map(|source| describe(&source.scenario)).map_err(|e| e.to_string())
        };
        let text = read("{ramp: {to: 500/s}}").unwrap();
        assert!(text.contains("19500 requests in 52.0 s (from 250/s to 500/s, Poisson)"), "{text}");
        assert!(text.contains("46.8s      52.0s       2535     487.5/s"), "{text}");
        let error = read("{ramp: {to: 500/s, over: 53s}}").unwrap_err();
        assert!(error.contains("admission.shape: ramp.over takes 53s, the load only 52s: write a shorter"), "{error}");
    }
}
