//! Draws faults for requests, and ends them.
//!
//! Owns the numbers of requests per verb and resource, and the drawn faults. A drawn fault ends after `count` effects,
//! or when its duration since the first effect is over. If more than [`OPEN_MAX`] drawn faults are active, the oldest
//! end.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mock_faults::{Draw, Fault, FaultId, Hit, Name, On, RequestFacts};
use parking_lot::Mutex;
use units::Span;

use super::chaos::{CACHE, Drawn, Occasion, REFLECTOR, drawn};
use super::session::Manager;

/// Maximum number of ends of one resource's watches within [`ENDS_WITHIN`]. client-go waits before it lists again:
/// first 0.8 to 1.6 s, then 1.6 to 3.2 s, and after the sixth end half a minute. The wait resets after two minutes
/// without a failure. More ends of watches would test only client-go's wait.
const ENDS_MAX: usize = 2;
/// The period in which at most [`ENDS_MAX`] watches of one resource are ended.
const ENDS_WITHIN: Duration = Duration::from_secs(130);
/// Maximum number of drawn faults that are active at a time; each request is compared with all of them.
const OPEN_MAX: usize = 1000;
/// Maximum number of pairs of a verb and a resource whose requests are counted.
const KINDS_MAX: usize = 4096;

/// The drawn faults of one control plane.
#[derive(Debug, Clone)]
pub(crate) struct Drawing(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    seed: u64,
    drawn: Drawn,
    manager: Manager,
    /// The number of the next drawn fault; faults of the session have the lower numbers.
    next: u32,
    numbers: BTreeMap<(On, String), u64>,
    /// The times at which faults ended watches, by resource.
    ends: BTreeMap<String, VecDeque<Instant>>,
    open: VecDeque<Open>,
    /// The name of each drawn fault; the index is its number minus `first`.
    names: Vec<Name>,
    first: u32,
}

#[derive(Debug)]
struct Open {
    id: FaultId,
    /// The duration of the fault, counted from its beginning or, if the fault waits for events, from its first hit.
    lasts: Option<Duration>,
    waits: bool,
    /// Number of effects that remain.
    left: u64,
    /// The time at which the fault is over.
    ends: Option<Instant>,
    /// How long withheld data may stay withheld after the last effect.
    lingers: Duration,
}

/// The names of faults, by their numbers.
#[derive(Clone)]
pub(crate) struct Names {
    written: Vec<&'static str>,
    drawing: Option<Drawing>,
}

impl Drawing {
    /// Numbers the drawn faults beginning with `first`.
    pub fn new(seed: u64, drawn: Drawn, manager: Manager, first: u32) -> Self {
        let inner = Inner {
            seed,
            drawn,
            manager,
            next: first,
            numbers: BTreeMap::new(),
            ends: BTreeMap::new(),
            open: VecDeque::new(),
            names: Vec::new(),
            first,
        };
        Self(Arc::new(Mutex::new(inner)))
    }

    pub fn name(&self, id: FaultId) -> Option<Name> {
        let inner = self.0.lock();
        usize::try_from(id.0.checked_sub(inner.first)?).ok().and_then(|index| inner.names.get(index).copied())
    }

    /// Counts an effect of a fault, and starts the fault's duration at its first effect.
    pub fn hit(&self, hit: &Hit, now: Instant) {
        let mut inner = self.0.lock();
        let Some(open) = inner.open.iter_mut().find(|open| open.id == hit.fault) else { return };
        open.left = open.left.saturating_sub(1);
        if open.ends.is_none() && open.waits {
            open.ends = open.lasts.map(|lasts| now + lasts);
        }
        if open.left == 0 && open.lasts.is_none() {
            open.ends = Some(now + open.lingers);
        }
    }

    /// Removes the drawn faults that are over and returns their numbers.
    pub fn over(&self, now: Instant) -> Vec<FaultId> {
        let mut inner = self.0.lock();
        let too_many = inner.open.len().saturating_sub(OPEN_MAX);
        let mut over: Vec<FaultId> = inner.open.drain(..too_many).map(|open| open.id).collect();
        inner.open.retain(|open| {
            let is_over = open.ends.is_some_and(|ends| ends <= now);
            over.extend(is_over.then_some(open.id));
            !is_over
        });
        over
    }
}

impl Names {
    pub fn new(written: Vec<&'static str>, drawing: Option<Drawing>) -> Self {
        Self { written, drawing }
    }

    /// Counts an effect of a drawn fault.
    pub fn note(&self, hit: &Hit) {
        if let Some(drawing) = &self.drawing {
            drawing.hit(hit, Instant::now());
        }
    }

