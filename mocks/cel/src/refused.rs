//! The compile errors of expressions, in kube-apiserver's words.

use std::fmt::{self, Display, Formatter};

use super::{EXPRESSION_MAX_BYTES, re2};

/// Why an expression does not compile.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// The expression is too long.
    #[error("the expression has {bytes} bytes; this server takes {EXPRESSION_MAX_BYTES}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Its syntax or its types are wrong.
    #[error("compilation failed: {0}")]
    Issues(Issues),
    /// The types are right, but it could not run: a pattern in it does not compile.
    #[error("program instantiation failed: error parsing regexp: {0}")]
    Pattern(#[source] re2::Refused),
    /// A condition that is not of type bool.
    #[error("must evaluate to bool")]
    Condition,
    /// A rule that is not of type bool.
    #[error("cel expression must evaluate to a bool")]
    Rule,
    /// A mutation that makes something else.
    #[error("must evaluate to {wanted} but got {found}")]
    Mutation {
        /// The name of the type.
        wanted: &'static str,
        /// The name of its own type.
        found: String,
    },
    /// A message expression that is not of type string.
    #[error("must evaluate to a string")]
    Text,
    /// The message expression of a rule is refused.
    #[error("messageExpression {0}")]
    Message(#[source] Box<Refused>),
}

/// The errors in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issues {
    /// The expression as it was written.
    pub expression: String,
    /// At least one.
    pub list: Vec<Issue>,
}

/// A position in bytes and the error there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    pub at: usize,
    /// The compiler's message.
    pub why: String,
}

impl Issue {
    pub(crate) fn at(at: usize, why: String) -> Self {
        Self { at, why }
    }

    /// As kube-apiserver shows it: the position, the line and a mark below it.
    fn shown(&self, source: &str) -> String {
        let before = source.get(..self.at).unwrap_or(source);
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        let text = source.split('\n').nth(line).unwrap_or_default();
        format!("ERROR: <input>:{}:{}: {}\n | {text}\n | {}^", line + 1, column + 1, self.why, ".".repeat(column))
    }
}

impl Display for Issues {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.list.iter().map(|issue| issue.shown(&self.expression)).collect();
        out.write_str(&shown.join("\n"))
    }
}
