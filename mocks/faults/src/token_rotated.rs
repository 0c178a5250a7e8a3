//! `token-rotated`: the subject's token is refused with 401 from now on, and its token file has a new one. Open streams live
//! on. A hit is the rotation of one user's token, and each request that still comes with the old one.

use std::sync::Arc;

use super::{Behaviour, Host, Row, Scene, Stream};

pub(super) const ROW: Row =
    Row::server("token-rotated", "The subject's token is refused from now on; its token file has a new one.")
        .instant()
        .sees("the client's token is refused; a new one stands in its token file")
        .hit("the rotation, and each refusal")
        .played(|_| Box::new(TokenRotated::default()));

#[derive(Debug, Default)]
pub(super) struct TokenRotated {
    rotated: Vec<(Arc<str>, String)>,
}

impl Behaviour for TokenRotated {
    fn prepare(&mut self, host: &dyn Host, targets: &[Arc<str>]) {
        self.rotated = targets.iter().filter_map(|user| Some((user.clone(), host.rotate_token(user)?))).collect();
    }

    fn begin(&mut self, _open: &[Arc<Stream>], scene: &mut Scene<'_>) {
        for (_, what) in &self.rotated {
            scene.hit(what.clone());
        }
    }

    fn old_token_refused(&mut self, user: &str, scene: &mut Scene<'_>) -> bool {
        let its = self.rotated.iter().any(|(rotated, _)| **rotated == *user);
        if its {
            scene.hit(format!("the old token of {user} refused with 401"));
        }
        its
    }
}
