//! A server that sends arbitrary bytes instead of HTTP, after it has read the head of a request.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The behaviour of the server after the head of a request. After the bytes, the server by default closes the
/// connection.
pub enum Answer {
    Bytes(Vec<u8>),
    /// Sends these bytes, then bytes without end.
    Endless(Vec<u8>),
    /// Sends nothing and keeps the connection open.
    Hang,
}

type Behaviour = Arc<dyn Fn(&str) -> Answer + Send + Sync>;

pub struct Raw {
    pub address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Raw {
    /// Starts a server that answers each request as `behaviour` decides from its head.
    pub async fn start(behaviour: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (seen, behaviour): (_, Behaviour) = (Arc::clone(&heads), Arc::new(behaviour));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                connections.spawn(serve(tcp, Arc::clone(&seen), Arc::clone(&behaviour)));
            }
        });
        Self { address, heads, _tasks: tasks }
    }

    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// The heads of all received requests, with header names in lower case.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().clone()
    }
}

async fn serve(mut tcp: TcpStream, seen: Arc<Mutex<Vec<String>>>, behaviour: Behaviour) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match tcp.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    seen.lock().push(head.clone());
    match behaviour(&head) {
        Answer::Hang => std::future::pending().await,
        Answer::Bytes(bytes) => drop(tcp.write_all(&bytes).await),
        Answer::Endless(bytes) => {
            let mut next = bytes;
            while tcp.write_all(&next).await.is_ok() {
                next = vec![b' '; 64 << 10];
            }
        }
    }
    // Without this a body cut short on purpose could be taken for a reset.
    let _ = tcp.shutdown().await;
}
