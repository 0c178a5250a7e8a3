//! A small run record for tests, and methods that add one defect to it.
//!
//! Owns the clean example: a run of 160 s with admission load, churn and one fault, in which every budget is met. A
//! test changes one fact of the example and requires exactly the findings that this change causes. The module is
//! compiled for tests of this crate and, with the feature `example`, for tests of crates that depend on it.

#![expect(clippy::unwrap_used, reason = "what cannot be written or read fails the test")]

use std::path::Path;

use facts::Change;
use statistics::hlog::{self, Histogram};

use crate::budgets::Budgets;
use crate::{
    AdmissionRow, AnomalyRow, Answers, ApiRow, ChurnRow, CrashRow, End, EndReason, EndState, EndedBy, EventCounts,
    Evidence, FaultEvent, FaultRow, Fds, Interval, Machine, MachineRow, Manifest, MetricsPlan, MetricsRow, Objects,
    Outcome, Phase, Phases, PlannedFault, Process, Quantiles, ReadOn, Record, RegistryRow, RequestRow, SCHEMA, Sample,
    Sees, Step, Subject, Verb, Versions, WitnessRow, Writer, tag,
};

const INTERVAL_MS: u64 = 5000;
const WARM_UP_MS: u64 = 20_000;
const STEADY_MS: u64 = 120_000;
const DRAIN_MS: u64 = 20_000;
/// The length of the whole run, in milliseconds.
pub const LENGTH_MS: u64 = WARM_UP_MS + STEADY_MS + DRAIN_MS;
/// Number of reviews, and of object changes, in an interval with load.
const REVIEWS: u64 = 1000;
const CHANGES: u64 = 250;
/// The start of the example's only fault, in milliseconds since the run's epoch.
pub const FAULT_AT_MS: u64 = 60_000;
const FAULT_FOR_MS: u64 = 15_000;

pub struct Example {
    pub manifest: Manifest,
    /// One interval for each five seconds.
    pub intervals: Vec<Interval>,
    pub samples: Vec<Sample>,
    pub faults: Vec<FaultRow>,
    /// Anomalies; empty in a clean run.
    pub anomalies: Vec<AnomalyRow>,
    /// The subject's own metrics; written if the manifest has a plan for them.
    pub metrics: Vec<MetricsRow>,
    /// Crashes; written if the manifest says that the subject is started again after a crash.
    pub crashes: Vec<CrashRow>,
    /// The subject's requests; none if the control plane does not record them.
    pub requests: Option<Vec<RequestRow>>,
    /// Histograms by tag, each with the start and the end of its interval in milliseconds.
    pub latencies: Vec<(&'static str, u64, u64, Histogram)>,
    pub end_state: Option<EndState>,
    pub objects: Option<Objects>,
    pub answers: Option<Answers>,
    /// The end of the run; none if the harness was killed.
    pub end: Option<End>,
}

impl Example {
    /// A run in which every budget is met.
    pub fn clean() -> Self {
        let mut example = Self {
            manifest: manifest(),
            intervals: Vec::new(),
            samples: (0..LENGTH_MS / 1000).map(sample).collect(),
            faults: faults(),
            anomalies: Vec::new(),
            metrics: Vec::new(),
            crashes: Vec::new(),
            requests: Some(requests()),
            latencies: Vec::new(),
            end_state: None,
            objects: None,
            answers: None,
            end: Some(End { ended_ms: LENGTH_MS, reason: EndReason::Completed, lost: None, holes: Vec::new() }),
        };
        for start_ms in (0..LENGTH_MS).step_by(5000) {
            example.add_interval(start_ms);
        }
        example
    }

