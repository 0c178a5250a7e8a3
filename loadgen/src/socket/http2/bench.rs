//! The frames of a call and of its answer without a connection, for the benchmarks.

use std::time::Instant;

use super::frame;
use super::request::Head;
use super::session::{Ended, Session};

/// `:status: 200`.
const OK: &[u8] = &[0x88];

/// A session whose server answers at once.
pub(crate) struct Frames {
    session: Session,
    head: Head,
    now: Instant,
    wire: Vec<u8>,
}

impl Frames {
    pub(crate) fn new(head: Head) -> Self {
        let now = Instant::now();
        let mut session = Session::new(now);
        session.written(true);
        let mut wire = Vec::new();
        frame::settings(&[], &mut wire);
        // What the server says first is nothing that could be wrong.
        let _ = session.feed(&wire, now);
        Self { session, head, now, wire }
    }

    /// One call with this body and this answer; false when that does not arrive.
    pub(crate) fn call(&mut self, body: [&[u8]; 3], answer: &[u8]) -> bool {
        let length: usize = body.iter().map(|part| part.len()).sum();
        let id = self.session.open(0, &self.head, length);
        self.session.fill(|_| body);
        self.session.written(true);
        self.wire.clear();
        frame::window_update(0, u32::try_from(length).unwrap_or(1), &mut self.wire);
        frame::headers(&[OK], id, false, &mut self.wire);
        frame::data(answer.len(), id, true, &mut self.wire);
        self.wire.extend_from_slice(answer);
        let fed = self.session.feed(&self.wire, self.now);
        let Some(Ended::Answer { place, .. }) = self.session.next_ended() else { return false };
        let arrived = fed.is_ok() && self.session.answer(place).0.body == answer;
        self.session.release(place);
        arrived
    }
}
