// Talking to the server: every failure has a reason, and a drag never has more than one request on its way.

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

export const models = async () => (await answered("/api/models")).json();
export const samples = async (model) => (await answered(at("/api/samples", model))).json();
export const explain = async (model, question) => (await answered(at("/api/explain", model), json(question))).json();
export const sweep = async (model, question) => (await answered(at("/api/sweep", model), json(question))).blob();

/** A picture file, whatever its size: the answer has it as the model takes it. */
export async function upload(model, file, invert) {
  const form = new FormData();
  form.append("image", file);
  form.append("invert", String(invert));
  return (await answered(at("/api/explain", model), { method: "POST", body: form })).json();
}

const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

/** One request at a time; of those that come meanwhile, only the newest is sent. */
export class Latest {
  constructor(ask, show, fail) {
    Object.assign(this, { ask, show, fail, next: null, running: null });
  }

  /** Ask, now or when the one on its way has come back; resolves when nothing is left to ask. */
  want(question) {
    this.next = question;
    this.running ??= this.#run().finally(() => (this.running = null));
    return this.running;
  }

  /** The server works on the next question while the page draws the answer to the last. */
  async #run() {
    let coming = this.#send();
    while (coming) {
      const { question, answer } = await coming;
      coming = this.#send();
      if (answer) this.#draw(answer, question);
      coming ??= this.#send();
    }
  }

  /** The newest question, on its way; null if there is none. */
  #send() {
    const question = this.next;
    this.next = null;
    return question && this.ask(question).then((answer) => ({ question, answer }), (error) => this.#refused(error, question));
  }

  async #refused(error, question) {
    if (error.status === 503) {
      await pause(error.retryAfter || 1);
      this.next ??= question;
    } else this.fail(error);
    return { question, answer: null };
  }

  #draw(answer, question) {
    try {
      this.show(answer, question);
    } catch (error) {
      this.fail(error);
    }
  }
}
