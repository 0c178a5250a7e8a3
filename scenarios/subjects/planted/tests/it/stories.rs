//! One story of the corpus each, told to the correct client and to the ones that make its mistakes: the first gets it right,
//! the others do not.
//!
//! Longer than 500 lines because a story is a script and a sentence, and nothing is shared between stories.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::script::{Ask, Piece, Play, Reply, Script, bookmark, error, event, object, object_of, pause_ms};

const PATIENCE: Duration = Duration::from_secs(20);

struct Story {
    arguments: &'static [&'static str],
    watch: &'static str,
    http: &'static str,
    streams: u32,
    /// How long a mistaken client has to get it right all the same.
    lasts: Duration,
    script: Script,
    /// Done again and again while it lasts.
    during: fn(&Play),
    right: fn(&Play) -> bool,
}

impl Story {
    fn new(script: impl Fn(&Ask) -> Reply + Send + Sync + 'static, right: fn(&Play) -> bool) -> Self {
        Self {
            arguments: &["--silence", "1s", "--relist", "30s"],
            watch: "things/v1",
            http: "1",
            streams: 100,
            lasts: Duration::from_secs(4),
            script: Arc::new(script),
            during: |_| {},
            right,
        }
    }

    async fn tells_apart(self, mistakes: &[&[&str]]) {
        let play = |arguments: &[&str]| {
            let all = [self.arguments, arguments].concat();
            Play::start(&all, self.watch, self.http, self.streams, self.script.clone())
        };
        let correct = play(&[]);
        let mistaken: Vec<Play> = mistakes.iter().map(|arguments| play(arguments)).collect();
        // Many clients start at once: the time of each story begins when all of them are there.
        let began = Instant::now();
        while mistaken.iter().chain([&correct]).any(|play| play.asks.lock().is_empty()) {
            assert!(began.elapsed() < PATIENCE, "a client asks nothing");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let began = Instant::now();
        while began.elapsed() < self.lasts {
            mistaken.iter().chain([&correct]).for_each(|play| (self.during)(play));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        while !(self.right)(&correct) {
            (self.during)(&correct);
            assert!(began.elapsed() < self.lasts + PATIENCE, "correct: {:?}\n{:#?}", correct.heard, correct.asks);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for (play, arguments) in mistaken.iter().zip(mistakes) {
            assert!(!(self.right)(play), "{arguments:?} got it right: {:?}\n{:#?}", play.heard, play.asks);
        }
    }
}

fn mistake(name: &'static str) -> [&'static str; 2] {
    ["--mistake", name]
}

macro_rules! mistakes {
    ($($name:literal),+) => { &[$(&mistake($name)[..]),+] };
}

/// Stories are told at the same time: most of their time is waiting.
macro_rules! told_together {
    ($($group:ident: $($story:ident),+;)+) => {
        $(#[tokio::test(flavor = "multi_thread")]
        #[ignore = "slow"]
        async fn $group() {
            tokio::join!($($story()),+);
        })+
    };
}

told_together! {
    streams_that_end_or_never_do:
        empty_answers_make_no_hot_loop,
        errors_make_no_hot_loop,
        an_error_event_that_is_no_410_ends_the_stream,
        eight_errors_are_survived,
        a_clean_end_is_resumed,
        an_answer_that_never_begins_is_not_waited_for,
        silence_ends_a_watch,
        after_silence_another_connection_is_used,
        a_broken_stream_is_noticed,
        a_failed_connection_is_tried_again;
    revisions_tokens_and_handlers:
        a_410_in_the_stream_leads_to_a_list,
        a_410_as_status_leads_to_a_list,
        what_was_deleted_before_a_410_is_noticed,
        a_list_from_the_past_is_not_believed,
        a_revision_that_is_too_large_is_not_insisted_on,
        the_watch_begins_where_the_list_ended,
        a_new_token_is_read,
        a_403_is_not_for_ever,
        a_refused_handler_runs_again,
        the_revision_of_another_object_makes_no_old_news,
        what_is_told_again_is_no_news,
        what_a_write_was_answered_is_still_news,
        handlers_keep_the_order;
    lists_and_bytes:
        a_periodic_list_that_fails_leaves_the_watch_open,
        a_list_that_is_older_than_the_watch_deletes_nothing,
        every_page_is_read,
        the_last_page_ends_the_list,
        bytes_are_put_together,
        a_line_that_cannot_be_read_is_made_good,
        a_deletion_among_the_initial_events_counts,
        initial_events_are_asked_for_once,
        initial_events_without_end_lead_to_a_list,
        a_deletion_waits_behind_its_addition,
        a_namesake_is_another_object;
    sharing_and_growth:
        one_bad_kind_leaves_the_others_alone,
        healthy_watches_live,
        what_is_given_up_is_closed,
        each_watch_is_followed_by_one,
        a_full_connection_is_not_the_last,
        seventy_watches_are_seventy_requests,
        watches_have_no_threads,
        objects_have_no_watches,
        names_and_lists_leave_nothing_behind;
    queues:
        queues_are_bounded;
}

/// A list of `a` at 10, and after it one of `a` and `x` at 20.
fn list_then_more(ask: &Ask) -> Reply {
    match ask.nth {
        1 => Reply::list(10, &[object("a", 5)]),
        _ => Reply::list(20, &[object("a", 5), object("x", 15)]),
    }
}

/// A healthy watch that says `x` and stays.
fn tells_x() -> Reply {
    let mut pieces = vec![event("ADDED", &object("x", 15))];
    for n in 0..200 {
        pieces.extend([pause_ms(300), bookmark(20 + n, false)]);
    }
    Reply::watch(pieces)
}

fn healthy() -> Reply {
    Reply::watch((0..200).flat_map(|n| [bookmark(20 + n, false), pause_ms(300)]).collect())
}

fn told_x(play: &Play) -> bool {
    play.told("x", "added")
}

async fn empty_answers_make_no_hot_loop() {
    let script = |ask: &Ask| match ask.kind {
        "list" => Reply::list(10, &[]),
        _ => Reply::watch(vec![]),
    };
    Story::new(script, |play| play.count("watch") < 12).tells_apart(mistakes!["hot-loop-on-empty"]).await;
}

async fn errors_make_no_hot_loop() {
    let script = |ask: &Ask| match ask.kind {
        "list" => Reply::list(10, &[]),
        _ => Reply::refused(500, "InternalError"),
    };
    Story::new(script, |play| play.count("watch") < 12).tells_apart(mistakes!["hot-loop-on-error"]).await;
}

async fn an_error_event_that_is_no_410_ends_the_stream() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", _) => Reply::list(10, &[]),
        (_, 1) => Reply::watch(vec![bookmark(11, false), error(500), Piece::Hold]),
        _ => tells_x(),
    };
    let right = |play: &Play| told_x(play) && !play.told("undefined", "modified");
    Story::new(script, right).tells_apart(mistakes!["keeps-reading-after-error", "status-as-object"]).await;
}

/// Only a list tells `x`, after a 410 that comes as `gone` says it.
fn gone_until_listed(gone: fn() -> Reply) -> impl Fn(&Ask) -> Reply {
    move |ask: &Ask| match (ask.kind, ask.asked("resourceVersion")) {
        ("list", _) => list_then_more(ask),
        (_, Some("20")) => healthy(),
        _ => gone(),
    }
}

async fn a_410_in_the_stream_leads_to_a_list() {
    let script = gone_until_listed(|| Reply::watch(vec![error(410)]));
    let mistakes =
        mistakes!["ignores-error-events", "keeps-rv-after-410", "expects-410-only-in-http-status", "exits-on-410"];
    Story::new(script, told_x).tells_apart(mistakes).await;
}

async fn a_410_as_status_leads_to_a_list() {
    let script = gone_until_listed(|| Reply::refused(410, "Expired"));
    let mistakes = mistakes!["expects-410-only-in-stream", "keeps-rv-after-410", "exits-on-410"];
    Story::new(script, told_x).tells_apart(mistakes).await;
}

async fn what_was_deleted_before_a_410_is_noticed() {
    let script = |ask: &Ask| match (ask.kind, ask.asked("resourceVersion")) {
        ("list", _) if ask.nth == 1 => Reply::list(10, &[object("a", 5), object("b", 6)]),
        ("list", _) => Reply::list(20, &[object("b", 6)]),
        (_, Some("10")) => Reply::refused(410, "Expired"),
        _ => Reply::watch(vec![event("ADDED", &object("b", 6)), Piece::Hold]),
    };
    let mistakes = mistakes!["restarts-from-zero", "relist-without-diff"];
    Story::new(script, |play| play.told("a", "deleted")).tells_apart(mistakes).await;
}

async fn eight_errors_are_survived() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", _) => Reply::list(10, &[]),
        (_, ..=8) => Reply::refused(500, "InternalError"),
        _ => tells_x(),
    };
    let mut story = Story::new(script, told_x);
    story.lasts = Duration::from_secs(15);
    story.tells_apart(mistakes!["gives-up-after-n-errors", "gives-up-on-5xx"]).await;
}

