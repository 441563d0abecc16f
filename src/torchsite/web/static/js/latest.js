// One request at a time: of the questions of a drag that come meanwhile, only the newest is sent.

const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

/** `ask(question)` gives a promise of the answer, which `show` gets, or `fail` the error. */
export class Latest {
  constructor(ask, show, fail) {
    Object.assign(this, { ask, show, fail, next: null, running: null });
  }

  /** Ask now, or when the running request is answered; resolves when nothing is left to ask. */
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
