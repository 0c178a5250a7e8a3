//! Sends one alert over HTTP: makes the attempts with delays between them, and interprets the answers.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Request, StatusCode};
use rand::RngExt as _;
use service_core::wire::{Client, Limits};
use tokio::time::{Instant, sleep_until};

use crate::config::{self, Secret};

/// Mean delay between the first and the second attempt. The mean doubles with each attempt, and the actual delay is
/// random around the mean.
const RETRY_BASE: Duration = Duration::from_millis(200);
/// Longest delay between attempts that a receiver may demand.
const RETRY_MAX: Duration = Duration::from_secs(30);
/// Maximum number of bytes of an answer that are read; receivers answer with one word.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Maximum number of open requests to a receiver for which reviews wait; each other receiver gets one request.
const OPEN_MAX: usize = 16;

pub struct Sender {
    client: Client,
    path: String,
    headers: Vec<(HeaderName, Secret)>,
    timeout: Duration,
    attempts: u32,
}

enum Attempt {
    Told,
    /// Another attempt may succeed; the receiver may have stated a delay.
    Later(String, Option<Duration>),
    Never(String),
}

impl Sender {
    /// Reads the files in the settings, but opens no connection.
    pub fn new(settings: &config::Receiver) -> Result<Self, String> {
        let address = settings.url.read()?;
        let uri = config::address(&address)?;
        if let Some(what) = config::shown_to_others(&address, &settings.url, &settings.headers) {
            return Err(format!("the address {what}"));
        }
        let limits = Limits { open_max: OPEN_MAX, idle_max: 2 };
        let made = Client::of_address(&uri, settings.ca_file.as_deref(), limits);
        let (client, path) = made.map_err(|error| error.to_string())?;
        let named = settings.headers.iter().map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| format!("{name}: {error}"))?;
            value.read().map(|_| (name, value.clone()))
        });
        let headers = named.collect::<Result<_, String>>()?;
        Ok(Self { client, path, headers, timeout: settings.timeout, attempts: settings.attempts })
    }

    /// Sends `body`, and sends it again after a failure while another attempt may succeed and time remains.
    pub async fn send(&self, body: &str, deadline: Option<Instant>) -> Result<(), String> {
        let mut failed = String::new();
        for attempt in 0..self.attempts {
            let wait = match self.attempt(body, deadline).await {
                Attempt::Told => return Ok(()),
                Attempt::Never(why) => return Err(why),
                Attempt::Later(why, asked) => {
                    failed = why;
                    let own = RETRY_BASE.saturating_mul(1 << attempt.min(10));
                    asked.unwrap_or_else(|| own.mul_f64(rand::rng().random_range(0.5..1.5))).min(RETRY_MAX)
                }
            };
            let next = Instant::now() + wait;
            if attempt + 1 == self.attempts || deadline.is_some_and(|deadline| next >= deadline) {
                break;
            }
            sleep_until(next).await;
        }
        Err(failed)
    }

    async fn attempt(&self, body: &str, deadline: Option<Instant>) -> Attempt {
        let mut request = Request::post(&self.path).header(CONTENT_TYPE, "application/json");
        for (name, value) in &self.headers {
            let value = value.read().and_then(|text| HeaderValue::from_str(&text).map_err(|error| error.to_string()));
            let Ok(mut value) = value else { return Attempt::Never(format!("the header `{name}` cannot be read")) };
            value.set_sensitive(true);
            if let Some(headers) = request.headers_mut() {
                headers.insert(name, value);
            }
        }
        let Ok(request) = request.body(Bytes::copy_from_slice(body.as_bytes())) else {
            return Attempt::Never("the request cannot be made".into());
        };
        let until = Instant::now() + self.timeout;
        let until = deadline.map_or(until, |deadline| deadline.min(until));
        match self.client.fetch(request, ANSWER_BYTES_MAX, until).await {
            Err(error) => Attempt::Later(error.to_string(), None),
            Ok(answer) if answer.status().is_success() => Attempt::Told,
            Ok(answer) => {
                let status = answer.status();
                let why = format!("it answered {status}");
                let asked = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
                if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
                    Attempt::Later(why, asked.map(Duration::from_secs))
                } else {
                    Attempt::Never(why)
                }
            }
        }
    }
}
