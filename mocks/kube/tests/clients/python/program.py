"""The official Python client against the server of KUBECONFIG.

The typed, the custom objects and the dynamic API are used once. Every line of output is one JSON object.
"""

import json
import sys

import kubernetes
from kubernetes import client, config, dynamic
from kubernetes.client.rest import ApiException

WHERE = {"group": "longhaul.dev", "version": "v1", "namespace": "default", "plural": "packages"}


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def refused(code, call):
    try:
        call()
    except ApiException as error:
        assert error.status == code, error
        assert json.loads(error.body)["kind"] == "Status"
    else:
        raise AssertionError(f"{code} expected")


def typed():
    core, apps = client.CoreV1Api(), client.AppsV1Api()
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="cm"), data={"a": "1"})
    made = core.create_namespaced_config_map("default", body)
    refused(409, lambda: core.create_namespaced_config_map("default", body))
    refused(404, lambda: core.read_namespaced_config_map("none", "default"))
    made.data = {"a": "2"}
    core.replace_namespaced_config_map("cm", "default", made)
    refused(409, lambda: core.replace_namespaced_config_map("cm", "default", made))
    labels = {"app": "web"}
    container = client.V1Container(name="c", image="nginx:1")
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container]))
    spec = client.V1DeploymentSpec(
        replicas=2, selector=client.V1LabelSelector(match_labels=labels), template=template)
    apps.create_namespaced_deployment(
        "default", client.V1Deployment(metadata=client.V1ObjectMeta(name="web", labels=labels), spec=spec))
    # A dict is sent as a strategic merge patch, a list as a JSON patch.
    change = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}
    patched = apps.patch_namespaced_deployment("web", "default", change)
    assert patched.spec.template.spec.containers[0].image == "nginx:2" and patched.metadata.generation == 2
    assert len(patched.spec.template.spec.containers) == 1
    apps.patch_namespaced_deployment("web", "default", [{"op": "replace", "path": "/spec/minReadySeconds", "value": 3}]
                                     if patched.spec.min_ready_seconds is not None
                                     else [{"op": "add", "path": "/spec/minReadySeconds", "value": 3}])
    scaled = apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 5}})
    assert scaled.spec.replicas == 5
    apps.patch_namespaced_deployment_status("web", "default", {"status": {"observedGeneration": 3, "replicas": 5}})
    read = apps.read_namespaced_deployment("web", "default")
    assert (read.spec.min_ready_seconds, read.status.observed_generation) == (3, 3), read
    found = apps.list_deployment_for_all_namespaces(label_selector="app in (web)")
    assert [item.metadata.name for item in found.items] == ["web"]
    names, token = [], None
    while True:
        page = core.list_namespace(limit=1, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue
        if not token:
            break
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"], names
    core.delete_namespaced_config_map("cm", "default", propagation_policy="Background")
    request = client.AuthenticationV1TokenRequest(
        spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=600))
    core.create_namespaced_service_account("default", client.V1ServiceAccount(metadata={"name": "sa"}))
    token = core.create_namespaced_service_account_token("sa", "default", request)
    assert token.status.token and token.status.expiration_timestamp


def generic():
    custom = client.CustomObjectsApi()
    item = {"apiVersion": "longhaul.dev/v1", "kind": "Package", "metadata": {"name": "p"}, "spec": {"image": "a:1"}}
    custom.create_namespaced_custom_object(body=item, **WHERE)
    custom.patch_namespaced_custom_object(name="p", body={"spec": {"image": "a:2"}}, **WHERE)
    custom.patch_namespaced_custom_object_status(name="p", body={"status": {"phase": "Ready"}}, **WHERE)
    read = custom.get_namespaced_custom_object(name="p", **WHERE)
    assert (read["spec"]["image"], read["status"]["phase"], read["metadata"]["generation"]) == ("a:2", "Ready", 2), read
    packages = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="longhaul.dev/v1", kind="Package")
    applied = packages.server_side_apply(
        body={"apiVersion": "longhaul.dev/v1", "kind": "Package", "metadata": {"name": "p"}, "spec": {"replicas": 2}},
        name="p", namespace="default", field_manager="program")
    assert (applied.spec.image, applied.spec.replicas) == ("a:2", 2)
    assert [one.metadata.name for one in packages.get(namespace="default").items] == ["p"]
    packages.delete(name="p", namespace="default")
    refused(404, lambda: custom.get_namespaced_custom_object(name="p", **WHERE))
    say(server=client.VersionApi().get_code().git_version, client=kubernetes.__version__)


config.load_kube_config()
typed()
generic()
