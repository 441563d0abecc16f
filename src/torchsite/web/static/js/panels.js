// The classes: bars that are sums of maps, how a class is scored, and one class against another.

import { byId, make, number, say } from "./dom.js";
import { drawExemplar, drawMap, drawPicture, drawSmallMap } from "./maps.js";

const percent = (share) => `${(100 * share).toFixed(share > 0.995 || share < 0.0995 ? 1 : 0)} %`;
const signed = (value) => (value < 0 ? "− " : "+ ") + number(Math.abs(value));

/** Evidence for and against, and what they add up to. */
class Sums {
  constructor() {
    [this.gained, this.lost, this.total] = [make("span", { class: "gained" }), make("span", { class: "lost" }), make("b")];
    this.parts = make("span", {}, this.gained, " ", this.lost, " = ");
    this.element = make("span", { class: "sums" }, this.parts, this.total);
  }

  /** Without parts, the total alone. */
  show(gained, lost, total, parts = true) {
    say(this.gained, signed(gained));
    say(this.lost, signed(lost === 0 ? -0.0 : lost).replace(/^\+ 0.00/, "− 0.00"));
    say(this.total, number(total));
    this.parts.hidden = !parts;
  }
}

class ClassBar {
  constructor(index, name, choose) {
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.share = make("small");
    this.bar = Object.fromEntries(["lost", "gained", "zero", "sum"].map((kind) => [kind, make(kind === "zero" || kind === "sum" ? "i" : "span", { class: kind })]));
    this.sums = new Sums();
    this.name = make("span", { class: "name", textContent: name, title: name });
    this.name.append(this.share);
    this.element = make(
      "button",
      { type: "button", class: "class", "aria-pressed": "false", "data-class": index, onclick: () => choose(index) },
      this.canvas,
      this.name,
      make("span", {}, make("div", { class: "bar", "aria-hidden": "true" }, ...Object.values(this.bar)), this.sums.element),
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
    this.sums.show(item.gained, item.lost, item.logit, Boolean(item.heatmap));
    say(this.share, percent(probability));
    this.element.setAttribute("aria-pressed", String(chosen));
    this.canvas.hidden = !item.heatmap;
    if (item.heatmap) drawSmallMap(this.canvas, item.heatmap);
  }
}

/** Bars in the order of the classes if there are at most ten, else the strongest first. */
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

/** A figure with its title; what it shows is a picture or a map. */
class Figure {
  constructor(kind = "") {
    this.title = make("figcaption");
    this.canvas = make("canvas", { role: "img" });
    this.image = make("img", { hidden: true });
    this.element = make("figure", { class: kind }, this.title, this.canvas, this.image);
  }

  named(title, label) {
    say(this.title, title);
    this.canvas.setAttribute("aria-label", label);
    this.image.alt = label;
  }

  /** A PNG in base64, numbers, or an exemplar and its place. */
  picture(data) {
    const file = typeof data === "string";
    Object.assign(this.canvas, { hidden: file });
    Object.assign(this.image, { hidden: !file });
    if (data.picture) drawExemplar(this.canvas, data);
    else if (!file) drawPicture(this.canvas, data);
    else this.image.src = `data:image/png;base64,${data}`;
  }
}

/** How one class is scored: features ⊙ prototype = contributions. */
class Product {
  constructor() {
    const sign = (text) => make("span", { class: "sign", textContent: text, "aria-hidden": "true" });
    [this.seen, this.prototype] = [new Figure(), new Figure()];
    this.contributions = new Figure("map");
    this.factors = [this.seen.element, sign("⊙"), this.prototype.element, sign("=")];
    this.sum = make("b");
    this.name = make("span");
    this.element = make("div", { class: "product" }, ...this.factors, this.contributions.element, make("p", { class: "sums" }, "Σ contributions = ", this.sum, this.name));
  }

  show(detail, pose) {
    const [pixels, pictured] = [detail.features !== null, detail.prototype !== null];
    this.element.classList.toggle("learned", !pixels);
    this.element.classList.toggle("pictured", !pixels && pictured);
    for (const factor of this.factors) factor.hidden = !pixels;
    this.prototype.element.hidden = !pictured;
    this.contributions.named(pictured ? "contributions" : `“${detail.name}”: contributions`, `What each place contributes to ${detail.name}`);
    if (pixels) {
      this.seen.named("seen", "What the model sees");
      this.prototype.named(`“${detail.name}” here`, `The prototype of ${detail.name} for this picture`);
      this.seen.picture(detail.features);
    } else this.prototype.named(`“${detail.name}” fits`, `The training picture that the prototype of ${detail.name} fits best`);
    if (pictured) this.prototype.picture(detail.prototype);
    drawMap(this.contributions.canvas, detail.contributions, pose);
    say(this.sum, number(detail.logit));
    say(this.name, `, the logit of ${detail.name}`);
  }
}

const products = [new Product(), new Product()];

export function showDetails(answer, pose) {
  const shown = products.slice(0, answer.detail.length);
  if (byId("details").children.length !== shown.length) byId("details").replaceChildren(...shown.map(({ element }) => element));
  shown.forEach((product, i) => product.show(answer.detail[i], pose));
}

const DRAWN = { photographs: "", reconstructions: ", as a small decoder draws them from their features" };

/** What is shown of a class: features and prototype if they are pixels, else an exemplar if there is a gallery. */
export function tellDetails({ pixels, gallery, feature_shape: [depth, rows, cols] }) {
  const learned = `This model uses ${depth} learned features in ${rows}×${cols} places. Their prototypes have no colours`;
  const shown = gallery && `the training picture of the class (${gallery.source}${DRAWN[gallery.drawn]})`;
  byId("class-hint").textContent = pixels
    ? "What the model sees, times the prototype of the class, gives what each place contributes."
    : gallery
      ? `${learned}: shown is ${shown} that fits best, moved to where it fits best. Beside it, what each place contributes.`
      : `${learned}, and the model has no gallery of training pictures, so no prototype is drawn: only what each place contributes.`;
}

const contrast = { figure: new Figure("map"), sums: new Sums(), hint: make("p", { class: "hint" }) };

export function showWhy(answer, names, pose) {
  const { why } = answer;
  if (!why) return byId("contrast").replaceChildren();
  const [a, b] = [names[why.index], names[why.against]];
  const share = why.gained / Math.max(why.gained - why.lost, 1e-9);
  if (!byId("contrast").children.length) byId("contrast").replaceChildren(contrast.figure.element, make("div", {}, make("p", {}, contrast.sums.element), contrast.hint));
  contrast.figure.named(`${a} − ${b}`, `Evidence for ${a} rather than ${b}`);
  contrast.sums.show(why.gained, why.lost, why.difference);
  say(contrast.hint, `${percent(share)} of the evidence between them speaks for ${a}. The sum is the difference of the two logits.`);
  drawMap(contrast.figure.canvas, why.heatmap, pose);
}
