//! The section of a scenario for admission load, with the checks of its values before the run starts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use units::{Rate, Span};

use super::attack_plan::{self, Attack};
use super::{Error, Image, Mix};
use crate::arrivals::{Recorded, Recording};
use crate::{Arrivals, Schedule, Shape, Size};

/// The default timeout, which kube-apiserver uses for a webhook configuration without `timeoutSeconds`
/// (admissionregistration/v1).
pub const DEFAULT_TIMEOUT: Span = Span::from_secs(10);
/// The default limit of calls in flight: enough for 500 requests a second that take a second each, and far below a
/// limit of 1024 file descriptors.
pub const DEFAULT_MAX_IN_FLIGHT: u32 = 500;
/// The highest rate, in requests per second and thread. A thread with TLS sends about ten thousand requests a second,
/// so a higher rate is a typing error.
pub const HIGHEST_RATE: f64 = 50_000.0;
/// The default number of threads; one thread sends more requests than most webhooks can answer.
pub const DEFAULT_THREADS: u32 = 1;
/// Maximum number of threads that send load. More threads than CPUs only delay each other, and no machine that
/// generates load has more CPUs.
const HIGHEST_THREADS: u32 = 64;
/// Maximum number of workers of a load. More workers only delay each other, and their coordinator was measured with no
/// more workers (docs/measured/scale.md).
pub const HIGHEST_WORKERS: u32 = 64;
/// Maximum number of calls in flight, each of which may hold a connection.
const HIGHEST_IN_FLIGHT: u32 = 20_000;
/// The default number of HTTP/2 connections of a thread.
pub(super) const DEFAULT_CONNECTIONS: u32 = 1;
/// Maximum number of HTTP/2 connections of a thread; one connection carries hundreds of calls at a time.
const HIGHEST_CONNECTIONS: u32 = 100;
/// The range that Kubernetes allows for `timeoutSeconds` (admissionregistration/v1).
const TIMEOUT_SECONDS: std::ops::RangeInclusive<u64> = 1..=30;

/// Admission load of a scenario.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// Requests (not user actions) per second. Leave it out only with `replay` or with `shape: {steps: …}`, which has
    /// its own rates.
    #[serde(default)]
    pub rate: Rate,
    /// How requests are spread over time.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// How the rate changes over the run. Without a shape the rate is constant.
    pub shape: Option<Shape>,
    /// A file with the time and the contents of each request, instead of `rate`, `arrivals` and `shape`: JSON lines as
    /// `longhaul load --record` writes them. The path is relative to the scenario file. A request without contents is
    /// drawn from `mix`. For all others every valid answer is right, because the right answer is unknown. The last
    /// request of the file must not come after the end of the load.
    pub replay: Option<PathBuf>,
    /// The target of requests: the webhook itself, or an API server that calls the webhook. Through the API server each
    /// request is a user's write (create, label, set image, delete, …), objects are stored and deleted again, and a
    /// request may take 30 s. The webhook's own timeout then comes from its registration, not from `timeout`.
    #[serde(default, skip_serializing_if = "Through::is_webhook")]
    pub through: Through,
    /// The kind of client that sends requests.
    #[serde(default)]
    pub client: Client,
    /// Users' actions, each with its relative weight.
    #[serde(default = "Mix::usual")]
    pub mix: Mix,
    /// Instead of `mix`: objects of any kind that are created, changed and deleted, and the webhooks that are called
    /// for them. Default, if the subject has its own webhooks (`install: {webhooks: FILE}`): the churned objects, and
    /// objects of the kinds that the webhooks' rules name, made from the definitions under `controlPlane.manifests`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<super::Own>,
    /// How long a call may take, whole seconds from 1s to 30s. The call's URL contains it as `?timeout=10s`, as with
    /// kube-apiserver.
    #[serde(default = "default_timeout")]
    pub timeout: Span,
    /// The size of the reviews, within 2 %. Objects grow as real objects do: more containers, environment, volumes,
    /// annotations, files. Some kinds cannot have every size: a scale and an eviction have one size, a workload is not
    /// smaller than 4 KiB, a Namespace not larger than 200 KiB. Reviews of kinds that cannot reach the size come as
    /// near to it as they can. Without `size`, reviews have their natural size.
    pub size: Option<Size>,
    /// Maximum number of calls in flight at once. A request beyond this limit counts as overflow.
    #[serde(default = "default_max_in_flight")]
    pub max_in_flight: u32,
    /// The number of threads that send, 1 to 64. As with several kube-apiservers, each thread has its own connections,
    /// and an equal fraction of the planned requests and of `maxInFlight`.
    #[serde(default = "default_threads")]
    pub threads: u32,
    /// Whether TLS sessions are resumed; kube-apiserver does not resume them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tls_resumption: bool,
    /// The number of calls after which a connection is closed, so that connections change steadily (not with `client:
    /// no-reuse`).
    pub calls_per_connection: Option<u32>,
    /// The number of HTTP/2 connections of each thread, 1 to 100 (`client: http2` only). A call uses the connection
    /// with the fewest calls. Default: one.
    pub connections: Option<u32>,
    /// Clients that attack the webhook beside the reviews, by HTTP/2 frames that no library writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attacks: Vec<Attack>,
    /// Workers that send instead of the harness itself. All workers begin together, and each has an equal fraction of
    /// the planned requests and of `maxInFlight`; their measurements are added. If the control plane has nodes, workers
    /// are Pods of one Job, otherwise processes of this machine. Workers know the images as they are before the run, so
    /// nothing in the run may change the right answers.
    pub workers: Option<Workers>,
}

