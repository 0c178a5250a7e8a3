//! `registry-slow`: an answer is late, or its body is sent slowly, or both. A hit is one late or slow answer.

use std::time::Duration;

use http::Response;
use mock_faults::SlowKeys;

use super::{After, Ask, Before, Behaviour, Fault};
use crate::body::Body;
use crate::route::Kind;

/// The delay if the fault sets neither a delay nor a rate. The delay is noticeable for users and shorter than a
/// webhook's timeout.
const DELAY: Duration = Duration::from_secs(1);

pub(super) struct Slow;

impl Behaviour for Slow {
    fn concerns(&self, _kind: Kind) -> bool {
        true
    }

    fn before(&mut self, _ask: &Ask<'_>, fault: &Fault) -> Option<Before> {
        let SlowKeys { delay, rate } = fault.keys();
        let default = rate.is_none().then_some(DELAY);
        delay.map(|delay| delay.0).or(default).map(Before::Wait)
    }

    fn after(&mut self, ask: &Ask<'_>, fault: &Fault, response: &mut Response<Body>) -> Option<After> {
        let rate = fault.keys::<SlowKeys>().rate?;
        if ask.kind.is_head() || response.body().promised() == 0 {
            return None;
        }
        let whole = std::mem::replace(response.body_mut(), Body::empty());
        *response.body_mut() = whole.trickling(rate.bytes_per_second);
        Some(After::Changed)
    }
}
