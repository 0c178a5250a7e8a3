//! The names under which runtimes and allocators export the heap in use.
//!
//! To support another runtime or allocator, add an entry to `ROWS`.

use super::exposition::Point;
use super::selector::Selector;

/// The series of one runtime's heap, whose size is the sum of all `parts`.
struct Row {
    /// The runtime's name in the report.
    of: &'static str,
    parts: &'static [HeapSeries],
}

/// A series that is part of the heap: its name, or the end of its name if libraries add the program's own prefix, and
/// required labels.
struct HeapSeries {
    name: Match,
    labels: &'static [(&'static str, &'static str)],
}

enum Match {
    Whole(&'static str),
    End(&'static str),
}

use Match::{End, Whole};

/// The known runtimes and allocators. The first entry whose series are all on the metrics page is used.
const ROWS: &[Row] = &[
    // The heap after the last collection, for programs with all of `runtime/metrics`, such as those on
    // controller-runtime. It excludes garbage since then, which is as much again.
    row("Go", &[part(Whole("go_gc_heap_live_bytes"), &[])]),
    // The collectors of client_golang: that of `runtime.MemStats`, and that of `runtime/metrics` alone.
    row("Go", &[part(Whole("go_memstats_heap_alloc_bytes"), &[])]),
    row("Go", &[part(Whole("go_memory_classes_heap_objects_bytes"), &[])]),
    // prom-client. The content of buffers is outside of V8's heap, and can leak as well.
    row("Node.js", &[part(End("nodejs_heap_size_used_bytes"), &[]), part(End("nodejs_external_memory_bytes"), &[])]),
    row("Node.js", &[part(End("nodejs_heap_size_used_bytes"), &[])]),
    // Micrometer and client_java 1.x; simpleclient before it; OpenTelemetry's agent.
    row("JVM", &[part(Whole("jvm_memory_used_bytes"), &[("area", "heap")])]),
    row("JVM", &[part(Whole("jvm_memory_bytes_used"), &[("area", "heap")])]),
    row("JVM", &[part(Whole("jvm_memory_used_bytes"), &[("jvm_memory_type", "heap")])]),
    row(".NET", &[part(Whole("dotnet_total_memory_bytes"), &[])]),
    // No Python client exports it by itself: this is `tracemalloc.get_traced_memory()[0]` under the name that it
    // suggests.
    row("Python", &[part(End("python_tracemalloc_current_bytes"), &[])]),
    // `stats.allocated`, as Rust programs and redis_exporter export it, with and without the unit.
    row("jemalloc", &[part(End("jemalloc_allocated_bytes"), &[])]),
    row("jemalloc", &[part(End("jemalloc_allocated"), &[])]),
    row("jemalloc", &[part(End("jemalloc_stats_allocated_bytes"), &[])]),
    row("jemalloc", &[part(End("jemalloc_stats_allocated"), &[])]),
    row("jemalloc", &[part(End("allocator_allocated_bytes"), &[])]),
    row("jemalloc", &[part(End("allocator_stats"), &[("type", "allocated")])]),
    // `mi_stats` and `mi_process_info`: the allocated bytes if known, otherwise the committed ones.
    row("mimalloc", &[part(End("mimalloc_malloc_current_bytes"), &[])]),
    row("mimalloc", &[part(End("mimalloc_allocated_bytes"), &[])]),
    row("mimalloc", &[part(End("mimalloc_current_commit_bytes"), &[])]),
    row("mimalloc", &[part(End("mimalloc_current_commit"), &[])]),
];

const fn row(of: &'static str, parts: &'static [HeapSeries]) -> Row {
    Row { of, parts }
}

const fn part(name: Match, labels: &'static [(&'static str, &'static str)]) -> HeapSeries {
    HeapSeries { name, labels }
}

impl HeapSeries {
    fn is_of(&self, point: &Point<'_>) -> bool {
        let named = match self.name {
            Whole(name) => point.name == name,
            End(end) => {
                point.name.strip_suffix(end).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with(['_', ':']))
            }
        };
        named
            && self
                .labels
                .iter()
                .all(|(name, value)| point.labels.iter().any(|label| label.0 == *name && label.1 == *value))
    }
}

/// Finds the size of the heap in use while a metrics page is read.
pub(super) struct Search<'a> {
    named: Option<(&'a Selector, Option<f64>)>,
    /// For each entry of `ROWS` and each of its series, the sum of the matching samples; `None` until one was found.
    seen: Vec<Vec<Option<f64>>>,
}

impl<'a> Search<'a> {
    /// Begins the search for the heap's size on a page. `named` is the series that the scenario declares to be the
    /// heap.
    pub(super) fn new(named: Option<&'a Selector>) -> Self {
        let seen =
            if named.is_some() { Vec::new() } else { ROWS.iter().map(|row| vec![None; row.parts.len()]).collect() };
        Self { named: named.map(|selector| (selector, None)), seen }
    }

