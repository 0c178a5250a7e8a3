//! The compile errors of CEL expressions, with kube-apiserver's messages.

use std::fmt::{self, Display, Formatter};

use super::{EXPRESSION_MAX_BYTES, re2};

/// Why an expression does not compile.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    #[error("the expression has {bytes} bytes; this server takes {EXPRESSION_MAX_BYTES}")]
    TooLong {
        /// The length of the expression.
        bytes: usize,
    },
    /// The syntax or the types of the expression are wrong.
    #[error("compilation failed: {0}")]
    Issues(Issues),
    /// The types are right, but a pattern in the expression does not compile.
    #[error("program instantiation failed: error parsing regexp: {0}")]
    Pattern(#[source] re2::Refused),
    #[error("must evaluate to bool")]
    Condition,
    #[error("cel expression must evaluate to a bool")]
    Rule,
    /// The result of a mutation has the wrong type.
    #[error("must evaluate to {wanted} but got {found}")]
    Mutation {
        /// The required type of the result.
        wanted: &'static str,
        /// The actual type of the result.
        found: String,
    },
    /// The result of a message expression is not of type string.
    #[error("must evaluate to a string")]
    Text,
    /// The message expression of a rule does not compile.
    #[error("messageExpression {0}")]
    Message(#[source] Box<Refused>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issues {
    pub expression: String,
    /// The errors of the expression, at least one.
    pub list: Vec<Issue>,
}

/// A compile error, and its position in the expression in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    pub at: usize,
    pub why: String,
}

impl Issue {
    pub(crate) fn at(at: usize, why: String) -> Self {
        Self { at, why }
    }

    /// The text of the error as kube-apiserver shows it: the position, the line, and a mark below the line.
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
