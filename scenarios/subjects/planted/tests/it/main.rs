//! The planted client as a process against a server that says what a test wants: mistakes that no bug of the library names. All others, and
//! the correct client through every fault, are played by the library's bugs and the examples of `docs/faults.md` (`scenarios/tests/e2e`).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail where it stands")]

mod script;
mod stories;
