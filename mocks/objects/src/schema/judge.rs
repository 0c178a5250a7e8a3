//! Evaluates the CEL rules of a schema on an object.
//!
//! Finds the old value of each value, tolerates errors in values that an update left unchanged ("Validation
//! ratcheting"), and owns the texts of errors. All rules of an object share one cost budget, so that no definition can
//! block the server.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::ops::ControlFlow;

use mock_cel::{Failed, Subject};
use serde_json::{Map, Value};

use super::rules::{Rule, Rules};
use super::{Additional, Kind, ListType, Schema};
use crate::status::Cause;

/// Largest CEL cost of evaluating one rule on one value, as in a real server.
const RULE_BUDGET: u64 = 1_000_000;
/// Largest CEL cost of evaluating all rules of an object. kube-apiserver allows 10,000,000; the limit here is lower,
/// because an evaluation occupies its thread.
const OBJECT_BUDGET: u64 = 5_000_000;
/// Maximum number of causes, and of warnings, that are collected.
const FOUND_MAX: usize = 64;
/// Longest message in bytes that a message expression may make, as in the API.
const MESSAGE_MAX_BYTES: usize = 5 * 1024;
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The result of all rules on an object.
#[derive(Debug, Default, PartialEq)]
pub struct Verdict {
    /// Why the object is refused.
    pub causes: Vec<Cause>,
    /// Warnings about errors in values that the update left unchanged.
    pub warnings: Vec<String>,
}

impl Schema {
    /// Whether this schema or a schema below it has CEL rules.
    pub fn has_rules(&self) -> bool {
        self.has_rules
    }

    /// Evaluates all rules on an object; `old` is the object's state before an update.
    pub fn judge(&self, value: &Value, old: Option<&Value>) -> Verdict {
        let mut walk = Walk { budget: OBJECT_BUDGET, path: String::new(), found: Verdict::default(), compared: None };
        let link = Link { here: old.map(|old| (value, old)), above: None };
        // The causes show whether the walk was cut short.
        let _ = walk.at(self, value, old, link, true);
        walk.found
    }
}

type Pair<'a> = (&'a Value, &'a Value);

/// How an update changed a value: the value, its old value if there is one, and the nearest parent with an old value.
#[derive(Clone, Copy)]
struct Link<'a> {
    here: Option<Pair<'a>>,
    above: Option<Pair<'a>>,
}

impl<'a> Link<'a> {
    fn key(self, name: &str) -> Self {
        let Some((new, old)) = self.here else { return self };
        // Both values are shown in the version of the request, so a change of these fields is not visible.
        if self.above.is_none() && matches!(name, "apiVersion" | "kind") {
            return Link { here: None, above: None };
        }
        Link { here: new.get(name).zip(old.get(name)), above: self.here }
    }

    /// An item of a list, with the item of the old list that has the same keys.
    fn item(self, item: &'a Value, old: Option<&'a Value>) -> Self {
        if self.here.is_none() { self } else { Link { here: old.map(|old| (item, old)), above: self.here } }
    }
}

/// The items of the old list, by their keys.
pub(super) struct Counterparts<'a> {
    keys: &'a [String],
    items: BTreeMap<String, &'a Value>,
}

impl<'a> Counterparts<'a> {
    pub(super) fn of(schema: &'a Schema, old: Option<&'a Vec<Value>>) -> Option<Self> {
        let (ListType::Map(keys), Some(old)) = (&schema.list, old) else { return None };
        Some(Self { keys, items: old.iter().map(|item| (key_of(keys, item), item)).collect() })
    }

    pub(super) fn find(&self, item: &Value) -> Option<&'a Value> {
        self.items.get(&key_of(self.keys, item)).copied()
    }
}

fn key_of(keys: &[String], item: &Value) -> String {
    keys.iter().map(|key| item[key.as_str()].to_string() + ",").collect()
}

struct Walk<'a> {
    budget: u64,
    path: String,
    found: Verdict,
    /// The last two values that were compared, and whether they are equal: items of a list often have the same parent.
    compared: Option<(Pair<'a>, bool)>,
}