    pub fn of(&self, id: FaultId) -> &'static str {
        let drawn = || self.drawing.as_ref().and_then(|drawing| drawing.name(id)).map(Name::as_str);
        let written = usize::try_from(id.0).ok().and_then(|index| self.written.get(index).copied());
        written.or_else(drawn).unwrap_or("unknown")
    }
}

impl Draw for Drawing {
    fn draw(&self, asked: &RequestFacts<'_>) -> Vec<(FaultId, Fault)> {
        self.0.lock().draw(asked, Instant::now())
    }
}

impl Inner {
    fn draw(&mut self, asked: &RequestFacts<'_>, now: Instant) -> Vec<(FaultId, Fault)> {
        let is_managers = self.is_managers(asked);
        let is_of_a_cache = is_of_a_cache(asked);
        if asked.on == On::Any || (!is_managers && (self.manager.is_known() || !is_of_a_cache)) {
            return Vec::new();
        }
        let Some(number) = self.number(asked) else { return Vec::new() };
        let begins = REFLECTOR.iter().any(|sign| asked.query.contains(sign));
        let occasion = Occasion {
            resource: asked.resource,
            on: asked.on,
            number,
            is_of_a_cache,
            resumes: asked.on == On::Watch && !begins,
            is_managers,
            may_end: self.may_end(asked.resource, now),
        };
        let faults = drawn(self.seed, self.drawn, &occasion);
        // A refused watch makes its client list again, like one that ends.
        let is_end = |fault: &Fault| {
            matches!(fault.name, Name::WatchReset | Name::ErrorEvent)
                || fault.name == Name::HttpError && asked.on == On::Watch
        };
        if faults.iter().any(is_end) {
            self.ends.entry(asked.resource.to_string()).or_default().push_back(now);
        }
        faults.into_iter().map(|fault| self.begin(asked, fault, now)).collect()
    }

    /// Whether a request is known to come from the manager under test.
    fn is_managers(&self, asked: &RequestFacts<'_>) -> bool {
        let has_agent = self.manager.agent.as_deref().is_none_or(|part| asked.user_agent.contains(part));
        let is_user = self.manager.user.as_deref().is_none_or(|user| *user == **asked.user);
        self.manager.is_known() && has_agent && is_user
    }

    /// The number of a request among those with the same verb on the same resource.
    fn number(&mut self, asked: &RequestFacts<'_>) -> Option<u64> {
        let kind = (asked.on, asked.resource.to_string());
        if self.numbers.len() >= KINDS_MAX && !self.numbers.contains_key(&kind) {
            return None;
        }
        let number = self.numbers.entry(kind).or_default();
        *number += 1;
        Some(*number)
    }

    fn may_end(&mut self, resource: &str, now: Instant) -> bool {
        let Some(ends) = self.ends.get_mut(resource) else { return true };
        while ends.front().is_some_and(|end| now.saturating_duration_since(*end) > ENDS_WITHIN) {
            ends.pop_front();
        }
        ends.len() < ENDS_MAX
    }

    fn begin(&mut self, asked: &RequestFacts<'_>, fault: Fault, now: Instant) -> (FaultId, Fault) {
        let id = FaultId(self.next);
        self.next = self.next.saturating_add(1);
        self.names.push(fault.name);
        let lasts = fault.lasts.map(|lasts| lasts.0);
        let waits = fault.after_events.is_some();
        self.open.push_back(Open {
            id,
            lasts,
            waits,
            left: fault.count_most().unwrap_or(u64::MAX),
            ends: lasts.filter(|_| !waits).map(|lasts| now + lasts),
            lingers: delay_of(&fault),
        });
        // Chooses the request itself, as far as it can be distinguished from others.
        let query = REFLECTOR.into_iter().chain([CACHE]).find(|sign| asked.query.contains(sign));
        let fault = Fault {
            resource: Some(asked.resource.to_string()),
            user_agent: Some(asked.user_agent.to_string()).filter(|agent| !agent.is_empty()),
            query: query.map(str::to_owned),
            // Its end depends on its hits.
            lasts: None,
            ..fault
        };
        (id, fault)
    }
}

/// Whether a request fills or follows a cache.
fn is_of_a_cache(asked: &RequestFacts<'_>) -> bool {
    match asked.on {
        On::Watch => asked.query.contains(CACHE),
        On::List => REFLECTOR.iter().any(|sign| asked.query.contains(sign)),
        _ => false,
    }
}

