//! [`Pace`]: the rate of churn's writes, which is fixed or is found during the run.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use units::Rate;

use crate::open_loop::Steer;

/// The word in a scenario for a rate that is found during the run.
const AUTO: &str = "auto";
/// The highest rate of a plan with `auto`, in writes per second.
const AUTO_MOST: f64 = 50.0;
/// The rate that is assumed before `auto` has found one, in writes per second. This value is low, so that a plan does
/// not promise too much.
const AUTO_EXPECTED: f64 = 1.0;

/// Operations per second: `10/s`, or `auto`.
#[derive(Debug, Clone, PartialEq)]
pub enum Pace {
    /// A fixed rate.
    At(Rate),
    /// Half of the rate that the subject sustains in the warm-up. Clones share the rate after it was found.
    Auto(Arc<Steer>),
}

impl Pace {
    /// The rate in the scenario; `None` for `auto`.
    pub fn at(&self) -> Option<Rate> {
        match self {
            Self::At(rate) => Some(*rate),
            Self::Auto(_) => None,
        }
    }

    /// The control of the rate in a plan with `auto`.
    pub fn steer(&self) -> Option<&Arc<Steer>> {
        match self {
            Self::At(_) => None,
            Self::Auto(steer) => Some(steer),
        }
    }

    /// The highest rate of the plan.
    pub fn most(&self) -> Rate {
        self.at().unwrap_or(Rate::per_second(AUTO_MOST))
    }

    /// The rate that a plan assumes in its calculations.
    pub fn expected(&self) -> Rate {
        self.at().unwrap_or(Rate::per_second(AUTO_EXPECTED))
    }
}

impl From<Rate> for Pace {
    fn from(rate: Rate) -> Self {
        Self::At(rate)
    }
}

impl FromStr for Pace {
    type Err = units::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == AUTO { Ok(Self::Auto(Arc::default())) } else { text.parse().map(Self::At) }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(rate) => rate.fmt(f),
            Self::Auto(_) => f.pad(AUTO),
        }
    }
}

impl serde::Serialize for Pace {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Pace {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Pace;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rate with a unit such as `200/s`, `30/m` or `5/h`, or `auto`")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Pace, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Pace, E> {
                number.to_string().parse().map_err(E::custom)
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Pace, E> {
                number.to_string().parse().map_err(E::custom)
            }
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Pace, E> {
                number.to_string().parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl schemars::JsonSchema for Pace {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Pace".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "a rate with a unit such as `200/s`, `30/m` or `5/h`, or `auto`",
            "pattern": r"^(auto|[0-9.]+/(s|m|h))$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_or_auto() {
        let read = |text: &str| serde_json::from_str::<Pace>(text);
        assert_eq!(read(r#""10/s""#).unwrap().at(), Some(Rate::per_second(10.0)));
        let auto = read(r#""auto""#).unwrap();
        assert!(auto.steer().is_some() && auto.at().is_none());
        for text in [r#""10/s""#, r#""auto""#] {
            assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
        }
        assert!(read("10").unwrap_err().to_string().starts_with("`10` has no unit: write for example `200/s`"));
        assert!(read("true").unwrap_err().to_string().contains("or `auto`"));
    }
}