async fn a_clean_end_is_resumed() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", _) => Reply::list(10, &[]),
        (_, 1) => Reply::watch(vec![bookmark(11, false)]),
        _ => tells_x(),
    };
    Story::new(script, told_x).tells_apart(mistakes!["gives-up-silently-at-end"]).await;
}

async fn a_periodic_list_that_fails_leaves_the_watch_open() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", 1) => Reply::list(10, &[]),
        ("list", _) => Reply::refused(429, "TooManyRequests"),
        _ => {
            let mut pieces: Vec<Piece> = (0..10).flat_map(|n| [bookmark(11 + n, false), pause_ms(300)]).collect();
            pieces.extend([event("ADDED", &object("x", 25)), Piece::Hold]);
            Reply::watch(pieces)
        }
    };
    let mut story = Story::new(script, told_x);
    story.arguments = &["--silence", "2s", "--relist", "1s"];
    story.lasts = Duration::from_secs(6);
    story.tells_apart(mistakes!["list-failure-kills-watch"]).await;
}

async fn a_list_that_is_older_than_the_watch_deletes_nothing() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", 1) => Reply::list(10, &[object("a", 5)]),
        // Made before x and sent after it.
        ("list", _) => Reply::list(14, &[object("a", 5)]).after(Duration::from_millis(900)),
        _ => {
            let mut pieces: Vec<Piece> = (0..4).flat_map(|_| [bookmark(11, false), pause_ms(300)]).collect();
            pieces.push(event("ADDED", &object("x", 15)));
            pieces.extend((0..50).flat_map(|n| [pause_ms(300), bookmark(16 + n, false)]));
            Reply::watch(pieces)
        }
    };
    let mut story = Story::new(script, |play| told_x(play) && !play.told("x", "deleted"));
    story.arguments = &["--silence", "2s", "--relist", "1s"];
    story.tells_apart(mistakes!["relist-beside-watch"]).await;
}

