// kubernetes-fluent-client as a subject: one `Watch` for each resource, with the callback and the options of Pepr.
//
// Options have other names in older versions; all are given, each version takes those that it knows. The clocks come
// from the environment; without it the client's own defaults hold. Nothing is done about GIVE_UP: it is written down.
import fs from "node:fs";
import { createRequire } from "node:module";
import { handle, namespace, number, resources } from "./witness.mjs";

const { GenericKind, K8s, RegisterKind, WatchEvent } = createRequire(import.meta.url)("kubernetes-fluent-client");

// Some versions take a token only from the place where a pod finds it. Here the kubeconfig's stands for it.
const POD_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token";
const { readFile } = fs.promises;
const token = () => fs.readFileSync(process.env.KUBECONFIG, "utf8").match(/\btoken"?: *"?([^"\s,}]+)/)?.[1] ?? "";
fs.promises.readFile = (file, ...rest) => (file === POD_TOKEN && token() ? Promise.resolve(token()) : readFile(file, ...rest));

const clocks = {
  resyncFailureMax: number("KFC_FAILURES_MAX"), retryMax: number("KFC_FAILURES_MAX"),
  resyncDelaySec: number("KFC_RESYNC_DELAY_S"), retryDelaySec: number("KFC_RESYNC_DELAY_S"),
  lastSeenLimitSeconds: number("LONGHAUL_SILENCE_S"), resyncIntervalSec: number("LONGHAUL_SILENCE_S"),
  relistIntervalSec: number("LONGHAUL_RELIST_S"),
};
const QUIET = ["DATA", "BOOKMARK", "RESOURCE_VERSION"];

function watch({ plural, group, version }, tell) {
  // Kinds are known by the name of their class.
  const Kind = { [plural]: class extends GenericKind {} }[plural];
  RegisterKind(Kind, { group, version, kind: plural, plural });
  const scope = namespace ? K8s(Kind).InNamespace(namespace) : K8s(Kind);
  const watcher = scope.Watch(tell, { ...clocks });
  for (const name of Object.keys(WatchEvent).filter((name) => !QUIET.includes(name))) {
    watcher.events.on(WatchEvent[name], (detail) => console.error(plural, name, String(detail?.message ?? detail).slice(0, 200)));
  }
  return watcher.start();
}

await Promise.all(resources.map((resource, index) => watch(resource, index === 0 ? handle : () => {})));
