//! Tests of `longhaul mock kube` with network faults. The mock's clients connect to a proxy in front of the server.

use std::io::{BufRead, BufReader, ErrorKind, Read as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
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

/// A mock with these arguments, the lines that it prints, and its kubeconfig.
fn mock(folder: &Path, arguments: &[&str]) -> (Ended, impl Iterator<Item = String> + use<>, PathBuf) {
    let kubeconfig = folder.join("kubeconfig.yaml");
    let mut command = longhaul(&["mock", "kube"]);
    command.args(arguments).arg("--kubeconfig").arg(&kubeconfig).stdout(Stdio::piped());
    let mut mock = Ended(command.spawn().unwrap());
    let lines = BufReader::new(mock.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    (mock, lines, kubeconfig)
}

/// The address in a line that the mock prints.
fn address(line: &str) -> SocketAddr {
    let rest = line.split("https://").nth(1).unwrap_or_else(|| panic!("no address in `{line}`"));
    rest.split([',', ' ']).next().unwrap().parse().unwrap()
}

#[test]
#[ignore = "slow"]
fn a_mock_alone_listens_on_the_given_address() {
    let folder = tempfile::tempdir().unwrap();
    let (_mock, mut lines, _) = mock(folder.path(), &["--listen", "127.0.0.2:0", "--endpoints", "2"]);
    for _ in 0..2 {
        let address = address(&lines.next().unwrap());
        assert_eq!(address.ip().to_string(), "127.0.0.2");
        TcpStream::connect(address).unwrap();
    }
    // Behind a network with faults, the proxy listens on the address, and the kubeconfig names one that can be reached.
    let faults = folder.path().join("faults.yaml");
    std::fs::write(&faults, "- {name: net-refuse, how: reset, at: 1h}\n").unwrap();
    let everywhere = ["--listen", "0.0.0.0", "--port", "0", "--force", "--faults", faults.to_str().unwrap()];
    let (_mock, mut lines, kubeconfig) = mock(folder.path(), &everywhere);
    let proxy = address(&lines.next().unwrap());
    let elsewhere = SocketAddr::new([127, 0, 0, 3].into(), proxy.port());
    TcpStream::connect(elsewhere).unwrap();
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    assert!(text.contains(&format!("https://127.0.0.1:{}", proxy.port())), "{text}");
}

#[test]
#[ignore = "slow"]
fn faults_of_the_network_are_played_in_front_of_a_mock_alone() {
    let folder = tempfile::tempdir().unwrap();
    let faults = folder.path().join("faults.yaml");
    std::fs::write(&faults, "- {name: net-refuse, how: reset}\n").unwrap();
    let (_mock, mut lines, kubeconfig) = mock(folder.path(), &["--port", "0", "--faults", faults.to_str().unwrap()]);
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
