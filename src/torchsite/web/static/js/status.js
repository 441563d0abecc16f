// What the page says in words: errors, predictions, how often it was updated, and a summary for screen readers.

import { byId, number, say, settled } from "./dom.js";
import { titled } from "./rows.js";

/** Show an error, or none. */
export function complain(error) {
  byId("problem").hidden = !error;
  byId("problem").textContent = error ? error.message : "";
}

export function showSeen(answer, names) {
  const said = ({ predicted, probabilities }) => `${names[predicted]} (${(100 * probabilities[predicted]).toFixed(1)} %)`;
  byId("seen").hidden = false;
  say(byId("seen-still"), said(answer.still));
  say(byId("seen-turned"), said(answer.turned));
  say(byId("explained"), names[answer.explained]);
}

export const speak = settled((answer, names) => {
  const alike = answer.rows.map((row) => `${titled(row.method, row.model, answer.model)}: alike ${number(row.raw, 3)}, floor ${number(row.floor, 3)}`);
  byId("spoken").textContent = `Seen as ${names[answer.turned.predicted]}. ${alike.join(". ")}.`;
}, 700);

let times = [];
const quiet = settled(() => (byId("rate").textContent = ""), 1500);

/** Count an update, and say how many there were in the last second. */
export function count() {
  const now = performance.now();
  times = [...times.filter((time) => now - time < 1000), now];
  const main = document.querySelector("main");
  main.dataset.updates = String(Number(main.dataset.updates) + 1);
  if (times.length > 2) byId("rate").textContent = `${times.length} updates in the last second.`;
  quiet();
}
