//! The help texts that test kits read before they start a program.
//!
//! controller-runtime greps etcd's for `--unsafe-no-fsync`, and kube-apiserver's for a line that begins with
//! `--insecure-port`, which only servers before 1.20 have (`pkg/internal/testing/controlplane`).

/// The output of `kube-apiserver --help`.
pub(crate) const API_SERVER: &str = "\
kube-apiserver of Longhaul: an API server for test-suites. It takes every flag of the real one and heeds these:

Usage:
  kube-apiserver [flags]

Flags:

      --authorization-mode strings             RBAC: roles decide; anything else: everything is allowed
      --bind-address ip                        the address to listen on (default 127.0.0.1)
      --cert-dir string                        the folder of apiserver.crt and apiserver.key, which are made when they are not there
      --client-ca-file string                  the authorities of client certificates
      --etcd-servers strings                   where the state lives: the etcd beside this program
      --secure-port int                        the port to listen on (default 6443)
      --service-account-issuer string          taken, and tokens have an issuer of their own
      --tls-cert-file string                   the certificate, instead of the one in --cert-dir
      --tls-private-key-file string            its key
      --version                                print the version
";

/// The output of `etcd --help`.
pub(crate) const ETCD: &str = "\
etcd of Longhaul: where the state of an API server for test-suites lives, in memory. It takes every flag of the real one and heeds these:

Usage:

  etcd [flags]

Member:
  --listen-client-urls 'http://localhost:2379'
    List of URLs to listen on.
  --data-dir '${name}.etcd'
    Taken; nothing is written there.

Unsafe feature:
  --unsafe-no-fsync 'false'
    Taken; nothing is written at all.
";

/// The output of `etcd --version`; kits read the first line.
pub(crate) const ETCD_VERSION: &str =
    "etcd Version: 3.6.4\nGit SHA: longhaul\nGo Version: none\nGo OS/Arch: linux/amd64\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kits_find_what_they_look_for() {
        assert!(ETCD.contains("--unsafe-no-fsync"));
        assert!(!API_SERVER.lines().any(|line| line.trim_start().starts_with("--insecure-port")));
    }
}
