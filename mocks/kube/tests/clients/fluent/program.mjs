// kubernetes-fluent-client against the server of KUBECONFIG: the fluent API is used once.
import assert from "node:assert/strict";
import { GenericKind, K8s, RegisterKind, kind } from "kubernetes-fluent-client";

class Package extends GenericKind {}
RegisterKind(Package, { group: "longhaul.dev", version: "v1", kind: "Package", plural: "packages" });

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

await crud();
process.exit(0);
