//! Tests of `longhaul mock kube` with network faults. The mock's clients connect to a proxy in front of the server.

use std::io::{BufRead, BufReader, ErrorKind, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{Ended, longhaul};

/// Time limit until the network fault refuses a connection.
const PATIENCE: Duration = Duration::from_secs(20);

/// Connects to the server and sends nothing. Returns the number of bytes that the server sends first.
fn greeted(address: SocketAddr) -> std::io::Result<usize> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_millis(300)))?;
    stream.read(&mut [0; 8])
}

#[test]
#[ignore = "slow"]
fn faults_of_the_network_are_played_in_front_of_a_mock_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (faults, kubeconfig) = (folder.path().join("faults.yaml"), folder.path().join("kubeconfig.yaml"));
    std::fs::write(&faults, "- {name: net-refuse, how: reset}\n").unwrap();
    let mut command = longhaul(&["mock", "kube", "--port", "0", "--faults"]);
    command.arg(&faults).arg("--kubeconfig").arg(&kubeconfig).stdout(Stdio::piped());
    let mut mock = Ended(command.spawn().unwrap());
    let mut lines = BufReader::new(mock.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let address = |line: &str| -> SocketAddr {
        let rest = line.split("https://").nth(1).unwrap_or_else(|| panic!("no address in `{line}`"));
        rest.split([',', ' ']).next().unwrap().parse().unwrap()
    };
    let bad = address(&lines.next().unwrap());
    let good = address(&lines.next().unwrap());
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    assert!(text.contains(&bad.to_string()), "clients are sent to the bad network: {text}");
    let begun = lines.find(|line| line.contains("begins: net-refuse"));
    assert!(begun.is_some());
    // A connection from before the fault is held, and so may be one on a busy machine.
    let deadline = Instant::now() + PATIENCE;
    while greeted(bad).err().map(|error| error.kind()) != Some(ErrorKind::ConnectionReset) {
        assert!(Instant::now() < deadline, "no connection was refused");
    }
    let silent = greeted(good);
    let waits = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
    assert!(waits.contains(&silent.as_ref().unwrap_err().kind()), "the server itself is healthy: {silent:?}");
    let hit = lines.find(|line| line.contains("hit: net-refuse"));
    assert!(hit.is_some(), "hits are told");
}
