for (const table of document.querySelectorAll("main table")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, at) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.title = "sort by this column";
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = row => {
        const cell = row.cells[at];
        return cell.dataset.v === undefined ? cell.textContent.trim() : Number(cell.dataset.v);
      };
      const compare = (a, b) => {
        const x = value(a), y = value(b), numbers = typeof x === "number" && typeof y === "number";
        if (!numbers && typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
        return (numbers ? x - y : String(x).localeCompare(String(y))) * (up ? 1 : -1);
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
}
