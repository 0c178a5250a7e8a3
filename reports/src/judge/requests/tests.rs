//! Tests that each rule on requests finds a violation and reports the right word for the defect. In the clean record,
//! the rules find no violation.

use proptest::prelude::*;

use super::blind::{Gap, gaps};
use super::hot_loop::{WINDOW_MS, fruitless, most_in_window};
use super::open::most_open;
use super::revisions::{stale, unanchored};
use super::{SubjectRequests, connections};
use crate::example::{Example, Judged as _, list, watch};
use crate::judge::{Judgement, Verdict, judge};
use crate::record::{EndedBy, RequestRow, RequestSummary, Verb};

const END_MS: u64 = 155_000;

/// The clean example record with one budget for requests, and with these requests.
#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
fn example(budget: serde_json::Value, requests: Vec<RequestRow>) -> Example {
    let mut example = Example::clean();
    example.manifest.budgets = serde_json::from_value(serde_json::json!({"requests": budget})).unwrap();
    example.requests = Some(requests);
    example
}

fn judgement_of(budget: serde_json::Value, requests: Vec<RequestRow>) -> Judgement {
    example(budget, requests).judged()
}

/// The words for defects under one budget, and the text of its finding.
fn says(budget: serde_json::Value, requests: Vec<RequestRow>) -> (Vec<String>, String) {
    let judgement = judgement_of(budget, requests);
    let words = judgement.words.iter().map(ToString::to_string).collect();
    let text = judgement.findings.iter().find(|finding| finding.judge == "requests").unwrap().text.clone();
    (words, text)
}

fn refused(row: RequestRow, status: u16) -> RequestRow {
    let ended_ms = Some(row.t_ms + 1);
    RequestRow { status, ended_ms, ended_by: Some(EndedBy::Server), objects: 0, last_revision: None, ..row }
}

/// A watch whose stream ends with the error that its revision is gone.
fn told_gone(row: RequestRow) -> RequestRow {
    RequestRow { error_code: Some(410), ended_by: Some(EndedBy::Server), ..row }
}

/// The requests of a correct client. The client lists and watches, the server ends the watch, and the client resumes,
/// gets 410, and lists and watches again.
fn good() -> Vec<RequestRow> {
    vec![
        list(1, 0, 1000),
        watch(2, 10, 30_000, 1000, 2000),
        watch(3, 30_500, 60_000, 2000, 2600),
        refused(watch(4, 60_500, 60_501, 2600, 2600), 410),
        list(5, 61_000, 3000),
        told_gone(watch(6, 61_500, 61_600, 3000, 3000)),
        list(7, 62_000, 3100),
        watch(8, 62_100, 200_000, 3100, 9000),
    ]
}

#[test]
fn a_good_client_breaks_nothing() {
    let budget = serde_json::json!({
        "blind": "5s", "hotLoop": "2/s", "staleResume": 0, "unanchored": 0, "watches": {"min": 1}, "openWatches": 1,
        "connections": {"open": 5, "perReconnect": 1.5}, "initialEvents": 0,
    });
    let judgement = judgement_of(budget, good());
    assert_eq!(judgement.verdict, Verdict::Pass, "{:#?}", judgement.crossed());
    assert_eq!(judgement.findings.iter().filter(|finding| finding.judge == "requests").count(), 9);
    assert!(judgement.words.is_empty());
}

