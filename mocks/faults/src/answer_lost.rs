//! `answer-lost`: a request is carried out, but its answer does not arrive. The client gets a reset or an error instead.
//! A hit is one lost answer of a successful request.

use super::settings::{error_status, keys};
use super::{Behaviour, ErrorBody, Injection, Lost, On, PlayedRow, Refusal, RequestFacts, Row, Scene};

keys! {
    pub struct Keys {
        status "status": u16 = ("none", "this HTTP error arrives instead of the answer, such as 504; without it a reset"),
    }
}

pub(super) const ROW: PlayedRow = Row::requests("answer-lost", "Requests are carried out, and their answers are lost.")
    .takes::<Keys>()
    .on(On::Update)
    .refuses(|fault| error_status(fault.keys::<Keys>().status))
    .sees("the request is carried out; the stream (HTTP/2) or the connection is reset, or this error is sent")
    .drawn(8, Some(5))
    .played(|_| Box::new(AnswerLost));

#[derive(Debug)]
pub(super) struct AnswerLost;

impl Behaviour for AnswerLost {
    fn request(&mut self, _asked: &RequestFacts<'_>, injection: &mut Injection, scene: &mut Scene<'_>) {
        let refusal = scene.fault.keys::<Keys>().status.map(|status| Refusal {
            status,
            reason: None,
            retry_after_s: None,
            body: ErrorBody::Status,
        });
        injection.lost = Some(Lost { refusal, active: scene.active.clone() });
    }
}
