//! What the subject asked of the mock, on its way into the record.

use std::time::Duration;

use mocks::kube;
use reports::record::{self, EndedBy, RequestRow, Verb, Writer};

use super::Clock;
use super::plane::Plane;

/// Writes every request that was answered or ended since the last call.
pub(super) fn write(plane: &Plane, clock: &Clock, writer: &mut Writer) -> Result<(), record::Error> {
    let Some(mock) = plane.mock() else { return Ok(()) };
    let (facts, lost) = mock.server.take_requests(plane.subject());
    writer.requests_lost(lost);
    let at_ms = |us: u64| clock.at_ms(mock.epoch + Duration::from_micros(us));
    facts.into_iter().try_for_each(|fact| writer.request(row(fact, at_ms)))
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
