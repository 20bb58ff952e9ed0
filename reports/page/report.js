"use strict";
// Draws the report out of the run's results (the JSON in #results). Text is set as text, never as markup.
const results = JSON.parse(document.getElementById("results").textContent);
const palette = ["#2f6fb7", "#d9822b", "#3d9a6c", "#a05ab0", "#b5a12b", "#4fa3b5", "#8a6d5c"];
const failedColour = "#c8372d";
const stageColours = ["#b9b0c9", "#8aa4c8", "#5d86c0", "#c9c4b4", "#e0a458", "#d9822b", "#7fb89a", "#3d9a6c"];
const charts = [];
// One colour per version in the whole page, whoever answered in a phase.
const versions = [...new Set(results.steps.flatMap(s => s.traffic.flatMap(t => Object.keys(t.byVersion))))].sort();
const print = {"--ink": "#000000", "--soft": "#444444", "--line": "#bbbbbb"};
let printing = false;  // a canvas does not follow the style sheet of paper

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  for (const child of children) element.append(child);
  return element;
}
function time(ms) {
  if (ms === 0) return "0 ms";
  if (ms >= 60000) return (ms / 60000).toFixed(2) + " min";
  if (ms >= 1000) return (ms / 1000).toFixed(2) + " s";
  if (ms >= 1) return ms.toFixed(ms >= 100 ? 0 : 1) + " ms";
  return (ms * 1000).toFixed(0) + " us";
}
function percent(part, whole) { return whole === 0 ? "–" : (100 * part / whole).toFixed(1) + " %"; }
function sum(counts) { return Object.values(counts).reduce((a, b) => a + b, 0); }
function table(head, rows) {
  const t = make("table", head.length > 9 ? {class: "wide"} : {});
  const numeric = head.map(h => h.startsWith("#"));
  t.append(make("thead", {}, make("tr", {}, ...head.map((h, i) => make("th", numeric[i] ? {class: "n"} : {}, h.replace(/^#/, ""))))));
  t.append(make("tbody", {}, ...rows.map(row => make("tr", {}, ...row.map((cell, i) => make("td", numeric[i] ? {class: "n"} : {}, cell))))));
  return t;
}
function ink(name) { return printing ? print[name] : getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
function figure(caption, height, config) {
  const canvas = make("canvas", {role: "img", "aria-label": caption});
  const plot = make("div", {class: "plot", style: "height:" + height + "px"}, canvas);
  const box = make("figure", {}, make("figcaption", {}, caption), plot);
  queueMicrotask(() => { config.options.animation = false; charts.push(new Chart(canvas, config)); });
  return box;
}
function scales(horizontal, xTitle, yTitle) {
  const axis = (title, all) => ({stacked: true, title: {display: title !== "", text: title, color: ink("--soft")},
    ticks: {color: ink("--ink"), maxRotation: 0, autoSkip: !all, autoSkipPadding: 14}, grid: {color: ink("--line")}});
  return {indexAxis: horizontal ? "y" : "x", responsive: true, maintainAspectRatio: false,
    scales: {x: axis(xTitle, false), y: axis(yTitle, horizontal)}, plugins: {legend: {position: "bottom", labels: {color: ink("--ink"), boxWidth: 12}}}};
}

function splitFigure(step, traffic) {
  const seen = versions.filter(v => traffic.series.some(b => b.byVersion[v]));
  const bars = {barPercentage: 1, categoryPercentage: 1};
  const datasets = seen.map(v => ({label: v || "(unlabelled)", ...bars,
    data: traffic.series.map(b => b.byVersion[v] || 0), backgroundColor: palette[versions.indexOf(v) % palette.length]}));
  if (traffic.failed > 0) datasets.push({label: "failed", ...bars, data: traffic.series.map(b => b.failed), backgroundColor: failedColour});
  return figure(traffic.flow + (traffic.phase === "meanwhile" ? ", meanwhile" : ", then") + ": requests per " + time(traffic.bucketMs) + " by version", 190,
    {type: "bar", data: {labels: traffic.series.map((_, i) => String(Math.round(i * traffic.bucketMs) / 1000)), datasets},
     options: scales(false, "seconds since the phase began", "requests")});
}
// Kubernetes (pods start, slices are written) takes seconds where the mesh takes milliseconds: the chart begins where
// Kubernetes ended, and the table gives Kubernetes a column.
function convergenceFigure(step) {
  const rows = step.convergence.proxies.slice(0, 40);
  const all = Object.keys(rows[0].stagesMs), stages = all.slice(1);
  const datasets = stages.map((s, i) => ({label: s, data: rows.map(r => r.stagesMs[s]), backgroundColor: stageColours[i + 1]}));
  const before = Math.max(...rows.map(r => r.stagesMs[all[0]]));
  const caption = (before > 0 ? `Kubernetes took ${time(before)}; from its last write` : "From the event") +
    " to the last resource in force, per proxy and stage" + (step.convergence.proxies.length > 40 ? " (slowest 40)" : "");
  const shorten = name => name.length > 50 ? name.slice(0, 22) + "…" + name.slice(-27) : name;
  return figure(caption, 90 + 26 * rows.length, {type: "bar", data: {labels: rows.map(r => shorten(r.proxy)), datasets},
    options: scales(true, before > 0 ? "ms since Kubernetes' last write" : "ms since the event", "")});
}
// Clusters side by side. Edges within a cluster run in a lane on its outer side, others in the gap; the number stands
// near the caller, where edges have not crossed yet.
function topologyFigure() {
  const nodes = results.topology.nodes, edges = results.topology.edges;
  const clusters = [...new Set(nodes.map(n => n.cluster))].filter(c => c !== "");
  if (clusters.length === 0) return null;
  const svg = (tag, attributes, text) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const width = 1040, gap = clusters.length > 1 ? 700 / clusters.length / 1.3 : 0;
  const w = (width - gap * (clusters.length - 1)) / clusters.length, lane = Math.min(72, w / 4), high = 30, pitch = 46;
  const place = new Map();
  let height = 0;
  const root = svg("svg", {role: "img", "aria-label": "topology"});
  const marker = svg("marker", {id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto"});
  marker.append(svg("path", {d: "M0 0 L8 4 L0 8 z", class: "arrow"}));
  const definitions = svg("defs", {});
  definitions.append(marker);
  root.append(definitions);
  clusters.forEach((cluster, c) => {
    const left = clusters.length > 1 && c === 0;  // the lane's side
    const inside = nodes.filter(n => n.cluster === cluster && n.kind !== "cluster");
    inside.forEach((n, i) => place.set(n.id, {c, left, x: c * (w + gap) + (left ? lane : 12), y: 46 + i * pitch, w: w - lane - 12}));
    height = Math.max(height, 54 + inside.length * pitch);
  });
  clusters.forEach((cluster, c) => {
    root.append(svg("rect", {class: "box", x: c * (w + gap) + 1, y: 4, width: w - 2, height: height - 8, rx: 8}));
    const title = nodes.find(n => n.cluster === cluster && n.kind === "cluster");
    root.append(svg("text", {x: c * (w + gap) + 14, y: 28, "font-weight": 700}, title ? title.label : cluster));
  });
  const labels = [], ports = new Map();
  const port = (node, side) => {  // edges of one node's side do not start on top of each other
    const key = node.x + "/" + node.y + "/" + side, used = ports.get(key) || 0;
    ports.set(key, used + 1);
    return node.y + high / 2 + [0, -8, 8, -4, 4, -12, 12][used % 7];
  };
  const shown = edges.filter(e => place.has(e.from) && place.has(e.to) && e.from !== e.to);
  for (const edge of shown) {
    const a = place.get(edge.from), b = place.get(edge.to), same = a.c === b.c, right = same ? !a.left : a.c < b.c;
    const x1 = right ? a.x + a.w : a.x, x2 = same === right ? b.x + b.w : b.x;
    const y1 = port(a, right), y2 = port(b, same ? right : !right), out = same ? (right ? lane : -lane) * 0.62 : (x2 - x1) / 2;
    const c1 = x1 + out, c2 = same ? x2 + out : x2 - out;
    root.append(svg("path", {class: "edge", "data-edge": "", "marker-end": "url(#arrow)", d: `M${x1} ${y1} C${c1} ${y1} ${c2} ${y2} ${x2} ${y2}`}));
    const t = same ? 0.5 : 0.2, at = (p, q, r, s) => (1 - t) ** 3 * p + 3 * (1 - t) ** 2 * t * q + 3 * (1 - t) * t * t * r + t ** 3 * s;
    const words = edge.label, half = words.length * 3.2 + 4;
    // A long label would leave its gap.
    const x = same ? at(x1, c1, c2, x2) : Math.min(Math.max(at(x1, c1, c2, x2), Math.min(x1, x2) + half + 4), Math.max(x1, x2) - half - 4);
    const y = at(y1, y1, y2, y2);
    labels.push(svg("rect", {class: "halo", x: x - half, y: y - 8, width: 2 * half, height: 16, rx: 3}),
      svg("text", {class: "label", x, y: y + 4, "text-anchor": "middle"}, words));
  }
  root.append(...labels);
  for (const n of nodes) {
    const p = place.get(n.id);
    if (!p || n.kind === "cluster") continue;
    root.append(svg("rect", {class: "node " + n.kind, "data-node": n.id, x: p.x, y: p.y, width: p.w, height: high, rx: n.kind === "service" ? 15 : n.kind === "workload" ? 4 : 10}));
    const room = Math.floor((p.w - 90) / 7);
    root.append(svg("text", {x: p.x + 10, y: p.y + 20}, n.label.length > room ? n.label.slice(0, room - 1) + "…" : n.label));
    if (n.kind !== n.label) root.append(svg("text", {class: "label", x: p.x + p.w - 10, y: p.y + 20, "text-anchor": "end"}, n.kind));
  }
  root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  root.setAttribute("width", "100%");
  return make("figure", {}, make("figcaption", {}, "Topology at the end of the run; numbers are answered requests of the last measured phase"), root);
}

function draw() {
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  const main = document.querySelector("main");
  const judged = results.steps.flatMap(s => s.expectations);
  const held = judged.filter(e => e.held).length;
  main.append(make("h1", {}, results.scenario));
  main.append(make("p", {}, results.description));
  main.append(make("p", {}, make("span", {class: "verdict " + (results.passed ? "held" : "broken"), id: "verdict"}, results.passed ? "passed" : "failed"),
    ` ${held} of ${judged.length} expectations held in ${results.virtualSeconds.toFixed(1)} virtual seconds.`));
  main.append(make("p", {class: "soft"}, `profile ${results.profile}, seed ${results.seed}, wavetank ${results.version}, digest `, make("code", {}, results.digest)));
  const topology = topologyFigure();
  if (topology) main.append(topology);
  const overview = results.steps.map(s => [s.name, s.convergence.proxies.length ? time(s.convergence.totalMs) : "–",
    String(s.convergence.proxies.length), String(s.traffic.reduce((n, t) => n + t.failed, 0)),
    s.expectations.filter(e => e.held).length + " / " + s.expectations.length]);
  main.append(make("h2", {}, "Steps"), table(["step", "#converged in", "#proxies", "#requests failed", "#held"], overview));
  for (const step of results.steps) {
    main.append(make("h2", {}, step.name));
    main.append(make("p", {class: "soft"}, `at ${time(step.startMs)}` + (step.actions.length ? ": " + step.actions.join("; ") : "")));
    const grid = make("div", {class: "grid"});
    for (const t of step.traffic) if (t.series.length) grid.append(splitFigure(step, t));
    main.append(grid);
    if (step.convergence.proxies.length) {
      main.append(make("h3", {}, "Convergence"), convergenceFigure(step));
      const stages = Object.keys(step.convergence.proxies[0].stagesMs);
      main.append(table(["proxy", "#total", ...stages.map(s => "#" + s)], step.convergence.proxies.slice(0, 40).map(
        r => [r.proxy, time(r.totalMs), ...stages.map(s => time(r.stagesMs[s]))])));
    }
    if (step.traffic.length) {
      main.append(make("h3", {}, "Traffic"), table(["flow", "phase", "#sent", "split by version", "#failed", "#retried", "flags", "#via gateway", "#p50", "#p99"],
        step.traffic.map(t => [t.flow, t.phase, String(t.sent),
          Object.entries(t.byVersion).map(([v, n]) => `${v || "(unlabelled)"} ${percent(n, sum(t.byVersion))}`).join(", ") || "–",
          String(t.failed), String(t.retried), Object.entries(t.byFlags).filter(([f]) => f !== "-" && f !== "").map(([f, n]) => `${f} ${n}`).join(", ") || "–",
          String(sum(t.gatewaySnis)), time(t.latencyMs.p50), time(t.latencyMs.p99)])));
    }
    if (step.expectations.length) {
      main.append(make("h3", {}, "Expectations"), table(["", "expected", "found"], step.expectations.map(
        e => [make("span", {class: e.held ? "held" : "broken"}, e.held ? "held" : "not held"), make("code", {}, e.text), e.explanation])));
    }
    for (const note of step.notes) main.append(make("p", {}, note));
  }
}
function recolour() {
  for (const chart of charts) {
    for (const axis of Object.values(chart.options.scales)) {
      axis.ticks.color = ink("--ink"); axis.grid.color = ink("--line"); axis.title.color = ink("--soft");
    }
    chart.options.plugins.legend.labels.color = ink("--ink");
    chart.update("none");
  }
}
// What a test reads from the page: how many charts there are, how many stayed blank.
function selfTest() {
  const blank = charts.filter(c => {
    const {width, height} = c.canvas;
    return !c.canvas.getContext("2d").getImageData(0, 0, width, height).data.some(v => v !== 0);
  }).length;
  Object.assign(document.documentElement.dataset, {charts: charts.length, blankCharts: blank});
}
addEventListener("error", event => { document.documentElement.dataset.error = event.message; });
draw();
if (location.hash === "#selftest") addEventListener("load", () => requestAnimationFrame(() => { for (const c of charts) c.render(); selfTest(); }));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
addEventListener("beforeprint", () => { printing = true; recolour(); for (const c of charts) c.resize(); });
addEventListener("afterprint", () => { printing = false; recolour(); });
