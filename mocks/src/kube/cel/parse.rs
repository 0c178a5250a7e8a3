//! From words to a tree (CEL language definition, "Syntax"; macros as in its list of standard macros).
//!
//! Owns precedence, macros and the bound on depth: every later pass recurses over the tree, so it must be shallow.
//! Chains of `&&` and `||` are one node each, however long.

use super::lex::{Token, Word, words};
use super::{Issue, functions, library};

/// How deep a tree may be. kube-apiserver allows 250; the stacks of this server's threads are smaller, and conditions
/// that people write stay below 20.
const DEPTH_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Node {
    /// Where errors point to, in bytes.
    pub at: usize,
    pub kind: Kind,
    depth: usize,
}

#[derive(Debug)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Ident(String),
    Select {
        of: Box<Node>,
        field: String,
        optional: bool,
    },
    /// `has(a.b)`.
    Has {
        of: Box<Node>,
        field: String,
    },
    Index {
        of: Box<Node>,
        key: Box<Node>,
        optional: bool,
    },
    Call {
        target: Option<Box<Node>>,
        name: String,
        arguments: Vec<Node>,
    },
    Unary(&'static str, Box<Node>),
    Binary(&'static str, Box<Node>, Box<Node>),
    /// Two or more operands of `&&` (true) or `||`.
    Logic {
        and: bool,
        operands: Vec<Node>,
    },
    Ternary(Box<[Node; 3]>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Macro(Box<Macro>),
}

/// `over.all(variable, body)` and its like.
#[derive(Debug)]
pub(super) struct Macro {
    pub kind: MacroKind,
    pub over: Node,
    pub variable: String,
    /// The middle argument of `map` with three.
    pub filter: Option<Node>,
    pub body: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MacroKind {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    OptMap,
    OptFlatMap,
}

/// Words that may not name a variable.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Words that are something else than a name; fields of these names are escaped.
const KEYWORDS: &[&str] = &["true", "false", "null", "in"];

/// Whether a word cannot be a name.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word) || KEYWORDS.contains(&word)
}

pub(super) fn parse(source: &str) -> Result<Node, Issue> {
    let mut parser = Parser { tokens: words(source)?, next: 0, depth: 0 };
    let node = parser.expression()?;
    match parser.peek() {
        Word::End => Ok(node),
        _ => Err(parser.unexpected("<EOF>")),
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

impl Node {
    fn new(at: usize, kind: Kind) -> Result<Self, Issue> {
        let below: usize = match &kind {
            Kind::Select { of, .. } | Kind::Has { of, .. } | Kind::Unary(_, of) => of.depth,
            Kind::Index { of, key, .. } => of.depth.max(key.depth),
            Kind::Binary(_, left, right) => left.depth.max(right.depth),
            Kind::Call { target, arguments, .. } => {
                deepest(arguments).max(target.as_ref().map_or(0, |target| target.depth))
            }
            Kind::Logic { operands, .. } | Kind::List(operands) => deepest(operands),
            Kind::Ternary(parts) => deepest(&parts[..]),
            Kind::Map(entries) => entries.iter().map(|(key, value)| key.depth.max(value.depth)).max().unwrap_or(0),
            Kind::Macro(inner) => {
                let filter = inner.filter.as_ref().map_or(0, |filter| filter.depth);
                inner.over.depth.max(inner.body.depth).max(filter)
            }
            _ => 0,
        };
        if below >= DEPTH_MAX {
            return Err(too_deep(at));
        }
        Ok(Self { at, kind, depth: below + 1 })
    }
}

fn deepest(nodes: &[Node]) -> usize {
    nodes.iter().map(|node| node.depth).max().unwrap_or(0)
}

fn too_deep(at: usize) -> Issue {
    Issue::at(at, format!("expression recursion limit exceeded: {DEPTH_MAX}"))
}

impl Parser {
    fn peek(&self) -> &Word {
        &self.tokens[self.next].word
    }

    fn at(&self) -> usize {
        self.tokens[self.next].at
    }

    /// Takes the next word; the end is never passed.
    fn take(&mut self) -> Token {
        let token = self.tokens[self.next].clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Word::Sign(is) if *is == sign);
        if is {
            self.take();
        }
        is
    }

    fn expect(&mut self, sign: &str) -> Result<(), Issue> {
        if self.takes(sign) { Ok(()) } else { Err(self.unexpected(&format!("'{sign}'"))) }
    }

    fn unexpected(&self, expected: &str) -> Issue {
        let found = self.peek().shown();
        Issue::at(self.at(), format!("Syntax error: mismatched input '{found}' expecting {expected}"))
    }

    /// `a ? b : c`, and everything that binds stronger.
    fn expression(&mut self) -> Result<Node, Issue> {
        // The tree is bounded by its nodes; brackets make none, so the way down is bounded as well.
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(too_deep(self.at()));
        }
        let mut node = self.logic(false)?;
        let at = self.at();
        if self.takes("?") {
            let yes = self.logic(false)?;
            self.expect(":")?;
            let no = self.expression()?;
            node = Node::new(at, Kind::Ternary(Box::new([node, yes, no])))?;
        }
        self.depth -= 1;
        Ok(node)
    }

    fn logic(&mut self, and: bool) -> Result<Node, Issue> {
        let sign = if and { "&&" } else { "||" };
        let operand = |parser: &mut Self| if and { parser.relation() } else { parser.logic(true) };
        let first = operand(self)?;
        let at = self.at();
        let mut operands = vec![first];
        while self.takes(sign) {
            operands.push(operand(self)?);
        }
        match operands.pop() {
            Some(only) if operands.is_empty() => Ok(only),
            Some(last) => {
                operands.push(last);
                Node::new(at, Kind::Logic { and, operands })
            }
            None => Err(self.unexpected("an expression")),
        }
    }

    fn relation(&mut self) -> Result<Node, Issue> {
        self.chain(&["==", "!=", "<=", ">=", "<", ">", "in"], Self::sum)
    }

    fn sum(&mut self) -> Result<Node, Issue> {
        self.chain(&["+", "-"], Self::product)
    }

    fn product(&mut self) -> Result<Node, Issue> {
        self.chain(&["*", "/", "%"], Self::unary)
    }

    fn chain(
        &mut self,
        signs: &[&'static str],
        operand: impl Fn(&mut Self) -> Result<Node, Issue>,
    ) -> Result<Node, Issue> {
        let mut node = operand(self)?;
        loop {
            let at = self.at();
            let Some(sign) = signs.iter().find(|sign| self.takes(sign)) else { return Ok(node) };
            let right = operand(self)?;
            node = Node::new(at, Kind::Binary(sign, Box::new(node), Box::new(right)))?;
        }
    }

    fn unary(&mut self) -> Result<Node, Issue> {
        let at = self.at();
        for sign in ["!", "-"] {
            let mut count = 0_usize;
            while self.takes(sign) {
                count += 1;
            }
            if count == 0 {
                continue;
            }
            if sign == "-"
                && let Word::Int(magnitude) = *self.peek()
            {
                self.take();
                let number = negative(magnitude).ok_or_else(|| Issue::at(at, "invalid int literal".to_owned()))?;
                let number = if count.is_multiple_of(2) { number.wrapping_neg() } else { number };
                return Node::new(at, Kind::Int(number));
            }
            let inner = self.member()?;
            // Two signs undo each other.
            return if count.is_multiple_of(2) { Ok(inner) } else { Node::new(at, Kind::Unary(sign, Box::new(inner))) };
        }
        self.member()
    }

    fn member(&mut self) -> Result<Node, Issue> {
        let mut node = self.primary()?;
        loop {
            let at = self.at();
            if self.takes(".") {
                let optional = self.takes("?");
                let Word::Ident(field) = self.peek().clone() else { return Err(self.unexpected("IDENTIFIER")) };
                self.take();
                let open = self.at();
                node = if !optional && self.takes("(") {
                    let arguments = self.arguments(")")?;
                    called_on(open, node, field, arguments)?
                } else {
                    Node::new(at, Kind::Select { of: Box::new(node), field, optional })?
                };
            } else if self.takes("[") {
                let optional = self.takes("?");
                let key = self.expression()?;
                self.expect("]")?;
                node = Node::new(at, Kind::Index { of: Box::new(node), key: Box::new(key), optional })?;
            } else {
                return Ok(node);
            }
        }
    }

    fn primary(&mut self) -> Result<Node, Issue> {
        let Token { at, word } = self.tokens[self.next].clone();
        if matches!(word, Word::End | Word::Sign(_)) && !matches!(word, Word::Sign("(" | "[" | "{")) {
            return Err(self.unexpected("an expression"));
        }
        self.take();
        let kind = match word {
            Word::Int(number) => {
                Kind::Int(i64::try_from(number).map_err(|_| Issue::at(at, "invalid int literal".to_owned()))?)
            }
            Word::Uint(number) => Kind::Uint(number),
            Word::Double(number) => Kind::Double(number),
            Word::Text(text) => Kind::Text(text),
            Word::Bytes(bytes) => Kind::Bytes(bytes),
            Word::Sign("(") => {
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Word::Sign("[") => Kind::List(self.arguments("]")?),
            Word::Ident(name) => match name.as_str() {
                "true" | "false" => Kind::Bool(name == "true"),
                "null" => Kind::Null,
                name if RESERVED.contains(&name) => {
                    return Err(Issue::at(at, format!("reserved identifier: {name}")));
                }
                _ => {
                    let open = self.at();
                    if self.takes("(") {
                        let arguments = self.arguments(")")?;
                        return called(open, name, arguments);
                    }
                    Kind::Ident(name)
                }
            },
            Word::Sign(_) => Kind::Map(self.entries()?),
            Word::End => Kind::Null,
        };
        Node::new(at, kind)
    }

    fn arguments(&mut self, close: &str) -> Result<Vec<Node>, Issue> {
        let mut list = Vec::new();
        while !self.takes(close) {
            list.push(self.expression()?);
            if !self.takes(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(list)
    }

    fn entries(&mut self) -> Result<Vec<(Node, Node)>, Issue> {
        let mut entries = Vec::new();
        while !self.takes("}") {
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((key, self.expression()?));
            if !self.takes(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(entries)
    }
}

fn negative(magnitude: u64) -> Option<i64> {
    i64::try_from(-i128::from(magnitude)).ok()
}

/// `name(…)`: `has` is a macro.
fn called(at: usize, name: String, mut arguments: Vec<Node>) -> Result<Node, Issue> {
    if name == "has" && arguments.len() == 1 {
        return match arguments.pop().map(|node| node.kind) {
            Some(Kind::Select { of, field, optional: false }) => Node::new(at, Kind::Has { of, field }),
            _ => Err(Issue::at(at, "invalid argument to has() macro".to_owned())),
        };
    }
    Node::new(at, Kind::Call { target: None, name, arguments })
}

/// `target.name(…)`: some are macros, and some are functions with a dot in their names.
fn called_on(at: usize, target: Node, name: String, mut arguments: Vec<Node>) -> Result<Node, Issue> {
    if let Kind::Ident(space) = &target.kind {
        let qualified = format!("{space}.{name}");
        // A variable may have such a name, and be a text.
        let is_method = qualified == "sets.contains" && arguments.len() == 1;
        let is_function = functions::is_known(&qualified) || library::is_known(&qualified);
        if is_function && !is_method {
            return Node::new(at, Kind::Call { target: None, name: qualified, arguments });
        }
    }
    let kind = match (name.as_str(), arguments.len()) {
        ("all", 2) => MacroKind::All,
        ("exists", 2) => MacroKind::Exists,
        ("exists_one" | "existsOne", 2) => MacroKind::ExistsOne,
        ("map", 2 | 3) => MacroKind::Map,
        ("filter", 2) => MacroKind::Filter,
        ("optMap", 2) => MacroKind::OptMap,
        ("optFlatMap", 2) => MacroKind::OptFlatMap,
        _ => return Node::new(at, Kind::Call { target: Some(Box::new(target)), name, arguments }),
    };
    let body = arguments.pop();
    let filter = if arguments.len() == 2 { arguments.pop() } else { None };
    let (Some(body), Some(first)) = (body, arguments.pop()) else {
        return Err(Issue::at(at, "argument is missing".to_owned()));
    };
    let Kind::Ident(variable) = first.kind else {
        return Err(Issue::at(first.at, "argument must be a simple name".to_owned()));
    };
    Node::new(at, Kind::Macro(Box::new(Macro { kind, over: target, variable, filter, body })))
}
