"use strict";
// What pages are made of: the data (the JSON in #results), elements, charts. Text is set as text, never as markup.
// Scripts that follow say what is drawn, and call show().
const results = JSON.parse(document.getElementById("results").textContent);
const palette = ["#2f6fb7", "#d9822b", "#3d9a6c", "#a05ab0", "#b5a12b", "#4fa3b5", "#8a6d5c"];
const failedColour = "#c8372d";
const charts = [];
const print = {"--ink": "#000000", "--soft": "#444444", "--line": "#bbbbbb"};
let printing = false;  // a canvas does not follow the style sheet of paper

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  for (const child of children) element.append(child);
  return element;
}
function time(ms) {  // as core/base/duration.cc prints it
  const ns = Math.round(ms * 1e6);
  if (ns === 0) return "0 ms";
  if (ns >= 59950000000) {
    const s = Math.round(ns / 1e9), h = Math.floor(s / 3600), m = Math.floor(s % 3600 / 60);
    return (h ? h + "h" : "") + (m ? m + "m" : "") + (s % 60 ? s % 60 + "s" : "");
  }
  for (const [size, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "us"]]) {
    if (ns < size) continue;
    const decimals = ns / size >= 100 ? 0 : ns / size >= 10 ? 1 : 2, parts = 10 ** decimals;
    return (Math.floor((Math.floor(ns / (size / 1000)) * parts + 500) / 1000) / parts).toFixed(decimals) + " " + name;
  }
  return ns + " ns";
}
function percent(part, whole) { return whole === 0 ? "–" : (100 * part / whole).toFixed(1) + " %"; }
function sum(counts) { return Object.values(counts).reduce((a, b) => a + b, 0); }
function table(head, rows) {
  const t = make("table", head.length > 9 ? {class: "wide"} : {});
  const numeric = head.map(h => h.startsWith("#"));
  t.append(make("thead", {}, make("tr", {}, ...head.map((h, i) => make("th", numeric[i] ? {class: "n"} : {}, h.replace(/^#/, ""))))));
  // On a narrow screen each cell stands below the other, with its column's name before it.
  t.append(make("tbody", {}, ...rows.map(row => make("tr", row.broken ? {class: "bad"} : {}, ...row.map((cell, i) =>
    make("td", {"data-head": head[i].replace(/^#/, ""), ...(numeric[i] ? {class: "n"} : {})}, cell))))));
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
function valueAxis(title, more) {
  return {title: {display: true, text: title, color: ink("--soft")}, ticks: {color: ink("--ink")}, grid: {color: ink("--line")}, ...more};
}
function lines(label, points, colour, more) {
  return {label, data: points, borderColor: colour, backgroundColor: colour, borderWidth: 2, pointRadius: 0, pointStyle: "line", ...more};
}
// A straight line at a height: a limit, an SLO.
function level(label, y, from, to, colour) {
  return lines(label, [{x: from, y}, {x: to, y}], colour, {borderDash: [6, 4], borderWidth: 1.5, fill: false});
}
// Of a chart with points on two axes. Lines whose labels begin with ~ are not told apart from others.
function chartOptions(x, y, tip, more) {
  const told = label => !label.startsWith("~");
  return {responsive: true, maintainAspectRatio: false, interaction: {mode: "nearest", axis: "x", intersect: false}, scales: {x, y},
    plugins: {legend: {position: "bottom", labels: {color: ink("--ink"), usePointStyle: true, boxHeight: 6, pointStyleWidth: 12, filter: item => told(item.text)}},
      tooltip: {filter: item => told(item.dataset.label), callbacks: tip}}, ...more};
}
function ticks(axis, callback) { return {...axis, ticks: {...axis.ticks, maxRotation: 0, autoSkipPadding: 14, callback}}; }
function ticksAt(axis, values, callback) {
  return {...axis, ticks: {...axis.ticks, maxRotation: 0, autoSkipPadding: 10, callback}, afterBuildTicks: scale => { scale.ticks = values.map(value => ({value})); }};
}
// Round values of a logarithmic axis: 1, 2 and 5 times powers of ten, or all digits where those are too few.
function roundValues(from, to) {
  const of = digits => {
    const out = [];
    for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); ++power) {
      out.push(...digits.map(d => Number((d * 10 ** power).toPrecision(3))).filter(v => v >= from && v <= to));
    }
    return out;
  };
  const few = of([1, 2, 5]);
  return few.length >= 3 ? few : of([1, 2, 3, 4, 5, 6, 7, 8, 9]);
}
function recolour() {
  for (const chart of charts) {
    for (const axis of Object.values(chart.options.scales)) {
      axis.ticks.color = ink("--ink"); axis.grid.color = ink("--line"); if (axis.title) axis.title.color = ink("--soft");
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
// Draws the page: what a script calls last.
function show(draw) {
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  draw();
}
if (location.hash === "#selftest") addEventListener("load", () => setTimeout(() => { for (const c of charts) c.render(); selfTest(); }, 100));  // a browser without a screen may draw no frame
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
// Paper's style holds only after this: a class gives the page its width (A4's between margins), so that charts fill their frames.
function paper(on) {
  printing = on;
  document.documentElement.classList.toggle("paper", on);
  recolour();
  for (const c of charts) c.resize();
}
addEventListener("beforeprint", () => paper(true));
addEventListener("afterprint", () => paper(false));
