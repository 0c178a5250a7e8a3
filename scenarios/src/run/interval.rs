//! Interval rows of the record: one row every five seconds, with the counts since the previous row.

use std::time::Duration;

use anyhow::Result;
use reports::record::{AlertsRow, ApiRow, EventCounts, Interval, Phase, Quantiles, RegistryRow, WitnessRow, Writer};

use super::audited;
use super::events::Events;
use super::load::Load;
use super::world::World;
use crate::witness::Tally;

pub(super) const EVERY: Duration = Duration::from_secs(5);

/// The counts at the previous interval row.
#[derive(Default)]
pub(super) struct Intervals {
    start_ms: u64,
    events: EventCounts,
    lines: u64,
    malformed: u64,
    traffic: mock_kube::Traffic,
    registry: mock_registry::Requests,
    requests_all: u64,
    /// The p99 lag in the latest row, for the progress line.
    pub(super) latest_p99_us: Option<u64>,
    pub(super) requests: u64,
    pub(super) wrong: u64,
}

/// The inputs of an interval row that other modules supply.
pub(super) struct Now {
    pub(super) end_ms: u64,
    pub(super) phase: Phase,
    pub(super) last: bool,
    pub(super) faults: Vec<String>,
    /// Counts of received and missing alerts since the last row.
    pub(super) alerts: Option<AlertsRow>,
    /// Counts of the subject's requests at the control plane.
    pub(super) told: audited::Row,
    /// Lists and watches of judged resources since the last row; `None` if some were not recorded.
    pub(super) follows: Option<u64>,
}

impl Intervals {
    /// Writes the row and the histograms of the time since the previous row. Returns the row.
    pub(super) fn write(
        &mut self,
        mut now: Now,
        events: &mut Events<'_>,
        load: &mut Load,
        tally: &Tally,
        world: &World,
        writer: &mut Writer,
    ) -> Result<Interval> {
        let start_ms = self.start_ms;
        // A row always has a length: otherwise its measurements would belong to the next phase.
        now.end_ms = now.end_ms.max(start_ms + 1);
        let reading = load.read(writer, start_ms, now.end_ms)?;
        events.wrote(load.writes());
        let (counts, deadline_ms) = (events.counts(), events.deadline_ms());
        let ledger = events.ledger();
        let lag = ledger.take_lag();
        for (tag, histogram) in
            [("lag", &lag), ("lag.faulted", &ledger.take_lag_faulted()), ("heal", &ledger.take_heal())]
        {
            writer.latency(tag, start_ms, now.end_ms, histogram)?;
        }
        let audited::Row { refused, traffic, requests: all, .. } = now.told;
        let asked = world.registry.requests();
        let row = Interval {
            start_ms,
            end_ms: now.end_ms,
            phase: now.phase,
            last: now.last,
            events: counts - self.events,
            live_objects: ledger.live_objects(),
            pending: ledger.pending(),
            deadline_ms,
            lag: Quantiles::of_any(&lag),
            admission: reading.admission,
            calls: reading.calls,
            alerts: now.alerts,
            churn: reading.churn,
            witness: self.witness(tally),
            api: ApiRow { subject_follows: now.follows, ..api_row(&traffic, &self.traffic, all - self.requests_all) },
            registry: Some(registry_row(&asked, &self.registry)),
            faults_active: now.faults,
            refused,
            webhooks: load.take_asked(),
        };
        writer.interval(&row)?;
        (self.start_ms, self.events, self.traffic, self.requests_all) = (now.end_ms, counts, traffic, all);
        self.registry = asked;
        if let Some(admission) = &row.admission {
            self.requests += admission.sent;
            self.wrong += admission.wrong_verdicts;
            self.latest_p99_us = admission.response.as_ref().and_then(|response| response.p99_us);
        }
        Ok(row)
    }

    /// The witness's observations since the last row.
    fn witness(&mut self, tally: &Tally) -> WitnessRow {
        let (lines, malformed) = (tally.lines(), tally.malformed());
        let row = WitnessRow {
            lines: lines - self.lines,
            malformed: malformed - self.malformed,
            example: tally.example().filter(|_| self.malformed == 0 && malformed > 0),
        };
        (self.lines, self.malformed) = (lines, malformed);
        row
    }
}

fn registry_row(now: &mock_registry::Requests, before: &mock_registry::Requests) -> RegistryRow {
    let class = |requests: &mock_registry::Requests, class| requests.by_status_class.get(&class).copied().unwrap_or(0);
    let refused = |requests| class(requests, 4) + class(requests, 5);
    RegistryRow {
        requests: now.total() - before.total(),
        refused: refused(now) - refused(before),
        unanswered: class(now, 0) - class(before, 0),
        tags_total: now.tags,
        most_of_one_tag: now.most_of_one_tag,
    }
}

fn api_row(now: &mock_kube::Traffic, before: &mock_kube::Traffic, requests: u64) -> ApiRow {
    let gone = |traffic: &mock_kube::Traffic| traffic.gone_http + traffic.gone_stream;
    ApiRow {
        requests,
        subject_requests: now.requests - before.requests,
        subject_watches: now.watches_opened - before.watches_opened,
        subject_lists: now.lists - before.lists,
        subject_follows: None,
        subject_open_watches: now.watches_open,
        subject_connections: now.connections - before.connections,
        subject_open_connections: now.connections_open,
        subject_idle_ms: now.idle_us.map(|us| us / 1000),
        gone_answers: gone(now) - gone(before),
        repeated_gone: now.gone_repeated - before.gone_repeated,
    }
}
