//! The coordinator: starts or finds workers, gives each its share, lets all begin at one moment, adds up what they measure.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use loadgen::admission::Plan;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::clock::{Offset, UNCERTAINTY_MAX};
use super::lines::{Reading, write};
use super::merge::{Merge, Sum};
use super::protocol::{Assignment, Order, PROTOCOL, Word, cut};
use crate::load::Job;
use crate::load::measure::{self, Ended, Measured, Run, Watch};

/// A new process says hello at once; a busy machine may take long to start it.
const HELLO_LIMIT: Duration = Duration::from_secs(30);
/// Making the payloads takes a second or two.
const READY_LIMIT: Duration = Duration::from_mins(1);
/// A pong that takes longer is no measure of a clock.
const PONG_LIMIT: Duration = Duration::from_secs(10);
/// From the order to start until the first request: every worker must have heard it by then.
const LEAD: Duration = Duration::from_millis(1500);
/// A worker speaks every second. One that is silent for so long hangs, or its machine does.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);
/// Words that wait to be added. Each worker says one a second.
const WORDS_MAX: usize = 64;

type Input = Reading<Box<dyn AsyncRead + Unpin + Send>>;
type Output = Box<dyn AsyncWrite + Unpin + Send>;

/// Workers that have said hello.
pub(crate) struct Workers(Vec<Worker>);

struct Worker {
    name: String,
    input: Input,
    output: Output,
    /// A process of ours; it is killed when this is dropped.
    child: Option<Child>,
}

impl Workers {
    /// Starts so many processes of this program on this machine.
    pub(crate) async fn fork(count: u32) -> Result<Self> {
        let program = std::env::current_exe().context("failed to find this program")?;
        let mut workers = Vec::new();
        for number in 0..count {
            let mut command = Command::new(&program);
            // A group of its own: Ctrl-C on a terminal is ours to pass on.
            command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).kill_on_drop(true);
            let mut child = command.spawn().with_context(|| format!("failed to start worker {number}"))?;
            let (Some(output), Some(input)) = (child.stdin.take(), child.stdout.take()) else {
                bail!("worker {number} has no pipes");
            };
            let name = format!("worker {number} (process {})", child.id().unwrap_or_default());
            let input = Reading::new(Box::new(input) as Box<dyn AsyncRead + Unpin + Send>);
            workers.push(Worker { name, input, output: Box::new(output), child: Some(child) });
        }
        Self(workers).greeted().await
    }

    /// Connects to workers that listen (`longhaul worker --listen`).
    pub(crate) async fn connect(addresses: &[SocketAddr]) -> Result<Self> {
        let mut workers = Vec::new();
        for (number, address) in addresses.iter().enumerate() {
            let tcp = tokio::time::timeout(HELLO_LIMIT, TcpStream::connect(address));
            let tcp = tcp.await.map_err(anyhow::Error::from).and_then(|connected| Ok(connected?));
            let tcp = tcp.with_context(|| {
                format!("no worker listens at {address}: start `longhaul worker --listen {address}` there first")
            })?;
            // Pings measure the clock.
            tcp.set_nodelay(true)?;
            let (input, output) = tcp.into_split();
            let name = format!("worker {number} ({address})");
            let input = Reading::new(Box::new(input) as Box<dyn AsyncRead + Unpin + Send>);
            workers.push(Worker { name, input, output: Box::new(output), child: None });
        }
        Self(workers).greeted().await
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    async fn greeted(mut self) -> Result<Self> {
        for worker in &mut self.0 {
            match worker.hear(HELLO_LIMIT).await? {
                Word::Hello { protocol, .. } if protocol == PROTOCOL => {}
                Word::Hello { protocol, version } => bail!(
                    "{} speaks {} (longhaul {}), this program {PROTOCOL}: use the same version of longhaul everywhere",
                    worker.name,
                    cut(&protocol),
                    cut(&version)
                ),
                other => return Err(worker.unexpected(&other, "hello")),
            }
        }
        Ok(self)
    }

    /// Gives each its share and waits until all have made their payloads.
    async fn assign(&mut self, job: &Job, plan: &Plan) -> Result<()> {
        let workers = u32::try_from(self.0.len())?;
        for (worker, number) in self.0.iter_mut().zip(0..) {
            anyhow::ensure!(
                worker.child.is_some() || job.to.client_certificate.is_none(),
                "--cert and --key are not sent over a network: use --workers, or put a proxy with the certificate in between"
            );
            let assignment = Assignment { protocol: PROTOCOL.to_owned(), job: job.clone(), worker: number, workers };
            worker.say(&Order::Assign(Box::new(assignment))).await?;
        }
        let whole = plan.fingerprint();
        for (worker, number) in self.0.iter_mut().zip(0..) {
            let share = plan.clone().share(number, workers).planned();
            match worker.hear(READY_LIMIT).await? {
                Word::Ready { planned, fingerprint } if planned == share && fingerprint == whole => {}
                Word::Ready { planned, fingerprint } => bail!(
                    "{} has another plan: {planned} requests of {}, not {share} of {whole}: use the same version of longhaul \
                     and the same files everywhere",
                    worker.name,
                    cut(&fingerprint)
                ),
                other => return Err(worker.unexpected(&other, "ready")),
            }
        }
        Ok(())
    }

    /// Compares clocks and orders all to begin at one moment.
    async fn start(&mut self, epoch: Instant) -> Result<Instant> {
        let mut offsets = Vec::new();
        for worker in &mut self.0 {
            offsets.push(worker.compare(epoch).await?);
        }
        let begin = Instant::now() + LEAD;
        let ours = nanos(begin - epoch);
        for (worker, offset) in self.0.iter_mut().zip(offsets) {
            let at_clock_ns =
                offset.theirs(ours).with_context(|| format!("the clock of {} is no clock", worker.name))?;
            worker.say(&Order::Start { at_clock_ns }).await?;
        }
        Ok(begin)
    }
}

