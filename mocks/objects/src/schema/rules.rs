//! Compiles the CEL rules of a schema, `x-kubernetes-validations` (KEP-2876; Kubernetes documentation, "Custom
//! Resources: validation rules").
//!
//! Owns the checks of a rule's fields, with the real server's messages. Each rule is compiled once for each version of
//! the definition; `judge` evaluates the rule on objects.

use std::sync::Arc;

use mock_cel::{Decl, Fields, Order, Program, Wanted};
use serde_json::Value;

use super::{Additional, Format, Kind, ListType, Schema};
use crate::status::Cause;

/// Maximum number of rules in the schema of one version. Each rule may keep compiled patterns in memory. The largest
/// definitions in use have a few hundred rules.
const RULES_MAX: usize = 1_000;
/// Maximum number of regular expressions in the rules of one version; compiling each takes up to some milliseconds.
const PATTERNS_MAX: usize = 2_000;
/// Longest message of a rule in bytes, as in the API.
const MESSAGE_MAX_BYTES: usize = 2_048;
const KEY: &str = "x-kubernetes-validations";
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// The rules of one schema, without the rules of schemas below it.
#[derive(Debug)]
pub(super) struct Rules {
    pub decl: Arc<Decl>,
    pub list: Vec<Rule>,
}

#[derive(Debug)]
pub(super) struct Rule {
    pub program: Program,
    /// The source of the rule, without blanks around it.
    pub source: String,
    /// The message of the rule; empty if there is none.
    pub message: String,
    pub expression: Option<Program>,
    pub reason: &'static str,
    /// The path of the field that errors of the rule name, relative to the rule's value.
    pub field: Option<String>,
    pub optional_old: bool,
    /// Whether the rule is below `allOf`. An update never tolerates errors of such a rule, even in an unchanged value.
    pub in_all_of: bool,
}

/// Compiles the rules of a schema whose other keywords are valid.
pub(super) fn compile(schema: &mut Schema, raw: &Value, at: &str) -> Vec<Cause> {
    let mut compiler = Compiler { causes: Vec::new(), rules: 0, patterns: 0 };
    compiler.node(schema, SchemaNode { raw, at, is_object: true, loose: None });
    let bounds = [(compiler.rules, RULES_MAX, "rules"), (compiler.patterns, PATTERNS_MAX, "patterns in rules")];
    match bounds.into_iter().find(|(count, most, _)| count > most) {
        Some((count, most, what)) => {
            let message = format!("Too many: {count}: this server takes {most} {what}");
            vec![Cause { reason: "FieldValueTooMany", field: at.to_owned(), message }]
        }
        None => compiler.causes,
    }
}

struct Compiler {
    causes: Vec<Cause>,
    rules: usize,
    patterns: usize,
}

/// A schema in a definition, with its path.
#[derive(Clone, Copy)]
struct SchemaNode<'p> {
    raw: &'p Value,
    at: &'p str,
    is_object: bool,
    /// The path of the nearest list around the schema whose items have no keys. Values in such a list have no old
    /// values.
    loose: Option<&'p str>,
}

impl<'p> SchemaNode<'p> {
    fn below<'c>(&self, raw: &'c Value, at: &'c str) -> SchemaNode<'c>
    where
        'p: 'c,
    {
        SchemaNode { raw, at, is_object: false, loose: self.loose }
    }
}

impl Compiler {
    /// Compiles the schemas below `schema`, then `schema` itself; returns the declared type of the schema's values.
    fn node(&mut self, schema: &mut Schema, mut place: SchemaNode<'_>) -> Option<Arc<Decl>> {
        place.is_object |= schema.embedded;
        let Some(decl) = self.decl(schema, place) else {
            self.undeclared(place);
            return None;
        };
        let decl = Arc::new(decl);
        let list = self.rules(schema, &decl, place);
        schema.rules = (!list.is_empty()).then(|| Box::new(Rules { decl: decl.clone(), list }));
        Some(decl)
    }

