//! How hard the machine is pressed: pressure stall information, steal time, load.

use procfs::{Current, CurrentSI};
use reports::record::MachineRow;

/// Whatever of it this kernel offers.
pub(super) fn row() -> MachineRow {
    MachineRow {
        psi_cpu_some_pct: procfs::CpuPressure::current().ok().map(|psi| f64::from(psi.some.avg10)),
        psi_memory_some_pct: procfs::MemoryPressure::current().ok().map(|psi| f64::from(psi.some.avg10)),
        psi_io_some_pct: procfs::IoPressure::current().ok().map(|psi| f64::from(psi.some.avg10)),
        steal_ms: procfs::KernelStats::current().ok().and_then(|stats| stats.total.steal_ms()),
        load_1m: procfs::LoadAverage::current().ok().map(|load| f64::from(load.one)),
    }
}