async fn a_list_from_the_past_is_not_believed() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", 1) => Reply::list(10, &[object("a", 9)]),
        ("list", 2) => Reply::list(8, &[object("a", 3), object("z", 4)]),
        // The one that may not be older.
        ("list", _) if ask.asked("resourceVersion") == Some("10") => list_then_more(ask),
        ("list", _) => Reply::list(8, &[]),
        (_, 1) => Reply::refused(410, "Expired"),
        _ => healthy(),
    };
    let right = |play: &Play| {
        told_x(play) && play.story("a") == ["added@9", "modified@5"]
            || told_x(play) && play.story("a") == ["added@9"] && !play.told("z", "added")
    };
    Story::new(script, right).tells_apart(mistakes!["accepts-older-list"]).await;
}

async fn a_revision_that_is_too_large_is_not_insisted_on() {
    let script = |ask: &Ask| match (ask.kind, ask.asked("resourceVersion")) {
        ("list", None) if ask.nth <= 2 => Reply::list(12 - 2 * u32::try_from(ask.nth).unwrap(), &[object("a", 5)]),
        ("list", None) => list_then_more(ask),
        ("watch", Some("20")) => healthy(),
        _ => Reply::refused(504, "Too large resource version: 10, current: 8"),
    };
    Story::new(script, told_x).tells_apart(mistakes!["no-too-large-fallback", "retries-same-rv"]).await;
}

