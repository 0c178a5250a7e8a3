"""An API server that injects faults, for one test, and a verdict by the ledger.

The module starts the program `longhaul` and needs nothing else: no cluster, no etcd, no package. With pytest, `longhaul` is a fixture; with
other frameworks, `start` is a context manager.
"""

import collections
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading

# Time limit of the start on a busy machine. Usually the API server is ready in 50 ms.
START_WITHIN_S = 30
# Time limit of the end, in which Longhaul judges the ledger of a long test.
STOP_WITHIN_S = 60
# Maximum number of lines of Longhaul's output that are kept.
LINES_MAX = 200
# Beginning of the line that the API server writes when it is ready.
SERVED = "kube-apiserver: serving at "
# Runs the API server until its input ends. So the API server ends with the test process, even after SIGKILL.
SCRIPT = (
    '"$TEST_ASSET_KUBE_APISERVER" --secure-port="$1" --cert-dir="$2" --etcd-servers= </dev/null & '
    "cat >/dev/null; kill $!; wait $!"
)
CERTIFICATE = "-----BEGIN CERTIFICATE-----"
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: longhaul, cluster: {{server: "{server}", certificate-authority: "{authority}"}}}}]
users: [{{name: longhaul, user: {{}}}}]
contexts: [{{name: longhaul, context: {{cluster: longhaul, user: longhaul}}}}]
current-context: longhaul
"""
WORDS = {0: "pass", 1: "fail", 2: "undecided"}


class NotInstalled(Exception):
    """The program `longhaul` is missing."""


class Failed(AssertionError):
    """The verdict of the ledger is not a pass."""


class Verdict:
    """The ledger's verdict. Codes: 0 pass, 1 fail, 2 undecided because a fault hit nothing; others are errors of Longhaul."""

    def __init__(self, code, lines):
        self.code, self.lines = code, lines
        pages = [line for line in lines if line.endswith("/index.html")]
        # The folder of the run record, with index.html and ledger.json.
        self.record = os.path.dirname(pages[-1].removeprefix("longhaul:").strip()) if pages else None

    @property
    def passed(self):
        return self.code == 0

    def __str__(self):
        word = WORDS.get(self.code, "error of longhaul")
        return "\n".join([f"longhaul: {word} (exit code {self.code})", *self.lines])


def fault(name, **keys):
    """A fault by its name, such as "watch-410", with the keys that docs/faults.md lists: `at="1s", resource="configmaps"`."""
    return {"name": name, **keys}


class Plane:
    """A running API server. `kubeconfig` is the path of a kubeconfig with all rights, `server` the API server's address."""

    def __init__(self, *, chaos=None, faults=(), order=False, stale=None, manager=None, workloads=None, records=None,
                 allow_undecided=False):
        """chaos: a seed that draws faults which a correct client survives. faults: a list of `fault(…)`. order: events of different
        kinds arrive in another order. stale: the server answers reads from caches up to this many versions behind. manager: a part of
        the user agent of the program under test; faults then affect only its requests. workloads: the time after which Deployments and
        other workloads become ready, such as "200ms". records: a folder for run records; without it and the variable LONGHAUL_RUNS, a
        temporary folder is kept after a failure. allow_undecided: the test may pass even if a fault hits nothing."""
        program = os.environ.get("LONGHAUL") or shutil.which("longhaul")
        if not program:
            raise NotInstalled("longhaul is not on PATH, and the variable LONGHAUL names no program")
        self.allow_undecided = allow_undecided
        self._folder = tempfile.mkdtemp(prefix="longhaul-")
        records = records or os.environ.get("LONGHAUL_RUNS")
        self._keeps = records is not None
        self._verdict, self._lines = None, collections.deque(maxlen=LINES_MAX)
        self._ready = threading.Event()
        port = _free_port()
        self.server = f"https://127.0.0.1:{port}"
        words = [program, "envtest", "--judge", "--replays", "0", "--runs", records or self._path("runs")]
        for flag, value in [("--chaos", chaos), ("--stale", stale), ("--manager-agent", manager), ("--workloads", workloads)]:
            if value is not None:
                words += [flag, str(value)]
        if order:
            words.append("--order")
        if faults:
            with open(self._path("faults.yaml"), "w", encoding="utf-8") as file:
                file.writelines(f"- {json.dumps(one)}\n" for one in faults)
            words += ["--faults", self._path("faults.yaml")]
        words += ["--", "sh", "-c", SCRIPT, "sh", str(port), self._folder]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()
        self._settle()

    def _path(self, name):
        return os.path.join(self._folder, name)

    def _follow(self):
        for line in self._process.stderr:
            line = line.decode("utf-8", "replace").rstrip("\n")
            self._lines.append(line)
            if line.startswith(SERVED):
                self._ready.set()
        # The program has ended, so no further wait is needed.
        self._ready.set()

    def _settle(self):
        """Waits until the API server is ready, and writes the kubeconfig."""
        self._ready.wait(START_WITHIN_S)
        if not any(line.startswith(SERVED) for line in list(self._lines)):
            verdict = self.stop()
            self.remove()
            raise RuntimeError(f"the API server did not start: {verdict}")
        with open(self._path("apiserver.crt"), encoding="utf-8") as file:
            chain = file.read()
        authority = self._path("ca.crt")
        with open(authority, "w", encoding="utf-8") as file:
            # The authority is the last certificate of the chain.
            file.write(chain[chain.rindex(CERTIFICATE):])
        self.kubeconfig = self._path("kubeconfig.yaml")
        with open(self.kubeconfig, "w", encoding="utf-8") as file:
            file.write(KUBECONFIG.format(server=self.server, authority=authority))

    def stop(self):
        """Ends the API server and returns the verdict."""
        if self._verdict is None:
            self._process.stdin.close()
            try:
                code = self._process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                code = self._process.wait()
            self._reader.join()
            self._process.stderr.close()
            self._verdict = Verdict(code, list(self._lines))
        return self._verdict

    def judge(self):
        """Ends the API server, and raises `Failed` unless the verdict is a pass."""
        verdict = self.stop()
        if not verdict.passed and not (self.allow_undecided and verdict.code == 2):
            raise Failed(str(verdict))
        return verdict

    def remove(self):
        """Removes the temporary folder of the kubeconfig."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        judged_already = self._verdict is not None
        self.stop()
        if kind is None and not judged_already:
            self.judge()
        if kind is None and not self._keeps:
            self.remove()


start = Plane


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


try:
    import pytest
except ImportError:
    pytest = None

if pytest:

    @pytest.fixture
    def longhaul():
        """Starts API servers: `plane = longhaul(chaos=1)`. The test fails unless all verdicts are a pass.

        If `longhaul` is missing, the test is skipped, or fails if the variable CI is set. After `plane.stop()` a bad verdict no longer
        fails the test by itself.
        """
        planes = []

        def started(**options):
            try:
                planes.append(Plane(**options))
            except NotInstalled as error:
                if os.environ.get("CI"):
                    raise
                pytest.skip(f"skipped: needs longhaul ({error})")
            return planes[-1]

        yield started
        failed = []
        for plane in planes:
            try:
                plane.__exit__(None, None, None)
            except Failed as error:
                failed.append(str(error))
        if failed:
            pytest.fail("\n".join(failed), pytrace=False)
