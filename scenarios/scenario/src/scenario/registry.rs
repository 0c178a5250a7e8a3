//! `registry`: the images of a scenario's registry, its access control, and its rate limit.
//!
//! The faults of the registry are in the section `faults:`, as all other faults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Default number of images. With this number of images a cache is useful but still has misses.
const DEFAULT_IMAGES: usize = 40;
/// Default maximum number of requests at one moment: about as many as clients of real registries allow themselves.
const DEFAULT_BURST: u32 = 20;

/// The image registry.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Registry {
    /// The kind of registry.
    pub kind: RegistryKind,
    /// Number of images in the registry. On purpose, some of the references used under load do not exist.
    #[serde(default = "default_images")]
    pub images: usize,
    /// Only for `subject: {service: {}}`: images are signed, in both forms of cosign, by keys of the run and by signers
    /// whose certificates the run's authority issues. Some signatures are invalid and some images have none. The
    /// service is configured to verify the signatures: the run replaces `validators` and `policy.rules` of its
    /// settings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signed: bool,
    /// A lock file pins every image to the digest that its tag has before the run. With `handed` the service gets the
    /// file (`resolve.lock`), with `withheld` it does not. The fault `tags-moved` moves the tags, and
    /// `budgets.admission.unlocked` judges the answers. Default: there is no lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockUse>,
    /// The required authentication for pulls. The subject gets a valid name and password: the built-in service in its
    /// configuration, any subject as `config.json` in the folder `$DOCKER_CONFIG`.
    #[serde(default)]
    pub auth: Auth,
    /// Limit of requests. The registry answers further requests with 429. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
}

impl Default for Registry {
    fn default() -> Self {
        let (kind, auth) = (RegistryKind::Mock, Auth::None);
        Self { kind, images: DEFAULT_IMAGES, signed: false, lock: None, auth, rate_limit: None }
    }
}

/// Whether the service gets the lock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LockUse {
    /// The service gets the lock file and must follow it.
    Handed,
    /// The service does not get the lock file. The service's answers are still compared with the lock.
    Withheld,
}

/// The kinds of registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RegistryKind {
    /// The mock registry inside this process.
    Mock,
}

/// The authentication that the registry requires for pulls.
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
    /// The long-term rate of requests.
    pub rate: units::Rate,
    /// Maximum number of requests at one moment.
    #[serde(default = "default_burst")]
    pub burst: u32,
}

impl Auth {
    /// The mock registry's authentication for one user. The user may pull all images, and also push if `push` is set.
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
    /// The rate limit for the mock registry.
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
