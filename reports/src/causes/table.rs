//! The table of causes: the label of each cause in reports, and the next step for the user.
//!
//! Owns the labels of causes and the remedies. The remedies are those that maintainers of clients chose for documented
//! bugs of the same kind.

use std::fmt;

/// Builds the enum of causes from entries of name, label in reports, and remedy.
macro_rules! causes {
    ($($(#[doc = $doc:literal])* $name:ident: $label:literal, $remedy:literal;)*) => {
        /// The cause of an anomaly.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause {
            $($(#[doc = $doc])* $name,)*
        }

        impl Cause {
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The cause's text in reports, such as `lost in the client`.
            pub fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }

            /// The next step for the user.
            pub fn remedy(self) -> &'static str {
                match self {
                    $(Self::$name => $remedy,)*
                }
            }
        }
    };
}

causes! {
    /// The control plane refused the subject's writes for the object.
    WriteRefused: "after a refused write",
        "Read the message: it names the field, right or object. If the control plane is wrong, report a bug of the mock. If the subject gave \
         up after one refusal, retry with a growing pause.";
    /// The subject never became the leader, so it did not work.
    NeverLed: "because the subject never became the leader",
        "Give the Lease an existing namespace and a role that may write it, or switch leader election off for the run. If another process \
         holds the Lease, stop that process first.";
    /// The subject worked on earlier objects until the end.
    Queued: "still in the subject's queue",
        "Nothing is lost yet. Lower `churn.rate` or write `rate: auto`, make the drain longer, or let the subject send more requests; in \
         client-go with `--kube-api-qps` and `--kube-api-burst`.";
    /// The subject made a workload that no controller makes ready.
    AwaitsWorkload: "waiting for a workload that is not ready",
        "Make the workload's status ready with `controlPlane: {workloads: {readyAfter: 200ms}}`, or use a control plane with kubelets and \
         controllers.";
    Silent: "because the subject sent no request",
        "Check that the subject talks to this control plane: which kubeconfig it read, which address it dials, and its last lines in \
         `subject.log`.";
    /// The version was sent and never reported, although the subject reported later versions.
    LostInClient: "lost in the client",
        "Follow one version from the line that was read to the handler: later versions of the same kind were reported, so the client read on. \
         The stream lines stand with its history. Remember a version only once it is handled.";
    /// The version was sent, but reported much later.
    SlowInClient: "delayed in the client",
        "Measure how long events wait before their handler; a request limit of the subject delays them too. Give each kind its own stream \
         and its own back-off, bound the queue, and let no handler wait for another object's.";
    /// The version was sent on a stream that broke, or during a fault that changes bytes.
    OnTheWay: "lost or delayed on the way",
        "Resume from the last version that was handled, not from the last one that may have been sent. Limit how long a watch may be silent: \
         TCP keep-alive and HTTP/2 pings do not notice a proxy that holds the stream.";
    /// A list contained the new state (the object, or its absence), but the subject did not report it.
    LostFromList: "lost from a list",
        "Compare every list with the store: report new and changed objects, and report objects that are only in the store as deleted. Read \
         all pages before you take the list's resourceVersion.";
    /// The subject's next watch began at a revision after the version.
    SkippedByClient: "skipped by the client",
        "Resume a watch from the resourceVersion of its own last event or bookmark, or from a list that was compared with the store. Never \
         use another revision, and never watch without one after the first list.";
    /// A watch ended and the subject did not list or watch again.
    NeverAskedAgain: "because the client stopped asking",
        "After every end of a watch (clean, broken, refused) ask again, with a pause that grows to a ceiling. Never stop trying, or exit so \
         that the process is restarted.";
    /// The subject never asked for the resource.
    NeverAsked: "never requested by the client",
        "Check that the client follows this resource and namespace, and that it does not wait for something else first: another kind, an \
         object in an empty list, a free connection.";
    /// The subject sent requests, and they were refused.
    RefusedInVain: "because requests were refused",
        "Read why it was refused. After 410 (status or ERROR event) list again and watch from that list. After 504 with a too large \
         resourceVersion list without one. After 401 read the token again. After 429 and 5xx try again later.";
    /// No watch was open when the version was written, and it reached the subject late.
    NoWatchOpen: "while no watch was open",
        "Reconnect at once after a clean end. Cap the back-off at a few seconds, reset it after a success, and give each kind its own.";
    /// The control plane should have sent the version and did not.
    NotSent: "not sent by the control plane",
        "No client can see what is not sent. Limit the harm: ask for bookmarks, give up a watch that is silent for too long, and list now and \
         then, comparing the list with the store.";
    Withheld: "withheld by a fault",
        "No client can see what is not sent. Limit the harm: give up a watch that is silent for too long, and list now and then, comparing \
         the list with the store.";
    /// The version was sent once and reported twice.
    ToldTwice: "reported twice by the client",
        "Close an old watch before you read a new one, register each handler once, and do not report a retry after an error as new. Handlers \
         should still accept the same version twice.";
    /// The version was reported twice because it was sent twice.
    SentAgain: "reported again because it was sent again",
        "The API allows this, and handlers must accept it. To reduce it, resume from the newest event or bookmark instead of an older \
         revision, and ask for initial events only at the start.";
    /// The version was read from several watches of one resource.
    Multiplied: "from duplicate watches",
        "Each end of a watch opens more than one new watch. Treat `end`, `close` and `error` of one stream as one end: open the next watch in \
         one place, and only if none is open. First remove the listeners of the old stream and close it.";
    /// The versions were reported in another order than they had been sent.
    Overtaken: "reordered in the client",
        "Keep one queue per object and wait for its handler before the next: parallel handlers finish in any order.";
    /// The client got an older state and accepted it.
    OlderStateBelieved: "because the client accepted an older state",
        "Ask for lists that are not older than what was seen (resourceVersion with resourceVersionMatch=NotOlderThan, or without \
         resourceVersion). Do not let a list that runs beside a watch overwrite newer events.";
    /// The version was reported although it was never written.
    MadeUp: "invented by the client",
        "Look at the previous response. An ERROR event carries a Status and no object. An object that a list lacks is gone only if the list \
         is newer than the object.";
    /// The client took a new object of the same name for an update.
    TakenForUpdate: "because a new object was treated as an update",
        "Keep objects by uid. If a name comes back with another uid, handle the deletion of the old object first.";
    /// No client could have seen the version.
    LegallyUnseen: "that no client could see",
        "The API does not promise it: an object that comes and goes while no watch is open is not in the next list. Use a finalizer if each \
         deletion has to be seen.";
    /// The control plane does not record the events that it sent.
    NotTold: "not reported, with no record of what was sent",
        "Only the mock control plane records what it sent to which client, and only for the first anomalies of a run. Run the same load with `controlPlane: {kind: mock}` and a lower rate.";
    /// The recorded facts show no cause.
    Unknown: "of unknown cause",
        "The sentence names what was ruled out. Run it again with `--keep-events`, which keeps every commit and observation, and look for the \
         object there.";
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}
