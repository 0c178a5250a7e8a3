//! [`Load`]: a plan that is being sent. Owns the generator threads, and adds up their records.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Error;
use super::config::{Client, Config};
use super::corpus::Corpus;
use super::generator::{Generator, Setup};
use super::interval::Interval;
use super::plan::{Plan, Request};
use super::shared::{Shared, Stop};
use crate::open_loop::Planned;
use crate::wire::{Endpoint, Tls};

/// Maximum number of connections of one thread in a closed loop. Further connections would only wait for each other.
const CLOSED_LOOP_MAX: usize = 10_000;

/// The webhook under load.
#[derive(Debug, Clone, Default)]
pub struct Target {
    /// The URL of the webhook: `https://127.0.0.1:8443/mutate`.
    pub url: String,
    /// The name that the webhook's certificate must contain, such as `<service>.<namespace>.svc`. If empty, the host in
    /// the URL is used.
    pub server_name: String,
    /// The CA certificates that signed the webhook's certificate, as PEM.
    pub ca_pem: String,
    /// The client's certificate, for a server that requires one.
    pub client_certificate: Option<ClientCertificate>,
    /// The clock by which the webhook's certificate is checked, if it is not the machine's clock.
    pub pace: Option<go_rules::tls::Pace>,
}

/// A client certificate with its private key. Neither the certificate nor the key is ever printed.
#[derive(Clone)]
pub struct ClientCertificate {
    /// The certificate, followed by its issuers' certificates, as PEM.
    pub chain_pem: String,
    /// The private key of the certificate as PEM: PKCS#8, PKCS#1 or SEC1.
    pub key_pem: String,
}

impl std::fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientCertificate").finish_non_exhaustive()
    }
}

/// Load that is being sent; dropping the value stops it at once.
#[derive(Debug)]
pub struct Load {
    threads: Vec<Thread>,
    corpus: Arc<Corpus>,
    closed_loop: bool,
}

#[derive(Debug)]
struct Thread {
    shared: Arc<Shared>,
    stop: Arc<Stop>,
    waker: mio::Waker,
    done: Option<oneshot::Receiver<()>>,
    handle: Option<std::thread::JoinHandle<()>>,
}

impl Load {
    /// Starts the threads that send the load. The first request is sent at `begin`. If `begin` is past, overdue
    /// requests are sent at once and count as late. The target's addresses are resolved first, which may take seconds
    /// if its host is a name.
    pub fn start(plan: Plan, target: &Target, begin: Instant) -> Result<Self, Error> {
        let config = plan.config().clone();
        let threads = config.threads as usize;
        let endpoint = endpoint(&config, target)?;
        let mut load = Self { threads: Vec::new(), corpus: Arc::clone(plan.corpus()), closed_loop: false };
        for (number, plan) in std::iter::repeat_n(plan, threads).enumerate() {
            // The remainder goes to the first threads.
            let in_flight_max = (config.max_in_flight as usize + threads - 1 - number) / threads;
            let share = plan.requests().skip(number).step_by(threads);
            let setup = Setup::new(&config, &endpoint, Arc::clone(&load.corpus), in_flight_max)?;
            load.spawn(number, setup, Planned::at_times(share, begin))?;
        }
        Ok(load)
    }

    /// Sends as fast as possible, which is only for benchmarks and for finding a capacity. Each thread has
    /// `connections` connections (with HTTP/2 as many streams as the server allows). On each connection or stream the
    /// next request is sent as soon as the last is answered, until the plan ends or the load is stopped. The planned
    /// times of the requests do not count. Load without planned times is a *closed* loop, which hides the waiting that
    /// users would notice.
    pub fn saturate(plan: Plan, target: &Target, connections: usize) -> Result<Self, Error> {
        Self::closed_loop(plan, target, connections, false)
    }

