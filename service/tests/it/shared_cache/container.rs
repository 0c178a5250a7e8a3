//! Tests with Redis in a container, as in most clusters: the container is stopped and started, and Redis has users.
//!
//! The tests call `docker`: the crate `testcontainers` would add 42 packages, among them a web framework and gRPC, to
//! pull an image. The test builds its image from Debian's redis-server and its libraries, and pulls no image.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{IMAGES, cold, connected, poll, signed};
use crate::support::until;
use crate::verify::{config, start};

const USER: &str = "longhaul";
const PASSWORD: &str = "secret";
/// The folder of the dynamic loader.
const LOADER: &str = "/lib64";

/// A container and its image, which are removed on drop.
struct Container {
    name: String,
    folder: tempfile::TempDir,
    port: u16,
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = docker(&["rm", "--force", &self.name]);
        let _ = docker(&["rmi", "--force", &self.name]);
    }
}

/// Runs `docker`; returns its output, or an error if it is missing or fails.
fn docker(words: &[&str]) -> Result<String, String> {
    let output = Command::new("docker").args(words).output().map_err(|error| error.to_string())?;
    stdout(&output)
}

fn stdout(output: &Output) -> Result<String, String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

impl Container {
    async fn start() -> Option<Self> {
        let Some(program) = found("redis-server") else {
            println!("skipped: needs redis-server");
            return None;
        };
        if docker(&["version", "--format", "{{.Server.Version}}"]).is_err() {
            println!("skipped: needs docker");
            return None;
        }
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "k".repeat(64)).unwrap();
        std::fs::write(folder.path().join("password"), PASSWORD).unwrap();
        let container = Self { name: format!("longhaul-redis-{}-{port}", std::process::id()), folder, port };
        container.image(&program);
        // The machine's network: an engine without iptables supports that as well.
        let run = ["run", "--detach", "--network", "host", "--name", &container.name, &container.name];
        docker(&run).unwrap_or_else(|why| panic!("the container does not start: {why}"));
        container.listens().await;
        Some(container)
    }

    /// Builds the image from the program, its libraries and a configuration.
    fn image(&self, program: &Path) {
        let root = self.folder.path().join("root");
        let put = |from: &Path| {
            let to = root.join(from.strip_prefix("/").unwrap());
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(from, to).unwrap();
        };
        put(program);
        let linked = stdout(&Command::new("ldd").arg(program).output().unwrap()).unwrap();
        let is_path = |word: &&str| word.starts_with('/');
        let libraries: Vec<&str> = linked.split_whitespace().filter(is_path).collect();
        assert!(libraries.iter().any(|library| library.starts_with(LOADER)), "no loader: {linked}");
        for library in libraries {
            put(Path::new(library));
        }
        let mut text = format!("bind 127.0.0.1\nport {}\nsave \"\"\nuser default off\n", self.port);
        // The rights that a cache needs and no more.
        writeln!(text, "user {USER} on >{PASSWORD} ~longhaul:* -@all +getrange +set").unwrap();
        std::fs::write(root.join("redis.conf"), text).unwrap();
        let archive = self.folder.path().join("root.tar");
        let packed = Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&archive).arg(".").output().unwrap();
        stdout(&packed).unwrap();
        let entry = format!("ENTRYPOINT [\"{}\", \"/redis.conf\"]", program.display());
        docker(&["import", "--change", &entry, archive.to_str().unwrap(), &self.name]).unwrap();
    }

    async fn listens(&self) {
        until("redis-server in its container", || TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok()).await;
    }

    fn section(&self) -> String {
        let file = |name: &str| self.folder.path().join(name);
        format!(
            "sharedCache: {{address: '127.0.0.1:{}', plain: true, user: {USER}, passwordFile: {}, keyFile: {}, timeout: 2s}}\n",
            self.port,
            file("password").display(),
            file("key").display()
        )
    }
}

fn found(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&path).map(|folder| folder.join(name)).filter(|program| program.is_file());
    // By its name, not by the target of a link: the program is several, and checks the name it was called by.
    std::path::absolute(all.next()?).ok()
}

/// A process finds the results of another process in the container's Redis. While the container is stopped, each
/// process verifies alone, and every signed image runs. After the container's restart, processes find the stored
/// results again.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_stops_costs_verdicts_that_are_found_anew() {
    let Some(redis) = Container::start().await else { return };
    let (registry, key, images) = signed().await;
    let (shared, _) = cold(&registry, &key, &images, &redis.section()).await;
    assert!(shared[0] > 2 * IMAGES, "{shared:?}");
    assert!(shared[1..].iter().all(|asked| *asked <= IMAGES + 4), "{shared:?}");
    let rules = super::RULES;
    let (service, client) = start(&config(&registry, &[("default", &key)], rules, &redis.section())).await;
    connected(&service).await;
    docker(&["stop", "--time", "2", &redis.name]).unwrap();
    registry.requests();
    super::about_all(&client, &images).await;
    assert!(registry.requests().len() > 2 * IMAGES, "nobody else can know");
    docker(&["start", &redis.name]).unwrap();
    redis.listens().await;
    poll("the connection after its end", async || {
        service.health("/metrics").await.1.contains("longhaul_shared_cache_connected 1")
    })
    .await;
    service.app.stop().await;
}
