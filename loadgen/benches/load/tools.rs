//! The generators that people know: how each is called, and where it says what.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use procfs::process::Process;

use crate::ours::{Mode, Task, Told};
use crate::server::Server;

/// A generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Ours,
    Wrk,
    H2load,
    Hey,
    Ab,
    Oha,
}

impl Tool {
    pub(crate) const ALL: [Self; 6] = [Self::Ours, Self::Wrk, Self::H2load, Self::Hey, Self::Ab, Self::Oha];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "longhaul",
            Self::Wrk => "wrk",
            Self::H2load => "h2load",
            Self::Hey => "hey",
            Self::Ab => "ab",
            Self::Oha => "oha",
        }
    }

    /// Whether it can do this at all.
    pub(crate) fn can(self, http2: bool, threads: u32) -> bool {
        match self {
            Self::Ours | Self::H2load | Self::Hey | Self::Oha => true,
            Self::Wrk => !http2,
            Self::Ab => !http2 && threads == 1,
        }
    }
}

/// What one closed-loop run said.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) per_second: f64,
    /// CPU time of the generator for each request, in microseconds.
    pub(crate) cpu_us: f64,
    /// The 99th percentile as the tool reports it, in milliseconds, or what comes closest.
    pub(crate) p99_ms: Option<f64>,
}

/// Those that are installed, with the files they need.
pub(crate) struct Tools {
    pub(crate) present: Vec<Tool>,
    directory: tempfile::TempDir,
}

/// What a closed loop should do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loop<'a> {
    pub(crate) path: &'a str,
    pub(crate) http2: bool,
    pub(crate) threads: u32,
    /// Connections of all threads together; with HTTP/2 the streams of all.
    pub(crate) connections: usize,
    pub(crate) seconds: u32,
}

impl Tools {
    /// Looks which tools are there, and writes the body down for them.
    pub(crate) fn find(body: &[u8]) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join("body"), body)?;
        let mut script = std::fs::File::create(directory.path().join("post.lua"))?;
        let body = directory.path().join("body");
        write!(
            script,
            "local file = io.open({:?}, 'rb')\nwrk.method = 'POST'\nwrk.body = file:read('*a')\nfile:close()\n\
             wrk.headers['Content-Type'] = 'application/json'\n",
            body.display().to_string()
        )?;
        let there = |tool: &Tool| {
            *tool == Tool::Ours || {
                let found = Command::new(tool.name()).arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status();
                if found.is_err() {
                    println!("{} is not installed and left out", tool.name());
                }
                found.is_ok()
            }
        };
        Ok(Self { present: Tool::ALL.into_iter().filter(there).collect(), directory })
    }

    fn file(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// Runs the tool as fast as it can.
    pub(crate) fn run(&self, tool: Tool, server: &Server, task: Loop<'_>) -> Result<Run> {
        if tool == Tool::Ours {
            let mode = Mode::Saturate {
                connections: task.connections / task.threads as usize,
                seconds: f64::from(task.seconds),
            };
            let (told, cpu_s) = ours(server, task.path, task.threads, task.http2, mode, 0.0)?;
            if told.errors > 0 {
                bail!("ours met {} errors: {:?}", told.errors, told.examples);
            }
            let requests = told.requests as f64;
            let [_, p99_ms, ..] = told.response_ms;
            return Ok(Run {
                per_second: requests / told.seconds,
                cpu_us: cpu_s * 1e6 / requests,
                p99_ms: Some(p99_ms),
            });
        }
        let (program, arguments) = self.command(tool, server, task);
        let before = children_cpu_s()?;
        let mut command = Command::new(&program);
        // oha takes as many threads as the machine has, unless tokio is told otherwise.
        command.args(&arguments).env("TOKIO_WORKER_THREADS", task.threads.to_string());
        let output = command.output().with_context(|| format!("failed to run {program}"))?;
        let cpu_s = children_cpu_s()? - before;
        let text = String::from_utf8_lossy(&output.stdout);
        let parsed = parse(tool, &text)
            .with_context(|| format!("{program} said: {text}\n{}", String::from_utf8_lossy(&output.stderr)))?;
        if parsed.failed > parsed.requests / 100.0 {
            bail!("{program}: {} of {} requests failed: {text}", parsed.failed, parsed.requests);
        }
        Ok(Run { per_second: parsed.per_second, cpu_us: cpu_s * 1e6 / parsed.requests, p99_ms: parsed.p99_ms })
    }

    fn command(&self, tool: Tool, server: &Server, task: Loop<'_>) -> (String, Vec<String>) {
        let Loop { http2, threads, connections, seconds, .. } = task;
        let url = server.url(task.path);
        let body = self.file("body");
        let line = match tool {
            Tool::Ours => String::new(),
            Tool::Wrk => {
                format!("-t{threads} -c{connections} -d{seconds}s --latency -s {} {url}", self.file("post.lua"))
            }
            Tool::H2load if http2 => {
                let streams = connections / threads as usize;
                format!(
                    "-t{threads} -c{threads} -m{streams} -D{seconds} -d {body} -H content-type:application/json {url}"
                )
            }
            Tool::H2load => {
                format!("--h1 -t{threads} -c{connections} -D{seconds} -d {body} -H content-type:application/json {url}")
            }
            Tool::Hey => {
                // Without a host of its own it sends the port in the server's name, which rustls refuses.
                let h2 = if http2 { "-h2 " } else { "" };
                format!(
                    "{h2}-host localhost -cpus {threads} -c {connections} -z {seconds}s -m POST -D {body} -T application/json {url}"
                )
            }
            Tool::Ab => {
                format!("-q -k -c {connections} -t {seconds} -n 2000000 -p {body} -T application/json {url}")
            }
            Tool::Oha => {
                let h2 = if http2 {
                    format!("--http2 -c {threads} -p {}", connections / threads as usize)
                } else {
                    format!("-c {connections}")
                };
                format!(
                    "--no-tui --output-format json --insecure {h2} -z {seconds}s -m POST -D {body} -T application/json {url}"
                )
            }
        };
        (tool.name().to_owned(), line.split(' ').map(str::to_owned).collect())
    }
}

