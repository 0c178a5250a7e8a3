"""The example watcher with a mistake: it crashes after a number of events.

CRASH_AFTER: number of events before a crash. CRASHES: number of crashes in all, counted in a file in the working directory.
CRASH_STATUS: the exit status. SILENT: after a crash the watcher reports nothing of its first list, as if it knew all objects.
"""

import os
import pathlib
import sys

sys.path.insert(0, os.environ["WATCHER"])
import watcher  # noqa: E402

COUNT = pathlib.Path("crashes")
BEFORE = int(COUNT.read_text()) if COUNT.exists() else 0


class Crashing(watcher.Watcher):
    told = 0

    def list(self):
        super().list()
        if BEFORE and "SILENT" in os.environ:
            self.lines.clear()

    def post(self):
        self.told += len(self.lines)
        if self.told > int(os.environ.get("CRASH_AFTER", "90")) and BEFORE < int(os.environ.get("CRASHES", "1")):
            COUNT.write_text(str(BEFORE + 1))
            print("out of patience", file=sys.stderr, flush=True)
            os._exit(int(os.environ.get("CRASH_STATUS", "3")))
        super().post()


Crashing().run()
