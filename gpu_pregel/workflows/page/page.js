// The page: what is chosen, and what is shown of it.
//
// data.run: id, kind, status, …; data.steps: superstep, status, row of the trace, began, ended and, for newer ones, active,
// aggregates, vertices, messages, failures, questions; data.graph, attempts, emissions, events; data.values, aggregates, failed,
// asking, timers: the state after the last commit. Vertices are numbers of data.labels.

const chosen = { step: 0, measure: "seconds", scope: "run", node: null, isPaused: false };
const parts = {};

const ofNode = (vertex) => chosen.node === null || data.graph.nodeOf[vertex] === chosen.node;
const badge = (status) => el("span", { class: `badge ${status}` }, status.replace("_", " "));
const fact = (name, value) => (value === "" || value === null || value === undefined ? null : el("div", null, el("dt", null, name), el("dd", null, value)));

function header() {
  const run = data.run, steps = data.steps;
  const sum = (name) => steps.reduce((total, step) => total + ((step.row || {})[name] || 0), 0);
  const attempts = data.recorded ? data.attempts.length : "";
  const graph = data.graph || data.numericGraph;
  return el("div", null,
    el("header", null, el("h1", null, run.id), badge(run.status), el("span", { class: "muted" }, `${run.kind} run`), refreshButton()),
    el("dl", { class: "facts" },
      fact("supersteps", count(run.head + 1)), fact(data.run.kind === "mixed" ? "agents" : "vertices", count(graph.vertices)), fact("numeric vertices", data.run.kind === "mixed" && data.arrays.length ? count(data.arrays[0][2]) : ""), fact("edges", count(isNumeric ? graph.edges : graph.totalEdges)),
      fact("time in supersteps", duration(sum("seconds"))), fact("computed", isNumeric ? "" : count(sum("computed"))), fact("attempts shown", attempts),
      fact("retries", isNumeric ? "" : count(sum("retries"))), fact("failed", isNumeric ? "" : count(data.failedCount)), fact("messages", count(sum("messages"))),
      fact("bytes moved", sum("bytes") ? size(sum("bytes")) : ""),
      fact("created", clock(run.created, true)), fact("changed", clock(run.changed, true)), fact("program", run.owner),
      fact("forked from", run.parent ? `${run.parent[0]}, superstep ${run.parent[1]}` : ""), fact("read", clock(run.read, true))),
    data.notes.map((note) => el("p", { class: "note" }, note)));
}
function refreshButton() {
  if (!data.refresh) return null;
  const button = el("button", { "aria-pressed": "false", onclick: () => { chosen.isPaused = !chosen.isPaused; button.setAttribute("aria-pressed", String(chosen.isPaused)); } }, `pause (refreshes every ${data.refresh} s)`);
  setInterval(() => { if (!chosen.isPaused) location.reload(); }, data.refresh * 1000);
  return button;
}

function needs() {
  if (isNumeric) return [];
  const failed = data.failed.map(([vertex, step, kind, type, text, trace, messages]) => el("div", { class: "item failure" },
    el("div", null, el("span", { class: "name" }, label(vertex)), ` in superstep ${step}: `, el("span", { class: "kind" }, type), " ", text, kind === "exception" ? null : el("span", { class: "muted" }, ` (${kind})`)),
    trace ? el("details", null, el("summary", { class: "muted" }, "traceback"), el("pre", null, trace)) : null,
    messages.length ? el("details", null, el("summary", { class: "muted" }, plural(messages.length, "message") + " as input"), messages.map((one) => showTree(one, 0))) : null));
  const asked = data.asking.map(([vertex, payload]) => el("div", { class: "item" }, el("span", { class: "name" }, label(vertex)), " asks", showTree(payload)));
  return [
    failed.length ? el("section", { class: "alert", id: "failed" }, el("h2", null, plural(data.failedCount, "failed vertex", "failed vertices")), failed, moreNote(data.failedCount - failed.length, "failure")) : null,
    asked.length ? el("section", { class: "alert ask", id: "asking" }, el("h2", null, plural(data.askingCount, "open question")), asked, moreNote(data.askingCount - asked.length, "question")) : null,
  ];
}

