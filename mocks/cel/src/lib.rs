//! Expressions in CEL, as conditions of webhooks and rules of custom resources need them (CEL language definition; KEP-3716,
//! KEP-2876).
//!
//! Owns compiling an expression and running it on a budget. Words are read in `lex`, trees in `parse`, types in `check`,
//! values live in `value`, what a schema declares in `decl`, and `run` with `functions` and `library` evaluates. Nothing here
//! does I/O, reads a clock or panics on outside data; the time of a run is bounded by its steps, and its memory by what the
//! steps may copy.
//!
//! A library is not used: `cel` 0.15 has no check of types and no limit of the cost of an evaluation, both of which a
//! real server's answers depend on (docs/decisions/009).

mod addresses;
mod check;
mod decl;
mod formats;
mod functions;
mod lex;
mod library;
mod names;
mod parse;
mod pattern;
mod quantity;
pub mod re2;
mod run;
mod semver;
mod time;
mod types;
mod url;
mod value;
mod written;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use check::{Checked, Names, Refused};
use parse::Node;
use pattern::Pattern;
use types::Type;
use value::Val;

pub use decl::{Decl, Fields, Order};
pub use formats::is_uuid;
pub use quantity::Quantity;
pub use time::{read as read_time, read_date, read_duration};

/// The longest expression. kube-apiserver bounds the cost only; conditions that people write stay below 1 KiB.
const EXPRESSION_MAX_BYTES: usize = 16 * 1024;
/// What the conditions of one webhook may cost together. A step costs one, and every ten bytes that are looked at or
/// copied another one. kube-apiserver allows 2,500,000 of units that are a little smaller; here nothing else runs on
/// the thread meanwhile, so it is less.
pub const BUDGET: u64 = 500_000;

/// Whether a text is an absolute URL or path.
pub fn is_uri(text: &str) -> bool {
    url::Url::read(text).is_ok()
}

/// An expression that compiled.
#[derive(Debug)]
pub struct Program {
    source: String,
    root: Node,
    /// Some of the patterns that are written out in it.
    patterns: HashMap<String, Arc<Pattern>>,
    /// How many patterns it took to compile it.
    pub compiled: usize,
    /// It looks at `oldSelf`.
    pub uses_old: bool,
}

/// A value with a schema, and what it was before.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// What its schema declares.
    pub decl: &'a Decl,
    /// `self`.
    pub value: &'a Value,
    /// `oldSelf`; absent when there was none.
    pub old: Option<&'a Value>,
    /// `oldSelf` is there in any case, as an optional value.
    pub optional_old: bool,
}

/// What a rule or its message may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// `true` or `false`: a rule.
    Truth,
    /// A text: a message.
    Text,
}

/// Why a rule has no answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Failed {
    /// It ended with an error, in kube-apiserver's words.
    Error(String),
    /// It costs too much.
    Budget,
}

/// What a condition may look at.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The object as it would be stored.
    pub object: &'a Value,
    /// The stored object; `null` when it is created.
    pub old_object: &'a Value,
    /// The `request` of the `AdmissionReview`.
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
    /// Compiles a condition; the error is the detail of a cause, in the real server's form.
    pub fn compile(source: &str) -> Result<Self, String> {
        let (program, answer) = Self::made(source, &Names::Review)?;
        if answer == Type::Bool { Ok(program) } else { Err("must evaluate to bool".to_owned()) }
    }

    /// Compiles a rule about values of a schema, or the expression that makes its message.
    pub fn compile_for(decl: &Arc<Decl>, optional_old: bool, wanted: Wanted, source: &str) -> Result<Self, String> {
        let prefix = if wanted == Wanted::Truth { "" } else { "messageExpression " };
        let made = Self::made(source, &Names::Value { decl, optional_old });
        let (program, answer) = made.map_err(|why| format!("{prefix}{why}"))?;
        match (wanted, answer) {
            (Wanted::Truth, Type::Bool) | (Wanted::Text, Type::Text) => Ok(program),
            (Wanted::Truth, _) => Err("cel expression must evaluate to a bool".to_owned()),
            (Wanted::Text, _) => Err("messageExpression must evaluate to a string".to_owned()),
        }
    }

    fn made(source: &str, names: &Names<'_>) -> Result<(Self, Type), String> {
        if source.len() > EXPRESSION_MAX_BYTES {
            let length = source.len();
            return Err(format!("the expression has {length} bytes; this server takes {EXPRESSION_MAX_BYTES}"));
        }
        let failed = |issues: &[Issue]| {
            let shown: Vec<String> = issues.iter().map(|issue| issue.shown(source)).collect();
            format!("compilation failed: {}", shown.join("\n"))
        };
        let root = parse::parse(source).map_err(|issue| failed(&[issue]))?;
        let checked = check::check(&root, names).map_err(|refused| match refused {
            Refused::Issues(issues) => failed(&issues),
            Refused::Unfit(why) => format!("program instantiation failed: {why}"),
        })?;
        let Checked { answer, patterns, compiled, uses_old } = checked;
        Ok((Self { source: source.to_owned(), root, patterns, compiled, uses_old }, answer))
    }

    /// Runs a condition and takes what it cost from `budget`.
    pub fn run(&self, input: &Input<'_>, budget: &mut u64) -> Result<bool, String> {
        let failed = |why: &str| format!("expression '{}' resulted in error: {why}", self.source);
        let scope = vec![
            ("object", Val::of(input.object)),
            ("oldObject", Val::of(input.old_object)),
            ("request", Val::of(input.request)),
        ];
        match run::run(&self.root, &self.patterns, scope, budget) {
            Ok(Val::Bool(answer)) => Ok(answer),
            Ok(_) => Err(failed("cel expression does not evaluate to bool")),
            Err(run::Stop::Error(why)) => Err(failed(&why)),
            Err(run::Stop::Budget) => Err(failed("operation cancelled: actual cost limit exceeded")),
        }
    }

    /// Runs a rule and takes what it cost from `budget`.
    pub fn holds(&self, subject: &Subject<'_>, budget: &mut u64) -> Result<bool, Failed> {
        match self.answer(subject, budget)? {
            Val::Bool(answer) => Ok(answer),
            _ => Err(Failed::Error("no such overload".to_owned())),
        }
    }

    /// Makes a text and takes what it cost from `budget`.
    pub fn text(&self, subject: &Subject<'_>, budget: &mut u64) -> Result<String, Failed> {
        match self.answer(subject, budget)? {
            Val::Text(text) => Ok(text.to_string()),
            _ => Err(Failed::Error("no such overload".to_owned())),
        }
    }

    fn answer<'a>(&'a self, subject: &Subject<'a>, budget: &mut u64) -> Result<Val<'a>, Failed> {
        let mut scope = vec![("self", Val::typed(subject.value, subject.decl))];
        let old = subject.old.map(|old| Val::typed(old, subject.decl));
        match (old, subject.optional_old) {
            (old, true) => scope.push(("oldSelf", old.map_or(Val::Optional(None), Val::some))),
            (Some(old), false) => scope.push(("oldSelf", old)),
            (None, false) => {}
        }
        run::run(&self.root, &self.patterns, scope, budget).map_err(|stop| match stop {
            run::Stop::Error(why) => Failed::Error(why),
            run::Stop::Budget => Failed::Budget,
        })
    }
}

#[cfg(test)]
mod tests;