#[test]
fn a_subject_that_stops_asking_is_blind() {
    let budget = || serde_json::json!({"blind": "20s"});
    let mut stops = good();
    stops.truncate(3);
    let (words, text) = says(budget(), stops.clone());
    assert_eq!(words, ["blind"]);
    let expected = "the subject stopped watching at 1 min: until the end of the run it had no open list or watch of packages.longhaul.dev \
        and sent none.";
    assert_eq!(text, expected);
    // The subject comes back, but too late.
    stops.push(watch(9, 90_000, END_MS, 2600, 2600));
    assert!(says(budget(), stops.clone()).1.contains("at 1 min: until 1 min 30 s"));
    // The subject renews a lease all the time, which is no watching.
    stops.pop();
    let lease = |n: u64| RequestRow {
        resource: "leases.coordination.k8s.io".into(),
        verb: Verb::Update,
        ..list(100 + n, 60_000 + n * 2000, 5000 + n)
    };
    stops.extend((0..47).map(lease));
    assert_eq!(says(budget(), stops.clone()).0, ["blind"]);
    // Retries that fail are asking.
    let retry = |n: u64| refused(list(200 + n, 60_000 + n * 15_000, 0), 503);
    stops.extend((0..7).map(retry));
    assert!(says(budget(), stops).0.is_empty());
    assert_eq!(says(budget(), Vec::new()).0, ["blind"], "it never asked while something was committed");
}

#[test]
fn fruitless_requests_in_a_row_are_a_hot_loop() {
    let budget = || serde_json::json!({"hotLoop": "2/s"});
    let loops = |every_ms: u64, watch: fn(u64, u64) -> RequestRow| {
        let mut rows = good();
        rows.extend((0..40).map(|n| watch(100 + n, 100_000 + n * every_ms)));
        says(budget(), rows).0
    };
    let empty = |id, t_ms| watch(id, t_ms, t_ms + 1, 3100, 3100);
    assert_eq!(loops(490, empty), ["hot-loop"]);
    assert!(loops(510, empty).is_empty());
    let same = |id, t_ms| list(id, t_ms, 3100);
    assert_eq!(loops(100, same), ["hot-loop"]);
    let newer = |id, t_ms| list(id, t_ms, 3100 + id);
    assert!(loops(100, newer).is_empty(), "each list has a new revision");
    let page = |id, t_ms| RequestRow { continues: Some("token".into()), ..list(id, t_ms, 3100) };
    assert!(loops(10, page).is_empty(), "a list in many pages");
    let event = |id, t_ms| watch(id, t_ms, t_ms + 1, 3000 + id, 3001 + id + 5000);
    assert!(loops(100, event).is_empty(), "each watch brings an event");
    let dead = |id, t_ms| refused(list(id, t_ms, 0), 503);
    assert_eq!(loops(100, dead), ["hot-loop"]);
    let patch = |id, t_ms| RequestRow { verb: Verb::Patch, method: "PATCH".into(), ..list(id, t_ms, 0) };
    assert!(loops(10, patch).is_empty(), "writes that succeed are work");
    let conflict =
        |id, t_ms| refused(RequestRow { verb: Verb::Patch, method: "PATCH".into(), ..list(id, t_ms, 0) }, 409);
    assert_eq!(loops(100, conflict), ["hot-loop"]);
    // Twenty informers that come back at once are no loop.
    let many = |id, t_ms| RequestRow { namespace: format!("n{id}"), ..watch(id, t_ms, t_ms + 1, 3100, 3100) };
    assert!(loops(10, many).is_empty());
}