impl Worker {
    async fn say(&mut self, order: &Order) -> Result<()> {
        if let Err(why) = write(&mut self.output, order).await {
            // What it said last, or how it ended, explains more than that the pipe is closed.
            return match self.hear(HELLO_LIMIT).await {
                Ok(word) => Err(self.unexpected(&word, "nothing")),
                Err(error) => Err(error.context(format!("{} {why}", self.name))),
            };
        }
        Ok(())
    }

    async fn hear(&mut self, limit: Duration) -> Result<Word> {
        let next = tokio::time::timeout(limit, self.input.next::<Word>()).await;
        match next {
            Ok(Ok(Some(Word::Error { message }))) => bail!("{}: {}", self.name, cut(&message)),
            Ok(Ok(Some(word))) => Ok(word),
            Ok(Ok(None)) => bail!("{} ended early{}", self.name, ending(self.child.as_mut()).await),
            Ok(Err(why)) => bail!("{} {why}", self.name),
            Err(_) => bail!("{} said nothing for {} s", self.name, limit.as_secs()),
        }
    }

    fn unexpected(&self, word: &Word, wanted: &str) -> anyhow::Error {
        let text = serde_json::to_string(word).unwrap_or_default();
        let text: String = cut(&text).chars().take(80).collect();
        anyhow::anyhow!("{} said `{text}` where `{wanted}` is next", self.name)
    }

    async fn compare(&mut self, epoch: Instant) -> Result<Offset> {
        let mut offset = Offset::default();
        let mut id = 0;
        while !offset.is_settled() {
            let sent = nanos(epoch.elapsed());
            self.say(&Order::Ping { id }).await?;
            match self.hear(PONG_LIMIT).await? {
                Word::Pong { id: same, clock_ns } if same == id => offset.round(sent, nanos(epoch.elapsed()), clock_ns),
                other => return Err(self.unexpected(&other, "pong")),
            }
            id += 1;
        }
        match offset.uncertainty() {
            Some(uncertainty) if uncertainty <= UNCERTAINTY_MAX => Ok(offset),
            uncertainty => bail!(
                "the clock of {} is known to {} ms only, and {} ms are needed to begin together: the way to it is too slow, or \
                 its machine too busy",
                self.name,
                uncertainty.unwrap_or_default().as_millis(),
                UNCERTAINTY_MAX.as_millis()
            ),
        }
    }
}

