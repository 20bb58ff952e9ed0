// Who calls whom. Up to four clusters stand side by side (below each other on a narrow screen) with their workloads; more
// are a circle of clusters. An edge's colour and share say how many of its tries failed.
const svgSpace = "http://www.w3.org/2000/svg";
function svg(tag, attributes, text) {
  const e = document.createElementNS(svgSpace, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}
function share(edge) { return edge.tries > 0 ? edge.failed / edge.tries : 0; }
function edgeClass(edge) { return share(edge) === 0 ? "edge" : share(edge) < 0.5 ? "edge some" : "edge dead"; }
function edgeWords(edge) {
  if (share(edge) === 0) return edge.label;
  return (edge.label && edge.label !== "0" ? edge.label + ", " : "") + `${percent(edge.failed, edge.tries)} of tries failed`;
}
// A drawing has arrowheads of its own: those of one that is not shown are not drawn elsewhere either.
let drawings = 0;
function arrowId(kind) { return `${kind.replace(" ", "-")}-${drawings}`; }
function canvas(label, width) {
  ++drawings;
  const root = svg("svg", {role: "img", "aria-label": label}), definitions = svg("defs", {});
  for (const kind of ["arrow", "arrow some", "arrow dead"]) {
    const marker = svg("marker", {id: arrowId(kind), viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto"});
    marker.append(svg("path", {d: "M0 0 L8 4 L0 8 z", class: kind}));
    definitions.append(marker);
  }
  root.append(definitions);
  root.style.maxWidth = width + "px";
  return root;
}
function arrow(edge) { return `url(#${arrowId(edgeClass(edge).replace("edge", "arrow"))})`; }
function overlap(a, b) {
  const wide = Math.min(a.x + a.w, b.x + b.w) - Math.max(a.x, b.x), high = Math.min(a.y + a.h, b.y + b.h) - Math.max(a.y, b.y);
  return wide > 0 && high > 0 ? wide * high : 0;
}
// Puts the words at the first of `spots` at which they cover neither what is taken nor another label, or where they cover the least.
function labelled(labels, taken, words, spots, width, strong) {
  const half = words.length * 3.2 + 4;
  let best = null, least = Infinity;
  for (const spot of spots) {
    const x = Math.min(Math.max(spot.x, half + 2), width - half - 2), box = {x: x - half, y: spot.y - 8, w: 2 * half, h: 16};
    const covered = taken.reduce((sum, other) => sum + overlap(box, other), 0);
    if (covered >= least) continue;
    [best, least] = [box, covered];
    if (covered === 0) break;
  }
  taken.push(best);
  labels.push(svg("rect", {class: "halo", x: best.x, y: best.y, width: best.w, height: best.h, rx: 3}),
    svg("text", {class: strong ? "label strong" : "label", x: best.x + half, y: best.y + 12, "text-anchor": "middle"}, words));
}

function workloadsSvg(clusters, nodes, edges, stacked) {
  const touched = new Set(edges.flatMap(e => [e.from, e.to]));
  const columns = stacked ? 1 : clusters.length, width = stacked ? 440 : 1040;
  const gap = columns > 1 ? 700 / columns / 1.3 : 0, w = (width - gap * (columns - 1)) / columns;
  const lane = stacked ? 96 : Math.min(72, w / 4), high = 30, pitch = 46, most = 12;
  const place = new Map(), boxes = [];
  let height = 0, top = 0;
  clusters.forEach((cluster, c) => {
    const column = stacked ? 0 : c, left = !stacked && columns > 1 && c === 0, all = nodes.filter(n => n.cluster === cluster && n.kind !== "cluster");
    // What no request touched says little where there is much of it.
    const inside = all.length <= most ? all : all.filter(n => touched.has(n.id) || n.kind === "istiod" || n.kind === "gateway").slice(0, 24);
    const hidden = all.length - inside.length;
    inside.forEach((n, i) => place.set(n.id, {c, left, x: column * (w + gap) + (left ? lane : 12), y: top + 46 + i * pitch, w: w - lane - 12}));
    const own = 54 + inside.length * pitch + (hidden ? 22 : 0);
    boxes.push({cluster, x: column * (w + gap), y: top, hidden, own});
    height = Math.max(height, top + own);
    if (stacked) top += own + 14;
  });
  const root = canvas("topology", width);
  for (const box of boxes) {
    const tall = stacked ? box.own : height;
    root.append(svg("rect", {class: "box", x: box.x + 1, y: box.y + 4, width: w - 2, height: tall - 8, rx: 8}));
    const title = nodes.find(n => n.cluster === box.cluster && n.kind === "cluster");
    root.append(svg("text", {x: box.x + 14, y: box.y + 28, "font-weight": 700}, title ? title.label : box.cluster));
    if (box.hidden) root.append(svg("text", {class: "label", x: box.x + 14, y: box.y + tall - 14}, `and ${box.hidden} workloads that no measured request touched`));
  }
  const labels = [], ports = new Map(), waiting = [];
  const taken = [...place.values()].map(p => ({x: p.x, y: p.y, w: p.w, h: high}));
  const port = (node, side) => {  // edges of one node's side do not start on top of each other
    const key = node.x + "/" + node.y + "/" + side, used = ports.get(key) || 0;
    ports.set(key, used + 1);
    return node.y + high / 2 + [0, -8, 8, -4, 4, -12, 12][used % 7];
  };
  let lanes = 0;
  for (const edge of edges.filter(e => place.has(e.from) && place.has(e.to) && e.from !== e.to)) {
    const a = place.get(edge.from), b = place.get(edge.to), same = stacked || a.c === b.c, right = same ? !a.left : a.c < b.c;
    const x1 = right ? a.x + a.w : a.x, x2 = same === right ? b.x + b.w : b.x;
    const y1 = port(a, right), y2 = port(b, same ? right : !right), bow = lane * (stacked ? 0.5 + 0.25 * (lanes++ % 3) : 0.62), out = same ? (right ? bow : -bow) : (x2 - x1) / 2;
    const c1 = x1 + out, c2 = same ? x2 + out : x2 - out;
    root.append(svg("path", {class: edgeClass(edge), "data-edge": "", "marker-end": arrow(edge), d: `M${x1} ${y1} C${c1} ${y1} ${c2} ${y2} ${x2} ${y2}`}));
    const at = (t, p, q, r, s) => (1 - t) ** 3 * p + 3 * (1 - t) ** 2 * t * q + 3 * (1 - t) * t * t * r + t ** 3 * s;
    // Along the edge first; beside it where edges lie on top of each other.
    const spots = [0, 14, -14, 28, -28].flatMap(dy => [same ? 0.5 : 0.25, 0.4, 0.6, 0.75, 0.15, 0.85].map(t => ({x: at(t, x1, c1, c2, x2), y: at(t, y1, y1, y2, y2) + dy})));
    if (edgeWords(edge)) waiting.push({edge, spots});
  }
  // What fails has the best places.
  for (const {edge, spots} of waiting.sort((a, b) => share(b.edge) - share(a.edge))) labelled(labels, taken, edgeWords(edge), spots, width, share(edge) > 0);
  root.append(...labels);
  for (const n of nodes) {
    const p = place.get(n.id);
    if (!p || n.kind === "cluster") continue;
    root.append(svg("rect", {class: "node " + n.kind, "data-node": n.id, x: p.x, y: p.y, width: p.w, height: high, rx: n.kind === "service" ? 15 : n.kind === "workload" ? 4 : 10}));
    // Where both do not fit, the name is worth more than the kind, which the shape tells, too.
    const both = n.kind !== n.label && n.label.length <= (p.w - 90) / 7, room = Math.floor((p.w - 20) / 7);
    root.append(svg("text", {x: p.x + 10, y: p.y + 20}, n.label.length > room ? n.label.slice(0, room - 1) + "…" : n.label));
    if (both) root.append(svg("text", {class: "label", x: p.x + p.w - 10, y: p.y + 20, "text-anchor": "end"}, n.kind));
  }
  root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  root.setAttribute("width", "100%");
  return root;
}

// Calls between clusters, summed; what one cluster's pods say to each other is the circle's own share.
function clusterEdges(nodes, edges) {
  const home = new Map(nodes.map(n => [n.id, n.cluster])), out = new Map();
  for (const e of edges.filter(e => e.kind === "calls")) {
    const from = home.get(e.from), to = home.get(e.to), key = from + "\n" + to;
    if (!from || !to || from === to) continue;
    const sum = out.get(key) || {from, to, tries: 0, failed: 0, label: ""};
    sum.tries += e.tries;
    sum.failed += e.failed;
    out.set(key, sum);
  }
  return [...out.values()].sort((a, b) => share(b) - share(a) || b.tries - a.tries);
}
// `narrow`: a smaller circle, on which names are as large as on a wide page.
function clustersSvg(clusters, nodes, sums, narrow) {
  const names = new Map(clusters.map(c => [c, `${c} (${nodes.filter(n => n.cluster === c && n.kind === "workload").length})`]));
  const longest = 7.2 * Math.max(...[...names.values()].map(name => name.length));
  const size = narrow ? 320 : 640, middle = size / 2, radius = middle - (narrow ? 36 : 92), node = narrow ? 8 : 12;
  const beside = Math.max(radius + 18 + longest - middle, narrow ? 0 : 60);
  const root = canvas("topology by cluster", size + 2 * beside), labels = [];
  const place = new Map(clusters.map((c, i) => {
    const angle = 2 * Math.PI * i / clusters.length - Math.PI / 2;
    return [c, {x: middle + radius * Math.cos(angle), y: middle + radius * Math.sin(angle), angle}];
  }));
  const most = Math.max(1, ...sums.map(e => e.tries));
  for (const e of [...sums].reverse()) {  // the worst on top
    const a = place.get(e.from), b = place.get(e.to), dx = b.x - a.x, dy = b.y - a.y, length = Math.hypot(dx, dy) || 1;
    // Bent to one side, so that both directions are seen; ends at the circles' rims.
    const mx = (a.x + b.x) / 2 - dy * 0.12, my = (a.y + b.y) / 2 + dx * 0.12, rim = (node + 3) / length;
    root.append(svg("path", {class: edgeClass(e), "data-edge": "", "marker-end": arrow(e), "stroke-width": (0.6 + 2.4 * e.tries / most).toFixed(2),
      d: `M${a.x + dx * rim} ${a.y + dy * rim} Q${mx} ${my} ${b.x - dx * rim} ${b.y - dy * rim}`}));
  }
  root.append(...labels);
  for (const [cluster, p] of place) {
    const out = Math.cos(p.angle);
    root.append(svg("circle", {class: "node", "data-node": cluster, cx: p.x, cy: p.y, r: node}));
    root.append(svg("text", {x: p.x + (node + 6) * out, y: p.y + (node + 8) * Math.sin(p.angle) + 4, "font-weight": 700, "text-anchor": out > 0.2 ? "start" : out < -0.2 ? "end" : "middle"}, names.get(cluster)));
  }
  root.setAttribute("viewBox", `${-beside} 0 ${size + 2 * beside} ${size}`);
  root.setAttribute("width", "100%");
  return root;
}
function topologyFigure() {
  const {nodes, edges} = results.topology, clusters = [...new Set(nodes.map(n => n.cluster))].filter(c => c !== "");
  if (clusters.length === 0) return null;
  const words = "; red: at least half of the tries failed, orange: some";
  if (clusters.length > 4) {
    const sums = clusterEdges(nodes, edges);
    const worst = table(["from", "to", "#tries", "#failed"], sums.slice(0, 12).map(e => [e.from, e.to, String(e.tries), percent(e.failed, e.tries)]));
    return make("figure", {}, make("figcaption", {}, `Calls between ${clusters.length} clusters in the whole run; in brackets the workloads of each${words}`),
      make("div", {class: "wide-only"}, clustersSvg(clusters, nodes, sums, false)),
      make("div", {class: "narrow-only"}, clustersSvg(clusters, nodes, sums, true)), ...(sums.length ? [worst] : []));
  }
  const caption = make("figcaption", {}, "Topology at the end of the run; numbers are answered requests of the whole run" + words);
  const wide = make("div", {class: "wide-only"}, workloadsSvg(clusters, nodes, edges, false));
  if (clusters.length === 1) return make("figure", {}, caption, wide.firstChild);
  return make("figure", {}, caption, wide, make("div", {class: "narrow-only"}, workloadsSvg(clusters, nodes, edges, true)));
}
