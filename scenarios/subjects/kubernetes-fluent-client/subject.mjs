// kubernetes-fluent-client as a subject: one `Watch` for each resource, with the callback and the options of Pepr.
//
// Options have other names in older versions. The adapter sets all names, and each version uses those that it knows. Time
// limits come from the environment; without it the client's defaults apply. The event GIVE_UP is only printed. `--http2`
// sets the option `useHTTP2` of 3.1. `--native-fetch` uses Node's own `fetch` instead of `node-fetch`.
import fs from "node:fs";
import { createRequire } from "node:module";
import { Readable } from "node:stream";
import tls from "node:tls";
import { handle, namespace, number, resources } from "./witness.mjs";

const require = createRequire(import.meta.url);
if (process.argv.includes("--native-fetch")) {
  // Node's `fetch` has no option for a CA, so the kubeconfig's CA becomes a default CA of the process.
  const ca = fs.readFileSync(process.env.KUBECONFIG, "utf8").match(/certificate-authority-data"?: *(?:[>|]-?\s+)?"?([^"\s,}]+)/)[1];
  tls.setDefaultCACertificates([...tls.rootCertificates, Buffer.from(ca, "base64").toString()]);
  // The library reads the answer as a Node stream, as `node-fetch` returns it.
  const native = async (url, options) => {
    const answer = await fetch(url, options);
    let body;
    const stream = () => (body ??= Readable.fromWeb(answer.body));
    return new Proxy(answer, { get: (of, name) => (name === "body" ? stream() : typeof of[name] === "function" ? of[name].bind(of) : of[name]) });
  };
  Object.assign(require("node-fetch"), { default: native });
}
const { GenericKind, K8s, RegisterKind, WatchEvent } = require("kubernetes-fluent-client");

// Some versions read a token only from a Pod's token file. Reading that file returns the kubeconfig's token.
const POD_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token";
const { readFile } = fs.promises;
const token = () => fs.readFileSync(process.env.KUBECONFIG, "utf8").match(/\btoken"?: *"?([^"\s,}]+)/)?.[1] ?? "";
fs.promises.readFile = (file, ...rest) => (file === POD_TOKEN && token() ? Promise.resolve(token()) : readFile(file, ...rest));

const useHTTP2 = process.argv.includes("--http2") ? { useHTTP2: true } : {};
const clocks = {
  // If the scenario needs short time limits, the client retries after a second, as often as in Pepr.
  ...(number("LONGHAUL_SILENCE_S") ? { resyncFailureMax: 5, retryMax: 5, resyncDelaySec: 1, retryDelaySec: 1 } : {}),
  lastSeenLimitSeconds: number("LONGHAUL_SILENCE_S"), resyncIntervalSec: number("LONGHAUL_SILENCE_S"),
  relistIntervalSec: number("LONGHAUL_RELIST_S"),
};
const QUIET = ["DATA", "BOOKMARK", "RESOURCE_VERSION"];

function watch({ plural, group, version }, tell) {
  // The library identifies a kind by the name of its class.
  const Kind = { [plural]: class extends GenericKind {} }[plural];
  RegisterKind(Kind, { group, version, kind: plural, plural });
  const scope = namespace ? K8s(Kind).InNamespace(namespace) : K8s(Kind);
  const watcher = scope.Watch(tell, { ...clocks, ...useHTTP2 });
  for (const name of Object.keys(WatchEvent).filter((name) => !QUIET.includes(name))) {
    watcher.events.on(WatchEvent[name], (detail) => console.error(plural, name, String(detail?.message ?? detail).slice(0, 200)));
  }
  return watcher.start();
}

await Promise.all(resources.map((resource, index) => watch(resource, index === 0 ? handle : () => {})));
// A real operator also has a server, so its process does not end when no watch is open any more.
setInterval(() => {}, 2 ** 31 - 1);
