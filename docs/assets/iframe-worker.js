// Search runs in a worker, and a page that was opened from the disk may start none. There, a hidden frame does
// the worker's work: it runs the same script, and messages go to and fro as they would.
(() => {
  if (location.protocol !== "file:") return

  const runtime = `
    postMessage = data => parent.postMessage(data, "*")
    importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise(done => {
      const script = document.createElement("script")
      script.src = url
      script.onload = done
      document.body.appendChild(script)
    })), Promise.resolve())`

  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const { document: inside } = this.frame.contentWindow
      inside.open()
      inside.write(`<html><body><script>${runtime}</` + `script><script src="${url}"></` + `script></body></html>`)
      inside.close()
      this.ready = new Promise(resolve => { this.frame.contentWindow.onload = resolve })
      this.hear = event => {
        if (event.source === this.frame.contentWindow)
          this.dispatchEvent(new MessageEvent("message", { data: event.data }))
      }
      addEventListener("message", this.hear)
    }

    postMessage(data) {
      this.ready.then(() =>
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })))
    }

    terminate() {
      removeEventListener("message", this.hear)
      this.frame.remove()
    }
  }
})()
