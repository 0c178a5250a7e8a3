//! Tests of `longhaul mock registry --signed`. With the configuration from the mock, the service must decide about each
//! image as the mock's printed list says.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::support::{Ended, longhaul, program};

/// Number of images: enough that every kind of signature is present.
const IMAGES: &str = "48";

/// The service's message about an image with this kind of signature.
fn right(signing: &str) -> &'static str {
    match signing.split('(').next().unwrap_or_default() {
        "Release" | "Second" | "Both" | "Keyless" => "verified",
        "OtherDigest" => "mismatch",
        "Unsigned" | "Moved" | "Member" => "unsigned",
        _ => "invalid",
    }
}

#[test]
#[ignore = "slow"]
fn signed_images_of_the_mock_are_judged_as_it_says_by_the_policy_that_it_writes() {
    let Some(service) = program("longhaul-service") else { return };
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let mut command = longhaul(&["mock", "registry", "--port", "0", "--auth", "basic", "--images", IMAGES, "--signed"]);
    let mut mock = Ended(command.arg(&keys).stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(mock.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.by_ref().any(|line| line.starts_with("try: longhaul-service verify ")));
    let mut seen = std::collections::BTreeSet::new();
    for line in lines.take(IMAGES.parse().unwrap()) {
        let (reference, rest) = line.split_once(' ').unwrap();
        let Some(signing) = rest.split_once(' ').map(|(_, signing)| signing).filter(|_| rest.starts_with("sha256:"))
        else {
            continue;
        };
        let mut verify = Command::new(&service);
        verify.args(["verify", reference, "--config"]).arg(keys.join("service.yaml"));
        let output = verify.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let wanted = right(signing);
        let is_right = match wanted {
            "verified" => output.status.success(),
            class => output.status.code() == Some(1) && said.contains(&format!("not verified ({class})")),
        };
        assert!(is_right, "{line}: {wanted}\n{}{said}", String::from_utf8_lossy(&output.stdout));
        seen.insert(signing.to_owned());
    }
    assert!(seen.len() > 20, "{seen:?}");
    // Keys are fresh at each start, and existing ones are never overwritten.
    let mut again = longhaul(&["mock", "registry", "--port", "0", "--images", "1", "--signed"]);
    let again = again.arg(&keys).output().unwrap();
    assert!(!again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("name a new folder"), "{again:?}");
}

/// The mock registry listens only on the given address, although loopback has more addresses.
#[test]
#[ignore = "slow"]
fn a_registry_listens_where_it_is_told_to() {
    let mut command = longhaul(&["mock", "registry", "--listen", "127.0.0.9:0", "--images", "1"]);
    let mut mock = Ended(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(mock.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    let address = first.rsplit("http://").next().unwrap().to_owned();
    assert!(address.starts_with("127.0.0.9:"), "{first}");
    assert!(lines.next().unwrap().starts_with(&address), "images are called by where it is");
    std::net::TcpStream::connect(&address).unwrap();
    let port = address.rsplit(':').next().unwrap();
    assert!(std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_err());
}
