//! `goaway`: HTTP/2 GOAWAY on the connections that carry a matching watch. With `drain` open streams go on until they
//! end; without it the connection is closed behind the frame. A hit is one connection that got the frame.

use std::sync::Arc;

use super::super::cut::needs_a_word;
use super::super::handle::Goaway;
use super::super::settings::keys;
use super::super::{Behaviour, Code, PlayedRow, Row, Scene, Stream};
use super::Turns;

keys! {
    pub struct Keys {
        code "code": Code = ("`no-error`", ""),
        drain "drain": bool = ("true", "open streams go on"),
    }
}

pub(crate) const ROW: PlayedRow =
    Row::connections("goaway", "HTTP/2 GOAWAY on the connections that carry a matching watch.")
        .finds_watches()
        .takes::<Keys>()
        .instant()
        .refuses(|fault| needs_a_word(fault.keys::<Keys>().code))
        .sees("HTTP/2 GOAWAY; without `drain` the connection closes")
        .hit("a connection")
        .played(|_| Box::new(GoAway::default()));

#[derive(Debug, Default)]
pub(crate) struct GoAway {
    turns: Turns,
}

impl Behaviour for GoAway {
    fn begin(&mut self, open: &[Arc<Stream>], scene: &mut Scene<'_>) {
        for stream in open {
            self.opened(stream, scene);
        }
    }

    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        let handle = &stream.connection;
        let code = match scene.fault.keys::<Keys>().code {
            Some(Code::Http2(code)) => code.number(),
            _ => 0,
        };
        let drain = scene.fault.keys::<Keys>().drain.unwrap_or(true);
        if handle.http_version() != 2 || handle.is_leaving() || !self.turns.take(scene) {
            return;
        }
        handle.carries(stream.what());
        if handle.go_away(Goaway { code, drain }) {
            let then = if drain { "open streams go on" } else { "then closed" };
            scene.hit(format!("{}: GOAWAY with code {code:#x}, {then}", handle.describe()));
        }
    }
}
