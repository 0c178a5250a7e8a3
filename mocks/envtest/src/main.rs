//! `longhaul-envtest`: the programs of a test control plane and nothing else. Everything is in the library.

fn main() -> std::process::ExitCode {
    mock_envtest::main()
}
