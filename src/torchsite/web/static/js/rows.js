// One row for each explainer: I(T x) beside T(I x), and how alike they are.

import { make, number, say, spaced } from "./dom.js";
import { drawMap } from "./maps.js";

const CAPTIONS = { renewed: ["I(T x)", "explained anew"], carried: ["T(I x)", "carried along"] };

export const titled = (method, model, asked) => {
  const name = method === "self_explanation" ? "SITE’s own explanation" : spaced(method);
  return model === asked ? name : `${name}, of ${model}`;
};

export class Row {
  constructor(place, choose) {
    this.place = place;
    this.select = make("select", { "aria-label": place === "first" ? "First explainer" : "Explainer beside it" });
    this.select.addEventListener("change", () => choose(this.select.value));
    this.title = make("b");
    this.maps = Object.fromEntries(
      Object.entries(CAPTIONS).map(([name, [formula, words]]) => [
        name,
        make("canvas", { role: "img", "aria-label": `${formula}, ${words}` }),
      ]),
    );
    this.big = make("div", { class: "big", textContent: "–" });
    this.fill = make("span");
    this.mark = make("i");
    this.values = Object.fromEntries(["floor", "calibrated", "centred", "hiding"].map((name) => [name, make("dd", { textContent: "–" })]));
    this.note = make("p", { class: "note", hidden: true });
    this.element = make(
      "div",
      { class: "row", "data-row": place },
      make("header", {}, this.title, this.select),
      ...Object.entries(CAPTIONS).map(([name, [formula, words]]) =>
        make("figure", { class: "map" }, make("figcaption", {}, make("i", { textContent: formula }), ` ${words}`), this.maps[name]),
      ),
      make(
        "div",
        { class: "figure" },
        make("div", {}, make("div", { class: "hint", textContent: "Alike" }), this.big, make("div", { class: "meter", "aria-hidden": "true" }, this.fill, this.mark)),
        make("dl", {}, ...Object.entries(this.values).flatMap(([name, dd]) => [make("dt", { textContent: name }), dd])),
      ),
      this.note,
    );
  }

  /** What can be chosen here, in groups of models. */
  offer(models, chosen, fixed) {
    const asked = models[0].name;
    this.title.hidden = !fixed;
    this.select.hidden = fixed;
    this.select.replaceChildren(
      ...models.map((model) => {
        const options = model.methods.map((method) =>
          make("option", {
            value: `${method.name}@${model.name}`,
            textContent: `${titled(method.name, model.name, asked)}${method.live ? "" : " (when at rest)"}`,
          }),
        );
        return make("optgroup", { label: `on ${model.name}` }, ...options);
      }),
    );
    this.select.value = chosen;
  }

  show(row, pose, asked) {
    this.last = [row, pose, asked];
    say(this.title, titled(row.method, row.model, asked));
    this.element.classList.remove("stale");
    this.note.hidden = true;
    for (const name of Object.keys(CAPTIONS)) drawMap(this.maps[name], row[name], pose);
    say(this.big, number(row.raw, 3));
    this.fill.style.width = `${100 * Math.max(0, row.raw ?? 0)}%`;
    this.mark.style.left = `${100 * Math.min(0.995, Math.max(0, row.floor ?? 0))}%`;
    for (const [name, dd] of Object.entries(this.values)) say(dd, number(row[name], 3));
  }

  redraw() {
    if (this.last) this.show(...this.last);
  }

  /** The maps do not belong to the picture any more. */
  stale(text) {
    this.element.classList.add("stale");
    this.note.textContent = text;
    this.note.hidden = !text;
    this.big.textContent = "–";
  }
}
