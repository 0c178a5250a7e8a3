//! `token-rotated`: the subject's token is refused with 401 from now on, and its token file has a new one. Open streams live
//! on. A hit is each request that still comes with the old one, and the first that comes with the new one: who asks for nothing has
//! noticed nothing.

use std::sync::Arc;

use super::{Asked, Behaviour, Host, PlayedRow, Row, Scene, Stream};

pub(super) const ROW: PlayedRow =
    Row::server("token-rotated", "The subject's token is refused from now on; its token file has a new one.")
        .instant()
        .sees("the client's token is refused; a new one stands in its token file")
        .hit("a refusal; the first request with the new token")
        .played(|_| Box::new(TokenRotated::default()));

#[derive(Debug, Default)]
pub(super) struct TokenRotated {
    rotated: Vec<Rotated>,
}

/// One user's token.
#[derive(Debug)]
struct Rotated {
    user: Arc<str>,
    /// What was done.
    what: String,
    /// The new one was used.
    is_known: bool,
}

impl Behaviour for TokenRotated {
    fn prepare(&mut self, host: &dyn Host, targets: &[Arc<str>]) {
        let rotate =
            |user: &Arc<str>| Some(Rotated { user: user.clone(), what: host.rotate_token(user)?, is_known: false });
        self.rotated = targets.iter().filter_map(rotate).collect();
    }

    /// Open streams live on.
    fn begin(&mut self, _open: &[Arc<Stream>], _scene: &mut Scene<'_>) {}

    /// With the old token nobody gets as far.
    fn met(&mut self, asked: &Asked<'_>, scene: &mut Scene<'_>) -> bool {
        let Some(its) = self.rotated.iter_mut().find(|its| its.user == *asked.user) else { return false };
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