/// 14 pages of one item.
fn pages(ask: &Ask) -> Reply {
    let page: u32 = ask.asked("continue").map_or(0, |token| token.parse().unwrap());
    let next = if page == 13 { String::new() } else { (page + 1).to_string() };
    Reply::page(100, &[object(&format!("p{page}"), page + 1)], &next)
}

async fn every_page_is_read() {
    let script = |ask: &Ask| if ask.kind == "list" { pages(ask) } else { Reply::watch(vec![Piece::Hold]) };
    let right = |play: &Play| play.told("p13", "added");
    Story::new(script, right).tells_apart(mistakes!["page-ceiling", "first-page-only"]).await;
}

async fn the_last_page_ends_the_list() {
    let script = |ask: &Ask| match (ask.kind, ask.asked("continue")) {
        ("list", None) => Reply::page(if ask.nth == 1 { 10 } else { 20 }, &[object("a", 5)], "t"),
        ("list", _) if ask.nth <= 2 => Reply::list(10, &[object("b", 6)]),
        ("list", _) => Reply::list(20, &[]),
        (_, _) if ask.asked("resourceVersion") == Some("20") => healthy(),
        _ => Reply::refused(410, "Expired"),
    };
    let right = |play: &Play| play.told("b", "deleted");
    Story::new(script, right).tells_apart(mistakes!["keeps-old-continue"]).await;
}

async fn the_watch_begins_where_the_list_ended() {
    let script = |ask: &Ask| match ask.kind {
        "list" => Reply::list(20, &[object("a", 9), object("b", 3)]),
        _ => healthy(),
    };
    let right = |play: &Play| {
        play.asked("watch", 1, "resourceVersion").as_deref() == Some("20")
            && play.asked("watch", 1, "allowWatchBookmarks").is_some()
    };
    let mistakes = mistakes!["watches-without-rv", "resumes-from-last-listed-item", "asks-no-bookmarks"];
    Story::new(script, right).tells_apart(mistakes).await;
}

async fn bytes_are_put_together() {
    let script = |ask: &Ask| {
        if ask.kind == "list" {
            return Reply::list(10, &[]);
        }
        let Piece::Bytes(bytes) = event("ADDED", &object("x", 15)) else { unreachable!() };
        let bytes = bytes.into_iter().flat_map(|byte| [Piece::Bytes(vec![byte]), pause_ms(1)]);
        Reply::watch(bytes.chain([Piece::Hold]).collect())
    };
    Story::new(script, told_x).tells_apart(mistakes!["decodes-per-chunk", "one-chunk-one-event"]).await;
}

async fn a_line_that_cannot_be_read_is_made_good() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", 1) => Reply::list(10, &[object("a", 5), object("b", 6)]),
        ("list", _) => Reply::list(20, &[object("a", 13), object("b", 12)]),
        (_, 1) => {
            let half = Piece::Bytes(b"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"na\n".to_vec());
            Reply::watch(vec![half, event("MODIFIED", &object("a", 13)), Piece::Hold])
        }
        _ => healthy(),
    };
    let right = |play: &Play| play.told("b", "modified");
    Story::new(script, right).tells_apart(mistakes!["swallows-bad-lines"]).await;
}

async fn a_new_token_is_read() {
    let script = |ask: &Ask| match (ask.kind, ask.token.as_str()) {
        ("list", _) => Reply::list(10, &[]),
        (_, "two") => tells_x(),
        _ => Reply::refused(401, "Unauthorized"),
    };
    let mut story = Story::new(script, told_x);
    story.during = |play| {
        if play.count("watch") > 0 {
            std::fs::write(&play.token_file, "two").unwrap();
        }
    };
    story.tells_apart(mistakes!["keeps-dead-token"]).await;
}

