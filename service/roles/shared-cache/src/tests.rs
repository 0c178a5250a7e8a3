//! Tests of the shared cache with a real redis-server (TLS and an access control list), if one is installed, and with a
//! scripted server.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use service_core::config::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

const KEY: &str = "0123456789abcdef0123456789abcdef";
const LIFE: Duration = Duration::from_mins(10);
/// A time limit for quick operations, long enough for a machine under load.
const PATIENCE: Duration = Duration::from_secs(30);

/// A redis-server in its own folder; it is killed on drop.
struct Server {
    folder: tempfile::TempDir,
    port: u16,
    child: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn program() -> Option<&'static str> {
    let found = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        println!("skipped: needs redis-server");
    }
    found.then_some("redis-server")
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

impl Server {
    /// Starts the server with TLS, a user `cache` with the rights that the cache needs, and a user `admin`. The lines
    /// in `more` are added to the server's configuration.
    fn start(more: &str) -> Option<Self> {
        let program = program()?;
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let pair = rcgen::generate_simple_self_signed(["redis.test".to_owned()]).unwrap();
        let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        file("tls.crt", &pair.cert.pem());
        file("tls.key", &pair.signing_key.serialize_pem());
        file("password", "secret\n");
        file("key", KEY);
        let at = folder.path().display();
        file(
            "redis.conf",
            &format!(
                "bind 127.0.0.1\nport 0\ntls-port {port}\ntls-cert-file {at}/tls.crt\ntls-key-file {at}/tls.key\ntls-auth-clients no\n\
                 save \"\"\nappendonly no\ndir {at}\nuser default off\nuser admin on >admin ~* +@all\n\
                 user cache on >secret ~longhaul:* -@all +getrange +set\n{more}\n"
            ),
        );
        let child = Self::spawn(program, folder.path());
        Some(Self { folder, port, child })
    }

    fn spawn(program: &str, folder: &Path) -> Child {
        let mut command = Command::new(program);
        command.arg(folder.join("redis.conf")).stdout(Stdio::null()).spawn().unwrap()
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn again(&mut self) {
        self.child = Self::spawn("redis-server", self.folder.path());
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap().success());
    }

    fn settings(&self) -> SharedCache {
        settings(
            &format!(
                "sharedCache: {{address: '127.0.0.1:{}', serverName: redis.test, caFile: tls.crt, user: cache, passwordFile: password, \
             keyFile: key, timeout: 2s}}",
                self.port
            ),
            self.folder.path(),
        )
    }

