// Likeness over angle, drawn while the picture turns.

import { byId } from "./dom.js";

const WIDTH = 640;
const HEIGHT = 206;
const EDGE = { left: 30, right: 10, top: 26, bottom: 22 };
const COLOURS = ["var(--accent)", "var(--other)"];
const x = (angle) => EDGE.left + ((angle + 180) / 360) * (WIDTH - EDGE.left - EDGE.right);
const y = (value) => EDGE.top + (1 - Math.max(0, value)) * (HEIGHT - EDGE.top - EDGE.bottom);

function svg(tag, properties, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export class Chart {
  begin(maxRotation) {
    Object.assign(this, { maxRotation, series: new Map() });
    byId("chart").hidden = true;
  }

  add(angle, rows, titles) {
    rows.forEach((row, i) => {
      if (row.raw === null) return;
      if (!this.series.has(titles[i])) this.series.set(titles[i], new Map());
      this.series.get(titles[i]).set(Math.round(angle), row);
    });
    byId("chart").hidden = false;
    this.#draw();
  }

  #draw() {
    const text = (at, up, words, properties = {}) => svg("text", { x: at, y: up, "font-size": 12, fill: "var(--muted)", ...properties }, words);
    const parts = [svg("rect", { x: x(-this.maxRotation), y: EDGE.top, width: x(this.maxRotation) - x(-this.maxRotation), height: y(0) - EDGE.top, fill: "var(--band)" })];
    for (const value of [0, 0.5, 1]) {
      parts.push(svg("line", { x1: x(-180), x2: x(180), y1: y(value), y2: y(value), stroke: "var(--line)" }));
      parts.push(text(EDGE.left - 6, y(value) + 4, String(value), { "text-anchor": "end" }));
    }
    for (const angle of [-180, -90, 0, 90, 180]) parts.push(text(x(angle), HEIGHT - 5, `${angle}°`.replace("-", "−"), { "text-anchor": angle === 180 ? "end" : angle === -180 ? "start" : "middle" }));
    [...this.series].forEach(([title, points], i) => {
      const ordered = [...points].sort(([a], [b]) => a - b);
      const line = (name) => ordered.map(([angle, row]) => `${x(angle).toFixed(1)},${y(row[name] ?? 0).toFixed(1)}`).join(" ");
      const colour = COLOURS[i % COLOURS.length];
      parts.push(svg("polyline", { points: line("floor"), fill: "none", stroke: colour, "stroke-dasharray": "3 4", "stroke-width": 1.2 }));
      parts.push(svg("polyline", { points: line("raw"), fill: "none", stroke: colour, "stroke-width": 2.4, "stroke-linejoin": "round" }));
      parts.push(text(i ? x(180) : x(-180), 14, title, { fill: colour, "font-weight": 600, "text-anchor": i ? "end" : "start" }));
    });
    const names = [...this.series.keys()].join(" and ");
    byId("plot").replaceChildren(svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Likeness over angle of ${names}` }, ...parts));
  }
}
