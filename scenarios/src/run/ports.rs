//! Ports for a subject: the harness chooses a port and passes its number to the subject, which binds the port a moment
//! later.
//!
//! No two runs on one machine choose the same port. Until the subject has bound the port, an abstract Unix socket
//! reserves it. The kernel removes the Unix socket when the process ends.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as Name, UnixListener};

use anyhow::{Context, Result};
use parking_lot::Mutex;

/// The range of ports for subjects, below Linux's range for outgoing connections, which begins at 32768.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
const TRIED: usize = 64;

/// The reservations of this process: a few per run, kept until the process ends.
static KEPT: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// A free port of this machine that no other run chooses. If another program binds the port before the subject does,
/// the run ends as "not ready" with the subject's message.
pub(crate) fn free_port(at: Ipv4Addr) -> Result<u16> {
    for _ in 0..TRIED {
        let drawn = RandomState::new().build_hasher().finish() % u64::from(PORTS.end - PORTS.start);
        let port = PORTS.start + u16::try_from(drawn).unwrap_or(0);
        if let Some(name) = keep(at, port) {
            KEPT.lock().push(name);
            return Ok(port);
        }
    }
    let listener = TcpListener::bind((at, 0)).context("failed to find a free port")?;
    Ok(listener.local_addr()?.port())
}

/// Reserves a port, unless another process has reserved it or listens on it.
fn keep(at: Ipv4Addr, port: u16) -> Option<UnixListener> {
    let name = Name::from_abstract_name(format!("longhaul/port/{port}")).ok()?;
    let name = UnixListener::bind_addr(&name).ok()?;
    TcpListener::bind(SocketAddr::from((at, port))).is_ok().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_kept_until_its_name_goes() {
        let port = free_port(Ipv4Addr::LOCALHOST).unwrap();
        assert!(keep(Ipv4Addr::LOCALHOST, port).is_none(), "another run chooses it as well");
        KEPT.lock().retain(|name| {
            name.local_addr().unwrap().as_abstract_name().unwrap() != format!("longhaul/port/{port}").as_bytes()
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(keep(Ipv4Addr::LOCALHOST, port).is_none(), "somebody listens there");
        drop(listener);
        assert!(keep(Ipv4Addr::LOCALHOST, port).is_some());
    }
}
