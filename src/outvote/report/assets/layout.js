"use strict";

/*
 * Places the layers of a map from top to bottom.
 *
 * outvoteLayout(count, edges) -> {name, positions, bends}
 *   count      number of nodes; an edge is [from, to], both indices of nodes
 *   positions  one {x, y} for each node
 *   bends      for each edge a list of points between its ends; empty when it runs straight
 *
 * dagre draws small graphs best. Its time grows with the ranks that edges cross (over ten seconds
 * for 1,000 layers with 2,100 edges), so larger graphs are laid out here, in a few milliseconds.
 */
const outvoteLayout = (() => {
  const NODE = { width: 200, height: 58 };
  const GAP = { x: 36, y: 44 };
  const MOST_CROSSED_RANKS = 1000; // dagre takes about half a second for these

  /* The longest way from an input to each node. Nodes of a cycle, which no model has, stay at 0. */
  function ranks(count, edges) {
    const rank = new Array(count).fill(0);
    const waiting = new Array(count).fill(0);
    const next = Array.from({ length: count }, () => []);
    for (const [from, to] of edges) {
      next[from].push(to);
      waiting[to] += 1;
    }
    const ready = rank.map((_, node) => node).filter((node) => !waiting[node]);
    for (let done = 0; done < ready.length; done++) {
      const node = ready[done];
      for (const to of next[node]) {
        rank[to] = Math.max(rank[to], rank[node] + 1);
        if (--waiting[to] === 0) ready.push(to);
      }
    }
    return rank;
  }

  function withDagre(count, edges) {
    const graph = new dagre.graphlib.Graph({ multigraph: true });
    graph.setGraph({ rankdir: "TB", nodesep: GAP.x, ranksep: GAP.y, ranker: "tight-tree" });
    graph.setDefaultEdgeLabel(() => ({}));
    for (let node = 0; node < count; node++) graph.setNode(String(node), { ...NODE });
    edges.forEach(([from, to], i) => graph.setEdge(String(from), String(to), {}, String(i)));
    dagre.layout(graph);
    const positions = Array.from({ length: count }, (_, node) => {
      const { x, y } = graph.node(String(node));
      return { x, y };
    });
    const bends = edges.map(([from, to], i) => {
      const { points } = graph.edge(String(from), String(to), String(i));
      return straight(positions[from], positions[to], points) ? [] : points.slice(1, -1);
    });
    return { name: "dagre", positions, bends };
  }

  function straight(start, end, points) {
    const length = Math.hypot(end.x - start.x, end.y - start.y) || 1;
    return points.every(
      (p) =>
        Math.abs((end.x - start.x) * (start.y - p.y) - (start.x - p.x) * (end.y - start.y)) <
        2 * length,
    );
  }

  /* Rows by rank; within a row each node is drawn to the middle of its neighbours. */
  function layered(count, edges, rank) {
    const before = Array.from({ length: count }, () => []);
    const after = Array.from({ length: count }, () => []);
    for (const [from, to] of edges) {
      before[to].push(from);
      after[from].push(to);
    }
    const rows = [];
    for (let node = 0; node < count; node++) (rows[rank[node]] ??= []).push(node);
    const x = new Array(count).fill(0);
    rows.forEach((row) => settle(row, x, before));
    [...rows].reverse().forEach((row) => settle(row, x, after));
    rows.forEach((row) => settle(row, x, before));
    const positions = x.map((value, node) => ({
      x: value,
      y: rank[node] * (NODE.height + GAP.y),
    }));
    const taken = rows.map((row) => row.map((node) => x[node]));
    const bends = edges.map(([from, to]) =>
      bow(positions[from], positions[to], taken.slice(rank[from] + 1, rank[to])),
    );
    return { name: "layered", positions, bends };
  }

  function settle(row, x, neighbours) {
    const wish = new Map(
      row.map((node) => {
        const near = neighbours[node];
        const sum = near.reduce((total, other) => total + x[other], 0);
        return [node, near.length ? sum / near.length : x[node]];
      }),
    );
    row.sort((a, b) => wish.get(a) - wish.get(b));
    let left = -Infinity;
    let shift = 0;
    for (const node of row) {
      x[node] = Math.max(wish.get(node), left + NODE.width + GAP.x);
      shift += wish.get(node) - x[node];
      left = x[node];
    }
    for (const node of row) x[node] += shift / row.length;
  }

  /* An edge over several rows runs down a lane that no box between stands in. */
  function bow(start, end, between) {
    if (!between.length) return [];
    const x = lane(start.x, end.x, between);
    const [near, far] = [(NODE.height + GAP.y) / 2, NODE.height / 2 + GAP.y];
    const down = [start.y + near, start.y + far, end.y - far, end.y - near];
    return down.map((y) => ({ x, y }));
  }

  /* Below the one end or above the other if free, else beside both; longer edges swing wider. */
  function lane(start, end, between) {
    const clear = (x) =>
      between.every((row) => row.every((other) => Math.abs(other - x) > NODE.width / 2 + 8));
    for (const x of [start, end]) if (clear(x)) return x;
    const [left, right] = [Math.min(start, end), Math.max(start, end)];
    const least = NODE.width / 2 + 10 + 3 * Math.min(between.length, 40);
    for (let reach = least; reach < least + 20 * NODE.width; reach += GAP.x / 2) {
      if (clear(right + reach)) return right + reach;
      if (clear(left - reach)) return left - reach;
    }
    return right + least;
  }

  function layout(count, edges) {
    const rank = ranks(count, edges);
    const crossed = edges.reduce((sum, [from, to]) => sum + Math.max(1, rank[to] - rank[from]), 0);
    if (crossed <= MOST_CROSSED_RANKS) return withDagre(count, edges);
    return layered(count, edges, rank);
  }

  return Object.assign(layout, { NODE, ranks });
})();
