"""A suite for kubernetes_lite's envtest: the official client and kubernetes_lite's own client with one control plane."""
import threading
import time

import yaml
from kubernetes import client, config, watch
from kubernetes_lite.envtest import EnvTest

env = EnvTest()
began = time.time()
raw = env.start(auto_setup=False)
print("started in %.2f s" % (time.time() - began))
config.load_kube_config_from_dict(yaml.safe_load(raw.read()))
core = client.CoreV1Api()
def cm(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=data or {"k": "v"})
# CRUD
core.create_namespaced_config_map("default", cm("a"))
core.patch_namespaced_config_map("a", "default", {"data": {"k": "w"}})
assert core.read_namespaced_config_map("a", "default").data["k"] == "w"
try:
    core.create_namespaced_config_map("default", cm("a"))
    raise AssertionError("made twice")
except client.ApiException as e:
    assert e.status == 409, e
# watch
seen = []
def look():
    for event in watch.Watch().stream(core.list_namespaced_config_map, "default", timeout_seconds=10):
        seen.append((event["type"], event["object"].metadata.name))
        if event["object"].metadata.name == "w9": return
t = threading.Thread(target=look); t.start()
for i in range(10): core.create_namespaced_config_map("default", cm("w%d" % i))
t.join(15)
assert [n for _, n in seen if n.startswith("w")] == ["w%d" % i for i in range(10)], seen
# CRD via the dynamic client of kubernetes_lite
ext = client.ApiextensionsV1Api()
ext.create_custom_resource_definition({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.dev"},"spec":{"group":"example.dev","scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},"versions":[{"name":"v1","served":True,"storage":True,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}}}}}]}})
end = time.time() + 10
custom = client.CustomObjectsApi()
while True:
    try:
        custom.create_namespaced_custom_object("example.dev", "v1", "default", "widgets", {"apiVersion":"example.dev/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":1}})
        break
    except client.ApiException as e:
        assert e.status == 404 and time.time() < end, e
        time.sleep(0.05)
try:
    custom.create_namespaced_custom_object("example.dev", "v1", "default", "widgets", {"apiVersion":"example.dev/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"size":"s"}})
    raise AssertionError("a text is no number")
except client.ApiException as e:
    assert e.status == 422, e
lite = env.client()
res = lite.resource("example.dev/v1", "Widget")
assert [o["metadata"]["name"] for o in res.list(namespace="default")["items"]] == ["w"]
maps = lite.resource("v1", "ConfigMap")
maps.create({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"lite","namespace":"default"}}, namespace="default")
maps.delete("lite", namespace="default")
began = time.time()
env.stop()
print("stopped in %.2f s" % (time.time() - began))
print("passed")