    /// A run that breaks budgets: missed and late versions during the fault, a wrong answer, and too much memory.
    pub fn failing() -> Self {
        let mut example = Self::clean();
        example.miss(2, 61_000);
        example.intervals[13].events.late += 4;
        example.intervals[13].events.observed -= 4;
        example.intervals[12].api.gone_answers = 7;
        example.intervals[12].api.repeated_gone = 6;
        let refused = RequestRow {
            status: 410,
            ended_by: Some(EndedBy::Server),
            ..watch(3, FAULT_AT_MS + 8000, FAULT_AT_MS + 8002, 4000, 4000)
        };
        let again =
            RequestRow { id: 4, t_ms: FAULT_AT_MS + 9000, ended_ms: Some(FAULT_AT_MS + 9002), ..refused.clone() };
        let relist = list(5, 80_000, 5000);
        let requests = example.requests.as_mut().unwrap();
        requests.truncate(2);
        requests.extend([refused, again, relist, watch(6, 80_010, LENGTH_MS, 5000, 9000)]);
        for sample in &mut example.samples[100..110] {
            sample.subject.as_mut().unwrap().rss_bytes = 71 << 20;
        }
        example.intervals[20].admission.as_mut().unwrap().wrong_verdicts = 1;
        example.intervals[20].admission.as_mut().unwrap().wrong_allows = 1;
        example
    }

    /// A run whose harness was killed half-way.
    pub fn killed() -> Self {
        let mut example = Self::clean();
        example.end = None;
        example.intervals.truncate(15);
        example.intervals.last_mut().unwrap().pending = 3;
        example.samples.truncate(76);
        example.latencies.retain(|(_, start_ms, ..)| *start_ms < 75_000);
        example
    }

    /// Lets one change of the churn begin `late_ms` later than planned.
    pub fn churn_was_late(&mut self, late_ms: u64) {
        let churn = self.intervals[20].churn.get_or_insert_with(ChurnRow::default);
        churn.lateness.get_or_insert_with(Quantiles::default).max_us = late_ms * 1000;
    }

    /// Counts `versions` observed versions as missed, and adds an anomaly for each.
    pub fn miss(&mut self, versions: u64, committed_ms: u64) {
        let last = self.intervals.last_mut().unwrap();
        last.events.missed += versions;
        self.intervals[5].events.observed -= versions;
        for n in 0..versions {
            let revision = (10_412 + n).to_string();
            self.anomalies.push(AnomalyRow {
                t_ms: LENGTH_MS,
                outcome: Outcome::Missed,
                resource: "packages.longhaul.dev".into(),
                namespace: "default".into(),
                name: format!("package-{n}"),
                uid: format!("0000-{n}"),
                revision: revision.clone(),
                change: Change::Modified,
                committed_ms: Some(committed_ms + n),
                observed_ms: None,
                delivery: Some("sent on watch 3 at 61.01 s, 0 bytes acknowledged".into()),
                wire: vec![format!(
                    r#"{{"type":"MODIFIED","object":{{"metadata":{{"name":"package-{n}","resourceVersion":"{revision}"}}}}}}"#
                )],
                detail: None,
                evidence: Some(evidence(committed_ms + n, &revision)),
            });
        }
    }

    /// Writes the record to a temporary directory and reads it back.
    pub fn opened(&self) -> Record {
        self.open(tempfile::tempdir().unwrap().path())
    }

    /// Writes the record into the directory `dir` and reads it back.
    pub fn open(&self, dir: &Path) -> Record {
        self.write(dir);
        Record::open(dir).unwrap()
    }

    pub fn write(&self, dir: &Path) {
        let mut writer = Writer::create(dir, &self.manifest).unwrap();
        if let Some(rows) = &self.requests {
            writer = writer.tell_requests().unwrap();
            for row in rows {
                writer.request(row.clone()).unwrap();
            }
        }
        for (tag, start_ms, end_ms, histogram) in &self.latencies {
            writer.latency(tag, *start_ms, *end_ms, histogram).unwrap();
        }
        self.faults.iter().for_each(|row| writer.fault(row).unwrap());
        self.anomalies.iter().for_each(|row| writer.anomaly(row).unwrap());
        self.metrics.iter().for_each(|row| writer.metrics(row).unwrap());
        self.crashes.iter().for_each(|row| writer.crash(row).unwrap());
        let mut samples = self.samples.iter().peekable();
        for row in &self.intervals {
            while let Some(sample) = samples.next_if(|sample| sample.t_ms < row.end_ms) {
                writer.sample(sample).unwrap();
            }
            writer.interval(row).unwrap();
        }
        samples.for_each(|row| writer.sample(row).unwrap());
        if let Some(state) = &self.end_state {
            writer.end_state(state).unwrap();
        }
        if let Some(objects) = &self.objects {
            writer.objects(objects).unwrap();
        }
        if let Some(end) = &self.end {
            writer.end(end).unwrap();
        }
        if let Some(answers) = &self.answers {
            answers.write(dir).unwrap();
        }
    }

