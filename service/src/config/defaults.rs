//! Every default of the configuration with its reason.

use std::time::Duration;

/// etcd limits an object to 1.5 MiB; a review carries two of them, escaped, and some overhead.
pub const MAX_BODY_BYTES: u64 = 8 << 20;
/// Above this a single review could hold more memory than the whole service should need.
pub const MAX_BODY_BYTES_MOST: u64 = 64 << 20;
/// kube-apiserver allows itself 200 mutating requests in flight by default; twice that serves two of them.
pub const MAX_IN_FLIGHT: usize = 400;
/// Half of the 10 s that a webhook gets by default, so that a denial with a reason still arrives in time.
pub const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Long enough to serve a rollout from memory, short enough that a moved tag is noticed soon.
pub const CACHE_TTL: Duration = Duration::from_secs(30);
/// About 15,000 images at some 280 bytes each.
pub const CACHE_BYTES: u64 = 4 << 20;
/// The interval Pepr uses for the same safety net.
pub const RELIST_INTERVAL: Duration = Duration::from_mins(10);
/// A dead link is noticed when the server should have ended the watch and did not; 45 s keeps that under a minute.
pub const SERVER_TIMEOUT: Duration = Duration::from_secs(45);
/// The server's timeout and 5 s for a slow goodbye.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(50);
/// Twice the time a busy server needs to answer; the real wait is drawn between zero and this.
pub const BACKOFF_INITIAL: Duration = Duration::from_millis(200);
/// A recovered server is found again within half a minute.
pub const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// Enough to hide the latency of an API server, few enough to be a polite client.
pub const WORKERS: usize = 8;
/// The waits of the UDS operator between its five attempts: powers of three.
pub const RETRIES: [Duration; 4] =
    [Duration::from_secs(3), Duration::from_secs(9), Duration::from_secs(27), Duration::from_secs(81)];
/// Inside the 30 s that Kubernetes gives a terminating pod.
pub const DRAIN: Duration = Duration::from_secs(20);
