// The page of `wavetank plan`: results.plan is its --json, results.text its text, results.curves what is drawn.
const {plan, text, curves} = results;
const limitColour = failedColour, memoryColour = palette[3];
const ms = ns => ns / 1e6;

function factor(times) { return (times < 100 ? Number(times.toPrecision(2)) : Math.round(times / 10) * 10) + " x"; }
function megabytes(mb) { return mb < 1024 ? mb.toFixed(0) + "Mi" : (mb / 1024).toFixed(1) + "Gi"; }

function churnFigure() {
  const points = (name, of) => (of || curves.churn).map(p => ({x: p.times, y: ms(p[name]), of: p}));
  const from = curves.churn[0].times, to = curves.churn[curves.churn.length - 1].times;
  const dots = {pointRadius: 3, pointStyle: "circle", clip: 8}, broken = curves.churn.filter(p => !p.kept);
  const datasets = [
    lines("p99", points("p99Ns"), palette[0], dots),
    lines("p50", points("p50Ns"), palette[2], dots),
    lines("~low", points("p99LowNs"), "transparent"),
    lines("p99 of single samples", points("p99HighNs"), "transparent", {fill: "-1", backgroundColor: palette[0] + "30", pointStyle: "rect"})];
  if (broken.length) datasets.unshift(lines("breaks the SLO", points("p99Ns", broken), limitColour, {...dots, pointRadius: 4, showLine: false}));
  if (results.sloNs > 0) datasets.push(level("SLO " + time(ms(results.sloNs)), ms(results.sloNs), from, to, limitColour));
  const all = curves.churn.flatMap(p => [p.p50Ns, p.p99Ns]);
  const low = ms(Math.min(...all, results.sloNs || Infinity)) * 0.9, high = ms(Math.max(...all, results.sloNs)) * 1.1;
  // The fleet's own churn stands where it is 1.
  if (from < 1 && to > 1) datasets.push(lines("the fleet's own churn", [{x: 1, y: low}, {x: 1, y: high}], "#8a8f98", {borderDash: [2, 3], borderWidth: 1.5}));
  return figure("Convergence against churn: all churn so many times as fast", 300,
    {type: "line", data: {datasets}, options: chartOptions(
      ticksAt(valueAxis("churn, times the fleet's", {type: "logarithmic", min: from, max: to}), curves.churn.map(p => p.times).filter(t => t !== plan.mostChurn || t === to), factor),
      ticksAt(valueAxis("until the last proxy has it", {type: "logarithmic", min: low, max: high}), roundValues(low, high), time),
      {title: items => items.length ? factor(items[0].parsed.x) + ": " + (items[0].raw.of ? items[0].raw.of.changes + " changes" : "") : "", label: item => item.dataset.label + " " + time(item.parsed.y)})});
}

function rampFigure() {
  const points = ramp => ramp.map(p => ({x: p.atNs / 1e9, y: p.served}));
  const death = points(curves.istiodDeath), all = points(curves.allConnect);
  const end = Math.max(death[death.length - 1].x, all[all.length - 1].x), whole = results.proxies;
  // Served before, and after it is over.
  const before = -0.05 * end;
  death.unshift({x: before, y: whole}, {x: 0, y: whole});
  death.push({x: end, y: whole});
  all.push({x: end, y: whole});
  return figure("Recovery: proxies of a cluster that are served, after an istiod has died, and after all of them have begun anew", 300,
    {type: "line", data: {datasets: [
      lines("one of " + plan.istiodsPerCluster + (plan.istiodsPerCluster === 1 ? " istiod" : " istiods") + " dies: " + time(ms(plan.istiodRecoveryNs)), death, palette[0], {fill: "origin", backgroundColor: palette[0] + "22"}),
      lines("all connect anew: " + time(ms(plan.allConnectNs)), all, palette[1], {borderDash: [6, 4]})]},
      options: chartOptions(ticks(valueAxis("seconds since", {type: "linear", min: before}), v => v < 0 ? "" : String(v)), valueAxis("proxies served", {beginAtZero: true, suggestedMax: whole * 1.05}),
        {title: items => items.length ? time(1000 * Math.max(0, items[0].parsed.x)) : "", label: item => item.dataset.label.replace(/:.*/, "") + ": " + Math.round(item.parsed.y)})});
}

