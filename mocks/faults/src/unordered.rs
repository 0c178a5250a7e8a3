//! `unordered`: the items of lists, and initial events, are sent newest first, so that the last item is the oldest. A
//! hit is one reversed answer with more than one item.

use super::{Behaviour, Injection, On, PlayedRow, RequestFacts, Row, Scene};

pub(super) const ROW: PlayedRow = Row::requests("unordered", "Lists and initial events come newest first.")
    .on(On::List)
    .sees("items and initial events come newest first; counts answers with two items or more")
    .played(|_| Box::new(Unordered));

#[derive(Debug)]
pub(super) struct Unordered;

impl Behaviour for Unordered {
    fn request(&mut self, _asked: &RequestFacts<'_>, injection: &mut Injection, scene: &mut Scene<'_>) {
        injection.newest_first = Some(scene.active.clone());
    }
}
