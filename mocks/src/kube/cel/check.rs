//! What an expression will be, before it runs: names that nobody declared, fields that a request does not have, and
//! operators and functions that do not fit.
//!
//! Owns the types, in the words of the real checker. Objects are of the type `dyn`, as in a real server, so whatever
//! touches them is found out when it runs.

use std::rc::Rc;

use super::Issue;
use super::functions;
use super::parse::{Kind, Macro, MacroKind, Node};

/// Issues that are collected at most.
const ISSUES_MAX: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    List(Rc<Type>),
    Map(Rc<Type>, Rc<Type>),
    Optional(Rc<Type>),
    /// A structure with known fields, by its name.
    Struct(&'static str),
}

pub(super) const REQUEST: &str = "kubernetes.AdmissionRequest";

/// `(type, field, its type)` of everything below `request` (Kubernetes documentation, "Matching requests:
/// matchConditions", and `AdmissionRequest` of admission.k8s.io/v1).
const FIELDS: &[(&str, &str, &str)] = &[
    (REQUEST, "kind", "kubernetes.GroupVersionKind"),
    (REQUEST, "resource", "kubernetes.GroupVersionResource"),
    (REQUEST, "subResource", "string"),
    (REQUEST, "requestKind", "kubernetes.GroupVersionKind"),
    (REQUEST, "requestResource", "kubernetes.GroupVersionResource"),
    (REQUEST, "requestSubResource", "string"),
    (REQUEST, "name", "string"),
    (REQUEST, "namespace", "string"),
    (REQUEST, "operation", "string"),
    (REQUEST, "userInfo", "kubernetes.UserInfo"),
    (REQUEST, "dryRun", "bool"),
    (REQUEST, "options", "dyn"),
    ("kubernetes.GroupVersionKind", "group", "string"),
    ("kubernetes.GroupVersionKind", "version", "string"),
    ("kubernetes.GroupVersionKind", "kind", "string"),
    ("kubernetes.GroupVersionResource", "group", "string"),
    ("kubernetes.GroupVersionResource", "version", "string"),
    ("kubernetes.GroupVersionResource", "resource", "string"),
    ("kubernetes.UserInfo", "username", "string"),
    ("kubernetes.UserInfo", "uid", "string"),
    ("kubernetes.UserInfo", "groups", "list(string)"),
    ("kubernetes.UserInfo", "extra", "map(string, list(string))"),
];

/// Said about `authorizer`, which a real server has and this one does not.
const NO_AUTHORIZER: &str =
    "the variable 'authorizer' is not supported by this server: leave it out, or use a real control plane";

/// Functions that a real server has and this one does not.
const ELSEWHERE: &[&str] = &[
    "bytes",
    "cidr",
    "duration",
    "findAll",
    "format",
    "getDate",
    "getFullYear",
    "getHours",
    "ip",
    "isCIDR",
    "isIP",
    "isQuantity",
    "isURL",
    "quantity",
    "reverse",
    "sets",
    "timestamp",
    "type",
    "url",
];

impl Type {
    pub fn list(of: Self) -> Self {
        Self::List(Rc::new(of))
    }

    pub fn optional(of: Self) -> Self {
        Self::Optional(Rc::new(of))
    }

    /// Whether a value of this type may stand where `wanted` is asked for.
    pub fn fits(&self, wanted: &Self) -> bool {
        match (self, wanted) {
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.fits(b),
            (Self::Map(a, b), Self::Map(c, d)) => a.fits(c) && b.fits(d),
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            // What may be absent may be compared with nothing.
            (Self::Null, other) | (other, Self::Null) => {
                matches!(other, Self::Null | Self::Struct(_) | Self::Optional(_))
            }
            (a, b) => a == b,
        }
    }

    fn is_numeric(&self) -> bool {
        matches!(self, Self::Dyn | Self::Int | Self::Uint | Self::Double)
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::Struct(name) => f.write_str(name),
        }
    }
}

/// The type of an expression, or what is wrong with it.
pub(super) fn check(root: &Node) -> Result<Type, Vec<Issue>> {
    let mut checker = Checker { scope: Vec::new(), issues: Vec::new() };
    let found = checker.of(root);
    if checker.issues.is_empty() { Ok(found) } else { Err(checker.issues) }
}

struct Checker<'a> {
    /// Variables of the macros around, the innermost last.
    scope: Vec<(&'a str, Type)>,
    issues: Vec<Issue>,
}

impl<'a> Checker<'a> {
    /// Notes what is wrong and goes on with what fits everywhere.
    fn wrong(&mut self, at: usize, why: String) -> Type {
        if self.issues.len() < ISSUES_MAX {
            self.issues.push(Issue::at(at, why));
        }
        Type::Dyn
    }

