//! Calls, some of which are macros (CEL language definition, "Macros"; for those with two variables `cel-go`, "Two
//! variable comprehensions", which Kubernetes has since 1.32).

use super::super::{Issue, functions, library};
use super::{Kind, Node};

/// `over.all(variable, body)` and similar macros.
#[derive(Debug)]
pub(crate) struct Macro {
    pub kind: MacroKind,
    pub over: Node,
    /// The item of a list or the key of a map; with a second variable the index or the key.
    pub variable: String,
    /// The item or the value.
    pub second: Option<String>,
    /// The condition for an item to count: the middle argument of `map` with three, and of the transformations.
    pub filter: Option<Node>,
    pub body: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MacroKind {
    All,
    Exists,
    ExistsOne,
    /// A list of the results.
    Map,
    Filter,
    OptMap,
    OptFlatMap,
    /// A map with the same keys.
    TransformMap,
    /// A map of all entries in the resulting maps.
    TransformEntry,
}

/// A call `name(…)`: `has` is a macro.
pub(super) fn called(at: usize, name: String, mut arguments: Vec<Node>) -> Result<Node, Issue> {
    if name == "has" && arguments.len() == 1 {
        return match arguments.pop().map(|node| node.kind) {
            Some(Kind::Select { of, field, optional: false }) => Node::new(at, Kind::Has { of, field }),
            _ => Err(Issue::at(at, "invalid argument to has() macro".to_owned())),
        };
    }
    Node::new(at, Kind::Call { target: None, name, arguments })
}

/// A call `target.name(…)`: some are macros, and some are functions with a dot in their names.
pub(super) fn called_on(at: usize, target: Node, name: String, mut arguments: Vec<Node>) -> Result<Node, Issue> {
    if let Kind::Ident(space) = &target.kind {
        let qualified = format!("{space}.{name}");
        // A variable may have this name, and hold a text.
        let is_method = qualified == "sets.contains" && arguments.len() == 1;
        let is_function = functions::is_known(&qualified) || library::is_known(&qualified);
        if is_function && !is_method {
            return Node::new(at, Kind::Call { target: None, name: qualified, arguments });
        }
    }
    let Some((kind, variables)) = macro_of(&name, arguments.len()) else {
        return Node::new(at, Kind::Call { target: Some(Box::new(target)), name, arguments });
    };
    let body = arguments.pop();
    let filter = if arguments.len() > variables { arguments.pop() } else { None };
    let mut names = arguments.into_iter().map(|argument| match argument.kind {
        Kind::Ident(name) => Ok(name),
        _ => Err(Issue::at(argument.at, "argument must be a simple name".to_owned())),
    });
    let (Some(body), Some(variable)) = (body, names.next()) else {
        return Err(Issue::at(at, "argument is missing".to_owned()));
    };
    let (variable, second) = (variable?, names.next().transpose()?);
    Node::new(at, Kind::Macro(Box::new(Macro { kind, over: target, variable, second, filter, body })))
}

/// The macro with this name and number of arguments, and how many of them are variables.
fn macro_of(name: &str, arguments: usize) -> Option<(MacroKind, usize)> {
    Some(match (name, arguments) {
        ("all", 2 | 3) => (MacroKind::All, arguments - 1),
        ("exists", 2 | 3) => (MacroKind::Exists, arguments - 1),
        ("exists_one" | "existsOne", 2 | 3) => (MacroKind::ExistsOne, arguments - 1),
        ("map", 2 | 3) => (MacroKind::Map, 1),
        ("filter", 2) => (MacroKind::Filter, 1),
        ("optMap", 2) => (MacroKind::OptMap, 1),
        ("optFlatMap", 2) => (MacroKind::OptFlatMap, 1),
        ("transformList", 3 | 4) => (MacroKind::Map, 2),
        ("transformMap", 3 | 4) => (MacroKind::TransformMap, 2),
        ("transformMapEntry", 3 | 4) => (MacroKind::TransformEntry, 2),
        _ => return None,
    })
}
