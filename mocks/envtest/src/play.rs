//! Faults at their times, and the records meanwhile.
//!
//! Owns one task beside a server. Whom faults may touch is known only as users come: without a name for the manager everybody is.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mock_faults::{Fault, FaultId, Schedule, Step};
use mock_kube::Server;
use parking_lot::Mutex;

use super::record::Recorder;
use super::session::Manager;

/// How often it looks what is due.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How often records are written: what a SIGKILL may cost.
const WRITE_EVERY: Duration = Duration::from_millis(250);
/// Users that kits make before anybody was seen.
const USUAL: [&str; 4] = ["admin", "default", "kubernetes-admin", "kubeapitest"];

/// Plays until it is aborted. The faults were checked by whoever wrote the session.
pub(crate) async fn play(
    server: Arc<Server>,
    faults: Vec<Fault>,
    manager: Manager,
    recorder: Arc<Mutex<Option<Recorder>>>,
) {
    let faults: Vec<Fault> = faults.into_iter().map(|fault| narrowed(fault, &manager)).collect();
    let Ok(mut schedule) = Schedule::new(&faults) else { return };
    let mut users: BTreeSet<String> = match &manager.user {
        Some(user) => BTreeSet::from([user.clone()]),
        None => USUAL.into_iter().map(str::to_owned).collect(),
    };
    server.faults().target_users(&users);
    let start = Instant::now();
    let mut written = start;
    for index in schedule.armed_before() {
        begin(&server, index, &faults);
    }
    loop {
        if !faults.is_empty() {
            if manager.user.is_none() {
                let known = users.len();
                users.extend(server.users());
                if users.len() > known {
                    server.faults().target_users(&users);
                }
            }
            let now = start.elapsed();
            for hit in server.faults().take_hits() {
                schedule.hit(usize::try_from(hit.fault.0).unwrap_or(usize::MAX), now);
                if let Some(recorder) = &mut *recorder.lock() {
                    recorder.hit(&hit, &faults);
                }
            }
            while let Some(step) = schedule.due(now) {
                match step {
                    Step::Begin(index) => begin(&server, index, &faults),
                    Step::End(index) => server.faults().end(id(index)),
                }
            }
        }
        if written.elapsed() >= WRITE_EVERY {
            written = Instant::now();
            if let Some(recorder) = &mut *recorder.lock() {
                recorder.write();
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn begin(server: &Server, index: usize, faults: &[Fault]) {
    if let Err(error) = server.faults().begin(id(index), &faults[index]) {
        eprintln!("etcd: fault {} (`{}`) was refused: {error}", index + 1, faults[index].name.as_str());
    }
}

/// A fault is about the manager, unless it says about whom it is.
fn narrowed(mut fault: Fault, manager: &Manager) -> Fault {
    if fault.user_agent.is_none() {
        fault.user_agent.clone_from(&manager.agent);
    }
    fault
}

fn id(index: usize) -> FaultId {
    FaultId(u32::try_from(index).unwrap_or(u32::MAX))
}
