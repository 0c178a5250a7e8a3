//! What an expression will be, before it runs: names that nobody declared, fields that a request does not have, and
//! operators and functions that do not fit.
//!
//! Owns what fits what, in the words of the real checker. The objects of a review are of the type `dyn`, as in a real server, so
//! whatever touches them is found out when it runs; the value of a rule has the types of its schema.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::Issue;
use super::decl::Decl;
use super::functions;
use super::library;
use super::parse::{Kind, Macro, MacroKind, Node};
use super::pattern::{self, Pattern};
use super::types::{self, DURATION, REQUEST, TIME, Type};

/// Compiled patterns that an expression keeps; others are compiled when it runs, on its budget.
const PATTERNS_MAX: usize = 8;
/// Issues that are collected at most.
const ISSUES_MAX: usize = 10;

/// What an expression may look at, with its type.
pub(super) enum Names<'d> {
    /// The objects of an admission review.
    Review,
    /// `self` and `oldSelf`, which may be declared to be optional.
    Value { decl: &'d Arc<Decl>, optional_old: bool },
}

/// What the check found out.
pub(super) struct Checked {
    pub answer: Type,
    /// Some of the patterns that are written out, compiled.
    pub patterns: HashMap<String, Arc<Pattern>>,
    /// How many patterns were compiled.
    pub compiled: usize,
    /// `oldSelf` is looked at.
    pub uses_old: bool,
}

/// Names of types that are values.
const TYPE_NAMES: &[&str] = &["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type"];

/// Said about `authorizer`, which a real server has and this one does not.
const NO_AUTHORIZER: &str =
    "the variable 'authorizer' is not supported by this server: leave it out, or use a real control plane";

/// Functions and macros that a real server has and this one does not.
const ELSEWHERE: &[&str] = &[
    "all",
    "exists",
    "existsOne",
    "exists_one",
    "isSemver",
    "jsonpatch",
    "semver",
    "transformList",
    "transformMap",
    "transformMapEntry",
];

/// The type of an expression, or what is wrong with it.
pub(super) fn check(root: &Node, names: &Names<'_>) -> Result<Checked, Vec<Issue>> {
    let scope = match names {
        Names::Review => vec![("object", Type::Dyn), ("oldObject", Type::Dyn), ("request", Type::Struct(REQUEST))],
        Names::Value { decl, optional_old } => {
            let found = Type::of(decl);
            let old = if *optional_old { Type::optional(found.clone()) } else { found.clone() };
            vec![("self", found), ("oldSelf", old)]
        }
    };
    let given = scope.len();
    let is_review = matches!(names, Names::Review);
    let mut checker =
        Checker { scope, given, is_review, uses_old: false, patterns: HashMap::new(), compiled: 0, issues: Vec::new() };
    let answer = checker.of(root);
    if !checker.issues.is_empty() {
        return Err(checker.issues);
    }
    let Checker { patterns, compiled, uses_old, .. } = checker;
    Ok(Checked { answer, patterns, compiled, uses_old })
}

