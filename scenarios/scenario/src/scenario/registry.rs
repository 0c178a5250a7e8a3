//! The registry of a scenario: what it holds, who may pull from it, and how much.
//!
//! Owns the keys of `registry:`. What goes wrong with it stands under `faults:`, as everything that goes wrong.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Enough images that a cache is neither useless nor all-knowing.
const DEFAULT_IMAGES: usize = 40;
/// Clients of a real registry come in bursts of about as many.
const DEFAULT_BURST: u32 = 20;

/// What answers for images.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Registry {
    /// Which one.
    pub kind: RegistryKind,
    /// How many images it is seeded with. Some of the references used under load do not exist on purpose.
    #[serde(default = "default_images")]
    pub images: usize,
    /// `subject: {service: {}}`: images are signed by keys of the run and by whom its authority vouches for, in both forms of cosign,
    /// some of them wrongly and some not at all. The service is told to verify them: `validators` and `policy.rules` of its settings are replaced by those of the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signed: bool,
    /// Every image is locked to the digest that its tag has before the run, and a lock file says so: with `handed` the service is told of it
    /// (`resolve.lock`), with `withheld` it is not. While load runs every tag moves once to another image. Judged by `budgets.admission.unlocked`. Default: there is no lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockUse>,
    /// Who may pull. The subject is given a name and a password that fit: the built-in service in its configuration, any
    /// subject as `config.json` in the folder `$DOCKER_CONFIG`.
    #[serde(default)]
    pub auth: Auth,
    /// How many requests it takes; those beyond are answered 429. Default: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
}

impl Default for Registry {
    fn default() -> Self {
        let (kind, auth) = (RegistryKind::Mock, Auth::None);
        Self { kind, images: DEFAULT_IMAGES, signed: false, lock: None, auth, rate_limit: None }
    }
}

/// What becomes of the lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LockUse {
    /// The service honours it.
    Handed,
    /// The service does not know of it: answers are compared with it all the same.
    Withheld,
}

/// The registries that exist.
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

/// How many requests a registry takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RateLimit {
    /// In the long run.
    pub rate: units::Rate,
    /// At once.
    #[serde(default = "default_burst")]
    pub burst: u32,
}

impl Auth {
    /// What the registry does, for one who may pull from everywhere, or push too.
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
            // The least that the specification of tokens allows, so that a run of minutes sees them end.
            Self::Token => mock_registry::Auth::Token {
                users: vec![user],
                anonymous_pull: false,
                lifetime: std::time::Duration::from_mins(1),
            },
        }
    }
}

impl RateLimit {
    /// The same, as the registry takes it.
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
