//! CEL expressions for the conditions of webhooks and the rules of custom resources (CEL language definition; KEP-3716,
//! KEP-2876).
//!
//! Owns compiling an expression and running it with a budget. `lex` reads tokens, `parse` builds trees, and `check`
//! finds types. `value` defines values, and `decl` the types that schemas declare. `eval`, `functions` and `library`
//! evaluate expressions. Nothing in this crate does I/O, reads a clock, or panics on outside data. A limit on
//! operations bounds the time of an evaluation, and a limit on copied bytes bounds its memory.
//!
//! The crate uses no library for CEL. `cel` 0.15 has no type check and no limit on the cost of an evaluation, and a
//! real server's answers depend on both (docs/decisions/009).

pub mod addresses;
mod check;
mod decl;
mod eval;
mod failed;
pub mod formats;
mod functions;
mod lex;
mod library;
mod names;
mod parse;
mod pattern;
mod quantity;
pub mod re2;
mod refused;
mod run;
pub mod semver;
mod time;
mod types;
pub mod url;
mod value;
mod written;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use check::{Checked, Names};
use parse::Node;
use pattern::Pattern;
use types::Type;
use value::Val;

pub use decl::{Decl, Fields, Order};
pub use failed::{Failed, Unanswered, Unfilled, Why};
pub use quantity::Quantity;
pub use refused::{Issue, Issues, Refused};
pub use time::{read as read_time, read_date, read_duration};

/// Maximum length of an expression. kube-apiserver limits only the cost; people write conditions of less than 1 KiB.
const EXPRESSION_MAX_BYTES: usize = 16 * 1024;
/// Largest cost of all conditions of one webhook. An operation costs one unit, and so do ten bytes that are read or
/// copied. kube-apiserver allows 2,500,000 slightly smaller units; the limit here is lower because an evaluation
/// occupies its thread.
pub const BUDGET: u64 = 500_000;

/// Whether a text is an absolute URL or path.
pub fn is_uri(text: &str) -> bool {
    url::Url::read(text).is_ok()
}

#[derive(Debug)]
pub struct Program {
    source: String,
    root: Node,
    /// Compiled patterns that the expression contains as literals.
    patterns: HashMap<String, Arc<Pattern>>,
    /// Number of patterns that were compiled with the expression.
    pub compiled: usize,
    pub uses_old: bool,
    /// The error for the result, if an object literal in the expression has another type than the field that contains
    /// it.
    pub misnamed: Option<String>,
}

/// A value with a schema, and its old state, for the evaluation of a rule.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The type that the schema declares.
    pub decl: &'a Decl,
    pub value: &'a Value,
    /// The variable `oldSelf`; `None` if there is no old state.
    pub old: Option<&'a Value>,
    /// Whether `oldSelf` is always present, as an optional value.
    pub optional_old: bool,
}

/// The type that the result of an expression must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A boolean: the result of a rule.
    Truth,
    /// A string: the message of a rule.
    Text,
    /// `Object{…}`: the configuration that a mutation applies.
    Object,
    /// A list of `JSONPatch{…}`: the operations of a mutation.
    Patches,
}

/// The variables of a webhook's condition.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// `object`: the object as it would be stored.
    pub object: &'a Value,
    /// `oldObject`: the stored object; `null` if the object is being created.
    pub old_object: &'a Value,
    pub request: &'a Value,
}

/// The variables of an admission policy besides those in [`Input`].
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// `params`; `null` if the policy has no parameters.
    pub params: &'a Value,
    /// `namespaceObject`; `null` if the object belongs to no namespace.
    pub namespace: &'a Value,
}

/// The evaluation of a policy's expressions for one request. All expressions share `variables`.
#[derive(Debug)]
pub struct Evaluation<'a> {
    scope: Vec<(&'a str, Val<'a>)>,
    /// The results of the policy's `variables`, sorted by name.
    variables: Rc<Vec<(Val<'a>, Val<'a>)>>,
}

impl<'a> Evaluation<'a> {
    /// Begins an evaluation in which `variables` is still empty.
    pub fn new(input: &Input<'a>, around: &Surroundings<'a>) -> Self {
        let scope = vec![
            ("object", Val::of(input.object)),
            ("oldObject", Val::of(input.old_object)),
            ("request", Val::of(input.request)),
            ("params", Val::of(around.params)),
            ("namespaceObject", Val::of(around.namespace)),
        ];
        Self { scope, variables: Rc::default() }
    }

    /// Evaluates an expression and adds the result to `variables`. If the evaluation fails, or the result is too large,
    /// the variable does not exist.
    pub fn define(&mut self, name: &'a str, program: &'a Program, budget: &mut u64) {
        let Some(value) = self.answer(program, budget).ok().filter(Val::is_bounded) else { return };
        let at = self.variables.partition_point(|(known, _)| matches!(known, Val::Text(known) if **known <= *name));
        Rc::make_mut(&mut self.variables).insert(at, (Val::lent(name), value));
    }

    /// Evaluates an expression that must return a boolean.
    pub fn holds(&self, program: &'a Program, budget: &mut u64) -> Result<bool, Unanswered> {
        let why = match self.answer(program, budget) {
            Ok(Val::Bool(answer)) => return Ok(answer),
            Ok(_) => Why::NotBool,
            Err(failed) => Why::Failed(failed),
        };
        Err(Unanswered { expression: program.source.clone(), why })
    }