/// Workers that send the plan together.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Workers {
    /// The number of workers, 1 to 64.
    pub count: u32,
    /// Only for Pods in a cluster that a kubeconfig names: an image that the cluster can pull, and whose entry point is
    /// the same `longhaul`. For other clusters an image is made of this program and loaded.
    pub image: Option<String>,
}

/// The target of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Through {
    /// The webhook itself, which gets reviews as from an API server.
    #[default]
    Webhook,
    /// The control plane's API server, which calls the webhooks that are registered there.
    Apiserver,
}

impl Through {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
    fn is_webhook(&self) -> bool {
        *self == Self::Webhook
    }
}

/// The kind of client that sends the reviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Client {
    /// Like kube-apiserver: HTTP/1.1 over TLS; at most 25 idle connections are kept for 90 s, and more are opened when
    /// needed.
    #[default]
    Apiserver,
    /// HTTP/2: one stream for each call, and one connection for each thread unless `connections` is set.
    Http2,
    /// A new HTTP/1.1 connection for each call.
    NoReuse,
}

impl Client {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Apiserver => "as kube-apiserver (HTTP/1.1, at most 25 idle connections)",
            Self::Http2 => "over HTTP/2, one stream a call",
            Self::NoReuse => "a new HTTP/1.1 connection for each call",
        }
    }
}

impl Config {
    /// The planned times of requests in a run of this length. Refuses settings that do not fit the length of the run,
    /// and reads the file of a replay.
    pub fn schedule(&self, seed: u64, length: Duration) -> Result<Schedule, Error> {
        self.schedule_and_reviews(seed, length).map(|(schedule, _)| schedule)
    }

    /// The planned times, and the contents of a replay; see [`Self::schedule`].
    pub(super) fn schedule_and_reviews(
        &self,
        seed: u64,
        length: Duration,
    ) -> Result<(Schedule, Option<Replayed>), Error> {
        let Some(file) = &self.replay else { return Ok((self.profile_schedule(seed, length)?, None)) };
        let (recording, reviews) = Recording::read(file)?;
        let takes = recording.length();
        if takes > length {
            let problem = format!(
                "{} takes {}, the load only {}: make the load longer, or cut the file off",
                file.display(),
                Span(round_up(takes)),
                Span(length)
            );
            return Err(Error::Config { key: "replay", problem });
        }
        let replayed = Replayed { reviews, has_open: recording.has_open() };
        Ok((Schedule::recorded(Arc::new(recording)), Some(replayed)))
    }

    fn profile_schedule(&self, seed: u64, length: Duration) -> Result<Schedule, Error> {
        let refuse = |problem: String| {
            let key = if self.shape.is_some() { "shape" } else { "rate" };
            Err(Error::Config { key, problem })
        };
        let schedule = match Schedule::new(self.arrivals, self.rate, self.shape.as_ref(), seed, length) {
            Ok(schedule) => schedule,
            Err(misfit) => return refuse(misfit.to_string()),
        };
        let highest = HIGHEST_RATE * f64::from(self.threads);
        if let Some(peak) = schedule.peak().filter(|&peak| peak > highest) {
            return refuse(format!("reaches {peak:.0}/s: stay at or below `{highest}/s`"));
        }
        if schedule.total() == 0 {
            let length_s = length.as_secs_f64();
            return refuse(format!("makes no request in {length_s:.1} s: raise the rate or lengthen the run"));
        }
        Ok(schedule)
    }

    /// Whether the rules of the project's own webhooks decide which objects are sent.
    pub fn is_left_to_webhooks(&self) -> bool {
        self.through == Through::Webhook && self.objects.is_empty() && self.replay.is_none()
    }

