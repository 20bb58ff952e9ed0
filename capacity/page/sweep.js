// The page of `wavetank sweep --report`: what is best of a table, and what each setting does. Less is better in everything.
// A column's name tells what it counts.
const plain = v => String(Number(v.toPrecision(6)));
const megabytes = mb => mb < 1024 ? Number(mb.toPrecision(4)) + "Mi" : (mb / 1024).toFixed(2) + "Gi";
const titles = {p99_ms: ["Convergence p99", "p99"], cpus: ["Processors used, of each istiod", "CPU"], memory_mb: ["Resident set, of each istiod", "memory"],
  failed: ["Failed requests", "failed"], converged_ms: ["Slowest convergence of a step", "converged"]};
const objectives = results.objectives.map(key => ({key, title: (titles[key] || [key])[0], short: (titles[key] || [key, key])[1],
  show: key.endsWith("_ms") ? time : key.endsWith("_mb") ? megabytes : key === "cpus" ? v => Number(v.toPrecision(3)) + " CPU" : plain}));
const first = objectives[0];
const many = results.drawn.length > 400;

function named(row) { return results.settings.map((s, i) => `${s} ${row.values[i]}`).join(", "); }
// Logarithmic where the values span more than a linear axis shows.
function plainAxis(objective, values) {
  const low = Math.min(...values), high = Math.max(...values);
  if (low > 0 && high / low > 20) {
    return ticksAt(valueAxis(objective.title, {type: "logarithmic", min: low * 0.9, max: high * 1.1}), roundValues(low * 0.9, high * 1.1), objective.show);
  }
  return ticks(valueAxis(objective.title, {type: "linear", grace: "6%", ...(low < 0.7 * high ? {min: 0} : {})}), objective.show);
}
function frontFigure(x, front) {
  const point = row => ({x: row[x.key], y: row[first.key], row});
  const best = front.map(point).sort((a, b) => a.x - b.x || b.y - a.y), all = results.drawn.map(point);
  return figure(`${first.title} against ${x.title.replace(/^./, c => c.toLowerCase())}: no combination is better in both than one on the line`, 340, {type: "line", data: {datasets: [
    lines("on the front", best, palette[0], {stepped: "before", pointStyle: "circle", pointRadius: 5, borderWidth: 1.5}),
    lines("beaten", all, "#8a8f98", {showLine: false, pointStyle: "circle", pointRadius: many ? 1.5 : 3, backgroundColor: "#8a8f9880", borderWidth: 0})]},
    options: chartOptions(plainAxis(x, all.map(p => p.x).concat(best.map(p => p.x))), plainAxis(first, all.map(p => p.y).concat(best.map(p => p.y))),
      {title: () => "", label: item => [named(item.raw.row), `${first.show(item.parsed.y)}, ${x.show(item.parsed.x)}`]}, {interaction: {mode: "nearest", intersect: true}})});
}
function responseFigure(response, objective) {
  const at = i => response.values.map(v => v[objective.key][i]);
  const band = (label, values, below, shade) => [lines("~" + label, below, "transparent"), lines(label, values, "transparent", {fill: "-1", backgroundColor: palette[0] + shade, pointStyle: "rect"})];
  const values = at(0).concat(at(4));
  return figure(`${objective.title} by ${response.setting}`, 230, {type: "line", data: {labels: response.values.map(v => v.value), datasets: [
    lines("median", at(2), palette[1], {pointStyle: "circle", pointRadius: 4, clip: 8}),
    ...band("middle half", at(3), at(1), "48"), ...band("all", at(4), at(0), "22")]},
    options: chartOptions(valueAxis(response.setting, {type: "category", offset: true}), {...plainAxis(objective, values), title: {display: false}},
      {title: items => items.length ? `${response.setting} ${items[0].label}` : "",
        label: item => item.dataset.label === "median" ? `median ${objective.show(item.parsed.y)} of ${response.values[item.dataIndex].combinations} combinations` : `${item.dataset.label}: up to ${objective.show(item.parsed.y)}`})});
}
// Which of the best is the best in one thing; the table says so in words.
function honours(row) {
  const out = objectives.filter(o => results.best.every(b => b[o.key] >= row[o.key])).map(o => "least " + o.short);
  if (objectives.length > 1 && row === balanced()) out.push(objectives.length === 2 ? "nearest to both" : "nearest to all " + (["", "", "", "three", "four", "five", "six"][objectives.length]));
  return out.join(", ");
}
// Of those that none beats the one that loses least altogether against the best in each, as shares of what they span.
function balanced() {
  const far = row => Math.hypot(...objectives.map(o => {
    const all = results.best.map(b => b[o.key]), low = Math.min(...all), span = Math.max(...all) - low;
    return span > 0 ? (row[o.key] - low) / span : 0;
  }));
  return results.best.reduce((a, b) => far(b) < far(a) ? b : a);
}

