//! The subject's requests to the mock API server, and their rows in the record.

use std::time::Duration;

use mock_kube::Tail;
use reports::record::{self, EndedBy, RequestRow, Verb, Writer};

use super::evidence::Requested;
use super::failing::Failing;
use super::foreign::{self, Foreign};
use super::plane::{Mock, Plane};
use super::quiet::Writers;
use crate::clock::Clock;
use crate::scenario::Scenario;

const COMMITS_MAX: usize = 4096;
/// Maximum number of refused writes that wait for the ledger. Further refused writes are dropped, so an object of a
/// dropped write may count as missed.
const REFUSED_MAX: usize = 4096;

/// Reads the subject's requests from the mock. Counts lists and watches of judged resources separately, because the
/// record of a long run does not keep every request.
pub(super) struct Requests {
    judged: Vec<String>,
    /// Lists and watches of judged resources since the last interval row; `None` if some were not recorded.
    follows: Option<u64>,
    /// The latest lists and watches, for the history of an anomaly.
    newest: Requested,
    /// Refused writes that the ledger does not know yet, at most [`REFUSED_MAX`].
    refused: Vec<RequestRow>,
    writers: Writers,
    /// The subject's refused writes.
    failing: Failing,
    /// The subject's changes to objects of other clients, and the commits that show which client created an object.
    foreign: Option<(Foreign, Tail)>,
}

/// Deliveries from the mock to the subject on watches.
struct OnWatches<'a> {
    mock: &'a Mock,
    subject: &'a str,
    clock: &'a Clock,
}

impl Requests {
    pub(super) fn new(scenario: &Scenario, plane: &Plane) -> Self {
        let foreign = plane.mock().and_then(|mock| Some((Foreign::of(scenario)?, mock.server.tail())));
        Self { foreign, ..Self::over(&scenario.judged_resources()) }
    }

    /// An empty state for the judged resources, each with its full name and its spelling in scenarios.
    fn over(judged: &[(String, String)]) -> Self {
        Self {
            judged: judged.iter().map(|(name, _)| name.clone()).collect(),
            follows: Some(0),
            newest: Requested::default(),
            refused: Vec::new(),
            writers: Writers::default(),
            failing: Failing::default(),
            foreign: None,
        }
    }

    /// Reads the new commits, so that the control plane can forget them.
    fn read_commits(&mut self) {
        let Some((foreign, tail)) = &mut self.foreign else { return };
        loop {
            match tail.try_batch(COMMITS_MAX) {
                Ok(batch) if batch.is_empty() => return,
                Ok(batch) => batch.iter().for_each(|entry| foreign.commit(entry)),
                Err(overrun) => {
                    foreign.lost(format!("the harness fell behind the commits, and missed {} of them", overrun.lost));
                }
            }
        }
    }

    /// The subject's changes to objects of other clients. A second call returns `None`.
    pub(super) fn take_foreign(&mut self) -> Option<record::Foreign> {
        self.read_commits();
        self.foreign.take().map(|(mut foreign, _)| foreign.take())
    }

    /// Writes a row for each request that was answered or has ended since the last call.
    pub(super) fn write(&mut self, plane: &Plane, clock: &Clock, writer: &mut Writer) -> Result<(), record::Error> {
        let Some(mock) = plane.mock() else {
            self.follows = None;
            return Ok(());
        };
        let (facts, lost) = mock.server.take_requests(plane.subject());
        writer.requests_lost(lost);
        // The commits of these requests are available by now.
        self.read_commits();
        let wire = OnWatches { mock, subject: plane.subject(), clock };
        if let Some((foreign, _)) = self.foreign.as_mut().filter(|_| lost > 0) {
            foreign.lost(format!("the harness fell behind the subject's requests, and missed {lost} of them"));
        }
        let at_ms = |us: u64| clock.at_ms(mock.epoch + Duration::from_micros(us));
        let mut rows = Vec::with_capacity(facts.len());
        for fact in facts {
            let row = row(&fact, at_ms);
            self.newest.note(&row);
            self.writers.note(&row, &fact.record.path);
            self.failing.note(&row);
            if row.writes() && row.is_refused_for_now() && self.refused.len() < REFUSED_MAX {
                self.refused.push(row.clone());
            }
            if let Some((foreign, _)) = &mut self.foreign {
                foreign.request(foreign::Request::of(&fact, &row), &wire);
            }
            rows.push(row);
        }
        let seen = rows.iter().filter(|row| self.is_begun(row)).count() as u64;
        self.follows = self.follows.filter(|_| lost == 0).map(|follows| follows + seen);
        rows.into_iter().try_for_each(|row| writer.request(row))
    }

    /// The record of which client wrote an object. A caller may take this record out, and return it with
    /// [`Self::go_on`].
    pub(super) fn writers(&mut self) -> &mut Writers {
        &mut self.writers
    }

    /// The subject's refused writes, which the caller takes out at the end of the run.
    pub(super) fn failing(&mut self) -> &mut Failing {
        &mut self.failing
    }

    /// Takes back `writers`, and adds the writes that were recorded in the meantime.
    pub(super) fn go_on(&mut self, writers: Writers) {
        let meanwhile = std::mem::replace(&mut self.writers, writers);
        self.writers.extend(meanwhile);
    }

    /// The subject's writes, since the last call, that were refused with a status after which a right client tries again.
    pub(super) fn take_refused(&mut self) -> Vec<RequestRow> {
        std::mem::take(&mut self.refused)
    }