    /// Refuses settings that work only if the load is sent directly to the webhook.
    pub(super) fn check_through(&self) -> Result<(), Error> {
        let alone = "needs load that is sent to the webhook itself: leave it out, or leave `through` out";
        if self.replay.is_some() {
            return refuse("replay", alone.to_owned());
        }
        if self.size.is_some() {
            return refuse("size", alone.to_owned());
        }
        if self.client != Client::Apiserver {
            return refuse("client", alone.to_owned());
        }
        if self.calls_per_connection.is_some() {
            return refuse("callsPerConnection", alone.to_owned());
        }
        if self.tls_resumption {
            return refuse("tlsResumption", alone.to_owned());
        }
        if self.workers.is_some() {
            return refuse("workers", alone.to_owned());
        }
        if !self.attacks.is_empty() {
            return refuse("attacks", alone.to_owned());
        }
        if self.threads != DEFAULT_THREADS {
            return refuse("threads", format!("is {}: {alone}", self.threads));
        }
        let unknown = self.mix.weights().into_iter().find(|&(action, weight)| weight > 0 && action.kind().is_none());
        if let Some((action, _)) = unknown {
            let key = action.key();
            return refuse("mix", format!("`{key}` is not an action through the API server: leave it out"));
        }
        Ok(())
    }

    /// Refuses settings that cannot work; the error names the key and says what to write instead.
    pub fn check(&self) -> Result<(), Error> {
        let per_second = self.rate.as_per_second();
        if self.replay.is_some() && per_second > 0.0 {
            return refuse(
                "rate",
                "cannot be used with `replay`, which has its own times of requests: leave one of them out",
            );
        }
        if self.replay.is_some() && self.shape.is_some() {
            return refuse(
                "shape",
                "cannot be used with `replay`, which has its own times of requests: leave one of them out",
            );
        }
        let alone = self.shape.as_ref().is_some_and(Shape::stands_alone);
        if alone && per_second > 0.0 {
            return refuse(
                "rate",
                "cannot be used with `shape: {steps: …}`, which has its own rates: leave one of them out",
            );
        }
        // A ramp may begin at zero.
        let from_zero = alone || self.replay.is_some() || matches!(self.shape, Some(Shape::Ramp(_) | Shape::Stairs(_)));
        if per_second <= 0.0 && !from_zero {
            return refuse("rate", "is 0: write how many requests to send, for example `200/s`");
        }
        if self.threads == 0 || self.threads > HIGHEST_THREADS {
            return refuse("threads", format!("is {}: write 1 to {HIGHEST_THREADS}", self.threads));
        }
        if per_second > HIGHEST_RATE * f64::from(self.threads) {
            let text = format!("is {}: write at most `{HIGHEST_RATE}/s` for each of `threads`", self.rate);
            return refuse("rate", text);
        }
        if let Some(problem) = self.shape.as_ref().and_then(|shape| shape.problem(self.rate)) {
            return refuse("shape", problem);
        }
        if self.through == Through::Apiserver {
            self.check_through()?;
        }
        super::own::check(&self.objects)?;
        attack_plan::check(&self.attacks)?;
        if self.mix.total() == 0 {
            return refuse(
                "mix",
                "has no weight above 0: write for example `mix: {createPod: 5, createDeployment: 3}`",
            );
        }
        if self.timeout.0.subsec_nanos() != 0 || !TIMEOUT_SECONDS.contains(&self.timeout.0.as_secs()) {
            let text = format!("is {}: Kubernetes allows whole seconds from `1s` to `30s`", self.timeout);
            return refuse("timeout", text);
        }
        if self.max_in_flight == 0 || self.max_in_flight > HIGHEST_IN_FLIGHT {
            let text = format!("is {}: write 1 to {HIGHEST_IN_FLIGHT}", self.max_in_flight);
            return refuse("maxInFlight", text);
        }
        if self.max_in_flight < self.threads {
            let text = format!("is {}: each of the {} threads needs one at least", self.max_in_flight, self.threads);
            return refuse("maxInFlight", text);
        }
        match self.calls_per_connection {
            Some(0) => return refuse("callsPerConnection", "is 0: write 1 or more, or leave it out"),
            Some(_) if self.client == Client::NoReuse => {
                return refuse("callsPerConnection", "is always 1 with `client: no-reuse`: leave it out");
            }
            _ => {}
        }
        match self.connections {
            Some(_) if self.client != Client::Http2 => {
                return refuse("connections", "needs `client: http2`: leave it out");
            }
            Some(count) if count == 0 || count > HIGHEST_CONNECTIONS => {
                return refuse("connections", format!("is {count}: write 1 to {HIGHEST_CONNECTIONS}, or leave it out"));
            }
            _ => {}
        }
        if let Some(Workers { count, .. }) = self.workers
            && !(1..=HIGHEST_WORKERS).contains(&count)
        {
            return refuse("workers", format!("count is {count}: write 1 to {HIGHEST_WORKERS}"));
        }
        match self.size.and_then(Size::problem) {
            Some(problem) => refuse("size", problem),
            None => Ok(()),
        }
    }
}

