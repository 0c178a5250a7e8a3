//! The causes: their words, and what to do next. One row each, in one place.
//!
//! Owns texts only. The remedies are those that maintainers of clients chose for documented bugs of the same shape.

use std::fmt;

/// The rows: name, what stands in reports, what to do next.
macro_rules! causes {
    ($($(#[doc = $doc:literal])* $name:ident: $label:literal, $remedy:literal;)*) => {
        /// Why an anomaly came about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cause {
            $($(#[doc = $doc])* $name,)*
        }

        impl Cause {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// What stands in reports, such as `lost in the client`.
            pub fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }

            /// What to do next.
            pub fn remedy(self) -> &'static str {
                match self {
                    $(Self::$name => $remedy,)*
                }
            }
        }
    };
}

causes! {
    /// The control plane refused what it wrote for the object.
    WriteRefused: "whose writes were refused",
        "Read the message: it says which field, right or object is at fault. Where the subject is right and the control plane is not, that is a \
         mistake of the mock: say so. Where the subject gave up after one refusal, let it try again after a pause that grows.";
    /// It never became the leader.
    NeverLed: "of a subject that never led",
        "Give the Lease a namespace that exists and a role that may write it, or switch leader election off for the run. If another process holds \
         it, end that one first.";
    /// It was at work on others before it until the end.
    Queued: "still in the subject's queue",
        "Nothing is lost yet. Lower `churn.rate`, or write `rate: auto`; make the drain longer; or let the subject ask more, which in client-go is \
         `--kube-api-qps` and `--kube-api-burst`.";
    /// It made a workload that nothing makes ready.
    AwaitsWorkload: "behind a workload that is not ready",
        "Let something play the part of kubelet and of the workload's controller, so that its status says ready; or use a control plane that \
         has both.";
    /// It asked for nothing.
    Silent: "of a subject that asked for nothing",
        "See whether the subject talks to this control plane at all: which kubeconfig it read, which address it dials, and its last words in \
         `subject.log`.";
    /// It was sent and never reported, and what came after it was.
    LostInClient: "lost in the client",
        "Follow one version from the line that was read to the handler: later versions of the same kind were reported, so the client read on. \
         The stream lines stand with its history. Remember a version only once it is handled.";
    /// It was sent and reported much later.
    SlowInClient: "held up in the client",
        "Measure how long events wait before their handler. A subject that limits its own requests takes as long as its limit says. Give each \
         kind its own stream and its own back-off, put a bound on the queue, and let no handler wait for another object's.";
    /// It was sent on something that broke, or under a fault that changes bytes.
    OnTheWay: "lost or delayed on the way",
        "Resume from the last version that was handled, not from the last one that may have been sent. Put a limit on how long a watch \
         may be silent: TCP keep-alive and HTTP/2 pings do not notice a proxy that holds the stream.";
    /// A list had it, or did not have it any more, and it was not reported.
    LostFromList: "lost from a list",
        "Compare every list with the store: report what is new or changed in it, and as deleted what is in the store and not in it. Read \
         all pages, and take over the list's resourceVersion only after that.";
    /// The next watch began behind it.
    SkippedByClient: "skipped by the client",
        "Resume a watch from the resourceVersion of the last event or bookmark of that same watch, or from a list that was compared with \
         the store. Do not take the revision from anywhere else, and never watch without one after the first list.";
    /// A watch ended and nothing was asked for any more.
    NeverAskedAgain: "never asked again",
        "Take every end of a watch (clean, broken, refused) as the order to ask again, after a pause that grows to a ceiling. Never stop \
         trying; or exit, so that somebody starts the process again.";
    /// Nothing was ever asked for.
    NeverAsked: "never asked for",
        "Check that the client follows this resource and namespace, and that it does not wait for something else first: another kind, an \
         object in an empty list, a free connection.";
    /// It asked, and was refused.
    RefusedInVain: "asked in vain",
        "Read why it was refused. After 410 (as status or as ERROR event) list again and watch from that list; after 504 with a too large \
         resourceVersion list without one; after 401 read the token again; after 429 and 5xx try again later. The same request again \
         does not help.";
    /// No watch was open when it was written, and it came late.
    NoWatchOpen: "no watch was open",
        "Come back sooner: connect again at once after a clean end, cap the back-off at a few seconds, start it anew after a success, and \
         give each kind a back-off of its own.";
    /// The control plane was to send it and did not.
    NotSent: "not sent by the control plane",
        "No client can see what is not sent. It can bound the harm: ask for bookmarks, give up a watch that is silent for too long, and \
         list now and then, comparing the list with the store.";
    /// A fault kept it back.
    Withheld: "withheld by a fault",
        "No client can see what is not sent. It can bound the harm: give up a watch that is silent for too long, and list now and then, \
         comparing the list with the store.";
    /// It was reported twice and sent once.
    ToldTwice: "told twice by the client",
        "See that an old watch is closed before a new one is read, that a handler is registered once, and that a retry after an error \
         does not count as news. Handlers should take the same version twice all the same.";
    /// It was reported twice because it was sent twice.
    SentAgain: "told again because it was sent again",
        "This is legal, and handlers must bear it. To have less of it resume from the newest event or bookmark instead of an older \
         revision, and ask for initial events only at the start.";
    /// It was read from several watches of the same.
    Multiplied: "read from watches that multiplied",
        "Each end of a watch opens more than one, and their number doubles. Take `end`, `close` and `error` of one stream for one end: let one \
         place alone open the next watch, and only if none is open. Take the listeners of the old stream away, and close it, before that.";
    /// It was reported in another order than it was sent.
    Overtaken: "overtaken in the client",
        "Keep one queue for each object and wait for its handler before the next: handlers that run side by side finish in any order.";
    /// An older state was given to the client and it believed it.
    OlderStateBelieved: "an older state was believed",
        "Ask for lists that are not older than what was seen (resourceVersion with resourceVersionMatch=NotOlderThan, or without \
         resourceVersion), and do not let a list that runs beside a watch overwrite newer events of it.";
    /// It was reported and never written.
    MadeUp: "made up by the client",
        "Look at what came just before. An ERROR event carries a Status and no object; an object that a list lacks is gone only if the \
         list is newer than the object.";
    /// Another object of the same name.
    TakenForUpdate: "a new object taken for an update",
        "Keep objects by uid. Where a name comes back with another uid, handle the deletion of the old object first.";
    /// Nobody could have seen it.
    LegallyUnseen: "could not be seen",
        "The API does not promise it: what comes and goes while no watch is open is not in the next list. Use a finalizer where each \
         deletion has to be seen.";
    /// The control plane does not tell what it sent.
    NotTold: "not reported; what was sent is not known",
        "A real control plane does not tell what it sent to whom. Play the same load against `controlPlane: {kind: mock}`, which does.";
    /// The facts do not tell.
    Unknown: "of a cause that is not known",
        "The sentence says what was ruled out. Run it again with `--keep-events`, which keeps every commit and observation, and look for the \
         object there.";
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}
