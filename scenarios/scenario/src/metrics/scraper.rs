//! Reads the subject's metrics page repeatedly during the run.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use record::{MetricsPlan, MetricsRow};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;
use tokio_util::task::AbortOnDropHandle;

use super::exposition::points;
use super::heap::Search;
use super::selector::Selector;
use crate::clock::Clock;
use crate::fetch::{Limits, Page};

/// Limits of time and size for reading a metrics page. The metrics page of a large operator has a few MiB.
const LIMITS: Limits = Limits { answer: Duration::from_secs(10), bytes: 64 << 20 };
/// Maximum number of readings that wait for the run to store them: the readings of one minute.
const QUEUE_MAX: usize = 60;
/// Minimum interval between readings of the page, as a multiple of the time that one reading takes. A page that takes
/// one second is read every twenty seconds.
const SHARE_LEAST: u32 = 20;
/// Number of last readings, whose shortest duration counts as the time that one reading takes. Longer readings waited
/// for a processor and did not burden the subject.
const READINGS: usize = 5;
/// Maximum number of characters that are kept of an error.
const ERROR_CHARS: usize = 300;
/// Interval of attempts to read the metrics page before the run begins.
const FIRST_EVERY: Duration = Duration::from_millis(100);

/// A task that reads the metrics page. Dropping this value ends the task.
pub struct Scraper {
    /// The recorded values of each reading, ordered by time.
    pub rows: mpsc::Receiver<MetricsRow>,
    /// The result of the last reading before the run.
    first: watch::Receiver<Option<Result<(), String>>>,
    _task: AbortOnDropHandle<()>,
}

impl Scraper {
    /// Starts reading. Fails if the address or a series is invalid.
    pub fn start(plan: &MetricsPlan, clock: Clock) -> Result<Self, String> {
        let reader = Reader {
            page: Page::new(&plan.url, LIMITS)?,
            heap: plan.heap.as_deref().map(Selector::read).transpose()?,
            series: plan.series.iter().map(|text| Selector::read(text)).collect::<Result<_, _>>()?,
            heap_of: None,
        };
        let (sender, rows) = mpsc::channel(QUEUE_MAX);
        let (told, first) = watch::channel(None);
        let every = Duration::from_millis(plan.every_ms);
        let task = tokio::spawn(reader.run(every, clock, sender, told));
        Ok(Self { rows, first, _task: AbortOnDropHandle::new(task) })
    }

    /// Waits until the page was read once. After the deadline, returns the reason why the page could not be read.
    pub fn readable(&self, deadline: Instant) -> impl Future<Output = Result<(), String>> + use<> {
        let mut first = self.first.clone();
        async move {
            let read = first.wait_for(|last| matches!(last, Some(Ok(()))));
            if let Ok(Ok(_)) = tokio::time::timeout_at(deadline.into(), read).await {
                return Ok(());
            }
            let last = first.borrow().clone();
            Err(match last {
                Some(Err(why)) => why,
                _ => "its metrics were not read in time".to_owned(),
            })
        }
    }
}

/// The durations of the last readings of the page, of which the shortest counts.
#[derive(Default)]
struct Cost(VecDeque<Duration>);

impl Cost {
    fn add(&mut self, took: Duration) {
        if self.0.len() == READINGS {
            self.0.pop_front();
        }
        self.0.push_back(took);
    }

    fn least(&self) -> Duration {
        self.0.iter().min().copied().unwrap_or_default()
    }
}

/// The page, and the series that are recorded from it.
struct Reader {
    page: Page,
    heap: Option<Selector>,
    series: Vec<Selector>,
    /// The runtime or series that the heap's figure came from in the last reading.
    heap_of: Option<String>,
}

