//! Injects faults of the registry in `longhaul mock registry`. A client pulls until each fault has enough hits.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use mock_faults::{Fault, check_all};
use parking_lot::Mutex;
use serde_json::Value;

use super::hits::Hits;
use crate::support::{Ended, longhaul};

/// Time limit until every fault has enough hits.
const PATIENCE: Duration = Duration::from_secs(20);
/// Number of further pulls after all faults have enough hits. A fault may miss these further pulls.
const MORE_PULLS: usize = 3;
/// Time limit of a read, because a faulty registry may never answer.
const READS_FOR: Duration = Duration::from_millis(400);

/// Injects the faults and returns the differences from the document; empty if every fault had the expected hits.
pub fn play(faults: &[Value], meant: &[Hits]) -> String {
    let parsed: Vec<Fault> = faults.iter().map(|fault| serde_json::from_value(fault.clone()).unwrap()).collect();
    if let Err((index, error)) = check_all(&parsed) {
        return format!("fault {}: {error}", index + 1);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("faults.yaml");
    std::fs::write(&file, Value::from(faults.to_vec()).to_string()).unwrap();
    let mut command = longhaul(&["mock", "registry", "--port", "0", "--images", "1", "--faults"]);
    let mut mock = Ended(command.arg(&file).stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(mock.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let address: SocketAddr = lines.next().unwrap().rsplit('/').next().unwrap().parse().unwrap();
    let image = lines.next().unwrap();
    let (repository, tag) = image.split(' ').next().unwrap().split_once('/').unwrap().1.split_once(':').unwrap();
    // By name, because no list of the page has two faults with one name.
    let hits = Mutex::new(BTreeMap::<String, u64>::new());
    let of = |fault: &Fault| hits.lock().get(fault.name.as_str()).copied().unwrap_or(0);
    let waits = || parsed.iter().zip(meant).any(|(fault, meant)| of(fault) < meant.least);
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for line in lines {
                if let Some((_, rest)) = line.split_once("s hit: ") {
                    let name = rest.split(':').next().unwrap_or_default().to_owned();
                    *hits.lock().entry(name).or_default() += 1;
                }
            }
        });
        while waits() && began.elapsed() < PATIENCE {
            pull(address, repository, tag);
        }
        for _ in 0..MORE_PULLS {
            pull(address, repository, tag);
        }
        drop(mock);
    });
    let mut wrong = String::new();
    for (fault, meant) in parsed.iter().zip(meant).filter(|(fault, meant)| !meant.hold(of(fault))) {
        let _ = write!(wrong, "{} hits of {}, where {meant} are meant; ", of(fault), fault.name.as_str());
    }
    wrong
}

/// Pulls an image and requests its signatures, as a client does.
fn pull(address: SocketAddr, repository: &str, tag: &str) {
    let manifest = format!("/v2/{repository}/manifests/{tag}");
    ask(address, "HEAD", &manifest);
    let answer = ask(address, "GET", &manifest);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let Ok(manifest) = serde_json::from_str::<Value>(body) else { return };
    let digest = manifest["config"]["digest"].as_str().unwrap_or_default();
    ask(address, "GET", &format!("/v2/{repository}/blobs/{digest}"));
    ask(address, "GET", &format!("/v2/{repository}/referrers/{digest}"));
}

/// The bytes of the registry's answer, until its end or until the time limit.
fn ask(address: SocketAddr, method: &str, path: &str) -> String {
    let exchange = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(READS_FOR))?;
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: docs\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        // Data before an error counts as well.
        let _ = stream.read_to_end(&mut answer);
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    exchange().unwrap_or_default()
}
