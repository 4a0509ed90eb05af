// The charts: all supersteps, the time line of attempts, and the graph.

const isNumeric = data.run.kind === "numeric";
const chartWidth = () => Math.max(320, Math.min(1440, page.clientWidth - 84));
const stepTimes = (step) => (step.ended || data.run.read) - step.began;

function stepClass(step) {
  const row = step.row || {};
  if (step.status === "failed" || row.failed > 0) return "fail";
  if (step.status === "interrupted") return "ask";
  if (step.status === "running") return "running";
  if (isNumeric) return ["push", "pull", "init"].includes(row.direction) ? row.direction : "plain";
  return row.retries > 0 ? "retry" : "ok";
}
const MEASURES = {
  seconds: ["seconds", (step) => (step.row.seconds === undefined ? stepTimes(step) || 0 : step.row.seconds), duration],
  computed: ["vertices computed", (step) => step.row.computed, count],
  active_vertices: ["active vertices", (step) => step.row.active_vertices, count],
  messages: ["messages", (step) => step.row.messages, count],
  bytes: ["bytes moved", (step) => step.row.bytes, size],
};
const measuresOfRun = () => Object.keys(MEASURES).filter((name) => data.steps.some((step) => MEASURES[name][1](step) !== undefined));

// A bar for each superstep, as high as a measure of it, on a logarithmic scale if the highest is far above the others.
function overview(measure, chosen, choose) {
  const [name, of, show] = MEASURES[measure];
  const values = data.steps.map((step) => of(step) || 0);
  const most = Math.max(...values, 1e-12), typical = [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] || most;
  const isLog = most / typical > 50;
  const scale = (value) => (value <= 0 ? 0 : isLog ? Math.log1p((value / most) * 1e4) / Math.log1p(1e4) : value / most);
  const width = chartWidth(), height = 96, slot = width / values.length, bar = Math.max(Math.min(slot * 0.8, 46), slot > 2 ? 1 : slot);
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height + 18}`, class: "chart overview", role: "img", "aria-label": `${name} of each superstep; choose one with the slider below` });
  chart.append(svg("rect", { class: "chosen", x: chosen * slot, y: 0, width: Math.max(slot, 3), height }));
  chart.append(svg("line", { class: "rule", x1: 0, x2: width, y1: height, y2: height }));
  data.steps.forEach((step, k) => {
    const tall = Math.max(scale(values[k]) * (height - 16), 2);
    chart.append(svg("rect", { class: `${stepClass(step)}-fill bar`, x: k * slot + (slot - bar) / 2, y: height - tall, width: bar, height: tall, rx: bar > 6 ? 2 : 0 },
      svg("title", null, `superstep ${step.superstep}: ${show(values[k])}`)));
  });
  chart.append(svg("text", { x: 0, y: 11, class: "muted" }, `${name}, at most ${show(most)}${isLog ? " (logarithmic)" : ""}`));
  const every = Math.max(1, Math.ceil((values.length * 55) / width));
  data.steps.forEach((step, k) => {
    if (k % every === 0) chart.append(svg("text", { x: (k + 0.5) * slot, y: height + 14, "text-anchor": "middle", class: "muted" }, count(step.superstep)));
  });
  chart.addEventListener("click", (event) => {
    const box = chart.getBoundingClientRect();
    choose(Math.min(values.length - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * values.length))));
  });
  return chart;
}

// Maps times to positions; long gaps in which nothing happened are cut.
function timeScale(spans, width) {
  const busy = [];
  for (const [from, to] of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = busy[busy.length - 1];
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else busy.push([from, to]);
  }
  const total = busy.reduce((sum, [from, to]) => sum + to - from, 0) || 1e-6;
  const merged = [];
  for (const span of busy) {
    const last = merged[merged.length - 1];
    if (last && span[0] - last[1] < total * 0.15) last[1] = span[1];
    else merged.push([...span]);
  }
  const gap = 46, room = width - gap * (merged.length - 1), length = merged.reduce((sum, [from, to]) => sum + to - from, 0) || 1e-6;
  let start = 0;
  const pieces = merged.map(([from, to]) => { const piece = { from, to, x: start, scale: Math.max(room, 50) / length }; start += (to - from) * piece.scale + gap; return piece; });
  const at = (time) => {
    let found = pieces[0];
    for (const piece of pieces) if (time >= piece.from) found = piece;
    return found.x + (Math.min(Math.max(time, found.from), found.to) - found.from) * found.scale;
  };
  return { at, pieces, gap };
}

const MAX_LANES = 40;
// Puts attempts into rows: one for each vertex or, if those are many, as few rows as possible.
function lanes(attempts) {
  const vertices = [...new Set(attempts.map((one) => one[1]))];
  if (vertices.length <= MAX_LANES) return { rows: vertices.map(label), of: (one) => vertices.indexOf(one[1]) };
  const ends = [], rowOf = new Map();
  for (const one of attempts) {
    let row = ends.findIndex((end) => end <= one[4]);
    if (row < 0) row = ends.length;
    ends[row] = one[4] + one[5];
    rowOf.set(one, row);
  }
  return { rows: ends.map(() => ""), of: (one) => rowOf.get(one) };
}
const attemptClass = ([, , attempt, status]) => (status === "completed" ? (attempt > 1 ? "retry" : "ok") : { failed: "fail", interrupted: "ask" }[status] || "plain");

function timeLine(steps, attempts, emissions, isWhole) {
  const timed = steps.filter((step) => step.began);
  const sorted = [...attempts].sort((a, b) => a[4] - b[4]);
  const spans = [...sorted.map((one) => [one[4], one[4] + one[5]]), ...timed.map((step) => [step.began, step.ended || Math.max(data.run.read, step.began)])];
  if (!spans.length) return el("p", { class: "note" }, "No times were recorded.");
  const { rows, of } = lanes(sorted);
  const width = chartWidth(), left = rows.some((row) => row) ? Math.min(170, width / 4) : 76, high = 20, top = 54;
  const shown = rows.slice(0, MAX_LANES);
  const height = top + shown.length * high + 4;
  const scale = timeScale(spans, width - left - 10);
  const at = (time) => left + scale.at(time);
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", id: "timeline", role: "img", "aria-label": "when attempts began and how long they took; the table of attempts has the same" });
  timed.forEach((step, k) => {
    const from = at(step.began), to = Math.max(from + 2, at(step.ended || data.run.read));
    chart.append(svg("rect", { class: `${stepClass(step)}-fill step`, x: from, y: 31, width: to - from, height: 12, rx: 2, opacity: 0.85 },
      svg("title", null, `superstep ${step.superstep}: ${duration(stepTimes(step))}`)));
    if (isWhole && to - from > 26) chart.append(svg("text", { x: (from + to) / 2, y: 27, "text-anchor": "middle", class: "muted" }, step.superstep));
    if (k) chart.append(svg("line", { class: "rule", x1: from, x2: from, y1: 45, y2: height }));
  });
  chart.append(svg("text", { x: 0, y: 41, class: "muted" }, "superstep"));
  shown.forEach((row, k) => {
    chart.append(svg("line", { class: "rule", x1: left, x2: width, y1: top + (k + 1) * high, y2: top + (k + 1) * high, opacity: 0.5 }));
    if (row) chart.append(svg("text", { x: 0, y: top + k * high + 14 }, shorten(row, Math.floor(left / 7)), svg("title", null, row)));
  });
  const marks = new Map();
  for (const one of emissions) marks.set(`${one[0]} ${one[1]} ${one[2]}`, [...(marks.get(`${one[0]} ${one[1]} ${one[2]}`) || []), one[3]]);
  let hidden = 0;
  for (const one of sorted) {
    const [step, vertex, attempt, status, began, seconds] = one, lane = of(one);
    if (lane >= MAX_LANES) { hidden += 1; continue; }
    const from = at(began), wide = Math.max(2.5, at(began + seconds) - from), y = top + lane * high + 3;
    chart.append(svg("rect", { class: `${attemptClass(one)}-fill attempt`, x: from, y, width: wide, height: high - 6, rx: 3 },
      svg("title", null, `${label(vertex)}, superstep ${step}, attempt ${attempt}: ${status} after ${duration(seconds)}`)));
    if (!isWhole) for (const time of (marks.get(`${step} ${vertex} ${attempt}`) || []).slice(0, 60)) {
      const x = at(time);
      if (x > from && x < from + wide) chart.append(svg("line", { class: "tick", x1: x, x2: x, y1: y + 3, y2: y + high - 9 }));
    }
  }
  for (const piece of scale.pieces.slice(1)) {
    const before = scale.pieces[scale.pieces.indexOf(piece) - 1];
    chart.append(svg("text", { x: left + piece.x - scale.gap / 2, y: 41, "text-anchor": "middle", class: "muted" }, "⋯", svg("title", null, duration(piece.from - before.to))));
  }
  const first = scale.pieces[0].from, last = scale.pieces[scale.pieces.length - 1].to;
  chart.append(svg("text", { x: left, y: 11, class: "muted" }, clock(first, true)));
  chart.append(svg("text", { x: width - 2, y: 11, "text-anchor": "end", class: "muted" }, `+ ${duration(last - first)}`));
  return el("div", null, chart, hidden ? moreNote(hidden, "attempt beside these", "attempts beside these") : null);
}

const NODE = { height: 32, margin: 14 };
// A way is vertical at each of its points, as the layout has them.
function wayOf(points) {
  const way = [`M${points[0][0]},${points[0][1]}`];
  for (let k = 1; k < points.length; k += 1) {
    const [x, y] = points[k - 1], [u, v] = points[k], middle = (y + v) / 2;
    way.push(x === u ? `V${v}` : `C${x},${middle} ${u},${middle} ${u},${v}`);
  }
  return way.join("");
}
function drawGraph(step, picked, pick) {
  const { nodes, edges, nodeOf } = data.graph, { margin } = NODE;
  const reach = (number, extra) => Math.max(0, ...nodes.map((node) => node[number] + extra(node)), ...edges.flatMap((edge) => edge[4].map((point) => point[number - 2])));
  const width = reach(2, (node) => node[4] / 2) + 2 * margin + 24, height = reach(3, () => NODE.height / 2) + 2 * margin;
  const active = new Set((step.active || []).map((vertex) => nodeOf[vertex]));
  const failed = new Set((step.failures || []).filter((one) => !one[5]).map((one) => nodeOf[one[0]]));
  const asking = new Set((step.questions || []).filter((one) => !one[2]).map((one) => nodeOf[one[0]]));
  const sent = new Set((step.messages || []).map(([from, to]) => `${nodeOf[from]} ${nodeOf[to]}`));
  const chart = svg("svg", { viewBox: `0 0 ${width} ${height}`, id: "graph", role: "img", "aria-label": "the vertices and edges of the run", width: width * Math.min(1, Math.max(0.7, parts.graph.clientWidth / width)) });
  const arrow = (id, kind) => svg("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse", markerUnits: "userSpaceOnUse" }, svg("path", { d: "M0,0 L8,4 L0,8 z", class: `arrow ${kind}` }));
  chart.append(svg("defs", null, arrow("arrow", ""), arrow("arrow-sent", "sent")));
  const body = svg("g", { transform: `translate(${margin} ${margin})` });
  chart.append(body);
  for (const [from, to, declared, messages, points] of edges) {
    const isSent = sent.has(`${from} ${to}`), [x, y] = points[0];
    const path = from === to ? `M${x},${y - 7} c26,-14 26,28 0,14` : wayOf(points);
    body.append(svg("path", { d: path, class: `edge${isSent ? " sent" : ""}${declared ? "" : " message"}`, "marker-end": `url(#arrow${isSent ? "-sent" : ""})` },
      svg("title", null, `${nodes[from][0]} → ${nodes[to][0]}: ${plural(declared, "edge")}, ${plural(messages, "message")}`)));
  }
  nodes.forEach((node, k) => {
    const [, , x, y, wide] = node;
    const kind = failed.has(k) ? " failed" : asking.has(k) ? " asking" : active.has(k) ? " active" : "";
    const isMany = node[1] > 1;
    body.append(svg("g", { class: `node${kind}${picked === k ? " picked" : ""}`, tabindex: 0, role: "button", "aria-pressed": picked === k, "aria-label": `${node[0]}${kind}`,
      onclick: () => pick(k), onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(k); } } },
      svg("title", null, isMany ? `${node[0]}: ${count(node[1])} vertices` : node[0]),
      svg("rect", { x: x - wide / 2, y: y - NODE.height / 2, width: wide, height: NODE.height, rx: 8 }),
      svg("text", { x, y: y + 4, "text-anchor": "middle" }, isMany ? `${shorten(node[0], Math.max(4, 20 - count(node[1]).length))} × ${count(node[1])}` : shorten(node[0], 24))));
  });
  return el("div", { class: "scroll" }, chart);
}