/// The second watch is never answered.
fn swallowed(ask: &Ask) -> Reply {
    match (ask.kind, ask.nth) {
        ("list", _) => Reply::list(10, &[]),
        (_, 1) => Reply::watch(vec![bookmark(11, false)]),
        (_, 2) => Reply::never(),
        _ => tells_x(),
    }
}

async fn an_answer_that_never_begins_is_not_waited_for() {
    for http in ["1", "2"] {
        let mut story = Story::new(swallowed, told_x);
        (story.http, story.lasts) = (http, Duration::from_secs(7));
        story.tells_apart(mistakes!["no-header-timeout", "timer-armed-by-headers"]).await;
    }
}

/// The first watch is silent, the list empty.
fn silent_at_first(ask: &Ask) -> Reply {
    match (ask.kind, ask.nth) {
        ("list", _) => Reply::list(10, &[]),
        (_, 1) => Reply::watch(vec![Piece::Hold]),
        _ => tells_x(),
    }
}

async fn silence_ends_a_watch() {
    for http in ["1", "2"] {
        let mut story = Story::new(silent_at_first, told_x);
        story.http = http;
        let mistakes = mistakes![
            "no-read-timeout",
            "timer-armed-by-first-event",
            "trusts-ping",
            "trusts-keepalive",
            "waits-for-first-item"
        ];
        story.tells_apart(mistakes).await;
    }
}

async fn after_silence_another_connection_is_used() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", _) => Reply::list(10, &[]),
        _ if ask.connection == 1 => Reply::watch(vec![Piece::Hold]),
        _ => tells_x(),
    };
    let mut story = Story::new(script, told_x);
    story.http = "2";
    story.tells_apart(mistakes!["reuses-dead-connection"]).await;
}

async fn a_broken_stream_is_noticed() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", _) => Reply::list(10, &[]),
        (_, 1) => Reply::watch(vec![bookmark(11, false), pause_ms(100), Piece::Cut]),
        _ => tells_x(),
    };
    for http in ["1", "2"] {
        let mut story = Story::new(script, told_x);
        story.http = http;
        story.tells_apart(mistakes!["swallows-read-errors"]).await;
    }
}

async fn a_failed_connection_is_tried_again() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", _) => Reply::list(10, &[]),
        (_, 1) => Reply::watch(vec![bookmark(11, false), pause_ms(300), Piece::Cut]),
        _ => tells_x(),
    };
    let mut story = Story::new(script, told_x);
    story.lasts = Duration::from_secs(6);
    story.during = |play| {
        // Nobody comes in for a second after the first watch.
        let asks = play.count("watch") + play.count("list");
        play.refuse.store(asks == 2, Ordering::Relaxed);
        if asks == 2 && play.token_file.metadata().unwrap().modified().unwrap().elapsed().unwrap().as_secs() > 2 {
            play.refuse.store(false, Ordering::Relaxed);
        }
    };
    story.tells_apart(mistakes!["pending-flag-stuck"]).await;
}

const STREAMING: &[&str] = &["--silence", "1s", "--relist", "30s", "--streaming-lists"];

async fn a_deletion_among_the_initial_events_counts() {
    let script = |ask: &Ask| match ask.kind {
        "list" => Reply::list(20, &[object("a", 5)]),
        _ => Reply::watch(vec![
            event("ADDED", &object("b", 6)),
            event("ADDED", &object("a", 5)),
            event("DELETED", &object("b", 8)),
            bookmark(10, true),
            pause_ms(20_000),
        ]),
    };
    let mut story = Story::new(script, |play| play.told("b", "deleted") && play.told("a", "added"));
    story.arguments = &["--silence", "30s", "--relist", "60s", "--streaming-lists"];
    story.lasts = Duration::from_secs(1);
    story.tells_apart(mistakes!["ignores-delete-before-initial-end"]).await;
}

