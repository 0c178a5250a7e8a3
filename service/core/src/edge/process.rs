//! The metrics of the process: facts about the build, and the standard process metrics of Prometheus clients.
//!
//! The values are read when `/metrics` is requested; no task runs between requests.

use procfs::WithCurrentSystemInfo as _;
use procfs::process::{LimitValue, Process};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::allocator;

/// The commit of the build; release builds set it.
const REVISION: &str = match option_env!("LONGHAUL_REVISION") {
    Some(revision) => revision,
    None => "unknown",
};

/// Registers facts about the build and process metrics. `features` lists optional features, such as planted bugs, that
/// were compiled in.
pub fn register(registry: &mut Registry, features: &'static str) {
    let facts = Info::new(vec![
        ("version", env!("CARGO_PKG_VERSION")),
        ("revision", REVISION),
        ("features", features),
        ("allocator", allocator::NAME),
    ]);
    registry.register("longhaul_build", "Build information: version, commit and compiled-in features", facts);
    registry.register_collector(Box::new(ThisProcess));
    registry.register_collector(Box::new(ThisHeap));
}

#[derive(Debug)]
struct ThisProcess;

impl Collector for ThisProcess {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        // If a system hides these figures, these metrics are missing and the others stay.
        let Some(numbers) = numbers() else { return Ok(()) };
        counter(&mut encoder, "process_cpu_seconds", "Processor time used, user and system", numbers.cpu_s)?;
        for (name, help, value) in [
            ("process_start_time_seconds", "Start time of the process, seconds since 1970", numbers.start_s),
            ("process_resident_memory_bytes", "Resident memory", numbers.resident_bytes),
            ("process_virtual_memory_bytes", "Virtual memory", numbers.virtual_bytes),
            ("process_open_fds", "Open file descriptors", numbers.open_fds),
            ("process_max_fds", "Most file descriptors that may be open", numbers.max_fds),
            ("process_threads", "Threads", numbers.threads),
        ] {
            gauge(&mut encoder, name, help, value)?;
        }
        Ok(())
    }
}

/// The gauge of heap memory in use. A soak run notices growth of the heap earlier than growth of the resident set.
#[derive(Debug)]
struct ThisHeap;

impl Collector for ThisHeap {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Some(heap) = allocator::heap() else { return Ok(()) };
        let (allocated, resident) = (heap.allocated as f64, heap.resident as f64);
        gauge(&mut encoder, "jemalloc_allocated_bytes", "Heap handed out and not given back", allocated)?;
        gauge(
            &mut encoder,
            "jemalloc_resident_bytes",
            "Heap mapped and touched, including free memory that is kept",
            resident,
        )
    }
}

struct Numbers {
    cpu_s: f64,
    start_s: f64,
    resident_bytes: f64,
    virtual_bytes: f64,
    open_fds: f64,
    max_fds: f64,
    threads: f64,
}

fn numbers() -> Option<Numbers> {
    let process = Process::myself().ok()?;
    let stat = process.stat().ok()?;
    let ticks = procfs::ticks_per_second().max(1) as f64;
    let max_fds = match process.limits().ok()?.max_open_files.soft_limit {
        LimitValue::Value(most) => most as f64,
        LimitValue::Unlimited => f64::INFINITY,
    };
    Some(Numbers {
        cpu_s: (stat.utime + stat.stime) as f64 / ticks,
        start_s: procfs::boot_time_secs().ok()? as f64 + stat.starttime as f64 / ticks,
        resident_bytes: stat.rss_bytes().get() as f64,
        virtual_bytes: stat.vsize as f64,
        open_fds: process.fd_count().ok()? as f64,
        max_fds,
        threads: stat.num_threads as f64,
    })
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> Result<(), std::fmt::Error> {
    let metric = ConstGauge::new(value);
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> Result<(), std::fmt::Error> {
    let metric = ConstCounter::new(value);
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}
