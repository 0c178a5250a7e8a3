//! [`Shape`]: how a rate changes over a run, as users write it, and its checks. Pure: no I/O.

use std::time::Duration;

use units::{Rate, Span};

use super::Profile;

/// Maximum number of steps of the shape `steps`; more steps are a typing error.
const MOST_STEPS: usize = 10_000;

/// How the rate changes over the run. Without a shape the rate stays at `rate`.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Shape {
    /// The rate changes evenly from `rate` to another rate.
    Ramp(Ramp),
    /// Several rates one after another, each for its time; the last rate stays. This shape replaces `rate`.
    Steps(Vec<Step>),
    /// The rate rises from `rate` in steps of equal height and length.
    Stairs(Stairs),
    /// The rate goes up and down around `rate`, as load does over a day.
    Sine(Sine),
}

/// The rate changes evenly from `rate` to another rate.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ramp {
    /// The rate at the end of the ramp.
    pub to: Rate,
    /// The length of the ramp, after which the rate stays. Default: the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Span>,
}

/// A rate that holds for some time.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// Requests per second; 0/s is a pause.
    pub rate: Rate,
    /// The length of the step.
    #[serde(rename = "for")]
    pub length: Span,
}

/// The rate rises from `rate` in steps of equal height and length.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Stairs {
    /// The height of a step.
    pub by: Rate,
    /// The length of a step.
    pub every: Span,
    /// The highest rate, which is not exceeded. Default: the rate rises until the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Rate>,
}

/// The rate goes up and down around `rate`, and first goes up.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sine {
    /// The largest difference from `rate`; at most `rate`.
    pub amplitude: Rate,
    /// The time from one peak to the next.
    pub period: Span,
}

/// Why a shape does not fit a run, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misfit {
    #[error("{key} takes {takes}, the load only {length}: write a shorter one, or lengthen the run")]
    TooShort { key: &'static str, takes: Span, length: Span },
    #[error("stairs.every is {every}: that is more than {MOST_STEPS} steps in {length}, write a longer time")]
    TooManySteps { every: Span, length: Span },
}

impl Shape {
    /// Whether the shape sets all rates, so that `rate` has no effect.
    pub(crate) fn stands_alone(&self) -> bool {
        matches!(self, Self::Steps(_))
    }

