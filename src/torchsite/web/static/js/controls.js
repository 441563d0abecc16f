// Sliders and boxes as the state says, and which explainers can be chosen.

import { byId, say } from "./dom.js";

const percent = (share) => `${Math.round(100 * share)} %`;

export function showControls(state) {
  const texts = { angle: `${Math.round(state.angle)}°`, right: percent(state.right), down: percent(state.down), scale: state.scale.toFixed(2), over: percent(state.over) };
  for (const [name, text] of Object.entries(texts)) {
    byId(name).value = state[name];
    byId(name).setAttribute("aria-valuetext", text);
    say(document.querySelector(`output[for="${name}"]`), text.replace("-", "−"));
  }
  byId("frame").checked = state.corners === "mean";
  byId("unhide").disabled = !state.hidden;
}

/** Offer the explainers of a model in both rows; what is chosen then, as far as it is known as before. */
export function offer(chosen, models, { first, second }, rows, posthoc) {
  const others = models.filter((one) => chosen.companions.includes(one.name));
  const known = [chosen, ...others].flatMap((one) => one.methods.map((method) => `${method.name}@${one.name}`));
  const usual = defaults(chosen, others, posthoc);
  const choice = { first: known.includes(first) ? first : usual.first, second: known.includes(second) ? second : usual.second };
  rows.second.element.hidden = !choice.second;
  rows.first.offer([chosen], choice.first, chosen.kind === "site");
  if (usual.second) rows.second.offer([chosen, ...others], choice.second, false);
  return choice;
}

/** SITE beside Grad-CAM on a black box if there is one; alone where no other methods can be asked for. */
function defaults(chosen, others, posthoc) {
  const other = others.find((one) => one.kind !== chosen.kind);
  const [own, gradCam] = ["self_explanation", "grad_cam"];
  const [mine, theirs] = chosen.kind === "site" ? [own, gradCam] : [gradCam, own];
  const second = other ? `${theirs}@${other.name}` : `gradient@${chosen.name}`;
  return { first: `${mine}@${chosen.name}`, second: posthoc ? second : null };
}
