//! `no-pong`: a client's PINGs get no answer on HTTP/2 connections that carry a matching watch. Data is still sent,
//! unless the fault is `silent`: then nothing is sent, and the client's bytes are still read. A hit is one PING without
//! an answer. With `silent`, the first withheld bytes of a connection are also a hit.

use std::sync::{Arc, Weak};

use super::super::handle::{Handle, Way};
use super::super::settings::keys;
use super::super::{Behaviour, PlayedRow, Row, Scene, Stream};
use super::{Turns, forget_closed};

keys! {
    pub struct Keys {
        silent "silent": bool = ("false", "no other byte is sent either"),
        heals "heals": bool = ("false", ""),
    }
}

pub(crate) const ROW: PlayedRow = Row::connections("no-pong", "HTTP/2 PINGs of the client are not answered.")
    .finds_watches()
    .takes::<Keys>()
    .sees("HTTP/2 PINGs are not answered")
    .hit("a PING; with `silent` also the first bytes withheld")
    .played(|_| Box::new(NoPong::default()));

#[derive(Debug, Default)]
pub(crate) struct NoPong {
    turns: Turns,
    deaf: Vec<Weak<Handle>>,
}

impl NoPong {
    fn deafen(&mut self, stream: &Stream, scene: &mut Scene<'_>) {
        let handle = &stream.connection;
        if handle.http_version() != 2 || handle.ignores_pings().is_some() || !self.turns.take(scene) {
            return;
        }
        handle.carries(stream.what());
        if handle.ignore_pings(scene.id) {
            forget_closed(&mut self.deaf);
            self.deaf.push(Arc::downgrade(handle));
            if scene.fault.keys::<Keys>().silent == Some(true) {
                handle.freeze(scene.id, Way::Out);
            }
        }
    }
}

impl Behaviour for NoPong {
    fn begin(&mut self, open: &[Arc<Stream>], scene: &mut Scene<'_>) {
        for stream in open {
            self.deafen(stream, scene);
        }
    }

    fn opened(&mut self, stream: &Arc<Stream>, scene: &mut Scene<'_>) {
        self.deafen(stream, scene);
    }

    fn end(&mut self, _open: &[Arc<Stream>], scene: &mut Scene<'_>) {
        // A connection that is effectively dead does not recover by itself.
        if scene.fault.keys::<Keys>().silent == Some(true) && scene.fault.keys::<Keys>().heals != Some(true) {
            return;
        }
        for handle in self.deaf.drain(..).filter_map(|handle| handle.upgrade()) {
            handle.release(scene.id);
        }
    }
}