show(() => {
  const main = document.querySelector("main"), add = (...parts) => main.append(...parts);
  const p = (kind, ...parts) => make("p", kind ? {class: kind} : {}, ...parts);
  add(make("h1", {}, "A sweep over " + results.settings.join(", ")));
  add(p("soft", `${results.rows} rows of ${results.table}, ${results.failed} without a result; ${results.combinations} combinations of settings, each with the worst of its seeds. ` +
    `${results.best.length} of them ${results.best.length === 1 ? "is" : "are"} beaten by no other in ${objectives.map(o => o.short).join(", ")}${objectives.length > 1 ? " together" : ""}.`));
  for (const f of results.failures) add(p("alarm", make("strong", {}, `${f.rows} ${f.rows === 1 ? "row" : "rows"} without a result `), f.text));
  if (results.failureKinds > results.failures.length) add(p("alarm", `and ${results.failureKinds - results.failures.length} more reasons (column error of the table)`));
  for (const e of results.extrapolates) {
    add(make("p", {class: "alarm", style: "border-color: var(--warn)"}, make("strong", {}, `${e.rows} ${e.rows === 1 ? "row extrapolates" : "rows extrapolate"} `), "beyond what was measured: " + e.text));
  }
  if (results.notPassed) {
    add(p("warn", `In ${results.notPassed} rows an expectation of the scenario did not hold (column passed): being best in the objectives does not make a run good.`));
  }
  add(make("h2", {}, "The best"));
  const given = !results.ofFleet ? [] : results.settings.filter(s => !/^(istiod|configuration)\./.test(s));
  if (given.length && given.length < results.settings.length) {
    add(p("warn", `${given.join(", ")}: what a fleet meets, not how it is run. Rows with less of it may be best for that alone; compare rows that have the same.`));
  }
  const shown = results.best.slice(0, 60);
  const best = table([...results.settings, ...objectives.map(o => "#" + o.short), "which is"], shown.map(row => [...row.values, ...objectives.map(o => o.show(row[o.key])), honours(row)]));
  best.id = "best";
  add(best);
  if (results.best.length > shown.length) add(p("soft", `and ${results.best.length - shown.length} more.`));
  if (results.fronts.length) {
    add(make("h2", {}, "Pareto fronts"), make("div", {class: "grid"},
      ...results.fronts.map(f => frontFigure(objectives.find(o => o.key === f.against), f.rows))));
  }
  if (results.drawn.length < results.combinations) add(p("soft", `Of the combinations that are beaten ${results.drawn.length} are drawn, evenly chosen.`));
  add(make("h2", {}, "What each setting does"), p("soft", "At each value of a setting: the median over all values of the others, their middle half, and all of them."));
  for (const response of results.responses) {
    add(make("h3", {}, response.setting), make("div", {class: "grid", style: "--column: 300px"}, ...objectives.map(o => responseFigure(response, o))));
  }
});
