//! The load generators other than Longhaul's: their abilities and command lines.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use procfs::process::Process;

use super::ours::{LoadResult, Mode, Task};
pub(crate) use super::output::Tool;
use super::output::parse;
use super::server::Server;

/// Whether the tool supports this protocol on this number of threads. A tool that uses more threads than configured
/// does not support that number.
pub(crate) fn can(tool: Tool, http2: bool, threads: u32) -> bool {
    match tool {
        Tool::Ours | Tool::H2load | Tool::Hey => true,
        Tool::Wrk => !http2,
        Tool::Ab => !http2 && threads == 1,
        // It has no flag for threads. An HTTP/2 connection stays on one; HTTP/1.1 connections are spread over every
        // core.
        Tool::Oha => http2 || std::thread::available_parallelism().is_ok_and(|cores| cores.get() == threads as usize),
    }
}

/// The result of one tool's run in a closed loop.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) per_second: f64,
    /// CPU time of the generator per request, in microseconds.
    pub(crate) cpu_us: f64,
    /// The 99th percentile as the tool reports it, in milliseconds, or the closest figure.
    pub(crate) p99_ms: Option<f64>,
}

/// The installed tools, and the files that they need.
pub(crate) struct Tools {
    pub(crate) present: Vec<Tool>,
    directory: tempfile::TempDir,
}

/// The settings of a closed loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loop<'a> {
    pub(crate) path: &'a str,
    pub(crate) http2: bool,
    pub(crate) threads: u32,
    /// Number of connections of all threads together; with HTTP/2, number of streams.
    pub(crate) connections: usize,
    pub(crate) seconds: u32,
}

impl Tools {
    /// Finds the installed tools, and writes the request body to a file for them.
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

    /// Runs the tool in a closed loop, as fast as it can.
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
        // This sets oha's threads that collect results; those that send are not affected.
        let threads = ("TOKIO_WORKER_THREADS", task.threads.to_string());
        let output = Command::new(&program)
            .args(&arguments)
            .env(threads.0, threads.1)
            .output()
            .with_context(|| format!("failed to run {program}"))?;
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
                // Without a host setting it sends the port in the server's name, which rustls refuses.
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

/// Runs Longhaul's generator as a separate process. Returns the generator's output and its CPU time in seconds.
pub(crate) fn ours(
    server: &Server,
    path: &str,
    threads: u32,
    http2: bool,
    mode: Mode,
    begin_ms: f64,
) -> Result<(LoadResult, f64)> {
    let task = Task { url: server.url(path), ca_pem: server.ca_pem.clone(), threads, http2, mode, begin_ms };
    let before = children_cpu_s()?;
    let output = Command::new(std::env::current_exe()?).arg("generate").arg(serde_json::to_string(&task)?).output()?;
    let cpu_s = children_cpu_s()? - before;
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = || format!("our generator said: {said}{}", String::from_utf8_lossy(&output.stderr));
    Ok((serde_json::from_str(&said).with_context(failed)?, cpu_s))
}

/// CPU time of all child processes that have ended, in seconds, in steps of 10 ms.
fn children_cpu_s() -> Result<f64> {
    let stat = Process::myself()?.stat()?;
    Ok((stat.cutime + stat.cstime) as f64 / procfs::ticks_per_second() as f64)
}
