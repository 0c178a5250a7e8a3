"""A cache of ConfigMaps must hold all of them although its watch is disturbed."""

import threading
import time

from kubernetes import client, config, watch

from longhaul import fault


class Mirror(threading.Thread):
    """Lists, watches from the list's version, and lists again after an error."""

    def __init__(self, api):
        super().__init__(daemon=True)
        self.api, self.names, self.ended = api, set(), threading.Event()

    def run(self):
        while not self.ended.wait(0.1):
            try:
                listed = self.api.list_namespaced_config_map("default", resource_version="0")
                self.names = {one.metadata.name for one in listed.items}
                version = listed.metadata.resource_version
                events = watch.Watch().stream(
                    self.api.list_namespaced_config_map, "default", resource_version=version,
                    allow_watch_bookmarks=True, timeout_seconds=10)
                for event in events:
                    if event["type"] in ("ADDED", "MODIFIED"):
                        self.names.add(event["object"].metadata.name)
                    elif event["type"] == "DELETED":
                        self.names.discard(event["object"].metadata.name)
            except Exception as error:  # an operator logs it and begins again
                print("lists again:", error)


def test_the_mirror_holds_every_config_map(longhaul):
    reset = fault("watch-reset", at="500ms", resource="configmaps", afterEvents=2, count=1)
    plane = longhaul(chaos=1, faults=[reset])
    api = client.CoreV1Api(config.new_client_from_config(plane.kubeconfig))
    mirror = Mirror(api)
    mirror.start()

    for number in range(20):
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=f"mirrored-{number}"))
        api.create_namespaced_config_map("default", body)
        time.sleep(0.05)

    wanted = {f"mirrored-{number}" for number in range(20)}
    deadline = time.monotonic() + 30
    while not wanted <= mirror.names and time.monotonic() < deadline:
        time.sleep(0.05)
    mirror.ended.set()
    assert wanted <= mirror.names