    fn of(&mut self, node: &'a Node) -> Type {
        match &node.kind {
            Kind::Null => Type::Null,
            Kind::Bool(_) => Type::Bool,
            Kind::Int(_) => Type::Int,
            Kind::Uint(_) => Type::Uint,
            Kind::Double(_) => Type::Double,
            Kind::Text(_) => Type::Text,
            Kind::Ident(name) => self.ident(node.at, name),
            Kind::Select { of, field, optional } => {
                let found = self.select(node.at, of, field);
                let already = matches!(found, Type::Optional(_));
                if *optional && !already { Type::optional(found) } else { found }
            }
            Kind::Has { of, field } => {
                self.select(node.at, of, field);
                Type::Bool
            }
            Kind::Index { of, key, optional } => {
                let (of, key) = (self.of(of), self.of(key));
                let (inside, wraps) = unwrapped(&of);
                let found = match inside {
                    Type::List(item) if key.fits(&Type::Int) => (**item).clone(),
                    Type::Map(keys, value) if key.fits(keys) => (**value).clone(),
                    Type::Dyn => Type::Dyn,
                    _ => self.no_overload(node.at, "_[_]", &[of.clone(), key]),
                };
                if *optional || wraps { Type::optional(found) } else { found }
            }
            Kind::Call { target, name, arguments } => self.call(node.at, target.as_deref(), name, arguments),
            Kind::Unary(sign, inner) => {
                let inner = self.of(inner);
                match (*sign, &inner) {
                    ("!", found) if found.fits(&Type::Bool) => Type::Bool,
                    ("-", Type::Int | Type::Double | Type::Dyn) => inner,
                    (sign, _) => self.no_overload(node.at, &format!("{sign}_"), &[inner]),
                }
            }
            Kind::Binary(sign, left, right) => {
                let (left, right) = (self.of(left), self.of(right));
                binary(sign, &left, &right).unwrap_or_else(|| {
                    let name = if *sign == "in" { "@in".to_owned() } else { format!("_{sign}_") };
                    self.no_overload(node.at, &name, &[left, right])
                })
            }
            Kind::Logic { and, operands } => {
                let types: Vec<Type> = operands.iter().map(|operand| self.of(operand)).collect();
                if !types.iter().all(|found| found.fits(&Type::Bool)) {
                    self.no_overload(node.at, if *and { "_&&_" } else { "_||_" }, &types);
                }
                Type::Bool
            }
            Kind::Ternary(parts) => {
                let [condition, yes, no] = &**parts;
                let (condition, yes, no) = (self.of(condition), self.of(yes), self.of(no));
                if !condition.fits(&Type::Bool) || !yes.fits(&no) {
                    return self.no_overload(node.at, "_?_:_", &[condition, yes, no]);
                }
                if yes == no { yes } else { Type::Dyn }
            }
            Kind::List(items) => {
                let types: Vec<Type> = items.iter().map(|item| self.of(item)).collect();
                Type::list(common(&types))
            }
            Kind::Map(entries) => {
                let types: Vec<(Type, Type)> =
                    entries.iter().map(|(key, value)| (self.of(key), self.of(value))).collect();
                let (keys, values): (Vec<Type>, Vec<Type>) = types.into_iter().unzip();
                Type::Map(Rc::new(common(&keys)), Rc::new(common(&values)))
            }
            Kind::Macro(inner) => self.in_macro(node.at, inner),
        }
    }

    fn ident(&mut self, at: usize, name: &str) -> Type {
        if let Some((_, found)) = self.scope.iter().rev().find(|(known, _)| *known == name) {
            return found.clone();
        }
        match name {
            "object" | "oldObject" => Type::Dyn,
            "request" => Type::Struct(REQUEST),
            "authorizer" => self.wrong(at, NO_AUTHORIZER.to_owned()),
            _ => self.wrong(at, format!("undeclared reference to '{name}' (in container '')")),
        }
    }

    fn select(&mut self, at: usize, of: &'a Node, field: &str) -> Type {
        let of = self.of(of);
        let (inside, wraps) = unwrapped(&of);
        let found = match inside {
            Type::Dyn => Type::Dyn,
            Type::Map(_, value) => (**value).clone(),
            Type::Struct(name) => match FIELDS.iter().find(|(known, key, _)| known == name && *key == field) {
                Some((_, _, kind)) => named(kind),
                None => self.wrong(at, format!("undefined field '{field}'")),
            },
            other => self.wrong(at, format!("type '{other}' does not support field selection")),
        };
        if wraps { Type::optional(found) } else { found }
    }

