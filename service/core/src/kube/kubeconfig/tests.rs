//! Tests of kubeconfigs: their sources, and the features refused by name.

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
    for user in ["token: t", "tokenFile: t"] {
        let error = refused("server: \"http://192.0.2.1:8080\"", user);
        assert!(error.contains("would expose the token in the network"), "{error}");
    }
    assert!(refused(server, "client-key-data: aGVsbG8=").contains("needed together"));
    assert!(
        refused(&format!("{server}, certificate-authority-data: \"!\""), "").contains("certificate-authority-data: ")
    );
}

#[test]
fn what_changed_in_any_file_is_found_and_what_is_wrong_keeps_the_old() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let write_pair = |name: &str| {
        let certified = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        std::fs::write(file("tls.crt"), certified.cert.pem()).unwrap();
        certified.signing_key.serialize_pem()
    };
    std::fs::write(file("tls.key"), write_pair("first")).unwrap();
    std::fs::copy(file("tls.crt"), file("ca.crt")).unwrap();
    let (cluster, user) = (
        "server: \"https://127.0.0.1:1\", certificate-authority: ca.crt",
        "client-certificate: tls.crt, client-key: tls.key",
    );
    let path = write(folder.path(), cluster, user);
    let known = Cluster::find(Some(&path)).unwrap();
    assert!(known.reread().unwrap().is_none(), "nothing changed");
    let key = write_pair("second");
    assert!(known.reread().is_err(), "a certificate without its key");
    std::fs::write(file("tls.key"), key).unwrap();
    let second = known.reread().unwrap().expect("another identity");
    std::fs::copy(file("tls.crt"), file("ca.crt")).unwrap();
    let third = second.reread().unwrap().expect("another authority");
    write(folder.path(), cluster, &format!("{user}, token: new"));
    assert_eq!(third.reread().unwrap().expect("another token").token.value().as_deref(), Some("new"));
    std::fs::remove_file(file("ca.crt")).unwrap();
    assert!(third.reread().is_err());
}