/// Sends the plan with these workers. Errors are of the kind that can only come before anything was sent.
pub(crate) async fn measure(job: &Job, plan: &Plan, mut workers: Workers, watch: &mut Watch) -> Result<Measured> {
    let epoch = Instant::now();
    workers.assign(job, plan).await?;
    let begin = workers.start(epoch).await?;
    let count = workers.count();
    let (said, mut words) = mpsc::channel(WORDS_MAX);
    let mut readers = JoinSet::new();
    let mut outputs = Vec::new();
    for (number, worker) in workers.0.into_iter().enumerate() {
        let Worker { name, input, output, child } = worker;
        outputs.push(output);
        readers.spawn(listen(number, name, input, child, said.clone()));
    }
    drop(said);
    let mut run = Run::new(begin, job.length());
    let mut merge = Merge::new(count);
    let mut signal = None;
    let mut give_up = None;
    let ended = loop {
        let until = give_up.unwrap_or_else(|| Instant::now() + SILENCE_LIMIT * 2);
        let word = tokio::select! {
            word = words.recv() => word,
            name = watch.signals.next() => {
                if signal.is_some() {
                    measure::abort();
                }
                signal = Some(name);
                give_up = Some(Instant::now() + measure::DRAIN_INTERRUPTED + SILENCE_LIMIT);
                for output in &mut outputs {
                    // One that is gone is told by its reader.
                    let _ = write(output, &Order::Stop {}).await;
                }
                continue;
            }
            () = tokio::time::sleep_until(until.into()) => break Ended::Broken("the workers do not end".to_owned()),
        };
        let Some(Said { worker, name, word }) = word else {
            break Ended::Broken("the workers are gone".to_owned());
        };
        let added = word.and_then(|word| add(&mut merge, worker, word));
        if let Err(why) = added {
            break Ended::Broken(format!("{name} {why}"));
        }
        while let Some(Sum { start_ms, end_ms, interval }) = merge.pop() {
            run.tell_at(&interval, (start_ms, end_ms), watch)?;
        }
        if merge.is_over() {
            break signal.map_or(Ended::Whole, Ended::Interrupted);
        }
    };
    for Sum { start_ms, end_ms, interval } in merge.rest() {
        run.tell_at(&interval, (start_ms, end_ms), watch)?;
    }
    // The end of their input ends workers that still run; those of ours are killed with their readers.
    drop(outputs);
    readers.shutdown().await;
    let measured = Measured { lasted: begin.elapsed().min(job.length()), total: run.total, ended };
    Ok(checked(measured, plan.planned()))
}

/// Shares must add up to the plan; whatever else they add up to is no measurement of it.
fn checked(mut measured: Measured, planned: u64) -> Measured {
    if measured.ended == Ended::Whole && measured.total.planned != planned {
        let found = measured.total.planned;
        measured.ended = Ended::Broken(format!("the workers planned {found} requests together, not {planned}"));
    }
    measured
}

fn add(merge: &mut Merge, worker: usize, word: Word) -> Result<(), String> {
    match word {
        Word::Interval(row) => {
            let (number, start_ms, end_ms) = (row.number, row.start_ms, row.end_ms);
            let interval = row.interval().map_err(|why| format!("delivered a bad interval {number}: {why}"))?;
            merge.add(worker, number, Sum { start_ms, end_ms, interval })
        }
        Word::End { intervals } => merge.end(worker, intervals),
        Word::Error { message } => Err(format!("gave up: {}", cut(&message))),
        Word::Hello { .. } | Word::Ready { .. } | Word::Pong { .. } => Err("said something out of order".to_owned()),
    }
}

/// What came from a worker.
struct Said {
    worker: usize,
    name: String,
    word: Result<Word, String>,
}

/// Passes on what a worker says, to its end.
async fn listen(worker: usize, name: String, mut input: Input, mut child: Option<Child>, said: mpsc::Sender<Said>) {
    loop {
        let word = match tokio::time::timeout(SILENCE_LIMIT + LEAD, input.next::<Word>()).await {
            Ok(Ok(Some(word))) => Ok(word),
            Ok(Ok(None)) => Err(format!("ended before its work was done{}", ending(child.as_mut()).await)),
            Ok(Err(why)) => Err(why),
            Err(_) => Err(format!("has said nothing for {} s", SILENCE_LIMIT.as_secs())),
        };
        let over = matches!(word, Err(_) | Ok(Word::End { .. } | Word::Error { .. }));
        if said.send(Said { worker, name: name.clone(), word }).await.is_err() || over {
            break;
        }
    }
    if let Some(child) = &mut child {
        // It ends by itself when its input ends; whoever shuts this task down kills it.
        let _ = child.wait().await;
    }
}

/// How a process of ours ended, when it did.
async fn ending(child: Option<&mut Child>) -> String {
    let Some(child) = child else { return ": the connection was closed".to_owned() };
    match tokio::time::timeout(Duration::from_secs(5), child.wait()).await {
        Ok(Ok(status)) => format!(": {status}"),
        Ok(Err(_)) | Err(_) => String::new(),
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
