//! Room for many connections: the limit of open files of this process.
//!
//! Owns raising the soft limit, which shells set low for the sake of programs that use `select`, and saying so when the
//! hard limit is too low. It must not be called by a library: the limit belongs to the whole process.

use rustix::process::{Resource, getrlimit, setrlimit};

/// The process may not open as many files as it needs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Only an administrator can raise the hard limit.
    #[error("failed to make room for {needed} open files: the hard limit is {hard}; raise it, see `ulimit -Hn`")]
    HardLimit {
        /// How many are needed.
        needed: u64,
        /// How many are allowed at the most.
        hard: u64,
    },
    /// The system refused for another reason.
    #[error("failed to raise the limit of open files to {needed}")]
    Refused {
        /// How many are needed.
        needed: u64,
        /// What the system said.
        #[source]
        source: rustix::io::Errno,
    },
}

/// Raises the soft limit of open files until `needed` can be open at a time; a limit that is high enough is left alone.
pub fn raise(needed: u64) -> Result<(), Error> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= needed) {
        return Ok(());
    }
    if let Some(hard) = limit.maximum.filter(|hard| *hard < needed) {
        // As many as there can be: whoever goes on gets further.
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

    /// One test, because the limit is that of the whole process.
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
