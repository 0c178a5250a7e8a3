//! Tests that sending reviews allocates no memory: after three thousand calls, ten thousand more cause no allocation.
//!
//! The test has its own binary, because an allocator belongs to a whole program. Allocations by the server and the
//! runtime do not count, because their threads are marked.
#![expect(clippy::unwrap_used, reason = "a test whose scaffolding fails has failed")]
#![expect(unsafe_code, reason = "an allocator is unsafe by its nature; this one only counts and passes on")]

#[path = "it/server.rs"]
#[expect(dead_code, reason = "shared with the other tests")]
mod server;

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use hyper::Request;
use hyper::body::Incoming;
use loadgen::admission::{Config, Load, Plan, Target};
use server::Server;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Whether no allocation is expected, so that the first one is remembered with its backtrace.
static WATCHED: AtomicBool = AtomicBool::new(false);
static FIRST: OnceLock<String> = OnceLock::new();

thread_local! {
    static EXEMPT: Cell<bool> = const { Cell::new(false) };
}

struct Counting;

impl Counting {
    fn count() {
        if EXEMPT.try_with(Cell::get).unwrap_or(true) {
            return;
        }
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        if WATCHED.load(Ordering::Relaxed) {
            EXEMPT.set(true);
            FIRST.get_or_init(|| {
                let thread = std::thread::current();
                format!("on {}:\n{}", thread.name().unwrap_or("a thread"), Backtrace::force_capture())
            });
            EXEMPT.set(false);
        }
    }
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count();
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count();
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of calls before allocations are counted, in which connections are opened and buffers grow.
const WARM_UP: u64 = 3_000;
const COUNTED: u64 = 10_000;

/// From the plan to the record of an answer, a call allocates nothing at any pace. One test covers HTTP/1.1 and HTTP/2,
/// because the counter belongs to the whole program.
#[test]
#[ignore = "slow"]
fn a_call_allocates_nothing() {
    EXEMPT.set(true);
    allocates_nothing(b"http/1.1", "apiserver", 4);
    allocates_nothing(b"h2", "http2", 32);
}

fn allocates_nothing(alpn: &'static [u8], client: &str, under_way: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .on_thread_start(|| EXEMPT.set(true))
        .enable_all()
        .build()
        .unwrap();
    let server = runtime.block_on(runtime.spawn(async move {
        let allow = |request: Request<Incoming>| async move {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let uid = std::str::from_utf8(&body).unwrap().split_once(r#""uid":""#).unwrap().1[..36].to_owned();
            let answer = serde_json::json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "response": {"uid": uid, "allowed": true}});
            server::respond(200, "application/json", answer.to_string())
        };
        Server::start(&[alpn], allow).await
    }));
    let server = server.unwrap();
    let target = Target {
        url: format!("https://{}/mutate", server.address),
        ca_pem: server.ca_pem.clone(),
        ..Target::default()
    };
    let config = format!(r#"{{"rate": "1000/s", "timeout": "30s", "client": "{client}"}}"#);
    let config: Config = serde_json::from_str(&config).unwrap();
    let plan = Plan::for_any_webhook(&config, 7, Duration::from_mins(1)).unwrap();
    let load = Load::saturate(plan, &target, under_way).unwrap();
    let answered = || load.planned_now();
    wait(|| answered() >= WARM_UP);
    let (allocations, calls) = (ALLOCATIONS.load(Ordering::Relaxed), answered());
    assert!(allocations > 0, "opening connections allocates, so something is wrong with the counter");
    WATCHED.store(true, Ordering::Relaxed);
    wait(|| answered() >= calls + COUNTED);
    WATCHED.store(false, Ordering::Relaxed);
    let allocated = ALLOCATIONS.load(Ordering::Relaxed) - allocations;
    let interval = runtime.block_on(load.stop(Duration::from_secs(20)));
    assert_eq!((interval.errors(), interval.counts.wrong_verdicts), (0, 0), "{:?}", interval.examples);
    assert_eq!(
        allocated,
        0,
        "allocations in {COUNTED} calls of {client}, the first {}",
        FIRST.get().map_or("unseen", String::as_str)
    );
}

/// Polls until the condition holds; panics after two minutes.
fn wait(condition: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_mins(2);
    while !condition() {
        assert!(Instant::now() < limit, "the load does not get on");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