async fn initial_events_are_asked_for_once() {
    let script = |ask: &Ask| match (ask.kind, ask.asked("sendInitialEvents")) {
        ("list", _) => Reply::list(20, &[object("a", 5)]),
        (_, Some(_)) => Reply::watch(vec![event("ADDED", &object("a", 5)), bookmark(10, true), pause_ms(1200)]),
        _ => Reply::watch(vec![bookmark(11, false), pause_ms(800), bookmark(12, false), pause_ms(400)]),
    };
    let mut story = Story::new(script, |play| play.count("watch") > 1 && play.story("a") == ["added@5"]);
    story.arguments = &["--silence", "2s", "--relist", "30s", "--streaming-lists"];
    story.tells_apart(mistakes!["asks-initial-events-again"]).await;
}

async fn initial_events_without_end_lead_to_a_list() {
    let script = |ask: &Ask| match (ask.kind, ask.asked("sendInitialEvents")) {
        ("list", _) => Reply::list(20, &[object("a", 5), object("x", 15)]),
        (_, Some(_)) => {
            let bookmarks = (0..100).flat_map(|_| [bookmark(10, false), pause_ms(300)]);
            Reply::watch([event("ADDED", &object("a", 5))].into_iter().chain(bookmarks).collect())
        }
        _ => healthy(),
    };
    let mut story = Story::new(script, told_x);
    (story.arguments, story.lasts) = (STREAMING, Duration::from_secs(8));
    story.tells_apart(mistakes!["waits-for-initial-end"]).await;
}

async fn one_bad_kind_leaves_the_others_alone() {
    let script = |ask: &Ask| match (ask.path.as_str(), ask.kind) {
        ("/api/v1/bad", _) => Reply::refused(500, "InternalError"),
        (_, "list") => Reply::list(10, &[]),
        _ => Reply::watch(vec![
            bookmark(11, false),
            pause_ms(900),
            bookmark(12, false),
            pause_ms(900),
            bookmark(13, false),
            pause_ms(900),
            event("ADDED", &object("x", 15)),
            Piece::Hold,
        ]),
    };
    let mut story = Story::new(script, told_x);
    (story.watch, story.lasts) = ("things/v1,bad/v1", Duration::from_millis(4500));
    story.arguments = &["--silence", "2s", "--relist", "30s"];
    story.tells_apart(mistakes!["one-bad-kind-blocks-all", "shared-backoff"]).await;
}

async fn a_403_is_not_for_ever() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", ..=2) => Reply::refused(403, "Forbidden"),
        ("list", _) => Reply::list(10, &[]),
        _ => tells_x(),
    };
    Story::new(script, told_x).tells_apart(mistakes!["stops-on-403"]).await;
}

async fn healthy_watches_live() {
    let script = |ask: &Ask| if ask.kind == "list" { Reply::list(10, &[]) } else { healthy() };
    let mut story = Story::new(script, |play| play.count("watch") == 1);
    (story.arguments, story.lasts) = (&["--silence", "10s", "--relist", "60s"], Duration::from_secs(8));
    story.tells_apart(mistakes!["aborts-healthy-streams"]).await;
}

async fn a_refused_handler_runs_again() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", _) => Reply::list(10, &[object("x", 5)]),
        ("write", 1) => Reply { retry_after: Some(1), ..Reply::refused(429, "TooManyRequests") },
        ("write", _) => Reply::body("{}"),
        _ => healthy(),
    };
    let mut story = Story::new(script, told_x);
    story.arguments = &["--silence", "1s", "--relist", "1s", "--handler", "status"];
    story.tells_apart(mistakes!["cache-before-callback"]).await;
}

async fn the_revision_of_another_object_makes_no_old_news() {
    let script = |ask: &Ask| match ask.kind {
        "list" => Reply::list(10, &[object("a", 5), object("x", 6)]),
        _ => Reply::watch(vec![
            event("MODIFIED", &object("a", 12)),
            event("MODIFIED", &object("x", 12)),
            pause_ms(20_000),
        ]),
    };
    let mut story = Story::new(script, |play| play.story("x") == ["added@6", "modified@12"]);
    story.arguments = &["--silence", "30s", "--relist", "30s"];
    story.tells_apart(mistakes!["skips-what-is-not-newer"]).await;
}

