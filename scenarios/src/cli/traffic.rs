//! Flags of `longhaul load`: target, shape and amount of the load, and output.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use loadgen::admission::{Client, Error, Plan};
use loadgen::{Arrivals, Ramp, Shape, Sine, Stairs, Step};
use reports::judge::Verdict;
use serde_json::{Value, json};
use units::{Bytes, Rate, Span};

use crate::load::{Identity, Job, Webhook, descriptors, probe};
use crate::scenario::nearest;

/// Default seed, equal to the default in scenario files.
const DEFAULT_SEED: u64 = 1;
/// Maximum size of a file with certificates. Usual files have a few KiB; the bundle of an operating system is below 1
/// MiB.
const PEM_BYTES_MAX: u64 = 4 << 20;

/// The target of the load.
#[derive(clap::Args)]
pub(super) struct To {
    /// Address and path of the webhook, such as `https://127.0.0.1:8443/mutate`.
    url: String,
    /// The CA that signed the webhook's certificate, as PEM. A self-signed certificate is its own CA.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The name that the webhook's certificate must have, such as `webhook.shop.svc`. Default: the host of the URL.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    server_name: String,
    /// A client certificate with its chain, as PEM, for webhooks that ask for one.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The private key of --cert, as PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Skip the first request, which only checks that a webhook answers.
    #[arg(long)]
    no_probe: bool,
}

/// Flags for the kind of load and the number of concurrent calls.
#[derive(clap::Args)]
pub(super) struct Traffic {
    /// How requests are distributed over time at the given rate.
    #[arg(long, default_value = "poisson", value_parser = named::<Arrivals>)]
    arrivals: Arrivals,
    /// The kind of client: `apiserver` (connections as kube-apiserver uses them), `http2`, or `no-reuse` (a new connection for each call).
    #[arg(long, default_value = "apiserver", value_parser = named::<Client>)]
    client: Client,
    /// The mix of user actions, as relative weights: `createPod=5,rollImage=1`. Default:
    /// `createPod=5, createDeployment=3, deletePod=2, rollImage=1`.
    #[arg(long, value_name = "ACTION=WEIGHT,…", value_parser = mix)]
    mix: Option<Value>,
    /// Send creates and updates of this object, instead of --mix: a YAML file with the placeholders of `churn.template`. The flag may be
    /// given several times. With `FILE=denied` the webhook must refuse the object.
    #[arg(long = "object", value_name = "FILE", conflicts_with_all = ["mix", "size"])]
    objects: Vec<String>,
    /// The `CustomResourceDefinition` of the object, for its names and defaults. Without --object, Longhaul generates an object from the
    /// schema in this file.
    #[arg(long = "crd", value_name = "FILE", conflicts_with_all = ["mix", "size"])]
    definitions: Vec<PathBuf>,
    /// The size of reviews: `4KiB`, or `2KiB..64KiB` for a median and a maximum. Default: the size of the generated
    /// objects.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<Value>,
    /// Maximum number of calls in flight. At this limit, a planned request is not sent and counts as not sent.
    #[arg(long, value_name = "N", default_value_t = loadgen::admission::DEFAULT_MAX_IN_FLIGHT)]
    max_in_flight: u32,
    /// The number of threads that send requests, each with its own connections.
    #[arg(long, value_name = "N", default_value_t = loadgen::admission::DEFAULT_THREADS)]
    threads: u32,
    /// Close each connection after N calls, so that connections are steadily replaced.
    #[arg(long, value_name = "N")]
    calls_per_connection: Option<u32>,
    /// With `--client http2`: the connections of each thread, 1 to 100. A call takes the connection with the fewest calls in flight.
    /// Default: 1.
    #[arg(long, value_name = "N")]
    connections: Option<u32>,
    /// Resume TLS sessions, unlike kube-apiserver.
    #[arg(long)]
    tls_resumption: bool,
    /// The timeout of a call, in whole seconds from 1s to 30s.
    #[arg(long, value_name = "TIME", default_value_t = loadgen::admission::DEFAULT_TIMEOUT)]
    timeout: Span,
    /// The seed of random choices. Equal seeds give equal loads, byte for byte.
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_SEED)]
    seed: u64,
}

