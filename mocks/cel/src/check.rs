//! The type check of a CEL expression before it runs. The check finds undeclared names, fields that a request does not
//! have, and arguments that do not fit operators and functions.
//!
//! Owns the type rules, with the error messages of the real checker. The objects of a review have the type `dyn`, as in
//! a real server, so errors in their use appear only at run time. In rules of a schema, `self` has the type that the
//! schema declares.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use super::decl::Decl;
use super::parse::{Kind, Node};
use super::pattern::{self, Pattern};
use super::types::{self, DURATION, JSON_PATCH, NAMES, OBJECT, REQUEST, TIME, Type};
use super::{Issue, functions, library, re2};
use super::{time, written};

mod macros;

/// Maximum number of compiled patterns that an expression keeps. Further patterns are compiled when the expression
/// runs, and their cost is subtracted from the budget.
const PATTERNS_MAX: usize = 8;
/// Maximum number of errors that are collected for one expression.
const ISSUES_MAX: usize = 10;

/// The names that an expression may use, with their types.
pub(super) enum Names<'d> {
    /// `object`, `oldObject` and `request` of an admission review.
    Review,
    /// The names of `Review`, and `params`, `namespaceObject` and `variables` of an admission policy.
    Policy,
    /// The names of `Policy`, and the types `Object` and `JSONPatch` for mutations.
    Mutation,
    /// `self` and `oldSelf` of a rule in a schema; `oldSelf` may be optional.
    Value { decl: &'d Arc<Decl>, optional_old: bool },
}

pub(super) struct Checked {
    pub answer: Type,
    /// Compiled patterns that the expression contains as literals, at most [`PATTERNS_MAX`].
    pub patterns: HashMap<String, Arc<Pattern>>,
    pub compiled: usize,
    pub uses_old: bool,
    /// The error at run time if an object literal has another type than the field that contains it.
    pub misnamed: Option<String>,
}

pub(super) enum Refused {
    Issues(Vec<Issue>),
    /// The types are right, but a regular expression in the expression does not compile.
    Unfit(re2::Refused),
}

/// The error for the variable `authorizer`, which a real server has and this server does not.
const NO_AUTHORIZER: &str =
    "the variable 'authorizer' is not supported by this server: leave it out, or use a real control plane";

/// Functions and macros that a real server has and this server lacks, or supports only with other numbers of arguments.
const ELSEWHERE: &[&str] = &["image", "isImage"];

/// Returns the type of an expression, or its errors.
pub(super) fn check(root: &Node, names: &Names<'_>) -> Result<Checked, Refused> {
    let review = || vec![("object", Type::Dyn), ("oldObject", Type::Dyn), ("request", Type::Struct(REQUEST))];
    let scope = match names {
        Names::Review => review(),
        Names::Policy | Names::Mutation => {
            let more = ["params", "namespaceObject", "variables"].map(|name| (name, Type::Dyn));
            review().into_iter().chain(more).collect()
        }
        Names::Value { decl, optional_old } => {
            let found = Type::of(decl);
            let old = if *optional_old { Type::optional(found.clone()) } else { found.clone() };
            vec![("self", found), ("oldSelf", old)]
        }
    };
    let given = scope.len();
    let is_review = matches!(names, Names::Review | Names::Policy | Names::Mutation);
    let mut checker = Checker {
        scope,
        given,
        is_review,
        mutates: matches!(names, Names::Mutation),
        misnamed: None,
        uses_old: false,
        patterns: HashMap::new(),
        compiled: 0,
        issues: Vec::new(),
        unfit: None,
    };
    let answer = checker.of(root);
    if !checker.issues.is_empty() {
        return Err(Refused::Issues(checker.issues));
    }
    let Checker { patterns, compiled, uses_old, unfit, misnamed, .. } = checker;
    unfit.map_or(Ok(Checked { answer, patterns, compiled, uses_old, misnamed }), |why| Err(Refused::Unfit(why)))
}

struct Checker<'a> {
    /// The variables of the expression, then those of the surrounding macros, the innermost last.
    scope: Vec<(&'a str, Type)>,
    given: usize,
    is_review: bool,
    /// Whether the expression may make objects and JSON patches.
    mutates: bool,
    misnamed: Option<String>,
    uses_old: bool,
    patterns: HashMap<String, Arc<Pattern>>,
    compiled: usize,
    issues: Vec<Issue>,
    unfit: Option<re2::Refused>,
}

