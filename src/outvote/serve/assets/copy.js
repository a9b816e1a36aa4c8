"use strict";

/* Buttons with data-copy put the text of the element of that id on the clipboard. */
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(source); // a browser that forbids it: Ctrl-C is one key away
    button.textContent = "Press Ctrl-C";
  }
  setTimeout(() => (button.textContent = before), 1500);
});