    /// The subject's latest requests that were answered or have ended.
    pub(super) fn newest(&self) -> &Requested {
        &self.newest
    }

    /// Whether the row is a list, or the begin of a watch. An accepted watch has a second row when the watch ends.
    fn is_begun(&self, row: &RequestRow) -> bool {
        let begun = match row.verb {
            Verb::List => true,
            Verb::Watch => row.ended_ms.is_none() || !row.succeeded(),
            _ => false,
        };
        begun && self.judged.contains(&row.resource)
    }

    /// Lists and watches of judged resources since the last call; `None` if some were not recorded.
    pub(super) fn take_follows(&mut self) -> Option<u64> {
        let known = !self.judged.is_empty();
        self.follows.replace(0).filter(|_| known)
    }
}

impl foreign::Wire for OnWatches<'_> {
    fn sent(&self, resource: &str, revisions: &[u64], before_us: u64) -> Option<(u64, u64)> {
        let sent = self.mock.server.sendings(self.subject, resource, revisions, 0).into_iter();
        let sent = sent.filter(|sending| sending.withheld_by.is_none() && sending.at_us <= before_us);
        sent.map(|sending| (sending.at_us, sending.revision)).max()
    }

    fn at_ms(&self, at_us: u64) -> u64 {
        self.clock.at_ms(self.mock.epoch + Duration::from_micros(at_us))
    }
}

fn row(fact: &mock_kube::RequestFact, at_ms: impl Fn(u64) -> u64) -> RequestRow {
    let asked = fact.parameters();
    let verb = verb(asked.verb);
    let mock_kube::RequestFact { number, record, about, ended, objects_us, said } = fact.clone();
    let said = said.as_deref();
    // The path of a creation names no object. If the namespace is missing, the answer names the namespace.
    let is_object = |said: &&mock_kube::Said| verb == Verb::Create && asked.namespace.as_ref() != Some(&said.name);
    let created = said.filter(is_object).map(|said| said.name.clone());
    RequestRow {
        id: number,
        t_ms: at_ms(record.at_us),
        method: record.method,
        verb,
        resource: asked.resource,
        namespace: asked.namespace.unwrap_or_default(),
        name: asked.name.or(created).unwrap_or_default(),
        path: if verb == Verb::Other { record.path } else { String::new() },
        revision: asked.revision,
        revision_match: asked.revision_match,
        limit: asked.limit,
        continues: asked.continues,
        labels: asked.labels,
        fields: asked.fields,
        bookmarks: asked.bookmarks,
        send_initial_events: asked.send_initial_events,
        timeout_s: asked.timeout_s,
        user_agent: record.user_agent.to_string(),
        connection: record.connection,
        http: record.http_version,
        status: record.status,
        error_code: about.error_code,
        ended_ms: ended.map(|(us, _)| at_ms(us)),
        ended_by: ended.map(|(_, by)| match by {
            mock_kube::EndedBy::Server => EndedBy::Server,
            mock_kube::EndedBy::Reset => EndedBy::Reset,
            mock_kube::EndedBy::Client => EndedBy::Client,
        }),
        objects: about.objects,
        last_revision: about.revision,
        last_bookmark: about.bookmark,
        watch: about.watch,
        first_object_ms: objects_us.map(|(first_us, _)| at_ms(first_us)),
        last_object_ms: objects_us.map(|(_, last_us)| at_ms(last_us)),
        message: said.map(|said| said.message.clone()).filter(|message| !message.is_empty()),
    }
}

fn verb(name: &str) -> Verb {
    match name {
        "list" => Verb::List,
        "watch" => Verb::Watch,
        "get" => Verb::Get,
        "create" => Verb::Create,
        "update" => Verb::Update,
        "patch" => Verb::Patch,
        "delete" => Verb::Delete,
        "deletecollection" => Verb::DeleteCollection,
        _ => Verb::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_and_watch_of_what_is_judged_counts_once() {
        let requests = Requests::over(&[("packages.longhaul.dev".to_owned(), "packages.longhaul.dev/v1".to_owned())]);
        let of = |verb, status, ended_ms, resource: &str| {
            let resource = resource.to_owned();
            requests.is_begun(&RequestRow { verb, status, ended_ms, resource, ..RequestRow::default() })
        };
        let judged = "packages.longhaul.dev";
        assert!(of(Verb::List, 200, Some(1), judged));
        assert!(of(Verb::Watch, 200, None, judged), "a watch begins");
        assert!(!of(Verb::Watch, 200, Some(9), judged), "and ends");
        assert!(of(Verb::Watch, 410, Some(1), judged), "one that is refused comes once");
        assert!(!of(Verb::Patch, 200, Some(1), judged));
        assert!(!of(Verb::List, 200, Some(1), "networkpolicies.networking.k8s.io"), "work is not following");
    }

    #[test]
    fn what_was_counted_is_taken_once_and_is_unknown_where_nothing_is_judged() {
        let mut requests = Requests::over(&[("a".to_owned(), "a/v1".to_owned())]);
        requests.follows = Some(3);
        assert_eq!((requests.take_follows(), requests.take_follows()), (Some(3), Some(0)));
        requests.follows = None;
        assert_eq!((requests.take_follows(), requests.take_follows()), (None, Some(0)), "only that row is unknown");
        assert_eq!(Requests::over(&[]).take_follows(), None);
    }
}
