//! A network namespace in which the proxy listens, so that packets can be lost.
//!
//! Owns one namespace, one pair of virtual network interfaces and the packet filter in the namespace. Namespace,
//! interfaces and filter are removed when the [`Namespace`] is dropped. The kernel always acknowledges received data
//! and TCP keep-alive, so only a packet filter can withhold acknowledgements. The subject stays in its own namespace,
//! with its loopback and its files. Only packets between the subject and the API server pass through the interfaces.
//! Outside the namespace, only one interface of the pair is added.
//!
//! Needs root (`CAP_NET_ADMIN` and `CAP_SYS_ADMIN`), iproute2 and nftables. The functions run programs that take a few
//! milliseconds each, so they are called only when a fault begins or ends.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use mock_faults::FaultId;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::plan::Ways;

/// The prefix of a namespace's name; the process id follows.
const PREFIX: &str = "longhaul-";
/// The folder in which iproute2 keeps namespaces.
const DIRECTORY: &str = "/run/netns";
/// The first of the addresses for interface pairs; each pair takes four. No public network uses 198.18.0.0/15, which is
/// reserved for network measurements (RFC 2544).
const FIRST_ADDRESS: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const PAIRS: u32 = 1 << 15;
/// Maximum number of address pairs that are tried, because some may be in use.
const TRIES: u32 = 64;
/// Maximum number of namespaces of dead processes that one call removes.
const STALE_MAX: usize = 64;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Why no namespace could be made or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine or this user cannot make a namespace.
    #[error("network namespaces need {what}: {why}")]
    Needs {
        /// The missing program or permission.
        what: &'static str,
        why: String,
    },
    /// A program such as `ip` or `nft` failed, although it works on this machine.
    #[error("failed to run `{command}`: {why}")]
    Program {
        /// The program and its arguments.
        command: String,
        why: String,
    },
    #[error("failed to listen in network namespace {name}")]
    Listen {
        name: String,
        #[source]
        source: std::io::Error,
    },
}

/// A network namespace and the pair of interfaces that connects it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    /// The name of the interface outside the namespace.
    cable: String,
    far: Ipv4Addr,
}

impl Namespace {
    /// Makes a namespace, and removes the namespaces of killed processes.
    pub fn create() -> Result<Self, Error> {
        remove_stale();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        // 15 characters are the limit of interface names: `lh`, at most 6 hex digits of the pid, the number, the end.
        let (near_cable, far_cable) = (format!("lh{pid:x}x{number:x}a"), format!("lh{pid:x}x{number:x}b"));
        let name = format!("{PREFIX}{pid}-{number}");
        let (near, far) = free_pair(pid.wrapping_mul(64).wrapping_add(number))?;
        ip(&["netns", "add", &name])
            .map_err(|error| Error::Needs { what: "root and iproute2", why: error.to_string() })?;
        // From here on a drop removes all that exists.
        let namespace = Self { name, cable: near_cable, far };
        let name = namespace.name.as_str();
        let near_cable = namespace.cable.as_str();
        ip(&["link", "add", near_cable, "type", "veth", "peer", "name", &far_cable, "netns", name])?;
        ip(&["addr", "add", &format!("{near}/30"), "dev", near_cable])?;
        ip(&["link", "set", near_cable, "up"])?;
        ip(&["-n", name, "addr", "add", &format!("{far}/30"), "dev", &far_cable])?;
        ip(&["-n", name, "link", "set", &far_cable, "up"])?;
        namespace
            .filter("add table ip longhaul\n")
            .map_err(|error| Error::Needs { what: "nftables", why: error.to_string() })?;
        Ok(namespace)
    }

    /// The proxy's address for the subject, which a server certificate must name.
    pub fn address(&self) -> IpAddr {
        IpAddr::V4(self.far)
    }

