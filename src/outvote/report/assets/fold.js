"use strict";

/*
 * Folds a map of thousands of layers: rows where nothing shows become one box each.
 *
 * outvoteFold(nodes, edges, first) -> {boxes, open}
 *   boxes()    what is folded now: of each box the indices of its nodes
 *   open(i)    unfolds the box that holds a node; false where none does
 *
 * Boxes are whole ranges of ranks, so that no edge can run backwards.
 */
const outvoteFold = (() => {
  const FROM = 1500; // as many layers are drawn as they are
  const AROUND = 12; // rows beside a layer that is told
  const ENDS = 4; // rows at the inputs and the outputs
  const TOLD = 20; // layers with the largest rates

  function interesting(nodes, first) {
    const red = nodes.map((node, i) => [node.rate ?? 0, i]).filter(([, i]) => nodes[i].red);
    red.sort(([a], [b]) => b - a);
    const faulty = nodes.map((_, i) => i).filter((i) => nodes[i].faulty);
    const told = [...faulty.slice(0, TOLD), ...red.slice(0, TOLD).map(([, i]) => i)];
    return first >= 0 ? [first, ...told] : told;
  }

  function create(nodes, edges, first) {
    if (nodes.length < FROM) return { boxes: () => [], open: () => false };
    const rank = outvoteLayout.ranks(nodes.length, edges);
    const last = rank.reduce((most, row) => Math.max(most, row), 0);
    const kept = new Set();
    const keep = (row, around) => {
      for (let near = row - around; near <= row + around; near++) kept.add(near);
    };
    keep(0, ENDS);
    keep(last, ENDS);
    for (const i of interesting(nodes, first)) keep(rank[i], AROUND);
    const rows = Array.from({ length: last + 1 }, () => []);
    rank.forEach((row, i) => rows[row].push(i));
    let folded = [];
    let members = [];
    rows.forEach((row, place) => {
      if (!kept.has(place)) members.push(...row);
      if (members.length && (kept.has(place) || place === last)) {
        folded.push(members);
        members = [];
      }
    });
    folded = folded.filter((box) => box.length > 1);
    return {
      boxes: () => folded,
      open(i) {
        const box = folded.find((one) => one.includes(i));
        folded = folded.filter((one) => one !== box);
        return Boolean(box);
      },
    };
  }

  return create;
})();
