//! Tests of kubeconfigs: what is read from where, and what is refused by name.

use std::path::Path;

use super::*;

fn write(folder: &Path, cluster: &str, user: &str) -> PathBuf {
    let text = format!(
        "apiVersion: v1\nkind: Config\npreferences: {{}}\ncurrent-context: c\n\
         clusters: [{{name: k, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n\
         contexts: [{{name: c, context: {{cluster: k, user: u, namespace: n}}}}]\n"
    );
    let path = folder.join("config");
    std::fs::write(&path, text).unwrap();
    path
}

fn refused(cluster: &str, user: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), cluster, user);
    Cluster::find(Some(&path)).err().expect("it must be refused").to_string()
}

#[test]
fn server_trust_identity_and_name_are_taken_from_the_current_context() {
    let folder = tempfile::tempdir().unwrap();
    let certified = rcgen::generate_simple_self_signed(["k8s".to_owned()]).unwrap();
    std::fs::write(folder.path().join("ca.crt"), certified.cert.pem()).unwrap();
    std::fs::write(folder.path().join("key.pem"), certified.signing_key.serialize_pem()).unwrap();
    let data = base64::engine::general_purpose::STANDARD.encode(certified.cert.pem());
    let cluster = "server: \"https://[::1]:6443/prefix/\", certificate-authority: ca.crt, tls-server-name: k8s";
    let user = format!("client-certificate-data: {data}, client-key: key.pem");
    let cluster = Cluster::find(Some(&write(folder.path(), cluster, &user))).unwrap();
    assert_eq!((cluster.origin.host.as_str(), cluster.origin.port), ("::1", 6443));
    assert_eq!(cluster.base_path, "/prefix");
    assert_eq!(cluster.origin.server_name.as_deref(), Some("k8s"));
    assert!(cluster.origin.tls.unwrap().client_auth_cert_resolver.has_certs());
    assert!(cluster.token.value().is_none());
}

#[test]
fn a_refused_token_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), "first\n").unwrap();
    let path = write(folder.path(), "server: \"http://127.0.0.1:1\"", "tokenFile: token");
    let cluster = Cluster::find(Some(&path)).unwrap();
    assert_eq!(cluster.token.value().as_deref(), Some("first"));
    std::fs::write(folder.path().join("token"), "second").unwrap();
    assert_eq!(cluster.token.value().as_deref(), Some("first"), "not read at each request");
    cluster.token.refused();
    assert_eq!(cluster.token.value().as_deref(), Some("second"));
    std::fs::remove_file(folder.path().join("token")).unwrap();
    cluster.token.refused();
    assert_eq!(cluster.token.value().as_deref(), Some("second"), "the old one may still be good");
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let server = "server: \"https://127.0.0.1:1\"";
    assert!(
        refused(&format!("{server}, insecure-skip-tls-verify: true"), "")
            .contains("insecure-skip-tls-verify is not supported")
    );
    assert!(refused(server, "exec: {command: aws}").contains("exec plugins are not supported"));
    assert!(refused("server: \"127.0.0.1:1\"", "").contains("is not the URL of a server"));
    for port in ["0", "65536", "99999", "x", ""] {
        let server = format!("server: \"https://127.0.0.1:{port}\"");
        assert!(refused(&server, "").contains("is not the URL of a server"), "{port}");
    }
    assert!(refused(server, "client-key-data: aGVsbG8=").contains("needed together"));
    assert!(
        refused(&format!("{server}, certificate-authority-data: \"!\""), "").contains("certificate-authority-data: ")
    );
}
