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

const explain = async (model, question) => (await answered(at("api/explain", model), json(question))).json();

/** A file as text: a data URI in base64. */
const asText = (file) =>
  new Promise((done, failed) => {
    const reader = new FileReader();
    Object.assign(reader, { onload: () => done(reader.result), onerror: () => failed(reader.error) });
    reader.readAsDataURL(file);
  });

export const open = () => ({
  models: async () => (await answered("api/models")).json(),
  samples: async (model) => (await answered(at("api/samples", model))).json(),
  explain,
  prepare: async (model, file, invert) => (await explain(model, { image: await asText(file), invert })).image,
  posthoc: true,
});
