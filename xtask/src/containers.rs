//! The tests that start containers (`scenarios/containers`), a workspace of its own: nobody else compiles its packages.
//! These tests are built and run only if a container engine answers (decision 077).
//!
//! testcontainers 0.28 speaks only the newest version of Docker's API and does not negotiate. Engines from Debian and
//! most others are older and refuse such requests. For an older engine, this module starts a relay that writes the
//! engine's version into the path of each request.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::{cargo, plain};

/// The folder of the tests.
pub(crate) const FOLDER: &str = "scenarios/containers";
/// The socket of an engine, if `DOCKER_HOST` names no other.
const SOCKET: &str = "/var/run/docker.sock";
/// The variable with the engine's address, which all Docker clients read.
const ENGINE: &str = "DOCKER_HOST";
/// The variable with the address of published ports, as testcontainers for other languages read it.
const PUBLISHED: &str = "TESTCONTAINERS_HOST_OVERRIDE";
/// The version of Docker's API that testcontainers 0.28 speaks.
const API: (u32, u32) = (1, 53);
/// The time limit of the engine's first answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum length of a request's head; Docker clients send less than 4 KiB.
const HEAD_MAX: usize = 64 << 10;
/// Maximum length of the engine's description of itself; Docker 28 sends 2 KiB.
const VERSION_MAX: u64 = 1 << 20;

/// A container engine, by the address of its API.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Engine {
    Socket(String),
    Tcp(String),
}

impl Engine {
    /// The engine that `DOCKER_HOST` names, or the default socket; `None` for an address that this module cannot reach.
    fn named(variable: Option<&str>) -> Option<Self> {
        let Some(address) = variable.filter(|address| !address.is_empty()) else {
            return Some(Self::Socket(SOCKET.to_owned()));
        };
        let tcp = || address.strip_prefix("tcp://").or_else(|| address.strip_prefix("http://"));
        let socket = address.strip_prefix("unix://").map(|path| Self::Socket(path.to_owned()));
        socket.or_else(|| tcp().map(|address| Self::Tcp(address.trim_end_matches('/').to_owned())))
    }

    /// The host at which the engine publishes ports.
    fn published(&self) -> &str {
        match self {
            Self::Socket(_) => "127.0.0.1",
            Self::Tcp(address) => address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host),
        }
    }

    fn connect(&self) -> Result<Stream> {
        Ok(match self {
            Self::Socket(path) => Stream::Socket(UnixStream::connect(path)?),
            Self::Tcp(address) => {
                let mut addresses = address.to_socket_addrs()?;
                let first = addresses.next().context("no address")?;
                Stream::Tcp(TcpStream::connect_timeout(&first, PATIENCE)?)
            }
        })
    }

    /// The version of the engine's API.
    fn version(&self) -> Result<(u32, u32)> {
        let mut stream = self.connect()?;
        stream.limit(Some(PATIENCE))?;
        stream.write_all(b"GET /version HTTP/1.0\r\nHost: docker\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(VERSION_MAX).read_to_string(&mut answer)?;
        let (_, rest) = answer.split_once("\"ApiVersion\":\"").context("the answer names no version")?;
        numbers(rest.split('"').next().unwrap_or_default()).context("the version has an unknown form")
    }
}

