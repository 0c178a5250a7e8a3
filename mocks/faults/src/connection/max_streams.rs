//! `max-streams`: new HTTP/2 connections to the subject's endpoints allow few streams at a time
//! (`SETTINGS_MAX_CONCURRENT_STREAMS`). A hit is one connection that got the setting; it keeps that limit.

use super::super::handle::{Handle, Welcome};
use super::super::settings::{keys, not_zero};
use super::super::{Behaviour, PlayedRow, Row, Scene};
use super::Turns;

keys! {
    pub struct Keys {
        streams "streams": u32 = ("10", ""),
    }
}

pub(crate) const ROW: PlayedRow =
    Row::connections("max-streams", "New HTTP/2 connections allow few concurrent streams.")
        .takes::<Keys>()
        .refuses(|fault| not_zero("streams", fault.keys::<Keys>().streams == Some(0)))
        .sees("new HTTP/2 connections allow so many concurrent streams")
        .hit("a connection")
        .played(|_| Box::new(MaxStreams::default()));

/// Fewer than the watches of any real operator.
const STREAMS: u32 = 10;

#[derive(Debug, Default)]
pub(crate) struct MaxStreams {
    turns: Turns,
}

impl Behaviour for MaxStreams {
    fn welcome(&mut self, _handle: &Handle, welcome: &mut Welcome, scene: &mut Scene<'_>) {
        if welcome.streams_max.is_none() && self.turns.take_new(scene) {
            welcome.streams_max = Some((scene.id, scene.fault.keys::<Keys>().streams.unwrap_or(STREAMS)));
        }
    }
}