async fn what_is_told_again_is_no_news() {
    let told = || vec![event("MODIFIED", &object("x", 11)), event("MODIFIED", &object("x", 12))];
    let script = move |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", _) => Reply::list(10, &[object("x", 5)]),
        (_, 1) => Reply::watch(told()),
        _ => Reply::watch(told().into_iter().chain([event("ADDED", &object("z", 13)), pause_ms(20_000)]).collect()),
    };
    let right = |play: &Play| play.told("z", "added") && play.story("x").len() <= 3;
    let mut story = Story::new(script, right);
    story.arguments = &["--silence", "30s", "--relist", "30s"];
    story.tells_apart(mistakes!["believes-every-event"]).await;
}

async fn what_a_write_was_answered_is_still_news() {
    let script = |ask: &Ask| match ask.kind {
        "list" => Reply::list(10, &[object("x", 5)]),
        "write" => Reply::body(object("x", 12).to_string()),
        // The answer overtakes the watch.
        _ => Reply::watch(vec![pause_ms(800), event("MODIFIED", &object("x", 12)), pause_ms(20_000)]),
    };
    let mut story = Story::new(script, |play| play.told("x", "modified"));
    story.arguments = &["--silence", "30s", "--relist", "30s", "--handler", "status"];
    story.tells_apart(mistakes!["caches-its-own-writes"]).await;
}

async fn objects_have_no_watches() {
    let script = |ask: &Ask| match ask.kind {
        "list" => Reply::list(10, &[object("a", 5), object("x", 6)]),
        _ => healthy(),
    };
    let mut story = Story::new(script, |play| play.count("watch") == 1);
    story.arguments = &["--silence", "30s", "--relist", "30s"];
    story.tells_apart(mistakes!["watch-per-object"]).await;
}

async fn handlers_keep_the_order() {
    let script = |ask: &Ask| match ask.kind {
        "list" => Reply::list(10, &[object("x", 5)]),
        _ => Reply::watch(vec![
            event("MODIFIED", &object("x", 11)),
            pause_ms(200),
            event("MODIFIED", &object("x", 12)),
            pause_ms(20_000),
        ]),
    };
    let right = |play: &Play| play.story("x") == ["added@5", "modified@11", "modified@12"];
    Story::new(script, right).tells_apart(mistakes!["handlers-overtake"]).await;
}

async fn a_deletion_waits_behind_its_addition() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", 1) => Reply::list(10, &[]),
        ("list", _) => Reply::list(20, &[]),
        (_, 1) => Reply::watch(vec![event("ADDED", &object("x", 15)), error(410)]),
        _ => healthy(),
    };
    let mut story = Story::new(script, |play| play.told("x", "deleted"));
    story.arguments = &["--silence", "1s", "--relist", "30s", "--handler-delay", "1s"];
    story.tells_apart(mistakes!["drops-delete-of-unknown"]).await;
}

async fn a_namesake_is_another_object() {
    let script = |ask: &Ask| match (ask.kind, ask.nth) {
        ("list", 1) => Reply::list(10, &[object_of("one", "x", 5)]),
        ("list", _) => Reply::list(20, &[object_of("two", "x", 15)]),
        (_, 1) => Reply::refused(410, "Expired"),
        _ => healthy(),
    };
    let right = |play: &Play| play.story("x") == ["added@5", "deleted@5", "added@15"];
    Story::new(script, right).tells_apart(mistakes!["replaces-by-name"]).await;
}

/// Every watch is silent, or ends; what is given up must be closed.
async fn what_is_given_up_is_closed() {
    let script = |ask: &Ask| match ask.kind {
        "list" => Reply::list(10, &[object("x", 5)]),
        _ => Reply::watch(vec![Piece::Hold]),
    };
    for http in ["1", "2"] {
        let mut story = Story::new(script, |play| play.count("watch") > 8 && play.open.load(Ordering::Relaxed) <= 2);
        (story.http, story.lasts) = (http, Duration::from_secs(4));
        story.arguments = &["--silence", "200ms", "--relist", "30s"];
        story.tells_apart(mistakes!["connection-per-reconnect", "watch-not-closed"]).await;
    }
}

