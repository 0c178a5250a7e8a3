//! Causes of missed or late versions in the subject's own work. The causes of this module take precedence over faults
//! of the subject's client.
//!
//! Owns the order of these causes: refused writes, never elected as leader, work on other objects, a workload that is
//! not ready, no requests at all. Each cause is named only if recorded requests prove it.

use super::conduct::Conduct;
use super::history::{History, SLACK_MS};
use super::{Cause, Explained};
use crate::ledger::Outcome;
use crate::record::{AnomalyRow, Step, Verb};
use crate::words::{counted, millis};

/// Workloads that become ready only if a kubelet or a controller of Kubernetes runs.
const WORKLOADS: [&str; 7] = [
    "deployments.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "replicasets.apps",
    "jobs.batch",
    "pods",
    "persistentvolumeclaims",
];

/// An entry of the evidence about a write of the subject.
#[derive(Debug, Clone, Copy)]
struct Wrote<'a> {
    t_ms: u64,
    verb: Verb,
    resource: &'a str,
    object: &'a str,
    status: u16,
    times: u64,
    message: Option<&'a str>,
}

/// The first cause in the subject's own work that is proven; none if there is no such cause.
pub(super) fn explain(row: &AnomalyRow, history: &History<'_>, conduct: &Conduct) -> Option<Explained> {
    let is_late = matches!(row.outcome, Outcome::Late | Outcome::LateGhost);
    let until_ms = row.observed_ms.filter(|_| is_late).unwrap_or(u64::MAX);
    let wrote: Vec<Wrote<'_>> = wrote(history).into_iter().filter(|wrote| wrote.t_ms <= until_ms).collect();
    // A write before the version reached the subject is about an older version: its conflict is no cause.
    let came_ms = came_ms(history);
    let came = came_ms.is_some();
    let is_since = |wrote: &Wrote<'_>| came_ms.is_some_and(|came_ms| wrote.t_ms.saturating_add(SLACK_MS) >= came_ms);
    let since: Vec<Wrote<'_>> = wrote.iter().copied().filter(is_since).collect();
    if let Some(refused) = refused(&since, is_late) {
        let then = row.observed_ms.filter(|_| is_late).map(|t_ms| format!("; reported only at {}", millis(t_ms)));
        let sentence = format!("{}{}", refusal_text(history, refused), then.unwrap_or_default());
        return Some(Explained { cause: Cause::WriteRefused, sentence });
    }
    if is_late {
        return None;
    }
    if let Some(why) = &conduct.never_led {
        return Some(Explained { cause: Cause::NeverLed, sentence: why.clone() });
    }
    if let Some(queue) = conduct.queue.as_ref().filter(|_| came || !history.is_told()) {
        let sentence = format!("written at {}, never reported: {}", millis(history.committed_ms), queue.clause());
        return Some(Explained { cause: Cause::Queued, sentence });
    }
    // A subject whose witness reports each event waits for no workload before it reports.
    if let Some(workload) = awaited(&wrote).filter(|_| came && conduct.nothing_readies && !conduct.tells_each) {
        let sentence = format!(
            "the subject {} {} {} at {} and wrote nothing for the object after that; nothing in this control plane makes it ready",
            if workload.verb == Verb::Create { "made" } else { "wrote" },
            workload.resource,
            workload.object,
            millis(workload.t_ms)
        );
        return Some(Explained { cause: Cause::AwaitsWorkload, sentence });
    }
    let silent = || Explained { cause: Cause::Silent, sentence: "the subject sent no request at all".to_owned() };
    conduct.is_silent.then(silent)
}

/// The causes in the subject's own work that are ruled out, for the sentence of an anomaly without a cause.
pub(super) fn ruled_out(conduct: &Conduct) -> String {
    let mut out = vec!["a refused write", "a Lease that it never got", "a queue"];
    if conduct.nothing_readies {
        out.push("a workload that it waits for");
    }
    format!("ruled out: {}", out.join(", "))
}

fn wrote<'a>(history: &History<'a>) -> Vec<Wrote<'a>> {
    let wrote = |step: &'a Step| match step {
        Step::Wrote { t_ms, verb, resource, object, status, times, message } => Some(Wrote {
            t_ms: *t_ms,
            verb: *verb,
            resource,
            object,
            status: *status,
            times: *times,
            message: message.as_deref(),
        }),
        _ => None,
    };
    history.steps().iter().filter_map(wrote).collect()
}

/// When the version first reached the subject, on a watch or in a list; none if it never did, or if the time is
/// unknown.
fn came_ms(history: &History<'_>) -> Option<u64> {
    let revision = history.revision.filter(|_| history.is_told())?;
    let sent = history.own_sent().into_iter().map(|sent| sent.t_ms);
    let listed = history.lists().filter(|list| list.revision >= revision).map(|list| list.t_ms);
    sent.chain(listed).min()
}

/// The last refused write of the subject. Unless `ever` is set, a refused write that succeeded later does not count. A
/// refusal because the object already exists, or is already deleted, does not count either: the object is as the
/// subject wanted.
fn refused<'a>(wrote: &[Wrote<'a>], ever: bool) -> Option<Wrote<'a>> {
    let of = |one: &Wrote<'a>| (one.verb, one.resource, one.object);
    let last = |at: usize, one: &Wrote<'a>| ever || !wrote[at + 1..].iter().any(|later| of(later) == of(one));
    let mut refused = wrote.iter().enumerate().rev().filter(|(_, one)| one.status >= 400 && !is_wanted(one));
    refused.find(|(at, one)| last(*at, one)).map(|(_, one)| *one)
}

fn is_wanted(wrote: &Wrote<'_>) -> bool {
    match wrote.status {
        409 => wrote.verb == Verb::Create,
        404 => wrote.verb != Verb::Create,
        _ => false,
    }
}

fn refusal_text(history: &History<'_>, refused: Wrote<'_>) -> String {
    let verb = refused.verb.word();
    let why = refused.message.map(|message| format!(": {message}")).unwrap_or_default();
    format!(
        "written at {}; the subject's `{verb}` of {} {} was refused {} with {}, last at {}{why}",
        millis(history.committed_ms),
        refused.resource,
        refused.object,
        counted(refused.times, "time"),
        refused.status,
        millis(refused.t_ms)
    )
}

/// The workload that the subject wrote last, if no other write followed it.
fn awaited<'a>(wrote: &[Wrote<'a>]) -> Option<Wrote<'a>> {
    let last = wrote.last()?;
    ((200..300).contains(&last.status) && WORKLOADS.contains(&last.resource)).then_some(*last)
}
