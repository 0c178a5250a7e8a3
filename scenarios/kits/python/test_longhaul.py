"""Tests of the kit itself: python3 -m pytest, or python3 -m unittest without pytest."""

import http.client
import json
import ssl
import time
import unittest

import longhaul as kit
from longhaul import fault

PATH = "/api/v1/namespaces/default/configmaps"


def connected(plane):
    authority = ssl.create_default_context(cafile=plane.kubeconfig.replace("kubeconfig.yaml", "ca.crt"))
    return http.client.HTTPSConnection(plane.server.removeprefix("https://"), context=authority, timeout=30)


def call(connection, path, method="GET", body=None):
    connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


def config_map(number):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hot"}, "data": {"n": str(number)}}


class Kit(unittest.TestCase):
    def test_a_plane_without_faults_passes(self):
        with kit.start() as plane:
            self.assertEqual(call(connected(plane), "/api/v1/namespaces/default"), 200)

    def test_a_fault_that_hits_nothing_is_undecided(self):
        with self.assertRaises(kit.Failed) as failed:
            with kit.start(faults=[fault("watch-410", at="1h")]):
                pass
        self.assertIn("undecided", str(failed.exception))
        self.assertIn("watch-410", str(failed.exception))
        with kit.start(faults=[fault("watch-410", at="1h")], allow_undecided=True):
            pass

    def test_a_fault_by_name_and_keys_is_met(self):
        refusal = fault("http-error", resource="configmaps", on="list", status=500, count=1)
        with kit.start(faults=[refusal]) as plane:
            connection = connected(plane)
            self.assertEqual([call(connection, PATH), call(connection, PATH)], [500, 200])

    def test_a_hot_loop_fails(self):
        with kit.start() as plane:
            connection = connected(plane)
            self.assertEqual(call(connection, PATH, "POST", config_map(0)), 201)
            began = time.monotonic()
            for number in range(60):
                self.assertEqual(call(connection, PATH + "/hot", "PUT", config_map(number + 1)), 200)
            took = time.monotonic() - began
            verdict = plane.stop()
        if took > 2:
            self.skipTest("skipped: needs a machine with time for 60 writes within 2 s")
        self.assertEqual(verdict.code, 1, verdict)
        self.assertIn("hot loop", str(verdict))

    def test_a_mistake_in_a_fault_is_shown(self):
        with self.assertRaisesRegex(RuntimeError, "watch-411"):
            kit.start(faults=[fault("watch-411")])


if __name__ == "__main__":
    unittest.main()
