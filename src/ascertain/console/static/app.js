// Adds to pages that work without it: keys, live counts, a copy button. No framework, no build step.
(() => {
  const one = (what, from = document) => from.querySelector(what);
  const all = (what, from = document) => [...from.querySelectorAll(what)];
  const words = document.body.dataset;

  // --- keys; off while somebody types, and off altogether by a switch (WCAG 2.1.4) ---
  const typing = target => /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && !/^(radio|checkbox)$/.test(target.type);
  const off = () => localStorage.getItem("keys") === "off";
  const rows = () => all(".list .row > a");
  const place = () => rows().findIndex(row => row === document.activeElement || row.parentElement.hasAttribute("aria-current"));
  const move = step => {
    const found = rows(), at = found.indexOf(document.activeElement);
    const next = found[Math.max(0, Math.min(found.length - 1, (at < 0 ? place() : at) + step))];
    if (next) next.focus();
  };
  const choose = number => {
    const option = all(".opts > .opt > input[type=radio]")[number - 1];
    if (option) { option.checked = true; option.focus(); }
  };
  const places = { r: "/review", a: "/approvals", o: "/operations", b: "/runs", e: "/events", d: "/dashboard", l: "/audit" };
  let went = -Infinity; // when G was pressed
  addEventListener("keydown", event => {
    if (event.ctrlKey && event.key === "Enter") {
      const form = one("form.ask"), button = form && all(".acts .btn", form).find(b => b.offsetParent);
      if (button) form.requestSubmit(button);
      return;
    }
    if (typing(event.target)) { if (event.key === "Escape") event.target.blur(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || off()) return;
    const key = event.key.toLowerCase();
    if (event.timeStamp - went < 1500 && places[key]) { location.href = places[key]; return; }
    went = key === "g" ? event.timeStamp : -Infinity;
    if (key === "j") move(1);
    else if (key === "k") move(-1);
    else if (key === "x") { const row = event.target.closest(".row"), box = row && one(".pick", row); if (box) box.checked = !box.checked; }
    else if (key === "a") { const take = one("button[name=do][value=take]"); if (take) take.click(); }
    else if (key === "/") { const box = one("input[type=search]"); if (box) { event.preventDefault(); box.focus(); } }
    else if (event.key === "?") { const help = one("#keys"); if (help) help.open ? help.close() : help.showModal(); }
    else if (/^[1-9]$/.test(key)) choose(+key);
  });
  const toggle = one("[data-keys]");
  if (toggle) {
    toggle.checked = !off();
    toggle.addEventListener("change", () => localStorage.setItem("keys", toggle.checked ? "on" : "off"));
  }
  all("[data-close]").forEach(button => button.addEventListener("click", () => button.closest("dialog").close()));

  // --- what changes; a list never moves under the pointer: it says that there is news ---
  const live = one("[data-live]");
  if (live) {
    let news = 0, polling = 0;
    const seen = new Set();
    const tell = event => {
      const about = JSON.parse(event.data || "{}"), id = about.operation || about.id || event.type;
      if (!seen.has(id)) { seen.add(id); news += 1; }
      live.hidden = false;
      one("b", live).textContent = news;
      document.title = document.title.replace(/^(• )?/, "• ");
    };
    // Without streams, or where a proxy refuses them, the list is asked for now and then.
    const known = new Set(all(".row > a").map(row => row.getAttribute("href")));
    const look = async () => {
      const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
      all(".row > a", page).map(row => row.getAttribute("href")).filter(href => !known.has(href))
        .forEach(href => tell({ type: href }));
    };
    const poll = () => { polling ||= setInterval(look, 15000); };
    const stream = window.EventSource && new EventSource(live.dataset.live);
    if (stream) {
      live.dataset.kinds.split(" ").forEach(kind => stream.addEventListener(kind, tell));
      stream.addEventListener("error", () => { if (stream.readyState === EventSource.CLOSED) poll(); });
    } else poll();
    addEventListener("pagehide", () => { if (stream) stream.close(); clearInterval(polling); });
  }

  // --- copying ---
  all("[data-copy]").forEach(button => {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = words.copied;
    });
  });
})();