async fn each_watch_is_followed_by_one() {
    let script = |ask: &Ask| match ask.kind {
        "list" => Reply::list(10, &[object("x", 5)]),
        _ => Reply::watch(vec![bookmark(11, false), pause_ms(500)]),
    };
    let mut story = Story::new(script, |play| (1..24).contains(&play.count("watch")));
    story.lasts = Duration::from_secs(8);
    story.tells_apart(mistakes!["double-reconnect", "both-ends-reconnect"]).await;
}

async fn a_full_connection_is_not_the_last() {
    let script = |ask: &Ask| if ask.kind == "list" { Reply::list(10, &[]) } else { tells_x() };
    let mut story = Story::new(script, |play| play.count("watch") == 12 && told_x(play));
    (story.http, story.streams) = ("2", 5);
    story.arguments = &["--silence", "5s", "--relist", "30s", "--copies", "12"];
    story.tells_apart(mistakes!["one-connection-waits"]).await;
}

async fn seventy_watches_are_seventy_requests() {
    let script = |ask: &Ask| if ask.kind == "list" { Reply::list(10, &[]) } else { tells_x() };
    let mut story = Story::new(script, |play| play.count("watch") == 70 && told_x(play));
    story.arguments = &["--silence", "10s", "--relist", "60s", "--copies", "70"];
    story.tells_apart(mistakes!["queues-watches"]).await;
}

/// Threads of the client, and its resident memory in KiB.
fn size(play: &Play) -> (u64, u64) {
    let path = format!("/proc/{}/status", play.client.id().unwrap());
    let status = std::fs::read_to_string(path).unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    (field("Threads:"), field("VmRSS:"))
}

async fn watches_have_no_threads() {
    let script = |ask: &Ask| match ask.kind {
        "list" => Reply::list(10, &[]),
        _ => Reply::watch(vec![bookmark(11, false), pause_ms(100)]),
    };
    Story::new(script, |play| size(play).0 < 16).tells_apart(mistakes!["threads-per-watch"]).await;
}

async fn names_and_lists_leave_nothing_behind() {
    const MUCH_KIB: u64 = 30 << 10;
    for name in ["map-per-name", "label-per-relist"] {
        let script = move |ask: &Ask| match (ask.kind, name) {
            ("list", "map-per-name") => {
                // Other objects each time, for a while.
                let round = ask.nth.min(10);
                let items: Vec<Value> = (0..300).map(|n| object(&format!("x{round}-{n}"), 5)).collect();
                Reply::list(10 + u32::try_from(ask.nth).unwrap(), &items)
            }
            ("list", _) => Reply::list(10 + u32::try_from(ask.nth).unwrap(), &[]),
            _ => Reply::watch(vec![Piece::Hold]),
        };
        let mut story = Story::new(script, |play| play.count("list") > 10 && size(play).1 < MUCH_KIB);
        story.arguments = &["--silence", "20s", "--relist", "5ms"];
        story.lasts = Duration::from_secs(6);
        story.tells_apart(&[&mistake(name)]).await;
    }
}

/// 40 MiB of events before a handler that takes its time.
async fn queues_are_bounded() {
    let script = |ask: &Ask| {
        if ask.kind == "list" {
            return Reply::list(10, &[]);
        }
        let large = |n: u32| {
            let mut object = object("x", 20 + n);
            object["spec"] = "x".repeat(16 << 10).into();
            event("MODIFIED", &object)
        };
        Reply::watch((0..2_500).map(large).chain([Piece::Hold]).collect())
    };
    let mut story = Story::new(script, |play| told_x(play) && size(play).1 < 24 << 10);
    story.arguments = &["--silence", "30s", "--relist", "60s", "--handler-delay", "100ms"];
    story.lasts = Duration::from_secs(8);
    story.tells_apart(mistakes!["unbounded-queue"]).await;
}
