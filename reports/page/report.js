"use strict";
// Draws the report out of the run's results (the JSON in #results). Text is set as text, never as markup.
const results = JSON.parse(document.getElementById("results").textContent);
const palette = ["#2f6fb7", "#d9822b", "#3d9a6c", "#a05ab0", "#b5a12b", "#4fa3b5", "#8a6d5c"];
const failedColour = "#c8372d";
const stageColours = ["#b9b0c9", "#8aa4c8", "#5d86c0", "#c9c4b4", "#e0a458", "#d9822b", "#7fb89a", "#3d9a6c"];
const charts = [];

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
  const t = make("table");
  const numeric = head.map(h => h.startsWith("#"));
  t.append(make("thead", {}, make("tr", {}, ...head.map((h, i) => make("th", numeric[i] ? {class: "n"} : {}, h.replace(/^#/, ""))))));
  t.append(make("tbody", {}, ...rows.map(row => make("tr", {}, ...row.map((cell, i) => make("td", numeric[i] ? {class: "n"} : {}, cell))))));
  return t;
}
function ink(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
function figure(caption, height, config) {
  const canvas = make("canvas", {role: "img", "aria-label": caption});
  const plot = make("div", {class: "plot", style: "height:" + height + "px"}, canvas);
  const box = make("figure", {}, make("figcaption", {}, caption), plot);
  queueMicrotask(() => { config.options.animation = false; charts.push(new Chart(canvas, config)); });
  return box;
}
function scales(horizontal, xTitle, yTitle) {
  const axis = title => ({stacked: true, title: {display: title !== "", text: title, color: ink("--soft")},
    ticks: {color: ink("--ink")}, grid: {color: ink("--line")}});
  return {indexAxis: horizontal ? "y" : "x", responsive: true, maintainAspectRatio: false,
    scales: {x: axis(xTitle), y: axis(yTitle)}, plugins: {legend: {position: "bottom", labels: {color: ink("--ink"), boxWidth: 12}}}};
}

function splitFigure(step, traffic) {
  const versions = [...new Set(traffic.series.flatMap(b => Object.keys(b.byVersion)))].sort();
  const bars = {barPercentage: 1, categoryPercentage: 1};
  const datasets = versions.map((v, i) => ({label: v || "(unlabelled)", ...bars,
    data: traffic.series.map(b => b.byVersion[v] || 0), backgroundColor: palette[i % palette.length]}));
  if (traffic.failed > 0) datasets.push({label: "failed", ...bars, data: traffic.series.map(b => b.failed), backgroundColor: failedColour});
  return figure(traffic.flow + (traffic.phase === "meanwhile" ? ", meanwhile" : ", then") + ": requests per " + time(traffic.bucketMs) + " by version", 190,
    {type: "bar", data: {labels: traffic.series.map((_, i) => (i * traffic.bucketMs / 1000).toFixed(1)), datasets},
     options: scales(false, "seconds since the phase began", "requests")});
}
function convergenceFigure(step) {
  const rows = step.convergence.proxies.slice(0, 40);
  const stages = Object.keys(rows[0].stagesMs);
  const datasets = stages.map((s, i) => ({label: s, data: rows.map(r => r.stagesMs[s]), backgroundColor: stageColours[i]}));
  return figure("From the event to the last resource in force, per proxy and stage" + (step.convergence.proxies.length > 40 ? " (slowest 40)" : ""),
    90 + 26 * rows.length, {type: "bar", data: {labels: rows.map(r => r.proxy), datasets}, options: scales(true, "ms since the event", "")});
}
function topologyFigure() {
  const nodes = results.topology.nodes, edges = results.topology.edges;
  const clusters = [...new Set(nodes.map(n => n.cluster))].filter(c => c !== "");
  if (clusters.length === 0) return null;
  const ns = "http://www.w3.org/2000/svg";
  const svg = (tag, attributes, text) => {
    const e = document.createElementNS(ns, tag);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const width = 1040, gap = 130, w = (width - gap * (clusters.length - 1)) / clusters.length;
  const place = new Map();
  let height = 0;
  const root = svg("svg", {role: "img", "aria-label": "topology"});
  const layer = svg("g", {});
  clusters.forEach((cluster, c) => {
    const inside = nodes.filter(n => n.cluster === cluster && n.kind !== "cluster");
    const title = nodes.find(n => n.cluster === cluster && n.kind === "cluster");
    inside.forEach((n, i) => place.set(n.id, {x: c * (w + gap) + 14, y: 44 + i * 34, w: w - 28}));
    if (title) place.set(title.id, {x: c * (w + gap), y: 4, w: w});
    height = Math.max(height, 60 + inside.length * 34);
  });
  clusters.forEach((cluster, c) => {
    layer.append(svg("rect", {class: "box", x: c * (w + gap), y: 4, width: w, height: height - 8, rx: 8}));
    const title = nodes.find(n => n.cluster === cluster && n.kind === "cluster");
    layer.append(svg("text", {x: c * (w + gap) + 14, y: 28, "font-weight": 700}, title ? title.label : cluster));
  });
  for (const edge of edges) {
    const a = place.get(edge.from), b = place.get(edge.to);
    if (!a || !b) continue;
    const right = a.x < b.x, same = a.x === b.x;
    const x1 = same ? a.x + a.w : right ? a.x + a.w : a.x, x2 = same ? b.x + b.w : right ? b.x : b.x + b.w;
    const y1 = a.y + 13, y2 = b.y + 13, bend = same ? 40 : (x2 - x1) / 2;
    layer.append(svg("path", {class: "edge", d: `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - (same ? -40 : bend)} ${y2} ${x2} ${y2}`}));
    if (!same) layer.append(svg("text", {class: "label", x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 4, "text-anchor": "middle"}, edge.label));
  }
  for (const n of nodes) {
    const p = place.get(n.id);
    if (!p || n.kind === "cluster") continue;
    layer.append(svg("rect", {class: "node", x: p.x, y: p.y, width: p.w, height: 26, rx: n.kind === "service" ? 13 : 4}));
    layer.append(svg("text", {x: p.x + 10, y: p.y + 17}, n.label));
  }
  root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  root.setAttribute("width", "100%");
  root.append(layer);
  return make("figure", {}, make("figcaption", {}, "Topology at the end of the run"), root);
}

function draw() {
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
draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
addEventListener("beforeprint", () => { recolour(); for (const c of charts) c.resize(); });
addEventListener("afterprint", recolour);
