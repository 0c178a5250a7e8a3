// A cross-hair that all charts over time share, with the pointer or the arrow keys, and a copy button. No dependency.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const plots = [...document.querySelectorAll(".plot[data-chart]")];
  const charts = new Map(data.charts.map((chart) => [chart.id, chart]));
  const readouts = new Map([...document.querySelectorAll("[data-readout]")].map((p) => [p.dataset.readout, p]));

  const two = (n) => String(n).padStart(2, "0");
  const clock = (ms) => {
    const s = Math.round(ms / 1000);
    const h = Math.floor(s / 3600);
    return h ? `${h}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}` : `${Math.floor(s / 60)}:${two(s % 60)}`;
  };

  // The index of the reading nearest to a time; times rise.
  const nearest = (times, t) => {
    let low = 0, high = times.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] < t) low = middle + 1; else high = middle;
    }
    return low > 0 && t - times[low - 1] < times[low] - t ? low - 1 : low;
  };

  let at = null;
  const show = (ms) => {
    at = ms === null ? null : Math.min(Math.max(ms, 0), data.lengthMs);
    for (const plot of plots) {
      const cursor = plot.querySelector(".cursor");
      const readout = readouts.get(plot.dataset.chart);
      cursor.hidden = at === null;
      readout.textContent = "\u00a0";
      if (at === null) continue;
      cursor.style.left = `${(at / data.lengthMs) * 100}%`;
      readout.textContent = "";
      const add = (tag, text, parent) => {
        const element = document.createElement(tag);
        element.textContent = text;
        parent.append(element);
        return element;
      };
      add("b", clock(at), add("span", "", readout));
      for (const curve of charts.get(plot.dataset.chart).curves) {
        if (!curve.t.length) continue;
        const index = nearest(curve.t, at);
        // Nothing is claimed where there is no reading nearby.
        if (Math.abs(curve.t[index] - at) > Math.max(7500, data.lengthMs / 120)) continue;
        const span = add("span", `${curve.name} `, readout);
        add("b", curve.v[index], span);
      }
    }
  };

  for (const plot of plots) {
    plot.tabIndex = 0;
    plot.setAttribute("aria-describedby", "hint");
    const move = (event) => {
      const box = plot.getBoundingClientRect();
      show(((event.clientX - box.left) / box.width) * data.lengthMs);
    };
    plot.addEventListener("pointermove", move);
    plot.addEventListener("pointerdown", move);
    plot.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") show(null); });
    plot.addEventListener("blur", () => {
      readouts.get(plot.dataset.chart).setAttribute("aria-live", "off");
      show(null);
    });
    plot.addEventListener("keydown", (event) => {
      const step = data.lengthMs / (event.shiftKey ? 20 : 120);
      const from = at === null ? data.lengthMs / 2 : at;
      const to = { ArrowLeft: from - step, ArrowRight: from + step, Home: 0, End: data.lengthMs }[event.key];
      if (event.key === "Escape") show(null);
      if (to === undefined) return;
      event.preventDefault();
      readouts.get(plot.dataset.chart).setAttribute("aria-live", "polite");
      show(to);
    });
  }

  const copy = document.getElementById("copy");
  if (navigator.clipboard) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(document.getElementById("repeat").textContent);
        copy.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(document.getElementById("repeat"));
      }
    });
  }
})();
