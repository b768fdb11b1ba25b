// Pickers that search as one types. Without this script the button "Find" does the same.
(() => {
  const form = document.querySelector("form.wm-ask");
  const box = document.getElementById("wm-find");
  if (!form || !box) return;
  let waiting = null;
  let asked = 0;

  function option(field, one) {
    const item = document.createElement("li");
    item.dataset.found = "yes";
    const label = document.createElement("label");
    const input = document.createElement("input");
    input.type = field === "participant" ? "radio" : "checkbox";
    input.name = field;
    input.value = one.id;
    const name = document.createElement("span");
    name.textContent = one.name;
    label.append(input, " ", name);
    item.append(label);
    if (field === "ceremonies") {
      const out = document.createElement("label");
      out.className = "wm-out";
      const leave = document.createElement("input");
      leave.type = "checkbox";
      leave.name = "exclude_ceremonies";
      leave.value = one.id;
      out.append(leave, " leave out");
      item.append(out);
    }
    return item;
  }

  function show(found) {
    for (const picker of form.querySelectorAll(".wm-picker")) {
      const list = picker.querySelector("ul");
      for (const item of list.querySelectorAll("li")) {
        if (!item.querySelector("input:checked")) item.remove();
      }
      const there = new Set([...list.querySelectorAll("input")].map((input) => input.value));
      for (const one of found[picker.dataset.field] || []) {
        if (!there.has(one.id)) list.append(option(picker.dataset.field, one));
      }
      picker.hidden = !list.children.length;
    }
  }

  async function look() {
    const mine = ++asked;
    const address = `${form.dataset.pick}?find=${encodeURIComponent(box.value.trim())}`;
    try {
      const response = await fetch(address, { headers: { accept: "application/json" } });
      if (response.ok && mine === asked) show(await response.json());
    } catch {
      // The button still works.
    }
  }

  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(look, 200);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(waiting);
      look();
    }
  });
})();
