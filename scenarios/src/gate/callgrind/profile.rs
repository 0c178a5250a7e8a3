//! Parses a dump of callgrind: the number of instructions, and the number of calls of an allocator. Does no I/O.
//!
//! The format is the "Callgrind Format Specification" of Valgrind's manual: `fn=` names the function of the following
//! lines, `cfn=` a function that it calls, and `calls=` the number of calls. A dump writes a name in full once, as
//! `(7) name`, and as `(7)` afterwards.

use std::collections::HashMap;

/// Allocator functions of glibc and musl, jemalloc (with and without the prefix of its Rust crate), mimalloc, tcmalloc
/// (which has the same names), Go and `CPython`. A call from one allocator function to another counts as the same
/// allocation.
const ALLOCATORS: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "mallocx",
    "rallocx",
    "mi_malloc",
    "mi_calloc",
    "mi_realloc",
    "mi_malloc_aligned",
    "mi_zalloc_aligned",
    "mi_realloc_aligned",
    "runtime.mallocgc",
    "PyObject_Malloc",
    "PyObject_Calloc",
    "PyObject_Realloc",
    "_PyObject_Malloc",
    "_PyObject_Calloc",
    "_PyObject_Realloc",
];
/// Prefixes of the names of allocator functions.
const PREFIXES: &[&str] = &["_rjem_", "je_", "__libc_", "__"];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Profile {
    pub(super) instructions: u64,
    /// Calls of an allocator by other functions; 0 if the program has no known allocator.
    pub(super) allocations: u64,
}

impl Profile {
    /// Parses a dump. `None` if the dump is incomplete, because its totals are at the end.
    pub(super) fn read(text: &str) -> Option<Self> {
        let totals = text.lines().rev().find_map(|line| line.strip_prefix("totals: "));
        let instructions = totals?.trim().parse().ok()?;
        Some(Self { instructions, allocations: allocations(text) })
    }
}

fn allocations(text: &str) -> u64 {
    let mut names: HashMap<&str, bool> = HashMap::new();
    let (mut inside, mut calls) = (false, false);
    let mut all = 0_u64;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            inside = allocates(name, &mut names);
        } else if let Some(name) = line.strip_prefix("cfn=") {
            calls = allocates(name, &mut names);
        } else if let Some(count) = line.strip_prefix("calls=")
            && calls
            && !inside
        {
            all += count.split(' ').next().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    all
}

/// Whether a function is an allocator: `(7) malloc` defines a name, and `(7)` refers to it.
fn allocates<'a>(name: &'a str, names: &mut HashMap<&'a str, bool>) -> bool {
    let (number, name) = match name.split_once(' ') {
        Some((number, name)) if number.starts_with('(') => (number, name),
        _ if name.starts_with('(') => return names.get(name).copied().unwrap_or(false),
        _ => ("", name),
    };
    // A quotation mark and a depth mark recursion; an at sign marks the version of a library's symbol.
    let bare = name.split(['\'', '@']).next().unwrap_or(name);
    let is = ALLOCATORS.contains(&bare)
        || PREFIXES.iter().any(|prefix| bare.strip_prefix(prefix).is_some_and(|rest| ALLOCATORS.contains(&rest)));
    if !number.is_empty() {
        names.insert(number, is);
    }
    is
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "\
version: 1
events: Ir
fn=(1) main
16 400
cfn=(2) _rjem_malloc
calls=3 50
16 1200
cfn=(3) parse
calls=7 20
16 90

fn=(2)
50 300
cfn=(4) _rjem_mallocx
calls=5 50
60 90

fn=(3)
20 40
cfn=(2)
calls=4 50
20 400
cfn=(5) free
calls=9 50
20 400

totals: 4837992
";

    #[test]
    fn calls_of_allocators_are_counted_once() {
        assert_eq!(Profile::read(DUMP), Some(Profile { instructions: 4_837_992, allocations: 7 }));
        assert_eq!(Profile::read("events: Ir\nsummary: 12\n"), None, "not written to its end");
        let none = Profile { instructions: 12, allocations: 0 };
        assert_eq!(Profile::read("fn=(1) main\n1 12\ntotals: 12\n"), Some(none));
    }

    #[test]
    fn the_same_allocator_has_several_names() {
        let is = |name: &str| allocates(name, &mut HashMap::new());
        for name in ["(1) malloc", "(2) _rjem_calloc", "(3) __libc_malloc", "malloc@@GLIBC_2.2.5", "(4) malloc'2"] {
            assert!(is(name), "{name}");
        }
        assert!(!is("(5) malloc_conf_init") && !is("(6) free") && !is("(7)"));
    }
}
