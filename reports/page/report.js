// The page itself: parts in their order.
function shares(counts) {
  return Object.entries(counts).map(([name, n]) => `${name || "(unlabelled)"} ${percent(n, sum(counts))}`).join(", ") || "–";
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
  if (results.error) main.append(make("p", {class: "broken"}, "The run ended early: " + results.error));
  if (results.interrupted) main.append(make("p", {class: "broken"}, "The run was interrupted."));
  for (const f of results.silentFlows) {
    main.append(make("p", {class: "alarm"}, make("strong", {}, "Nobody sends "), `${f.flow}: no pod of ${f.client} runs at any time, so none of its ${f.sent} requests was sent`));
  }
  for (const d of results.deadPaths.slice(0, 5)) {
    main.append(make("p", {class: "alarm"}, make("strong", {}, "Dead path "), `${d.flow} to ${d.upstream}: ${d.cause}; all ${d.tries} tries failed since ${time(d.sinceMs)}, ` +
      `${d.retried} of ${d.sent} requests were retried, ${d.failed} failed (${d.step}${d.phase === "meanwhile" ? ", meanwhile" : ""})`));
  }
  for (const n of results.nacks.slice(0, 5)) {
    main.append(make("p", {class: "alarm"}, make("strong", {}, "NACK "), `${n.proxy} refused ${n.type}: ${n.text} (${n.count === 1 ? "" : n.count + " times, first "}at ${time(n.firstMs)})`));
  }
  if (results.nacks.length > 5) main.append(make("p", {class: "alarm"}, `and ${results.nacks.length - 5} more refusals (results.json)`));
  for (const w of results.withoutEffect) {
    main.append(make("p", {class: "soft"}, `${w.kind} ${w.type} has no effect in the simulation: ${w.proxies.slice(0, 3).join(", ")}${w.proxies.length > 3 ? ` and ${w.proxies.length - 3} more` : ""}`));
  }
  if (results.invariants.watched.length) {
    const broken = results.invariants.violations;
    main.append(make("p", {class: broken.some(v => !v.known) ? "broken" : "soft"}, `${results.invariants.watched.length} invariants watched, ${broken.length ? broken.length + " breaches" : "none broken"}`));
    if (broken.length) main.append(table(["#at", "invariant", "by", "how", "known", "inputs"], broken.slice(0, 40).map(
      v => [time(v.atMs), v.invariant, v.subject, v.what, v.known, v.inputs.join(", ")])));
  }
  for (const note of results.notes) main.append(make("p", {class: "soft"}, note));
  if (traffics.some(t => t.series.length)) main.append(timelineFigure(), latencyFigure());
  const failures = failureTable();
  if (failures) main.append(make("h2", {}, "Errors"), failures);
  const remedies = remedyTable();
  if (remedies) main.append(make("h3", {}, "What check finds behind them"), remedies);
  const topology = topologyFigure();
  if (topology) main.append(make("h2", {}, "Topology"), topology);
  const overview = results.steps.map((s, i) => Object.assign([String(i + 1), make("a", {href: "#step-" + (i + 1)}, s.name), time(s.startMs), s.convergence.proxies.length ? time(s.convergence.totalMs) : "–",
    String(s.convergence.proxies.length), String(s.traffic.reduce((n, t) => n + t.failed, 0)), String(s.traffic.reduce((n, t) => n + t.retried, 0)),
    make("span", {class: s.expectations.every(e => e.held) && !s.cut ? "held" : "broken"}, s.cut ? "cut" : (s.expectations.every(e => e.held) ? "" : "✗ ") + s.expectations.filter(e => e.held).length + " / " + s.expectations.length)],
    {broken: s.expectations.some(e => !e.held)}));
  main.append(make("h2", {}, "Steps"), table(["#step", "name", "#at", "#converged in", "#proxies", "#failed", "#retried", "#held"], overview));
  for (const [i, step] of results.steps.entries()) {
    main.append(make("h2", {id: "step-" + (i + 1)}, `${i + 1}. ${step.name}`));
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
    for (const [title, rows] of [["Traffic", step.traffic], ["Calls of applications", step.calls]]) {
      if (!rows.length) continue;
      const own = rows.some(t => t.clientAttempts > t.sent);
      main.append(make("h3", {}, title), table([title === "Traffic" ? "flow" : "call", "phase", "#sent", "by version", "by cluster", "#failed", "#retried", "#tries", ...(own ? ["#client attempts"] : []), "#via gateway", "#p50", "#p99"],
        rows.map(t => [t.flow, t.phase, String(t.sent),
          shares(t.byVersion), shares(t.byCluster), String(t.failed), String(t.retried), String(t.attempts), ...(own ? [String(t.clientAttempts)] : []),
          String(sum(t.gatewaySnis)), time(t.latencyMs.p50), time(t.latencyMs.p99)])));
    }
    for (const e of step.ejected) main.append(make("p", {class: "warn"}, `${e.host} was kept out by outlier detection of ${e.proxy} (${e.cluster})`));
    if (step.cut) main.append(make("p", {class: "broken"}, `${step.cut}; ${step.notJudged} expectations were not judged`));
    if (step.expectations.length) {
      main.append(make("h3", {}, "Expectations"), table(["", "expected", "found"], step.expectations.map(
        e => [make("span", {class: e.held ? "held" : "broken"}, e.held ? "held" : "not held"), make("code", {}, e.text), e.explanation])));
    }
    for (const note of step.notes) main.append(make("p", {}, note));
  }
}
show(draw);
