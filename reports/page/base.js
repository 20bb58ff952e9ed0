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
  if (ms >= 59950) {  // as the terminal: Go's form, to the second
    const s = Math.round(ms / 1000), h = Math.floor(s / 3600), m = Math.floor(s % 3600 / 60);
    return (h ? h + "h" : "") + (m ? m + "m" : "") + (s % 60 ? s % 60 + "s" : "");
  }
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