/// If the subject's clock runs sixty times faster, its twelve requests in five seconds count as twelve in five minutes,
/// which is no loop.
#[test]
fn who_backs_off_by_a_faster_clock_may_ask_more_often() {
    let words = |budget: serde_json::Value, rate: u32, every_ms: u64| {
        let again = (0..3000).map(|n| list(100 + n, 100_000 + n * every_ms, 3100));
        let mut example = example(budget, good().into_iter().chain(again).collect());
        example.manifest.clock_rate = rate;
        example.judged().words.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let fruitless = || serde_json::json!({"hotLoop": "2/s"});
    assert_eq!(words(fruitless(), 1, 400), ["hot-loop"]);
    assert!(words(fruitless(), 60, 400).is_empty());
    assert_eq!(words(fruitless(), 60, 5), ["hot-loop"]);
    // Requests that load causes come in real time.
    assert_eq!(words(serde_json::json!({"rate": "2/s"}), 60, 400), ["too-many-requests"]);
}

/// Requests of a subject that polled for half a minute before the run began do not count as sent at once.
#[test]
fn requests_from_before_the_run_tell_no_rate() {
    let at = |t_ms: fn(u64) -> u64| (1..=30).map(|id| list(id, t_ms(id), 1000)).collect::<Vec<_>>();
    let budget = || serde_json::json!({"hotLoop": "2/s"});
    assert_eq!(says(budget(), at(|_| 0)).0, [""; 0]);
    assert_eq!(says(budget(), at(|id| 10 * id)).0, ["hot-loop"]);
}

#[test]
fn a_hot_loop_is_told_with_its_time() {
    let mut rows = good();
    rows.extend((0..40).map(|n| list(100 + n, 100_000 + n * 100, 3100)));
    let text = says(serde_json::json!({"hotLoop": "2/s"}), rows).1;
    let expected = "from 1 min 40 s on the subject sent 40 requests in 5 s that brought nothing new (packages.longhaul.dev): \
                    a hot loop.";
    assert_eq!(text, expected);
}

fn stale_of(rows: Vec<RequestRow>) -> (Vec<String>, String) {
    says(serde_json::json!({"staleResume": 0}), rows)
}

#[test]
fn resuming_from_a_refused_revision_is_wrong() {
    for answer in [|row| refused(row, 410), told_gone] {
        let gone = answer(watch(3, 60_000, 60_001, 2000, 2000));
        let before = [list(1, 0, 1000), watch(2, 10, 59_000, 1000, 2000)];
        let again = watch(5, 61_000, END_MS, 2000, 2000);
        let (words, text) = stale_of([&before[..], &[gone.clone(), again.clone()]].concat());
        assert_eq!(words, ["wrong-resource-version"]);
        assert!(
            text.ends_with("it watched packages.longhaul.dev from 2000, which had been refused with 410 Gone."),
            "{text}"
        );
        let relist = list(4, 60_500, 2000);
        let mended = [&before[..], &[gone, relist, again]].concat();
        assert!(stale_of(mended).0.is_empty(), "a list at the same revision has mended it");
    }
}

#[test]
fn an_error_in_the_middle_of_a_stream_needs_a_list_too() {
    let told = told_gone(watch(2, 10, 60_000, 1000, 2000));
    let resumed = watch(9, 61_000, END_MS, 2000, 2500);
    let (words, text) = stale_of(vec![list(1, 0, 1000), told.clone(), resumed.clone()]);
    assert_eq!(words, ["wrong-resource-version"]);
    assert!(text.contains("from 2000, which had been refused with 410 Gone"), "{text}");
    // A bookmark gave it a revision that no object had.
    let marked = RequestRow { last_bookmark: Some(2100), ..told.clone() };
    let from_mark = watch(9, 61_000, END_MS, 2100, 2500);
    assert_eq!(stale_of(vec![list(1, 0, 1000), marked, from_mark.clone()]).0, ["wrong-resource-version"]);
    assert!(stale_of(vec![list(1, 0, 1000), told.clone(), from_mark]).0.is_empty());
    let initial = RequestRow { send_initial_events: Some(true), ..watch(3, 60_500, 60_900, 0, 2000) };
    assert!(stale_of(vec![list(1, 0, 1000), told.clone(), initial, resumed]).0.is_empty());
    // The stream with the error was held open, the client listed and went on, and closed the old one later.
    let held = RequestRow { ended_ms: Some(70_000), last_object_ms: Some(50_000), ..told };
    let goes_on = [list(1, 0, 1000), held, list(3, 60_000, 2000), watch(4, 60_100, 80_000, 2000, 2000)];
    let resumes = watch(5, 80_100, END_MS, 2000, 2000);
    assert!(stale_of([&goes_on[..], &[resumes]].concat()).0.is_empty());
}

#[test]
fn going_back_behind_what_was_given_is_wrong() {
    let after = |between: Vec<RequestRow>, from: u64| {
        let start = vec![list(1, 0, 1000), watch(2, 10, 60_000, 1000, 2000)];
        stale_of([start, between, vec![watch(50, 70_000, END_MS, from, from)]].concat()).0
    };
    assert_eq!(after(vec![], 1990), ["wrong-resource-version"], "the watch that ended in order had brought it to 2000");
    assert!(after(vec![], 2000).is_empty());
    assert_eq!(after(vec![list(3, 61_000, 2500)], 2400), ["wrong-resource-version"], "the last item of the list");
    assert!(after(vec![list(3, 61_000, 2500)], 2500).is_empty());
    let cached = |revision| RequestRow { revision: Some("0".into()), ..list(3, 61_000, revision) };
    assert_eq!(after(vec![cached(1500)], 1500), ["wrong-resource-version"], "an older list from a cache");
}

#[test]
fn where_faults_mangle_the_stream_its_end_proves_nothing() {
    let rows = vec![list(1, 0, 1000), watch(2, 10, 60_000, 1000, 2000), watch(3, 61_000, END_MS, 1990, 2000)];
    let mut example = example(serde_json::json!({"staleResume": 0}), rows);
    assert_eq!(example.judged().verdict, Verdict::Fail);
    for name in ["net-freeze", "truncated-line", "out-of-order"] {
        example.manifest.faults[0].name = name.into();
        assert_eq!(example.judged().verdict, Verdict::Pass, "{name}");
    }
}

/// The text of a passed finding about revisions claims no more than the rule checks.
#[test]
fn the_sentence_of_a_good_run_says_no_more_than_is_checked() {
    let start = || vec![list(1, 0, 1000), watch(2, 10, 60_000, 1000, 2000)];
    let after = |between: Vec<RequestRow>, from: u64| {
        stale_of([start(), between, vec![watch(50, 70_000, END_MS, from, from)]].concat())
    };
    let beside = || watch(3, 60_010, 65_000, 2000, 2000);
    let broken = RequestRow { ended_by: Some(EndedBy::Reset), ..watch(3, 60_010, 65_000, 2000, 2600) };
    let initial = RequestRow { send_initial_events: Some(true), ..watch(3, 60_010, 65_000, 0, 2600) };
    let told = told_gone(watch(3, 60_010, 60_100, 2000, 2000));
    let forgiven = [
        ("behind what a stream sent that was reset", after(vec![broken], 2200)),
        ("beside another watch, behind a third that ended", after(vec![watch(3, 60_010, 100_000, 2600, 2600)], 1990)),
        ("behind a list beside a watch", after(vec![beside(), list(4, 62_000, 2500)], 2000)),
        ("behind initial events", after(vec![initial], 2200)),
        ("refused, and listed since", after(vec![told, list(4, 61_000, 2000)], 2000)),
        ("behind a watch, at the list of a restored control plane", after(vec![list(3, 61_000, 1500)], 1500)),
    ];
    let expected = "no watch that was alone in its scope began from a revision that was refused since the last list or initial events, or \
        that was older than the last revision of a list for it or of a plain watch that ended in order.";
    for (what, (words, text)) in forgiven {
        assert_eq!((words.as_slice(), text.as_str()), (&[][..], expected), "{what}");
    }
    // Under faults that mangle streams the ends of streams prove nothing.
    let rows = [start(), vec![watch(3, 61_000, END_MS, 1990, 2000)]].concat();
    let mut example = example(serde_json::json!({"staleResume": 0}), rows);
    example.manifest.faults[0].name = "net-freeze".into();
    let judgement = example.judged();
    let text = &judgement.findings.iter().find(|finding| finding.judge == "requests").unwrap().text;
    assert!(text.ends_with("(with these faults the end of a watch proves nothing)."), "{text}");
}

#[test]
fn the_sentence_of_anchored_watches_says_no_more_than_is_checked() {
    let text = |rows: Vec<RequestRow>| says(serde_json::json!({"unanchored": 0}), rows).1;
    let initial = RequestRow { send_initial_events: Some(true), revision: None, ..watch(2, 10, END_MS, 0, 5) };
    let expected = "no watch of a listed scope began without a revision or from 0 (except for initial events).";
    assert_eq!(text(vec![list(1, 0, 1000), initial.clone()]), expected);
    let other = RequestRow { namespace: "other".into(), revision: None, ..watch(3, 10, END_MS, 0, 5) };
    assert_eq!(text(vec![list(1, 0, 1000), other]), expected, "what was never listed may begin anywhere");
    assert_eq!(text(vec![initial]), "the subject sent no list, so no watch had a list to start from.");
}

#[test]
fn a_watch_beside_its_list_is_unanchored() {
    let of = |row: RequestRow| says(serde_json::json!({"unanchored": 0}), vec![list(1, 0, 1000), row]).0;
    let from = |revision: Option<&str>| RequestRow { revision: revision.map(Into::into), ..watch(2, 10, END_MS, 0, 5) };
    assert_eq!(of(from(None)), ["unanchored-watch"]);
    assert_eq!(of(from(Some("0"))), ["unanchored-watch"]);
    assert!(of(from(Some("1000"))).is_empty());
    assert!(of(RequestRow { send_initial_events: Some(true), ..from(None) }).is_empty());
    assert!(of(RequestRow { namespace: "other".into(), ..from(None) }).is_empty(), "never listed");
    let first = [RequestRow { id: 0, ..from(None) }, list(1, 20, 1000)];
    assert!(unanchored(&first.iter().collect::<Vec<_>>()).is_empty());
}

#[test]
fn initial_events_are_counted_for_each_scope() {
    let asks = |id: u64, namespace: &str| RequestRow {
        send_initial_events: Some(true),
        namespace: namespace.into(),
        ..watch(id, id * 1000, id * 1000 + 500, 0, 5)
    };
    let budget = || serde_json::json!({"initialEvents": 1});
    assert!(says(budget(), vec![asks(1, "a"), asks(2, "b")]).0.is_empty());
    let (words, text) = says(budget(), vec![asks(1, "a"), asks(2, "b"), asks(3, "a")]);
    assert_eq!(words, ["replayed"]);
    assert_eq!(
        text,
        "the subject asked 2 times for the initial events of packages.longhaul.dev in a. At most 1 is allowed."
    );
}

#[test]
fn watches_open_at_once_are_counted() {
    let of = |id: u64, namespace: &str, from_ms, to_ms| RequestRow {
        namespace: namespace.into(),
        ..watch(id, from_ms, to_ms, 9, 9)
    };
    let rows = || vec![of(1, "a", 0, 50_000), of(2, "a", 50_000, END_MS), of(3, "b", 10, END_MS), of(4, "c", 10, 20)];
    let least = |min: u64| says(serde_json::json!({"watches": {"min": min}}), rows()).0;
    assert!(least(3).is_empty());
    assert_eq!(least(4), ["too-few-watches"]);
    assert!(says(serde_json::json!({"openWatches": 1}), rows()).0.is_empty());
    let (words, text) =
        says(serde_json::json!({"openWatches": 1}), [rows(), vec![of(9, "b", 70_000, 71_000)]].concat());
    assert_eq!(words, ["watch-leak"]);
    assert_eq!(text, "at most 2 watches were open at once of packages.longhaul.dev in b, at 1 min 10 s.");
}

#[test]
fn connections_are_counted_at_the_end_and_for_each_reconnect() {
    let budget = |limits: serde_json::Value| serde_json::json!({"connections": limits});
    let mut held = example(budget(serde_json::json!({"open": 20})), good());
    for row in &mut held.intervals {
        row.api.subject_open_connections = 20;
    }
    assert_eq!(judge(&held.opened()).verdict, Verdict::Pass);
    let rows = held.intervals.len();
    held.intervals[rows - 2].api.subject_open_connections = 21;
    // After the subject was stopped it holds none; the earlier ones still count.
    held.intervals[rows - 1].api.subject_open_connections = 0;
    let judgement = judge(&held.opened());
    assert_eq!(judgement.words.iter().map(|word| word.as_str()).collect::<Vec<_>>(), ["connection-leak"]);

    let reconnects = |connections: u64| {
        let mut rows = vec![list(1, 0, 1000), watch(2, 10, 1000, 1000, 1000)];
        for n in 1..=20 {
            let connection = 2 + n * connections / 10;
            rows.push(RequestRow { connection, ..list(2 * n + 1, n * 1000, 1000 + n) });
            let connection = if connections > 10 { connection + 1 } else { connection };
            rows.push(RequestRow { connection, ..watch(2 * n + 2, n * 1000 + 5, n * 1000 + 900, 1000 + n, 1000 + n) });
        }
        says(budget(serde_json::json!({"perReconnect": 1.5})), rows)
    };
    assert!(reconnects(10).0.is_empty());
    let (words, text) = reconnects(20);
    assert_eq!(words, ["connection-leak"]);
    assert_eq!(text, "40 new connections for 20 watches after the first one had ended.");
    let none =
        judgement_of(budget(serde_json::json!({"perReconnect": 1.5})), vec![list(1, 0, 1), watch(2, 5, 200_000, 1, 1)]);
    assert_eq!(none.verdict, Verdict::Inconclusive);
}

#[test]
fn what_nobody_tells_is_not_decided() {
    let mut example = example(serde_json::json!({"blind": "5s", "connections": {"open": 1}}), Vec::new());
    example.requests = None;
    let judgement = example.judged();
    assert_eq!(judgement.verdict, Verdict::Inconclusive);
    assert_eq!(judgement.crossed().len(), 2);
}

/// After the last row of a record, the subject's requests are unknown. A missing row proves neither that the subject
/// stopped sending requests nor that it continued.
#[test]
fn a_record_that_stops_at_its_cap_is_judged_up_to_there() {
    let mut rows = good();
    rows.truncate(3);
    let judged = |rows: Vec<RequestRow>, lists| {
        let mut record = example(serde_json::json!({"blind": "20s"}), rows).opened();
        let summary = RequestSummary { start_ms: 70_000, end_ms: 75_000, requests: 9, lists, ..Default::default() };
        record.requests.summaries = vec![summary];
        judge(&record)
    };
    let judgement = judged(rows, 1);
    assert_eq!(judgement.verdict, Verdict::Invalid, "nothing else is judged: {:#?}", judgement.crossed());
    let text = "not decided, because 9 requests of the subject from 1 min 10 s on are only counted; measured: the subject kept sending requests.";
    assert!(judgement.findings.iter().any(|finding| finding.text == text), "{:#?}", judgement.findings);
    let note = "requests have rows until 1 min 10 s; the 9 after that are counted, but not judged.";
    assert!(judgement.notes.iter().any(|other| other == note), "{:?}", judgement.notes);
    let judgement = judged(good(), 0);
    assert_eq!(judgement.verdict, Verdict::Pass, "no list and no watch is among them: {:#?}", judgement.crossed());
    let note = "requests that are neither list nor watch have rows until 1 min 10 s; the 9 after that are counted, but not judged.";
    assert!(judgement.notes.iter().any(|other| other == note), "{:?}", judgement.notes);
}

/// Counts without rows can prove that there was no hot loop, but never that there was one.
#[test]
fn what_is_only_counted_excludes_a_hot_loop_where_it_is_little() {
    let verdict = |refused| {
        let mut record = example(serde_json::json!({"hotLoop": "2/s"}), good()).opened();
        let summary = RequestSummary { start_ms: 70_000, end_ms: 75_000, requests: 90, refused, ..Default::default() };
        record.requests.summaries = vec![summary, RequestSummary { start_ms: 75_000, end_ms: 80_000, ..summary }];
        judge(&record).findings.into_iter().find(|finding| finding.budget == "requests.hotLoop").unwrap().verdict
    };
    assert_eq!(verdict(3), Verdict::Pass);
    assert_eq!(verdict(9), Verdict::Inconclusive);
}

fn requests_of(rows: &[RequestRow]) -> SubjectRequests<'_> {
    SubjectRequests { rows: rows.iter().collect(), scopes: std::collections::BTreeMap::new(), until_ms: END_MS }
}

