//! `refuse-connections`: new TCP connections to the subject's endpoints are reset, closed, or accepted and never
//! served. A connection that is never served stays open until its client closes it, even after the fault. A hit is one
//! refused connection.

use super::super::handle::{Handle, Welcome};
use super::super::settings::keys;
use super::super::{Behaviour, How, PlayedRow, Row, Scene};
use super::Turns;

keys! {
    pub struct Keys {
        how "how": How = ("`reset`", "`reset`, `close`, `hang`"),
    }
}

pub(crate) const ROW: PlayedRow =
    Row::connections("refuse-connections", "New TCP connections of the subject are not served.")
        .takes::<Keys>()
        .sees("new connections fail; with `hang` they are accepted and never served")
        .hit("a connection")
        .played(|_| Box::new(RefuseConnections::default()));

#[derive(Debug, Default)]
pub(crate) struct RefuseConnections {
    turns: Turns,
}

impl Behaviour for RefuseConnections {
    fn welcome(&mut self, handle: &Handle, welcome: &mut Welcome, scene: &mut Scene<'_>) {
        if welcome.refused.is_some() || !self.turns.take_new(scene) {
            return;
        }
        let how = scene.fault.keys::<Keys>().how.unwrap_or(How::Reset);
        welcome.refused = Some(how);
        let what = match how {
            How::Reset => "reset when it was accepted",
            How::Close => "closed when it was accepted",
            How::Hang => "accepted and never served",
        };
        scene.hit(format!("{} {what}", handle.describe()));
    }
}