function overTime(caption, name, unit, axis, scale, extra, show) {
  const [unitName, unitNs] = curves.spanNs * curves.time.length < 900e9 ? ["seconds", 1e9] : curves.spanNs * curves.time.length < 5 * 3600e9 ? ["minutes", 60e9] : ["hours", 3600e9];
  const points = curves.time.map(p => ({x: p.atNs / unitNs, y: p[name] * scale}));
  const end = points.length * curves.spanNs / unitNs;
  points.push({x: end, y: points[points.length - 1].y});
  const datasets = [lines(unit.label, points, unit.colour, {stepped: true, fill: "origin", backgroundColor: unit.colour + "30", borderWidth: 1.5}), ...extra(0, end)];
  return figure(caption, 210, {type: "line", data: {datasets}, options: chartOptions(
    ticks(valueAxis(`${unitName} of the fleet's time`, {type: "linear", min: 0, max: end}), v => String(v)), valueAxis(axis, {beginAtZero: true}),
    {title: items => items.length ? "from " + time(items[0].parsed.x * unitNs / 1e6) : "", label: item => item.dataset.label.replace(/ \(.*/, "") + " " + show(item.parsed.y)})});
}

function effectFigure(caption, now, name, scale, axis, show) {
  const values = [now, ...plan.remedies.map(r => r[name])].map(v => v * scale);
  const colours = values.map((v, i) => i === 0 ? "#8a8f98" : v < values[0] * 0.9 ? palette[2] : v > values[0] * 1.1 ? palette[1] : palette[0]);
  const labels = ["as planned", ...plan.remedies.map(r => `${r.setting} ${r.to}`)];
  return figure(caption, 40 + 26 * labels.length, {type: "bar", data: {labels, datasets: [{label: axis, data: values, backgroundColor: colours, barPercentage: 0.8}]},
    options: {...chartOptions(ticks(valueAxis(axis, {beginAtZero: true}), show), valueAxis("", {title: {display: false}, ticks: {color: ink("--ink"), autoSkip: false, font: {size: 11}}})),
      plugins: {legend: {display: false, labels: {}}, tooltip: {callbacks: {label: item => show(item.parsed.x)}}}, indexAxis: "y", interaction: {mode: "nearest", axis: "y", intersect: false}}});
}

function textTable(rows, head) {
  const [names, body] = head ? [head, rows] : [rows[0], rows.slice(1)];
  return table(names, body);
}

show(() => {
  const main = document.querySelector("main");
  const add = (...parts) => main.append(...parts), p = (kind, ...parts) => make("p", kind ? {class: kind} : {}, ...parts);
  const grid = (...parts) => make("div", {class: "grid"}, ...parts);
  add(make("h1", {}, plan.fleet), p("soft", text.fleet));
  add(p("", make("span", {class: "verdict " + (plan.kept ? "held" : "broken"), id: "verdict"}, plan.kept ? "SLO kept" : "SLO not kept"), " " + text.verdict.replace(/^(NOT )?kept /, "") + "."));
  add(p("", make("strong", {}, "What binds: "), text.binds + "."));
  if (text.extrapolates) add(make("p", {class: "alarm", style: "border-color: var(--warn)"}, make("strong", {}, "Extrapolates "), "beyond what was measured: " + text.extrapolates));
  const figures = textTable(text.figures, ["", "", ""]);
  figures.id = "figures";
  add(figures);
  add(make("h2", {}, "Convergence and recovery"), grid(churnFigure(), rampFigure()));
  if (curves.churnEnds) add(p("soft", "No faster churn was looked at: " + curves.churnEnds));
  const missing = curves.churn.filter(c => c.missing > 0);
  if (missing.length) add(p("warn", `From ${factor(missing[0].times)} on, changes are still under way when the time is over; percentiles are of those that arrived.`));
  add(p("soft", "A node's death takes " + time(ms(plan.nodeRecoveryNs)) + ": 340 s of it are Kubernetes', which notices after 40 s and evicts after 300 more."));
  const kinds = textTable([["change", "#how many", "#p50", "#p99", "#worst"], ...text.kinds.slice(1)]);
  kinds.id = "kinds";
  add(make("h3", {}, "By kind of change"), kinds);

  const span = time(ms(curves.spanNs)), most = curves.time.reduce((a, b) => b.cpus > a.cpus ? b : a);
  add(make("h2", {}, "One istiod over the fleet's time"), p("soft", `The first sample, in spans of ${span}; the busiest begins at ${time(ms(most.atNs))} and uses ${most.cpus.toFixed(2)} CPUs. Within a span pushes use every processor for as long as they last.`));
  add(grid(
    overTime(`Processors used, mean of ${span}`, "cpus", {label: "used", colour: palette[0]}, "CPUs", 1,
      (from, to) => [level(`request (${plan.requests.cpu})`, plan.requests.cpu, from, to, palette[2]), level(`limit (${plan.limits.cpu})`, plan.limits.cpu, from, to, limitColour)], v => v.toFixed(3)),
    overTime("Resident set: it grows with the first full push, and Go's heap stays so", "memoryMB", {label: "resident", colour: memoryColour}, "Mi", 1,
      (from, to) => [level(`request (${megabytes(plan.requests.memoryMB)})`, plan.requests.memoryMB, from, to, palette[2]), level(`limit (${megabytes(plan.limits.memoryMB)})`, plan.limits.memoryMB, from, to, limitColour)], megabytes),
    overTime(`Proxies in the push queue, most of ${span}`, "waiting", {label: "waiting", colour: palette[1]}, "proxies", 1, () => [], v => v.toFixed(0)),
    overTime(`Bytes out, mean of ${span}`, "kilobytesPerSecond", {label: "sent", colour: palette[5]}, "MB/s", 1 / 1000, () => [], v => v.toFixed(2) + " MB/s")));

  add(make("h2", {}, "What each setting would do, alone"));
  const c = plan.convergence;
  add(grid(
    effectFigure("Convergence p99", c.p99Ns, "p99Ns", 1e-6, "", time),
    effectFigure("Until the proxies of a dead istiod are served again", plan.istiodRecoveryNs, "istiodRecoveryNs", 1e-6, "", time),
    effectFigure("Processors used, of each istiod", plan.cpus, "cpus", 1, "", v => Number(v.toPrecision(2)) + " CPU"),
    effectFigure("Resident set after full pushes, of each istiod", plan.memoryMB, "memoryMB", 1, "", megabytes)));
  const settings = textTable([["setting", "from", "to", "p99", "istiod's death", "CPU", "memory"], ...text.settings.slice(1).map(row => row.map(cell => cell.replace(" -> ", " → ")))]);
  settings.id = "settings";
  add(settings);
  add(make("h2", {}, "What is assumed"), p("", text.assumed + "."));
  for (const note of results.notes) add(p("soft", note));
});
