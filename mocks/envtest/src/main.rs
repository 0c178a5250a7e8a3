//! `longhaul-envtest`: a binary that acts as `kube-apiserver`, `etcd` or `kubectl`. All code is in the library
//! `mock_envtest`.

fn main() -> std::process::ExitCode {
    mock_envtest::main()
}
