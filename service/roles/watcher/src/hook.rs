//! One call of a receiver or hook over HTTP: its body, its token, and the meaning of the answer. The caller decides
//! whether a call is repeated.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Request, StatusCode, Uri};
use service_core::wire::{Client, Limits};
use tokio::time::Instant;

use crate::config::Receiver;

/// Maximum number of bytes of an answer that are read. The content of the answer is not used, so longer answers are cut
/// off.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Longest delay until the next call that an answer may demand.
const ASKED_MAX: Duration = Duration::from_mins(5);

pub struct Hook {
    client: Client,
    path: String,
    token_file: Option<PathBuf>,
    timeout: Duration,
}

/// A call that was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// A later call may succeed. If the answer demands a delay, the next call must wait that long.
    Later(String, Option<Duration>),
    /// No later call with the same body can succeed, and the text says why.
    Never(String),
}

impl Hook {
    /// Reads the file with trusted authorities; opens no connection. `open_max` is the maximum number of open calls.
    pub fn new(settings: &Receiver, open_max: usize) -> anyhow::Result<Self> {
        let uri: Uri = settings.url.parse().with_context(|| format!("{} is no address", settings.url))?;
        let limits = Limits { open_max, idle_max: open_max };
        let (client, path) = Client::of_address(&uri, settings.ca_file.as_deref(), limits)?;
        Ok(Self { client, path, token_file: settings.token_file.clone(), timeout: settings.timeout })
    }

    /// Posts `body`; any answer with 2xx means that the receiver accepted it.
    pub async fn post(&self, media_type: &'static str, body: Bytes) -> Result<(), Failure> {
        let mut request = Request::post(&self.path).header(CONTENT_TYPE, media_type);
        if let Some(path) = &self.token_file {
            // Read for each call: tokens of service accounts are replaced while the process runs.
            let token = std::fs::read_to_string(path).map_err(|error| error.to_string());
            let value = token.and_then(|token| {
                HeaderValue::from_str(&format!("Bearer {}", token.trim())).map_err(|error| error.to_string())
            });
            let mut value = value.map_err(|why| Failure::Later(format!("{}: {why}", path.display()), None))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let request = request.body(body).map_err(|error| Failure::Never(error.to_string()))?;
        let answer = self.client.fetch(request, ANSWER_BYTES_MAX, Instant::now() + self.timeout).await;
        let answer = answer.map_err(|error| Failure::Later(error.to_string(), None))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let why = format!("it answered {status}");
        let asked = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let asked = asked.map(|seconds| Duration::from_secs(seconds).min(ASKED_MAX));
        // These statuses reject the content, so a repetition fails again; all others, such as refused access, may pass
        // later.
        let for_good = [
            StatusCode::BAD_REQUEST,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            StatusCode::UNPROCESSABLE_ENTITY,
        ];
        Err(if for_good.contains(&status) { Failure::Never(why) } else { Failure::Later(why, asked) })
    }
}
