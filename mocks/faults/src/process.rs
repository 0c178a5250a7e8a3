//! Catalogue entry of the fault that kills a subject's processes. The run that started the processes injects the fault.

use super::later::begins_later;
use super::settings::{Family, Row, keys};

keys! {
    pub struct KillKeys {
        process "process": String = ("all of the subject", "one of `processes`"),
    }
}

pub(super) const KILL: Row = Row::new(Family::Process, "process-kill", "The processes of the subject are killed.")
    .takes::<KillKeys>()
    .instant()
    .once()
    .refuses(begins_later)
    .sees("its processes get SIGKILL and end at once; `restart: always` starts them again")
    .hit("a process that was killed");