    /// The declared type of a schema; `None` if the schema has no type.
    fn decl(&mut self, schema: &mut Schema, place: SchemaNode<'_>) -> Option<Decl> {
        Some(match schema.kind {
            Kind::IntOrString => Decl::Dyn,
            Kind::Boolean => Decl::Bool,
            Kind::Integer => Decl::Int,
            Kind::Number => Decl::Double,
            Kind::Text => match schema.format {
                Some(Format::Byte) => Decl::Bytes,
                Some(Format::DateTime) => Decl::Time,
                Some(Format::Date) => Decl::Date,
                Some(Format::Duration) => Decl::Duration,
                _ => Decl::Text,
            },
            Kind::Array => {
                let (order, loose) = match &schema.list {
                    ListType::Map(keys) => (Order::Keys(keys.clone()), place.loose),
                    ListType::Set => (Order::Set, place.loose.or(Some(place.at))),
                    ListType::Atomic => (Order::Atomic, place.loose.or(Some(place.at))),
                };
                let at = format!("{}.items", place.at);
                let below = SchemaNode { loose, ..place.below(&place.raw["items"], &at) };
                Decl::List { item: self.node(schema.items.as_deref_mut()?, below)?, order }
            }
            Kind::Object => self.object(schema, place)?,
            Kind::Any => return None,
        })
    }

    fn object(&mut self, schema: &mut Schema, place: SchemaNode<'_>) -> Option<Decl> {
        if let Additional::Like(like) = &mut schema.additional {
            let at = format!("{}.additionalProperties", place.at);
            let item = self.node(like, place.below(&place.raw["additionalProperties"], &at));
            return Some(Decl::Map(item?));
        }
        let mut fields = Fields::default();
        for (name, below) in &mut schema.properties {
            // The server itself checks the metadata.
            if place.is_object && name == "metadata" {
                continue;
            }
            let at = format!("{}.properties[{name}]", place.at);
            if let Some(decl) = self.node(below, place.below(&place.raw["properties"][name.as_str()], &at)) {
                fields.insert(name, decl);
            }
        }
        if place.is_object {
            let text = Arc::new(Decl::Text);
            let mut metadata = Fields::default();
            metadata.insert("name", text.clone());
            metadata.insert("generateName", text.clone());
            fields.insert("metadata", Arc::new(Decl::Object(metadata)));
            fields.insert("apiVersion", text.clone());
            fields.insert("kind", text);
        }
        Some(Decl::Object(fields))
    }

    /// Refuses a rule in a schema without a declared type.
    fn undeclared(&mut self, place: SchemaNode<'_>) {
        let SchemaNode { raw, at, .. } = place;
        if rules_of(raw).next().is_some() {
            let message = format!(
                "Internal error: rule declared on schema that does not support validation rules type: '{}' \
                 x-kubernetes-preserve-unknown-fields: '{}'",
                text(raw, "type"),
                raw["x-kubernetes-preserve-unknown-fields"] == Value::Bool(true)
            );
            self.causes.push(Cause { reason: "InternalError", field: format!("{at}.{KEY}"), message });
        }
    }

    fn rules(&mut self, schema: &Schema, decl: &Arc<Decl>, place: SchemaNode<'_>) -> Vec<Rule> {
        let SchemaNode { raw, at, loose, .. } = place;
        let mut list = Vec::new();
        let below = raw["allOf"].as_array().into_iter().flatten().enumerate();
        let all_of = below.flat_map(|(index, part)| {
            let at = format!("{at}.allOf[{index}]");
            rules_of(part).map(move |(number, rule)| (format!("{at}.{KEY}[{number}]"), rule, true))
        });
        let own = rules_of(raw).map(|(number, rule)| (format!("{at}.{KEY}[{number}]"), rule, false));
        for (at, rule, in_all_of) in own.chain(all_of) {
            self.rules += 1;
            if self.rules > RULES_MAX || self.patterns > PATTERNS_MAX {
                break;
            }
            let before = self.causes.len();
            let field = self.form(schema, rule, &at);
            if self.causes.len() > before {
                continue;
            }
            if let Some(made) = self.rule(decl, rule, &at, loose) {
                list.push(Rule { field, in_all_of, ..made });
            }
        }
        list
    }

