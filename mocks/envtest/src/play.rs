//! The task that begins and ends faults in a server and writes the records.
//!
//! This task begins and ends the session's faults at their times. Drawn faults begin with requests, and this task only
//! ends them. If the session names the manager's user agent or user, faults hit only the manager's requests; otherwise
//! they hit all clients.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mock_faults::{Fault, FaultId, Hit, Schedule, Step};
use mock_kube::Server;
use parking_lot::Mutex;

use super::draw::{Drawing, Names};
use super::record::Recorder;
use super::session::{Manager, Session};

/// Interval at which the task checks whether a fault must begin or end.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Interval at which records are written; a SIGKILL loses the records of at most this time.
const WRITE_EVERY: Duration = Duration::from_millis(250);

/// The faults of one control plane.
pub(crate) struct Play {
    server: Arc<Server>,
    faults: Vec<Fault>,
    /// `None` if the session's faults are no valid schedule. `longhaul envtest` checks the session's faults before it
    /// starts a suite.
    schedule: Option<Schedule>,
    drawing: Option<Drawing>,
    recorder: Arc<Mutex<Option<Recorder>>>,
}

impl Play {
    /// Faults affect requests from this call on, so callers must call this function before the suite's first request.
    pub fn new(server: &Arc<Server>, session: &Session, recorder: Arc<Mutex<Option<Recorder>>>) -> Self {
        let narrow = |fault: &Fault| narrowed(fault.clone(), &session.manager);
        let faults: Vec<Fault> = session.faults.iter().map(narrow).collect();
        match &session.manager.user {
            Some(user) => server.faults().target_users([user]),
            None => server.faults().target_everybody(),
        }
        let first = u32::try_from(faults.len()).unwrap_or(u32::MAX);
        let drawing =
            (session.drawn.is_any()).then(|| Drawing::new(session.seed, session.drawn, session.manager.clone(), first));
        if let Some(drawing) = &drawing {
            server.faults().draw_by(Box::new(drawing.clone()));
        }
        let numbered = faults.iter().cloned().enumerate().map(|(index, fault)| (id(index), fault));
        server.faults().await_writes(numbered);
        let schedule = Schedule::new(&faults).ok();
        let mut play = Self { server: server.clone(), faults, schedule, drawing, recorder };
        let armed = play.schedule.as_mut().map(Schedule::armed_before).unwrap_or_default();
        for index in armed {
            play.begin(index);
        }
        play
    }

    pub fn names(&self) -> Names {
        let written = self.faults.iter().map(|fault| fault.name.as_str()).collect();
        Names::new(written, self.drawing.clone())
    }

    /// Begins and ends faults and writes records until the task is aborted.
    pub async fn run(mut self) {
        let Some(mut schedule) = self.schedule.take() else { return };
        let start = Instant::now();
        let mut written = start;
        loop {
            self.look(&mut schedule, start);
            if written.elapsed() >= WRITE_EVERY {
                written = Instant::now();
                if let Some(recorder) = &mut *self.recorder.lock() {
                    recorder.write();
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Records the hits of faults, and begins and ends the faults whose time has come.
    fn look(&self, schedule: &mut Schedule, start: Instant) {
        let faults = self.server.faults();
        let now = Instant::now();
        for fired in faults.take_fired() {
            let index = usize::try_from(fired.fault.0).unwrap_or(usize::MAX);
            if fired.begun { schedule.begun(index, now - start) } else { schedule.fired(index, now - start) }
        }
        for hit in faults.take_hits() {
            schedule.hit(usize::try_from(hit.fault.0).unwrap_or(usize::MAX), now - start);
            if let Some(drawing) = &self.drawing {
                drawing.hit(&hit, now);
            }
            self.record(&hit);
        }
        while let Some(step) = schedule.due(now - start) {
            match step {
                Step::Begin(index) => self.begin(index),
                Step::End(index) => faults.end(id(index)),
            }
        }
        for over in self.drawing.iter().flat_map(|drawing| drawing.over(now)) {
            faults.end(over);
        }
    }

    fn record(&self, hit: &Hit) {
        if let Some(recorder) = &mut *self.recorder.lock() {
            recorder.hit(hit);
        }
    }

    fn begin(&self, index: usize) {
        if let Err(error) = self.server.faults().begin(id(index), &self.faults[index]) {
            eprintln!("etcd: fault {} (`{}`) was refused: {error}", index + 1, self.faults[index].name.as_str());
        }
    }
}

/// Limits a fault to requests of the manager, unless the fault names a user agent.
fn narrowed(mut fault: Fault, manager: &Manager) -> Fault {
    if fault.user_agent.is_none() {
        fault.user_agent.clone_from(&manager.agent);
    }
    fault
}

fn id(index: usize) -> FaultId {
    FaultId(u32::try_from(index).unwrap_or(u32::MAX))
}
