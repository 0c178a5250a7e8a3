//! Checks of the settings of faults of Pods and programs.
//!
//! The faults share these checks because Pods and programs exist only during a run and take time to stop and start.

use super::{Error, Fault, Lasting};

/// Refuses a fault that begins before the run, when the fault's target does not exist.
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

/// Refuses a fault that lasts until the load ends: the subject would not come back and could not be judged.
pub(super) fn lasts(fault: &Fault) -> Result<(), Error> {
    begins_later(fault)?;
    if fault.lasting() == Lasting::ToTheEnd {
        return Err(Error::Needs { fault: fault.name.as_str(), instead: "say how long it lasts: `for: 10s`" });
    }
    Ok(())
}