impl Reader {
    async fn run(
        mut self,
        every: Duration,
        clock: Clock,
        sender: mpsc::Sender<MetricsRow>,
        told: watch::Sender<Option<Result<(), String>>>,
    ) {
        let mut cost = Cost::default();
        while !clock.runs() {
            let began = Instant::now();
            let read = self.page.get().await.and_then(|page| self.row(&page).map(drop));
            // The source is written again in the first row of the record.
            self.heap_of = None;
            let fine = read.is_ok();
            cost.add(began.elapsed());
            told.send_replace(Some(read));
            tokio::time::sleep(if fine { every.min(Duration::from_secs(1)) } else { FIRST_EVERY }).await;
        }
        let mut due = tokio::time::interval(every);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            due.tick().await;
            let began = Instant::now();
            let page = self.page.get().await;
            let took = began.elapsed();
            let row = page.as_ref().map_err(Clone::clone).and_then(|page| self.row(page));
            let row = row.unwrap_or_else(|error| MetricsRow { error: Some(short(&error)), ..MetricsRow::default() });
            let row = MetricsRow {
                t_ms: clock.now_ms(),
                took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
                page_bytes: page.map_or(0, |page| page.len() as u64),
                ..row
            };
            // A full queue means that the run hangs; the record shows the gap.
            if let Err(mpsc::error::TrySendError::Closed(_)) = sender.try_send(row) {
                return;
            }
            cost.add(took);
            let rest = cost.least() * SHARE_LEAST;
            if rest > every {
                due.reset_after(rest);
            }
        }
    }

    /// Parses the heap and the recorded series of a page.
    fn row(&mut self, page: &[u8]) -> Result<MetricsRow, String> {
        let place = |why: &dyn std::fmt::Display| format!("the page of metrics cannot be read: {why}");
        let page = std::str::from_utf8(page).map_err(|error| place(&error))?;
        let mut search = Search::new(self.heap.as_ref());
        let mut sums = vec![None; self.series.len()];
        for point in points(page) {
            let point = point.map_err(|error| place(&error))?;
            search.take(&point);
            for (selector, sum) in self.series.iter().zip(&mut sums) {
                if selector.is_of(&point) {
                    *sum = Some(sum.unwrap_or(0.0) + point.value);
                }
            }
        }
        let heap = search.found();
        let of = heap.as_ref().map(|(of, _)| of.clone());
        let changed = of.is_some() && of != self.heap_of;
        let heap_of = of.clone().filter(|_| changed);
        self.heap_of = of.or(self.heap_of.take());
        // JSON has no value for NaN or infinity.
        let known =
            self.series.iter().zip(sums).filter_map(|(one, sum)| Some((one, sum.filter(|sum: &f64| sum.is_finite())?)));
        let series = known.map(|(selector, sum)| (selector.text().to_owned(), sum)).collect();
        Ok(MetricsRow { heap_bytes: heap.map(|(_, bytes)| bytes), heap_of, series, ..MetricsRow::default() })
    }
}

fn short(error: &str) -> String {
    error.char_indices().nth(ERROR_CHARS).map_or_else(|| error.to_owned(), |(end, _)| format!("{}…", &error[..end]))
}

/// Interval of readings of the metrics page for a steady phase of this length. The interval is short enough for all
/// budgets of growth, and long enough to burden the subject little. A metrics page that answers slowly is read less
/// often.
pub fn every(steady: Duration) -> Duration {
    const READINGS: u64 = 600;
    const LEAST_S: u64 = 1;
    const MOST_S: u64 = 30;
    Duration::from_secs((steady.as_secs() / READINGS).clamp(LEAST_S, MOST_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(series: &[&str]) -> Reader {
        Reader {
            page: Page::new("http://127.0.0.1:1/metrics", LIMITS).unwrap(),
            heap: None,
            series: series.iter().map(|text| Selector::read(text).unwrap()).collect(),
            heap_of: None,
        }
    }

    #[test]
    fn a_row_has_the_heap_and_the_sums_of_the_series() {
        let mut reader = reader(&["depth", "depth{name=\"a\"}", "gone", "wild"]);
        let page = b"go_memstats_heap_alloc_bytes 100\ndepth{name=\"a\"} 2\ndepth{name=\"b\"} 3\nwild NaN\n";
        let row = reader.row(page).unwrap();
        assert_eq!((row.heap_bytes, row.heap_of.as_deref()), (Some(100), Some("Go")));
        assert_eq!(row.series, [("depth".to_owned(), 5.0), ("depth{name=\"a\"}".to_owned(), 2.0)].into());
        assert_eq!(reader.row(page).unwrap().heap_of, None, "said once");
        let error = reader.row(b"<html>\n").unwrap_err();
        assert!(error.ends_with("line 1 is no sample: it has no value"), "{error}");
    }

    /// One reading that waited for a processor causes no gap in the record. A metrics page that is always slow is read
    /// less often.
    #[test]
    fn the_shortest_of_the_last_readings_is_the_cost() {
        let least_ms = |took_ms: &[u64]| {
            let mut cost = Cost::default();
            for ms in took_ms {
                cost.add(Duration::from_millis(*ms));
            }
            cost.least().as_millis()
        };
        assert_eq!(least_ms(&[2, 300, 2, 400, 250]), 2);
        assert_eq!(least_ms(&[2, 300, 310, 305, 320, 300]), 300, "what it took once is forgotten");
        assert_eq!([least_ms(&[]), least_ms(&[700])], [0, 700]);
    }

    #[test]
    fn long_runs_are_read_more_rarely() {
        let every_s = |steady_s| every(Duration::from_secs(steady_s)).as_secs();
        assert_eq!([40, 600, 3600, 28_800, 360_000].map(every_s), [1, 1, 6, 30, 30]);
    }
}
