//! The attacks of a scenario: their names, times and limits. Pure: no I/O.

use units::Span;

use super::Error;

/// Default number of connections of one attack, which together open 16,000 streams.
pub const DEFAULT_CONNECTIONS: u32 = 64;
/// Maximum number of connections of one attack; webhooks commonly allow no more from one address.
pub const CONNECTIONS_MAX: u32 = 512;
/// Maximum number of attacks of one run.
pub const ATTACKS_MAX: usize = 8;
/// The attacks that a scenario can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "AttackName")]
pub enum Name {
    /// The client opens streams with heads of 7 KiB that are never followed by a body. Before these streams, each
    /// connection sends one whole request.
    OpenStreams,
    /// The client sends reviews with 160 containers, whose large answers it does not read: its window is 0.
    UnreadAnswers,
}

/// One attack of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attack {
    pub name: Name,
    /// The beginning of the attack, counted from the start of the load.
    pub at: Span,
    /// How long the attack lasts.
    #[serde(rename = "for")]
    pub lasts: Span,
    /// The number of HTTP/2 connections, 1 to 512, all from one address. For a webhook on loopback that address is
    /// 127.0.0.2.
    #[serde(default = "default_connections")]
    pub connections: u32,
}

impl Name {
    /// The name of the attack in scenarios.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenStreams => "open-streams",
            Self::UnreadAnswers => "unread-answers",
        }
    }
}

impl Attack {
    /// The attack as text.
    pub fn describe(&self) -> String {
        let what = match self.name {
            Name::OpenStreams => "open streams and bring no body",
            Name::UnreadAnswers => "ask for large answers and read none",
        };
        format!("for {} {} HTTP/2 connections {what}", self.lasts, self.connections)
    }
}

/// Refuses attacks whose settings cannot work.
pub(super) fn check(attacks: &[Attack]) -> Result<(), Error> {
    let refuse = |problem: String| Err(Error::Config { key: "attacks", problem });
    if attacks.len() > ATTACKS_MAX {
        return refuse(format!("has {} entries: write at most {ATTACKS_MAX}", attacks.len()));
    }
    for (at, attack) in attacks.iter().enumerate() {
        let name = attack.name.as_str();
        if !(1..=CONNECTIONS_MAX).contains(&attack.connections) {
            let text = format!("`{name}`: connections is {}: write 1 to {CONNECTIONS_MAX}", attack.connections);
            return refuse(text);
        }
        if attack.lasts.0.is_zero() {
            return refuse(format!("`{name}` lasts for no time: write for example `for: 5s`"));
        }
        if attacks[..at].iter().any(|other| other.name == attack.name) {
            return refuse(format!("names `{name}` twice: keep one entry"));
        }
    }
    Ok(())
}

fn default_connections() -> u32 {
    DEFAULT_CONNECTIONS
}
