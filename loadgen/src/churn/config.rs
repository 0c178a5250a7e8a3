//! What a scenario says about churn, and the checks that refuse nonsense before anything starts.

use units::Rate;

use super::Error;
use super::resource::Resource;
use crate::Size;

/// Operations per second. A mock API server takes about this many writes; beyond it the plan is a typing error.
pub const HIGHEST_RATE: f64 = 20_000.0;
/// Objects. Filling more would take longer than any run that could use them.
pub const HIGHEST_POPULATION: u32 = 200_000;

/// Object churn of a scenario.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// What is churned: `packages.longhaul.dev/v1alpha1`, `v1/configmaps`, `v1/secrets` or `apps/v1/deployments`.
    pub resource: String,
    /// How many objects exist at any time.
    pub population: u32,
    /// Operations per second; `0/s` only fills.
    pub rate: Rate,
    /// What happens, in relative weights.
    #[serde(default = "Mix::usual")]
    pub mix: Mix,
    /// How large the objects are. Without it they carry 256 bytes of filler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// What becomes of the objects when load ends: `keep` leaves them, `empty` deletes all of them before the drain. Default: `keep`.
    #[serde(default, skip_serializing_if = "End::is_keep")]
    pub end: End,
}

/// What becomes of the objects when load ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum End {
    /// They stay.
    #[default]
    Keep,
    /// All of them are deleted: who started with an empty world ends with one.
    Empty,
}

impl End {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
    fn is_keep(&self) -> bool {
        *self == Self::Keep
    }
}

/// Relative weights of operations. Since the population is constant, creates and deletes happen equally often: at the
/// edges of a narrow band one is taken for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Mix {
    /// A new object under a name never used before.
    pub create: u32,
    /// A change of an existing object's spec or data.
    pub update: u32,
    /// An old object deleted.
    pub delete: u32,
}

impl Mix {
    /// What a scenario gets that does not say: the mix of the documentation's example.
    pub fn usual() -> Self {
        Self { create: 2, update: 7, delete: 2 }
    }

    pub(super) fn total(&self) -> u64 {
        u64::from(self.create) + u64::from(self.update) + u64::from(self.delete)
    }
}

impl Config {
    /// Refuses what makes no sense, naming the key and what to write.
    pub fn check(&self) -> Result<(), Error> {
        Resource::parse(&self.resource)?;
        if self.population == 0 || self.population > HIGHEST_POPULATION {
            return refuse("population", format!("is {}: write 1 to {HIGHEST_POPULATION}", self.population));
        }
        if self.rate.as_per_second() > HIGHEST_RATE {
            return refuse("rate", format!("is {}: write at most `{HIGHEST_RATE}/s`", self.rate));
        }
        if self.mix.total() == 0 {
            return refuse("mix", "has no weight above 0: write for example `mix: {create: 2, update: 7, delete: 2}`");
        }
        if self.mix.create > 0 && self.mix.delete == 0 {
            return refuse(
                "mix.delete",
                "is 0 although `create` is not, so the population would grow: write both or none",
            );
        }
        if self.mix.delete > 0 && self.mix.create == 0 {
            return refuse(
                "mix.create",
                "is 0 although `delete` is not, so the population would shrink: write both or none",
            );
        }
        match self.size.and_then(Size::problem) {
            Some(problem) => refuse("size", problem),
            None => Ok(()),
        }
    }
}

fn refuse(key: &'static str, problem: impl Into<String>) -> Result<(), Error> {
    Err(Error::Config { key, problem: problem.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_names_the_key_and_what_to_write() {
        let config = |more: &str| -> Config {
            let base = r#""resource": "v1/configmaps", "population": 5, "rate": "1/s""#;
            serde_json::from_str(&format!("{{{base}{more}}}")).unwrap()
        };
        config("").check().unwrap();
        let error = |config: Config| config.check().unwrap_err().to_string();
        assert!(error(config(r#", "mix": {}"#)).starts_with("churn.mix: has no weight above 0: write for example"));
        assert!(error(config(r#", "mix": {"create": 1}"#)).starts_with("churn.mix.delete: is 0 although"));
        assert!(error(config(r#", "mix": {"delete": 1}"#)).starts_with("churn.mix.create: is 0 although"));
        let with = |change: fn(&mut Config)| {
            let mut config = config("");
            change(&mut config);
            error(config)
        };
        assert_eq!(with(|c| c.population = 0), "churn.population: is 0: write 1 to 200000");
        assert!(with(|c| c.rate = Rate::per_second(1e6)).starts_with("churn.rate: is 1000000/s: write at most"));
        assert!(with(|c| c.resource = "widgets".to_owned()).starts_with("churn.resource: `widgets`"));
    }
}
