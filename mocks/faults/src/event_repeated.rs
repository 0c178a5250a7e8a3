//! `event-repeated`: a watch that resumes from a revision first gets the last events up to that revision again, then
//! the new events. A hit is one watch that got repeated events.

use super::settings::{keys, not_zero};
use super::{Behaviour, Injection, PlayedRow, RequestFacts, Row, Scene};

keys! {
    pub struct Keys {
        events "events": u64 = ("1", ""),
    }
}

pub(super) const ROW: PlayedRow =
    Row::watches("event-repeated", "A watch that resumes gets the last events before its revision once more.")
        .takes::<Keys>()
        .refuses(|fault| not_zero("events", fault.keys::<Keys>().events == Some(0)))
        .sees("a resumed watch begins with the last events again")
        .hit("a watch that resumes")
        .played(|_| Box::new(EventRepeated));

/// The default number of repeated events.
const EVENTS: u64 = 1;

#[derive(Debug)]
pub(super) struct EventRepeated;

impl Behaviour for EventRepeated {
    fn request(&mut self, _asked: &RequestFacts<'_>, injection: &mut Injection, scene: &mut Scene<'_>) {
        if !scene.spent() && scene.chance() {
            injection.repeat = Some((scene.fault.keys::<Keys>().events.unwrap_or(EVENTS), scene.active.clone()));
        }
    }
}