const LEGEND = { ok: "committed", retry: "after retries", fail: "failed", ask: "asks", running: "running", init: "init", push: "push", pull: "pull" };
function legend(kinds, names) {
  return el("div", { class: "legend" }, Object.keys(LEGEND).filter((kind) => kinds.includes(kind)).map((kind) => el("span", null, el("i", { class: kind }), (names && names[kind]) || LEGEND[kind])));
}
function supersteps() {
  const measure = el("select", { "aria-label": "height of the bars", onchange: (event) => { chosen.measure = event.target.value; draw("overview"); } },
    measuresOfRun().map((name) => el("option", { value: name, selected: name === chosen.measure ? "" : null }, MEASURES[name][0])));
  parts.slider = el("input", { type: "range", min: 0, max: data.steps.length - 1, value: chosen.step, "aria-label": "superstep", oninput: (event) => choose(Number(event.target.value)) });
  parts.output = el("output", { id: "chosen" });
  parts.overview = el("div");
  return el("section", null,
    el("h2", null, "Supersteps", legend([...new Set(data.steps.map(stepClass))]), el("span", { class: "bar" }, measure)),
    parts.overview,
    el("div", { class: "steps" }, el("button", { onclick: () => choose(chosen.step - 1), "aria-label": "previous superstep" }, "◀"), parts.slider,
      el("button", { onclick: () => choose(chosen.step + 1), "aria-label": "next superstep" }, "▶"), parts.output));
}

function failureItem([vertex, attempts, type, text, trace, again]) {
  return el("div", { class: "item failure" }, el("span", { class: "name" }, label(vertex)), ` attempt ${attempts}: `, el("span", { class: "kind" }, type), " ", text,
    el("span", { class: "muted" }, again ? " – tried again" : " – gave up"), trace ? el("details", null, el("summary", { class: "muted" }, "traceback"), el("pre", null, trace)) : null);
}
function emitted(list) {
  const items = [];
  let last = null;
  for (const [, vertex, attempt, time, shown] of list) {
    const key = `${vertex} ${attempt}`;
    if (typeof shown === "string") {
      if (last === key) { items[items.length - 1].lastChild.append(shown); continue; }
      items.push(el("div", { class: "item" }, el("span", { class: "name" }, label(vertex)), el("span", { class: "muted" }, ` attempt ${attempt}, ${clock(time)}`), el("pre", { class: "emitted" }, shown)));
      last = key;
    } else {
      items.push(el("div", { class: "item" }, el("span", { class: "name" }, label(vertex)), el("span", { class: "muted" }, ` attempt ${attempt}, ${clock(time)}`), showTree(shown, 0)));
      last = null;
    }
  }
  return items;
}
function attemptRows(list, began) {
  const rows = list.slice(0, 200).map(([, vertex, attempt, status, from, seconds]) => [label(vertex), attempt, badge(status), began ? `+ ${duration(Math.max(0, from - began))}` : clock(from), duration(seconds)]);
  return [table(["vertex", "attempt", "ended", "began", "took"], rows, [1, 3, 4]), moreNote(list.length - rows.length, "attempt")];
}

