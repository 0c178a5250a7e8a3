"""kopf as a subject: `kopf run` with one event handler for each resource.

`kopf.on.event` is kopf's handler for raw events: it writes nothing back, so that the objects stay the harness's own. Its
documentation promises every event of the watch and, after a list, one call without a type for each object that is there.
All settings are kopf's defaults, but for the silence limit where LONGHAUL_SILENCE_S names one.
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
