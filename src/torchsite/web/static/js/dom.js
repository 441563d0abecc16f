// Small helpers for elements.

export const byId = (id) => document.getElementById(id);

/** An element with properties, data and children; `class` and `for` go by their names in HTML. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && name !== "class") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** A select's options anew; the chosen one stays if it is still there. */
export function fill(select, options, chosen = select.value) {
  select.replaceChildren(...options.map(([value, text]) => make("option", { value, textContent: text })));
  if (options.some(([value]) => value === String(chosen))) select.value = String(chosen);
}

export const number = (value, digits = 2) =>
  value === null || value === undefined ? "–" : value.toFixed(digits).replace("-", "−").replace(/^−(0\.?0*)$/, "$1");

/** Set a text only if it differs: the browser lays out again what was set. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** `guided_backprop` as people write it. */
export const spaced = (name) => name.replaceAll("_", " ").replace("grad cam", "Grad-CAM").replace("rise", "RISE");

/** Call only after it has been quiet for a while. */
export function settled(work, milliseconds) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), milliseconds);
  };
}
