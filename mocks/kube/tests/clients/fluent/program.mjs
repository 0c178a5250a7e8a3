// kubernetes-fluent-client against the server of KUBECONFIG: `watch` runs a watcher until it is killed, `crud` uses
// the fluent API once. Every line of output is one JSON object.
import assert from "node:assert/strict";
import { GenericKind, K8s, RegisterKind, WatchEvent, kind } from "kubernetes-fluent-client";

class Package extends GenericKind {}
RegisterKind(Package, { group: "longhaul.dev", version: "v1", kind: "Package", plural: "packages" });
const say = (object) => process.stdout.write(JSON.stringify(object) + "\n");

async function watch() {
  const tell = (object, event) =>
    say({ event, name: object.metadata.name, revision: object.metadata.resourceVersion });
  // The shortest pauses that it offers; its defaults are 5 s and 10 min.
  const watcher = K8s(Package).InNamespace("default").Watch(tell, { resyncDelaySec: 1, lastSeenLimitSeconds: 20 });
  for (const name of ["CONNECT", "NETWORK_ERROR", "DATA_ERROR", "RECONNECT", "OLD_RESOURCE_VERSION", "LIST_ERROR",
    "WATCH_ERROR", "GIVE_UP", "ABORT"]) {
    watcher.events.on(WatchEvent[name], (detail) => say({ client: name, detail: String(detail) }));
  }
  await watcher.start();
}

async function refused(code, promise) {
  await assert.rejects(promise, (error) => {
    assert.equal(error.status, code, JSON.stringify(error));
    return true;
  });
}

async function crud() {
  const packages = () => K8s(Package).InNamespace("default");
  const made = { metadata: { name: "fluent", namespace: "default" }, spec: { image: "a:1" } };
  await K8s(Package).Create(made);
  await refused(409, K8s(Package).Create(made));
  await refused(404, packages().Get("none"));
  const applied = await K8s(Package).Apply(
    { metadata: { name: "fluent", namespace: "default" }, spec: { image: "a:2" } }, { force: true });
  assert.equal(applied.spec.image, "a:2");
  const patched = await K8s(Package, { namespace: "default", name: "fluent" }).Patch(
    [{ op: "replace", path: "/spec/image", value: "a:3" }]);
  assert.equal(patched.spec.image, "a:3");
  const status = await K8s(Package).PatchStatus(
    { metadata: { name: "fluent", namespace: "default" }, status: { phase: "Ready" } });
  assert.deepEqual([status.status.phase, status.spec.image], ["Ready", "a:3"]);
  const list = await packages().WithField("spec.image", "a:3").Get();
  assert.deepEqual(list.items.map((item) => item.metadata.name), ["fluent"]);
  await K8s(kind.ConfigMap).Apply({ metadata: { name: "cm", namespace: "default" }, data: { a: "1" } });
  await K8s(kind.ConfigMap).Apply({ metadata: { name: "cm", namespace: "default" }, data: { a: "2" } });
  const map = await K8s(kind.ConfigMap).InNamespace("default").Get("cm");
  assert.deepEqual(map.data, { a: "2" });
  await K8s(Package).InNamespace("default").Finalize("add", "longhaul.dev/hold", "fluent");
  const held = await packages().Get("fluent");
  assert.deepEqual(held.metadata.finalizers, ["longhaul.dev/hold"]);
  await packages().Delete("fluent");
  const ending = await packages().Get("fluent");
  assert.ok(ending.metadata.deletionTimestamp);
  await K8s(Package).InNamespace("default").Finalize("remove", "longhaul.dev/hold", "fluent");
  await refused(404, packages().Get("fluent"));
}

if (process.argv[2] === "watch") await watch();
else {
  await crud();
  process.exit(0);
}