    /// Runs a command as the user `admin`, which has all rights.
    fn admin(&self, words: &[&str]) -> Option<String> {
        let mut command = Command::new("redis-cli");
        command.args(["--tls", "--cacert"]).arg(self.folder.path().join("tls.crt"));
        command.args(["--sni", "redis.test", "-p", &self.port.to_string(), "--user", "admin", "--pass", "admin"]);
        let output = command.args(words).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

fn settings(text: &str, folder: &Path) -> SharedCache {
    let config =
        Config::parse(text, &folder.join("config.yaml"), config::KINDS).unwrap_or_else(|error| panic!("{error}"));
    config.find::<SharedCache>().unwrap().clone()
}

fn open(settings: &SharedCache) -> Arc<Cache> {
    Cache::open(settings, &mut Registry::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn soon() -> Instant {
    Instant::now() + PATIENCE
}

/// Waits until `so` is true; `what` describes the condition.
async fn until(what: &str, so: impl AsyncFn() -> bool) {
    let deadline = soon();
    while !so().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn there(cache: &Cache) {
    until("a connection", async || cache.metrics.connected.get() == 1).await;
}

async fn value(cache: &Cache, key: &str) -> Option<Vec<u8>> {
    cache.known(key, soon()).await.map(|known| known.value)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_process_keeps_another_knows_and_what_others_write_nobody_believes() {
    let Some(server) = Server::start("") else { return };
    let (one, other) = (open(&server.settings()), open(&server.settings()));
    there(&one).await;
    there(&other).await;
    assert_eq!(value(&other, "a").await, None);
    one.keep("a", b"verified".to_vec(), LIFE);
    until("the value", async || value(&other, "a").await.as_deref() == Some(b"verified")).await;
    let known = other.known("a", soon()).await.unwrap();
    assert!(known.life <= LIFE && known.life > LIFE / 2, "{known:?}");
    assert_eq!(value(&other, "b").await, None, "another key");

    let (a, b) = (one.seal.name("a"), one.seal.name("b"));
    if server.admin(&["COPY", &a, &b]).as_deref() != Some("1") {
        println!("skipped: needs redis-cli");
        return;
    }
    assert_eq!(value(&other, "b").await, None, "a value of another key");
    server.admin(&["SET", &a, "verified"]);
    assert_eq!(value(&other, "a").await, None, "a value without a code");
    server.admin(&["SET", &a, &"x".repeat(1 << 20)]);
    assert_eq!(value(&other, "a").await, None, "an enormous value");
    assert_eq!(other.metrics.asked_count("refused"), 3);
    assert_eq!(other.metrics.asked_count("failed"), 0);
    assert!(server.admin(&["PTTL", &b]).unwrap().parse::<u64>().unwrap() > 0, "values end by themselves");
    // Another service with another key sees nothing either.
    std::fs::write(server.folder.path().join("key"), KEY.replace('0', "1")).unwrap();
    let stranger = open(&server.settings());
    there(&stranger).await;
    assert_eq!(value(&stranger, "a").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_full_keeps_nothing_and_delays_nobody() {
    let Some(server) = Server::start("maxmemory 1kb\nmaxmemory-policy noeviction") else { return };
    let cache = open(&server.settings());
    there(&cache).await;
    cache.keep("a", b"verified".to_vec(), LIFE);
    until("the refusal", async || cache.metrics.kept_count("failed") == 1).await;
    assert_eq!(value(&cache, "a").await, None);
    assert_eq!((cache.metrics.asked_count("miss"), cache.metrics.connected.get()), (1, 1));
    for _ in 0..2 * WAITING_MAX {
        cache.keep("b", vec![0; VALUE_BYTES_MAX], LIFE);
    }
    assert_eq!(cache.metrics.kept_count("too-large"), 2 * WAITING_MAX as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_goes_or_hangs_is_left_alone_until_it_is_back() {
    let Some(mut server) = Server::start("") else { return };
    let quick = SharedCache { timeout: Duration::from_millis(100), ..server.settings() };
    let cache = open(&quick);
    there(&cache).await;
    server.signal("-STOP");
    let began = Instant::now();
    assert_eq!(value(&cache, "a").await, None);
    assert!(began.elapsed() < PATIENCE / 2, "{:?}", began.elapsed());
    assert_eq!((cache.metrics.asked_count("failed"), cache.metrics.connected.get()), (1, 0));
    // From then on no caller waits at all.
    assert_eq!(value(&cache, "a").await, None);
    assert_eq!(cache.metrics.asked_count("away"), 1);
    server.signal("-CONT");
    until("it is back", async || cache.metrics.connected.get() == 1).await;
    server.end();
    until("it is gone", async || value(&cache, "a").await.is_none() && cache.metrics.connected.get() == 0).await;
    cache.keep("a", b"verified".to_vec(), LIFE);
    until("it was not kept", async || cache.metrics.kept_count("away") == 1).await;
    server.again();
    there(&cache).await;
    until("it is kept", async || {
        cache.keep("a", b"verified".to_vec(), LIFE);
        value(&cache, "a").await.is_some()
    })
    .await;
}

/// A caller whose deadline is before the time limit causes no failure of Redis, and its late answer goes to no other
/// caller.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_in_a_hurry_takes_nothing_from_others() {
    let Some(server) = Server::start("") else { return };
    let patient = SharedCache { timeout: PATIENCE, ..server.settings() };
    let cache = open(&patient);
    there(&cache).await;
    cache.keep("a", b"verified".to_vec(), LIFE);
    until("the value", async || value(&cache, "a").await.is_some()).await;
    server.signal("-STOP");
    assert_eq!(cache.known("b", Instant::now() + Duration::from_millis(50)).await.map(|known| known.value), None);
    assert_eq!((cache.metrics.asked_count("failed"), cache.metrics.connected.get()), (1, 1));
    server.signal("-CONT");
    assert_eq!(value(&cache, "a").await.as_deref(), Some(b"verified".as_slice()));
    assert_eq!(cache.metrics.connected.get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_hangs_up_is_noticed_at_once_and_another_password_is_followed() {
    let Some(server) = Server::start("") else { return };
    let cache = open(&server.settings());
    there(&cache).await;
    if server.admin(&["ACL", "SETUSER", "cache", "resetpass", ">other"]).as_deref() != Some("OK") {
        println!("skipped: needs redis-cli");
        return;
    }
    server.admin(&["CLIENT", "KILL", "USER", "cache"]);
    // No question is asked meanwhile.
    until("it is gone", async || cache.metrics.connected.get() == 0).await;
    assert_eq!(value(&cache, "a").await, None);
    assert_eq!((cache.metrics.asked_count("away"), cache.metrics.asked_count("failed")), (1, 0));
    std::fs::write(server.folder.path().join("password"), "other\r\n").unwrap();
    there(&cache).await;
    assert_eq!(value(&cache, "a").await, None);
    assert_eq!(cache.metrics.asked_count("miss"), 1);
    // A forbidden command is refused, and ends nothing.
    server.admin(&["ACL", "SETUSER", "cache", "-getrange"]);
    assert_eq!(value(&cache, "a").await, None);
    assert_eq!((cache.metrics.asked_count("failed"), cache.metrics.connected.get()), (1, 1));
}

/// A Redis server without users accepts a password without a user name.
#[tokio::test(flavor = "multi_thread")]
async fn one_without_users_is_told_the_password_alone() {
    let Some(server) = Server::start("") else { return };
    let alone = SharedCache { user: None, ..server.settings() };
    let cache = open(&alone);
    until("it speaks", async || server.admin(&["PING"]).is_none_or(|said| said == "PONG")).await;
    server.admin(&["ACL", "SETUSER", "default", "on", "resetpass", ">secret", "~longhaul:*", "+getrange", "+set"]);
    there(&cache).await;
    until("the value", async || {
        cache.keep("a", b"verified".to_vec(), LIFE);
        value(&cache, "a").await.is_some()
    })
    .await;
}

/// If a server answers without end or with invalid bytes, the cache disconnects from it and does not use its answers.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_says_more_than_it_was_asked_is_cut_off() {
    for flood in ["$536870912\r\n", "*1000000000\r\n", "nonsense\r\n", "+", "$16385\r\n", ":1\r\n", "*1\r\n*1\r\n"] {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let (sent, written) = tokio::sync::oneshot::channel();
        let liar = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 512];
            let _ = stream.read(&mut asked).await;
            let _ = stream.write_all(flood.as_bytes()).await;
            let (chunk, mut bytes) = ([b'x'; 4096], 0u64);
            while bytes < 64 << 20 && stream.write_all(&chunk).await.is_ok() {
                bytes += chunk.len() as u64;
            }
            let _ = sent.send(bytes);
        });
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), KEY).unwrap();
        let text = format!("sharedCache: {{address: '{address}', plain: true, keyFile: key, timeout: 5s}}");
        let cache = open(&settings(&text, folder.path()));
        there(&cache).await;
        assert_eq!(value(&cache, "a").await, None, "{flood}");
        assert_eq!((cache.metrics.asked_count("failed"), cache.metrics.connected.get()), (1, 0), "{flood}");
        let bytes = written.await.unwrap();
        assert!(bytes < 32 << 20, "{flood}: {bytes} bytes were taken");
        liar.abort();
    }
}

#[test]
fn what_is_no_section_says_what_to_write() {
    let wrong = |text: &str| {
        let text = format!("sharedCache: {{{text}}}");
        Config::parse(&text, Path::new("c.yaml"), config::KINDS).err().unwrap().to_string()
    };
    assert!(wrong("keyFile: k").contains("sharedCache.address: is missing"), "{}", wrong("keyFile: k"));
    assert!(wrong("address: 'a:6379'").contains("sharedCache.keyFile: is missing"));
    assert!(wrong("address: 'a b', keyFile: k").contains("write it as redis.example:6379"));
    assert!(wrong("address: a, keyFile: k, user: u").contains("sharedCache.passwordFile: is missing"));
    assert!(wrong("address: a, keyFile: k, plain: true, caFile: c").contains("sharedCache.plain"));
    assert!(wrong("address: a, keyFile: k, timeout: 1m").contains("longer than 5s"));
    let shown = wrong("address: redis.example, keyFile: k, plain: true, user: u, passwordFile: p");
    assert!(
        shown.contains("sharedCache.plain: would show the password to everybody on the way to redis.example"),
        "{shown}"
    );
    for (address, more) in [("127.0.0.1:6379", ", passwordFile: p"), ("localhost", ", passwordFile: p"), ("a", "")] {
        settings(&format!("sharedCache: {{address: '{address}', keyFile: k, plain: true{more}}}"), Path::new("/x"));
    }
    let settings = settings("sharedCache: {address: a, keyFile: k}", Path::new("/x"));
    assert_eq!((settings.host.as_str(), settings.port, settings.plain), ("a", 6379, false));
}