function details(step) {
  const row = step.row || {};
  const chips = el("dl", { class: "facts" }, Object.entries({ direction: row.direction, computed: count(row.computed), "active after": count(row.active_vertices), "active edges": count(row.active_edges), messages: count(row.messages),
    applied: count(row.applied), woken: count(row.woken), failed: count(row.failed), retries: count(row.retries), lag: row.lag, took: duration(row.seconds === undefined ? stepTimes(step) : row.seconds), compiling: row.compile_seconds ? duration(row.compile_seconds) : "",
    "bytes moved": row.bytes === undefined ? "" : size(row.bytes), began: clock(step.began, true) }).map(([name, value]) => fact(name, value)));
  if (isNumeric) return chips;
  const vertices = (step.vertices || []).filter(([vertex]) => ofNode(vertex));
  const messages = (step.messages || []).filter(([from, to]) => ofNode(from) || ofNode(to));
  const failures = (step.failures || []).filter(([vertex]) => ofNode(vertex));
  const questions = (step.questions || []).filter(([vertex]) => ofNode(vertex));
  const attempts = data.attempts.filter((one) => one[0] === step.superstep && ofNode(one[1]));
  const emissions = data.emissions.filter((one) => one[0] === step.superstep && ofNode(one[1]));
  const events = data.events.filter((one) => one[1] === step.superstep && !["failure", "interrupt", "hold", "end"].includes(one[2]));
  const found = [
    block("Shared state", (step.aggregates || []).length, (step.aggregates || []).map(([name, list, more]) => el("div", { class: "item aggregate" }, el("span", { class: "name" }, name), changes(list, more))), true),
    block("Questions", questions.length, questions.map(([vertex, payload, answer]) => el("div", { class: "item" }, el("span", { class: "name" }, label(vertex)), " asks", showTree(payload), answer ? [el("span", { class: "muted" }, "answer"), showTree(answer)] : el("span", { class: "badge ask" }, "waits for an answer"))), true),
    block("Failed attempts", failures.length, [failures.map(failureItem), moreNote(step.failuresMore, "failed attempt")], true),
    block("Vertices changed", vertices.length + (step.verticesMore || 0), [el("div", { class: "cards" }, vertices.map(([vertex, kind, list, more]) => el("div", { class: `item vertex ${kind}` }, el("span", { class: "name" }, label(vertex)), kind === "changed" ? null : el("span", { class: "muted" }, ` ${kind}`), changes(list, more)))), moreNote(step.verticesMore, "changed vertex", "changed vertices")], true),
    block("Emitted", emissions.length, emitted(emissions), true),
    block("Messages", messages.length + (step.messagesMore || 0), [table(["from", "to", "message"], messages.map(([from, to, payload]) => [label(from), label(to), showTree(payload, 0)])), moreNote(step.messagesMore, "message")], messages.length <= 12),
    block("Attempts", attempts.length, attemptRows(attempts, step.began), attempts.length <= 12),
    block("Events", events.length, table(["time", "event", "vertex", ""], events.slice(0, 100).map(([time, , kind, vertex, attempt, text]) => [clock(time), kind, label(vertex) + (attempt ? `, attempt ${attempt}` : ""), text])), false),
  ].filter(Boolean);
  if (step.cut) found.unshift(el("p", { class: "note" }, "This superstep is too large to be shown."));
  if (step.active === undefined) found.push(el("p", { class: "note" }, "Only the row of the trace is known of this superstep."));
  else if (!found.length) found.push(el("p", { class: "note" }, "Nothing changed, and nothing was sent."));
  return [chips, found];
}

function arrays() {
  if (!data.arrays.length) return null;
  const rows = data.arrays.map(([name, dtype, length, ...figures]) => [name, dtype, count(length), ...figures]);
  return el("section", { id: "arrays" }, el("h2", null, `Numeric vertices after superstep ${data.run.head}`), table(["array", "dtype", "length", "least", "greatest", "mean"], rows, [2, 3, 4, 5]));
}
function stateNow() {
  if (isNumeric) return null;
  const { aggregates, values, timers } = data, more = data.graph.vertices - values.length;
  return el("section", { id: "state" }, el("h2", null, data.run.head < 0 ? "State before the first superstep" : `State after superstep ${data.run.head}`),
    block("Shared state", aggregates.length, aggregates.map(([name, node]) => el("div", { class: "item" }, el("span", { class: "name" }, name), showTree(node))), true),
    block("Values of vertices", data.graph.vertices, [el("div", { class: "cards" }, values.map(([vertex, node, halted]) => el("div", { class: "item value" }, el("span", { class: "name" }, label(vertex)), halted ? el("span", { class: "muted" }, " halted") : null, showTree(node)))), more > 0 ? el("p", { class: "note" }, `… ${count(more)} more vertices`) : null], values.length <= 20),
    block("Timers", timers.length, table(["vertex", "at"], timers.map(([vertex, time]) => [label(vertex), clock(time, true)]))));
}
function traceTable() {
  const rows = data.steps.filter((step) => step.status === "committed"), names = [...new Set(rows.flatMap((step) => Object.keys(step.row)))];
  if (!rows.length) return null;
  const cell = (name, value) => (value === undefined ? "" : name.endsWith("seconds") ? duration(value) : name === "bytes" ? size(value) : count(value));
  const content = el("div"), box = el("details", { class: "block", id: "trace" }, el("summary", null, "Trace ", el("small", { class: "muted" }, plural(rows.length, "superstep"))), content);
  box.addEventListener("toggle", () => { if (!content.hasChildNodes()) content.append(table(names.map((name) => name.replaceAll("_", " ")), rows.map((step) => names.map((name) => cell(name, step.row[name]))), names.map((_, k) => k).filter((k) => names[k] !== "direction"))); });
  return el("section", null, box);
}

