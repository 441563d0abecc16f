// Where answers come from. The page asks one object, whichever it is:
//
//   models()                        the models that can be asked
//   samples(model)                  pictures to begin with
//   explain(model, question)        predictions, maps, figures: the answer of POST /api/explain
//   prepare(model, file, invert)    a picture file as the model takes it, PNG in base64
//   posthoc                         whether methods other than the model's own can be asked for
//
// The server answers over the network; without one, a worker runs the model in this browser. Maps come as signed
// bytes in base64 (`data`) or as numbers (`values`), pictures as PNG in base64 or as numbers.

/** The source that the page was written for. */
export async function answers() {
  const { answers: source } = document.documentElement.dataset;
  const { open } = await import(source === "browser" ? "./browser.js" : "./server.js");
  return open();
}
