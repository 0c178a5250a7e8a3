"""kopf as a subject: `kopf run` with one event handler for each resource.

`kopf.on.event` is kopf's handler for raw events. It writes nothing to the objects, so only the harness changes them. kopf's
documentation promises each event of the watch and, after a list, one call without a type for each existing object.
All settings are kopf's defaults, except the silence limit if LONGHAUL_SILENCE_S is set.
"""

import asyncio
import os
import sys

import kopf

sys.path.insert(0, os.path.dirname(__file__))
from witness import report, resources, slow_s  # noqa: E402

(JUDGED, *OTHERS) = resources()


@kopf.on.startup()
def configure(settings, **_):
    settings.watching.inactivity_timeout = float(os.environ.get("LONGHAUL_SILENCE_S", 70))


@kopf.on.event(*JUDGED)
async def judged(event, **_):
    await asyncio.sleep(slow_s(event["object"], event["type"]))
    await asyncio.to_thread(report, event["object"], event["type"] or "ADDED")


for other in OTHERS:
    @kopf.on.event(*other)
    def watched(**_):
        pass
