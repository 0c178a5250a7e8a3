// Values of all charts at one time, looking closer, series that can be hidden, anomalies that can be searched. No dependency; without it
// the page says the same.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const length = data.lengthMs;
  const charts = new Map(data.charts.map((chart) => [chart.id, chart]));
  const plots = [...document.querySelectorAll(".plot[data-chart]")];
  const readoutOf = (plot) => plot.closest("figure").querySelector(".readout");
  const root = document.documentElement;

  const two = (n) => String(n).padStart(2, "0");
  // A thousand of the axis are a second, or, where the page says so, one of what it counts; those are told from 1.
  const single = Boolean(data.unit);
  const nameOf = (ms) => `${data.unit} ${Math.min(Math.floor(ms / 1000), length / 1000 - 1) + 1}`;
  const clock = (ms, step = 1000) => {
    const s = Math.floor(ms / 1000);
    const rest = step < 1000 ? `.${String(Math.round(ms % 1000)).padStart(3, "0").slice(0, step < 100 ? 2 : 1)}` : "";
    const h = Math.floor(s / 3600);
    return (h ? `${h}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}` : `${Math.floor(s / 60)}:${two(s % 60)}`) + rest;
  };
  const element = (tag, text, parent) => {
    const made = document.createElement(tag);
    made.textContent = text;
    parent.append(made);
    return made;
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

  // The reading at a time: of values that hold for a stretch the last that began, if it still holds, else the nearest.
  const reading = (curve, t) => {
    if (!curve.e) {
      const place = nearest(curve.t, t);
      // Nothing is claimed where there is no reading nearby.
      return Math.abs(curve.t[place] - t) > Math.max(7500, length / 120) ? undefined : curve.v[place];
    }
    let low = 0, high = curve.t.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (curve.t[middle] <= t) low = middle + 1; else high = middle;
    }
    return low > 0 && (t < curve.e[low - 1] || t === length) ? curve.v[low - 1] : undefined;
  };

  // What is seen of the run, in milliseconds.
  let view = { from: 0, to: length };
  let at = null;

  const show = (ms) => {
    at = ms === null ? null : Math.min(Math.max(ms, 0), length);
    for (const plot of plots) {
      const cursor = plot.querySelector(".cursor");
      const readout = readoutOf(plot);
      cursor.hidden = at === null;
      readout.textContent = "\u00a0";
      if (at === null) continue;
      cursor.style.left = `${(at / length) * 100}%`;
      readout.textContent = "";
      element("b", single ? nameOf(at) : clock(at), element("span", "", readout));
      charts.get(plot.dataset.chart).curves.forEach((curve, index) => {
        if (!curve.t.length || plot.querySelector(`path[data-curve="${index}"]`).classList.contains("off")) return;
        const words = reading(curve, at);
        if (words !== undefined) element("b", words, element("span", `${curve.name} `, readout));
      });
    }
  };

  // Looking closer: the drawings are stretched, which is a matter of two numbers, and the axis gets ticks of its own.
  const axes = [...document.querySelectorAll(".world.ticks")];
  const original = axes.map((axis) => axis.innerHTML);
  const zoomed = document.getElementById("zoomed");
  const steps = [100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 144e5, 432e5, 864e5];
  const least = Math.min(single ? 4000 : 1000, length);
  const look = (from, to) => {
    const wide = Math.min(Math.max(to - from, least), length);
    const start = Math.min(Math.max(from, 0), length - wide);
    view = { from: start, to: start + wide };
    const whole = wide >= length;
    root.style.setProperty("--zw", `${(length / wide) * 100}%`);
    root.style.setProperty("--zx", `${(-start / wide) * 100}%`);
    axes.forEach((axis, index) => {
      axis.innerHTML = whole ? original[index] : "";
      if (whole) return;
      const step = steps.find((one) => wide / one <= 8 && (!single || one >= 1000)) ?? length;
      for (let t = Math.ceil(view.from / step) * step; t <= view.to && !(single && t >= length); t += step) {
        const told = single ? String(t / 1000 + 1) : clock(t, step);
        element("span", told, axis).style.left = `${((t + (single ? 500 : 0)) / length) * 100}%`;
      }
    });
    if (!zoomed) return;
    zoomed.hidden = whole;
    document.getElementById("span").textContent =
      single ? `Shown: ${nameOf(view.from)} to ${Math.ceil(view.to / 1000)}.` : `Shown: ${clock(view.from)} to ${clock(view.to)}.`;
  };
  const closer = (factor) => {
    const middle = at ?? (view.from + view.to) / 2;
    const wide = (view.to - view.from) * factor;
    look(middle - wide / 2, middle + wide / 2);
  };
  document.getElementById("whole")?.addEventListener("click", () => look(0, length));

  const hint = document.getElementById("hint");
  if (hint) hint.hidden = false;
  for (const plot of plots) {
    plot.tabIndex = 0;
    plot.setAttribute("aria-describedby", "hint");
    const selection = plot.querySelector(".selection");
    let begun = null;
    const timeAt = (event) => {
      const box = plot.getBoundingClientRect();
      const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
      return view.from + share * (view.to - view.from);
    };
    const mark = (from, to) => {
      selection.style.left = `${(Math.min(from, to) / length) * 100}%`;
      selection.style.width = `${(Math.abs(to - from) / length) * 100}%`;
    };
    plot.addEventListener("pointermove", (event) => {
      show(timeAt(event));
      if (begun === null) return;
      selection.hidden = false;
      mark(begun, timeAt(event));
    });
    plot.addEventListener("pointerdown", (event) => {
      show(timeAt(event));
      if (event.button === 0) begun = timeAt(event);
      // A drag that leaves the plot goes on; where the pointer is gone already there is nothing to hold.
      try { plot.setPointerCapture(event.pointerId); } catch { /* nothing to do */ }
    });
    plot.addEventListener("pointerup", (event) => {
      const from = begun, to = timeAt(event);
      begun = null;
      selection.hidden = true;
      // A click is no drag.
      if (from !== null && Math.abs(to - from) > (view.to - view.from) / 50) look(Math.min(from, to), Math.max(from, to));
    });
    plot.addEventListener("pointercancel", () => { begun = null; selection.hidden = true; });
    plot.addEventListener("dblclick", () => look(0, length));
    plot.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse" && begun === null) show(null); });
    plot.addEventListener("blur", () => {
      readoutOf(plot).setAttribute("aria-live", "off");
      show(null);
    });
    plot.addEventListener("keydown", (event) => {
      const step = Math.max((view.to - view.from) / (event.shiftKey ? 20 : 120), single ? 1000 : 0);
      const from = at === null ? (view.from + view.to) / 2 : at;
      if (event.key === "Escape") { show(null); look(0, length); }
      if (event.key === "+" || event.key === "=") closer(0.5);
      if (event.key === "-") closer(2);
      const to = { ArrowLeft: from - step, ArrowRight: from + step, Home: view.from, End: view.to }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      readoutOf(plot).setAttribute("aria-live", "polite");
      show(to);
    });
  }

  // A series is hidden and shown by its name in the legend.
  for (const item of document.querySelectorAll(".legend li[data-curve]")) {
    // What has no name of its own goes with the one before it.
    const number = item.dataset.curve;
    const paths = item.closest("figure").querySelectorAll(`.plot path[data-curve="${number}"], .plot path[data-of="${number}"]`);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "series";
    button.setAttribute("aria-pressed", "true");
    button.append(...item.childNodes);
    item.append(button);
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      paths.forEach((path) => path.classList.toggle("off", !on));
    });
  }

  // An anomaly leads to its moment.
  for (const link of document.querySelectorAll("a.moment")) {
    link.addEventListener("click", () => {
      const ms = Number(link.dataset.ms);
      const wide = Math.max(30000, length / 20);
      look(ms - wide / 2, ms + wide / 2);
      show(ms);
    });
  }
  const filter = document.getElementById("filter");
  if (filter) {
    filter.hidden = false;
    const outcome = document.getElementById("outcome"), words = document.getElementById("words");
    const rows = [...document.querySelectorAll("details.anomaly")];
    const told = rows.map((row) => row.textContent.toLowerCase());
    const choose = () => {
      const wanted = words.value.trim().toLowerCase();
      let shown = 0;
      rows.forEach((row, index) => {
        const fits = (!outcome.value || row.dataset.outcome === outcome.value) && told[index].includes(wanted);
        row.hidden = !fits;
        shown += fits;
      });
      document.getElementById("shown").textContent = shown === rows.length ? "" : `${shown} of ${rows.length} shown`;
    };
    outcome.addEventListener("change", choose);
    words.addEventListener("input", choose);
  }

  // Paper cannot be opened.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((one) => { one.open = false; }));

  // While the run goes on there are newer facts soon; who looks closer is left in peace.
  const running = document.getElementById("running");
  if (running) {
    const busy = () => at !== null || view.to - view.from < length || document.querySelector("details[open]") !== null;
    const lost = () => { running.textContent = "The run has ended, or is no longer reachable. Its report is in the folder of its record."; };
    const timer = setInterval(async () => {
      if (busy() || document.hidden) return;
      try {
        await fetch(location.href, { method: "HEAD", cache: "no-store" });
        location.reload();
      } catch {
        lost();
      }
    }, 5000);
    // Its report takes the page's place. By then nobody answers at its address any more, so the text is all there is.
    const replace = (text) => {
      const scrolled = scrollY;
      document.open();
      document.write(text);
      document.close();
      const told = document.createElement("p");
      told.className = "running";
      told.setAttribute("role", "status");
      told.textContent = "The run has ended: this is its report. Its files are in the folder of its record.";
      document.body.prepend(told);
      scrollTo(0, scrolled);
    };
    const ended = (text) => {
      clearInterval(timer);
      if (!busy()) return replace(text);
      const verdict = new DOMParser().parseFromString(text, "text/html").querySelector("h1").textContent;
      running.textContent = `The run has ended: ${verdict.trim()}. `;
      const button = element("button", "Show its report", running);
      button.type = "button";
      button.addEventListener("click", () => replace(text));
    };
    // It is answered when the run ends, or not at all for a while.
    (async () => {
      for (;;) {
        try {
          const answer = await fetch("ended", { cache: "no-store" });
          if (answer.status === 200) return ended(await answer.text());
          if (answer.status !== 204) return;
        } catch {
          return lost();
        }
      }
    })();
  }

  const copy = document.getElementById("copy");
  if (copy && navigator.clipboard) {
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
