//! Faults of a single mock: begins and ends each fault at its planned time, and prints each hit when it happens.

use std::time::{Duration, Instant};

use mock_faults::Player;

use crate::out::out;
use crate::run::describe;

/// Interval at which the counts of hits are read, for faults that wait for hits of another fault.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Maximum number of hits of one fault that are printed, because some faults hit every event.
const PRINTED_MAX: usize = 20;

/// The mocks that inject the faults of this command.
pub(super) struct Players<'a> {
    pub(super) roles: Vec<Role<'a>>,
    /// The engine that sees the writes of clients, if there is one.
    pub(super) writes: Option<&'a mock_faults::Faults>,
}

/// A mock, and a predicate for the families of faults that the mock can inject.
pub(super) type Role<'a> = (&'a dyn Player, fn(mock_faults::Family) -> bool);

impl<'a> Players<'a> {
    fn of(&self, fault: &mock_faults::Fault) -> Option<&'a dyn Player> {
        let family = fault.name.row().family;
        self.roles.iter().find(|(_, plays)| plays(family)).map(|(player, _)| *player)
    }

    fn begin(&self, index: usize, fault: &mock_faults::Fault) -> Result<(), mock_faults::Error> {
        let nobody = mock_faults::Error::NotPlayed { fault: fault.name.as_str(), why: "this mock does not play it" };
        self.of(fault).ok_or(nobody)?.begin(number(index), fault)
    }

    fn end(&self, index: usize, fault: &mock_faults::Fault) {
        self.of(fault).into_iter().for_each(|player| player.end(number(index)));
    }

    fn hits(&self, index: usize, fault: &mock_faults::Fault) -> u64 {
        self.of(fault).map_or(0, |player| player.hits(number(index)))
    }

    fn take_hits(&self) -> Vec<mock_faults::Hit> {
        self.roles.iter().flat_map(|(player, _)| player.take_hits()).collect()
    }
}

/// Begins and ends each fault at its planned time. Never returns.
pub(super) async fn play(players: &Players<'_>, faults: &[mock_faults::Fault], mut schedule: mock_faults::Schedule) {
    let start = Instant::now();
    let begin = |index: usize, at: Duration| {
        out!("{:>6.1}s begins: {}", at.as_secs_f64(), describe(&faults[index]));
        if let Err(error) = players.begin(index, &faults[index]) {
            crate::out::err!("longhaul: fault {} was refused: {error}", index + 1);
        }
        players.writes.into_iter().for_each(|writes| writes.began(number(index)));
    };
    if let Some(writes) = players.writes {
        writes.await_writes(faults.iter().cloned().enumerate().map(|(index, fault)| (number(index), fault)));
    }
    for index in schedule.armed_before() {
        begin(index, Duration::ZERO);
    }
    let mut printed = vec![0; faults.len()];
    loop {
        let now = start.elapsed();
        for fired in players.writes.map(mock_faults::Faults::take_fired).unwrap_or_default() {
            let index = usize::try_from(fired.fault.0).unwrap_or(usize::MAX);
            if fired.begun {
                out!("{:>6.1}s begins with a write: {}", now.as_secs_f64(), describe(&faults[index]));
                schedule.begun(index, now);
            } else {
                schedule.fired(index, now);
            }
        }
        for hit in players.take_hits() {
            tell(&hit, faults, &mut printed, now);
        }
        for index in (0..faults.len()).filter(|index| players.hits(*index, &faults[*index]) > 0) {
            schedule.hit(index, now);
        }
        while let Some(step) = schedule.due(now) {
            match step {
                mock_faults::Step::Begin(index) => begin(index, now),
                mock_faults::Step::End(index) => {
                    players.end(index, &faults[index]);
                    let (name, hits) = (faults[index].name.as_str(), players.hits(index, &faults[index]));
                    out!("{:>6.1}s ended: {name} ({hits} hits)", now.as_secs_f64());
                }
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Prints a hit if it is one of the first [`PRINTED_MAX`] hits of its fault.
fn tell(hit: &mock_faults::Hit, faults: &[mock_faults::Fault], printed: &mut [usize], now: Duration) {
    let index = usize::try_from(hit.fault.0).unwrap_or(usize::MAX);
    let Some((fault, printed)) = faults.get(index).zip(printed.get_mut(index)) else { return };
    *printed += 1;
    if *printed <= PRINTED_MAX {
        let more = if *printed == PRINTED_MAX { " (further hits are counted only)" } else { "" };
        out!("{:>6.1}s hit: {}: {}{more}", now.as_secs_f64(), fault.name.as_str(), hit.detail);
    }
}

fn number(index: usize) -> mock_faults::FaultId {
    mock_faults::FaultId(u32::try_from(index).unwrap_or(u32::MAX))
}
