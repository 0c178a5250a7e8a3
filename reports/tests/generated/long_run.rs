//! A synthetic run of any length, written like a real run. The rows of the synthetic run are those of a real hour
//! (`soak-1h`: 2,500 commits and 1,250 reviews in five seconds).
//!
//! Owns the number and the contents of the generated record rows. The test of a record of a hundred hours and the
//! benchmark of judges and renderers use the synthetic run.

use std::ops::Range;
use std::path::Path;

use facts::Change;
use reports::ledger::Outcome;
use reports::record::{
    AnomalyRow, End, EndReason, Evidence, FaultEvent, FaultRow, Interval, Manifest, Phase, REQUEST_LINES_MAX,
    RequestRow, STEPS_MAX, Sample, Step, Writer, tag,
};
use statistics::hlog::Histogram;

pub const HOUR_MS: u64 = 3_600_000;
pub const WARM_UP_MS: u64 = 600_000;
const DRAIN_MS: u64 = 300_000;
/// The time between two faults of the run, in milliseconds, as in `soak-100h`.
const FAULT_EVERY_MS: u64 = 60_000;
pub const MIB: f64 = 1_048_576.0;

/// The length of the run, which determines the number of all rows.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub length_ms: u64,
    /// The time, in milliseconds, before which memory is above its ceiling for one second.
    pub peak_ms: u64,
}

/// The histograms of each tag; each interval of the run uses the next histogram.
pub struct Latencies(pub Vec<(&'static str, Vec<Histogram>)>);

pub const INTERVAL: &str = r#"{"startMs":0,"endMs":5000,"phase":"steady","events":{"commits":2383,"observations":2370,"observed":2370},
"liveObjects":200,"pending":20,"deadlineMs":5000,"lag":{"count":2370,"p50Us":27007,"p90Us":49023,"maxUs":59007},"admission":{
"planned":1252,"sent":1252,"allowed":1119,"denied":133,"response":{"count":1252,"p50Us":360,"p90Us":1104,"maxUs":4739},
"service":{"count":1252,"p50Us":250,"p90Us":840,"maxUs":4319},"lateness":{"count":1252,"p50Us":54,"p90Us":323,"maxUs":2583}},
"churn":{"planned":750,"created":130,"updated":492,"deleted":129,"lateness":{"count":751,"p50Us":126,"maxUs":3201},"objectsTotal":0},
"witness":{"lines":2370},"api":{"requests":6128,"subjectRequests":5369,"subjectWatches":1,"subjectLists":1105,"subjectFollows":0,
"subjectOpenWatches":2,"subjectConnections":1,"subjectOpenConnections":6},"registry":{"requests":35,"refused":4,"tagsTotal":36,
"mostOfOneTag":0},"faultsActive":[]}"#;

const SAMPLE: &str = r#"{"tMs":0,"subject":{"processes":1,"rssBytes":22933504,"anonBytes":8323072,"cpuMs":0,"threads":4,"fds":{"socket":20,
"file":2,"pipe":3,"other":3},"starts":1},"harness":{"processes":1,"rssBytes":415236096,"anonBytes":377589760,"cpuMs":0,"threads":7,
"fds":{"socket":28,"file":15,"pipe":4,"other":10},"starts":1},"machine":{"psiCpuSomePct":22.11,"psiMemorySomePct":0.01,"psiIoSomePct":0.12,
"stealMs":236560,"load1m":1.66,"suspendedMs":0,"clockSetMs":1},"readCostUs":2744}"#;

const REQUEST: &str = r#"{"id":0,"tMs":0,"method":"GET","verb":"list","resource":"networkpolicies.networking.k8s.io","limit":500,
"labels":"app.kubernetes.io/managed-by=longhaul-service,longhaul.dev/package-uid","userAgent":"longhaul-service/0.1.0",
"connection":10,"http":1,"status":200,"endedMs":1,"endedBy":"server","objects":0,"lastRevision":14}"#;

const HIT: &str = "revision 101217 held for 1s on watch 7 of packages.longhaul.dev by \
                   system:serviceaccount:longhaul-system:longhaul-watch on connection 71";

