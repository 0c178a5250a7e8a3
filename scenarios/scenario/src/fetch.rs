//! Reads the subject's HTTP pages, which show its state or its metrics, over plain HTTP.
//!
//! This module keeps its connection open, because new connections would show in the subject's own figures.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1::SendRequest;
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;

/// An HTTP page that is read once or repeatedly.
pub struct Page {
    url: String,
    authority: String,
    path: String,
    limits: Limits,
    open: Option<Connection>,
}

/// Limits of time and size for reading a page.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time limit for the whole page.
    pub answer: Duration,
    /// Maximum length of the page's body, in bytes.
    pub bytes: usize,
}

struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    _driver: tokio_util::task::AbortOnDropHandle<()>,
}

impl Page {
    /// A page that has not been read yet. Returns an error if the page's address is invalid.
    pub fn new(url: &str, limits: Limits) -> Result<Self, String> {
        let (authority, uri) = page_address(url, "http://127.0.0.1:9000/metrics")?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { url: url.to_owned(), authority, path, limits, open: None })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Reads the page. An error names the request and the answer; after an error, the next `get` uses a new connection.
    pub async fn get(&mut self) -> Result<Bytes, String> {
        let answer = self.limits.answer;
        match tokio::time::timeout(answer, self.kept_or_new()).await {
            Ok(Ok((bytes, connection))) => {
                self.open = Some(connection);
                Ok(bytes)
            }
            Ok(Err(why)) => Err(format!("GET {}: {why}", self.url)),
            Err(_) => Err(format!("GET {} does not answer within {} s", self.url, answer.as_secs())),
        }
    }

    /// Reads the page over the open connection. If the server has closed this connection, reads over a new connection
    /// and returns no error.
    async fn kept_or_new(&mut self) -> Result<(Bytes, Connection), String> {
        if let Some(connection) = self.open.take().filter(|open| !open.sender.is_closed())
            && let Ok(read) = self.exchange(connection).await
        {
            return Ok(read);
        }
        let connection = self.connect().await?;
        self.exchange(connection).await
    }

    async fn connect(&self) -> Result<Connection, String> {
        let stream = tokio::net::TcpStream::connect(&self.authority).await.map_err(|error| error.to_string())?;
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|error| error.to_string())?;
        // The sender of a request learns how the connection ends.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Connection { sender, _driver: tokio_util::task::AbortOnDropHandle::new(driver) })
    }

    async fn exchange(&self, mut connection: Connection) -> Result<(Bytes, Connection), String> {
        connection.sender.ready().await.map_err(|error| error.to_string())?;
        let request = Request::get(&self.path).header("host", &self.authority).body(Empty::<Bytes>::new());
        let request = request.map_err(|error| error.to_string())?;
        let answer = connection.sender.send_request(request).await.map_err(|error| error.to_string())?;
        if answer.status() != StatusCode::OK {
            return Err(format!("it answers {}", answer.status()));
        }
        let body = Limited::new(answer.into_body(), self.limits.bytes).collect().await;
        let bytes = body.map_err(|error| error.to_string())?.to_bytes();
        Ok((bytes, connection))
    }
}

/// Parses the URL of a page: host with port, and the whole address. The error contains `example`, an address that
/// works.
pub fn page_address(url: &str, example: &str) -> Result<(String, Uri), String> {
    let example = format!("write for example `{example}`");
    let uri: Uri = url.parse().map_err(|error| format!("`{url}` is no address ({error}): {example}"))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http"), Some(host)) => Ok((format!("{host}:{}", uri.port_u16().unwrap_or(80)), uri)),
        (Some("https"), Some(_)) => Err(format!("`{url}`: pages are read over plain HTTP: {example}")),
        _ => Err(format!("`{url}` is no address of a page: {example}")),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const LIMITS: Limits = Limits { answer: Duration::from_secs(10), bytes: 1000 };

    #[test]
    fn addresses_are_of_pages() {
        let address = |url| page_address(url, "http://127.0.0.1:9000/world");
        assert_eq!(address("http://127.0.0.1:9000/world").unwrap().0, "127.0.0.1:9000");
        assert_eq!(address("http://localhost/").unwrap().0, "localhost:80");
        for wrong in ["127.0.0.1:9000", "https://127.0.0.1/", "world", ""] {
            assert!(address(wrong).unwrap_err().contains("write for example"), "{wrong}");
        }
    }

    /// A server that answers the requests of one connection with `answers`, and closes the connection after the last
    /// answer.
    async fn server(answers: &'static [&'static str]) -> (String, tokio::task::JoinHandle<()>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/metrics", listener.local_addr().unwrap());
        let task = tokio::spawn(async move {
            for answers in answers.chunks(2) {
                let (mut stream, _) = listener.accept().await.unwrap();
                for answer in answers {
                    let mut request = [0; 1024];
                    if stream.read(&mut request).await.unwrap() == 0 {
                        break;
                    }
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            }
        });
        (url, task)
    }

    /// Two reads share one connection; the third finds it closed and opens a new one.
    #[tokio::test]
    async fn the_connection_is_kept_and_made_anew() {
        const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na1";
        let (url, task) = server(&[FINE, FINE, FINE]).await;
        let mut page = Page::new(&url, LIMITS).unwrap();
        for _ in 0..3 {
            assert_eq!(page.get().await.unwrap(), "a1");
        }
        drop(page);
        task.await.unwrap();
    }

    #[tokio::test]
    async fn what_is_no_page_is_told_with_its_address() {
        let (url, _task) = server(&["HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"]).await;
        let error = Page::new(&url, LIMITS).unwrap().get().await.unwrap_err();
        assert!(error.starts_with(&format!("GET {url}: it answers 404")), "{error}");
        let (url, _task) = server(&["HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n"]).await;
        assert!(Page::new(&url, LIMITS).unwrap().get().await.is_err(), "more than it may have");
        let (url, task) = server(&[]).await;
        task.await.unwrap();
        assert!(Page::new(&url, LIMITS).unwrap().get().await.unwrap_err().contains("refused"));
    }
}