/// A connection to an engine.
enum Stream {
    Socket(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn limit(&self, time: Option<Duration>) -> std::io::Result<()> {
        match self {
            Self::Socket(stream) => stream.set_read_timeout(time),
            Self::Tcp(stream) => stream.set_read_timeout(time),
        }
    }

    fn second(&self) -> std::io::Result<Self> {
        match self {
            Self::Socket(stream) => stream.try_clone().map(Self::Socket),
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
        }
    }

    fn close(&self, how: Shutdown) {
        // The other side may have closed the connection already.
        let _ = match self {
            Self::Socket(stream) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Socket(stream) => stream.read(into),
            Self::Tcp(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Socket(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The container engine of this machine, if one answers, with the version of its API.
fn engine() -> Option<(Engine, (u32, u32))> {
    let variable = std::env::var(ENGINE).ok();
    let engine = Engine::named(variable.as_deref())?;
    let version = engine.version().ok()?;
    Some((engine, version))
}

/// Whether a container engine answers.
pub(crate) fn has_engine() -> bool {
    engine().is_some()
}

/// A Cargo command for the workspace of these tests.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = cargo::cargo();
    command.current_dir(cargo::root().join(FOLDER)).args(arguments);
    // A folder of its own, because other versions of the same packages would replace each other.
    command.env("CARGO_TARGET_DIR", cargo::target().join("containers"));
    command
}

/// Builds and runs the tests, with the tested programs in a folder. Without an engine, prints a message.
pub(crate) fn test(programs: &Path) -> Result<()> {
    let Some((engine, version)) = engine() else {
        println!("skipped: needs an engine: the tests of {FOLDER} ({ENGINE}, {SOCKET})");
        return Ok(());
    };
    let mut tests = cargo(&["test"]);
    tests.env("LONGHAUL_PROGRAMS", programs);
    if version < API {
        if std::env::var_os(PUBLISHED).is_none() {
            tests.env(PUBLISHED, engine.published());
        }
        tests.env(ENGINE, relay(engine, version)?);
    }
    // Each test starts a container; two at a time leave a processor to the engine.
    plain::run(tests.args(["--", "--test-threads=2"]))
}

/// Starts a relay to an engine, and returns the relay's address as a value of `DOCKER_HOST`. The relay ends with this
/// program.
fn relay(engine: Engine, version: (u32, u32)) -> Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("failed to open a relay to the engine")?;
    let address = format!("tcp://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let engine = engine.clone();
            // A failed connection is an error of the client, which the test reports.
            std::thread::spawn(move || forward(Stream::Tcp(client), &engine, version).ok());
        }
    });
    Ok(address)
}

/// Forwards one request and its answer, then closes the connection.
fn forward(mut client: Stream, engine: &Engine, version: (u32, u32)) -> Result<()> {
    let (head, body) = head(&mut client)?;
    let mut server = engine.connect()?;
    server.write_all(rewritten(&head, version).as_bytes())?;
    server.write_all(&body)?;
    let (mut from, mut to) = (client.second()?, server.second()?);
    let upwards = std::thread::spawn(move || {
        let copied = std::io::copy(&mut from, &mut to);
        to.close(Shutdown::Write);
        copied
    });
    let copied = std::io::copy(&mut server, &mut client);
    client.close(Shutdown::Both);
    server.close(Shutdown::Both);
    upwards.join().ok();
    copied.map(drop).context("failed to forward an answer")
}

/// Reads the head of a request; returns the head, and the bytes of the body that came with it.
fn head(client: &mut Stream) -> Result<(String, Vec<u8>)> {
    let mut read = Vec::new();
    let mut part = [0; 4096];
    loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            let body = read.split_off(end + 4);
            return Ok((String::from_utf8(read).context("a request that is not text")?, body));
        }
        ensure!(read.len() < HEAD_MAX, "the head of a request is too long");
        let count = client.read(&mut part)?;
        ensure!(count > 0, "the client closed the connection");
        read.extend_from_slice(&part[..count]);
    }
}

/// The head of a request with another version in its path. The connection ends with the answer, so that only the first
/// request of a connection has to be read; an upgraded connection ends by itself.
fn rewritten(head: &str, (major, minor): (u32, u32)) -> String {
    let (first, rest) = head.split_once("\r\n").unwrap_or((head, ""));
    let mut words: Vec<String> = first.split(' ').map(str::to_owned).collect();
    if let Some(path) = words.get_mut(1)
        && let Some((version, below)) = path.strip_prefix("/v").and_then(|path| path.split_once('/'))
        && numbers(version).is_some()
    {
        *path = format!("/v{major}.{minor}/{below}");
    }
    let upgrades =
        rest.to_ascii_lowercase().contains("\r\nupgrade:") || rest.to_ascii_lowercase().starts_with("upgrade:");
    let closes = if upgrades { "" } else { "Connection: close\r\n" };
    format!("{}\r\n{closes}{rest}", words.join(" "))
}

/// The two numbers of a version such as `1.41`.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_found_by_its_address() {
        let named = |address| Engine::named(Some(address));
        assert_eq!(Engine::named(None), Some(Engine::Socket(SOCKET.to_owned())));
        assert_eq!(named("unix:///run/a.sock"), Some(Engine::Socket("/run/a.sock".to_owned())));
        assert_eq!(named("tcp://192.0.2.1:2375").unwrap().published(), "192.0.2.1");
        assert_eq!(named("ssh://somewhere"), None);
        let folder = tempfile::tempdir().unwrap();
        assert!(Engine::Socket(folder.path().join("none").display().to_string()).version().is_err());
    }

    #[test]
    fn a_request_gets_the_version_of_the_engine() {
        let head = "POST /v1.53/containers/create?name=a HTTP/1.1\r\nHost: x\r\n\r\n";
        let expected = "POST /v1.41/containers/create?name=a HTTP/1.1\r\nConnection: close\r\nHost: x\r\n\r\n";
        assert_eq!(rewritten(head, (1, 41)), expected);
        let plain = "GET /version HTTP/1.1\r\nUpgrade: tcp\r\n\r\n";
        assert_eq!(rewritten(plain, (1, 41)), plain);
    }

    #[test]
    fn the_relay_passes_an_answer_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let served = std::thread::spawn(move || {
            let (client, _) = listener.accept().unwrap();
            let mut client = Stream::Socket(client);
            let (head, _) = head(&mut client).unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\nanswer").unwrap();
            head
        });
        let address = relay(Engine::Socket(path.display().to_string()), (1, 41)).unwrap();
        let mut client = TcpStream::connect(address.strip_prefix("tcp://").unwrap()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(b"GET /v1.53/_ping HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("answer"), "{answer}");
        assert!(served.join().unwrap().starts_with("GET /v1.41/_ping "));
    }
}
