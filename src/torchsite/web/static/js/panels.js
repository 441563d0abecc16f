// The classes: bars that are sums of maps, a class at work, and one class against another.

import { byId, make, number } from "./dom.js";
import { drawMap } from "./maps.js";

const percent = (share) => `${(100 * share).toFixed(share > 0.995 || share < 0.0995 ? 1 : 0)} %`;
const signed = (value) => (value < 0 ? "− " : "+ ") + number(Math.abs(value));

function sums(gained, lost, total, words = "") {
  return make(
    "span",
    { class: "sums" },
    make("span", { class: "gained", textContent: signed(gained) }),
    " ",
    make("span", { class: "lost", textContent: signed(lost === 0 ? -0.0 : lost).replace(/^\+ 0.00/, "− 0.00") }),
    " = ",
    make("b", { textContent: number(total) }),
    words,
  );
}

class ClassBar {
  constructor(index, name, choose) {
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.share = make("small");
    this.bar = Object.fromEntries(["lost", "gained", "zero", "sum"].map((kind) => [kind, make(kind === "zero" || kind === "sum" ? "i" : "span", { class: kind })]));
    this.text = make("span");
    this.name = make("span", { class: "name", textContent: name, title: name });
    this.name.append(this.share);
    this.element = make(
      "button",
      { type: "button", class: "class", "aria-pressed": "false", "data-class": index, onclick: () => choose(index) },
      this.canvas,
      this.name,
      make("span", {}, make("div", { class: "bar", "aria-hidden": "true" }, ...Object.values(this.bar)), this.text),
    );
  }

  show(item, probability, range, chosen) {
    const [low, high] = range;
    const at = (value) => (100 * (value - low)) / (high - low || 1);
    const { lost, gained, zero, sum } = this.bar;
    Object.assign(lost.style, { left: `${at(item.lost)}%`, width: `${at(0) - at(item.lost)}%` });
    Object.assign(gained.style, { left: `${at(0)}%`, width: `${at(item.gained) - at(0)}%` });
    zero.style.left = `${at(0)}%`;
    sum.style.left = `${at(item.logit)}%`;
    this.text.replaceChildren(item.heatmap ? sums(item.gained, item.lost, item.logit) : make("span", { class: "sums" }, make("b", { textContent: number(item.logit) })));
    this.share.textContent = percent(probability);
    this.element.setAttribute("aria-pressed", String(chosen));
    this.canvas.hidden = !item.heatmap;
    if (item.heatmap) drawMap(this.canvas, item.heatmap);
  }
}

/** Bars in a steady order while few classes are known, else the strongest first. */
export class ClassBars {
  constructor(choose) {
    Object.assign(this, { choose, bars: new Map(), names: [] });
  }

  begin(names) {
    Object.assign(this, { names, bars: new Map() });
    byId("classes").replaceChildren();
  }

  show(answer) {
    const items = answer.evidence.length ? answer.evidence : logitsOnly(answer, this.names);
    const shown = this.names.length <= 10 ? items.toSorted((a, b) => a.index - b.index) : items;
    const range = [Math.min(0, ...shown.map((item) => item.lost)), Math.max(0, ...shown.map((item) => item.gained))];
    const elements = shown.map((item) => {
      if (!this.bars.has(item.index)) this.bars.set(item.index, new ClassBar(item.index, item.name, this.choose));
      return this.bars.get(item.index).element;
    });
    const box = byId("classes");
    box.classList.toggle("bare", !answer.evidence.length);
    if (elements.length !== box.children.length || elements.some((element, i) => box.children[i] !== element)) box.replaceChildren(...elements);
    for (const item of shown) this.bars.get(item.index).show(item, answer.turned.probabilities[item.index], range, item.index === answer.explained);
  }
}

function logitsOnly(answer, names) {
  const order = answer.turned.logits.map((logit, index) => ({ index, name: names[index], logit, gained: Math.max(0, logit), lost: Math.min(0, logit) }));
  return order.toSorted((a, b) => b.logit - a.logit).slice(0, 10);
}

const picture = (title, data, alt) =>
  make("figure", {}, make("figcaption", { textContent: title }), make("img", { src: `data:image/png;base64,${data}`, alt }));

function mapFigure(title, label) {
  const canvas = make("canvas", { role: "img", "aria-label": label });
  return { canvas, figure: make("figure", { class: "map" }, make("figcaption", { textContent: title }), canvas) };
}

export function showDetails(answer) {
  const drawn = answer.detail.map((detail) => {
    const { canvas, figure } = mapFigure("contributions", `What each place contributes to ${detail.name}`);
    const sign = (text) => make("span", { class: "sign", textContent: text, "aria-hidden": "true" });
    const product = make(
      "div",
      { class: "product" },
      picture("seen", detail.features, "What the model sees"),
      sign("⊙"),
      picture(`“${detail.name}” here`, detail.prototype, `The prototype of ${detail.name} for this picture`),
      sign("="),
      figure,
      make("p", { class: "sums" }, "Σ contributions = ", make("b", { textContent: number(detail.logit) }), `, the logit of ${detail.name}`),
    );
    return { product, draw: () => drawMap(canvas, detail.contributions) };
  });
  byId("details").replaceChildren(...drawn.map(({ product }) => product));
  drawn.forEach(({ draw }) => draw());
}

export function showWhy(answer, names) {
  const { why } = answer;
  if (!why) return byId("contrast").replaceChildren();
  const [a, b] = [names[why.index], names[why.against]];
  const { canvas, figure } = mapFigure(`${a} − ${b}`, `Evidence for ${a} rather than ${b}`);
  const share = why.gained / Math.max(why.gained - why.lost, 1e-9);
  byId("contrast").replaceChildren(
    figure,
    make(
      "div",
      {},
      make("p", {}, sums(why.gained, why.lost, why.difference)),
      make("p", { class: "hint", textContent: `${percent(share)} of the evidence between them speaks for ${a}. The sum is the difference of the two logits.` }),
    ),
  );
  drawMap(canvas, why.heatmap);
}