/// How long a fault withholds data from a client.
fn delay_of(fault: &Fault) -> Duration {
    let keys = serde_json::to_value(fault).unwrap_or_default();
    keys["delay"].as_str().and_then(|text| text.parse::<Span>().ok()).map_or(Duration::ZERO, |span| span.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAOS: Drawn = Drawn { chaos: true, order: false, stale: None };

    const WATCH: (On, &str, &str) = (On::Watch, "allowWatchBookmarks=true&resourceVersion=7&watch=true", "suite");

    fn ask(
        drawing: &Drawing,
        (on, query, agent): (On, &str, &str),
        resource: &str,
        now: Instant,
    ) -> Vec<(FaultId, Fault)> {
        let (user, resource, user_agent) = (&"admin".into(), &resource.into(), &agent.into());
        drawing.0.lock().draw(&RequestFacts { user, resource, user_agent, on, query, endpoint: 0, connection: 1 }, now)
    }

    fn watch(drawing: &Drawing, resource: &str) -> Vec<(FaultId, Fault)> {
        ask(drawing, WATCH, resource, Instant::now())
    }

    /// The n-th watch of each resource has the same faults, however requests to other resources are ordered.
    #[test]
    fn the_nth_watch_of_a_kind_has_the_same_faults() {
        let faults = |order: &[&str]| {
            let drawing = Drawing::new(7, CHAOS, Manager::default(), 0);
            let mut of: BTreeMap<String, Vec<Fault>> = BTreeMap::new();
            for resource in order {
                let drawn = watch(&drawing, resource).into_iter().map(|(_, fault)| fault);
                of.entry((*resource).to_owned()).or_default().extend(drawn);
            }
            of
        };
        let one = faults(&["pods", "secrets", "pods", "secrets", "pods"]);
        assert_eq!(one, faults(&["secrets", "secrets", "pods", "pods", "pods"]));
        assert!(one.values().all(|faults| !faults.is_empty()));
    }

    #[test]
    fn only_who_is_meant_is_touched() {
        let manager = Manager { agent: Some("manager".to_owned()), user: None };
        let drawing = Drawing::new(7, CHAOS, manager, 0);
        for _ in 0..50 {
            assert!(watch(&drawing, "pods").is_empty(), "a cache that is not the manager's");
        }
        let asks = |drawing: &Drawing, what| (0..100).any(|_| !ask(drawing, what, "pods", Instant::now()).is_empty());
        let update = (On::Update, "", "manager/v1");
        assert!(asks(&drawing, update));
        let drawing = Drawing::new(7, CHAOS, Manager::default(), 0);
        assert!(!asks(&drawing, update) && !asks(&drawing, (On::Watch, "watch=true", "suite")));
        assert!(asks(&drawing, WATCH));
    }

    /// Faults end the watches of one resource at most twice in two minutes.
    #[test]
    fn watches_end_twice_in_two_minutes_at_most() {
        let drawing = Drawing::new(3, CHAOS, Manager::default(), 0);
        let start = Instant::now();
        let ends = |faults: &[(FaultId, Fault)]| {
            let is_end = |fault: &Fault| matches!(fault.name, Name::WatchReset | Name::ErrorEvent | Name::HttpError);
            faults.iter().filter(|(_, fault)| is_end(fault)).count()
        };
        let mut at = Vec::new();
        for second in 0..400 {
            let now = start + Duration::from_secs(second);
            at.extend(std::iter::repeat_n(second, ends(&ask(&drawing, WATCH, "pods", now))));
        }
        assert!(at.len() >= 4 && at.windows(3).all(|three| three[2] - three[0] >= 130), "{at:?}");
    }

    /// A drawn fault ends after its number of effects, so that the list of active faults stays short.
    #[test]
    fn what_has_had_its_effects_is_over() {
        let drawing = Drawing::new(7, Drawn { order: true, ..Drawn::default() }, Manager::default(), 3);
        let faults = watch(&drawing, "pods");
        let (id, fault) = &faults[0];
        assert_eq!((*id, drawing.name(*id)), (FaultId(3), Some(Name::EventDelayed)));
        let now = Instant::now();
        let hit = Hit { fault: *id, at_us: 0, detail: String::new() };
        for _ in 0..fault.count.unwrap() {
            assert_eq!(drawing.over(now), []);
            drawing.hit(&hit, now);
        }
        assert_eq!(drawing.over(now), [], "what it holds back is still to come");
        assert_eq!(drawing.over(now + Duration::from_millis(200)), [*id]);
        for _ in 0..200 {
            watch(&drawing, "pods");
        }
        drawing.over(now);
        assert!(drawing.0.lock().open.len() <= OPEN_MAX);
    }
}
