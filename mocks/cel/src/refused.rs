//! Why an expression does not compile, in kube-apiserver's words.

use std::fmt::{self, Display, Formatter};

use super::{EXPRESSION_MAX_BYTES, re2};

/// Why an expression does not compile.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// It is too long.
    #[error("the expression has {bytes} bytes; this server takes {EXPRESSION_MAX_BYTES}")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// Its words or its types do not fit together.
    #[error("compilation failed: {0}")]
    Issues(Issues),
    /// The types are right, and it could not run: a pattern in it does not compile.
    #[error("program instantiation failed: error parsing regexp: {0}")]
    Pattern(#[source] re2::Refused),
    /// A condition that is neither true nor false.
    #[error("must evaluate to bool")]
    Condition,
    /// A rule that is neither true nor false.
    #[error("cel expression must evaluate to a bool")]
    Rule,
    /// What is to make a message makes something else.
    #[error("must evaluate to a string")]
    Text,
    /// What is to make the message of a rule is refused.
    #[error("messageExpression {0}")]
    Message(#[source] Box<Refused>),
}

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issues {
    /// The expression as it was written.
    pub expression: String,
    /// At least one.
    pub list: Vec<Issue>,
}

/// A place in bytes and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Where it is.
    pub at: usize,
    /// What the compiler says about it.
    pub why: String,
}

impl Issue {
    pub(crate) fn at(at: usize, why: String) -> Self {
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

impl Display for Issues {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let shown: Vec<String> = self.list.iter().map(|issue| issue.shown(&self.expression)).collect();
        out.write_str(&shown.join("\n"))
    }
}
