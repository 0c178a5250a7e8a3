//! `freeze`: no bytes move in either direction on connections that carry a matching watch. The sockets stay open and
//! the kernel still acknowledges packets, as at a proxy that has lost its upstream; TCP keep-alive therefore notices
//! nothing. A hit is one connection on which bytes were withheld.

use std::sync::{Arc, Weak};

use super::super::handle::{Handle, Way};
use super::super::settings::keys;
use super::super::{Behaviour, NewConnections, PlayedRow, Row, Scene, Stream};
use super::{Turns, forget_closed};

keys! {
    pub struct Keys {
        new_connections "newConnections": NewConnections = ("", "`healthy` or `frozen`"),
        heals "heals": bool = ("false", ""),
    }
}

pub(crate) const ROW: PlayedRow = Row::connections(
    "freeze",
    "No byte moves any more on the connections that carry a matching watch; they stay open.",
)
.finds_watches()
.takes::<Keys>()
.sees("no byte passes in either direction; the socket stays open and the kernel acknowledges")
.hit("a connection with bytes withheld")
.played(|_| Box::new(Freeze::default()));

#[derive(Debug, Default)]
pub(crate) struct Freeze {
    turns: Turns,
    frozen: Vec<Weak<Handle>>,
}

impl Freeze {
    fn freeze(&mut self, stream: &Stream, scene: &mut Scene<'_>) {
        let handle = &stream.connection;
        if handle.is_frozen() || !self.turns.take(scene) {
            return;
        }
        handle.carries(stream.what());
        let stopped = [Way::In, Way::Out].map(|way| handle.freeze(scene.id, way));
        if stopped.contains(&true) {
            forget_closed(&mut self.frozen);
            self.frozen.push(Arc::downgrade(handle));
        }
    }
}

impl Behaviour for Freeze {
    fn begin(&mut self, open: &[Arc<Stream>], scene: &mut Scene<'_>) {
        for stream in open {
            self.freeze(stream, scene);
        }
    }

    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        let fault = scene.fault;
        // A fault that is armed before the subject starts, or waits for its turn, is meant for later connections.
        let waits = fault.waits();
        let default = if waits { NewConnections::Frozen } else { NewConnections::Healthy };
        if fault.keys::<Keys>().new_connections.unwrap_or(default) == NewConnections::Frozen {
            self.freeze(stream, scene);
        }
    }

    fn end(&mut self, _open: &[Arc<Stream>], scene: &mut Scene<'_>) {
        if scene.fault.keys::<Keys>().heals == Some(true) {
            for handle in self.frozen.drain(..).filter_map(|handle| handle.upgrade()) {
                handle.release(scene.id);
            }
        }
    }
}