    /// Lets the subject report its heap in use and its queue length in each second.
    pub fn tell_metrics(&mut self, heap_bytes: impl Fn(u64) -> u64, queue: impl Fn(u64) -> f64) {
        let plan = MetricsPlan {
            url: "http://127.0.0.1:9000/metrics".into(),
            every_ms: 1000,
            heap: None,
            series: vec!["queue".into()],
        };
        self.manifest.subject.metrics = Some(plan);
        self.metrics = (0..LENGTH_MS / 1000)
            .map(|second| MetricsRow {
                t_ms: second * 1000 + 7,
                took_us: 900,
                page_bytes: 4096,
                heap_bytes: Some(heap_bytes(second)),
                heap_of: (second == 0).then(|| "Go".into()),
                series: [("queue".to_owned(), queue(second))].into(),
                error: None,
            })
            .collect();
    }

    /// Lets the subject crash at these times. The subject starts again one second after each crash, and all crashes are
    /// part of one crash loop.
    pub fn crash(&mut self, times_ms: &[u64]) {
        self.manifest.subject.restart = Some("always".into());
        self.crashes = (1..)
            .zip(times_ms)
            .map(|(number, t_ms)| CrashRow {
                t_ms: *t_ms,
                number,
                process: None,
                status: "exit status: 3".into(),
                ran_ms: 900,
                in_a_row: number,
                back_off_ms: 1000,
                last_words: "out of patience".into(),
            })
            .collect();
    }

    /// Records one latency of the steady phase under a tag, `times` times.
    pub fn record(&mut self, tag: &'static str, start_ms: u64, value_us: u64, times: u64) {
        let mut histogram = Histogram::new(3).unwrap();
        histogram.record_n(value_us, times).unwrap();
        self.latencies.push((tag, start_ms, start_ms + INTERVAL_MS, histogram));
    }

