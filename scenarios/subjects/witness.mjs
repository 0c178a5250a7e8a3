// What every JavaScript adapter needs: which resources to watch, and how to tell the witness what the client told.
// Made to be copied. Nothing here retries, compares or repairs what a client says.

// Most lines that wait for the witness. Who cannot report must not go on as if nothing were wrong.
const WAITING_MAX = 100_000;
const CHANGES = { ADDED: "added", MODIFIED: "modified", DELETED: "deleted" };

/** `LONGHAUL_WATCH` as objects; the first one is judged, the others are only watched. */
export const resources = (process.env.LONGHAUL_WATCH ?? "packages.longhaul.dev/v1alpha1").split(",").map((text) => {
  const [name, version] = text.split("/");
  const [plural, ...group] = name.split(".");
  return { plural, group: group.join("."), version };
});
/** Empty means all namespaces. */
export const namespace = process.env.LONGHAUL_NAMESPACE ?? "";

/** Where the collection of a resource is served. */
export function path({ plural, group, version }) {
  const root = group ? `/apis/${group}/${version}` : `/api/${version}`;
  return namespace ? `${root}/namespaces/${namespace}/${plural}` : `${root}/${plural}`;
}

/** A number from the environment; `undefined` leaves the client its default. */
export const number = (name) => (process.env[name] ? Number(process.env[name]) : undefined);

/** What a row wants a handler to take with every other modification of an object, the first one included, in ms. */
const SLOW_MS = (number("LONGHAUL_HANDLER_S") ?? 0) * 1000;
// Modifications of each object so far, where that matters; such a row has a few objects.
const modified = new Map();

async function slowly(object, phase) {
  const [uid, times] = [object?.metadata?.uid, modified.get(object?.metadata?.uid) ?? 0];
  if (phase === "MODIFIED") modified.set(uid, times + 1);
  if (phase === "MODIFIED" && times % 2 === 0) await new Promise((done) => setTimeout(done, SLOW_MS));
  report(object, phase);
}

/** The handler of every adapter: it reports when its work is done. Only a slow one is asynchronous. */
export const handle = (object, phase) => (SLOW_MS > 0 ? slowly(object, phase) : report(object, phase));

let waiting = [];
let posting = false;

/** Tells the witness of one call of a handler. What is no event of an object (a Status) is told as the change of one without a uid. */
function report(object, phase) {
  const { uid = "", resourceVersion = "" } = object?.metadata ?? {};
  const change = CHANGES[phase] ?? "modified";
  waiting.push(JSON.stringify({ uid: uid || `${phase}-${object?.code ?? ""}`, resourceVersion: resourceVersion || "0", change }));
  if (waiting.length > WAITING_MAX) process.exit(70);
  if (!posting) void post();
}

async function post() {
  posting = true;
  while (waiting.length > 0) {
    const body = waiting.splice(0, 1000).join("\n") + "\n";
    const answer = await fetch(process.env.LONGHAUL_WITNESS_URL, { method: "POST", body }).catch((error) => ({ ok: false, error }));
    if (!answer.ok) {
      console.error("the witness refused:", answer.error ?? (await answer.text()));
      process.exit(70);
    }
  }
  posting = false;
}
