//! `certificate`: new connections to the subject's endpoints get a wrong or changed server certificate. A hit is one
//! connection that got this certificate, however the client reacted.

use super::super::handle::{Handle, Welcome};
use super::super::settings::keys;
use super::super::{Behaviour, Kind, PlayedRow, Row, Scene};
use super::Turns;

keys! {
    pub struct Keys {
        kind "kind": Kind = ("`expired`", "`expired`, `unknown-ca`, `rotated`"),
    }
}

pub(crate) const ROW: PlayedRow = Row::connections("certificate", "New connections are shown another certificate.")
    .takes::<Keys>()
    .sees("another certificate on new connections; `rotated` is a valid one")
    .hit("a connection")
    .played(|_| Box::new(Certificate::default()));

#[derive(Debug, Default)]
pub(crate) struct Certificate {
    turns: Turns,
}

impl Behaviour for Certificate {
    fn welcome(&mut self, handle: &Handle, welcome: &mut Welcome, scene: &mut Scene<'_>) {
        if welcome.certificate.is_some() || welcome.refused.is_some() || !self.turns.take_new(scene) {
            return;
        }
        let kind = scene.fault.keys::<Keys>().kind.unwrap_or(Kind::Expired);
        welcome.certificate = Some((scene.id, kind));
        let what = match kind {
            Kind::Expired => "an expired certificate",
            Kind::UnknownCa => "the certificate of an unknown authority",
            Kind::Rotated => "a new certificate of the same authority",
        };
        scene.hit(format!("{} shown {what}", handle.describe()));
    }
}
