//! The registry of a scenario: its images, its access control, and its rate limit.
//!
//! Owns the keys of `registry:`. Faults of the registry stand under `faults:`, like all others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Default number of images: with it a cache is useful and still misses.
const DEFAULT_IMAGES: usize = 40;
/// Default burst: about that of a real registry's clients.
const DEFAULT_BURST: u32 = 20;

/// The image registry.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Registry {
    /// The kind of registry.
    pub kind: RegistryKind,
    /// Number of images that it is seeded with. Some of the references used under load do not exist on purpose.
    #[serde(default = "default_images")]
    pub images: usize,
    /// For `subject: {service: {}}`: images are signed by keys of the run and by signers that its authority certifies,
    /// in both forms of cosign; some of them wrongly and some not at all. The service is configured to verify them:
    /// `validators` and `policy.rules` of its settings are replaced by those of the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signed: bool,
    /// Every image is locked to the digest that its tag has before the run, in a lock file: with `handed` the service
    /// gets the file (`resolve.lock`), with `withheld` it does not. While load runs, every tag moves once to another
    /// image. Judged by `budgets.admission.unlocked`. Default: there is no lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockUse>,
    /// The required authentication for pulls. The subject gets a matching name and password: the built-in service in
    /// its configuration, any subject as `config.json` in the folder `$DOCKER_CONFIG`.
    #[serde(default)]
    pub auth: Auth,
    /// Limit of requests; further ones are answered with 429. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
}

impl Default for Registry {
    fn default() -> Self {
        let (kind, auth) = (RegistryKind::Mock, Auth::None);
        Self { kind, images: DEFAULT_IMAGES, signed: false, lock: None, auth, rate_limit: None }
    }
}

/// The use of the lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LockUse {
    /// The service gets it and follows it.
    Handed,
    /// The service does not get it; answers are compared with it all the same.
    Withheld,
}

/// The kinds of registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RegistryKind {
    /// The mock registry inside this process.
    Mock,
}

/// Who may pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum Auth {
    /// Every client may pull.
    #[default]
    None,
    /// Clients send a name and a password with every request.
    Basic,
    /// Clients send a token with every request; the registry issues the token for a name and a password.
    Token,
}

/// Limit of requests at a registry.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RateLimit {
    /// The long-term rate.
    pub rate: units::Rate,
    /// The most requests at once.
    #[serde(default = "default_burst")]
    pub burst: u32,
}

impl Auth {
    /// The mock's authentication for one user, who may pull everything, and push if `push` is set.
    pub fn of(self, name: &str, password: &str, push: bool) -> mock_registry::Auth {
        let user = mock_registry::User {
            name: name.to_owned(),
            password: password.to_owned(),
            repositories: vec!["*".to_owned()],
            push,
        };
        match self {
            Self::None => mock_registry::Auth::Anonymous,
            Self::Basic => mock_registry::Auth::Basic { users: vec![user] },
            // The shortest lifetime that the specification of tokens allows, so that tokens expire within a run of
            // minutes.
            Self::Token => mock_registry::Auth::Token {
                users: vec![user],
                anonymous_pull: false,
                lifetime: std::time::Duration::from_mins(1),
            },
        }
    }
}

impl RateLimit {
    /// The limit in the form of the mock.
    pub fn limit(self) -> mock_registry::RateLimit {
        mock_registry::RateLimit { per_second: self.rate.as_per_second(), burst: self.burst }
    }
}

fn default_images() -> usize {
    DEFAULT_IMAGES
}

fn default_burst() -> u32 {
    DEFAULT_BURST
}
