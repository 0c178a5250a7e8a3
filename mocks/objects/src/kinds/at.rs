//! Paths of values in an object, as error causes name them: `spec.containers[0].resources.limits[cpu]`.
//!
//! Owns the notation of paths. A path becomes text only when it is shown, so that a check without errors allocates no
//! text.

use std::fmt::{self, Display, Formatter};

/// A path as a linked list of field names, indices and keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    above: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Item(usize),
    Key(&'a str),
}

impl<'a> At<'a> {
    /// A path from the root: `spec.template.spec`.
    pub(crate) const fn from(path: &'a str) -> Self {
        Self { above: None, step: Step::Field(path) }
    }

    /// The path of a field of the object at this path.
    pub(crate) const fn field(&'a self, name: &'a str) -> Self {
        Self { above: Some(self), step: Step::Field(name) }
    }

    /// The path of an item of the list at this path.
    pub(crate) const fn item(&'a self, index: usize) -> Self {
        Self { above: Some(self), step: Step::Item(index) }
    }

    /// The path of an entry of the map at this path.
    pub(crate) const fn key(&'a self, key: &'a str) -> Self {
        Self { above: Some(self), step: Step::Key(key) }
    }
}

impl Display for At<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(out)?;
        }
        match self.step {
            Step::Field(name) if self.above.is_some() => write!(out, ".{name}"),
            Step::Field(name) => out.write_str(name),
            Step::Item(index) => write!(out, "[{index}]"),
            Step::Key(key) => write!(out, "[{key}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_written_as_causes_name_it() {
        let spec = At::from("spec.template.spec");
        let (list, at) = (spec.field("containers"), 3);
        let one = list.item(at);
        assert_eq!(
            one.field("resources").field("limits").key("cpu").to_string(),
            "spec.template.spec.containers[3].resources.limits[cpu]"
        );
    }
}
