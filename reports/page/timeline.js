// The whole run on one axis of virtual time: requests by outcome, pushes, latency, and steps as marks.
const traffics = results.steps.flatMap(s => s.traffic);
const runMs = results.virtualSeconds * 1000;
const binMs = [250, 500, 1000, 2000, 5000, 10000, 30000, 60000, 300000, 600000].find(ms => runMs / ms <= 160) || 3600000;
const binCount = Math.max(1, Math.ceil(runMs / binMs));

// Calls `visit(bin, bucket)` for every bucket of traffic that holds something.
function eachBucket(list, visit) {
  for (const t of list) {
    t.series.forEach((b, i) => visit(Math.min(binCount - 1, Math.floor((t.startMs + i * t.bucketMs) / binMs)), b));
  }
}
// A line where each step begins, with its number in the Steps table.
const stepMarks = {
  id: "stepMarks",
  afterDatasetsDraw(chart) {
    const {ctx, chartArea, scales} = chart;
    ctx.save();
    ctx.font = "11px " + Chart.defaults.font.family;
    let last = -100;
    results.steps.forEach((step, i) => {
      if (step.name === "throughout" || step.name === "traffic of the log") return;  // beside all of them
      const x = scales.x.getPixelForValue(step.startMs / 1000), failed = step.expectations.some(e => !e.held);
      ctx.strokeStyle = ctx.fillStyle = failed ? ink("--bad") : ink("--accent");
      ctx.globalAlpha = 0.75;
      ctx.setLineDash([3, 3]);
      ctx.beginPath();
      ctx.moveTo(x, chartArea.top);
      ctx.lineTo(x, chartArea.bottom);
      ctx.stroke();
      if (x - last < 16) return;  // numbers on top of each other say nothing
      ctx.globalAlpha = 1;
      ctx.fillText(String(i + 1), x + 3, chartArea.top + 10);
      last = x;
    });
    ctx.restore();
  },
};
function timeAxis() {
  return {type: "linear", min: 0, max: binCount * binMs / 1000, title: {display: true, text: "virtual seconds since the world's beginning", color: ink("--soft")},
    ticks: {color: ink("--ink"), maxRotation: 0, autoSkipPadding: 14}, grid: {color: ink("--line")}};
}
function timelineFigure() {
  const first = new Array(binCount).fill(0), retried = [...first], failed = [...first], pushes = [...first];
  eachBucket(traffics, (bin, b) => {
    const again = Math.min(b.retried, sum(b.byVersion));
    first[bin] += sum(b.byVersion) - again;
    retried[bin] += again;
    failed[bin] += b.failed;
  });
  for (const [second, count] of results.pushes) pushes[Math.max(0, Math.min(binCount - 1, Math.floor(second * 1000 / binMs)))] += count;
  const points = values => values.map((y, i) => ({x: (i + 0.5) * binMs / 1000, y}));
  const bar = {type: "bar", barPercentage: 1, categoryPercentage: 1, stack: "requests", yAxisID: "y", order: 2};
  const datasets = [{label: "answered at once", ...bar, data: points(first), backgroundColor: "#3d9a6c"},
    {label: "answered after a retry", ...bar, data: points(retried), backgroundColor: "#e0a458"},
    {label: "failed", ...bar, data: points(failed), backgroundColor: failedColour},
    {label: "xDS responses", type: "line", yAxisID: "pushes", order: 1, data: points(pushes), borderColor: "#5d86c0", backgroundColor: "#5d86c0", borderWidth: 1.5, pointRadius: 0}];
  return figure(`The whole run: requests that ended and xDS responses per ${time(binMs)}; numbered lines are steps`, 260, {type: "bar", data: {datasets}, plugins: [stepMarks],
    options: {responsive: true, maintainAspectRatio: false, interaction: {mode: "index", intersect: false}, plugins: {legend: {position: "bottom", labels: {color: ink("--ink"), boxWidth: 12}}},
      scales: {x: {...timeAxis(), stacked: true, offset: false}, y: valueAxis("requests", {stacked: true, beginAtZero: true}),
        pushes: valueAxis("xDS responses", {position: "right", beginAtZero: true, grid: {display: false}})}}});
}
function latencyFigure() {
  const flows = [...new Set(traffics.map(t => t.flow))];
  const shown = flows.slice(0, 6);  // more lines cannot be told apart
  const datasets = shown.flatMap((flow, f) => {
    const p50 = new Array(binCount).fill(null), p99 = [...p50];
    eachBucket(traffics.filter(t => t.flow === flow), (bin, b) => {
      if (b.p99Ms === 0) return;
      p50[bin] = Math.max(p50[bin] || 0, b.p50Ms);
      p99[bin] = Math.max(p99[bin] || 0, b.p99Ms);
    });
    const line = (label, values, dash) => ({label: flow + " " + label, data: values.map((y, i) => ({x: (i + 0.5) * binMs / 1000, y})), borderColor: palette[f % palette.length],
      backgroundColor: palette[f % palette.length], borderWidth: 1.5, borderDash: dash, pointRadius: 1, spanGaps: false});
    return [line("p99", p99, []), line("p50", p50, [4, 3])];
  });
  return figure(`Latency over time, per ${time(binMs)} and flow` + (flows.length > shown.length ? ` (the first ${shown.length} of ${flows.length})` : ""), 220, {type: "line", data: {datasets}, plugins: [stepMarks],
    options: {responsive: true, maintainAspectRatio: false, plugins: {legend: {position: "bottom", labels: {color: ink("--ink"), boxWidth: 12}}},
      scales: {x: timeAxis(), y: valueAxis("ms", {type: "logarithmic"})}}});
}
// What check knows of the mesh behind the errors, and what mends it; of several steps the same finding is one row. What
// was there before the step's change comes after what came with it.
function remedyTable() {
  const rows = new Map();
  for (const f of results.findings) {
    const key = JSON.stringify([f.code, f.cluster, f.object, f.message]), row = rows.get(key);
    if (row) row.steps.push(f.step);
    else rows.set(key, {...f, steps: [f.step]});
  }
  if (rows.size === 0) return null;
  const sorted = [...rows.values()].sort((a, b) => a.before - b.before);
  const t = table(["finding", "where", "what", "remedy", "step"], sorted.slice(0, 30).map(f => [
    `${f.code} ${f.name}`, [f.object, f.cluster].filter(x => x).join(" in ") || "–", f.message, make("strong", {}, f.remedy), f.steps.join("; ")]));
  t.id = "remedies";
  return t;
}
// What failed in the whole run, and why; the same cause of the same flow is one row.
function failureTable() {
  const rows = new Map();
  for (const t of traffics) {
    for (const f of t.failures) {
      const key = JSON.stringify([t.flow, f.retried, f.code, f.flags, f.upstream, f.cause]), row = rows.get(key);
      if (row) Object.assign(row, {count: row.count + f.count, firstMs: Math.min(row.firstMs, f.firstMs), lastMs: Math.max(row.lastMs, f.lastMs)});
      else rows.set(key, {...f, flow: t.flow});
    }
  }
  const sorted = [...rows.values()].sort((a, b) => b.count - a.count);
  if (sorted.length === 0) return null;
  const what = f => [f.code || "", f.flags === "-" ? "" : f.flags].filter(x => x !== "").join(" ") || "no answer";
  const t = table(["what", "#count", "first", "last", "flow", "upstream", "cause"], sorted.slice(0, 30).map(f => Object.assign(
    [make("span", {class: f.retried ? "warn" : "broken"}, (f.retried ? "retried: " : "failed: ") + what(f)), String(f.count), time(f.firstMs), time(f.lastMs), f.flow, f.upstream || "–", f.cause])));
  t.id = "failures";
  return t;
}
