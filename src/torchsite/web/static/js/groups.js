// The groups of an audit: choose one, see its pictures; a picture opens with the group under the brush.

import { byId, fill, make } from "./dom.js";

export class Groups {
  /** `chosen({image, of, hidden})` is told of a picture, the class of its group, and where the group stands in it. */
  constructor(chosen) {
    Object.assign(this, { chosen, groups: [] });
    byId("group").addEventListener("change", () => this.#show());
  }

  begin(groups) {
    this.groups = groups;
    byId("tab-groups").hidden = !groups.length;
    fill(byId("group"), groups.map(({ name, found }, i) => [String(i), found ? `${name}: stands out` : name]), "0");
    this.#show();
  }

  #show() {
    const group = this.groups[Number(byId("group").value)];
    byId("group-said").textContent = group?.said ?? "";
    byId("group-pictures").replaceChildren(
      ...(group?.pictures ?? []).map(({ image, hidden }, i) =>
        make(
          "button",
          { type: "button", onclick: () => this.chosen({ image, of: group.class, hidden }) },
          make("img", { src: `data:image/png;base64,${image}`, alt: `Picture ${i + 1} of ${group.name}` }),
        ),
      ),
    );
  }
}
