"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const table = document.getElementById("table");
  if (!table) return;
  const casts = [...table.tBodies];
  const heads = [...table.tHead.rows[0].cells];
  const box = document.getElementById("filter");
  const losses = [...document.querySelectorAll("button.loss")];
  const count = document.getElementById("count");
  const texts = new Map(casts.map((cast) => [cast, cast.textContent.toLowerCase()]));

  const key = (cast, column) => {
    const cell = cast.rows[0].cells[column];
    return cell.dataset.key ?? cell.textContent;
  };
  const compared = new Intl.Collator("en", { numeric: true }).compare;

  function sort(head) {
    const column = heads.indexOf(head);
    const numeric = head.dataset.order === "number";
    const first = numeric ? "descending" : "ascending";
    const other = numeric ? "ascending" : "descending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    for (const one of heads) if (one.dataset.order) one.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const keys = new Map(casts.map((cast) => [cast, key(cast, column)]));
    casts.sort((a, b) => {
      const [x, y] = [keys.get(a), keys.get(b)];
      return sign * (numeric ? x - y : compared(x, y));
    });
    table.append(...casts);
  }

  function filter() {
    const wanted = box.value.trim().toLowerCase();
    const pressed = losses.filter((one) => one.getAttribute("aria-pressed") === "true");
    const kept = new Set(pressed.map((one) => one.dataset.loss));
    let shown = 0;
    for (const cast of casts) {
      const here = kept.has(cast.dataset.loss) && texts.get(cast).includes(wanted);
      cast.hidden = !here;
      shown += here;
    }
    count.textContent = `${shown} of ${casts.length} rows`;
  }

  function unfold(cast, open) {
    cast.rows[1].classList.toggle("open", open);
    cast.querySelector(".toggle").setAttribute("aria-expanded", String(open));
  }

  function arrive() {
    const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!place) return;
    if (texts.has(place)) {
      if (place.hidden) {
        box.value = "";
        for (const one of losses) one.setAttribute("aria-pressed", "true");
        filter();
      }
      unfold(place, true);
    }
    place.scrollIntoView({ block: "center" });
    place.focus({ preventScroll: true });
  }

  table.tHead.addEventListener("click", (event) => {
    const head = event.target.closest("th[data-order]");
    if (head) sort(head);
  });
  table.addEventListener("click", (event) => {
    const toggle = event.target.closest(".toggle");
    const row = event.target.closest("tr.cast");
    if (toggle) {
      unfold(toggle.closest("tbody"), toggle.getAttribute("aria-expanded") !== "true");
    } else if (row && !event.target.closest("a") && !String(getSelection())) {
      row.querySelector("a.where").click();
    }
  });
  box.addEventListener("input", filter);
  for (const one of losses) {
    one.addEventListener("click", () => {
      one.setAttribute("aria-pressed", String(one.getAttribute("aria-pressed") !== "true"));
      filter();
    });
  }
  addEventListener("hashchange", arrive);
  arrive();
})();
