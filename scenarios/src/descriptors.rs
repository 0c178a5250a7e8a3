//! The limit of open files of this process, which bounds its number of connections.
//!
//! Raises the soft limit, which shells set low for programs that use `select`, and reports a hard limit that is too
//! low. Only a binary may call this module, because the limit belongs to the whole process.

use rustix::process::{Resource, getrlimit, setrlimit};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The hard limit is too low. Only an administrator can raise a hard limit.
    #[error("failed to make room for {needed} open files: the hard limit is {hard}; raise it, see `ulimit -Hn`")]
    HardLimit { needed: u64, hard: u64 },
    /// The system refused to raise the limit, although the hard limit is high enough.
    #[error("failed to raise the limit of open files to {needed}")]
    Refused {
        needed: u64,
        #[source]
        source: rustix::io::Errno,
    },
}

/// Raises the soft limit of open files to `needed`. A higher limit stays unchanged.
pub fn raise(needed: u64) -> Result<(), Error> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= needed) {
        return Ok(());
    }
    if let Some(hard) = limit.maximum.filter(|hard| *hard < needed) {
        // The limit is raised as far as possible, because a caller may go on in spite of the error.
        limit.current = Some(hard);
        let _ = setrlimit(Resource::Nofile, limit);
        return Err(Error::HardLimit { needed, hard });
    }
    limit.current = Some(needed);
    setrlimit(Resource::Nofile, limit).map_err(|source| Error::Refused { needed, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sufficient limit stays unchanged, and the error names a hard limit that is too low.
    #[test]
    fn what_is_enough_is_left_alone_and_a_low_hard_limit_is_named() {
        let before = getrlimit(Resource::Nofile);
        raise(1).unwrap();
        assert_eq!(getrlimit(Resource::Nofile), before);
        let Some(hard) = before.maximum else {
            println!("skipped: needs a hard limit of open files");
            return;
        };
        let error = raise(hard + 1).unwrap_err();
        assert!(matches!(error, Error::HardLimit { hard: named, .. } if named == hard), "{error}");
        assert_eq!(getrlimit(Resource::Nofile).current, Some(hard));
    }
}