/// The contents of a replay file without its times.
pub(super) struct Replayed {
    /// The distinct reviews in the file.
    pub reviews: Vec<Recorded>,
    /// Whether some requests in the file have no contents.
    pub has_open: bool,
}

/// Rounds a time up to whole milliseconds. If the error message rounded down, the user would write a value that is
/// refused again.
fn round_up(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

/// Refuses images for which the harness cannot compute a right answer.
pub(super) fn check_images(images: &[Image]) -> Result<(), Error> {
    let refuse = |problem: String| Err(Error::Images { problem });
    for image in images {
        let reference = &image.reference;
        if reference.is_empty() || reference.contains('@') || reference.chars().any(char::is_whitespace) {
            return refuse(format!(
                "`{reference}` is not a name with an optional tag: write for example `registry/app:1.2`"
            ));
        }
        if let Some(digest) = &image.digest
            && !is_digest(digest)
        {
            return refuse(format!(
                "`{digest}` of `{reference}` is no digest: write `sha256:` and 64 lower-case hex digits"
            ));
        }
    }
    if !images.iter().any(|image| image.digest.is_some()) {
        let problem = "none exists: give at least one image with its digest (in a scenario: `registry: {images: 40}`)";
        return refuse(problem.to_owned());
    }
    Ok(())
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)))
}

fn refuse(key: &'static str, problem: impl Into<String>) -> Result<(), Error> {
    Err(Error::Config { key, problem: problem.into() })
}

fn default_timeout() -> Span {
    DEFAULT_TIMEOUT
}

fn default_max_in_flight() -> u32 {
    DEFAULT_MAX_IN_FLIGHT
}

