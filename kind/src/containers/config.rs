//! The configuration of a kind cluster, in the format of the program kind (`kind.x-k8s.io/v1alpha4`). Pure: no I/O.

use std::fmt::Write as _;

/// The configuration of a cluster with this number of control planes. `leaves_cgroups` is the result of
/// [`leaves_cgroups`].
pub(super) fn text(control_planes: u8, leaves_cgroups: bool) -> String {
    let mut text = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nkubeadmConfigPatches:\n".to_owned();
    // Nodes have a /tmp in memory. etcd waits for the disk at each write, and its data need not outlive the machine.
    text.push_str("- |\n  kind: ClusterConfiguration\n  etcd: {local: {dataDir: /tmp/etcd}}\n");
    if leaves_cgroups {
        text.push_str("- |\n  kind: KubeletConfiguration\n  cgroupDriver: cgroupfs\n  failCgroupV1: false\n");
    }
    text.push_str("nodes:\n");
    for _ in 0..control_planes {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- role: control-plane");
    }
    text
}

/// Whether a containerd with this configuration manages cgroups itself. kind configures the kubelet for systemd, but
/// kubelet and containerd must use the same cgroup driver (Kubernetes documentation, "Configuring a cgroup driver").
pub(super) fn leaves_cgroups(containerd: &str) -> bool {
    containerd.lines().any(|line| line.split_whitespace().collect::<String>() == "SystemdCgroup=false")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_yaml_with_a_role_for_each_node() {
        for (planes, by_hand) in [(1, false), (3, true)] {
            let read: serde_json::Value = serde_saphyr::from_str(&text(planes, by_hand)).unwrap();
            assert_eq!(read["nodes"].as_array().unwrap().len(), usize::from(planes));
            assert_eq!(read["nodes"][0]["role"], "control-plane");
            let etcd = read["kubeadmConfigPatches"][0].as_str().unwrap();
            let etcd: serde_json::Value = serde_saphyr::from_str(etcd).unwrap();
            assert_eq!(etcd["etcd"]["local"]["dataDir"], "/tmp/etcd");
            let patch: Option<&str> = read["kubeadmConfigPatches"][1].as_str();
            assert_eq!(patch.is_some_and(|patch| patch.contains("cgroupDriver: cgroupfs\n")), by_hand);
        }
    }

    #[test]
    fn what_containerd_does_itself_is_read_from_its_configuration() {
        assert!(leaves_cgroups("[a]\n  SystemdCgroup = false\n"));
        assert!(!leaves_cgroups("[a]\n  SystemdCgroup = true\n  # SystemdCgroup = false\n"));
    }
}
