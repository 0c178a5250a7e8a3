//! The effect of each frame from the server on a session.

use std::collections::VecDeque;
use std::time::Instant;

use super::{Ended, HEAD_MAX_BYTES, Session};
use crate::failure::Failure;
use crate::socket::http2::frame::{self, Code, Fault, Frame};
use crate::socket::http2::streams::{Broken, Stream};

/// Maximum number of bytes of replies (to PING and SETTINGS) that the server has not read. A server that leaves more
/// replies unread is hostile.
pub(super) const REPLIES_MAX_BYTES: usize = 256 << 10;
/// Maximum number of bytes of a GOAWAY's text that messages contain.
const DEBUG_TEXT_BYTES: usize = 200;

impl Session {
    pub(super) fn on_frame(&mut self, frame: Frame<'_>, now: Instant) -> Result<(), Fault> {
        if !self.welcomed && !matches!(frame, Frame::Settings(_)) {
            return Err(Fault::protocol("it does not begin with SETTINGS"));
        }
        if self.continued.is_some() && !matches!(frame, Frame::Continuation { .. }) {
            return Err(Fault::protocol("a header block is interrupted"));
        }
        if !self.brings_something(frame) {
            self.patience.spend(now)?;
        }
        match frame {
            Frame::Data { stream, data, counted, end } => self.on_data(stream, (data, counted), end),
            Frame::Headers { stream, block, whole: true, end } => self.on_block(stream, block, end, now),
            Frame::Headers { stream, block, whole: false, end } => {
                self.continued = Some((stream, end));
                self.block.clear();
                self.block.extend_from_slice(block);
                Ok(())
            }
            Frame::Continuation { stream, block, whole } => self.on_continuation(stream, block, whole, now),
            Frame::Reset { stream, code } => self.on_reset(stream, code),
            Frame::Settings(settings) => self.on_settings(settings),
            Frame::SettingsAcknowledged | Frame::Ignored => Ok(()),
            Frame::Ping(opaque) => {
                frame::pong(opaque, &mut self.out);
                self.replied()
            }
            Frame::Pong => {
                self.pinged = None;
                Ok(())
            }
            Frame::GoAway { last, code, text } => {
                self.on_go_away(last, code, text);
                Ok(())
            }
            Frame::WindowUpdate { stream, increment } => self.on_window_update(stream, increment),
        }
    }

    /// Whether the frame brings a call nearer to its end. The number of such frames is bounded, because a body has a
    /// largest size, and a stream has one end. Interim answers count too, because only their headers show that they are
    /// interim.
    fn brings_something(&mut self, frame: Frame<'_>) -> bool {
        match frame {
            Frame::Data { stream, data, end, .. } => (end || !data.is_empty()) && self.streams.find(stream).is_some(),
            Frame::Headers { stream, whole: true, .. } | Frame::Reset { stream, .. } => {
                self.streams.find(stream).is_some()
            }
            _ => false,
        }
    }

    fn on_data(&mut self, id: u32, (data, counted): (&[u8], u32), end: bool) -> Result<(), Fault> {
        self.known(id)?;
        // Data for ended streams also uses the connection's window.
        if let Some(increment) = self.grant.use_up(counted)? {
            frame::window_update(0, increment, &mut self.out);
        }
        let Some(stream) = self.streams.find(id) else { return Ok(()) };
        let increment = stream.grant.use_up(counted)?;
        let step = stream.on_data(data, end);
        if let Some(increment) = increment
            && matches!(step, Ok(false))
        {
            frame::window_update(id, increment, &mut self.out);
        }
        self.step(id, step);
        Ok(())
    }

    fn on_continuation(&mut self, id: u32, block: &[u8], whole: bool, now: Instant) -> Result<(), Fault> {
        let Some((of, end)) = self.continued.filter(|(of, _)| *of == id) else {
            return Err(Fault::protocol("a header block goes on that never began"));
        };
        if self.block.len() + block.len() > HEAD_MAX_BYTES {
            let text = "the head of an answer is larger than 512 KiB";
            return Err(Fault { code: Code::ENHANCE_YOUR_CALM, text });
        }
        self.block.extend_from_slice(block);
        if !whole {
            return Ok(());
        }
        self.continued = None;
        let block = std::mem::take(&mut self.block);
        self.on_block(of, &block, end, now)
    }

