//! `longhaul gate --suite`: decides whether a project's test suite fails more often in one checkout than in another,
//! with the same faults.
//!
//! Owns the order of runs and the decision. The suite runs in both checkouts with the same seeds, in the order ABBA. An
//! exact sign test uses only seeds that fail in exactly one checkout, because all other seeds say nothing about the
//! change.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use reports::exit;
use reports::statistics::binomial;
use serde::Serialize;

use crate::envtest::{Chaos, Run, Suite};
use crate::out::{err, out};
use crate::signals::Signals;

/// Maximum probability of a false alarm.
const CHANCE: f64 = 0.05;
/// Minimum number of seeds. With five seeds, the probability of a false alarm is one half to the power of five, the
/// first value below [`CHANCE`].
pub(crate) const SEEDS_MIN: u64 = 5;

#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) command: Vec<String>,
    pub(crate) a: PathBuf,
    /// The checkout that is compared with the baseline.
    pub(crate) b: PathBuf,
    pub(crate) seeds: u64,
    pub(crate) first: u64,
    pub(crate) manager: mock_envtest::Manager,
    /// The folder for the records of all runs, `suite.json` and `suite.md`.
    pub(crate) out: PathBuf,
    /// Whether to print no line per seed.
    pub(crate) quiet: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pair {
    seed: u64,
    a: u8,
    b: u8,
    conflicts: [u64; 2],
    hot_loops: [usize; 2],
    requests: [usize; 2],
    hits: [usize; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Verdict {
    Same,
    Better,
    Worse,
    CannotSay,
    Invalid,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Judgement {
    verdict: Verdict,
    reason: String,
    pairs: Vec<Pair>,
}

/// Runs the suite with all seeds and prints the results. Returns the exit code of a gate.
pub(crate) async fn play(choice: &Choice) -> Result<u8> {
    for (option, folder) in [("a", &choice.a), ("b", &choice.b)] {
        ensure!(
            folder.is_dir(),
            "--{option} {}: no such folder; with `--suite` a gate compares two checkouts",
            folder.display()
        );
    }
    let suites = [("a", &choice.a), ("b", &choice.b)].map(|(side, folder)| choice.suite(side, folder));
    let mut signals = Signals::listen().context("failed to listen for signals")?;
    let (mut pairs, mut was_ended) = (Vec::new(), false);
    for number in 0..choice.seeds {
        let seed = choice.first.wrapping_add(number);
        let mut runs: [Option<Run>; 2] = [None, None];
        // The first run warms caches for the second, so the checkouts take turns.
        for side in if number % 2 == 0 { [0, 1] } else { [1, 0] } {
            let run = suites[side].once(seed, &mut signals).await?;
            was_ended |= run.was_ended;
            if run.was_ended {
                break;
            }
            runs[side] = Some(run);
        }
        let [Some(a), Some(b)] = runs else { break };
        if !choice.quiet {
            err!("seed {seed}: A {}, B {}", outcome(a.code), outcome(b.code));
        }
        pairs.push(Pair::of(seed, a, b));
    }
    let judgement = judge(pairs, was_ended);
    choice.conclude(&judgement)?;
    Ok(judgement.verdict.exit_code())
}

impl Choice {
    fn suite(&self, side: &str, folder: &Path) -> Suite {
        Suite {
            command: self.command.clone(),
            faults: Vec::new(),
            written: None,
            chaos: Chaos { seed: Some(self.first), order: false, stale: None },
            workloads: None,
            kubernetes: None,
            seed: None,
            manager: self.manager.clone(),
            runs: self.out.join(side),
            results: Vec::new(),
            judged: false,
            folder: Some(folder.to_owned()),
        }
    }

    fn conclude(&self, judgement: &Judgement) -> Result<()> {
        let again = |seed| self.suite("b", &self.b).again(seed);
        let markdown = markdown(judgement, &again);
        let json = serde_json::to_string_pretty(judgement)? + "\n";
        for (name, text) in [("suite.json", &json), ("suite.md", &markdown)] {
            let path = self.out.join(name);
            std::fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
        }
        super::book::summarize(&markdown);
        out!("{}", markdown.trim_end());
        out!("records: {}", self.out.display());
        Ok(())
    }
}

impl Pair {
    fn of(seed: u64, a: Run, b: Run) -> Self {
        let of = [a.counts, b.counts];
        Self {
            seed,
            a: a.code,
            b: b.code,
            conflicts: of.map(|counts| counts.conflicts),
            hot_loops: of.map(|counts| counts.hot_loops),
            requests: of.map(|counts| counts.requests),
            hits: of.map(|counts| counts.hits),
        }
    }
}

impl Verdict {
    fn exit_code(self) -> u8 {
        match self {
            Self::Same | Self::Better => exit::PASS,
            Self::Worse => exit::FAIL,
            Self::CannotSay => exit::INCONCLUSIVE,
            Self::Invalid => exit::INVALID,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::CannotSay => "cannot say",
            Self::Invalid => "invalid",
        }
    }
}

/// Decides the comparison from the pairs of runs. Does no I/O.
fn judge(pairs: Vec<Pair>, was_ended: bool) -> Judgement {
    let count = |which: fn(&Pair) -> bool| pairs.iter().filter(|pair| which(pair)).count();
    let only_a = count(|pair| pair.a != exit::PASS && pair.b == exit::PASS);
    let only_b = count(|pair| pair.a == exit::PASS && pair.b != exit::PASS);
    let both = count(|pair| pair.a != exit::PASS && pair.b != exit::PASS);
    let without = count(|pair| pair.requests.contains(&0));
    let untouched = |side: usize| pairs.iter().all(|pair| pair.hits[side] == 0);
    let untouched = ["A", "B"].into_iter().enumerate().find_map(|(side, name)| untouched(side).then_some(name));
    let all = pairs.len();
    let (verdict, reason) = if was_ended || all == 0 {
        (Verdict::Invalid, "it was interrupted".to_owned())
    } else if without > 0 {
        let why = format!(
            "{without} of {all} seeds sent no request to Longhaul's control plane: does the suite compile, and start envtest?"
        );
        (Verdict::Invalid, why)
    } else if only_a == 0 && both == all {
        (Verdict::Invalid, "the suite fails in A and in B with every seed: make it pass in A first".to_owned())
    } else {
        let by_chance = |one: usize, other: usize| at_least(one, one + other);
        let said = format!("{only_b} of {all} seeds fail in B alone, {only_a} in A alone, {both} in both");
        if only_b > only_a && by_chance(only_b, only_a) <= CHANCE {
            (Verdict::Worse, said)
        } else if only_b > only_a {
            let why = format!("{said}: by chance in {:.0} % of such gates", 100.0 * by_chance(only_b, only_a));
            (Verdict::CannotSay, why + "; more `--seeds` decide")
        } else if let Some(side) = untouched {
            let why = "its suite has no caches, is too short, or its manager does not match `--manager-agent` or `--manager-user`";
            (Verdict::CannotSay, format!("{said}, and no fault hit anything in {side}: {why}"))
        } else if only_a > only_b && by_chance(only_a, only_b) <= CHANCE {
            (Verdict::Better, said)
        } else {
            (Verdict::Same, said)
        }
    };
    Judgement { verdict, reason, pairs }
}

/// The probability of at least `many` heads in `all` throws of a fair coin.
fn at_least(many: usize, all: usize) -> f64 {
    // This equals the probability of at most `all - many` tails.
    binomial::at_most((all - many) as u64, all as u64, 0.5)
}

fn outcome(code: u8) -> String {
    if code == exit::PASS { "passed".to_owned() } else { format!("failed ({code})") }
}

fn markdown(judgement: &Judgement, again: &dyn Fn(u64) -> String) -> String {
    let mut text = format!("**{}**: {}\n\n| | A | B |\n|---|---|---|\n", judgement.verdict.name(), judgement.reason);
    let pairs = &judgement.pairs;
    let mut row = |name: &str, of: fn(&Pair) -> [usize; 2]| {
        let sum = pairs.iter().map(of).fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
        let _ = writeln!(text, "| {name} | {} | {} |", sum[0], sum[1]);
    };
    row("seeds that failed", |pair| [usize::from(pair.a != exit::PASS), usize::from(pair.b != exit::PASS)]);
    row("faults that hit", |pair| pair.hits);
    row("requests", |pair| pair.requests);
    row("conflicts", |pair| pair.conflicts.map(|many| usize::try_from(many).unwrap_or(usize::MAX)));
    row("hot loops", |pair| pair.hot_loops);
    let seeds: Vec<String> =
        pairs.iter().filter(|pair| pair.b != exit::PASS).map(|pair| pair.seed.to_string()).collect();
    let alone = pairs.iter().find(|pair| pair.a == exit::PASS && pair.b != exit::PASS);
    if let Some(one) = alone.or_else(|| pairs.iter().find(|pair| pair.b != exit::PASS)) {
        let (seeds, again) = (seeds.join(", "), again(one.seed));
        let _ = write!(text, "\nSeeds that failed in B: {seeds}. One again, in B:\n\n```console\n$ {again}\n```\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(seed: u64, a: u8, b: u8) -> Pair {
        Pair { seed, a, b, conflicts: [0, 0], hot_loops: [0, 0], requests: [9, 9], hits: [1, 1] }
    }

    fn verdict(pairs: impl IntoIterator<Item = (u8, u8)>) -> Verdict {
        let pairs = pairs.into_iter().enumerate().map(|(seed, (a, b))| pair(seed as u64, a, b));
        judge(pairs.collect(), false).verdict
    }

    #[test]
    fn the_seeds_that_differ_decide() {
        assert_eq!(verdict([(0, 0); 10]), Verdict::Same);
        assert_eq!(verdict([(0, 2); 5]), Verdict::Worse);
        assert_eq!(verdict([(0, 2); 4]), Verdict::CannotSay);
        assert_eq!(verdict([(1, 0); 5]), Verdict::Better);
        assert_eq!(verdict([(1, 1); 10]), Verdict::Invalid);
        assert_eq!(verdict([(1, 1), (0, 0), (1, 0), (0, 1)]), Verdict::Same, "both flake alike");
        let many = [(0, 1); 9].into_iter().chain([(1, 0); 2]).chain([(0, 0); 9]);
        assert_eq!(verdict(many), Verdict::Worse, "nine of eleven come by chance in 3 % of gates");
    }

    #[test]
    fn what_asked_nobody_is_no_comparison() {
        let silent = Pair { requests: [9, 0], ..pair(1, 0, 0) };
        assert_eq!(judge(vec![silent], false).verdict, Verdict::Invalid);
        assert_eq!(judge(vec![pair(1, 0, 0)], true).verdict, Verdict::Invalid);
        let untouched = Pair { hits: [0, 0], ..pair(1, 0, 0) };
        assert_eq!(judge(vec![untouched], false).verdict, Verdict::CannotSay);
        // A checkout does not count as better if no fault hit it.
        let spared = (1..6).map(|seed| Pair { hits: [1, 0], ..pair(seed, 1, 0) }).collect();
        let judgement = judge(spared, false);
        assert!(judgement.verdict == Verdict::CannotSay && judgement.reason.contains("in B"), "{judgement:?}");
    }

    #[test]
    fn coins_are_counted_exactly() {
        for (many, all, wanted) in [(5, 5, 1.0 / 32.0), (0, 7, 1.0), (9, 11, 67.0 / 2048.0), (1200, 1200, 0.0)] {
            assert!((at_least(many, all) - wanted).abs() < 1e-12, "{many} of {all}");
        }
        assert!((0.5..0.52).contains(&at_least(600, 1200)));
    }
}
