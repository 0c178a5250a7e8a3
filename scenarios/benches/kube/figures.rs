//! The list of figures with their units and limits, and the measured values.

/// One measured figure of an API server. The variants of this type are in the order of the printed table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Figure {
    /// Memory of the server before the first request.
    RestMemory,
    CreateCpu,
    UpdateCpu,
    /// Number of updates that the server answers per second.
    UpdateRate,
    /// The server's CPU time per event, by number of watchers. The writes are those of connections that send the next
    /// write as soon as they have an answer.
    EventCpu(usize),
    /// Time of a list, by number of objects.
    ListTime(usize),
    ListCpu(usize),
    /// Memory per object, by number of objects.
    ObjectMemory(usize),
    /// Memory per watcher that has received no event, by number of watchers.
    IdleMemory(usize),
    /// Memory per watcher that has received events, by number of watchers.
    WatcherMemory(usize),
    /// Memory of the whole server while this many watchers receive events.
    LoadMemory(usize),
    /// Number of updates that the server answers per second, with one watcher and with writes as fast as the server
    /// answers. The next two figures are CPU time and the watcher's delay with such writes.
    FloodRate,
    FloodCpu,
    FloodLag,
    /// Memory of the whole server with this many watches, and the time until all of them have received one change.
    WatchesMemory(usize),
    ToldAll(usize),
    /// Memory of the whole server with this many objects of 10 KiB, as a multiple of the objects' size in a list.
    ObjectsMemory(usize),
    /// The longest time of reading one small object, without other requests. The next figure is that time while this
    /// many objects are listed.
    ReadAlone,
    ReadBeside(usize),
    /// The time within which 99 of 100 events reach this many watchers: alone, beside a watch that is never read, and
    /// the ratio of both times.
    LagAlone(usize),
    LagBeside(usize),
    LagRatio(usize),
}

/// The texts of a figure for the printed table, the JSON file and the requirements.
pub(crate) struct Row {
    pub label: String,
    /// The key in the JSON, with the unit last.
    pub key: String,
    pub unit: &'static str,
    pub held: Limit,
}

/// The limit for the mock's value of a figure.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    /// The figure has no limit.
    Free,
    /// At most [`CPU_PART_MAX`] of the real server's value. The processor's current speed changes both values, so that
    /// the mock's value alone proves nothing.
    Compared,
    AtMost(f64),
    /// The aim is at least this value. A missed aim does not change the exit code.
    Aim(f64),
}

/// Maximum ratio of the mock's CPU time to that of a real server with its etcd, in the same run of the benchmark.
pub(crate) const CPU_PART_MAX: f64 = 1.0 / 20.0;
/// Maximum memory of an idle watch on a connection of its own, in KiB.
const IDLE: Limit = Limit::AtMost(25.0);
/// Limits of memory for a watcher and for objects: a tenth of the memory of kube-apiserver 1.36 without etcd, measured
/// on the reference machine. kube-apiserver needed 745 KiB for a watcher that receives events, and 62 MiB for 5,000
/// objects of 1 KiB.
const WATCHER: Limit = Limit::AtMost(74.5);
const OBJECT: Limit = Limit::AtMost(1.27);
const FLOOD: Limit = Limit::Aim(40_000.0);
/// Limit of memory with 18 watches of each of 1,000 nodes, in MiB.
const WATCHES: Limit = Limit::AtMost(500.0);
const TOLD_ALL: Limit = Limit::AtMost(1000.0);
const OBJECTS: Limit = Limit::AtMost(1.5);
const READ_BESIDE: Limit = Limit::AtMost(100.0);
const LAG_RATIO: Limit = Limit::AtMost(1.2);

impl Figure {
    pub fn row(self) -> Row {
        use Limit::{Compared, Free};
        let (label, key, unit, held) = match self {
            Self::RestMemory => ("memory of the server at rest", "rest_mib", "MiB", Free),
            Self::CreateCpu => ("CPU of a create (1 KiB, 16 connections)", "create_cpu_us", "us", Compared),
            Self::UpdateCpu => ("CPU of an update (1 KiB, 16 connections)", "update_cpu_us", "us", Compared),
            Self::UpdateRate => ("updates a second (1 KiB, 16 connections)", "updates_per_second", "/s", Free),
            Self::EventCpu(_) => {
                ("CPU of an event to one of # watchers, flat out", "event_#_watchers_cpu_us", "us", Compared)
            }
            Self::ListTime(_) => ("list of # objects", "list_#_ms", "ms", Free),
            Self::ListCpu(_) => ("CPU of a list of # objects", "list_#_cpu_ms", "ms", Free),
            Self::ObjectMemory(_) => ("memory of one of # objects of 1 KiB", "object_of_#_kib", "KiB", OBJECT),
            Self::IdleMemory(_) => ("memory of one of # idle watches", "idle_watch_of_#_kib", "KiB", IDLE),
            Self::WatcherMemory(_) => ("memory of one of # watchers", "watcher_of_#_kib", "KiB", WATCHER),
            Self::LoadMemory(_) => ("memory of the server, # watchers, flat out", "load_#_watchers_mib", "MiB", Free),
            Self::FloodRate => ("updates a second of one kind, one watcher", "flood_per_second", "/s", FLOOD),
            Self::FloodCpu => ("CPU of one of these updates with its event", "flood_cpu_us", "us", Free),
            Self::FloodLag => ("p99 until the watcher is told of it", "flood_lag_p99_ms", "ms", Free),
            Self::WatchesMemory(_) => ("memory of the server with # watches", "watches_#_mib", "MiB", WATCHES),
            Self::ToldAll(_) => ("until # watches are told of one change", "told_all_#_ms", "ms", TOLD_ALL),
            Self::ObjectsMemory(_) => ("memory / size of # objects of 10 KiB", "objects_#_memory_ratio", "x", OBJECTS),
            Self::ReadAlone => ("longest small read", "read_alone_max_ms", "ms", Free),
            Self::ReadBeside(_) => {
                ("longest small read beside a list of # objects", "read_beside_list_#_max_ms", "ms", READ_BESIDE)
            }
            Self::LagAlone(_) => ("p99 until one of # watchers is told", "lag_#_watchers_p99_ms", "ms", Free),
            Self::LagBeside(_) => {
                ("the same beside a watch that is not read", "lag_#_watchers_beside_unread_p99_ms", "ms", Free)
            }
            Self::LagRatio(_) => ("the second divided by the first", "lag_#_watchers_ratio", "x", LAG_RATIO),
        };
        let count = self.count();
        let (label, key) = (label.replace('#', &grouped(count)), key.replace('#', &count.to_string()));
        Row { label, key, unit, held }
    }

    /// The number of watchers or objects in the figure's name; 0 if it has none.
    const fn count(self) -> usize {
        match self {
            Self::EventCpu(count)
            | Self::ListTime(count)
            | Self::ListCpu(count)
            | Self::ObjectMemory(count)
            | Self::IdleMemory(count)
            | Self::WatcherMemory(count)
            | Self::LoadMemory(count)
            | Self::WatchesMemory(count)
            | Self::ToldAll(count)
            | Self::ObjectsMemory(count)
            | Self::ReadBeside(count)
            | Self::LagAlone(count)
            | Self::LagBeside(count)
            | Self::LagRatio(count) => count,
            _ => 0,
        }
    }
}

/// A number with thousands separators: `10000` as `10,000`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
