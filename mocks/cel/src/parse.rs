//! The parser of CEL expressions, from tokens to a tree (CEL language definition, "Syntax").
//!
//! Owns precedence and the limit on the tree's depth, because every later step recurses over the tree. `calls` owns
//! macros. A chain of `&&` or `||` is one node of the tree, however long the chain is.

use super::Issue;
use super::lex::{Token, Word, words};
use super::names;

mod calls;

pub(super) use calls::{Macro, MacroKind};
use calls::{called, called_on};

/// Greatest depth of a tree. kube-apiserver allows 250, but this server's threads have smaller stacks. People write
/// conditions with a depth below 20.
const DEPTH_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Node {
    /// The offset in bytes, for error messages.
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
    /// A call of the macro `has(a.b)`.
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
    /// Two or more operands, joined by `&&` if `and` is set, else by `||`.
    Logic {
        and: bool,
        operands: Vec<Node>,
    },
    Ternary(Box<[Node; 3]>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    /// A literal with a type name, such as `Object.spec{replicas: 1}`.
    Message {
        name: String,
        fields: Vec<(String, Node)>,
    },
    /// `?x` in a list, or the value of `?k: x` in a map: the entry exists only if the optional `x` has a value.
    Maybe(Box<Node>),
    Macro(Box<Macro>),
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
            Kind::Select { of, .. } | Kind::Has { of, .. } | Kind::Unary(_, of) | Kind::Maybe(of) => of.depth,
            Kind::Index { of, key, .. } => of.depth.max(key.depth),
            Kind::Binary(_, left, right) => left.depth.max(right.depth),
            Kind::Call { target, arguments, .. } => {
                deepest(arguments).max(target.as_ref().map_or(0, |target| target.depth))
            }
            Kind::Logic { operands, .. } | Kind::List(operands) => deepest(operands),
            Kind::Ternary(parts) => deepest(&parts[..]),
            Kind::Map(entries) => entries.iter().map(|(key, value)| key.depth.max(value.depth)).max().unwrap_or(0),
            Kind::Message { fields, .. } => fields.iter().map(|(_, value)| value.depth).max().unwrap_or(0),
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

    /// Takes the next token; at the end of the expression, each call returns `End`.
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

    /// Parses `a ? b : c`, or an expression of higher precedence.
    fn expression(&mut self) -> Result<Node, Issue> {
        // The tree is bounded by its nodes. Brackets make no nodes, so the recursion is bounded as well.
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
            // Two signs cancel out.
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
                let field = match self.peek() {
                    Word::Ident(field) if !is_literal(field) => field.clone(),
                    _ => return Err(self.unexpected("IDENTIFIER")),
                };
                self.take();
                let open = self.at();
                node = if !optional && self.takes("(") {
                    let arguments = self.arguments()?;
                    called_on(open, node, field, arguments)?
                } else if let Some(name) = qualified_type(&node, &field) {
                    Node::new(at, Kind::Ident(name.to_owned()))?
                } else {
                    Node::new(at, Kind::Select { of: Box::new(node), field, optional })?
                };
            } else if self.takes("[") {
                let optional = self.takes("?");
                let key = self.expression()?;
                self.expect("]")?;
                node = Node::new(at, Kind::Index { of: Box::new(node), key: Box::new(key), optional })?;
            } else if let Some(name) = type_name(&node).filter(|_| matches!(self.peek(), Word::Sign("{"))) {
                self.take();
                let fields = self.fields()?;
                node = Node::new(at, Kind::Message { name, fields })?;
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
            Word::Sign("[") => Kind::List(self.items()?),
            Word::Ident(name) => match name.as_str() {
                "null" => Kind::Null,
                name if is_literal(name) => Kind::Bool(name == "true"),
                name if names::RESERVED.contains(&name) => {
                    return Err(Issue::at(at, format!("reserved identifier: {name}")));
                }
                _ => {
                    let open = self.at();
                    if self.takes("(") {
                        let arguments = self.arguments()?;
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

    /// Parses the arguments of a call after its opening bracket; a comma at the end is an error.
    fn arguments(&mut self) -> Result<Vec<Node>, Issue> {
        let mut list = Vec::new();
        if self.takes(")") {
            return Ok(list);
        }
        loop {
            list.push(self.expression()?);
            if !self.takes(",") {
                self.expect(")")?;
                return Ok(list);
            }
        }
    }

    fn items(&mut self) -> Result<Vec<Node>, Issue> {
        self.until("]", |parser| {
            let maybe = parser.takes("?");
            let item = parser.expression()?;
            wrapped(maybe, item)
        })
    }

    fn entries(&mut self) -> Result<Vec<(Node, Node)>, Issue> {
        self.until("}", |parser| {
            let maybe = parser.takes("?");
            let key = parser.expression()?;
            parser.expect(":")?;
            let value = parser.expression()?;
            Ok((key, wrapped(maybe, value)?))
        })
    }

    /// Parses the fields of a literal with a type name. The names of fields are not expressions.
    fn fields(&mut self) -> Result<Vec<(String, Node)>, Issue> {
        self.until("}", |parser| {
            let maybe = parser.takes("?");
            let Word::Ident(name) = parser.peek().clone() else { return Err(parser.unexpected("IDENTIFIER")) };
            parser.take();
            parser.expect(":")?;
            let value = parser.expression()?;
            Ok((name, wrapped(maybe, value)?))
        })
    }

    /// Parses items separated by commas up to `close`; a comma at the end is allowed.
    fn until<T>(&mut self, close: &str, mut one: impl FnMut(&mut Self) -> Result<T, Issue>) -> Result<Vec<T>, Issue> {
        let mut list = Vec::new();
        while !self.takes(close) {
            list.push(one(self)?);
            if !self.takes(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(list)
    }
}

fn wrapped(maybe: bool, node: Node) -> Result<Node, Issue> {
    if maybe { Node::new(node.at, Kind::Maybe(Box::new(node))) } else { Ok(node) }
}

/// Returns the name that a node spells, such as `Object.spec`; `None` if the node is not a name.
fn type_name(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Ident(name) => Some(name.clone()),
        Kind::Select { of, field, optional: false } => Some(format!("{}.{field}", type_name(of)?)),
        _ => None,
    }
}

fn is_literal(word: &str) -> bool {
    matches!(word, "true" | "false" | "null")
}

/// The full name of a type with three parts: `google.protobuf.Timestamp` or `google.protobuf.Duration`.
fn qualified_type(of: &Node, field: &str) -> Option<&'static str> {
    let Kind::Select { of, field: middle, optional: false } = &of.kind else { return None };
    let is_space = matches!(&of.kind, Kind::Ident(first) if first == "google") && middle == "protobuf";
    let known = super::types::NAMES.iter().find(|name| name.rsplit_once('.').is_some_and(|(_, last)| last == field));
    known.copied().filter(|_| is_space)
}

fn negative(magnitude: u64) -> Option<i64> {
    i64::try_from(-i128::from(magnitude)).ok()
}