/// Runs our generator; returns what it said and its CPU time in seconds.
pub(crate) fn ours(
    server: &Server,
    path: &str,
    threads: u32,
    http2: bool,
    mode: Mode,
    begin_ms: f64,
) -> Result<(Told, f64)> {
    let task = Task { url: server.url(path), ca_pem: server.ca_pem.clone(), threads, http2, mode, begin_ms };
    let before = children_cpu_s()?;
    let output = Command::new(std::env::current_exe()?).arg("generate").arg(serde_json::to_string(&task)?).output()?;
    let cpu_s = children_cpu_s()? - before;
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = || format!("our generator said: {said}{}", String::from_utf8_lossy(&output.stderr));
    Ok((serde_json::from_str(&said).with_context(failed)?, cpu_s))
}

struct Parsed {
    per_second: f64,
    requests: f64,
    failed: f64,
    p99_ms: Option<f64>,
}

/// CPU time of ended children, in seconds, exact to 10 ms.
fn children_cpu_s() -> Result<f64> {
    let stat = Process::myself()?.stat()?;
    Ok((stat.cutime + stat.cstime) as f64 / procfs::ticks_per_second() as f64)
}

fn parse(tool: Tool, text: &str) -> Option<Parsed> {
    if tool == Tool::Oha {
        let value: serde_json::Value = serde_json::from_str(text).ok()?;
        let per_second = value["summary"]["requestsPerSec"].as_f64()?;
        let requests = per_second * value["summary"]["total"].as_f64()?;
        let failed = requests * (1.0 - value["summary"]["successRate"].as_f64()?);
        let p99_ms = value["latencyPercentiles"]["p99"].as_f64().map(|s| s * 1e3);
        return Some(Parsed { per_second, requests, failed, p99_ms });
    }
    let behind = |label: &str| {
        let rest = &text[text.find(label)? + label.len()..];
        let number = rest.split_whitespace().next()?;
        number.trim_end_matches(['%', ',', 's']).parse::<f64>().ok()
    };
    Some(match tool {
        Tool::Wrk => {
            let requests = text.lines().find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok())?;
            let p99 =
                text.lines().find_map(|line| line.trim().strip_prefix("99%").map(str::trim).and_then(duration_ms));
            let failed = behind("Non-2xx or 3xx responses:").unwrap_or(0.0);
            Parsed { per_second: behind("Requests/sec:")?, requests, failed, p99_ms: p99 }
        }
        Tool::H2load => {
            let line = text.lines().find(|line| line.starts_with("finished in"))?;
            let per_second = line.split(", ").nth(1)?.split(' ').next()?.parse().ok()?;
            let counts = text.lines().find(|line| line.starts_with("requests:"))?;
            let count = |label: &str| {
                counts.split(", ").find_map(|part| {
                    part.trim_start_matches("requests: ").strip_suffix(label)?.trim().parse::<f64>().ok()
                })
            };
            let failed = count("failed")? + count("errored")?;
            // It has no percentiles: `max` of the line of request times is what comes closest.
            let times = text.lines().find(|line| line.starts_with("time for request:"))?;
            let p99_ms = times.split_whitespace().nth(4).and_then(duration_ms);
            Parsed { per_second, requests: count("succeeded")?, failed, p99_ms }
        }
        Tool::Hey => {
            let per_second = behind("Requests/sec:")?;
            let requests = per_second * behind("Total:")?;
            let p99 = text
                .lines()
                .find_map(|line| line.trim().strip_prefix("99% in ")?.split(' ').next()?.parse::<f64>().ok());
            let good = text
                .lines()
                .find_map(|line| line.trim().strip_prefix("[200]")?.split_whitespace().next()?.parse::<f64>().ok());
            let requests = good.unwrap_or(requests);
            let failed = if good.is_some() { 0.0 } else { requests };
            Parsed { per_second, requests, failed, p99_ms: p99.map(|s| s * 1e3) }
        }
        Tool::Ab => {
            let p99 = text.lines().find_map(|line| line.trim().strip_prefix("99%")?.trim().parse::<f64>().ok());
            let failed = behind("Non-2xx responses:").unwrap_or(0.0);
            Parsed {
                per_second: behind("Requests per second:")?,
                requests: behind("Complete requests:")?,
                failed,
                p99_ms: p99,
            }
        }
        Tool::Ours | Tool::Oha => return None,
    })
}

/// `1.23ms`, `250us`, `2.01s`.
fn duration_ms(text: &str) -> Option<f64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 = text[..split].parse().ok()?;
    Some(match &text[split..] {
        "us" => number / 1e3,
        "ms" => number,
        "s" => number * 1e3,
        "m" => number * 60e3,
        _ => return None,
    })
}
