//! What the subject asked of the mock, on its way into the record.

use std::time::Duration;

use mocks::kube;
use reports::record::{self, EndedBy, RequestRow, Verb, Writer};

use super::Clock;
use super::plane::Plane;

/// Takes the requests from the mock, and counts those that follow what is judged, because the record does not keep all of a
/// long run.
pub(super) struct Requests {
    /// Names of what is judged.
    judged: Vec<String>,
    /// Lists and watches of it since the last row of intervals; none when not each of them was seen.
    follows: Option<u64>,
}

impl Requests {
    /// Nothing seen yet of `judged` (names and spellings).
    pub(super) fn new(judged: &[(String, String)]) -> Self {
        Self { judged: judged.iter().map(|(name, _)| name.clone()).collect(), follows: Some(0) }
    }

    /// Writes every request that was answered or ended since the last call.
    pub(super) fn write(&mut self, plane: &Plane, clock: &Clock, writer: &mut Writer) -> Result<(), record::Error> {
        let Some(mock) = plane.mock() else {
            self.follows = None;
            return Ok(());
        };
        let (facts, lost) = mock.server.take_requests(plane.subject());
        writer.requests_lost(lost);
        let at_ms = |us: u64| clock.at_ms(mock.epoch + Duration::from_micros(us));
        let rows: Vec<_> = facts.into_iter().map(|fact| row(fact, at_ms)).collect();
        let seen = rows.iter().filter(|row| self.is_begun(row)).count() as u64;
        self.follows = self.follows.filter(|_| lost == 0).map(|follows| follows + seen);
        rows.into_iter().try_for_each(|row| writer.request(row))
    }

    /// A list, or a watch at its begin: one that was accepted comes again when it ends.
    fn is_begun(&self, row: &RequestRow) -> bool {
        let begun = match row.verb {
            Verb::List => true,
            Verb::Watch => row.ended_ms.is_none() || !row.succeeded(),
            _ => false,
        };
        begun && self.judged.contains(&row.resource)
    }

    /// Lists and watches of what is judged since the last call; none when not each of them was seen.
    pub(super) fn take_follows(&mut self) -> Option<u64> {
        let known = !self.judged.is_empty();
        self.follows.replace(0).filter(|_| known)
    }
}

fn row(fact: kube::RequestFact, at_ms: impl Fn(u64) -> u64) -> RequestRow {
    let asked = fact.asked();
    let verb = verb(asked.verb);
    let kube::RequestFact { number, record, about, ended, objects_us } = fact;
    RequestRow {
        id: number,
        t_ms: at_ms(record.at_us),
        method: record.method,
        verb,
        resource: asked.resource,
        namespace: asked.namespace.unwrap_or_default(),
        name: asked.name.unwrap_or_default(),
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
            kube::EndedBy::Server => EndedBy::Server,
            kube::EndedBy::Reset => EndedBy::Reset,
            kube::EndedBy::Client => EndedBy::Client,
        }),
        objects: about.objects,
        last_revision: about.revision,
        first_object_ms: objects_us.map(|(first_us, _)| at_ms(first_us)),
        last_object_ms: objects_us.map(|(_, last_us)| at_ms(last_us)),
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
