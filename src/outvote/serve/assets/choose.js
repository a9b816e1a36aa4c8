"use strict";

/* Two runs to compare: once both are chosen, the page shows them. */
document.getElementById("compare").addEventListener("change", ({ currentTarget }) => {
  const fields = new FormData(currentTarget);
  if (fields.get("a") && fields.get("b")) {
    location.href = `${currentTarget.dataset.goes}?${new URLSearchParams(fields)}`;
  }
});
