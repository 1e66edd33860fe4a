// Shows the claims with the verdicts and ranks that are ticked; what is ticked stands behind the # of the address.
(() => {
  "use strict";
  const form = document.getElementById("filter");
  const output = form.querySelector("output");
  const groups = [...form.querySelectorAll("[data-filter]")].map((group) => ({
    name: group.dataset.filter,
    boxes: [...group.querySelectorAll("input")],
  }));
  const claims = [...document.querySelectorAll(".claim")];
  const sections = [...document.querySelectorAll(".experiment, .study")];

  const ticked = ({ boxes }) => boxes.filter((box) => box.checked).map((box) => box.value);

  // The address holds either the place of a plain link, or what is ticked and perhaps a place as `at`.
  function parsed() {
    const text = location.hash.slice(1);
    return new URLSearchParams(text.includes("=") ? text : { at: text });
  }

  function read() {
    const state = parsed();
    for (const { name, boxes } of groups) {
      const wanted = (state.get(name) || "").split(",");
      for (const box of boxes) box.checked = wanted.includes(box.value);
    }
    show();
    const place = document.getElementById(state.get("at") || "");
    if (place) place.scrollIntoView();
  }

  function address(at) {
    const parts = groups.map((group) => [group.name, ticked(group)]).filter(([, values]) => values.length);
    const texts = parts.map(([name, values]) => `${name}=${values.join(",")}`);
    if (at) texts.push(texts.length ? `at=${at}` : at);
    return `#${texts.join("&")}`;
  }

  function show() {
    const wanted = groups.map((group) => [group.name, ticked(group)]).filter(([, values]) => values.length);
    let shown = 0;
    for (const claim of claims) {
      claim.hidden = !wanted.every(([name, values]) => values.includes(claim.dataset[name]));
      shown += !claim.hidden;
    }
    for (const section of sections) {
      section.hidden = wanted.length > 0 && !section.querySelector(".claim:not([hidden])");
      document.querySelector(`[data-of="${section.id}"]`).hidden = section.hidden;
    }
    document.getElementById("none").hidden = shown > 0 || wanted.length === 0;
    output.textContent = `${shown} of ${output.dataset.all} claims`;
  }

  form.addEventListener("change", () => {
    history.replaceState(null, "", address());
    show();
  });
  form.querySelector("button").addEventListener("click", () => {
    for (const { boxes } of groups) for (const box of boxes) box.checked = false;
    history.replaceState(null, "", address());
    show();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (!link || !wantedPlace(link)) return;
    event.preventDefault();
    history.pushState(null, "", address(link.hash.slice(1)));
    wantedPlace(link).scrollIntoView();
  });
  const wantedPlace = (link) => document.getElementById(link.hash.slice(1));
  addEventListener("hashchange", read);
  addEventListener("popstate", read);
  form.hidden = false;
  read();
})();