/// Pseudo-random noise between 0 and 1; one seed always gives the same noise.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl Latencies {
    pub fn new() -> Self {
        let tags = [
            (tag::RESPONSE_ALLOWED, 1119, 360.0),
            (tag::RESPONSE_DENIED, 133, 200.0),
            (tag::SERVICE, 1252, 250.0),
            (tag::LATENESS, 1252, 54.0),
            (tag::CHURN_LATENESS, 751, 126.0),
            (tag::LAG, 2370, 27_000.0),
        ];
        let of = |count, typical_us: f64, seed| {
            let (mut noise, mut histogram) = (Noise(seed), Histogram::new(3).unwrap());
            for _ in 0..count {
                histogram.record((typical_us * (0.6 - 0.6 * (1.0 - noise.next()).ln())) as u64 + 1).unwrap();
            }
            histogram
        };
        let all = tags.map(|(tag, count, typical_us)| (tag, (0..16).map(|seed| of(count, typical_us, seed)).collect()));
        Self(all.into())
    }

    /// The number of values recorded under a tag from one time to another.
    pub fn count(&self, tag: &str, times_ms: &Range<u64>) -> u64 {
        let (_, histograms) = self.0.iter().find(|(name, _)| *name == tag).unwrap();
        let numbers = times_ms.start / 5000..times_ms.end / 5000;
        numbers.map(|number| histograms[number as usize % histograms.len()].len()).sum()
    }

    pub fn write(&self, writer: &mut Writer, number: u64) {
        for (tag, histograms) in &self.0 {
            let histogram = &histograms[number as usize % histograms.len()];
            writer.latency(tag, number * 5000, number * 5000 + 5000, histogram).unwrap();
        }
    }
}

impl Run {
    fn drain_ms(self) -> u64 {
        self.length_ms - DRAIN_MS
    }

    fn faults(self) -> u64 {
        (self.drain_ms() - WARM_UP_MS) / FAULT_EVERY_MS - 1
    }

    fn fault_at_ms(number: u64) -> u64 {
        WARM_UP_MS + number * FAULT_EVERY_MS + 30_000
    }

    pub fn manifest(self) -> Manifest {
        let fault = |number: u64| {
            serde_json::json!({
                "id": format!("{number}-event-delayed"), "name": "event-delayed", "atMs": Self::fault_at_ms(number), "forMs": 3000,
                "detail": "event-delayed on packages for 3s",
            })
        };
        serde_json::from_value(serde_json::json!({
            "schema": record::SCHEMA, "runId": "20261123T172258Z-soak-100h-19", "startedAt": "2026-11-23T17:22:58Z",
            "name": "soak-100h", "question": "Does the service grow, forget or fall behind in a hundred hours?",
            "scenario": {"apiVersion": "longhaul/v1"}, "seed": 19,
            "phases": {"warmUpMs": WARM_UP_MS, "steadyMs": self.drain_ms() - WARM_UP_MS, "drainMs": DRAIN_MS},
            "budgets": {
                "events": {"missed": 0, "ghost": 0, "lagP99": "2s"}, "admission": {"p99": "20ms", "wrongVerdicts": 0},
                "memory": {"ceiling": "30MiB", "growth": "64KiB/h", "growthPerObject": "8B", "growthPerRequest": "2B"},
                "descriptors": {"ceiling": 200, "growth": 8}, "threads": {"ceiling": 16, "growth": 2},
            },
            "versions": {"longhaul": "0.1.0", "gitRevision": null},
            "machine": {"cores": 2, "memoryBytes": 8_u64 << 30, "kernel": "Linux 6.12", "cpu": "Example CPU"},
            "controlPlane": "mock", "witness": "http", "judged": ["packages.longhaul.dev"],
            "subject": {"kind": "service", "command": ["service"], "digest": null, "plantedBug": null},
            "payloadFingerprint": "5e884898da280471", "faults": (0..self.faults()).map(fault).collect::<Vec<_>>(),
            "admissionRatePerSecond": 250.0, "churnRatePerSecond": 150.0, "repeat": "longhaul soak soak-100h --seed 19", "notes": [],
        }))
        .unwrap()
    }

    pub fn interval(self, template: &Interval, number: u64) -> Interval {
        let mut row = template.clone();
        row.start_ms = number * 5000;
        row.end_ms = row.start_ms + 5000;
        row.phase = match row.end_ms {
            0..=WARM_UP_MS => Phase::WarmUp,
            end_ms if end_ms > self.drain_ms() => Phase::Drain,
            _ => Phase::Steady,
        };
        row.last = row.end_ms == self.length_ms;
        row.pending *= u64::from(!row.last);
        row.churn.as_mut().unwrap().objects_total = 200 + number * 130;
        row.registry.as_mut().unwrap().most_of_one_tag = 1 + number;
        let fault = row.end_ms.saturating_sub(WARM_UP_MS) / FAULT_EVERY_MS;
        if fault < self.faults() && (row.start_ms..row.end_ms).contains(&Self::fault_at_ms(fault)) {
            row.faults_active = vec![format!("{fault}-event-delayed")];
        }
        row
    }

    /// One sample for each second; memory varies by some hundred kibibytes.
    pub fn samples(self) -> impl Iterator<Item = Sample> {
        let template: Sample = serde_json::from_str(SAMPLE).unwrap();
        let (mut noise, mut wander) = (Noise(7), 0.0);
        (0..self.length_ms / 1000).map(move |second| {
            wander = wander * 0.98 + (noise.next() - 0.5) * 40_960.0;
            let mut row = template.clone();
            row.t_ms = second * 1000 + 811;
            let is_peak = (row.t_ms..row.t_ms + 1000).contains(&self.peak_ms);
            let rss = if is_peak { 38.0 * MIB } else { MIB * (16.0 + 6.0 * (second as f64 / 300.0).min(1.0)) + wander };
            let subject = row.subject.as_mut().unwrap();
            subject.rss_bytes = (rss / 4096.0).round() as u64 * 4096;
            subject.cpu_ms = second * 250;
            subject.fds.socket = 20 + second % 5;
            row.harness.as_mut().unwrap().cpu_ms = second * 700;
            row.machine.steal_ms = Some(236_560 + second * 3);
            row
        })
    }

