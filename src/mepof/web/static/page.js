// Keeps a page up to date by server-sent events. Without it, the page shows what was so when it
// was loaded.
"use strict";

(() => {
  const main = document.querySelector("main[data-live]");

  const duration = seconds => {
    if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
    const whole = Math.round(seconds), minutes = Math.floor(whole / 60);
    const two = number => String(number).padStart(2, "0");
    if (minutes < 60) return `${minutes} min ${two(whole % 60)} s`;
    return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
  };

  const put = (element, field, text) => {
    for (const found of element.querySelectorAll(`[data-field="${field}"]`)) {
      if (found.textContent !== String(text)) found.textContent = text;
    }
  };

  const count = () => {
    for (const element of document.querySelectorAll("[data-since]")) {
      put(element, "took", duration(Math.max(0, Date.now() / 1000 - element.dataset.since)));
    }
  };

  const showRun = changes => {
    for (const [step, news] of Object.entries(changes)) {
      if (step === "") {
        const run = document.querySelector("[data-run]");
        for (const field of ["state", "made", "total"]) put(run, field, news[field]);
        // What can be done with it, and its report, are of the server's making.
        if (news.state !== "running") location.reload();
        continue;
      }
      const elements = document.querySelectorAll(`[data-step="${CSS.escape(step)}"]`);
      if (!elements.length) return location.reload(); // the plan has changed
      for (const element of elements) {
        element.dataset.state = news.state;
        if (news.since === null) delete element.dataset.since;
        else element.dataset.since = news.since;
        for (const field of ["word", "sign", "waits"]) put(element, field, news[field]);
        if (news.since === null) put(element, "took", news.took);
      }
    }
    count();
  };

  const showList = async () => {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const now = document.querySelector("#runs tbody"), next = fresh.querySelector("#runs tbody");
    if (!now || !next) return location.reload();
    const chosen = new Set([...now.querySelectorAll(":checked")].map(box => box.value));
    for (const box of next.querySelectorAll("input")) box.checked = chosen.has(box.value);
    const focused = document.activeElement;
    const key = focused?.closest("#runs tbody") && (focused.value || focused.getAttribute("href"));
    now.replaceWith(next);
    if (key) document.querySelector(`#runs [href="${CSS.escape(key)}"], #runs [value="${CSS.escape(key)}"]`)?.focus();
  };

  const showLog = text => {
    const log = document.querySelector("[data-log]");
    const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
    log.append(text);
    if (atEnd) log.scrollTop = log.scrollHeight;
  };

  // A click into a heatmap looks closer there; links beside it do the same for the keyboard.
  document.querySelector("[data-zoom]")?.addEventListener("click", event => {
    const map = event.currentTarget, box = map.getBoundingClientRect(), data = map.dataset;
    const [x, y, w, h] = [data.x, data.y, data.w, data.h].map(Number);
    const column = x + (event.clientX - box.left) / box.width * w;
    const row = y + (1 - (event.clientY - box.top) / box.height) * h;
    const [wide, high] = [Math.max(4, Math.round(w / 2)), Math.max(4, Math.round(h / 2))];
    const query = new URLSearchParams({
      image: data.image, w: wide, h: high,
      x: Math.max(0, Math.round(column - wide / 2)), y: Math.max(0, Math.round(row - high / 2)),
    });
    location.assign(`${data.zoom}?${query}`);
  });

  if (main?.dataset.live === "started") {
    setTimeout(() => location.reload(), 700);
  } else if (main) {
    let source = null;
    let read = null; // of a log, that a second connection does not show it twice
    const connect = () => {
      if (source || document.hidden) return;
      source = new EventSource(main.dataset.events);
      source.onmessage = message => {
        const news = JSON.parse(message.data);
        if (news.changes) showRun(news.changes);
        if (news.changed) showList();
        if (news.text) showLog(news.text);
      };
      source.addEventListener("end", () => {
        source.close();
        if (main.dataset.live === "log") location.reload();
      });
      source.onerror = () => {
        // A stream of a log continues where it was only on a fresh page.
        if (main.dataset.live === "log" && source.readyState !== EventSource.CLOSED) {
          source.close();
          source = null;
          setTimeout(() => location.reload(), 2000);
        }
      };
    };
    document.addEventListener("visibilitychange", () => {
      // A browser allows six connections to a server: a tab that is hidden needs none.
      if (!document.hidden) {
        if (!source && main.dataset.live === "log" && read) return location.reload();
        return connect();
      }
      source?.close();
      source = null;
      read = true;
    });
    connect();
    if (main.dataset.live === "run") setInterval(count, 250);
    const log = document.querySelector("[data-log]");
    if (log) log.scrollTop = log.scrollHeight;
  }
})();