    fn call(&mut self, at: usize, target: Option<&'a Node>, name: &str, arguments: &'a [Node]) -> Type {
        // `optional.of(x)`: a name with a dot, not a method.
        if let Some(Node { kind: Kind::Ident(space), .. }) = target
            && space == "optional"
            && !self.scope.iter().any(|(known, _)| known == space)
        {
            let types: Vec<Type> = arguments.iter().map(|argument| self.of(argument)).collect();
            return match (name, &types[..]) {
                ("none", []) => Type::optional(Type::Dyn),
                ("of" | "ofNonZeroValue", [only]) => Type::optional(only.clone()),
                _ => self.no_overload(at, &format!("optional.{name}"), &types),
            };
        }
        let target = target.map(|target| self.of(target));
        let types: Vec<Type> = arguments.iter().map(|argument| self.of(argument)).collect();
        if ELSEWHERE.contains(&name) {
            return self.wrong(at, format!("the function '{name}' is not supported by this server"));
        }
        if !functions::is_known(name) {
            return self.wrong(at, format!("undeclared reference to '{name}' (in container '')"));
        }
        // A pattern that is written out is looked at now.
        if let ("matches" | "find", Some(Node { kind: Kind::Text(pattern), at, .. })) = (name, arguments.last())
            && let Err(why) = functions::check_pattern(pattern)
        {
            return self.wrong(*at, format!("error parsing regexp: {why}"));
        }
        match functions::answers(name, target.as_ref(), &types) {
            Some(found) => found,
            None => match target {
                Some(target) => {
                    let shown = list(&types);
                    self.wrong(at, format!("found no matching overload for '{name}' applied to '{target}.({shown})'"))
                }
                None => self.no_overload(at, name, &types),
            },
        }
    }

    fn in_macro(&mut self, at: usize, inner: &'a Macro) -> Type {
        let over = self.of(&inner.over);
        let item = match &over {
            Type::List(item) => (**item).clone(),
            Type::Map(key, _) => (**key).clone(),
            Type::Dyn => Type::Dyn,
            other => {
                let why = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.wrong(at, why)
            }
        };
        self.scope.push((&inner.variable, item.clone()));
        let filter = inner.filter.as_ref().map(|filter| (filter.at, self.of(filter)));
        let body = self.of(&inner.body);
        self.scope.pop();
        let is_condition = inner.kind != MacroKind::Map;
        let conditions = filter.into_iter().chain(is_condition.then(|| (inner.body.at, body.clone())));
        for (at, found) in conditions {
            if !found.fits(&Type::Bool) {
                self.wrong(at, format!("expected type 'bool' but found '{found}'"));
            }
        }
        match inner.kind {
            MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne => Type::Bool,
            MacroKind::Map => Type::list(body),
            MacroKind::Filter => Type::list(item),
        }
    }

    fn no_overload(&mut self, at: usize, name: &str, types: &[Type]) -> Type {
        self.wrong(at, format!("found no matching overload for '{name}' applied to '({})'", list(types)))
    }
}

fn list(types: &[Type]) -> String {
    types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ")
}

/// What is in an optional, and whether it was one.
fn unwrapped(found: &Type) -> (&Type, bool) {
    match found {
        Type::Optional(inner) => (inner, true),
        other => (other, false),
    }
}

fn common(types: &[Type]) -> Type {
    match types {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => first.clone(),
        _ => Type::Dyn,
    }
}

fn named(kind: &'static str) -> Type {
    match kind {
        "string" => Type::Text,
        "bool" => Type::Bool,
        "dyn" => Type::Dyn,
        "list(string)" => Type::list(Type::Text),
        "map(string, list(string))" => Type::Map(Rc::new(Type::Text), Rc::new(Type::list(Type::Text))),
        name => Type::Struct(name),
    }
}

fn binary(sign: &str, left: &Type, right: &Type) -> Option<Type> {
    let both = |wanted: &Type| left.fits(wanted) && right.fits(wanted);
    let known = || if *left == Type::Dyn { right.clone() } else { left.clone() };
    match sign {
        "==" | "!=" => left.fits(right).then_some(Type::Bool),
        "<" | "<=" | ">" | ">=" => {
            let numbers = left.is_numeric() && right.is_numeric();
            (numbers || both(&Type::Text) || both(&Type::Bool)).then_some(Type::Bool)
        }
        "in" => match right {
            Type::List(item) => left.fits(item).then_some(Type::Bool),
            Type::Map(key, _) => left.fits(key).then_some(Type::Bool),
            Type::Dyn => Some(Type::Bool),
            _ => None,
        },
        "+" if both(&Type::Text) => Some(known()),
        "+" if both(&Type::list(Type::Dyn)) => Some(if left == right { left.clone() } else { Type::list(Type::Dyn) }),
        "%" if *left == Type::Double || *right == Type::Double => None,
        _ => (left.is_numeric() && right.is_numeric() && left.fits(right)).then(known),
    }
}