/// Flags for the rate over time.
#[derive(clap::Args)]
pub(super) struct Curve {
    /// The rate of requests, such as `1000/s` or `90/m`. With --capacity: the first rate to try, by default 500/s. The search doubles the
    /// rate until a limit is broken, or halves the rate until all limits are met.
    #[arg(long, value_name = "RATE", required_unless_present_any = ["steps", "capacity", "replay"])]
    pub(super) rate: Option<Rate>,
    /// The length of the load. Default: 60s, or the sum of --steps. With --capacity: the time for each rate, by default 10s. Low rates take
    /// up to six times longer, until their percentiles are known. The confirmation takes three times longer.
    #[arg(long = "for", value_name = "TIME")]
    pub(super) length: Option<Span>,
    /// Change the rate linearly from --rate to this rate.
    #[arg(long, value_name = "RATE", group = "shape")]
    ramp_to: Option<Rate>,
    /// Send these rates one after the other, instead of --rate: `100/s:10s,500/s:30s`.
    #[arg(long, value_name = "RATE:TIME,…", value_delimiter = ',', value_parser = step, group = "shape", conflicts_with = "rate")]
    steps: Vec<Step>,
    /// Raise the rate from --rate in steps. `100/s:10s` adds 100/s every 10 s.
    #[arg(long, value_name = "RATE:TIME", value_parser = step, group = "shape")]
    stairs: Option<Step>,
    /// Vary the rate around --rate as a sine wave. `300/s:60s` has an amplitude of 300/s and a period of 60 s.
    #[arg(long, value_name = "RATE:TIME", value_parser = step, group = "shape")]
    sine: Option<Step>,
    /// Search the highest rate at which all limits are met, and confirm this rate with a longer measurement.
    #[arg(long, conflicts_with_all = ["shape", "replay", "plan", "record"])]
    pub(super) capacity: bool,
    /// The highest rate that --capacity tries. Default: 50000/s for each thread.
    #[arg(long, value_name = "RATE", requires = "capacity")]
    pub(super) highest: Option<Rate>,
    /// Send the requests of this file at their recorded times: JSON lines, as --record writes them (docs/load.md).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "length", "shape", "record"])]
    pub(super) replay: Option<PathBuf>,
}

/// Flags for the output.
#[derive(clap::Args)]
pub(super) struct Output {
    /// Write the result as JSON to a file. `-` prints the result to stdout instead of the summary.
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Write the histogram of every second in the standard interval log format of HdrHistogram.
    #[arg(long, value_name = "FILE")]
    pub(super) hlog: Option<PathBuf>,
    /// Do not print the progress line.
    #[arg(long, short)]
    pub(super) quiet: bool,
}

impl Output {
    fn json_file(&self) -> Option<&Path> {
        self.json.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// Refuses an output file that cannot be written. Called before the load starts.
    pub(super) fn check(&self) -> Result<()> {
        let Some(path) = self.json_file() else { return Ok(()) };
        let open = std::fs::OpenOptions::new().create(true).append(true).open(path);
        open.map(|_| ()).with_context(|| format!("--json: failed to write {}", path.display()))
    }

    /// Writes the result to stdout or to the file of `--json`. If the file cannot be written, prints the result to
    /// stdout and does not pass, because a program could read the old file as the result.
    pub(super) fn finish(&self, report: &impl serde::Serialize, text: &str, verdict: Verdict) -> Verdict {
        let json = serde_json::to_string_pretty(report).map_err(std::io::Error::from);
        let Some(path) = self.json_file() else {
            let asked = json.ok().filter(|_| self.json.is_some());
            crate::out::out!("{}", asked.as_deref().unwrap_or(text.trim_end()));
            return verdict;
        };
        let written = json.and_then(|json| std::fs::write(path, json + "\n"));
        crate::out::out!("{}", text.trim_end());
        if let Err(error) = written {
            crate::out::err!("longhaul: --json: failed to write {}: {error}", path.display());
            return verdict.max(Verdict::Inconclusive);
        }
        verdict
    }
}

impl Curve {
    /// Rate, shape and length of the load, as a scenario file has them.
    fn parts(&self) -> (Rate, Option<Shape>, Duration) {
        const DEFAULT_LENGTH: Duration = Duration::from_mins(1);
        let shape = if let Some(to) = self.ramp_to {
            Some(Shape::Ramp(Ramp { to, over: None }))
        } else if let Some(Step { rate, length }) = self.stairs {
            Some(Shape::Stairs(Stairs { by: rate, every: length, to: None }))
        } else if let Some(Step { rate, length }) = self.sine {
            Some(Shape::Sine(Sine { amplitude: rate, period: length }))
        } else {
            (!self.steps.is_empty()).then(|| Shape::Steps(self.steps.clone()))
        };
        let steps: Duration = self.steps.iter().map(|step| step.length.0).sum();
        let length = self.length.map_or(if steps.is_zero() { DEFAULT_LENGTH } else { steps }, |length| length.0);
        (self.rate.unwrap_or_default(), shape, length)
    }
}

impl To {
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    fn webhook(&self) -> Result<Webhook> {
        // A URL with a user name is refused here, before summaries, results and other processes show the target.
        let authority = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        let example = "write for example https://127.0.0.1:8443/mutate";
        anyhow::ensure!(
            !self.url.contains('@') || units::masked(&self.url) == self.url,
            "`{}`: {}; {example}",
            units::masked(&self.url),
            units::AddressError::User
        );
        units::port(authority, 443).map_err(|error| anyhow::anyhow!("`{}`: {error}; {example}", self.url))?;
        let client_certificate = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some(Identity { chain_pem: pem("--cert", cert)?, key_pem: pem("--key", key)? }),
            _ => None,
        };
        let ca_pem = ca(self.ca.as_deref())?;
        Ok(Webhook { url: self.url.clone(), server_name: self.server_name.clone(), ca_pem, client_certificate })
    }
}

