//! Configuration files of a node's programs: kubeconfigs, and the files of containerd, CNI and the kubelet.
//!
//! As for every control plane, [`crate::programs::files`] writes keys and tokens.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::image::PAUSE;
use super::init::Component;
use super::link::Link;
use super::needs::Found;
use super::{Config, Error, NAME, PORT, TAINT};
use crate::programs::User;
use crate::programs::files::{Files, Server};

/// The user names of the node's programs (Kubernetes documentation, "Using RBAC": core component roles).
const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
const SCHEDULER: &str = "system:kube-scheduler";
const PROXY: &str = "system:kube-proxy";
const KUBELET: &str = "system:node:node";
/// The user with which longhaul sets up a node.
pub(super) const BRINGER: &str = "longhaul:node";
/// The path of containerd's socket in the node.
pub(super) const SOCKET: &str = "/run/containerd/containerd.sock";

/// The users of the node's programs and of longhaul, in addition to the configured users.
pub(super) fn users() -> Vec<User> {
    let user = |name: &str, groups: &[&str]| User {
        name: name.to_owned(),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
    };
    vec![
        user(CONTROLLER_MANAGER, &[]),
        user(SCHEDULER, &[]),
        user(PROXY, &[]),
        user(KUBELET, &["system:nodes"]),
        user(BRINGER, &["system:masters"]),
    ]
}

/// The names and addresses in the API server's certificate. The certificate also has loopback names, for a proxy on the
/// machine.
pub(super) fn server(link: Link) -> Server {
    let names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];
    let names = names.into_iter().chain(["localhost", "127.0.0.1"]).map(str::to_owned);
    let addresses = [link.node(), link.service(), link.machine()].map(|address| address.to_string());
    Server {
        authority: "longhaul node",
        names: names.chain(addresses).collect(),
        data: super::DATA,
        calls_kubelets: true,
    }
}

/// Writes all configuration files; returns the node's programs with their arguments, in the order of their start.
pub(super) fn write(files: &Files, found: &Found, link: Link, config: &Config) -> Result<Vec<Component>, Error> {
    let url = format!("https://{}:{PORT}", link.node());
    let kubeconfig = |file: &str, user: &str| -> Result<String, Error> {
        let name = format!("{file}.kubeconfig");
        files.save(&name, &files.kubeconfig(user, &url).unwrap_or_default())?;
        Ok(text(&files.key(&name)))
    };
    let manager = kubeconfig("controller-manager", CONTROLLER_MANAGER)?;
    let scheduler = kubeconfig("scheduler", SCHEDULER)?;
    let proxy = kubeconfig("proxy", PROXY)?;
    let kubelet = kubeconfig("kubelet", KUBELET)?;
    files.save("containerd.toml", &containerd(found, files))?;
    let folder = files.key("cni");
    std::fs::create_dir_all(&folder).map_err(|source| Error::File { path: folder, source })?;
    files.save(CNI, &cni(link).to_string())?;
    files.save("kubelet.yaml", &kubelet_configuration(files, link, config.tainted).to_string())?;
    let asset = |name: &str| found.assets.join(name);
    let key = |flag: &str, name: &str| format!("--{flag}={}", text(&files.key(name)));
    let (node, pods) = (link.node(), link.pods());
    let mut all = vec![
        component("etcd", asset("etcd"), false, &etcd()),
        component("containerd", found.tools.containerd.clone(), false, &[key("config", "containerd.toml")]),
        component(
            "kube-apiserver",
            asset("kube-apiserver"),
            false,
            &apiserver(files, link, &config.apiserver_arguments),
        ),
    ];
    // There is one of each, so no election is needed, and a slow disk must not make them give up.
    let manager = [
        format!("--kubeconfig={manager}"),
        "--leader-elect=false".to_owned(),
        "--use-service-account-credentials".to_owned(),
        key("service-account-private-key-file", "service-account.key"),
        key("root-ca-file", "ca.crt"),
    ];
    all.push(component("kube-controller-manager", asset("kube-controller-manager"), true, &manager));
    let scheduler = [format!("--kubeconfig={scheduler}"), "--leader-elect=false".to_owned()];
    all.push(component("kube-scheduler", asset("kube-scheduler"), true, &scheduler));
    // The machine configures connection tracking. Most containers may not lower the OOM score of a process.
    let proxy = [
        format!("--kubeconfig={proxy}"),
        format!("--hostname-override={NAME}"),
        "--proxy-mode=iptables".to_owned(),
        "--oom-score-adj=0".to_owned(),
        format!("--cluster-cidr={pods}"),
        "--conntrack-max-per-core=0".to_owned(),
        "--conntrack-min=0".to_owned(),
    ];
    all.push(component("kube-proxy", asset("kube-proxy"), true, &proxy));
    let kubelet = [
        key("config", "kubelet.yaml"),
        format!("--kubeconfig={kubelet}"),
        format!("--hostname-override={NAME}"),
        format!("--node-ip={node}"),
    ];
    all.push(component("kubelet", asset("kubelet"), true, &kubelet));
    Ok(all)
}

