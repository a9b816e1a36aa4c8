"use strict";

/*
 * The page: one map at a time, its search, buttons, tooltip and side panel.
 *
 * For tests and the console, window.outvote is
 *   ready       true once the first map is drawn
 *   maps        [{fingerprint, nodes, edges}]: what there is to show
 *   current     the living map (see map.js), with `index` and `renderMs`, the time from the start
 *               of its layout to its first frame
 *   show(i)     replaces the living map by another
 *   choose(i)   opens the side panel of a node
 */
window.outvote = (() => {
  const get = (id) => document.getElementById(id);
  const findings = JSON.parse(get("map-data").textContent);
  const [canvas, panel, tip, hint, search, count] = [
    "map-canvas", "map-panel", "map-tip", "map-hint", "map-search", "map-count",
  ].map(get);
  const outvote = {
    ready: false,
    current: null,
    show,
    choose,
    maps: findings.map(({ fingerprint, localization: { map } }) => ({
      fingerprint, nodes: map.nodes.length, edges: map.edges.length,
    })),
  };
  let hits = [];
  let hit = -1;

  function show(index) {
    outvote.ready = false;
    outvote.current?.destroy();
    const began = performance.now();
    const map = outvoteMap(canvas, findings[index]);
    outvote.current = Object.assign(map, { index });
    map.cy.one("render", () => {
      map.renderMs = performance.now() - began;
      outvote.ready = true;
      hint.textContent = "Drag to move. Click the map, then scroll to zoom.";
    });
    map.cy.on("mouseover", "node[index]", ({ target }) => showTip(target));
    map.cy.on("mouseout pan zoom", hideTip);
    map.cy.on("tap", "node[index]", ({ target }) => choose(target.data("index"), false));
    map.cy.on("tap", "node[folded]", ({ target }) => choose(target.data("folded")));
    for (const notes of document.querySelectorAll(".map-notes")) {
      notes.hidden = notes.dataset.map !== String(index);
    }
    get("map-first").disabled = map.first < 0;
    search.value = "";
    runSearch();
    describe(map.first);
  }

  /* Opens the panel of a layer; the map moves there unless the layer was clicked on it. */
  function choose(i, move = true) {
    const { current } = outvote;
    if (move) current.focus(i);
    else {
      current.cy.nodes(".chosen").removeClass("chosen");
      current.cy.getElementById(`n${i}`).addClass("chosen");
    }
    describe(i);
  }

  function element(name, text, className) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  const shape = (value) =>
    Array.isArray(value) ? `(${value.map((n) => n ?? "?").join(", ")})` : "unknown";

  function figures(node) {
    const limit = node.tolerance == null ? "" : ` (tolerance ${outvoteNumber(node.tolerance)})`;
    const alone = node.isolated == null ? "not run" : outvoteNumber(node.isolated) + limit;
    return [
      ["δ", outvoteNumber(node.delta)],
      ["R", outvoteNumber(node.rate) + (node.red ? ", red" : "")],
      ["alone", alone],
      ["shape", shape(node.shape)],
    ];
  }

  function definitions(pairs, className) {
    const list = element("dl", undefined, className);
    for (const [name, value] of pairs) {
      const row = element("div");
      row.append(element("dt", name), element("dd", value));
      list.append(row);
    }
    return list;
  }

  function neighbours(title, indices) {
    if (!indices.length) return [];
    const line = element("p", `${title} `, "near");
    for (const i of indices.slice(0, 12)) {
      const button = element("button", outvote.current.nodes[i].id, "link");
      button.type = "button";
      button.addEventListener("click", () => choose(i));
      line.append(button, " ");
    }
    if (indices.length > 12) line.append(`and ${indices.length - 12} more`);
    return [line];
  }

  function describe(i) {
    const { nodes, edges, first } = outvote.current;
    panel.replaceChildren();
    if (i < 0) {
      panel.append(element("p", "Click a layer to see its figures and configuration.", "faint"));
      return;
    }
    const node = nodes[i];
    const word = i === first ? "first faulty layer" : node.faulty ? "faulty layer" : "layer";
    const config = Object.entries(node.config ?? {});
    const words = (value) => (typeof value === "string" ? value : JSON.stringify(value));
    panel.append(
      element("p", word, node.faulty || i === first ? "badge bad" : "badge"),
      element("h3", node.id),
      element("p", node.kind, "faint"),
      definitions(figures(node), "list"),
      ...neighbours("from", edges.filter(([, to]) => to === i).map(([from]) => from)),
      ...neighbours("to", edges.filter(([from]) => from === i).map(([, to]) => to)),
    );
    if (config.length) {
      panel.append(element("h4", "Configuration"));
      panel.append(definitions(config.map(([k, v]) => [k, words(v)]), "list config"));
    }
    panel.scrollTop = 0;
  }

  function showTip(target) {
    const node = outvote.current.nodes[target.data("index")];
    tip.replaceChildren(element("b", node.id), element("span", node.kind));
    for (const [name, value] of figures(node)) tip.append(element("span", `${name} ${value}`));
    tip.hidden = false;
    const box = target.renderedBoundingBox();
    const right = Math.min(box.x2 + 10, canvas.clientWidth - tip.offsetWidth - 6);
    tip.style.left = `${Math.max(6, right)}px`;
    tip.style.top = `${Math.max(6, Math.min(box.y1, canvas.clientHeight - tip.offsetHeight - 6))}px`;
    canvas.style.cursor = "pointer";
  }

  function hideTip() {
    tip.hidden = true;
    canvas.style.cursor = "";
  }

  function runSearch() {
    hits = outvote.current.find(search.value);
    hit = -1;
    showCount();
  }

  function showCount() {
    const found = hits.length === 1 ? "1 match" : `${hits.length} matches`;
    count.textContent = !search.value.trim() ? "" : hit < 0 ? found : `${hit + 1} of ${found}`;
  }

  function jump(step) {
    if (!hits.length) return;
    hit = hit < 0 && step < 0 ? hits.length - 1 : (hit + step + hits.length) % hits.length;
    choose(hits[hit]);
    showCount();
  }

  function zoom(factor) {
    const { cy } = outvote.current;
    const middle = { x: cy.width() / 2, y: cy.height() / 2 };
    cy.zoom({ level: cy.zoom() * factor, renderedPosition: middle });
  }

  const keys = {
    ArrowUp: () => outvote.current.cy.panBy({ x: 0, y: 80 }),
    ArrowDown: () => outvote.current.cy.panBy({ x: 0, y: -80 }),
    ArrowLeft: () => outvote.current.cy.panBy({ x: 80, y: 0 }),
    ArrowRight: () => outvote.current.cy.panBy({ x: -80, y: 0 }),
    "+": () => zoom(1.3),
    "-": () => zoom(1 / 1.3),
    0: () => outvote.current.fit(),
  };

  function listen() {
    search.addEventListener("input", runSearch);
    search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      jump(event.shiftKey ? -1 : 1);
    });
    get("map-first").addEventListener("click", () => choose(outvote.current.first));
    get("map-fit").addEventListener("click", () => outvote.current.fit());
    get("map-in").addEventListener("click", () => zoom(1.3));
    get("map-out").addEventListener("click", () => zoom(1 / 1.3));
    // The wheel scrolls the page until the map was clicked, so that nobody gets stuck on it.
    const wheel = (on) => outvote.current.cy.userZoomingEnabled(on);
    canvas.addEventListener("pointerdown", () => {
      canvas.focus({ preventScroll: true });
      wheel(true);
      hint.hidden = true;
    });
    canvas.addEventListener("blur", () => wheel(false));
    canvas.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
    get("map-select")?.addEventListener("change", (event) => show(Number(event.target.value)));
    document.addEventListener("click", ({ target }) => {
      const { showMap, layer } = target.dataset ?? {};
      if (showMap !== undefined) {
        const index = findings.findIndex(({ fingerprint }) => fingerprint === showMap);
        if (get("map-select")) get("map-select").value = String(index);
        if (index !== outvote.current.index) show(index);
      }
      if (layer !== undefined) {
        const index = outvote.current.nodes.findIndex(({ id }) => id === layer);
        if (index >= 0) choose(index);
      }
    });
  }

  // A thousand layers take a second or two to draw: the verdict is shown before that.
  setTimeout(() => {
    show(0);
    listen();
  }, 50);
  return outvote;
})();
