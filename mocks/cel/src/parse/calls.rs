//! Parses calls in CEL expressions, some of which are macros (CEL language definition, "Macros"). Kubernetes has macros
//! with two variables since 1.32 (`cel-go`, "Two variable comprehensions").

use super::super::{Issue, functions, library};
use super::{Kind, Node};

/// A call of a macro such as `over.all(variable, body)`.
#[derive(Debug)]
pub(crate) struct Macro {
    pub kind: MacroKind,
    pub over: Node,
    /// The variable for the item of a list or the key of a map. If `second` is set, this is the variable for the index
    /// or the key.
    pub variable: String,
    /// The variable for the item of a list or the value of an entry, in macros with two variables.
    pub second: Option<String>,
    /// The condition that selects items: the second of three arguments of `map`, or the filter of a transformation.
    pub filter: Option<Node>,
    pub body: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MacroKind {
    All,
    Exists,
    ExistsOne,
    /// Makes a list of the results.
    Map,
    Filter,
    OptMap,
    OptFlatMap,
    /// Makes a map with the same keys and new values.
    TransformMap,
    /// Makes one map of all entries in the resulting maps.
    TransformEntry,
}

/// Makes the tree node of a call `name(…)`, which is a macro only for `has(…)`.
pub(super) fn called(at: usize, name: String, mut arguments: Vec<Node>) -> Result<Node, Issue> {
    if name == "has" && arguments.len() == 1 {
        return match arguments.pop().map(|node| node.kind) {
            Some(Kind::Select { of, field, optional: false }) => Node::new(at, Kind::Has { of, field }),
            _ => Err(Issue::at(at, "invalid argument to has() macro".to_owned())),
        };
    }
    Node::new(at, Kind::Call { target: None, name, arguments })
}

/// Makes the tree node of a call `target.name(…)`, which may be a macro or a function with a dot in its name.
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

/// The macro with this name and number of arguments, and the number of its variables.
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
