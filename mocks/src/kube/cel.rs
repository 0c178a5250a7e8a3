//! Expressions in CEL, as far as conditions of webhooks need them (CEL language definition; KEP-3716).
//!
//! Owns compiling an expression and running it on a budget. Words are read in `lex`, trees in `parse`, types in `check`,
//! values live in `value`, and `run` with `functions` evaluates. Nothing here does I/O, reads a clock or panics on
//! outside data; the time of a run is bounded by its steps, and its memory by what the steps may copy.
//!
//! A library is not used: `cel` 0.15 has no check of types and no limit of the cost of an evaluation, both of which a
//! real server's answers depend on (docs/decisions/009).

mod check;
mod functions;
mod lex;
mod parse;
mod run;
mod value;

use serde_json::Value;

use check::Type;
use parse::Node;

/// The longest expression. kube-apiserver bounds the cost only; conditions that people write stay below 1 KiB.
const EXPRESSION_MAX_BYTES: usize = 16 * 1024;
/// What the conditions of one webhook may cost together. A step costs one, and every ten bytes that are looked at or
/// copied another one. kube-apiserver allows 2,500,000 of units that are a little smaller; here nothing else runs on
/// the thread meanwhile, so it is less.
pub(crate) const BUDGET: u64 = 500_000;

/// An expression that compiled.
#[derive(Debug)]
pub(crate) struct Program {
    source: String,
    root: Node,
}

/// What an expression may look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    pub object: &'a Value,
    pub old_object: &'a Value,
    pub request: &'a Value,
}

/// Why an expression does not compile: a place in bytes and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Issue {
    at: usize,
    why: String,
}

impl Issue {
    fn at(at: usize, why: String) -> Self {
        Self { at, why }
    }

    /// As kube-apiserver shows it: the place, the line and a mark below it.
    fn shown(&self, source: &str) -> String {
        let before = source.get(..self.at).unwrap_or(source);
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        let text = source.split('\n').nth(line).unwrap_or_default();
        format!("ERROR: <input>:{}:{}: {}\n | {text}\n | {}^", line + 1, column + 1, self.why, ".".repeat(column))
    }
}

impl Program {
    /// Compiles an expression that must be true or false; the error is the detail of a cause, in the real server's form.
    pub fn compile(source: &str) -> Result<Self, String> {
        if source.len() > EXPRESSION_MAX_BYTES {
            let length = source.len();
            return Err(format!("the expression has {length} bytes; this server takes {EXPRESSION_MAX_BYTES}"));
        }
        let failed = |issues: &[Issue]| {
            let shown: Vec<String> = issues.iter().map(|issue| issue.shown(source)).collect();
            format!("compilation failed: {}", shown.join("\n"))
        };
        let root = parse::parse(source).map_err(|issue| failed(&[issue]))?;
        match check::check(&root) {
            Ok(Type::Bool) => Ok(Self { source: source.to_owned(), root }),
            Ok(_) => Err("must evaluate to bool".to_owned()),
            Err(issues) => Err(failed(&issues)),
        }
    }

    /// Runs the program and takes what it cost from `budget`.
    pub fn run(&self, input: &Input<'_>, budget: &mut u64) -> Result<bool, String> {
        let failed = |why: &str| format!("expression '{}' resulted in error: {why}", self.source);
        match run::run(&self.root, input, budget) {
            Ok(value::Val::Bool(answer)) => Ok(answer),
            Ok(_) => Err(failed("cel expression does not evaluate to bool")),
            Err(run::Stop::Error(why)) => Err(failed(&why)),
            Err(run::Stop::Budget) => Err(failed("operation cancelled: actual cost limit exceeded")),
        }
    }
}

#[cfg(test)]
mod tests;