impl Traffic {
    pub(super) fn max_in_flight(&self) -> u32 {
        self.max_in_flight
    }

    /// The flags as a configuration of a scenario file, so that absent flags have the same defaults. The configuration
    /// has no rate.
    fn config(&self) -> Result<loadgen::admission::Config> {
        let mut config = json!({
            "arrivals": self.arrivals,
            "client": self.client,
            "maxInFlight": self.max_in_flight,
            "timeout": self.timeout,
            "threads": self.threads,
            "callsPerConnection": self.calls_per_connection,
            "connections": self.connections,
            "tlsResumption": self.tls_resumption,
        });
        for (key, value) in [("mix", &self.mix), ("size", &self.size)] {
            if let Some(value) = value {
                config[key] = value.clone();
            }
        }
        let mut config: loadgen::admission::Config = serde_json::from_value(config)?;
        if !self.objects.is_empty() || !self.definitions.is_empty() {
            config.objects = super::objects::objects(&self.objects, &self.definitions)?;
        }
        Ok(config)
    }
}

/// Checks the flags and returns the job that they describe.
pub(super) fn job(to: &To, traffic: &Traffic, curve: &Curve) -> Result<Job> {
    let (rate, shape, length) = curve.parts();
    job_of(to, traffic, rate, shape, length)
}

/// Checks the flags and returns their job, with the given rate, shape and length.
pub(super) fn job_of(to: &To, traffic: &Traffic, rate: Rate, shape: Option<Shape>, length: Duration) -> Result<Job> {
    let mut config = traffic.config()?;
    (config.rate, config.shape) = (rate, shape);
    anyhow::ensure!(!length.is_zero(), "--for is 0s: write how long to send, for example 60s");
    config.check().and_then(|()| config.schedule(traffic.seed, length)).map_err(as_flag)?;
    let length_ns = u64::try_from(length.as_nanos()).context("--for is too long")?;
    Ok(Job { config, seed: traffic.seed, length_ns, to: to.webhook()?, images: None })
}

/// An error with the names of flags instead of the keys of scenario files.
fn as_flag(error: Error) -> anyhow::Error {
    match error {
        // Several flags describe the shape, and the error text already names the flag.
        Error::Config { key: "shape", problem } => anyhow::anyhow!(problem),
        Error::Config { key, problem } => {
            let flag = key.chars().fold(String::new(), |flag, c| match c {
                'A'..='Z' => format!("{flag}-{}", c.to_ascii_lowercase()),
                _ => flag + c.encode_utf8(&mut [0; 4]),
            });
            anyhow::anyhow!("--{flag} {problem}")
        }
        // The text contains its cause.
        other => anyhow::anyhow!("{other}"),
    }
}

/// The job that the flags describe, and the plan from a recorded file.
pub(super) fn replay(to: &To, traffic: &Traffic, file: PathBuf) -> Result<(Job, Plan)> {
    let mut config = traffic.config()?;
    config.replay = Some(file);
    // The load is as long as the file.
    let mut job = Job { config, seed: traffic.seed, length_ns: u64::MAX, to: to.webhook()?, images: None };
    let plan = job.plan().map_err(as_flag)?;
    job.length_ns = u64::try_from(plan.length().as_nanos()).context("the file is too long")?;
    Ok((job, plan))
}