proptest! {
    /// Every moment is either inside a span or inside exactly one gap.
    #[test]
    fn gaps_are_what_spans_leave(spans in prop::collection::vec((0u64..100, 0u64..30), 0..12)) {
        let spans: Vec<(u64, u64)> = spans.into_iter().map(|(start, length)| (start, start + length)).collect();
        let gaps = gaps(&spans, 200);
        for t in 0..200 {
            let covered = spans.iter().any(|(start, end)| (*start..*end).contains(&t));
            let inside = gaps.iter().filter(|Gap { from_ms, to_ms }| (*from_ms..*to_ms).contains(&t)).count();
            prop_assert_eq!(inside, usize::from(!covered), "at {}", t);
        }
    }

    /// The fast function, with two pointers, finds the same count as counting every time window that begins at a
    /// request.
    #[test]
    fn the_busiest_window_is_found(mut times in prop::collection::vec(0u64..30_000, 0..60)) {
        times.sort_unstable();
        let count = |from: &u64| times.iter().filter(|t| (*from..from + WINDOW_MS).contains(t)).count() as u64;
        let most = times.iter().map(count).max().unwrap_or(0);
        let (found, from_ms) = most_in_window(&times);
        prop_assert_eq!(found, most);
        prop_assert!(found == 0 || count(&from_ms) == most);
    }

    /// The largest number of open watches is the number at some moment, and no moment has a larger number.
    #[test]
    fn the_most_open_watches_are_found(spans in prop::collection::vec((0u64..100, 1u64..50), 0..15)) {
        let rows: Vec<RequestRow> =
            spans.iter().zip(1..).map(|((from, length), id)| watch(id, *from, from + length, 5, 5)).collect();
        let asked = requests_of(&rows);
        let open = |t: u64| spans.iter().filter(|(from, length)| (*from..from + length).contains(&t)).count() as u64;
        let most = (0..150).map(open).max().unwrap_or(0);
        prop_assert_eq!(most_open(&asked, &asked.rows).0, most);
    }

    /// A client that always resumes from its last revision, and lists after 410, is never blamed for its revisions or
    /// for a loop. How the watches of this client end does not matter.
    #[test]
    fn a_client_that_goes_on_is_never_blamed(steps in prop::collection::vec((0u64..5, 0u64..4, 0u64..9000), 1..40)) {
        let mut rows = vec![list(1, 0, 1000)];
        let (mut at, mut t_ms, mut server) = (1000, 1000, 1000);
        for (kind, events, length) in steps {
            let id = rows.len() as u64 + 1;
            server += events;
            let (to_ms, newest) = (t_ms + 600 + length, at + events.min(server - at));
            let row = watch(id, t_ms, to_ms, at, newest);
            rows.push(match kind {
                0 => RequestRow { ended_by: Some(EndedBy::Reset), ..row },
                1 => RequestRow { ended_by: Some(EndedBy::Client), ..row },
                2 => told_gone(row),
                3 => refused(watch(id, t_ms, t_ms, at, at), 410),
                _ => row,
            });
            at = if kind == 3 { at } else { newest };
            t_ms = to_ms + 600;
            if kind == 2 || kind == 3 {
                at = server.max(at);
                rows.push(list(id + 1, t_ms, at));
                t_ms += 600;
            }
        }
        let asked = requests_of(&rows);
        prop_assert_eq!(stale(&asked.rows, true), vec![]);
        prop_assert!(most_in_window(&fruitless(&asked.rows)).0 <= 10);
        let (connections, _) = connections::since_first_end(&asked);
        prop_assert_eq!(connections, 0);
    }
}