    /// The name of the shape in scenarios.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Ramp(_) => "ramp",
            Self::Steps(_) => "steps",
            Self::Stairs(_) => "stairs",
            Self::Sine(_) => "sine",
        }
    }

    /// The shape with this rate, as text for people.
    pub fn describe(&self, rate: Rate) -> String {
        match self {
            Self::Ramp(Ramp { to, over: None }) => format!("from {rate} to {to}"),
            Self::Ramp(Ramp { to, over: Some(over) }) => format!("from {rate} to {to} over {over}, then {to}"),
            Self::Steps(steps) => {
                let part = |step: &Step| format!("{} for {}", step.rate, step.length);
                let shown: Vec<String> = steps.iter().take(4).map(part).collect();
                let more = steps.len().saturating_sub(4);
                shown.join(", ") + &if more > 0 { format!(" and {more} more steps") } else { String::new() }
            }
            Self::Stairs(Stairs { by, every, to }) => {
                let to = to.map(|to| format!(" up to {to}")).unwrap_or_default();
                format!("from {rate} by {by} every {every}{to}")
            }
            Self::Sine(Sine { amplitude, period }) => format!("{rate} ± {amplitude}, period {period}"),
        }
    }

    /// The error of the shape, whatever the length of the run is, and what to write instead.
    pub(crate) fn problem(&self, rate: Rate) -> Option<String> {
        match self {
            Self::Ramp(Ramp { over, .. }) if over.is_some_and(|over| over.0.is_zero()) => {
                Some("ramp.over is 0s: write how long the ramp takes, or leave it out for the whole run".to_owned())
            }
            Self::Ramp(Ramp { to, .. }) if rate.as_per_second() <= 0.0 && to.as_per_second() <= 0.0 => {
                Some("ramp goes from 0/s to 0/s: write a `rate` or a `to` above 0".to_owned())
            }
            Self::Steps(steps) if steps.is_empty() || steps.len() > MOST_STEPS => {
                Some(format!("steps has {} entries: write 1 to {MOST_STEPS}", steps.len()))
            }
            Self::Steps(steps) => steps
                .iter()
                .position(|step| step.length.0.is_zero())
                .map(|at| format!("steps[{at}].for is 0s: write how long the step takes, for example `10s`")),
            Self::Stairs(Stairs { by, every, to }) => {
                if by.as_per_second() <= 0.0 {
                    Some("stairs.by is 0/s: write how high a step is, for example `100/s`".to_owned())
                } else if every.0.is_zero() {
                    Some("stairs.every is 0s: write how long a step is, for example `10s`".to_owned())
                } else {
                    to.filter(|to| *to < rate).map(|to| {
                        format!("stairs.to ({to}) is below `rate` ({rate}): stairs only rise, write a higher `to`")
                    })
                }
            }
            Self::Sine(Sine { amplitude, period }) => {
                if period.0.is_zero() {
                    Some("sine.period is 0s: write the time from one peak to the next, for example `60s`".to_owned())
                } else if amplitude > &rate {
                    Some(format!(
                        "sine.amplitude ({amplitude}) is above `rate` ({rate}), so the rate would be negative: write at most `{rate}`"
                    ))
                } else {
                    None
                }
            }
            Self::Ramp(_) => None,
        }
    }

    /// The rate over a run of this length that follows from the shape.
    pub(crate) fn profile(&self, rate: Rate, length: Duration) -> Result<Profile, Misfit> {
        let length_s = length.as_secs_f64();
        let start = rate.as_per_second();
        let pieces = match self {
            Self::Sine(Sine { amplitude, period }) => {
                return Ok(Profile::sine(start, amplitude.as_per_second(), period.0.as_secs_f64(), length));
            }
            Self::Ramp(Ramp { to, over }) => {
                let to = to.as_per_second();
                let over = over.map_or(length, |over| over.0);
                if over > length {
                    return Err(Misfit::TooShort { key: "ramp.over", takes: Span(over), length: Span(length) });
                }
                vec![(over.as_secs_f64(), start, to), (length.saturating_sub(over).as_secs_f64(), to, to)]
            }
            Self::Steps(steps) => {
                let sum: Duration = steps.iter().map(|step| step.length.0).sum();
                if sum > length {
                    return Err(Misfit::TooShort { key: "steps", takes: Span(sum), length: Span(length) });
                }
                let flat = |step: &Step| (step.length.0.as_secs_f64(), step.rate.as_per_second());
                let mut pieces: Vec<_> = steps.iter().map(flat).map(|(length, rate)| (length, rate, rate)).collect();
                let last = pieces.last().map_or(0.0, |piece| piece.2);
                pieces.push((length.saturating_sub(sum).as_secs_f64(), last, last));
                pieces
            }
            Self::Stairs(Stairs { by, every, to }) => {
                let every_s = every.0.as_secs_f64();
                if length_s / every_s > MOST_STEPS as f64 {
                    return Err(Misfit::TooManySteps { every: *every, length: Span(length) });
                }
                let most = to.map_or(f64::INFINITY, Rate::as_per_second);
                let mut pieces = Vec::new();
                let (mut at_s, mut height) = (0.0, 0.0);
                while at_s < length_s {
                    let rate = (start + height * by.as_per_second()).min(most);
                    pieces.push((every_s.min(length_s - at_s), rate, rate));
                    height += 1.0;
                    at_s = height * every_s;
                }
                pieces
            }
        };
        Ok(Profile::pieces(&pieces, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(json: &str) -> Shape {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn nonsense_is_refused_with_what_to_write() {
        let rate = Rate::per_second(100.0);
        for (json, expected) in [
            (r#"{"ramp": {"to": "200/s", "over": "0s"}}"#, "ramp.over is 0s: write how long"),
            (r#"{"steps": []}"#, "steps has 0 entries: write 1 to"),
            (r#"{"steps": [{"rate": "1/s", "for": "0s"}]}"#, "steps[0].for is 0s"),
            (r#"{"stairs": {"by": "0/s", "every": "1s"}}"#, "stairs.by is 0/s: write"),
            (r#"{"stairs": {"by": "1/s", "every": "0s"}}"#, "stairs.every is 0s: write"),
            (r#"{"stairs": {"by": "1/s", "every": "1s", "to": "50/s"}}"#, "stairs.to (50/s) is below `rate` (100/s)"),
            (r#"{"sine": {"amplitude": "101/s", "period": "1m"}}"#, "sine.amplitude (101/s) is above `rate` (100/s)"),
            (r#"{"sine": {"amplitude": "10/s", "period": "0s"}}"#, "sine.period is 0s: write"),
        ] {
            let problem = shape(json).problem(rate).unwrap_or_default();
            assert!(problem.starts_with(expected), "{problem}\nshould begin with\n{expected}");
        }
        let still = shape(r#"{"ramp": {"to": "0/s"}}"#).problem(Rate::default()).unwrap_or_default();
        assert!(still.starts_with("ramp goes from 0/s to 0/s"), "{still}");
        for (json, expected) in [
            (r#"{"steps": [{"rate": "1/s", "for": "11s"}]}"#, "steps takes 11s, the load only 10s: write a shorter"),
            (r#"{"ramp": {"to": "1/s", "over": "1m"}}"#, "ramp.over takes 1m, the load only 10s"),
            (r#"{"stairs": {"by": "1/s", "every": "1us"}}"#, "stairs.every is 1us: that is more than 10000 steps"),
        ] {
            let problem = shape(json).profile(rate, Duration::from_secs(10)).unwrap_err().to_string();
            assert!(problem.starts_with(expected), "{problem}\nshould begin with\n{expected}");
        }
        let error = serde_json::from_str::<Shape>(r#"{"ramp": {"too": "1/s"}}"#).unwrap_err().to_string();
        assert!(error.contains("unknown field `too`"), "{error}");
    }
}