/// Checks all conditions that can be checked before the load starts.
pub(super) async fn check(job: &Job, plan: &Plan, to: &To) -> Result<()> {
    descriptors::provide(&job.config)?;
    if !to.no_probe {
        let body = plan.preview(1).pop().map(|(_, body)| body).unwrap_or_default();
        probe::probe(&job.to, job.config.client, body).await?;
    }
    Ok(())
}

fn ca(path: Option<&Path>) -> Result<String> {
    let Some(path) = path else {
        anyhow::bail!(
            "--ca FILE is missing: give the CA that signed the webhook's certificate, as PEM (in a cluster, the base64 in \
             `webhooks[].clientConfig.caBundle` of the webhook configuration); a self-signed certificate is its own CA"
        )
    };
    pem("--ca", path)
}

fn pem(flag: &str, path: &Path) -> Result<String> {
    let read = || -> std::io::Result<String> {
        use std::io::Read as _;
        let mut text = String::new();
        std::fs::File::open(path)?.take(PEM_BYTES_MAX).read_to_string(&mut text)?;
        Ok(text)
    };
    read().with_context(|| format!("{flag}: failed to read {}", path.display()))
}

/// Parses a value of a flag as a value in a scenario file.
fn named<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(Value::String(text.to_owned())).map_err(|error| error.to_string())
}

fn step(text: &str) -> Result<Step, String> {
    let Some((rate, length)) = text.split_once(':') else {
        return Err(format!("`{text}` is no rate and time: write for example `100/s:10s`"));
    };
    let rate = rate.parse().map_err(|error: units::Error| error.to_string())?;
    let length = length.parse().map_err(|error: units::Error| error.to_string())?;
    Ok(Step { rate, length })
}

fn mix(text: &str) -> Result<Value, String> {
    let known = serde_json::to_value(loadgen::admission::Mix::default()).map_err(|error| error.to_string())?;
    let known: Vec<&str> = known.as_object().into_iter().flat_map(serde_json::Map::keys).map(String::as_str).collect();
    let mut mix = serde_json::Map::new();
    for part in text.split(',').map(str::trim) {
        let example = "write for example `createPod=5,rollImage=1`";
        let (action, weight) = part.split_once('=').ok_or_else(|| format!("`{part}` has no weight: {example}"))?;
        if !known.contains(&action) {
            let near = nearest(action, &known).map(|near| format!(", perhaps `{near}`"));
            return Err(format!("`{action}` is no action{}: known are {}", near.unwrap_or_default(), known.join(", ")));
        }
        let weight: u32 = weight.parse().map_err(|_| format!("`{weight}` is no whole number: {example}"))?;
        mix.insert(action.to_owned(), weight.into());
    }
    Ok(mix.into())
}

fn size(text: &str) -> Result<Value, String> {
    let (median, max) = text.split_once("..").unwrap_or((text, text));
    for part in [median, max] {
        part.parse::<Bytes>().map_err(|error| error.to_string())?;
    }
    Ok(json!({"median": median, "max": max}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_what_to_write() {
        for (error, expected) in [
            (mix("createPods=1").unwrap_err(), "`createPods` is no action, perhaps `createPod`: known are "),
            (mix("createPod").unwrap_err(), "`createPod` has no weight: write for example"),
            (mix("createPod=many").unwrap_err(), "`many` is no whole number"),
            (size("4").unwrap_err(), "`4` has no unit"),
            (step("100/s").unwrap_err(), "`100/s` is no rate and time: write for example `100/s:10s`"),
            (step("100:1s").unwrap_err(), "`100` has no unit: write for example `200/s`"),
            (named::<Client>("curl").unwrap_err(), "unknown variant `curl`, expected one of `apiserver`"),
        ] {
            assert!(error.starts_with(expected), "{error}\nshould begin with\n{expected}");
        }
        let refused = |key: &'static str| as_flag(Error::Config { key, problem: "is 0".to_owned() }).to_string();
        assert_eq!(
            (refused("rate"), refused("maxInFlight")),
            ("--rate is 0".to_owned(), "--max-in-flight is 0".to_owned())
        );
        assert_eq!(size("4KiB").unwrap(), json!({"median": "4KiB", "max": "4KiB"}));
    }
}
