"""A small kopf operator for packages: writes a status, holds a finalizer, says what it handled, one JSON object a line."""

import json
import os
import sys

import kopf


def say(what, body):
    meta = body["metadata"]
    sys.stdout.write(json.dumps({"handled": what, "name": meta["name"], "image": body["spec"]["image"]}) + "\n")
    sys.stdout.flush()


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = True
    # Its defaults wait a minute after the second failure to reach the API.
    settings.networking.error_backoffs = [0.1, 0.2, 0.5, 1, 1, 1]
    # The list as the beginning of the watch (`sendInitialEvents`).
    settings.watching.initial_streaming = "INITIAL_STREAMING" in os.environ


@kopf.on.create("longhaul.dev", "v1", "packages")
@kopf.on.resume("longhaul.dev", "v1", "packages")
@kopf.on.update("longhaul.dev", "v1", "packages", field="spec.image")
def reconcile(body, patch, reason, **_):
    say(str(reason), body)
    patch.status["phase"] = "Ready"
    patch.status["image"] = body["spec"]["image"]


@kopf.on.delete("longhaul.dev", "v1", "packages")
def clean(body, **_):
    say("delete", body)
