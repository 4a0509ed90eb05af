"use strict";
// Helpers of the page: elements, numbers, times, and trees of values. Texts of a run only ever become text nodes.

const page = document.getElementById("page");
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child instanceof Node ? child : String(child));
  }
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const count = (number) => (typeof number === "number" ? number.toLocaleString("en") : number);
const plural = (number, one, many) => `${count(number)} ${number === 1 ? one : many || one + "s"}`;
function duration(seconds) {
  if (!(seconds >= 0)) return "";
  if (seconds < 0.001) return `${(seconds * 1e6).toFixed(0)} µs`;
  if (seconds < 1) return `${(seconds * 1e3).toPrecision(3)} ms`;
  if (seconds < 60) return `${seconds.toFixed(2)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}
function size(bytes) {
  for (const [unit, limit] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (bytes >= limit) return `${(bytes / limit).toPrecision(3)} ${unit}`;
  return `${count(bytes)} B`;
}
function clock(seconds, withDate) {
  if (!seconds) return "";
  const text = new Date(seconds * 1000).toISOString();
  return (withDate ? text.slice(0, 10) + " " : "") + text.slice(11, 19) + (withDate ? " UTC" : "");
}
const label = (number) => (number === -1 ? "outside" : number === null || number === undefined ? "" : data.labels[number]);
const shorten = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

// Trees: [type, text], or [type, number of parts, [[name, tree], …], number of parts left out].
function tree(node, open = 1) {
  if (!node) return el("span", { class: "kind" }, "–");
  const [kind, text, parts, left] = node;
  if (!parts) {
    if (kind === "str") return el("span", { class: "text" }, text);
    if (kind === "NoneType") return el("span", { class: "kind" }, "None");
    const known = ["int", "float", "bool"].includes(kind);
    return el("span", null, known ? null : el("span", { class: "kind" }, kind, " "), el("span", { class: "figure" }, text));
  }
  const heading = el("span", { class: "kind" }, `${kind} (${text})`);
  if (!parts.length) return heading;
  const items = parts.map(([name, part]) => el("li", null, el("span", { class: "key" }, name, ": "), tree(part, open - 1)));
  if (left) items.push(el("li", { class: "kind" }, `… ${count(left)} more`));
  return el("details", { open: open > 0 && parts.length <= 12 ? "" : null }, el("summary", null, heading), el("ul", null, items));
}
const showTree = (node, open) => el("div", { class: "tree" }, tree(node, open));

const SIGNS = { added: "+", removed: "−", changed: "~", appended: "+" };
function changes(differences, more) {
  const rows = differences.map(([path, kind, before, after]) => {
    const values = el("div", { class: "tree values" });
    if (before) values.append(el("div", { class: kind === "changed" ? "before" : null }, tree(before, 0)));
    if (after) values.append(el("div", null, kind === "appended" ? el("span", { class: "kind" }, "… ") : null, tree(after, kind === "added" ? 1 : 0)));
    return el("div", { class: `change ${kind}` }, el("span", { class: "sign", title: kind }, SIGNS[kind] || "~"), el("span", { class: "path" }, path.join(".") || "value"), values);
  });
  if (more) rows.push(el("div", { class: "note" }, `… ${plural(more, "more difference")}`));
  return rows;
}

function table(headings, rows, numbers) {
  const isNumber = (column) => numbers && numbers.includes(column);
  const cell = (tag, one, column) => el(tag, { class: isNumber(column) ? "number" : null }, one);
  return el("div", { class: "scroll" }, el("table", null,
    el("thead", null, el("tr", null, headings.map((one, column) => cell("th", one, column)))),
    el("tbody", null, rows.map((row) => el("tr", null, row.map((one, column) => cell("td", one, column)))))));
}
function block(title, number, content, open) {
  if (!number) return null;
  return el("details", { class: "block", open: open ? "" : null }, el("summary", null, title, " ", el("small", { class: "muted" }, count(number))), content);
}
const moreNote = (number, one, many) => (number > 0 ? el("p", { class: "note" }, `… ${count(number)} more ${number === 1 ? one : many || one + "s"}`) : null);
