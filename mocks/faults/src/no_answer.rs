//! `no-answer`: a request is read and never answered. The connection is closed when the client leaves or the fault
//! ends. A hit is one unanswered request.

use super::{Behaviour, Injection, Instead, PlayedRow, RequestFacts, Row, Scene};

pub(super) const ROW: PlayedRow = Row::requests("no-answer", "Requests are read and never answered.")
    .sees("the request is read and not answered; the connection closes when the fault ends")
    .played(|_| Box::new(NoAnswer));

#[derive(Debug)]
pub(super) struct NoAnswer;

impl Behaviour for NoAnswer {
    fn request(&mut self, asked: &RequestFacts<'_>, injection: &mut Injection, scene: &mut Scene<'_>) {
        if injection.instead.is_none() {
            scene.hit(format!("{} not answered", asked.describe()));
            injection.instead = Some(Instead::Silence(scene.active.clone()));
        }
    }
}
