//! The error that every missing program ends in.

/// The cause of an error, if the machine lacks a program or a setting. Nothing was started then.
///
/// Each error about a missing program has this error as its source, so that one look at the causes of an error finds it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MissingProgram(String);

impl MissingProgram {
    /// `text` names the missing program or setting, and the remedy.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether `error` or one of its causes is a missing program.
    pub fn is_cause_of(error: &(dyn std::error::Error + 'static)) -> bool {
        std::iter::successors(Some(error), |cause| cause.source()).any(<dyn std::error::Error>::is::<Self>)
    }
}

#[cfg(test)]
mod tests {
    use super::MissingProgram;
    use crate::{cluster, containers, guest, local, node};

    /// In each type of error, a missing program is a cause, and the text names the program.
    #[test]
    fn every_type_of_error_has_a_missing_program_as_its_cause() {
        let missing = || MissingProgram::new("failed to find `etcd`");
        let errors: [Box<dyn std::error::Error>; 9] = [
            Box::new(missing()),
            Box::new(local::Error::Missing(missing())),
            Box::new(node::Error::Missing(missing())),
            Box::new(node::Error::Programs(local::Error::Missing(missing()))),
            Box::new(containers::Error::Missing(missing())),
            Box::new(cluster::Error::Local(local::Error::Missing(missing()))),
            Box::new(cluster::Error::Node(node::Error::Missing(missing()))),
            Box::new(cluster::Error::Containers(containers::Error::Missing(missing()))),
            Box::new(guest::Error::Containers(containers::Error::Missing(missing()))),
        ];
        for error in errors {
            assert!(MissingProgram::is_cause_of(&*error), "{error:?}");
        }
    }

    /// Other errors of the same types have no such cause.
    #[test]
    fn other_errors_have_no_missing_program_as_their_cause() {
        let port = || local::Error::Port(std::io::Error::other("in use"));
        let errors: [Box<dyn std::error::Error>; 7] = [
            Box::new(std::fmt::Error),
            Box::new(port()),
            Box::new(node::Error::NoAddresses),
            Box::new(node::Error::Programs(port())),
            Box::new(containers::Error::ControlPlanes(2)),
            Box::new(cluster::Error::Theirs { name: "x".to_owned() }),
            Box::new(guest::Error::NoWay("none".to_owned())),
        ];
        for error in errors {
            assert!(!MissingProgram::is_cause_of(&*error), "{error:?}");
        }
    }
}