    /// Checks all fields of a rule except its expressions; returns the path of the field that errors of the rule name.
    fn form(&mut self, schema: &Schema, rule: &Value, at: &str) -> Option<String> {
        let (source, message) = (text(rule, "rule"), text(rule, "message"));
        let breaks = |text: &str| text.contains(['\n', '\r']);
        let quoted = |text: &str| Value::from(text).to_string();
        let mut invalid = |key: &str, shown: &str, why: &str| {
            self.causes.push(Cause::invalid(&format!("{at}.{key}"), &quoted(shown), why));
        };
        if !message.is_empty() && message.trim().is_empty() {
            invalid("message", message, "message must be non-empty if specified");
        } else if message.len() > MESSAGE_MAX_BYTES {
            let start: String = message.chars().take(10).collect();
            invalid("message", &format!("{start}..."), "message must have a maximum length of 2048 characters");
        } else if breaks(message.trim()) {
            invalid("message", message, "message must not contain line breaks");
        }
        let path = text(rule, "fieldPath");
        let mut field = None;
        if !path.is_empty() {
            if path.trim().is_empty() {
                invalid("fieldPath", path, "fieldPath must be non-empty if specified");
            }
            if breaks(path) {
                invalid("fieldPath", path, "fieldPath must not contain line breaks");
            }
            match field_of(schema, path) {
                Ok(found) => field = Some(found),
                Err(why) => invalid("fieldPath", path, &format!("fieldPath must be a valid path: {why}")),
            }
        }
        let mut required = |key: &str, why: &str| self.causes.push(Cause::required(&format!("{at}.{key}"), why));
        if source.trim().is_empty() {
            required("rule", "rule is not specified");
        } else if breaks(source.trim()) && message.trim().is_empty() {
            required("message", "message must be specified if rule contains line breaks");
        }
        let expression = text(rule, "messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            required("messageExpression", "messageExpression must be non-empty if specified");
        }
        if let Some(reason) = rule["reason"].as_str().filter(|reason| !REASONS.contains(reason)) {
            let supported = REASONS.map(quoted).join(", ");
            let message = format!("Unsupported value: {}: supported values: {supported}", quoted(reason));
            self.causes.push(Cause { reason: "FieldValueNotSupported", field: format!("{at}.reason"), message });
        }
        field
    }

    fn rule(&mut self, decl: &Arc<Decl>, rule: &Value, at: &str, loose: Option<&str>) -> Option<Rule> {
        let (source, message) = (text(rule, "rule"), text(rule, "message"));
        let optional_old = rule["optionalOldSelf"] == Value::Bool(true);
        let mut compile = |key: &str, wanted: Wanted| {
            let made = Program::compile_for(decl, optional_old, wanted, text(rule, key));
            made.map_err(|why| self.causes.push(Cause::invalid(&format!("{at}.{key}"), &shown(rule), &why))).ok()
        };
        let program = compile("rule", Wanted::Truth)?;
        let expression = match text(rule, "messageExpression") {
            "" => None,
            _ => Some(compile("messageExpression", Wanted::Text)?),
        };
        self.patterns += program.compiled + expression.as_ref().map_or(0, |expression| expression.compiled);
        let looks_back = program.uses_old || expression.as_ref().is_some_and(|expression| expression.uses_old);
        if let (true, Some(loose)) = (looks_back, loose) {
            let why = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {loose}");
            self.causes.push(Cause::invalid(&format!("{at}.rule"), &Value::from(source).to_string(), &why));
            return None;
        }
        if !program.uses_old && !rule["optionalOldSelf"].is_null() {
            let why = "may not be set if oldSelf is not used in rule";
            self.causes.push(Cause::invalid(&format!("{at}.optionalOldSelf"), &optional_old.to_string(), why));
            return None;
        }
        let reason = REASONS.iter().find(|known| rule["reason"] == **known);
        Some(Rule {
            program,
            source: source.trim().to_owned(),
            message: message.trim().to_owned(),
            expression,
            reason: reason.copied().unwrap_or("FieldValueInvalid"),
            field: None,
            optional_old,
            in_all_of: false,
        })
    }
}

fn rules_of(raw: &Value) -> impl Iterator<Item = (usize, &Value)> {
    raw[KEY].as_array().into_iter().flatten().enumerate()
}

