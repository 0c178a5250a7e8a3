//! The chart of one object's history: its writes on the top line, then requests and sent events, and reports at the
//! bottom, on one time axis.
//!
//! Owns the position of each event of the history in the chart. The table beside the chart has the same events as text.

use super::chart::position;
use super::timeline::clock;
use crate::record::Step;

/// The lines of the chart on which events lie, from the top.
const LANES: [&str; 4] = ["written", "asked", "sent", "reported"];

#[derive(Debug)]
pub(super) struct Picture {
    pub lanes: Vec<Lane>,
    pub from: String,
    pub to: String,
}

#[derive(Debug)]
pub(super) struct Lane {
    pub name: &'static str,
    pub dots: Vec<Dot>,
}

#[derive(Debug)]
pub(super) struct Dot {
    /// The position on the time axis, in percent.
    pub at: String,
    pub class: &'static str,
    pub label: String,
}

impl Picture {
    /// The chart of the events of a history; none if all have the same time.
    pub fn of(steps: &[Step], own: &str) -> Option<Self> {
        let (first, last) = (steps.iter().map(Step::t_ms).min()?, steps.iter().map(Step::t_ms).max()?);
        if first == last {
            return None;
        }
        let mut lanes: Vec<Lane> = LANES.iter().map(|name| Lane { name, dots: Vec::new() }).collect();
        for step in steps {
            let at = (step.t_ms() - first) as f64 / (last - first) as f64 * 100.0;
            let (lane, class, label) = place(step, own);
            let label = format!("{}: {label}", precise(step.t_ms()));
            lanes[lane].dots.push(Dot { at: position(at), class, label });
        }
        Some(Self { lanes, from: precise(first), to: precise(last) })
    }
}

/// The line of the chart, CSS class and text of an event.
fn place(step: &Step, own: &str) -> (usize, &'static str, String) {
    let mine = |revision: &str| if revision == own { "own" } else { "" };
    match step {
        Step::Committed { revision, change, .. } => (0, mine(revision), format!("{change} {revision} written")),
        Step::Listed { .. } => (1, "ask", "listed".to_owned()),
        Step::Watched { from, .. } => (
            1,
            "ask",
            format!("watched from {}", from.as_deref().filter(|from| !from.is_empty()).unwrap_or("anywhere")),
        ),
        Step::Wrote { verb, resource, status, .. } => (1, "ask", format!("{} of {resource}: {status}", verb.word())),
        Step::WatchEnded { watch, .. } => (1, "end", format!("watch {watch} ended")),
        Step::Sent { revision, .. } => (2, mine(revision), format!("{revision} sent")),
        Step::Withheld { revision, fault, .. } => (2, "withheld", format!("{revision} withheld by the fault {fault}")),
        Step::Reported { revision, change, .. } => (3, mine(revision), format!("{change} {revision} reported")),
    }
}

fn precise(t_ms: u64) -> String {
    format!("{}.{:03}", clock(t_ms / 1000 * 1000), t_ms % 1000)
}

#[cfg(test)]
mod tests {
    use facts::Change;

    use super::*;

    /// Each kind of event has its own line in the chart, with causes above effects. The horizontal position of an event
    /// in the chart is its time.
    #[test]
    fn steps_lie_on_their_lines_by_their_time() {
        let revision = "7".to_owned();
        let steps = [
            Step::Committed { t_ms: 1000, revision: revision.clone(), change: Change::Modified },
            Step::Reported { t_ms: 3000, revision: revision.clone(), change: Change::Modified },
        ];
        let picture = Picture::of(&steps, "7").unwrap();
        let dots: Vec<_> =
            picture.lanes.iter().map(|lane| lane.dots.iter().map(|dot| &*dot.at).collect::<Vec<_>>()).collect();
        assert_eq!(dots, [vec!["0"], vec![], vec![], vec!["100"]]);
        assert_eq!(picture.lanes[3].dots[0].label, "0:03.000: MODIFIED 7 reported");
        assert_eq!((picture.lanes[0].dots[0].class, &*picture.from, &*picture.to), ("own", "0:01.000", "0:03.000"));
        assert!(Picture::of(&steps[..1], "7").is_none(), "one moment is no line");
    }
}
