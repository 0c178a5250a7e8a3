// Uses a report in a frame as a reader does, and writes what it saw as JSON into the page: one object for each of the widths that the address
// names, and one for a reader who allows no script.
"use strict";
const widths = new URLSearchParams(location.search).get("widths").split(",").map(Number);
const tell = (seen) => { document.getElementById("seen").textContent = JSON.stringify(seen); };
addEventListener("error", (event) => tell({ error: String(event.message) }));
const open = (width, more) => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:900px;border:0`;
  if (more) frame.setAttribute("sandbox", more);
  frame.src = "report.html";
  frame.addEventListener("load", () => done(frame));
  document.body.append(frame);
});

// Colours as the browser paints them, whatever notation they are in.
const canvas = document.createElement("canvas");
canvas.width = canvas.height = 1;
const brush = canvas.getContext("2d", { willReadFrequently: true });
const rgba = (colour) => {
  brush.clearRect(0, 0, 1, 1);
  brush.fillStyle = colour;
  brush.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = brush.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
const light = (rgb) => {
  const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
// WCAG 2.2, 1.4.3.
const ratio = (one, other) => {
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const backgroundOf = (element, view) => {
  const layers = [];
  for (let at = element; at; at = at.parentElement) layers.push(rgba(view.getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
};
const worstContrast = (page, view) => {
  let worst = { ratio: 99, text: "" };
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const element = walker.currentNode.parentElement;
    if (!text || !element.checkVisibility() || ["SCRIPT", "STYLE", "OPTION"].includes(element.tagName)) continue;
    const style = view.getComputedStyle(element);
    const below = backgroundOf(element, view);
    const found = ratio(over(rgba(style.color), below), below);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    if (found / least < worst.ratio / 4.5) worst = { ratio: (found / least) * 4.5, text: text.slice(0, 40) };
  }
  return worst;
};

// Labels of faults that cover each other, or end beyond the plot.
const crossing = (page) => {
  const labels = [...page.querySelectorAll(".fault-label")].filter((one) => one.checkVisibility());
  const boxes = labels.map((one) => one.getBoundingClientRect());
  const clash = (a, b) => a.top === b.top && a.left < b.right - 0.5 && b.left < a.right - 0.5;
  const beyond = (box, one) => box.right > one.closest(".view").getBoundingClientRect().right + 0.5;
  return {
    labels: labels.length,
    narrow: boxes.filter((box) => box.width < 40).length,
    over: boxes.filter((a, i) => boxes.slice(i + 1).some((b) => clash(a, b)) || beyond(a, labels[i])).length,
  };
};
const beyondOf = (page, view) => {
  const all = [...page.querySelectorAll("body *")];
  const beyond = all.filter((one) => one.getBoundingClientRect().right > view.innerWidth + 0.5 && !one.parentElement.closest(".scroll:not(:has(.findings)),pre,.view,nav"));
  return beyond.slice(0, 3).map((one) => `${one.tagName}.${one.className}`);
};

const use = (frame) => {
  const page = frame.contentDocument, view = frame.contentWindow;
  const all = (what) => [...page.querySelectorAll(what)];
  const plots = all(".plot[data-chart]");
  const zoom = () => Math.round(parseFloat(view.getComputedStyle(page.documentElement).getPropertyValue("--zw") || "100"));
  const send = (plot, type, share, more = {}) => {
    const box = plot.getBoundingClientRect();
    const at = { clientX: box.left + box.width * share, clientY: box.top + 5, bubbles: true, pointerType: "mouse", ...more };
    plot.dispatchEvent(new view.PointerEvent(type, at));
  };
  const key = (plot, name) => plot.dispatchEvent(new view.KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  const readouts = () => all(".readout").filter((one) => /\d/.test(one.textContent)).length;
  const ticks = () => all(".world.ticks")[0].textContent;
  const seen = { sideways: page.documentElement.scrollWidth - view.innerWidth, plots: plots.length };

  const drawn = plots.filter((plot) => [...plot.querySelectorAll("svg path[data-curve], svg path.fill")].some((path) => path.getAttribute("d")));
  seen.drawn = drawn.length;
  send(plots[0], "pointermove", 0.5);
  seen.hover = readouts();
  send(plots[0], "pointerleave", 0.5);
  seen.left = readouts();
  key(plots[1], "ArrowRight");
  seen.keyboard = readouts();
  const whole = ticks();
  send(plots[1], "pointerdown", 0.25, { button: 0 });
  send(plots[1], "pointermove", 0.5);
  send(plots[1], "pointerup", 0.5);
  seen.zoomed = zoom();
  seen.otherTicks = ticks() !== whole;
  seen.offered = !page.getElementById("zoomed").hidden;
  key(plots[1], "Escape");
  seen.back = zoom();
  seen.sameTicks = ticks() === whole;
  key(plots[1], "+");
  seen.closer = zoom();
  page.getElementById("whole").click();
  const series = page.querySelector("#charts button.series");
  series.click();
  seen.hidden = [series.getAttribute("aria-pressed"), all("#charts path.off").length];
  series.click();
  const anomalies = all("details.anomaly");
  seen.anomalies = anomalies.length;
  if (anomalies.length) {
    const words = page.getElementById("words");
    words.value = "nothing is called so";
    words.dispatchEvent(new view.Event("input"));
    seen.filtered = anomalies.filter((one) => !one.hidden).length;
    words.value = "";
    words.dispatchEvent(new view.Event("input"));
    anomalies.forEach((one) => { one.open = true; });
    page.querySelector("a.moment").click();
    seen.moment = zoom();
    seen.history = all(".history .rail i").length;
    page.getElementById("whole").click();
  }
  // What cannot be reached by keyboard, or has no name, is not there for some.
  seen.unnamed = all("svg[role=img],button,a,select,input,[role=region]").filter((one) => {
    const label = one.getAttribute("aria-label") || one.textContent.trim() || (one.labels && one.labels.length);
    return !label;
  }).length;
  seen.opened = page.documentElement.scrollWidth - view.innerWidth;
  seen.beyond = beyondOf(page, view);
  seen.faults = crossing(page);
  seen.contrast = worstContrast(page, view);
  seen.dark = view.matchMedia("(prefers-color-scheme: dark)").matches;
  return seen;
};

// What is there for who allows no script: everything but what only a script could use.
const read = (frame) => {
  const page = frame.contentDocument;
  page.querySelectorAll("details").forEach((one) => { one.open = true; });
  const gone = [...page.querySelectorAll("body *:not(script, title)")].filter((one) => !one.checkVisibility() && !one.closest("[hidden], .defs, select"));
  const words = page.body.innerText;
  return {
    scripts: page.querySelectorAll("button.series").length,
    hidden: [...page.querySelectorAll("[hidden]")].map((one) => one.id || one.className),
    gone: gone.slice(0, 3).map((one) => `${one.tagName}.${one.className}`),
    plots: page.querySelectorAll(".plot path[d^=M]").length,
    words,
  };
};

(async () => {
  const seen = [];
  for (const width of widths) {
    const frame = await open(width);
    seen.push({ width, ...use(frame) });
    frame.remove();
  }
  // On the widest: what a phone has no room for is told in other words there.
  tell({ seen, without: read(await open(widths.at(-1), "allow-same-origin")) });
})();
