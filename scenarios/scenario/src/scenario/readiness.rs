//! `ready` of a subject: the sign that it is ready.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A sign that a subject is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Readiness {
    /// `GET` of this address, over plain HTTP, is answered with a status of 200 to 399, as for a kubelet's probe.
    Url(String),
    /// A line of its output, on stdout or stderr, contains this text.
    Log(String),
    /// The subject has sent any request to the control plane, and its webhook's port is open, if it has one.
    Request(Which),
}

/// The required request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Which {
    /// The first one.
    First,
}

impl Readiness {
    /// A mistake in the sign, if there is one.
    pub(super) fn problem(&self) -> Option<String> {
        match self {
            Self::Url(url) => {
                let why = crate::fetch::page_address(url, "http://127.0.0.1:8081/readyz").err()?;
                Some(format!("`ready`: {why}"))
            }
            Self::Log(text) if text.trim().is_empty() => Some(
                "`ready`: `log` is empty, which every line matches: write a text of the line that reports readiness"
                    .to_owned(),
            ),
            Self::Log(_) | Self::Request(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_one_key() {
        let read = |text: &str| serde_saphyr::from_str::<Readiness>(text);
        assert_eq!(
            read("{url: 'http://127.0.0.1:1/readyz'}").unwrap(),
            Readiness::Url("http://127.0.0.1:1/readyz".into())
        );
        assert_eq!(read("{log: started}").unwrap(), Readiness::Log("started".into()));
        assert_eq!(read("{request: first}").unwrap(), Readiness::Request(Which::First));
        for wrong in ["{request: second}", "{probe: x}", "{log: a, request: first}"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_asked_is_told() {
        let problem = |ready: Readiness| ready.problem().unwrap_or_default();
        assert!(problem(Readiness::Url("https://127.0.0.1/readyz".into())).contains("plain HTTP"));
        assert!(problem(Readiness::Url("readyz".into())).starts_with("`ready`: `readyz` is no address"));
        assert!(problem(Readiness::Log(" ".into())).contains("`log` is empty"));
        assert_eq!(problem(Readiness::Url("http://127.0.0.1:8081/readyz".into())), "");
    }
}
