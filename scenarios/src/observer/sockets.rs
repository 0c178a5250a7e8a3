//! The TCP sockets of a process tree, by the state of their connection.

use std::collections::HashSet;

use procfs::net::TcpState;
use procfs::process::{FDTarget, Process as Proc};
use reports::record::Sockets;

/// Counts the sockets of these processes in the network namespace of the first process; `None` if this process is gone.
pub(super) fn of(pids: &[i32]) -> Option<Sockets> {
    let mut inodes = HashSet::new();
    for process in pids.iter().filter_map(|pid| Proc::new(*pid).ok()) {
        let targets = process.fd().into_iter().flatten().flatten().map(|fd| fd.target);
        inodes
            .extend(targets.filter_map(|target| if let FDTarget::Socket(inode) = target { Some(inode) } else { None }));
    }
    let root = Proc::new(*pids.first()?).ok()?;
    let mut sockets = Sockets::default();
    // A machine without IPv6 has no second list.
    let listed = root.tcp().ok()?.into_iter().chain(root.tcp6().unwrap_or_default());
    for entry in listed.filter(|entry| inodes.contains(&entry.inode)) {
        let count = match entry.state {
            TcpState::Listen => &mut sockets.listen,
            TcpState::Established => &mut sockets.established,
            TcpState::CloseWait => &mut sockets.close_wait,
            TcpState::SynSent | TcpState::SynRecv | TcpState::NewSynRecv => &mut sockets.opening,
            _ => &mut sockets.closing,
        };
        *count += 1;
    }
    Some(sockets)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// A connection that only the peer has closed is counted as waiting to be closed.
    #[test]
    fn a_connection_that_only_the_peer_has_closed_waits() {
        let me = [std::process::id().cast_signed()];
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let before = of(&me).unwrap();
        let open: Vec<_> = (0..20)
            .map(|_| {
                let mine = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                (mine, listener.accept().unwrap().0)
            })
            .collect();
        let established = of(&me).unwrap();
        assert!(established.established >= before.established + 30, "{before:?} {established:?}");
        let (mine, theirs): (Vec<_>, Vec<_>) = open.into_iter().unzip();
        drop(theirs);
        let closed = of(&me).unwrap();
        assert!(closed.close_wait >= before.close_wait + 15, "{before:?} {closed:?}");
        assert!(before.listen >= 1);
        drop(mine);
    }
}
