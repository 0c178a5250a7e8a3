//! The hook for random faults that affect one request instead of a period.
//!
//! Faults are drawn for requests and not for times, because each run has the same n-th watch of a resource, but
//! different requests at a given time.

use super::{Fault, FaultId, RequestFacts};

/// Draws random faults for an incoming request.
pub trait Draw: Send + Sync + std::fmt::Debug {
    /// The drawn faults that begin with this request, before any fault handles the request. Each returned fault must
    /// choose the request by `resource`, `on`, `query` and `nth: 1`. No other request is handled during the draw.
    fn draw(&self, asked: &RequestFacts<'_>) -> Vec<(FaultId, Fault)>;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::super::{Faults, Instead, Name, Nth, On};
    use super::*;

    /// Draws a refusal for every second create request.
    #[derive(Debug, Default)]
    struct EverySecond(AtomicU32);

    impl Draw for EverySecond {
        fn draw(&self, asked: &RequestFacts<'_>) -> Vec<(FaultId, Fault)> {
            let number = self.0.fetch_add(u32::from(asked.on == On::Create), Ordering::Relaxed);
            let fault = Fault { on: Some(On::Create), nth: Some(Nth::one(1)), ..Fault::armed(Name::HttpError) };
            let is_meant = asked.on == On::Create && number % 2 == 1;
            is_meant.then(|| (FaultId(number), fault.set("status", 500))).into_iter().collect()
        }
    }

    /// A fault that is drawn for a request affects only that request, and no later request of any user.
    #[test]
    fn a_drawn_fault_meets_its_request() {
        let faults = Faults::new(1);
        faults.target_everybody();
        faults.draw_by(Box::<EverySecond>::default());
        let refused = |on: On, user: &str| {
            let (user, resource, user_agent) = (&user.into(), &"pods".into(), &"test".into());
            let asked = RequestFacts { user, resource, user_agent, on, query: "", endpoint: 0, connection: 1 };
            matches!(faults.injection(&asked).instead, Some(Instead::Refusal(_)))
        };
        let seen = [On::Create, On::Get, On::Create, On::Create, On::Update, On::Create].map(|on| refused(on, "jane"));
        assert_eq!(seen, [false, false, true, false, false, true]);
        assert!(!refused(On::Create, "joe") && refused(On::Create, "jim"));
        assert_eq!(faults.take_hits().len(), 3);
    }
}
