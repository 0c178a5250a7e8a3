"""The example watcher, which first posts the given lines in one post. For tests: `chatty.py WATCHER LINE [LINE …]`."""

import os
import runpy
import sys
import urllib.error
import urllib.request

lines = "\n".join(sys.argv[2:]).encode()
try:
    urllib.request.urlopen(urllib.request.Request(os.environ["LONGHAUL_WITNESS_URL"], data=lines)).close()
except urllib.error.HTTPError as refused:
    print("refused:", refused.code, refused.read().decode(), file=sys.stderr, flush=True)
runpy.run_path(sys.argv[1])["Watcher"]().run()