    fn add_interval(&mut self, start_ms: u64) {
        let end_ms = start_ms + INTERVAL_MS;
        let phase = match start_ms {
            0..WARM_UP_MS => Phase::WarmUp,
            WARM_UP_MS..140_000 => Phase::Steady,
            _ => Phase::Drain,
        };
        let loaded = phase != Phase::Drain;
        let faulted = (FAULT_AT_MS..FAULT_AT_MS + FAULT_FOR_MS).contains(&start_ms);
        let lag = spread(CHANGES, if faulted { 900_000 } else { 4000 }, start_ms);
        let response = spread(REVIEWS, 2500, start_ms + 1);
        let lateness = spread(REVIEWS, 60, start_ms + 2);
        let changes = if loaded { CHANGES } else { 0 };
        self.intervals.push(Interval {
            start_ms,
            end_ms,
            phase,
            last: end_ms == LENGTH_MS,
            calls: None,
            events: EventCounts {
                commits: changes,
                observations: changes,
                observed: changes.saturating_sub(10),
                coalesced: changes.min(10),
                ..EventCounts::default()
            },
            live_objects: 500,
            pending: 0,
            deadline_ms: 5000,
            lag: (loaded && !faulted).then(|| Quantiles::of(&lag)),
            admission: loaded.then(|| AdmissionRow {
                planned: REVIEWS,
                sent: REVIEWS,
                allowed: 900,
                denied: 100,
                response: Quantiles::of_any(&response),
                service: Quantiles::of_any(&response),
                lateness: Quantiles::of_any(&lateness),
                ..AdmissionRow::default()
            }),
            churn: loaded.then(|| ChurnRow {
                planned: CHANGES,
                created: 45,
                updated: 160,
                deleted: 45,
                objects_total: 500 + end_ms * 9 / 1000,
                ..ChurnRow::default()
            }),
            witness: WitnessRow { lines: changes, ..WitnessRow::default() },
            api: ApiRow { requests: CHANGES + 3, subject_requests: 2, subject_open_watches: 3, ..ApiRow::default() },
            registry: loaded.then(|| RegistryRow {
                requests: 12,
                tags_total: 40,
                most_of_one_tag: 1 + end_ms / 30_000,
                ..RegistryRow::default()
            }),
            webhooks: Vec::new(),
            alerts: None,
            faults_active: if faulted { vec!["1".into()] } else { Vec::new() },
            refused: Vec::new(),
        });
        if loaded {
            let lag_tag = if faulted { tag::LAG_FAULTED } else { tag::LAG };
            self.latencies.push((lag_tag, start_ms, end_ms, lag));
            self.latencies.push((tag::RESPONSE_ALLOWED, start_ms, end_ms, response.clone()));
            self.latencies.push((tag::SERVICE, start_ms, end_ms, response));
            self.latencies.push((tag::LATENESS, start_ms, end_ms, lateness));
        }
    }
}

/// A histogram in which a few values are far above the typical value. One seed always gives the same histogram.
fn spread(samples: u64, typical_us: u64, seed: u64) -> Histogram {
    let mut histogram = Histogram::new_with_bounds(1, 120_000_000, 3).unwrap();
    let mut state = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    for _ in 0..samples {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = (state >> 11) as f64 / (1u64 << 53) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few microseconds to seconds")]
        let value_us = (typical_us as f64 * (0.6 - 0.35 * (1.0 - uniform).ln())) as u64;
        hlog::record(&mut histogram, value_us.max(1));
    }
    histogram
}

fn sample(second: u64) -> Sample {
    let wobble = second * 7919 % 13;
    Sample {
        t_ms: second * 1000,
        subject: Some(Process {
            processes: 1,
            rss_bytes: (38 << 20) + wobble * 40_960 + (second.min(20) << 18),
            pss_bytes: None,
            anon_bytes: 30 << 20,
            cpu_ms: second * 80,
            threads: 6,
            fds: Fds { socket: 14, file: 6, pipe: 2, other: 4 },
            starts: 1,
            told: false,
        }),
        harness: Some(Process { processes: 1, rss_bytes: (92 << 20) + wobble * 8192, ..Process::default() }),
        machine: MachineRow { psi_cpu_some_pct: Some(12.0), steal_ms: Some(0), ..MachineRow::default() },
        peak: false,
        sockets: None,
        cgroup: None,
        read_cost_us: 180,
        rollup_cost_us: None,
    }
}

fn faults() -> Vec<FaultRow> {
    let row = |t_ms, event, hits, ok| FaultRow {
        t_ms,
        id: "1".into(),
        name: "silent-watch".into(),
        event,
        hits,
        ok,
        detail: None,
    };
    vec![
        row(0, FaultEvent::Planned, 0, None),
        row(FAULT_AT_MS - 1000, FaultEvent::CanaryBefore, 0, Some(true)),
        row(FAULT_AT_MS, FaultEvent::Started, 0, None),
        row(FAULT_AT_MS + 20, FaultEvent::Hit, 3, None),
        row(FAULT_AT_MS + FAULT_FOR_MS, FaultEvent::Ended, 3, None),
        row(FAULT_AT_MS + FAULT_FOR_MS + 900, FaultEvent::CanaryAfter, 3, Some(true)),
    ]
}

/// A list of the packages in the namespace `default`.
pub fn list(id: u64, t_ms: u64, revision: u64) -> RequestRow {
    RequestRow {
        id,
        t_ms,
        method: "GET".into(),
        verb: Verb::List,
        resource: "packages.longhaul.dev".into(),
        user_agent: "example/1".into(),
        connection: 1,
        http: 1,
        status: 200,
        ended_ms: Some(t_ms + 1),
        ended_by: Some(EndedBy::Server),
        objects: 500,
        last_revision: Some(revision),
        ..RequestRow::default()
    }
}

/// A watch of the packages from `revision`, on which every change up to `through` was sent.
pub fn watch(id: u64, from_ms: u64, to_ms: u64, revision: u64, through: u64) -> RequestRow {
    let sent = through > revision;
    RequestRow {
        verb: Verb::Watch,
        revision: Some(revision.to_string()),
        bookmarks: true,
        connection: 2,
        ended_ms: Some(to_ms),
        objects: through - revision,
        last_revision: sent.then_some(through),
        first_object_ms: sent.then_some(from_ms + 100),
        last_object_ms: sent.then_some(to_ms),
        ..list(id, from_ms, 0)
    }
}

/// The requests of the example: a list and a watch. The example's fault makes the watch silent; the subject notices
/// that and watches again.
fn requests() -> Vec<RequestRow> {
    vec![
        list(1, 0, 1000),
        watch(2, 10, FAULT_AT_MS + 8000, 1000, 4000),
        list(3, FAULT_AT_MS + 8000, 4400),
        RequestRow { connection: 3, ..watch(4, FAULT_AT_MS + 8010, LENGTH_MS, 4400, 9000) },
    ]
}

fn manifest() -> Manifest {
    let budgets: Budgets = serde_json::from_value(serde_json::json!({
        "events": {"missed": 0, "ghost": 0, "regressed": 0, "late": 0, "lagP99": "2s", "heal": "60s"},
        "requests": {"blind": "20s", "hotLoop": "2/s", "staleResume": 0, "openWatches": 1},
        "admission": {"p99": "20ms", "wrongVerdicts": 0, "errors": 0},
        "memory": {"ceiling": "64MiB"},
        "descriptors": {"ceiling": 100, "growth": 0},
        "threads": {"ceiling": 16},
    }))
    .unwrap();
    Manifest {
        schema: SCHEMA.into(),
        run_id: "20261120T101500Z-silent-watch-7".into(),
        started_at: "2026-11-20T10:15:00Z".into(),
        name: "silent-watch".into(),
        question: "The API server goes quiet on an open connection: does the subject notice?".into(),
        scenario: serde_json::json!({"apiVersion": "longhaul/v1", "name": "silent-watch"}),
        seed: 7,
        phases: Phases { warm_up_ms: WARM_UP_MS, steady_ms: STEADY_MS, drain_ms: DRAIN_MS },
        budgets,
        versions: Versions { longhaul: "0.1.0".into(), git_revision: Some("0123abc".into()) },
        machine: Machine { cores: 2, memory_bytes: 8 << 30, kernel: "Linux 6.12".into(), cpu: "Example CPU".into() },
        control_plane: "mock".into(),
        subject: Subject { kind: "service".into(), command: vec!["service".into()], ..Subject::default() },
        witness: "http".into(),
        witness_sees: Some(Sees::ALL),
        witness_tolerates: None,
        compress: 1,
        clock_rate: 1,
        judged: vec!["packages.longhaul.dev".into()],
        payload_fingerprint: Some("5e884898da280471".into()),
        faults: vec![PlannedFault {
            id: "1".into(),
            name: "silent-watch".into(),
            at_ms: FAULT_AT_MS,
            for_ms: Some(FAULT_FOR_MS),
            detail: "packages: bytes stop moving on the open watch".into(),
            drawn: false,
            needs: Vec::new(),
            needs_resource: None,
        }],
        admission_rate_per_second: Some(200.0),
        churn_rate_per_second: Some(50.0),
        webhooks: Vec::new(),
        repeat: "longhaul run silent-watch --seed 7".into(),
        notes: Vec::new(),
    }
}

/// Evidence that the control plane sent the version at once and the subject never reported it.
fn evidence(committed_ms: u64, revision: &str) -> Evidence {
    let (number, change) = (revision.parse().unwrap_or(0), Change::Modified);
    let from = Some("9000".to_owned());
    let steps = vec![
        Step::Listed { t_ms: 0, status: 200, revision: Some(9000), objects: 500, further: false },
        Step::Watched { t_ms: 5, watch: Some(3), from, initial: false, status: 200, error_code: None },
        Step::Committed { t_ms: committed_ms, revision: revision.to_owned(), change },
        Step::Sent { t_ms: committed_ms + 1, revision: revision.to_owned(), watch: 3 },
        Step::WatchEnded { t_ms: committed_ms + 9000, watch: 3, by: EndedBy::Server, through: Some(number) },
    ];
    Evidence {
        until_ms: LENGTH_MS,
        wire: true,
        steps,
        left_out: 2,
        read_on: Some(ReadOn { t_ms: committed_ms + 40, times: 7 }),
    }
}
