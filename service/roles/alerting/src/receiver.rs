//! A receiver: its queue, the task that sends alerts in order, and the message text.

use std::collections::BTreeMap;
use std::sync::Arc;

use service_core::alert::Alert;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::collapse::Collapse;
use crate::config;
use crate::dead::DeadLetters;
use crate::metrics::Metrics;
use crate::queue::{Bounds, Queue, Waiting};
use crate::send::Sender;
use crate::template::{Template, shipped};

/// Largest template, in bytes; each message is a copy of its template.
const TEMPLATE_BYTES_MAX: u64 = 256 << 10;
/// Maximum number of bytes of image names in a message, because chats accept only some thousand characters.
const IMAGES_BYTES_MAX: usize = 4000;

pub struct Receiver {
    work: Arc<Work>,
    queue: Queue,
}

/// State that the sending task shares with callers that wait for an alert to be sent.
struct Work {
    settings: config::Receiver,
    cluster: String,
    pod: String,
    template: Template,
    sender: Sender,
    metrics: Arc<Metrics>,
    dead: Arc<DeadLetters>,
}

impl Receiver {
    /// Reads the receiver's files and starts its queue. Alerts in the queue use at most `bytes`.
    pub fn begin(
        settings: &config::Receiver,
        cluster: &str,
        bytes: usize,
        (metrics, dead): (Arc<Metrics>, Arc<DeadLetters>),
    ) -> Result<Arc<Self>, String> {
        let (markup, text) = match &settings.template {
            config::Template::Shipped(name) => {
                let found = shipped().find(|(known, ..)| known == name);
                found.map(|(_, markup, text)| (markup, text.to_owned())).unwrap_or_default()
            }
            config::Template::File(path, markup) => {
                let at = |what: String| format!("templateFile: {}: {what}", path.display());
                let size = std::fs::metadata(path).map_err(|error| at(error.to_string()))?.len();
                if size > TEMPLATE_BYTES_MAX {
                    return Err(at(format!("it is larger than {TEMPLATE_BYTES_MAX} bytes")));
                }
                (*markup, std::fs::read_to_string(path).map_err(|error| at(error.to_string()))?)
            }
        };
        let template = Template::parse(&text, markup).map_err(|error| format!("template: {error}"))?;
        let pod = std::env::var("POD_NAME").or_else(|_| std::env::var("HOSTNAME")).unwrap_or_default();
        let sender = Sender::new(settings)?;
        let (settings, cluster) = (settings.clone(), cluster.to_owned());
        let work = Arc::new(Work { settings, cluster, pod, template, sender, metrics, dead });
        let (settings, both) = (&work.settings, (&work.metrics, &work.dead));
        // Collapsed bursts are remembered next to the queue: half of the memory for each.
        let remembered = if settings.collapse.is_some() { bytes / 2 } else { 0 };
        let bounds = Bounds { places: settings.queue, bytes: bytes - remembered };
        let run = |waiting| Arc::clone(&work).tell_all(waiting, remembered);
        let queue = Queue::begin(&settings.name, bounds, both, run);
        Ok(Arc::new(Self { work, queue }))
    }

    /// Whether reviews wait for this receiver's alerts.
    pub fn is_blocking(&self) -> bool {
        self.work.settings.blocking
    }

    /// Queues an alert for the receiver, without waiting.
    pub fn enqueue(&self, alert: Arc<Alert>) {
        let work = Arc::clone(&self.work);
        self.queue.put(alert, |alert, why| async move { work.bury(&alert, why).await });
    }

    pub async fn tell(&self, alert: &Arc<Alert>, deadline: Instant) -> Result<(), String> {
        let told = timeout_at(deadline, self.work.tell(alert, 0, Some(deadline))).await;
        let told = told.unwrap_or_else(|_| Err("no answer before the deadline of the review".into()));
        told.map_err(|why| format!("the alert could not be sent to {}: {why}", self.work.settings.name))
    }

    /// Sends waiting alerts until `deadline`.
    pub async fn stop(&self, deadline: Instant) {
        self.queue.stop(deadline).await;
    }
}

impl Work {
    /// The task that sends the alerts of the queue in order, one at a time.
    async fn tell_all(self: Arc<Self>, mut waiting: mpsc::Receiver<Waiting>, remembered: usize) {
        let mut collapse = self.settings.collapse.map(|window| Collapse::new(window, remembered));
        loop {
            let due = collapse.as_ref().and_then(Collapse::due);
            let ends = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                next = waiting.recv() => {
                    let Some(next) = next else { break };
                    self.metrics.waiting.dec();
                    if collapse.as_mut().is_none_or(|collapse| collapse.take(&next.alert, Instant::now())) {
                        self.tell_or_bury(&next.alert, 0).await;
                    } else {
                        self.metrics.count(&self.settings.name, "collapsed");
                    }
                }
                () = ends => {
                    let ended = collapse.as_mut().map(|collapse| collapse.ended(Instant::now())).unwrap_or_default();
                    for (alert, more) in ended {
                        self.tell_or_bury(&alert, more).await;
                    }
                }
            }
        }
        // Bursts that have not ended are sent with their present count.
        if let Some(mut collapse) = collapse {
            let end = Instant::now() + self.settings.collapse.unwrap_or_default();
            for (alert, more) in collapse.ended(end) {
                self.tell_or_bury(&alert, more).await;
            }
        }
    }

    async fn tell_or_bury(&self, alert: &Alert, more: u64) {
        if let Err(why) = self.tell(alert, more, None).await {
            tracing::warn!(
                name: crate::events::ALERT_FAILED,
                receiver = self.settings.name, error = %why, "an alert could not be sent"
            );
            self.bury(alert, &why).await;
        }
    }

    async fn tell(&self, alert: &Alert, more: u64, deadline: Option<Instant>) -> Result<(), String> {
        let body = self.body(alert, more)?;
        let Some(body) = body else { return Ok(()) };
        let told = self.sender.send(&body, deadline).await;
        self.metrics.count(&self.settings.name, if told.is_ok() { "sent" } else { "failed" });
        told
    }

    async fn bury(&self, alert: &Alert, why: &str) {
        if let Ok(Some(body)) = self.body(alert, 0) {
            self.dead.keep(&self.settings.name, why, &body).await;
        }
    }

    /// The message about `alert` and the number `more` of equal alerts after it.
    fn body(&self, alert: &Alert, more: u64) -> Result<Option<String>, String> {
        let mut message = alert.message.clone();
        if more > 0 {
            let window = self.settings.collapse.unwrap_or_default().as_secs();
            message = format!("{message} ({more} more within {window} s)");
        }
        let values: BTreeMap<&str, String> = [
            ("alert_message", message),
            ("priority", self.settings.priority.to_string()),
            ("cluster", self.cluster.clone()),
            ("namespace", alert.namespace.clone()),
            ("kind", alert.kind.clone()),
            ("name", alert.name.clone()),
            ("images", alert.images_text(IMAGES_BYTES_MAX)),
            ("request_id", alert.request_id.clone()),
            ("timestamp", jiff::Timestamp::now().to_string()),
            ("pod_id", self.pod.clone()),
            ("connaisseur_pod_id", self.pod.clone()),
        ]
        .into();
        self.template.fill(&values, &self.settings.payload).map_err(|error| error.to_string())
    }
}