/// The path of the CNI configuration. The CNI configuration has its own folder, because containerd reads every file in
/// that folder.
const CNI: &str = "cni/10-bridge.conflist";

fn component(name: &str, program: PathBuf, late: bool, arguments: &[String]) -> Component {
    Component { name: name.to_owned(), program, arguments: arguments.to_vec(), late }
}

fn etcd() -> [String; 5] {
    [
        "--data-dir=/var/lib/etcd",
        "--listen-client-urls=http://127.0.0.1:2379",
        "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:2380",
        // The data is worthless after a crash.
        "--unsafe-no-fsync",
    ]
    .map(str::to_owned)
}

fn apiserver(files: &Files, link: Link, more: &[String]) -> Vec<String> {
    let key = |flag: &str, name: &str| format!("--{flag}={}", text(&files.key(name)));
    let mut arguments = vec![
        "--etcd-servers=http://127.0.0.1:2379".to_owned(),
        format!("--advertise-address={}", link.node()),
        format!("--secure-port={PORT}"),
        format!("--service-cluster-ip-range={}", link.services()),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--allow-privileged=true".to_owned(),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--audit-log-maxsize=100".to_owned(),
        "--audit-log-maxbackup=4".to_owned(),
        format!("--audit-log-path={}", text(&files.log("audit.log"))),
        key("audit-policy-file", "audit-policy.yaml"),
        key("tls-cert-file", "apiserver.crt"),
        key("tls-private-key-file", "apiserver.key"),
        key("client-ca-file", "ca.crt"),
        key("kubelet-client-certificate", "kubelet-client.crt"),
        key("kubelet-client-key", "kubelet-client.key"),
        key("service-account-key-file", "service-account.pub"),
        key("service-account-signing-key-file", "service-account.key"),
        key("token-auth-file", "tokens.csv"),
    ];
    arguments.extend(more.iter().cloned());
    arguments
}

/// The configuration of containerd. Strings in the TOML configuration are written as JSON strings, which TOML accepts.
fn containerd(found: &Found, files: &Files) -> String {
    let quoted = |path: &Path| Value::from(text(path)).to_string();
    let (programs, networks) = (quoted(&found.cni), quoted(&files.key("cni")));
    // No process can be made dearer to the OOM killer than its parent without CAP_SYS_RESOURCE, which containers lack.
    format!(
        "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  sandbox_image = \"{PAUSE}\"\n  \
         restrict_oom_score_adj = true\n[plugins.\"io.containerd.grpc.v1.cri\".cni]\n  bin_dir = {programs}\n  \
         conf_dir = {networks}\n"
    )
}

fn cni(link: Link) -> Value {
    json!({"cniVersion": "0.4.0", "name": "longhaul", "plugins": [
        {
            "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": link.pods()}]], "routes": [{"dst": "0.0.0.0/0"}]}
        },
        {"type": "portmap", "capabilities": {"portMappings": true}},
    ]})
}

/// The configuration of the kubelet. Unused images are never removed (`imageGCHighThresholdPercent`), because they
/// cannot be pulled again.
fn kubelet_configuration(files: &Files, link: Link, tainted: bool) -> Value {
    let taints = if tainted { json!([{"key": TAINT, "effect": "NoSchedule"}]) } else { json!([]) };
    let address: Ipv4Addr = link.node();
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "authentication": {
            "anonymous": {"enabled": false}, "webhook": {"enabled": true}, "x509": {"clientCAFile": files.key("ca.crt")}
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
        "cgroupDriver": "cgroupfs",
        "registerWithTaints": taints,
        "failSwapOn": false,
        "oomScoreAdj": 0,
        "maxOpenFiles": 20000,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
    })
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