struct Checker<'a> {
    /// Variables that are given and those of the macros around, the innermost last.
    scope: Vec<(&'a str, Type)>,
    given: usize,
    is_review: bool,
    uses_old: bool,
    patterns: HashMap<String, Arc<Pattern>>,
    compiled: usize,
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
            Kind::Bytes(_) => Type::Bytes,
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
        if let Some(index) = self.scope.iter().rposition(|(known, _)| *known == name) {
            self.uses_old |= index < self.given && name == "oldSelf";
            return self.scope[index].1.clone();
        }
        match name {
            "authorizer" if self.is_review => self.wrong(at, NO_AUTHORIZER.to_owned()),
            name if TYPE_NAMES.contains(&name) => Type::Meta,
            _ => self.wrong(at, format!("undeclared reference to '{name}' (in container '')")),
        }
    }

    fn select(&mut self, at: usize, of: &'a Node, field: &str) -> Type {
        let of = self.of(of);
        let (inside, wraps) = unwrapped(&of);
        let found = match inside {
            Type::Dyn => Type::Dyn,
            Type::Map(_, value) => (**value).clone(),
            Type::Object(declared) => match declared.decl() {
                Decl::Object(fields) => match fields.find(field) {
                    Some((_, decl)) => Type::of(decl),
                    None => self.wrong(at, format!("undefined field '{field}'")),
                },
                _ => Type::Dyn,
            },
            Type::Struct(name) => match types::field_of(name, field) {
                Some(found) => found,
                None => self.wrong(at, format!("undefined field '{field}'")),
            },
            other => self.wrong(at, format!("type '{other}' does not support field selection")),
        };
        if wraps { Type::optional(found) } else { found }
    }

    fn call(&mut self, at: usize, target: Option<&'a Node>, name: &str, arguments: &'a [Node]) -> Type {
        let target = target.map(|target| self.of(target));
        let types: Vec<Type> = arguments.iter().map(|argument| self.of(argument)).collect();
        if !functions::is_known(name) && !library::is_known(name) {
            let why = if ELSEWHERE.contains(&name) {
                format!("the function '{name}' is not supported by this server")
            } else {
                format!("undeclared reference to '{name}' (in container '')")
            };
            return self.wrong(at, why);
        }
        // A pattern that is written out is looked at now.
        if let ("matches" | "find" | "findAll", Some(Node { kind: Kind::Text(written), at, .. })) =
            (name, pattern_of(target.is_some(), arguments))
            && !self.patterns.contains_key(written)
        {
            self.compiled += 1;
            match pattern::compile(written) {
                Ok(made) if made.is_small() && self.patterns.len() < PATTERNS_MAX => {
                    self.patterns.insert(written.clone(), Arc::new(made));
                }
                Ok(_) => {}
                Err(why) => return self.wrong(*at, format!("error parsing regexp: {why}")),
            }
        }
        let found = functions::answers(name, target.as_ref(), &types);
        match found.or_else(|| library::answers(name, target.as_ref(), &types)) {
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
        if matches!(inner.kind, MacroKind::OptMap | MacroKind::OptFlatMap) {
            return self.in_optional(at, &over, inner);
        }
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
            MacroKind::Filter => Type::list(item),
            _ => Type::list(body),
        }
    }

    /// `over.optMap(x, body)` and `over.optFlatMap(x, body)`.
    fn in_optional(&mut self, at: usize, over: &Type, inner: &'a Macro) -> Type {
        let item = match over {
            Type::Optional(item) => (**item).clone(),
            Type::Dyn => Type::Dyn,
            other => {
                let name = if inner.kind == MacroKind::OptMap { "optMap" } else { "optFlatMap" };
                return self.wrong(at, format!("found no matching overload for '{name}' applied to '{other}.()'"));
            }
        };
        self.scope.push((&inner.variable, item));
        let body = self.of(&inner.body);
        self.scope.pop();
        match (inner.kind, body) {
            (MacroKind::OptMap, body) => Type::optional(body),
            (_, body @ (Type::Optional(_) | Type::Dyn)) => body,
            (_, other) => self.wrong(inner.body.at, format!("expected type 'optional_type' but found '{other}'")),
        }
    }

    fn no_overload(&mut self, at: usize, name: &str, types: &[Type]) -> Type {
        self.wrong(at, format!("found no matching overload for '{name}' applied to '({})'", list(types)))
    }
}

/// The argument that is a pattern.
fn pattern_of(has_target: bool, arguments: &[Node]) -> Option<&Node> {
    arguments.get(usize::from(!has_target))
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

fn binary(sign: &str, left: &Type, right: &Type) -> Option<Type> {
    let both = |wanted: &Type| left.fits(wanted) && right.fits(wanted);
    let known = || if *left == Type::Dyn { right.clone() } else { left.clone() };
    match sign {
        "==" | "!=" => left.fits(right).then_some(Type::Bool),
        "<" | "<=" | ">" | ">=" => {
            let numbers = left.is_numeric() && right.is_numeric();
            let fits = [Type::Text, Type::Bool, Type::Bytes, TIME, DURATION].iter().any(both);
            (numbers || fits).then_some(Type::Bool)
        }
        "in" => match right {
            Type::List(item) => left.fits(item).then_some(Type::Bool),
            Type::Map(key, _) => left.fits(key).then_some(Type::Bool),
            Type::Dyn => Some(Type::Bool),
            _ => None,
        },
        "+" if both(&Type::Text) || both(&Type::Bytes) => Some(known()),
        "+" | "-" if both(&DURATION) => Some(known()),
        "+" if (left.fits(&TIME) && right.fits(&DURATION)) || (left.fits(&DURATION) && right.fits(&TIME)) => Some(TIME),
        "-" if left.fits(&TIME) && right.fits(&DURATION) => Some(TIME),
        "-" if both(&TIME) => Some(DURATION),
        "+" if both(&Type::list(Type::Dyn)) => Some(if left == right { left.clone() } else { Type::list(Type::Dyn) }),
        "%" if *left == Type::Double || *right == Type::Double => None,
        _ => (left.is_numeric() && right.is_numeric() && left.fits(right)).then(known),
    }
}