    pub(super) fn take(&mut self, point: &Point<'_>) {
        if let Some((selector, sum)) = &mut self.named {
            if selector.is_of(point) {
                *sum = Some(sum.unwrap_or(0.0) + point.value);
            }
            return;
        }
        for (row, seen) in ROWS.iter().zip(&mut self.seen) {
            for (part, sum) in row.parts.iter().zip(seen) {
                if part.is_of(point) {
                    *sum = Some(sum.unwrap_or(0.0) + point.value);
                }
            }
        }
    }

    /// The runtime or series that the heap's size comes from, and the heap's size in bytes.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked: a size")]
    pub(super) fn found(self) -> Option<(String, u64)> {
        let is_size = |bytes: &f64| bytes.is_finite() && *bytes >= 0.0;
        if let Some((selector, sum)) = self.named {
            return sum.filter(is_size).map(|bytes| (selector.text().to_owned(), bytes as u64));
        }
        let sums = self.seen.into_iter().map(|parts| parts.into_iter().sum::<Option<f64>>());
        let first = ROWS.iter().zip(sums).find_map(|(row, sum)| Some((row.of, sum.filter(is_size)?)));
        first.map(|(of, bytes)| (of.to_owned(), bytes as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::super::exposition::points;
    use super::*;

    fn found(page: &str) -> Option<(String, u64)> {
        let mut search = Search::new(None);
        points(page).for_each(|point| search.take(&point.unwrap()));
        search.found()
    }

    /// The heap of each known runtime is recognised in lines that were copied from real exporters.
    #[test]
    fn each_runtime_is_recognised() {
        for (page, of, bytes) in [
            ("go_memstats_heap_alloc_bytes 2.5e+06\ngo_memstats_heap_inuse_bytes 4e+06\n", "Go", 2_500_000),
            ("go_memory_classes_heap_objects_bytes 7\n", "Go", 7),
            ("go_memstats_heap_alloc_bytes 9\ngo_gc_heap_live_bytes 5\n", "Go", 5),
            (
                "nodejs_heap_size_used_bytes 100\nnodejs_external_memory_bytes 11\nnodejs_heap_size_total_bytes 999\n",
                "Node.js",
                111,
            ),
            (
                "jvm_memory_used_bytes{area=\"heap\",id=\"G1 Eden Space\"} 5\njvm_memory_used_bytes{area=\"heap\",id=\"G1 Old Gen\"} 6\n\
                 jvm_memory_used_bytes{area=\"nonheap\",id=\"Metaspace\"} 100\n",
                "JVM",
                11,
            ),
            ("jvm_memory_bytes_used{area=\"heap\",} 12.0\n", "JVM", 12),
            ("app_jemalloc_allocated_bytes 9\n", "jemalloc", 9),
            ("redis_allocator_allocated_bytes 8\nredis_allocator_resident_bytes 80\n", "jemalloc", 8),
            ("tikv_allocator_stats{type=\"allocated\"} 4\ntikv_allocator_stats{type=\"resident\"} 40\n", "jemalloc", 4),
            ("mimalloc_current_commit_bytes 3\n", "mimalloc", 3),
            ("python_tracemalloc_current_bytes 2\n", "Python", 2),
        ] {
            assert_eq!(found(page), Some((of.to_owned(), bytes)), "{page}");
        }
        for page in
            ["process_resident_memory_bytes 1\n", "myjemalloc_allocated 1\n", "go_memstats_heap_alloc_bytes NaN\n"]
        {
            assert_eq!(found(page), None, "{page}");
        }
    }

    #[test]
    fn the_series_that_the_scenario_names_is_taken() {
        let selector = Selector::read("arena_bytes{kind=\"used\"}").unwrap();
        let mut search = Search::new(Some(&selector));
        let page = "go_memstats_heap_alloc_bytes 1\narena_bytes{kind=\"used\",n=\"1\"} 20\narena_bytes{kind=\"used\",n=\"2\"} 22\n";
        points(page).for_each(|point| search.take(&point.unwrap()));
        assert_eq!(search.found(), Some(("arena_bytes{kind=\"used\"}".to_owned(), 42)));
    }
}