impl<'a> Checker<'a> {
    /// Adds an error and returns the type `dyn`, which is accepted everywhere.
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
            Kind::List(_) | Kind::Map(_) => self.literal(node, false),
            Kind::Message { name, fields } => self.message(node.at, name, fields),
            // It occurs only in a literal.
            Kind::Maybe(inner) => self.of(inner),
            Kind::Macro(inner) => self.in_macro(node.at, inner),
        }
    }

    /// The type of a list or map literal. All items of the literal must have the same type, unless the literal is
    /// `mixed`: an argument of `format`.
    fn literal(&mut self, node: &'a Node, mixed: bool) -> Type {
        match &node.kind {
            Kind::List(items) => Type::list(self.common(items, mixed)),
            Kind::Map(entries) => {
                let keys = self.common(entries.iter().map(|(key, _)| key), mixed);
                let values = self.common(entries.iter().map(|(_, value)| value), mixed);
                Type::Map(Rc::new(keys), Rc::new(values))
            }
            _ => self.of(node),
        }
    }

    fn common(&mut self, parts: impl IntoIterator<Item = &'a Node>, mixed: bool) -> Type {
        let mut common: Option<Type> = None;
        for part in parts {
            let found = match &part.kind {
                Kind::Maybe(inner) => match self.of(inner) {
                    Type::Optional(inner) => (*inner).clone(),
                    Type::Dyn => Type::Dyn,
                    other => self.wrong(part.at, format!("expected type 'optional_type({other})' but found '{other}'")),
                },
                _ => self.literal(part, mixed),
            };
            let is_nothing = found == Type::Dyn && matches!(part.kind, Kind::Maybe(_));
            common = Some(match common {
                None => found,
                // A part without a value has the type of the others.
                Some(known) if known == found || is_nothing => known,
                Some(known) if !mixed && !are_alike(&known, &found) => {
                    self.wrong(part.at, format!("expected type '{known}' but found '{found}'"))
                }
                Some(_) => Type::Dyn,
            });
        }
        common.unwrap_or(Type::Dyn)
    }

    /// The type of a literal such as `Object.spec{replicas: 1}`. A field of an object may hold a value of any type.
    fn message(&mut self, at: usize, name: &str, fields: &'a [(String, Node)]) -> Type {
        let is_object = name == "Object" || name.starts_with("Object.");
        if !self.mutates || !(is_object || name == "JSONPatch") {
            return self.wrong(at, format!("undeclared reference to '{name}' (in container '')"));
        }
        for (field, value) in fields {
            // The usual distance from the mark of the compiler, which is the colon.
            let colon = 2.min(value.at);
            let found = match &value.kind {
                Kind::Maybe(inner) => match self.of(inner) {
                    Type::Optional(inner) => (*inner).clone(),
                    other => other,
                },
                _ => self.of(value),
            };
            let wanted = match (is_object, field.as_str()) {
                (true, _) | (false, "value") => Type::Dyn,
                (false, "op" | "path" | "from") => Type::Text,
                _ => {
                    let why = format!("expected type of field '{field}' is '' but provided type is '{found}'");
                    self.wrong(value.at - colon, why);
                    continue;
                }
            };
            if !found.fits(&wanted) {
                let why = format!("expected type of field '{field}' is '{wanted}' but provided type is '{found}'");
                self.wrong(value.at - colon, why);
            }
            if is_object || field == "value" {
                let held = if is_object { Some(format!("{name}.{field}")) } else { None };
                self.misnamed = self.misnamed.take().or_else(|| misnamed(value, held.as_deref()));
            }
        }
        match name {
            "Object" => OBJECT,
            "JSONPatch" => JSON_PATCH,
            _ => Type::Dyn,
        }
    }

    fn ident(&mut self, at: usize, name: &str) -> Type {
        if let Some(index) = self.scope.iter().rposition(|(known, _)| *known == name) {
            self.uses_old |= index < self.given && name == "oldSelf";
            return self.scope[index].1.clone();
        }
        match name {
            "authorizer" if self.is_review => self.wrong(at, NO_AUTHORIZER.to_owned()),
            name if NAMES.contains(&name) => Type::Meta,
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
        if let ("format", Some(Node { kind: Kind::Text(written), .. }), [Node { kind: Kind::List(items), .. }]) =
            (name, target, arguments)
        {
            return self.format(at, written, items);
        }
        let target = target.map(|target| self.of(target));
        let mixed = name == "format";
        let types: Vec<Type> = arguments.iter().map(|argument| self.literal(argument, mixed)).collect();
        if !functions::is_known(name) && !library::is_known(name) {
            let why = if ELSEWHERE.contains(&name) {
                format!("the function '{name}' is not supported by this server")
            } else {
                format!("undeclared reference to '{name}' (in container '')")
            };
            return self.wrong(at, why);
        }
        if self.written_out(name, target.is_some(), arguments).is_break() {
            return Type::Dyn;
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

    /// Checks `'…'.format([…])`: each item must have a type that its verb in the text accepts.
    fn format(&mut self, at: usize, written: &str, items: &'a [Node]) -> Type {
        let before = self.issues.len();
        let types: Vec<Type> = items.iter().map(|item| self.literal(item, true)).collect();
        let is_whole = !items.iter().any(|item| matches!(item.kind, Kind::Maybe(_)));
        if is_whole
            && self.issues.len() == before
            && let Err((item, why)) = written::check(written, &types)
        {
            return self.wrong(item.and_then(|item| items.get(item)).map_or(at, |item| item.at), why.to_string());
        }
        Type::Text
    }

    /// Checks literal arguments, as a real server does before an expression runs; stops at the first error.
    fn written_out(&mut self, name: &str, is_method: bool, arguments: &'a [Node]) -> ControlFlow<()> {
        match (name, is_method, arguments) {
            ("matches" | "find" | "findAll", true, [Node { kind: Kind::Text(written), at, .. }, ..])
            | ("matches", false, [_, Node { kind: Kind::Text(written), at, .. }]) => {
                self.pattern(*at, written, name == "matches" && is_method)
            }
            ("duration" | "timestamp", false, [argument]) => {
                let right = match (&argument.kind, name) {
                    (Kind::Text(text), "duration") => time::read_span(text).is_some(),
                    (Kind::Text(text), _) => time::read(text).is_some(),
                    (Kind::Int(seconds), "timestamp") => time::from_second(*seconds).is_some(),
                    _ => true,
                };
                if right {
                    return ControlFlow::Continue(());
                }
                self.wrong(argument.at, format!("invalid {name} argument"));
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// Compiles a literal pattern. If `is_checked` is true, an invalid pattern is a type error, as for `matches` in a
    /// real server; else the error says that the expression cannot run.
    fn pattern(&mut self, at: usize, written: &str, is_checked: bool) -> ControlFlow<()> {
        if self.patterns.contains_key(written) {
            return ControlFlow::Continue(());
        }
        self.compiled += 1;
        match pattern::compile(written) {
            Ok(made) if made.is_small() && self.patterns.len() < PATTERNS_MAX => {
                self.patterns.insert(written.to_owned(), Arc::new(made));
            }
            Ok(_) => {}
            Err(_) if is_checked => {
                self.wrong(at, "invalid matches argument".to_owned());
                return ControlFlow::Break(());
            }
            Err(why) => {
                self.unfit.get_or_insert(why);
            }
        }
        ControlFlow::Continue(())
    }

    fn no_overload(&mut self, at: usize, name: &str, types: &[Type]) -> Type {
        self.wrong(at, format!("found no matching overload for '{name}' applied to '({})'", list(types)))
    }
}

/// Returns an error if an object literal, alone or in a list or map, has another type than `wanted`, the type of its
/// field. The fields of the literal were checked before.
fn misnamed(value: &Node, wanted: Option<&str>) -> Option<String> {
    match &value.kind {
        Kind::Maybe(inner) => misnamed(inner, wanted),
        Kind::List(items) => items.iter().find_map(|item| misnamed(item, wanted)),
        Kind::Map(entries) => entries.iter().find_map(|(_, item)| misnamed(item, wanted)),
        Kind::Message { name, .. } => {
            let wanted = wanted.filter(|wanted| name != wanted)?;
            let why = "which matches field name path from root Object type";
            Some(format!("unexpected type name \"{name}\", expected \"{wanted}\", {why}"))
        }
        _ => None,
    }
}

fn list(types: &[Type]) -> String {
    types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ")
}

/// The type that `found` contains if it is an optional type, else `found`; and whether `found` is optional.
fn unwrapped(found: &Type) -> (&Type, bool) {
    match found {
        Type::Optional(inner) => (inner, true),
        other => (other, false),
    }
}

/// Whether two items of a literal have the same type. The item type of an empty list or an empty optional fits every
/// type.
fn are_alike(one: &Type, other: &Type) -> bool {
    let only_one_is = |of: &Type| (one == of) != (other == of);
    one.fits(other) && !only_one_is(&Type::Dyn) && !only_one_is(&Type::Null)
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
        "+" | "-" if is_temporal(left) || is_temporal(right) => temporal(sign, left, right),
        "+" if both(&Type::list(Type::Dyn)) => {
            left.fits(right).then(|| if left == right { left.clone() } else { Type::list(Type::Dyn) })
        }
        "%" if *left == Type::Double || *right == Type::Double => None,
        _ => (left.is_numeric() && right.is_numeric() && left.fits(right)).then(known),
    }
}

fn is_temporal(found: &Type) -> bool {
    *found == TIME || *found == DURATION
}

/// The type of a sum or difference of times and durations; `dyn` if several types are possible.
fn temporal(sign: &str, left: &Type, right: &Type) -> Option<Type> {
    let answers =
        [(TIME, DURATION, TIME), (DURATION, TIME, TIME), (DURATION, DURATION, DURATION), (TIME, TIME, DURATION)];
    let fitting = answers.into_iter().filter(|(one, other, _)| match sign {
        "+" => *one != TIME || *other != TIME,
        _ => *one == TIME || *other == DURATION,
    });
    let mut found = None;
    for (_, _, answer) in fitting.filter(|(one, other, _)| left.fits(one) && right.fits(other)) {
        found = match found {
            None => Some(answer),
            Some(known) if known == answer => Some(known),
            Some(_) => Some(Type::Dyn),
        };
    }
    found
}
