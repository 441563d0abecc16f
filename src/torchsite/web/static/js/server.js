// Answers from the server: every failure has a reason.

export class Refusal extends Error {
  constructor(status, code, reason, retryAfter) {
    super(reason);
    Object.assign(this, { status, code, retryAfter });
  }
}

async function answered(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Refusal(0, "unreachable", "The server cannot be reached: is it still running?");
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new Refusal(response.status, said.code, said.reason ?? response.statusText, Number(response.headers.get("Retry-After")));
}

const json = (body) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
const at = (path, model) => `${path}?model=${encodeURIComponent(model)}`;

/** A picture file, whatever its size: the answer has it as the model takes it. */
async function prepare(model, file, invert) {
  const form = new FormData();
  form.append("image", file);
  form.append("invert", String(invert));
  return (await (await answered(at("api/explain", model), { method: "POST", body: form })).json()).image;
}

export const open = () => ({
  models: async () => (await answered("api/models")).json(),
  samples: async (model) => (await answered(at("api/samples", model))).json(),
  explain: async (model, question) => (await answered(at("api/explain", model), json(question))).json(),
  sweep: async (model, question) => (await answered(at("api/sweep", model), json(question))).blob(),
  prepare,
  posthoc: true,
});
