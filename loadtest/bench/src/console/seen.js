// What a page saw of itself, as `window.seen`: how fast it was painted and answered, and how much of it moved.
(() => {
  const seen = { painted: 0, largest: 0, moved: 0, slowest: 0, keys: [], answers: [], shown: [], errors: [] };
  window.seen = seen;
  const observe = (type, more, take) => new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true, ...more });
  observe("paint", {}, (one) => { if (one.name === "first-contentful-paint") seen.painted = one.startTime; });
  observe("largest-contentful-paint", {}, (one) => { seen.largest = one.startTime; });
  observe("layout-shift", {}, (one) => { if (!one.hadRecentInput) seen.moved += one.value; });
  observe("event", { durationThreshold: 16 }, (one) => { if (one.interactionId) seen.slowest = Math.max(seen.slowest, one.duration); });
  // A message that is sent in a frame comes when the frame was painted.
  const painted = (then) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => then(performance.now());
    port2.postMessage(0);
  });
  let last = 0;
  addEventListener("keydown", (event) => {
    last = event.timeStamp;
    painted((now) => seen.keys.push(now - event.timeStamp));
  }, true);
  document.addEventListener("shown", () => {
    const typed = document.querySelector("[data-filter] input[type=text]")?.value.trim();
    if (typed && new URLSearchParams(location.search).get("q") === typed) painted((now) => seen.answers.push(now - last));
  });
  // When a row has a text, by the clock of the machine.
  seen.wait = (key, text) => {
    const look = () => {
      if (!document.querySelector(`main tr[data-key="${CSS.escape(key)}"]`)?.textContent.includes(text)) return;
      watching.disconnect();
      painted((now) => seen.shown.push({ text, at: performance.timeOrigin + now }));
    };
    const watching = new MutationObserver(look);
    watching.observe(document, { subtree: true, childList: true, characterData: true });
    look();
  };
  addEventListener("error", (event) => seen.errors.push(String(event.message)));
  addEventListener("unhandledrejection", (event) => seen.errors.push(String(event.reason)));
  document.addEventListener("securitypolicyviolation", (event) => seen.errors.push(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  performance.setResourceTimingBufferSize(100_000);
})();
