"""The official Python client as a subject: list, then `Watch.stream` from the list's version, as its README shows.

Like the README's loop, the adapter sets no timeout, reads type and object of each event, and lets the package continue when
a stream ends. After an exception the adapter waits and lists again: the list replaces the known objects.
"""

import os
import threading
import time
import traceback

from kubernetes import client, config, watch

from witness import report, resources, slow_s

PAUSE_S = 1
NAMESPACE = os.environ.get("LONGHAUL_NAMESPACE", "")
CORE = {"configmaps": "config_map", "secrets": "secret", "pods": "pod", "events": "event"}


def lister(group, version, plural):
    """The package's function that lists a resource (and watches with `watch=True`), and its arguments."""
    if group:
        where = {"group": group, "version": version, "plural": plural}
        custom = client.CustomObjectsApi()
        if NAMESPACE:
            return custom.list_namespaced_custom_object, {**where, "namespace": NAMESPACE}
        return custom.list_cluster_custom_object, where
    core, kind = client.CoreV1Api(), CORE[plural]
    if NAMESPACE:
        return getattr(core, f"list_namespaced_{kind}"), {"namespace": NAMESPACE}
    return getattr(core, f"list_{kind}_for_all_namespaces"), {}


def follow(resource, tell):
    function, where = lister(*resource)
    known = {}
    while True:
        try:
            listed = client.ApiClient().sanitize_for_serialization(function(**where))
            replace(known, listed["items"], tell)
            revision = listed["metadata"]["resourceVersion"]
            for event in watch.Watch().stream(function, resource_version=revision, **where):
                item = event["raw_object"]
                known.pop(item["metadata"]["uid"], None)
                if event["type"] != "DELETED":
                    known[item["metadata"]["uid"]] = item
                tell(item, event["type"])
        except Exception:  # the package raises what urllib3 raises, beside its own
            traceback.print_exc(limit=1)
        time.sleep(PAUSE_S)


def handle(item, event):
    """The handler of an event: works as long as the scenario requests, then reports the event."""
    time.sleep(slow_s(item, event))
    report(item, event)


def replace(known, items, tell):
    fresh = {item["metadata"]["uid"]: item for item in items}
    for uid in [uid for uid in known if uid not in fresh]:
        tell(known.pop(uid), "DELETED")
    for uid, item in fresh.items():
        if uid not in known or known[uid]["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            tell(item, "MODIFIED" if uid in known else "ADDED")
    known.update(fresh)


config.load_kube_config()
judged, *others = resources()
for resource in others:
    threading.Thread(target=follow, args=(resource, lambda *_: None), daemon=True).start()
follow(judged, handle)