const DRAW = {
  overview: () => [...new Set([chosen.measure, ...(isNumeric || data.run.kind === "mixed" ? ["active_vertices"] : [])])].map((measure) => overview(measure, chosen.step, choose)),
  graph: () => drawGraph(data.steps[chosen.step] || {}, chosen.node, (node) => { chosen.node = chosen.node === node ? null : node; draw("graph", "details", "time"); parts.graph.querySelectorAll(".node")[node].focus(); }),
  details: () => details(data.steps[chosen.step]),
  time: () => {
    const step = data.steps[chosen.step], isWhole = chosen.scope === "run";
    const mine = (one) => (isWhole || one[0] === step.superstep) && ofNode(one[1]);
    return timeLine(isWhole ? data.steps : [step], data.attempts.filter(mine), data.emissions.filter(mine), isWhole);
  },
};
function draw(...names) {
  for (const name of names) if (parts[name]) parts[name].replaceChildren(...[DRAW[name]()].flat(Infinity).filter(Boolean));
  const step = data.steps[chosen.step];
  if (!step) return;
  parts.output.textContent = `superstep ${count(step.superstep)} of ${count(data.steps[data.steps.length - 1].superstep)}`;
  parts.slider.value = chosen.step;
  parts.title.replaceChildren(`Superstep ${count(step.superstep)}`, badge(step.status), ...(chosen.node === null ? [] : [el("small", null, "only ", data.graph.nodes[chosen.node][0]), el("button", { onclick: () => { chosen.node = null; draw("graph", "details", "time"); } }, "show all")]));
}
function choose(number) {
  if (number < 0 || number >= data.steps.length || number === chosen.step) return;
  chosen.step = number;
  history.replaceState(null, "", number === data.steps.length - 1 ? "#" : `#superstep=${data.steps[number].superstep}`);
  draw("overview", "graph", "details", ...(chosen.scope === "run" ? [] : ["time"]));
}
function fromAddress() {
  const wanted = /superstep=(\d+)/.exec(location.hash), found = wanted ? data.steps.findIndex((step) => step.superstep === Number(wanted[1])) : -1;
  chosen.step = found >= 0 ? found : Math.max(0, data.steps.length - 1);
  if (/scope=superstep/.test(location.hash)) chosen.scope = "superstep";
}

function main() {
  fromAddress();
  page.append(header(), ...needs().filter(Boolean));
  if (data.steps.length) {
    parts.title = el("h2");
    parts.details = el("div", { id: "details" });
    page.append(supersteps());
    const box = el("section", null, parts.title, parts.details);
    if (isNumeric) page.append(box);
    else {
      const scope = (name, text) => el("button", { "aria-pressed": String(chosen.scope === name), onclick: (event) => { chosen.scope = name; for (const one of event.target.parentNode.children) one.setAttribute("aria-pressed", String(one === event.target)); draw("time"); } }, text);
      parts.time = el("div", { class: "scroll" });
      parts.graph = el("div");
      const { nodes, isGrouped, vertices } = data.graph, isWide = Math.max(0, ...nodes.map((node) => node[2])) > 620;
      page.append(el("section", null, el("h2", null, "Time line", legend([...new Set(data.attempts.map(attemptClass))], { ok: "completed" }), el("span", { class: "bar" }, scope("run", "whole run"), scope("superstep", "this superstep"))), parts.time));
      page.append(el("div", { class: `columns${isWide ? " stacked" : ""}` },
        el("section", { class: isWide ? null : "sticky" }, el("h2", null, "Graph", el("small", null, isGrouped ? `${plural(nodes.length, "node")} for ${count(vertices)} vertices, by their ids` : "dashed: only messages; choose a vertex to see only its part")), parts.graph), box));
    }
    draw("overview", "graph", "details", "time");
  } else page.append(el("section", null, el("p", { class: "note" }, "No superstep has been committed yet.")));
  page.append(...[arrays(), stateNow(), traceTable()].filter(Boolean));
  window.addEventListener("hashchange", () => { fromAddress(); draw("overview", "graph", "details", "time"); });
  let width = page.clientWidth;
  window.addEventListener("resize", () => { if (page.clientWidth !== width) { width = page.clientWidth; draw("overview", "time"); } });
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    if (event.key === "ArrowLeft") choose(chosen.step - 1);
    if (event.key === "ArrowRight") choose(chosen.step + 1);
  });
}
main();