    /// Evaluates an expression that must return a string or `null`; `None` stands for `null`.
    pub fn text(&self, program: &'a Program, budget: &mut u64) -> Result<Option<String>, Failed> {
        match self.answer(program, budget)? {
            Val::Text(text) => Ok(Some(text.to_string())),
            Val::Null => Ok(None),
            _ => Err(Failed::Overload),
        }
    }

    /// Evaluates an expression and returns the result as JSON.
    pub fn value(&self, program: &'a Program, budget: &mut u64) -> Result<Value, Unanswered> {
        let failed = |why| Unanswered { expression: program.source.clone(), why: Why::Failed(why) };
        let json = |found: Val<'a>| found.is_bounded().then(|| found.json()).flatten().ok_or(Failed::Overload);
        self.answer(program, budget).and_then(json).map_err(failed)
    }

    fn answer(&self, program: &'a Program, budget: &mut u64) -> Result<Val<'a>, Failed> {
        let mut scope = self.scope.clone();
        scope.push(("variables", Val::Map(value::Map::Own(Rc::clone(&self.variables)))));
        eval::run(&program.root, &program.patterns, scope, budget)
    }
}

impl Program {
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Compiles an expression of an admission policy. If `wanted` is `None`, the result may have any type.
    pub fn compile_in_policy(source: &str, wanted: Option<Wanted>) -> Result<Self, Refused> {
        let mutates = matches!(wanted, Some(Wanted::Object | Wanted::Patches));
        let (program, answer) = Self::made(source, if mutates { &Names::Mutation } else { &Names::Policy })?;
        match wanted {
            Some(Wanted::Object) if !matches!(answer, Type::Dyn) && answer != types::OBJECT => {
                Err(Refused::Mutation { wanted: "Object", found: answer.to_string() })
            }
            Some(Wanted::Patches) if !answer.fits(&Type::list(types::JSON_PATCH)) => {
                Err(Refused::Mutation { wanted: "list(JSONPatch)", found: answer.to_string() })
            }
            Some(Wanted::Truth) if !matches!(answer, Type::Bool | Type::Dyn) => Err(Refused::Condition),
            Some(Wanted::Text) if !matches!(answer, Type::Text | Type::Dyn | Type::Null) => Err(Refused::Text),
            _ => Ok(program),
        }
    }

    /// Compiles the condition of a webhook. The text of the error is kube-apiserver's, so callers can show it in the
    /// cause of a `Status`.
    pub fn compile(source: &str) -> Result<Self, Refused> {
        let (program, answer) = Self::made(source, &Names::Review)?;
        if answer == Type::Bool { Ok(program) } else { Err(Refused::Condition) }
    }

    /// Compiles a rule for the values of a schema, or the expression that makes the rule's message.
    pub fn compile_for(decl: &Arc<Decl>, optional_old: bool, wanted: Wanted, source: &str) -> Result<Self, Refused> {
        let made = Self::made(source, &Names::Value { decl, optional_old });
        match wanted {
            Wanted::Truth => {
                made.and_then(|(program, answer)| if answer == Type::Bool { Ok(program) } else { Err(Refused::Rule) })
            }
            Wanted::Object | Wanted::Patches => made.map(|(program, _)| program),
            Wanted::Text => made
                .and_then(|(program, answer)| if answer == Type::Text { Ok(program) } else { Err(Refused::Text) })
                .map_err(|why| Refused::Message(Box::new(why))),
        }
    }

    fn made(source: &str, names: &Names<'_>) -> Result<(Self, Type), Refused> {
        if source.len() > EXPRESSION_MAX_BYTES {
            return Err(Refused::TooLong { bytes: source.len() });
        }
        let failed = |list: Vec<Issue>| Refused::Issues(Issues { expression: source.to_owned(), list });
        let root = parse::parse(source).map_err(|issue| failed(vec![issue]))?;
        let checked = check::check(&root, names).map_err(|refused| match refused {
            check::Refused::Issues(issues) => failed(issues),
            check::Refused::Unfit(why) => Refused::Pattern(why),
        })?;
        let Checked { answer, patterns, compiled, uses_old, misnamed } = checked;
        Ok((Self { source: source.to_owned(), root, patterns, compiled, uses_old, misnamed }, answer))
    }

    /// Evaluates a condition and subtracts the cost from `budget`.
    pub fn run(&self, input: &Input<'_>, budget: &mut u64) -> Result<bool, Unanswered> {
        let scope = vec![
            ("object", Val::of(input.object)),
            ("oldObject", Val::of(input.old_object)),
            ("request", Val::of(input.request)),
        ];
        let why = match eval::run(&self.root, &self.patterns, scope, budget) {
            Ok(Val::Bool(answer)) => return Ok(answer),
            Ok(_) => Why::NotBool,
            Err(failed) => Why::Failed(failed),
        };
        Err(Unanswered { expression: self.source.clone(), why })
    }

    /// Evaluates a rule and subtracts the cost from `budget`.
    pub fn holds(&self, subject: &Subject<'_>, budget: &mut u64) -> Result<bool, Failed> {
        match self.answer(subject, budget)? {
            Val::Bool(answer) => Ok(answer),
            _ => Err(Failed::Overload),
        }
    }

    /// Evaluates a message expression and subtracts the cost from `budget`.
    pub fn text(&self, subject: &Subject<'_>, budget: &mut u64) -> Result<String, Failed> {
        match self.answer(subject, budget)? {
            Val::Text(text) => Ok(text.to_string()),
            _ => Err(Failed::Overload),
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
        eval::run(&self.root, &self.patterns, scope, budget)
    }
}

#[cfg(test)]
mod tests;
