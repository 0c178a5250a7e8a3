//! The ports on which the program listens, and the URL paths that answer.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use procfs::net::TcpState;
use procfs::process::{FDTarget, Process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::program::Program;
use super::world::{World, local, variable_of};
use crate::init::seen::Open;
use crate::observer;

/// Usual URL paths of metrics and probes.
const PAGES: [&str; 5] = ["/metrics", "/healthz", "/readyz", "/livez", "/health"];
/// Maximum number of the program's ports tried; a controller opens fewer.
const PORTS_MAX: usize = 12;
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Maximum number of bytes read from an answer.
const BYTES_MAX: u64 = 2 << 20;
/// The text with which a Go server with TLS answers plain HTTP.
const TLS: &str = "HTTP request to an HTTPS server";

pub(super) async fn open(program: &Program, world: &World) -> Vec<Open> {
    let mut all = Vec::new();
    for port in listening(program.pid()).into_iter().take(PORTS_MAX) {
        let mut open = Open {
            port,
            variable: variable_of(world.given(), port),
            is_tls: false,
            pages: Vec::new(),
            counts_goroutines: false,
        };
        for page in PAGES {
            let Some(answer) = get(port, page).await else { break };
            if answer.contains(TLS) || !answer.starts_with("HTTP/") {
                open.is_tls = true;
                break;
            }
            let status = answer.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
            if (200..400).contains(&status) {
                open.pages.push((page.to_owned(), status));
                open.counts_goroutines |= answer.contains("\ngo_goroutines ");
            }
        }
        all.push(open);
    }
    all
}

fn listening(root: u32) -> BTreeSet<u16> {
    let pids = observer::tree(root);
    let mut inodes = HashSet::new();
    for process in pids.iter().filter_map(|pid| Process::new(pid.cast_signed()).ok()) {
        let targets = process.fd().into_iter().flatten().flatten().map(|fd| fd.target);
        inodes
            .extend(targets.filter_map(|target| if let FDTarget::Socket(inode) = target { Some(inode) } else { None }));
    }
    let Ok(process) = Process::new(root.cast_signed()) else { return BTreeSet::new() };
    let listed = process.tcp().unwrap_or_default().into_iter().chain(process.tcp6().unwrap_or_default());
    let listed = listed.filter(|entry| entry.state == TcpState::Listen && inodes.contains(&entry.inode));
    listed.map(|entry| entry.local_address.port()).collect()
}

/// The answer to a `GET` over plain HTTP, with headers and body; `None` without an answer.
async fn get(port: u16, page: &str) -> Option<String> {
    let ask = async {
        let mut stream = TcpStream::connect(local(port)).await.ok()?;
        let request = format!("GET {page} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        stream.take(BYTES_MAX).read_to_end(&mut answer).await.ok()?;
        Some(String::from_utf8_lossy(&answer).into_owned())
    };
    tokio::time::timeout(ANSWER_MAX, ask).await.ok().flatten().filter(|answer| !answer.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_ports_are_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(listening(std::process::id()).contains(&listener.local_addr().unwrap().port()));
    }
}
