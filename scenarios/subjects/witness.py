"""Functions for the Python adapters: which resources to watch, and how to report the client's events to the witness.

Made to be copied. Nothing here retries, compares or repairs the client's events.
"""

import collections
import json
import os
import urllib.request

CHANGES = {"ADDED": "added", "MODIFIED": "modified", "DELETED": "deleted"}


def resources():
    """LONGHAUL_WATCH as (group, version, plural); the first resource is judged, the others are only watched."""
    found = []
    for text in os.environ.get("LONGHAUL_WATCH", "packages.longhaul.dev/v1alpha1").split(","):
        name, version = text.split("/")
        plural, _, group = name.partition(".")
        found.append((group, version, plural))
    return found


MODIFIED = collections.Counter()


def slow_s(item, event):
    """Seconds that the handler takes for this event: LONGHAUL_HANDLER_S for every other modification of an object."""
    if event != "MODIFIED" or "LONGHAUL_HANDLER_S" not in os.environ:
        return 0
    uid = item["metadata"]["uid"]
    MODIFIED[uid] += 1
    return float(os.environ["LONGHAUL_HANDLER_S"]) if MODIFIED[uid] % 2 else 0


def report(item, event):
    """Reports one event. If the witness cannot be reached, the program ends."""
    metadata = item.get("metadata", {})
    line = {
        "uid": metadata.get("uid") or f"{event}-{item.get('code', '')}",
        "resourceVersion": metadata.get("resourceVersion") or "0",
        "change": CHANGES.get(event, "modified"),
    }
    request = urllib.request.Request(os.environ["LONGHAUL_WITNESS_URL"], json.dumps(line).encode() + b"\n")
    with urllib.request.urlopen(request, timeout=10):
        pass
