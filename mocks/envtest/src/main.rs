//! `longhaul-envtest`: a binary that acts as `kube-apiserver`, `etcd` or `kubectl`. All its code is in the library.

fn main() -> std::process::ExitCode {
    mock_envtest::main()
}
