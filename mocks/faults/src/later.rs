//! Faults of Pods and of programs, which are there only once a run has begun, and take the time that they take.
//!
//! Owns what all of them refuse.

use super::{Error, Fault, Lasting};

/// It begins when there is something that it is done to.
pub(super) fn begins_later(fault: &Fault) -> Result<(), Error> {
    if fault.is_armed_before() {
        return Err(Error::Needs { fault: fault.name.as_str(), instead: "say when it begins: `at: 5s`" });
    }
    if fault.name.row().is_instant && fault.lasts.is_some() {
        let instead = "it takes as long as it takes: leave out `for`, and say `count` for several";
        return Err(Error::Needs { fault: fault.name.as_str(), instead });
    }
    Ok(())
}

/// Nobody would bring back what is to be judged.
pub(super) fn lasts(fault: &Fault) -> Result<(), Error> {
    begins_later(fault)?;
    if fault.lasting() == Lasting::ToTheEnd {
        return Err(Error::Needs { fault: fault.name.as_str(), instead: "say how long it lasts: `for: 10s`" });
    }
    Ok(())
}
