//! `stale-view`: until the fault ends, lists, gets and watches are answered from an old state, as by an API server that
//! lags. A hit is an answer that differs from the current one, or a watch with a withheld event.

use std::sync::Arc;

use super::View;
use super::settings::keys;
use super::{Behaviour, Connections, Error, Fault, Host, Injection, On, PlayedRow, RequestFacts, Row, Scene, Stale};
use units::Span;

keys! {
    pub struct Keys {
        behind "behind": u64 = ("0", "older by so many revisions"),
        age "age": Span = ("0s", "instead of `behind`: older by so much; at most the kept history"),
        connections "connections": Connections = ("`all`", "`all` or `new`"),
        cached "cached": bool = ("false", "only requests with a `resourceVersion`"),
    }
}

pub(super) const ROW: PlayedRow = Row::requests(
    "stale-view",
    "Lists, gets and watches are answered from an old state.",
)
.takes::<Keys>()
.on(On::Any)
.refuses(|fault| {
    let keys = fault.keys::<Keys>();
    if keys.behind.is_none() || keys.age.is_none() {
        return Ok(());
    }
    let given = "set beside `behind`".to_owned();
    Err(Error::Value { key: "age", given, instead: "write one of the two" })
})
.sees("lists, gets and watches show the state when the fault began, or an older one; counts answers that differ from the present")
.played(|fault| Box::new(StaleView::new(fault)));

#[derive(Debug)]
pub(super) struct StaleView {
    view: Arc<View>,
    behind: u64,
    age: Span,
    only_new: bool,
    only_cached: bool,
    next_connection: u64,
}

impl StaleView {
    pub(crate) fn new(fault: &Fault) -> Self {
        let keys = fault.keys::<Keys>();
        Self {
            view: Arc::new(View::live()),
            behind: keys.behind.unwrap_or(0),
            age: keys.age.unwrap_or_default(),
            only_new: keys.connections == Some(Connections::New),
            only_cached: keys.cached.unwrap_or_default(),
            next_connection: 0,
        }
    }
}

impl Behaviour for StaleView {
    fn prepare(&mut self, host: &dyn Host, _targets: &[Arc<str>]) {
        let moment = host.moment(self.age.0);
        self.next_connection = moment.next_connection;
        let at = if self.age.0.is_zero() { moment.revision } else { moment.revision_then };
        self.view.freeze(at.saturating_sub(self.behind));
    }

    fn request(&mut self, asked: &RequestFacts<'_>, injection: &mut Injection, scene: &mut Scene<'_>) {
        let reads = matches!(asked.on, On::List | On::Watch | On::Get);
        let spared = (self.only_new && asked.connection < self.next_connection)
            || (self.only_cached && !names_a_version(asked.query));
        if reads && !spared {
            injection.stale = Some(Stale { view: self.view.clone(), active: scene.active.clone() });
        }
    }

    fn end(&mut self, _open: &[Arc<super::Stream>], _scene: &mut Scene<'_>) {
        self.view.thaw();
    }
}

/// Whether a query allows an answer from a cache. Without a version, a real server answers with the newest state.
fn names_a_version(query: &str) -> bool {
    query.split('&').filter_map(|pair| pair.strip_prefix("resourceVersion=")).any(|version| !version.is_empty())
}
