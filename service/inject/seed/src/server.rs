//! The HTTP server: one thread per connection, a limited number of connections, and an end that finishes open answers.
//!
//! The server uses blocking calls on purpose: most of its work is `sendfile`, and a thread costs a few pages of stack.
//! Every wait has a time limit.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::assemble::Store;
use crate::failure::Failure;
use crate::http::{self, Body, HEAD_BYTES_MAX, HeadError};
use crate::signals::Signals;

/// Maximum number of connections at one time; with stacks and buffers they use about a megabyte. Connections beyond
/// this number wait in the system's queue.
const CONNECTIONS_MAX: usize = 48;
/// Stack size of a connection's thread, in bytes; only used pages cost memory.
const STACK_BYTES: usize = 64 << 10;
/// Longest wait for the next request on a connection. Go's clients keep idle connections for 90 s.
const IDLE: Duration = Duration::from_mins(2);
/// Longest wait for the next request while other connections wait to be accepted.
const IDLE_WHEN_CROWDED: Duration = Duration::from_secs(1);
/// Time limit for reading a request's head, from its first byte on.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Interval at which a waiting connection checks whether it should close.
const TICK: Duration = Duration::from_millis(250);
/// Time limit for a client that reads none of its answer.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// Time limit for open answers after SIGTERM or SIGINT: half of the default grace period of a Pod.
const DRAIN: Duration = Duration::from_secs(15);

struct Shared {
    store: Store,
    state: Mutex<State>,
    /// Notified when a connection ends.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    open: usize,
    /// Whether a connection waits to be accepted.
    crowded: bool,
    draining: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held, and the count would still be right.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves the files in `store` until a signal arrives.
pub fn serve(address: &str, store: Store, mut signals: Signals) -> Result<(), Failure> {
    let system = |what: String| move |source| Failure::System { what, source };
    if signals.came() {
        return Ok(());
    }
    let listener = listen(address).map_err(system(format!("cannot listen on {address}")))?;
    let local = listener.local_addr().map_err(system("no local address".to_owned()))?;
    let shared = Arc::new(Shared { store, state: Mutex::default(), changed: Condvar::new() });
    let ending = Arc::clone(&shared);
    thread::Builder::new()
        .name("signals".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            signals.wait();
            drain(&ending);
            // The threads of idle connections end with the process.
            std::process::exit(0);
        })
        .map_err(system("a thread cannot be started".to_owned()))?;
    eprintln!("longhaul-seed: serving on {local}");
    loop {
        match listener.accept() {
            Ok((stream, _)) => admit(&shared, stream),
            // The client left, or descriptors ran out for a moment.
            Err(_) => drop(shared.changed.wait_timeout(shared.state(), TICK)),
        }
    }
}

/// Binds `address`. `[::]` accepts IPv4 too; on a system without IPv6, an IPv4 socket is bound.
fn listen(address: &str) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address);
    match (listener, address.strip_prefix("[::]:")) {
        (Err(_), Some(port)) => TcpListener::bind(format!("0.0.0.0:{port}")),
        (listener, _) => listener,
    }
}

/// Waits until the limit of connections allows one more connection, then starts the connection's thread. During the
/// wait, new connections wait in the system's queue.
fn admit(shared: &Arc<Shared>, stream: TcpStream) {
    let mut state = shared.state();
    while state.open >= CONNECTIONS_MAX {
        state.crowded = true;
        state = shared.changed.wait_timeout(state, TICK).map_or_else(|error| error.into_inner().0, |(state, _)| state);
    }
    state.crowded = false;
    state.open += 1;
    drop(state);
    let connection = Arc::clone(shared);
    let started = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        // A client that closes its connection is not reported.
        let _ = Connection { shared: &connection, stream }.run();
        leave(&connection);
    });
    if started.is_err() {
        leave(shared);
    }
}

fn leave(shared: &Shared) {
    shared.state().open -= 1;
    shared.changed.notify_all();
}

fn drain(shared: &Shared) {
    eprintln!("longhaul-seed: ending");
    let until = Instant::now() + DRAIN;
    let mut state = shared.state();
    state.draining = true;
    while state.open > 0 && Instant::now() < until {
        state = shared.changed.wait_timeout(state, TICK).map_or_else(|error| error.into_inner().0, |(state, _)| state);
    }
}

struct Connection<'s> {
    shared: &'s Shared,
    stream: TcpStream,
}

impl Connection<'_> {
    fn run(mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        self.stream.set_write_timeout(Some(WRITE_TIME))?;
        self.stream.set_read_timeout(Some(TICK))?;
        let mut bytes = Vec::new();
        loop {
            let Some(length) = self.head(&mut bytes)? else { return Ok(()) };
            let head = http::parse(&bytes[..length]);
            let draining = self.shared.state().draining;
            let close = draining || head.as_ref().map_or(true, |head| head.close);
            self.send(head.as_ref().map_err(|error| *error), close)?;
            if close {
                return Ok(());
            }
            bytes.drain(..length);
        }
    }

    /// Reads until the head of a request is complete; `None` if the connection should close.
    fn head(&mut self, bytes: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let mut since = Instant::now();
        let mut piece = [0; 1024];
        loop {
            if let Some(length) = http::complete(bytes) {
                return Ok(Some(length));
            }
            if bytes.len() > HEAD_BYTES_MAX {
                self.send(Err(HeadError::Malformed), true)?;
                return Ok(None);
            }
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(read) => {
                    if bytes.is_empty() {
                        since = Instant::now();
                    }
                    bytes.extend_from_slice(&piece[..read]);
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if since.elapsed() > self.patience(bytes.is_empty()) {
                return Ok(None);
            }
        }
    }

    fn patience(&self, idle: bool) -> Duration {
        let state = self.shared.state();
        match (idle, state.crowded, state.draining) {
            (false, ..) => HEAD_TIME,
            (true, _, true) => Duration::ZERO,
            (true, true, false) => IDLE_WHEN_CROWDED,
            (true, false, false) => IDLE,
        }
    }

    fn send(&mut self, head: Result<&http::Head<'_>, HeadError>, close: bool) -> io::Result<()> {
        let http::Answer { head: mut text, body } = http::answer(head, &self.shared.store);
        text.push_str(if close { "Connection: close\r\n\r\n" } else { "\r\n" });
        match body {
            Body::Nothing => self.stream.write_all(text.as_bytes()),
            Body::Bytes(bytes) => {
                self.stream.write_all(text.as_bytes())?;
                self.stream.write_all(&bytes)
            }
            Body::File(mut file, from, bytes) => {
                self.stream.write_all(text.as_bytes())?;
                file.seek(SeekFrom::Start(from))?;
                // `io::copy` between a file and a socket is `sendfile`.
                let sent = io::copy(&mut file.take(bytes), &mut self.stream)?;
                // The file became shorter: the client must not take later bytes for its rest.
                if sent == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
            }
        }
    }
}