impl<'a> Walk<'a> {
    fn at(
        &mut self,
        schema: &'a Schema,
        value: &'a Value,
        old: Option<&'a Value>,
        link: Link<'a>,
        is_object: bool,
    ) -> ControlFlow<()> {
        if value.is_null() || !schema.has_rules {
            return ControlFlow::Continue(());
        }
        let old = old.filter(|old| !old.is_null());
        if let Some(rules) = &schema.rules {
            self.ask(rules, schema.kind, value, old, link)?;
        }
        match value {
            Value::Object(object) => {
                let is_object = is_object || schema.embedded;
                self.object(schema, object, old.and_then(Value::as_object), link, is_object)
            }
            Value::Array(items) => {
                let Some(below) = schema.items.as_deref().filter(|below| below.has_rules) else {
                    return ControlFlow::Continue(());
                };
                let before = Counterparts::of(schema, old.and_then(Value::as_array));
                let length = self.path.len();
                for (index, item) in items.iter().enumerate() {
                    self.push_key(index);
                    let old = before.as_ref().and_then(|before| before.find(item));
                    let flow = self.at(below, item, old, link.item(item, old), false);
                    self.path.truncate(length);
                    flow?;
                }
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn object(
        &mut self,
        schema: &'a Schema,
        object: &'a Map<String, Value>,
        old: Option<&'a Map<String, Value>>,
        link: Link<'a>,
        is_object: bool,
    ) -> ControlFlow<()> {
        let length = self.path.len();
        for (name, value) in object {
            // The server itself checks the metadata.
            if is_object && name == "metadata" {
                continue;
            }
            let below = match (schema.property(name), &schema.additional) {
                (Some(below), _) => {
                    if length > 0 {
                        self.path.push('.');
                    }
                    self.path.push_str(name);
                    below
                }
                (None, Additional::Like(below)) => {
                    self.push_key(name);
                    &**below
                }
                _ => continue,
            };
            let flow = self.at(below, value, old.and_then(|old| old.get(name)), link.key(name), false);
            self.path.truncate(length);
            flow?;
        }
        ControlFlow::Continue(())
    }

    /// Evaluates the rules of one schema on one value.
    fn ask(
        &mut self,
        rules: &'a Rules,
        kind: Kind,
        value: &'a Value,
        old: Option<&'a Value>,
        link: Link<'a>,
    ) -> ControlFlow<()> {
        let shown = format!("\"{}\"", kind.name());
        for rule in &rules.list {
            if rule.program.uses_old && old.is_none() && !rule.optional_old {
                continue;
            }
            let subject = Subject { decl: &rules.decl, value, old, optional_old: rule.optional_old };
            let name = if rule.message.is_empty() { &rule.source } else { &rule.message };
            let allowed = self.budget.min(RULE_BUDGET);
            match self.spend(allowed, |left| rule.program.holds(&subject, left)) {
                Ok(true) => {}
                Ok(false) => self.refuse(rule, &shown, &subject, link)?,
                Err(why @ Failed::Overload) => {
                    let why = format!(
                        "'{why}': call arguments did not match a supported operator, function or macro signature for rule: {name}"
                    );
                    self.add(Cause::invalid(&self.field(None), &shown, &why))?;
                }
                Err(Failed::Budget) if allowed < RULE_BUDGET => {
                    self.add(Cause::invalid(&self.field(None), &shown, OUT_OF_BUDGET))?;
                    return ControlFlow::Break(());
                }
                Err(why @ Failed::Budget) => {
                    let why = format!(
                        "'{why}': no further validation rules will be run due to call \
                         cost exceeds limit for rule: {name}"
                    );
                    self.add(Cause::invalid(&self.field(None), &shown, &why))?;
                    return ControlFlow::Break(());
                }
                Err(why) => {
                    self.add(Cause::invalid(&self.field(None), &shown, &format!("{why} evaluating rule: {name}")))?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Subtracts the cost of an evaluation from the object's budget.
    fn spend<T>(&mut self, allowed: u64, run: impl FnOnce(&mut u64) -> T) -> T {
        let mut left = allowed;
        let done = run(&mut left);
        self.budget -= allowed - left;
        done
    }

    /// Adds the error of a rule that does not hold.
    fn refuse(&mut self, rule: &Rule, shown: &str, subject: &Subject<'_>, link: Link<'a>) -> ControlFlow<()> {
        let allowed = self.budget.min(RULE_BUDGET);
        let made = rule.expression.as_ref().map(|made| self.spend(allowed, |left| made.text(subject, left)));
        let made = match made {
            Some(Err(Failed::Budget)) => {
                let why = "messageExpression evaluation failed due to running out of cost budget, no further validation rules will \
                           be run";
                self.add(Cause::invalid(&self.field(rule.field.as_deref()), shown, why))?;
                return ControlFlow::Break(());
            }
            Some(Ok(text)) => Some(text.trim().to_owned()),
            _ => None,
        };
        let fits = |text: &String| !text.is_empty() && text.len() <= MESSAGE_MAX_BYTES && !text.contains('\n');
        let message = made.filter(fits).unwrap_or_else(|| {
            if rule.message.is_empty() { format!("failed rule: {}", rule.source) } else { rule.message.clone() }
        });
        let field = self.field(rule.field.as_deref());
        let cause = match rule.reason {
            "FieldValueForbidden" => Cause::forbidden(&field, &message),
            "FieldValueRequired" => Cause::required(&field, &message),
            "FieldValueDuplicate" => {
                Cause { reason: "FieldValueDuplicate", field, message: format!("Duplicate value: {shown}") }
            }
            _ => Cause::invalid(&field, shown, &message),
        };
        let link = if rule.in_all_of { Link { here: None, above: link.above } } else { link };
        if !rule.program.uses_old && self.is_unchanged(link) {
            if self.found.warnings.len() < FOUND_MAX {
                self.found.warnings.push(format!("{}: {}", cause.field, cause.message));
            }
            return ControlFlow::Continue(());
        }
        self.add(cause)
    }

    /// Whether the object had the same error before the update, because the value of `link` is unchanged.
    fn is_unchanged(&mut self, link: Link<'a>) -> bool {
        let Some((new, old)) = link.here.or(link.above) else { return false };
        match self.compared {
            Some(((known, before), equal)) if std::ptr::eq(known, new) && std::ptr::eq(before, old) => equal,
            _ => {
                let equal = new == old;
                self.compared = Some(((new, old), equal));
                equal
            }
        }
    }

    fn add(&mut self, cause: Cause) -> ControlFlow<()> {
        self.found.causes.push(cause);
        if self.found.causes.len() < FOUND_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Appends an item's index or a map entry's key to the path.
    fn push_key(&mut self, key: impl Display) {
        // Writing into a text does not fail.
        let _ = write!(self.path, "[{key}]");
    }

    /// The path of the current value, or of a field below it; the real server shows the root as `<nil>`.
    fn field(&self, below: Option<&str>) -> String {
        match (self.path.as_str(), below) {
            ("", None) => "<nil>".to_owned(),
            ("", Some(below)) => below.to_owned(),
            (path, None) => path.to_owned(),
            (path, Some(below)) => format!("{path}.{below}"),
        }
    }
}
