"use strict";

/* Causes that do not hold all the words are hidden, in the table and below it. */
(() => {
  const box = document.getElementById("sift");
  const count = document.getElementById("sift-count");
  const cards = [...document.querySelectorAll("[data-cause]")];
  const rows = new Map(
    [...document.querySelectorAll("[data-row]")].map((row) => [row.dataset.row, row]),
  );
  const texts = cards.map((card) => card.textContent.toLowerCase());

  function sift() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let kept = 0;
    cards.forEach((card, i) => {
      const holds = words.every((word) => texts[i].includes(word));
      card.hidden = !holds;
      rows.get(card.dataset.cause).hidden = !holds;
      kept += holds;
    });
    count.textContent = words.length ? `${kept} of ${cards.length}` : "";
  }

  box.addEventListener("input", sift);
  sift(); // a browser that goes back has kept the words
})();
