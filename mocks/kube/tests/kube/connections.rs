//! Tests of the effects of all connection faults on clients, on HTTP/1.1 and HTTP/2, and that the faults spare other
//! clients.

mod frames;
mod standstill;
mod welcome;

use std::net::SocketAddr;
use std::time::Duration;

use mock_faults::{Fault, FaultId, Name};
use mock_kube::Replica;
use units::Span;

use crate::client::{Lines, PATIENCE, Protocol, World};
use crate::{PACKAGES, package, revision};

const ID: FaultId = FaultId(7);
const RESOURCE: &str = "packages.longhaul.dev";

/// A cluster in which the subject has its own endpoint.
struct Scene {
    world: World,
    door: Replica,
}

impl Scene {
    async fn start() -> Self {
        let world = World::start().await;
        let door = world.server.endpoint("127.0.0.1:0".parse().unwrap(), &["h2", "http/1.1"]).await.unwrap();
        world.server.faults().target_users(["subject"]);
        world.server.faults().target_endpoints([door.number()]);
        Self { world, door }
    }

    fn address(&self) -> SocketAddr {
        self.door.address()
    }

    fn begin(&self, fault: &Fault) {
        self.world.server.faults().begin(ID, fault).unwrap();
    }

    fn hits(&self) -> u64 {
        self.world.server.faults().hits(ID)
    }

    /// The descriptions of the faults' hits since the last call.
    fn details(&self) -> Vec<String> {
        self.world.server.faults().take_hits().into_iter().map(|hit| hit.detail).collect()
    }

    async fn watch(&self, address: SocketAddr, protocol: Protocol, user: &str) -> Lines {
        let mut client = self.world.client_at(address, protocol, user).await;
        client.watch(&format!("{PACKAGES}?watch=1&resourceVersion={}", self.world.server.revision())).await
    }

    async fn write(&self, name: &str) -> u64 {
        let mut writer = self.world.client(Protocol::Http1, "harness").await;
        revision(&writer.post(PACKAGES, &package(name)).await.1)
    }

    /// Lists objects over a new connection of the subject; returns the number of objects.
    async fn lists(&self, protocol: Protocol) -> usize {
        let mut client = self.world.client_at(self.address(), protocol, "subject").await;
        let (status, list) = client.get(PACKAGES).await;
        assert_eq!(status, 200);
        list["items"].as_array().unwrap().len()
    }

    /// Number of connections at the subject's endpoint that the server has not closed.
    fn open_at_server(&self) -> usize {
        // `man 5 proc`: the second column is the local address, the fourth the state, 01 established, 08 close wait.
        let port = format!(":{:04X}", self.address().port());
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let columns = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        columns.filter(|columns| columns[1].ends_with(&port) && ["01", "08"].contains(&columns[3])).count()
    }
}

fn at_once(name: Name) -> Fault {
    Fault { resource: Some(RESOURCE.to_owned()), ..Fault::new(name, Span::default()) }
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "in time: {what}");
}