    /// Sends as fast as possible with threads that never sleep, for a server that has its own CPUs; see
    /// [`Self::saturate`]. An answer to a sleeping thread costs the *server* the waking of a CPU. Without this
    /// function, a server that is slow enough to let the threads sleep would look slower than it is.
    pub fn saturate_awake(plan: Plan, target: &Target, connections: usize) -> Result<Self, Error> {
        Self::closed_loop(plan, target, connections, true)
    }

    fn closed_loop(plan: Plan, target: &Target, connections: usize, awake: bool) -> Result<Self, Error> {
        let config = plan.config().clone();
        let refuse = |key, problem: String| Err(Error::Config { key, problem });
        if connections == 0 || connections > CLOSED_LOOP_MAX {
            return refuse("connections", format!("is {connections}: write 1 to {CLOSED_LOOP_MAX}"));
        }
        let endpoint = endpoint(&config, target)?;
        let threads = config.threads as usize;
        let mut load = Self { threads: Vec::new(), corpus: Arc::clone(plan.corpus()), closed_loop: true };
        for (number, plan) in std::iter::repeat_n(plan, threads).enumerate() {
            let share = plan.requests().skip(number).step_by(threads);
            let setup = Setup::new(&config, &endpoint, Arc::clone(&load.corpus), connections)?;
            let setup = setup.keeping(connections).awake(awake);
            load.spawn(number, setup, Planned::closed_loop(share, connections))?;
        }
        Ok(load)
    }

    fn spawn(&mut self, number: usize, setup: Setup, source: Planned<Request>) -> Result<(), Error> {
        let shared = Arc::new(Shared::default());
        let stop = Arc::new(Stop::default());
        let (generator, waker) = Generator::new(setup, source, Arc::clone(&shared), Arc::clone(&stop))?;
        let (finished, done) = oneshot::channel();
        let handle = std::thread::Builder::new().name(format!("admission-{number}")).spawn(move || {
            generator.run();
            let _ = finished.send(());
        })?;
        self.threads.push(Thread { shared, stop, waker, done: Some(done), handle: Some(handle) });
        Ok(())
    }

    /// The counts and measurements since the last call of `take`.
    pub fn take(&self) -> Interval {
        let mut intervals =
            self.threads.iter().map(|thread| thread.shared.take().finish_with(&self.corpus, self.closed_loop));
        let mut total = intervals.next().unwrap_or_default();
        for interval in intervals {
            total.add(&interval);
        }
        total
    }

    /// Number of due requests that [`Load::take`] has not returned yet.
    pub fn planned_now(&self) -> u64 {
        self.threads.iter().map(|thread| thread.shared.counts.planned.load(Ordering::Relaxed)).sum()
    }

    /// Plans no further request, waits for `drain` for calls to end, cuts off calls that have not ended (these count as
    /// `abandoned`), and returns the counts since the last [`Load::take`].
    pub async fn stop(mut self, drain: Duration) -> Interval {
        self.signal(Instant::now() + drain);
        for thread in &mut self.threads {
            if let Some(done) = thread.done.take() {
                // An error means that the thread panicked, which the panic hook has printed.
                let _ = done.await;
            }
        }
        self.join();
        self.take()
    }

    fn signal(&self, until: Instant) {
        for thread in &self.threads {
            thread.stop.by(until);
            // A failed wake-up costs one second at most: the thread wakes by itself every second.
            let _ = thread.waker.wake();
        }
    }

    fn join(&mut self) {
        for thread in &mut self.threads {
            if let Some(handle) = thread.handle.take() {
                let _ = handle.join();
            }
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.signal(Instant::now());
        self.join();
    }
}

fn endpoint(config: &Config, target: &Target) -> Result<Endpoint, Error> {
    let alpn: &[u8] = if config.client == Client::Http2 { b"h2" } else { b"http/1.1" };
    let identity = target.client_certificate.as_ref();
    let identity = identity.map(|identity| (&*identity.chain_pem, &*identity.key_pem));
    let tls = Tls { alpn, resumption: config.tls_resumption, identity, pace: target.pace };
    Ok(Endpoint::with(&target.url, &target.server_name, &target.ca_pem, tls)?)
}