/// Whether a schema has rules itself, not only in its fields and items.
pub(super) fn are_at(raw: &Value) -> bool {
    let all_of = raw["allOf"].as_array().into_iter().flatten();
    std::iter::once(raw).chain(all_of).any(|raw| rules_of(raw).next().is_some())
}

/// Refuses rules in schemas below `anyOf`, `oneOf` and `not`, which cannot have rules.
pub(super) fn misplaced(raw: &Value, at: &str) -> Vec<Cause> {
    let several = |key: &'static str| {
        let list = raw[key].as_array().into_iter().flatten().enumerate();
        list.map(move |(index, part)| (format!("{key}[{index}]"), part))
    };
    let parts = several("anyOf").chain(several("oneOf")).chain(std::iter::once(("not".to_owned(), &raw["not"])));
    let wrong = parts.filter(|(_, part)| rules_of(part).next().is_some());
    wrong.map(|(name, _)| Cause::forbidden(&format!("{at}.{name}.{KEY}"), "must be empty to be structural")).collect()
}

fn text<'a>(rule: &'a Value, key: &str) -> &'a str {
    rule[key].as_str().unwrap_or_default()
}

/// The text of a rule as the real server shows it in an error.
fn shown(rule: &Value) -> String {
    let quoted = |key: &str| Value::from(text(rule, key)).to_string();
    // For a pointer it shows the address.
    let pointer = |key: &str| if rule[key].is_null() { "nil" } else { "0xc000000000" };
    format!(
        "apiextensions.ValidationRule{{Rule:{}, Message:{}, MessageExpression:{}, \
         Reason:(*apiextensions.FieldValueErrorReason)({}), FieldPath:{}, OptionalOldSelf:(*bool)({})}}",
        quoted("rule"),
        quoted("message"),
        quoted("messageExpression"),
        pointer("reason"),
        quoted("fieldPath"),
        pointer("optionalOldSelf")
    )
}

/// Checks a rule's `fieldPath` (`.spec.a`, `.labels['x']`) and returns the path as errors show it.
fn field_of(schema: &Schema, path: &str) -> Result<String, String> {
    let end = || "unexpected end of JSON path".to_owned();
    let (mut at, mut rest, mut field) = (schema, path, String::new());
    while !rest.is_empty() {
        let name = if let Some(behind) = rest.strip_prefix('.') {
            let length = behind.find(['.', '[', ']']).unwrap_or(behind.len());
            if length == 0 && behind.is_empty() {
                return Err(end());
            }
            rest = &behind[length.max(usize::from(length == 0))..];
            behind[..length].to_owned()
        } else if let Some(behind) = rest.strip_prefix('[') {
            let (name, after) = quoted_name(behind)?;
            rest = after
                .strip_prefix(']')
                .ok_or_else(|| after.chars().next().map_or_else(end, |found| format!("expected ] but got {found}")))?;
            name
        } else {
            let token = rest.split(['.', '[', ']']).next().filter(|token| !token.is_empty()).unwrap_or(rest);
            return Err(format!("expected [ or . but got: {token}"));
        };
        let nowhere = || "does not refer to a valid field".to_owned();
        if at.properties.is_empty() {
            let Additional::Like(like) = &at.additional else { return Err(nowhere()) };
            field = format!("{field}[{name}]");
            at = like;
        } else {
            at = at.property(&name).ok_or_else(nowhere)?;
            field = if field.is_empty() { name } else { format!("{field}.{name}") };
        }
    }
    Ok(field)
}

/// The name in a text such as `'a name'`, and the rest of the text.
fn quoted_name(text: &str) -> Result<(String, &str), String> {
    let wrong = || {
        let token = text.split(['.', '[', ']']).next().unwrap_or_default();
        format!("expected single quoted string but got {token}")
    };
    let mut name = String::new();
    let mut letters = text.strip_prefix('\'').ok_or_else(wrong)?.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\'' => return Ok((name, &text[at + 2..])),
            '\\' => {
                let (_, escaped) = letters.next().ok_or_else(wrong)?;
                name.push(match escaped {
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'v' => '\u{b}',
                    '\'' | '\\' => escaped,
                    other => return Err(format!("invalid string literal: invalid escape char \\{other}")),
                });
            }
            letter => name.push(letter),
        }
    }
    Err(wrong())
}
