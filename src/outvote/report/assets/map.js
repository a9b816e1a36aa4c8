"use strict";

/*
 * One localisation map: the graph of layers, drawn by Cytoscape.js.
 *
 * outvoteMap(container, finding) -> {cy, nodes, edges, first, path, layout, layoutMs, find, focus,
 * step, fit, destroy}. Nodes are known by their index; a layer's name is only ever shown as text.
 */
const outvoteNumber = (value) => {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 100 && size < 1e6) return value.toFixed(0);
  if (size >= 1e-3 && size < 100) return String(Number(value.toPrecision(3)));
  return value.toExponential(1).replace(".0e", "e").replace("e+", "e");
};

const outvoteMap = (() => {
  const MANY = 300; // from here on, moving the map must not redraw every edge
  const READABLE = 0.62; // below this zoom the names cannot be read

  const shorten = (text, most) =>
    text.length <= most ? text : `${text.slice(0, most / 2)}…${text.slice(1 - most / 2)}`;

  function label(node, isFirst) {
    const mark = isFirst ? "▶ FIRST FAULTY\n" : node.faulty ? "■ faulty\n" : "";
    const figures = `δ ${outvoteNumber(node.delta)}   R ${outvoteNumber(node.rate)}`;
    return `${mark}${shorten(String(node.id), 24)}\n${shorten(String(node.kind), 24)}\n${figures}`;
  }

  /* Edges between known layers, as pairs of indices. */
  function indexed(map) {
    const place = new Map(map.nodes.map((node, i) => [node.id, i]));
    return map.edges
      .map(([from, to]) => [place.get(from), place.get(to)])
      .filter(([from, to]) => from !== undefined && to !== undefined && from !== to);
  }

  /* The first faulty layer: what the finding says, else what the two methods say. */
  function firstFaulty(finding) {
    const { map, isolated, introduction_rate: rate } = finding.localization;
    for (const name of [finding.layer, isolated?.first, rate?.first]) {
      const place = map.nodes.findIndex((node) => node.id === name);
      if (place >= 0) return place;
    }
    const faulty = map.nodes.findIndex((node) => node.faulty);
    return faulty >= 0 ? faulty : map.nodes.findIndex((node) => node.red);
  }

  /* From a layer back to an input, each step to the input with the largest δ (CRADLE, eq. 5). */
  function pathTo(last, nodes, edges) {
    const size = (i) => (nodes[i].delta === null ? Infinity : nodes[i].delta);
    const path = [];
    for (let now = last; now >= 0 && !path.includes(now); ) {
      path.unshift(now);
      const before = edges.filter(([, to]) => to === now).map(([from]) => from);
      now = before.length ? before.reduce((a, b) => (size(b) > size(a) ? b : a)) : -1;
    }
    return path;
  }

  /* Cytoscape wants a bend as a part of the way from centre to centre, and a distance aside. */
  function bendStyle(start, end, points) {
    const [dx, dy] = [end.x - start.x, end.y - start.y];
    const length = Math.hypot(dx, dy) || 1;
    const along = (p) => ((p.x - start.x) * dx + (p.y - start.y) * dy) / length ** 2;
    const aside = (p) => ((p.y - start.y) * dx - (p.x - start.x) * dy) / length;
    return { weights: points.map(along), distances: points.map(aside) };
  }

  /* What is drawn: layers, and boxes of folded ones; edges run between these. */
  function drawing(nodes, edges, boxes) {
    const place = new Array(nodes.length).fill(-1);
    const items = [];
    boxes.forEach((box) => box.forEach((i) => (place[i] = -2)));
    nodes.forEach((_, i) => place[i] === -1 && (place[i] = items.push({ index: i }) - 1));
    boxes.forEach((box) => {
      const at = items.push({ box }) - 1;
      for (const i of box) place[i] = at;
    });
    const seen = new Set();
    const lines = [];
    for (const [from, to] of edges) {
      const [a, b] = [place[from], place[to]];
      if (a === b || seen.has(`${a}-${b}`)) continue;
      seen.add(`${a}-${b}`);
      lines.push([a, b, from, to]);
    }
    return { items, lines };
  }

  function boxLabel(nodes, box) {
    const worst = box.reduce((most, i) => Math.max(most, nodes[i].delta ?? 0), 0);
    const ends = [box[0], box[box.length - 1]].map((i) => shorten(String(nodes[i].id), 14));
    return `${box.length} layers\n${ends.join(" … ")}\nδ up to ${outvoteNumber(worst)}; click to open`;
  }

  function elements(nodes, edges, { items, lines }, placed, first, path) {
    const onPath = new Set(path.slice(1).map((to, i) => `${path[i]}-${to}`));
    const targets = new Set(edges.map(([, to]) => to));
    const id = ({ index, box }) => (box ? `f${box[0]}` : `n${index}`);
    const drawn = items.map((item, at) => {
      const position = placed.positions[at];
      if (item.box) {
        const data = { id: id(item), folded: item.box[0], label: boxLabel(nodes, item.box) };
        return { group: "nodes", data, position, classes: ["folded"] };
      }
      const i = item.index;
      const node = nodes[i];
      const classes = [];
      if (node.red) classes.push("red");
      if (node.faulty) classes.push("faulty");
      if (i === first) classes.push("first");
      if (path.includes(i)) classes.push("path");
      if (!targets.has(i)) classes.push("input");
      const data = { id: `n${i}`, index: i, label: label(node, i === first) };
      return { group: "nodes", data, position, classes };
    });
    lines.forEach(([a, b, from, to], i) => {
      const data = { id: `e${i}`, source: id(items[a]), target: id(items[b]) };
      const classes = onPath.has(`${from}-${to}`) ? ["path"] : [];
      if (placed.bends[i].length) {
        const { positions } = placed;
        Object.assign(data, bendStyle(positions[a], positions[b], placed.bends[i]));
        classes.push("bent");
      }
      drawn.push({ group: "edges", data, classes });
    });
    return drawn;
  }

  function style() {
    const read = getComputedStyle(document.documentElement);
    const colour = (name) => read.getPropertyValue(`--${name}`).trim();
    const { width, height } = outvoteLayout.NODE;
    return [
      {
        selector: "node",
        style: {
          width, height, shape: "round-rectangle", label: "data(label)",
          "background-color": colour("card"), "border-width": 1.5, "border-color": colour("edge"),
          color: colour("text"), "font-size": 12, "font-family": "system-ui, sans-serif",
          "text-wrap": "wrap", "text-valign": "center", "text-halign": "center",
          "line-height": 1.25, "min-zoomed-font-size": 5,
        },
      },
      { selector: "node.folded", style: { "border-style": "dashed", color: colour("faint") } },
      { selector: "node.input", style: { shape: "cut-rectangle" } },
      { selector: "node.path", style: { "border-color": colour("accent"), "border-width": 2.5 } },
      {
        selector: "node.red",
        style: { "background-color": colour("red-fill"), "border-color": colour("bad") },
      },
      {
        selector: "node.faulty",
        style: { "border-width": 6, "border-color": colour("bad"), "border-style": "double",
          height: height + 14 },
      },
      {
        selector: "node.first",
        style: { "border-width": 6, "border-style": "solid", "font-weight": "bold",
          height: height + 14 },
      },
      {
        selector: "edge",
        style: {
          width: 1.5, "line-color": colour("edge"), "target-arrow-color": colour("edge"),
          "target-arrow-shape": "triangle", "arrow-scale": 0.9, "curve-style": "straight",
        },
      },
      {
        selector: "edge.bent",
        style: {
          "curve-style": "unbundled-bezier", "edge-distances": "node-position",
          "control-point-weights": "data(weights)", "control-point-distances": "data(distances)",
        },
      },
      {
        selector: "edge.path",
        style: { width: 5, "line-color": colour("accent"), "target-arrow-color": colour("accent"),
          "z-index": 2 },
      },
      { selector: ".dim", style: { opacity: 0.25 } },
      {
        selector: "node.hit, node.chosen",
        style: { "underlay-color": colour("accent"), "underlay-opacity": 0.35,
          "underlay-padding": 7 },
      },
      {
        selector: "node.chosen",
        style: { opacity: 1, "underlay-opacity": 0.75 },
      },
    ];
  }

  function create(container, finding) {
    const { nodes } = finding.localization.map;
    const edges = indexed(finding.localization.map);
    const first = firstFaulty(finding);
    const path = pathTo(first, nodes, edges);
    const fold = outvoteFold(nodes, edges, first);
    const began = performance.now();
    let layoutName = "";
    function drawn() {
      const shown = drawing(nodes, edges, fold.boxes());
      const placed = outvoteLayout(shown.items.length, shown.lines);
      layoutName = placed.name;
      return elements(nodes, edges, shown, placed, first, path);
    }
    const whole = drawn();
    const layoutMs = performance.now() - began;
    const many = nodes.length > MANY;
    const cy = cytoscape({
      container, style: style(), elements: whole,
      layout: { name: "preset", fit: false }, minZoom: 0.01, maxZoom: 2.5,
      hideEdgesOnViewport: many, textureOnViewport: many,
      autoungrabify: true, boxSelectionEnabled: false, userZoomingEnabled: false,
    });
    const byIndex = (i) => cy.getElementById(`n${i}`);

    /* Draws the layers of a box in its place. */
    function unfold(i) {
      if (!fold.open(i)) return;
      cy.batch(() => {
        cy.elements().remove();
        cy.add(drawn());
      });
    }

    function focus(i, zoom = Math.max(cy.zoom(), 1)) {
      unfold(i);
      const node = byIndex(i);
      cy.nodes(".chosen").removeClass("chosen");
      if (node.empty()) return;
      node.addClass("chosen");
      cy.zoom(zoom);
      cy.center(node);
    }

    function fit() {
      cy.fit(undefined, 24);
      if (cy.zoom() > 1) {
        cy.zoom(1);
        cy.center();
      }
    }

    /* Small graphs open whole; those that would be unreadable open at the first faulty layer. */
    function open() {
      fit();
      if (cy.zoom() < READABLE) focus(Math.max(first, 0), 0.95);
      else if (first >= 0) byIndex(first).addClass("chosen");
    }

    /* Marks the layers whose name or kind holds the text and returns their indices. */
    function find(text) {
      const wanted = text.trim().toLowerCase();
      const holds = (value) => String(value).toLowerCase().includes(wanted);
      const hits = [];
      if (wanted) nodes.forEach((n, i) => (holds(n.id) || holds(n.kind)) && hits.push(i));
      cy.batch(() => {
        cy.elements().removeClass("hit").toggleClass("dim", Boolean(wanted));
        for (const i of hits) byIndex(i).removeClass("dim").addClass("hit");
      });
      return hits;
    }

    const recolour = () => cy.style(style());
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", recolour);
    const destroy = () => {
      dark.removeEventListener("change", recolour);
      cy.destroy();
    };
    open();
    return { cy, nodes, edges, first, path, layout: layoutName, layoutMs, find, focus, fit, destroy };
  }

  return create;
})();
