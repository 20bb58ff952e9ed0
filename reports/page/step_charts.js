// Charts of one step: who answered over time, and the change's way to each proxy.
const stageColours = ["#b9b0c9", "#8aa4c8", "#5d86c0", "#c9c4b4", "#e0a458", "#d9822b", "#7fb89a", "#3d9a6c"];
// One colour per version in the whole page, whoever answered in a phase.
const versions = [...new Set(results.steps.flatMap(s => s.traffic.flatMap(t => Object.keys(t.byVersion))))].sort();
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