    /// Opens a listening socket in the namespace; port 0 takes a free port.
    pub(super) fn listen(&self, port: u16) -> Result<TcpListener, Error> {
        let failed = |source| Error::Listen { name: self.name.clone(), source };
        let space = std::fs::File::open(Path::new(DIRECTORY).join(&self.name)).map_err(failed)?;
        let address = SocketAddr::from((self.far, port));
        // A thread of its own, because a namespace is a property of a thread. A socket stays in the namespace where it
        // was made.
        let listening = std::thread::spawn(move || {
            move_into_link_name_space(std::os::fd::AsFd::as_fd(&space), Some(LinkNameSpaceType::Network))?;
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        listening.join().unwrap_or_else(|_| Err(std::io::Error::other("the thread panicked"))).map_err(failed)
    }

    /// Starts to drop packets of the subject's `ports`, or all packets if `ports` is `None`.
    pub(super) fn lose(&self, by: FaultId, ways: Ways, ports: Option<&[u16]>) -> Result<(), Error> {
        if ports.is_some_and(<[u16]>::is_empty) {
            return Ok(());
        }
        let mut script = Vec::new();
        for (chain, hook, end, lost) in chains(by, ways) {
            if !lost {
                continue;
            }
            let of = ports.map_or_else(String::new, |ports| {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                format!("tcp {end} {{ {} }} ", ports.join(", "))
            });
            script.push(format!("add chain ip longhaul {chain} {{ type filter hook {hook} priority 0; }}"));
            script.push(format!("add rule ip longhaul {chain} {of}counter drop"));
        }
        self.filter(&script.join("\n")).map(drop)
    }

    /// Stops dropping packets.
    pub(super) fn pass(&self, by: FaultId, ways: Ways) -> Result<(), Error> {
        let mut script = Vec::new();
        for (chain, _, _, lost) in chains(by, ways) {
            if lost && self.counted(&chain).is_some() {
                script.push(format!("flush chain ip longhaul {chain}"));
                script.push(format!("delete chain ip longhaul {chain}"));
            }
        }
        self.filter(&script.join("\n")).map(drop)
    }

    /// Number of packets that were lost on the way to the server, and to the subject.
    pub(super) fn lost(&self, by: FaultId) -> (u64, u64) {
        let [to_server, to_subject] = chains(by, Ways::BOTH).map(|(chain, ..)| self.counted(&chain).unwrap_or(0));
        (to_server, to_subject)
    }

    /// Number of packets in the counter of a packet filter's chain; `None` if there is no such chain.
    fn counted(&self, chain: &str) -> Option<u64> {
        let shown = self.filter(&format!("list chain ip longhaul {chain}\n")).ok()?;
        Some(shown.split_once("counter packets ")?.1.split_whitespace().next()?.parse().unwrap_or(0))
    }

    fn filter(&self, script: &str) -> Result<String, Error> {
        if script.is_empty() {
            return Ok(String::new());
        }
        run("ip", &["netns", "exec", &self.name, "nft", "-f", "-"], script)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Removing one end of a cable removes the other too; connections end with the sockets that hold them.
        let _ = ip(&["link", "del", &self.cable]);
        let _ = ip(&["netns", "del", &self.name]);
    }
}

/// The packet filter's chains of a fault as `(name, hook, the subject's end, whether it drops)`; the direction to the
/// server is first.
fn chains(by: FaultId, ways: Ways) -> [(String, &'static str, &'static str, bool); 2] {
    [
        (format!("in{}", by.0), "input", "sport", ways.to_server),
        (format!("out{}", by.0), "output", "dport", ways.to_subject),
    ]
}

/// Two unused addresses, outside and inside the namespace.
fn free_pair(start: u32) -> Result<(Ipv4Addr, Ipv4Addr), Error> {
    let used =
        ip(&["-o", "-4", "addr", "show"]).map_err(|error| Error::Needs { what: "iproute2", why: error.to_string() })?;
    for offset in 0..TRIES {
        let base = FIRST_ADDRESS + start.wrapping_add(offset) % PAIRS * 4;
        let near = Ipv4Addr::from(base + 1);
        if !used.contains(&format!(" {near}/")) {
            return Ok((near, Ipv4Addr::from(base + 2)));
        }
    }
    Err(Error::Needs { what: "a free address in 198.18.0.0/15", why: format!("{TRIES} pairs are in use") })
}

/// Removes the namespaces of killed processes.
fn remove_stale() {
    let Ok(entries) = std::fs::read_dir(DIRECTORY) else { return };
    for entry in entries.flatten().take(STALE_MAX) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = ip(&["netns", "del", &name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<String, Error> {
    run("ip", arguments, "")
}

fn run(program: &str, arguments: &[&str], input: &str) -> Result<String, Error> {
    let failed = |why: String| Error::Program { command: format!("{program} {}", arguments.join(" ")), why };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends early reports why itself.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}
