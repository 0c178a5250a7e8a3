use facts::{Commit, Order, Progress, Revision};
use reports::record::Carried;

use super::*;

const OF: &str = "caches.example.com";

/// Delivers each version a moment after its commit. Revisions are also times in ms.
struct SentAtOnce;

impl Wire for SentAtOnce {
    fn sent(&self, _: &str, revisions: &[u64], before_us: u64) -> Option<(u64, u64)> {
        let sent = revisions.iter().map(|revision| (revision * 1000 + 1, *revision));
        sent.filter(|(at_us, _)| *at_us <= before_us).max()
    }

    fn at_ms(&self, at_us: u64) -> u64 {
        at_us / 1000
    }
}

/// A test run in which revision n is committed at n ms.
struct Run(Foreign);

impl Run {
    fn new() -> Self {
        Self(Foreign::over([OF.to_owned()].into()))
    }

    fn commit(&mut self, name: &str, at: u64, change: Change, leaving: bool) {
        let commit = Commit {
            order: Order::of_numbered(at),
            resource: OF.into(),
            namespace: "n".into(),
            name: name.into(),
            uid: format!("{name}-{at}").into(),
            revision: Revision::of_number(at),
            change,
        };
        let progress = Progress { leaving, ..Progress::default() };
        self.0.commit(&Entry { at_us: at * 1000, commit, revision: at, timeline: 0, owners: Box::default(), progress });
    }

    fn added(&mut self, name: &str, at: u64) {
        self.commit(name, at, Change::Added, false);
    }

    fn deleted(&mut self, name: &str, at: u64) {
        self.commit(name, at, Change::Deleted, true);
    }

    fn ask(&mut self, verb: Verb, name: &str, at: u64, (status, revision): (u16, Option<u64>)) {
        let row = RequestRow {
            t_ms: at,
            method: if verb == Verb::Create { "POST" } else { "DELETE" }.into(),
            verb,
            resource: OF.into(),
            namespace: "n".into(),
            name: name.into(),
            user_agent: "manager/v0".into(),
            status,
            ended_ms: Some(at + 1),
            last_revision: revision,
            ..RequestRow::default()
        };
        let (at_us, ended_us) = (at * 1000, (at + 1) * 1000);
        let request = Request {
            row: &row,
            path: "/apis/example.com/v1/namespaces/n/caches",
            at_us,
            ended_us,
            is_rehearsal: false,
        };
        self.0.request(request, &SentAtOnce);
    }

    /// The subject creates an object and gets the answer.
    fn makes(&mut self, name: &str, at: u64) {
        self.added(name, at);
        self.ask(Verb::Create, "", at, (201, Some(at)));
    }

    fn counts(mut self) -> (u64, u64, u64) {
        let found = self.0.take();
        (found.gone, found.made_again, found.deleted)
    }
}

/// The subject's "create or update" recreates an object that was deleted between its two reads.
#[test]
fn an_object_that_others_deleted_and_that_comes_back_is_told_with_what_was_read() {
    let mut run = Run::new();
    run.added("a", 10);
    run.ask(Verb::List, "", 15, (200, Some(10)));
    run.commit("a", 20, Change::Modified, true);
    run.ask(Verb::Get, "a", 21, (200, Some(20)));
    run.deleted("a", 30);
    run.makes("a", 40);
    let found = run.0.take();
    assert_eq!((found.gone, found.made_again, found.deleted), (1, 1, 0));
    let deed = &found.again[0];
    assert_eq!((deed.object.as_str(), deed.method.as_str(), deed.t_ms, deed.gone_ms), ("n/a", "POST", 40, Some(30)));
    assert_eq!(
        deed.read,
        [
            Read::Listed { t_ms: 16, revision: 10, there: true },
            Read::Got { t_ms: 22, status: 200, revision: Some(20) },
            Read::Sent { t_ms: 30, revision: 30, what: Carried::Deletion },
        ]
    );
}

#[test]
fn what_is_sent_after_the_request_was_not_read_before_it() {
    let mut run = Run::new();
    run.added("a", 10);
    run.commit("a", 20, Change::Modified, true);
    run.deleted("a", 40);
    run.added("a", 40);
    run.ask(Verb::Create, "", 39, (201, Some(40)));
    let read = run.0.take().again.remove(0).read;
    assert_eq!(read, [Read::Sent { t_ms: 20, revision: 20, what: Carried::Leaving }]);
}