    /// Writes the whole run, with latencies only in the time ranges `times_ms`. After each written interval, the
    /// function `each` is called with its end.
    pub fn write(self, dir: &Path, latencies: &Latencies, times_ms: &[Range<u64>], mut each: impl FnMut(u64)) {
        let mut writer = Writer::create(dir, &self.manifest()).unwrap().tell_requests().unwrap();
        let template: Interval = serde_json::from_str(INTERVAL).unwrap();
        let request: RequestRow = serde_json::from_str(REQUEST).unwrap();
        let mut samples = self.samples().peekable();
        let mut faults = (0..self.faults()).peekable();
        for id in 0..REQUEST_LINES_MAX {
            writer.request(RequestRow { id, ..request.clone() }).unwrap();
        }
        anomalies(&mut writer);
        for number in 0..self.length_ms / 5000 {
            let row = self.interval(&template, number);
            while let Some(sample) = samples.next_if(|sample| sample.t_ms < row.end_ms) {
                writer.sample(&sample).unwrap();
            }
            while let Some(number) = faults.next_if(|number| Self::fault_at_ms(*number) < row.end_ms) {
                fault(&mut writer, number);
            }
            if times_ms.iter().any(|times_ms| times_ms.contains(&row.start_ms)) {
                latencies.write(&mut writer, number);
            }
            writer.request(RequestRow { id: REQUEST_LINES_MAX + number, ..request.clone() }).unwrap();
            writer.interval(&row).unwrap();
            each(row.end_ms);
        }
        writer
            .end(&End { ended_ms: self.length_ms, reason: EndReason::Completed, lost: None, holes: Vec::new() })
            .unwrap();
    }
}

/// A fault with fifteen hits; every tenth fault hits the 3,000 events of a busy stream.
fn fault(writer: &mut Writer, number: u64) {
    let row = |after_ms, event, hits, ok, detail: &str| FaultRow {
        t_ms: Run::fault_at_ms(number) + after_ms,
        id: format!("{number}-event-delayed"),
        name: "event-delayed".into(),
        event,
        hits,
        ok,
        detail: (!detail.is_empty()).then(|| detail.to_owned()),
    };
    let seen = "the subject saw it after 20 ms";
    writer.fault(&row(0, FaultEvent::Planned, 0, None, "event-delayed on packages for 3s")).unwrap();
    writer.fault(&row(0, FaultEvent::CanaryBefore, 0, Some(true), seen)).unwrap();
    writer.fault(&row(0, FaultEvent::Started, 0, None, "")).unwrap();
    let hits = if number.is_multiple_of(10) { 3000 } else { 15 };
    (1..=hits).for_each(|hit| writer.fault(&row(hit, FaultEvent::Hit, hit, None, HIT)).unwrap());
    writer.fault(&row(3000, FaultEvent::Ended, hits, None, "")).unwrap();
    writer.fault(&row(3020, FaultEvent::CanaryAfter, hits, Some(true), seen)).unwrap();
}

/// Writes more rows of four outcomes than a record keeps, with more stream lines than a row keeps.
fn anomalies(writer: &mut Writer) {
    let outcomes = [Outcome::Late, Outcome::LateGhost, Outcome::Duplicate, Outcome::Unobservable];
    for number in 0..6000_u64 {
        let row = AnomalyRow {
            t_ms: number * 500,
            outcome: outcomes[number as usize % outcomes.len()],
            resource: "packages.longhaul.dev".into(),
            namespace: "lh-11-112".into(),
            name: format!("package-{number:07}"),
            uid: "b07fd2d6-0979-4f85-b490-549c42ea6e9f".into(),
            revision: "95436".into(),
            change: Change::Modified,
            committed_ms: Some(number * 500),
            observed_ms: Some(number * 500 + 7000),
            delivery: Some("sent on watch 7 at 129890 ms".into()),
            wire: vec![r#"{"type":"MODIFIED","object":{"#.repeat(30); 30],
            detail: None,
            evidence: Some(evidence(number * 500)),
        };
        writer.anomaly(&row).unwrap();
    }
}

/// Evidence with as many events and requests as a record keeps.
fn evidence(t_ms: u64) -> Evidence {
    let step = |number| Step::Sent { t_ms: t_ms + number, revision: "95436".into(), watch: 7 };
    Evidence {
        until_ms: t_ms + 7000,
        wire: true,
        steps: (0..STEPS_MAX as u64 + 5).map(step).collect(),
        left_out: 0,
        read_on: None,
    }
}