    fn on_block(&mut self, id: u32, block: &[u8], end: bool, now: Instant) -> Result<(), Fault> {
        self.known(id)?;
        self.head.clear();
        // Also for ended streams, because it changes the table.
        self.decoder.read(block, &mut self.head)?;
        if let Some(stream) = self.streams.find(id) {
            let step = stream.on_head(&self.head, end, now);
            let interim = stream.begun.is_none();
            self.step(id, step);
            if interim {
                self.patience.spend(now)?;
            }
        }
        Ok(())
    }

    /// Handles the result of a frame for its stream: the stream continues, its answer is complete, or it failed.
    fn step(&mut self, id: u32, step: Result<bool, Broken>) {
        match step {
            Ok(false) => {}
            Ok(true) => {
                let Some(place) = self.streams.end(id) else { return };
                let stream = self.streams.at(place);
                if stream.sent < stream.length {
                    // A complete answer does not need the rest of the request (RFC 9113, section 8.1).
                    frame::reset(id, Code::CANCEL, &mut self.out);
                }
                self.ended.push_back(Ended::Answer { call: stream.call, place });
            }
            Err((code, failure)) => {
                frame::reset(id, code, &mut self.out);
                self.end_unanswered(id, failure, false);
            }
        }
    }

    fn on_reset(&mut self, id: u32, code: Code) -> Result<(), Fault> {
        self.known(id)?;
        let failure = Failure::http(format!("the server reset the stream: {code}"));
        // RFC 9113, section 8.7: a refused stream was not processed.
        self.end_unanswered(id, failure, code == Code::REFUSED_STREAM);
        Ok(())
    }

    fn on_settings(&mut self, settings: &[u8]) -> Result<(), Fault> {
        self.welcomed = true;
        let before = i64::from(self.peer.window_bytes);
        self.peer.change(settings)?;
        let by = i64::from(self.peer.window_bytes) - before;
        if by != 0 {
            let mut changed = Ok(());
            let sending = &mut self.sending;
            self.streams.each_open(|id, stream| {
                changed = changed.and(stream.allowance.change(by));
                enqueue(id, stream, sending);
            });
            changed?;
        }
        frame::settings_acknowledged(&mut self.out);
        self.replied()
    }

    /// Handles a GOAWAY: calls that the server will never process may use another connection.
    fn on_go_away(&mut self, last: u32, code: Code, text: &[u8]) {
        let text = String::from_utf8_lossy(&text[..text.len().min(DEBUG_TEXT_BYTES)]);
        let farewell = if text.is_empty() { format!("GOAWAY {code}") } else { format!("GOAWAY {code}: `{text}`") };
        while let Some((id, _)) = self.streams.newest()
            && id > last
        {
            let failure = Failure::http(format!("the server did not take the request: {farewell}"));
            self.end_unanswered(id, failure, true);
        }
        self.farewell = Some(farewell);
    }

    fn on_window_update(&mut self, id: u32, increment: u32) -> Result<(), Fault> {
        if increment == 0 {
            return Err(Fault::protocol("a window grows by nothing"));
        }
        if id == 0 {
            return self.allowance.change(increment.into());
        }
        self.known(id)?;
        if let Some(stream) = self.streams.find(id) {
            stream.allowance.change(increment.into())?;
            enqueue(id, stream, &mut self.sending);
        }
        Ok(())
    }

    /// Refuses frames of streams that were never opened.
    fn known(&self, id: u32) -> Result<(), Fault> {
        if id.is_multiple_of(2) || id >= self.next_id {
            return Err(Fault::protocol("a frame names a stream that was never opened"));
        }
        Ok(())
    }

    /// Counts the bytes of replies to the server.
    fn replied(&mut self) -> Result<(), Fault> {
        const REPLY_BYTES: usize = 17;
        self.replies += REPLY_BYTES;
        if self.replies > REPLIES_MAX_BYTES {
            return Err(Fault { code: Code::ENHANCE_YOUR_CALM, text: "it asks and does not read the answers" });
        }
        Ok(())
    }
}

fn enqueue(id: u32, stream: &mut Stream, sending: &mut VecDeque<u32>) {
    if !stream.queued && stream.sent < stream.length && stream.allowance.bytes() > 0 {
        stream.queued = true;
        sending.push_back(id);
    }
}