/// Children that the subject restores, the subject's own objects, and objects that other clients recreate are not
/// reported.
#[test]
fn what_the_subject_had_made_or_deleted_itself_is_its_own() {
    let mut own = Run::new();
    own.makes("a", 10);
    own.deleted("a", 20);
    own.makes("a", 30);
    assert_eq!(own.counts(), (0, 0, 0), "somebody deleted a child");
    let mut others = Run::new();
    others.added("a", 10);
    others.deleted("a", 20);
    others.added("a", 30);
    others.ask(Verb::Update, "a", 39, (200, Some(30)));
    others.ask(Verb::Update, "a", 40, (200, Some(35)));
    assert_eq!(others.counts(), (1, 0, 0), "not the subject made it again");
    let mut quick = Run::new();
    quick.added("a", 10);
    quick.deleted("a", 11);
    quick.ask(Verb::Create, "", 9, (201, Some(10)));
    quick.makes("a", 20);
    assert_eq!(quick.counts(), (0, 0, 0), "gone before its maker was known");
    let mut unanswered = Run::new();
    unanswered.added("a", 10);
    unanswered.ask(Verb::Create, "", 10, (0, None));
    unanswered.ask(Verb::Delete, "a", 20, (200, None));
    assert_eq!(unanswered.counts(), (0, 0, 0), "its answer was lost on the way");
}

#[test]
fn who_deletes_what_others_made_is_charged_once() {
    let mut run = Run::new();
    run.added("a", 10);
    run.ask(Verb::Get, "a", 15, (200, Some(10)));
    run.commit("a", 20, Change::Modified, true);
    run.ask(Verb::Delete, "a", 20, (200, None));
    run.ask(Verb::Delete, "a", 22, (200, None));
    run.deleted("a", 30);
    run.makes("a", 40);
    let found = run.0.take();
    assert_eq!((found.gone, found.made_again, found.deleted), (0, 0, 1), "that it makes it again is the same deed");
    assert_eq!(found.deletions[0].read[0], Read::Got { t_ms: 16, status: 200, revision: Some(10) });
    let mut at_once = Run::new();
    at_once.added("a", 10);
    at_once.deleted("a", 20);
    at_once.ask(Verb::Delete, "a", 20, (200, None));
    assert_eq!(at_once.counts(), (0, 0, 1), "without a finalizer it is gone when the answer comes");
}

#[test]
fn who_deletes_what_is_its_own_or_on_its_way_is_not_charged() {
    let mut run = Run::new();
    run.makes("own", 10);
    run.ask(Verb::Delete, "own", 20, (200, None));
    run.added("going", 30);
    run.commit("going", 40, Change::Modified, true);
    run.ask(Verb::Delete, "going", 50, (200, None));
    run.added("refused", 60);
    run.ask(Verb::Delete, "refused", 70, (403, None));
    assert_eq!(run.counts(), (0, 0, 0));
}

/// A write without a change is answered with the first revision of the object. After a write without a change, the
/// object still belongs to the client that created it.
#[test]
fn a_write_that_changes_nothing_makes_nothing() {
    let mut run = Run::new();
    run.added("a", 10);
    run.ask(Verb::Patch, "a", 15, (200, Some(10)));
    run.ask(Verb::Delete, "a", 20, (200, None));
    assert_eq!(run.counts(), (0, 0, 1));
}

#[test]
fn a_list_from_before_the_object_says_nothing_of_it() {
    let mut run = Run::new();
    run.ask(Verb::List, "", 5, (200, Some(5)));
    run.added("a", 10);
    run.ask(Verb::Delete, "a", 20, (200, None));
    let read = run.0.take().deletions.remove(0).read;
    assert_eq!(read, [Read::Sent { t_ms: 10, revision: 10, what: Carried::Version }]);
}

#[test]
fn what_is_not_known_is_no_deed() {
    let mut run = Run::new();
    run.added("a", 10);
    run.0.lost("the harness fell behind".to_owned());
    run.ask(Verb::Delete, "a", 20, (200, None));
    run.deleted("a", 21);
    run.makes("a", 30);
    let found = run.0.take();
    assert_eq!((found.made_again, found.deleted), (0, 0));
    assert_eq!(found.unread.as_deref(), Some("the harness fell behind"));
}

/// Pods that a controller creates for the subject's workloads are not judged.
#[test]
fn what_played_controllers_make_is_not_judged() {
    let judged = |workloads: &str| {
        let text = format!(
            "apiVersion: longhaul/v1\nname: a\ndescription: b\nseed: 1\nphases: {{warmUp: 1s, steady: 20s, drain: 15s}}\n\
             controlPlane: {{kind: mock{workloads}}}\nsubject:\n  command: [a]\n  watches: [pods/v1, configmaps/v1]\n  witness: {{kind: http}}\n\
             churn: {{resource: configmaps/v1, population: 5, rate: 1/s}}\n"
        );
        let source = crate::scenario::Source::parse(&text, "x", std::path::Path::new("."));
        let scenario = source.unwrap_or_else(|error| panic!("{error}")).scenario;
        Foreign::of(&scenario).map(|foreign| foreign.resources.into_iter().collect::<Vec<_>>())
    };
    assert_eq!(judged(""), Some(vec!["configmaps".to_owned(), "pods".to_owned()]));
    assert_eq!(judged(", workloads: {readyAfter: 200ms}"), Some(vec!["configmaps".to_owned()]));
}
