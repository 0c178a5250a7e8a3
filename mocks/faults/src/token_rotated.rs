//! `token-rotated`: the subject's token file gets a new token, and the old token is refused with 401 at once or after a
//! set time. Open streams continue. Each refused request is a hit, and so is the first request that certainly carries
//! the new token. If the client sends no request, there is no hit.

use std::sync::Arc;

use std::time::Duration;

use units::Span;

use super::settings::keys;
use super::{Behaviour, Fault, Host, PlayedRow, RequestFacts, Row, Scene, Stream};

keys! {
    pub struct RotatedKeys {
        stays "stays": Span = ("0s", "how long the old token is still accepted; in a cluster some minutes"),
    }
}

pub(super) const ROW: PlayedRow =
    Row::server("token-rotated", "The subject's token is refused from now on; its token file has a new one.")
        .takes::<RotatedKeys>()
        .instant()
        .sees("the client's token is refused, at once or after `stays`; its token file has a new one")
        .hit("a refusal, and the first request with the new token")
        .played(|fault| Box::new(TokenRotated::new(fault)));

#[derive(Debug)]
pub(super) struct TokenRotated {
    stays: Duration,
    rotated: Vec<Rotated>,
}

/// One user's new token.
#[derive(Debug)]
struct Rotated {
    user: Arc<str>,
    /// The description of the rotation in hits.
    what: String,
    /// The time until which the old token is accepted too. Before that time, a request does not prove that the client
    /// has the new token.
    ends_us: u64,
    /// True once a client has used the new token.
    is_known: bool,
}

impl TokenRotated {
    fn new(fault: &Fault) -> Self {
        let stays = fault.keys::<RotatedKeys>().stays.map_or(Duration::ZERO, |stays| stays.0);
        Self { stays, rotated: Vec::new() }
    }
}

impl Behaviour for TokenRotated {
    fn prepare(&mut self, host: &dyn Host, targets: &[Arc<str>]) {
        let stays_us = u64::try_from(self.stays.as_micros()).unwrap_or(u64::MAX);
        let rotate = |user: &Arc<str>| {
            let what = host.rotate_token(user, self.stays)?;
            // Read afterwards, so that the old token is certainly refused by then.
            let ends_us = if stays_us == 0 { 0 } else { host.now_us().saturating_add(stays_us) };
            Some(Rotated { user: user.clone(), what, ends_us, is_known: false })
        };
        self.rotated = targets.iter().filter_map(rotate).collect();
    }

    /// Does nothing: open streams continue.
    fn begin(&mut self, _open: &[Arc<Stream>], _scene: &mut Scene<'_>) {}

    /// Counts the first request with the new token. A request with the old token is refused before this call.
    fn met(&mut self, asked: &RequestFacts<'_>, scene: &mut Scene<'_>) -> bool {
        let Some(its) = self.rotated.iter_mut().find(|its| its.user == *asked.user) else { return false };
        if scene.now_us < its.ends_us {
            return false;
        }
        if !std::mem::replace(&mut its.is_known, true) {
            scene.hit(format!("{}: {} comes with the new one", its.what, asked.describe()));
        }
        true
    }

    fn old_token_refused(&mut self, user: &str, scene: &mut Scene<'_>) -> bool {
        let its = self.rotated.iter().any(|its| *its.user == *user);
        if its {
            scene.hit(format!("the old token of {user} refused with 401"));
        }
        its
    }
}