fn default_threads() -> u32 {
    DEFAULT_THREADS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Config, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn the_shortest_config_gets_the_documented_defaults() {
        let config = parse(r#"{"rate": "200/s"}"#).unwrap();
        assert_eq!(config.arrivals, Arrivals::Poisson);
        assert_eq!(config.client, Client::Apiserver);
        assert_eq!(config.timeout, DEFAULT_TIMEOUT);
        assert_eq!(config.max_in_flight, DEFAULT_MAX_IN_FLIGHT);
        assert_eq!(
            (config.threads, config.tls_resumption, config.calls_per_connection, config.connections),
            (1, false, None, None)
        );
        assert!(config.mix.total() > 0);
        config.check().unwrap();
        let again = parse(&serde_json::to_string(&config).unwrap()).unwrap();
        assert_eq!(again, config, "what is written is read back");
    }

    #[test]
    fn every_refusal_names_the_key_and_what_to_write() {
        for (json, expected) in [
            (r#"{"rate": "0/s"}"#, "admission.rate: is 0: write how many requests to send, for example `200/s`"),
            (r"{}", "admission.rate: is 0: write how many requests to send"),
            (
                r#"{"rate": "1/s", "shape": {"steps": [{"rate": "1/s", "for": "1s"}]}}"#,
                "admission.rate: cannot be used with `shape: {steps",
            ),
            (
                r#"{"rate": "1/s", "shape": {"sine": {"amplitude": "2/s", "period": "1s"}}}"#,
                "admission.shape: sine.amplitude (2/s) is above `rate` (1/s)",
            ),
            (r#"{"rate": "1/s", "replay": "x"}"#, "admission.rate: cannot be used with `replay`"),
            (r#"{"shape": {"ramp": {"to": "2/s"}}, "replay": "x"}"#, "admission.shape: cannot be used with `replay`"),
            (r#"{"rate": "60000/s"}"#, "admission.rate: is 60000/s: write at most `50000/s` for each of `threads`"),
            (r#"{"rate": "1/s", "threads": 0}"#, "admission.threads: is 0: write 1 to 64"),
            (r#"{"rate": "1/s", "threads": 65}"#, "admission.threads: is 65: write 1 to 64"),
            (
                r#"{"rate": "1/s", "threads": 4, "maxInFlight": 3}"#,
                "admission.maxInFlight: is 3: each of the 4 threads needs one",
            ),
            (r#"{"rate": "1/s", "callsPerConnection": 0}"#, "admission.callsPerConnection: is 0: write 1 or more"),
            (
                r#"{"rate": "1/s", "callsPerConnection": 9, "client": "no-reuse"}"#,
                "admission.callsPerConnection: is always 1 with `client: no-reuse`",
            ),
            (r#"{"rate": "1/s", "connections": 2}"#, "admission.connections: needs `client: http2`"),
            (r#"{"rate": "1/s", "connections": 0, "client": "http2"}"#, "admission.connections: is 0: write 1 to 100"),
            (
                r#"{"rate": "1/s", "mix": {}}"#,
                "admission.mix: has no weight above 0: write for example `mix: {createPod",
            ),
            (r#"{"rate": "1/s", "mix": {"createPod": 0}}"#, "admission.mix: has no weight above 0"),
            (
                r#"{"rate": "1/s", "timeout": "1500ms"}"#,
                "admission.timeout: is 1500ms: Kubernetes allows whole seconds",
            ),
            (r#"{"rate": "1/s", "timeout": "31s"}"#, "admission.timeout: is 31s"),
            (r#"{"rate": "1/s", "workers": {"count": 0}}"#, "admission.workers: count is 0: write 1 to 64"),
            (
                r#"{"rate": "1/s", "workers": {"count": 2}, "through": "apiserver"}"#,
                "admission.workers: needs load that is sent to the webhook itself",
            ),
            (r#"{"rate": "1/s", "maxInFlight": 0}"#, "admission.maxInFlight: is 0: write 1 to 20000"),
            (r#"{"rate": "1/s", "maxInFlight": 20001}"#, "admission.maxInFlight: is 20001: write 1 to 20000"),
            (
                r#"{"rate": "1/s", "size": {"median": "2KiB", "max": "1KiB"}}"#,
                "admission.size: size.max (1KiB) is below",
            ),
        ] {
            let error = parse(json).unwrap().check().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}\nshould begin with\n{expected}");
        }
    }

    #[test]
    fn a_shape_that_goes_too_high_is_refused() {
        let config = parse(r#"{"rate": "1/s", "shape": {"stairs": {"by": "9000/s", "every": "1s"}}}"#).unwrap();
        config.check().unwrap();
        assert!(config.schedule(1, Duration::from_secs(6)).is_ok());
        let error = config.schedule(1, Duration::from_secs(10)).unwrap_err().to_string();
        assert_eq!(error, "admission.shape: reaches 81001/s: stay at or below `50000/s`");
        for (shape, reached) in [
            (r#"{"ramp": {"to": "60000/s"}}"#, "reaches 60000/s"),
            (r#"{"sine": {"amplitude": "30000/s", "period": "2s"}}"#, "reaches 70000/s"),
        ] {
            let config = parse(&format!(r#"{{"rate": "40000/s", "shape": {shape}}}"#)).unwrap();
            config.check().unwrap();
            let error = config.schedule(1, Duration::from_secs(10)).unwrap_err().to_string();
            assert!(error.contains(reached), "{error}");
            let threads = Config { threads: 2, ..config };
            assert!(threads.schedule(1, Duration::from_secs(10)).is_ok(), "each thread may send so much");
        }
    }

    #[test]
    fn typing_errors_are_refused() {
        for (json, expected) in [
            (r#"{"rate": "1/s", "arivals": "poisson"}"#, "unknown field `arivals`"),
            (r#"{"rate": "1/s", "mix": {"createPods": 1}}"#, "unknown field `createPods`"),
            (r#"{"rate": 200}"#, "`200` has no unit: write for example `200/s`"),
            (r#"{"rate": "1/s", "client": "curl"}"#, "unknown variant `curl`, expected one of `apiserver`"),
        ] {
            let error = parse(json).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn images_must_be_judgeable() {
        let image = |reference: &str, digest: Option<String>| Image::new(reference, digest);
        let good = format!("sha256:{}", "a".repeat(64));
        let error = |images: &[Image]| check_images(images).unwrap_err().to_string();
        assert!(error(&[]).starts_with("images: none exists: give at least one"));
        assert!(error(&[image("a:1", None)]).starts_with("images: none exists"));
        assert!(error(&[image("a@sha256:1", Some(good.clone()))]).contains("is not a name with an optional tag"));
        assert!(error(&[image("a:1", Some("sha256:XYZ".to_owned()))]).contains("write `sha256:` and 64"));
        check_images(&[image("a:1", Some(good)), image("gone:1", None)]).unwrap();
    }
}
