//! `longhaul-envtest`: the programs of a test control plane and nothing else. The library has all code.

fn main() -> std::process::ExitCode {
    mock_envtest::main()
}
