// What a browser adds to the page: a theme, buttons that copy and save, filters of long tables, the explore panel.
// All of it is made here: without scripts no control is shown, and nothing of the text is missing.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const words = JSON.parse(document.getElementById("words").textContent);
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);

  function make(tag, attributes = {}, ...children) {
    const drawn = ["svg", "rect", "path", "text", "title"].includes(tag);
    const element = drawn ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  // ---- theme: kept where the browser lets a file keep something, else as long as the page is open ----

  const THEMES = ["auto", "light", "dark"];
  const KEY = "sqrtdk-theme";
  function kept() {
    try { return localStorage.getItem(KEY); } catch { return null; }
  }
  function keep(theme) {
    try { localStorage.setItem(KEY, theme); } catch { /* not allowed: then it is not kept */ }
  }
  function wear(theme) {
    document.documentElement.dataset.theme = THEMES.includes(theme) ? theme : "auto";
  }
  wear(kept());

  function offerThemes() {
    const buttons = THEMES.map((theme) => make("button", {type: "button", onclick: () => choose(theme)}, words[theme]));
    function choose(theme) {
      wear(theme);
      keep(theme);
      show();
    }
    function show() {
      const worn = document.documentElement.dataset.theme;
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(THEMES[i] === worn)));
    }
    const group = make("div", {class: "tools theme", role: "group", "aria-label": words.theme});
    group.append(make("span", {}, words.theme), ...buttons);
    document.querySelector("header").append(group);
    show();
  }

  // ---- copying and saving ----

  const status = make("p", {role: "status", id: "status"});
  let fading = 0;
  function tell(text) {
    status.textContent = text;
    clearTimeout(fading);
    fading = setTimeout(() => { status.textContent = ""; }, 4000);
  }

  async function copy(text, what) {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Some browsers give files no clipboard, but copy what is selected.
      const before = document.activeElement;
      const area = make("textarea", {class: "aside", "aria-hidden": "true"});
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
      before?.focus();
    }
    tell(done ? fill(words.copied, what) : words.failed);
  }

  async function save(text, file, type, what) {
    const url = URL.createObjectURL(new Blob([text], {type}));
    make("a", {href: url, download: file}).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
    tell(fill(words.saved, what));
  }

  async function unpack(base64) {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  // An SVG file of its own, with the looks that it has on the page and the ink of a light one.
  function standalone(svg, source) {
    const file = svg.cloneNode(true);
    const {width, height} = svg.viewBox.baseVal;
    for (const [name, value] of Object.entries({width: `${width}pt`, height: `${height}pt`, color: "#1a1a1a"})) {
      file.setAttribute(name, value);
    }
    const used = new Set([...file.querySelectorAll("[class]"), file].map((element) => `.${element.getAttribute("class")}{`));
    const rules = document.getElementById("figure-styles").textContent.split("\n");
    const style = document.createElementNS(SVG, "style");
    style.textContent = rules.filter((rule) => !/^\.s\d/.test(rule) || used.has(rule.slice(0, rule.indexOf("{") + 1))).join("\n");
    const [about, description] = ["metadata", "desc"].map((tag) => document.createElementNS(SVG, tag));
    about.textContent = source;
    description.textContent = document.getElementById(svg.getAttribute("aria-describedby")).textContent;
    file.removeAttribute("aria-describedby");
    file.querySelector("title").after(description, about, style);
    return `<?xml version="1.0" encoding="utf-8"?>\n${new XMLSerializer().serializeToString(file)}`;
  }

  const address = (id) => `${location.href.split("#")[0]}#${id}`;

  // A text of the page that can be copied and saved: its kind and file name, and how to get it.
  function sourcesIn(part) {
    return [...part.querySelectorAll("[data-kind]")].map((element) => ({
      kind: element.dataset.kind,
      file: element.dataset.file,
      text: async () => element.href ? unpack(element.href.split(",")[1]) : element.textContent,
    }));
  }

  function offer(part, name, {id, svg}) {
    const tools = make("div", {class: "tools", role: "group", "aria-label": name});
    const button = (label, kind, act) => tools.append(
      make("button", {type: "button", onclick: () => act().catch(() => tell(words.failed))}, fill(label, {what: kind})),
    );
    const sources = sourcesIn(part);
    if (id) button(words.copy, words.link, () => copy(address(id), {what: words.link, name}));
    for (const {kind, text} of sources) button(words.copy, kind, async () => copy(await text(), {what: kind, name}));
    if (svg) {
      const about = [address(id), document.querySelector("footer").innerText, document.querySelector("[rel=license]").href];
      button(words.save, "SVG", () => save(standalone(svg, about.join("\n")), `${id}.svg`, "image/svg+xml", {what: "SVG", name}));
    }
    for (const {kind, file, text} of sources) {
      button(words.save, kind, async () => save(await text(), file, "text/plain", {what: kind, name}));
    }
    return tools;
  }

  function offerSources() {
    for (const article of document.querySelectorAll("article[data-name]")) {
      const what = {id: article.id, svg: article.querySelector("figure svg")};
      article.querySelector("figure").after(offer(article, article.dataset.name, what));
    }
    const citing = document.getElementById("citing");
    citing.querySelector("pre").after(offer(citing, words.report, {}));
  }

  // ---- filters: a text box, and a choice for each column that the table names ----

  function offerFilter(table, number) {
    const rows = [...table.tBodies].flatMap((part) => [...part.rows]).filter((row) => row.cells.length > 1);
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const heads = [...table.tHead.rows[0].cells];
    const shown = make("output", {});
    const box = make("input", {type: "search", id: `filter-${number}`, oninput: apply});
    const form = make("form", {class: "tools filter", role: "search", "aria-label": `${words.filter}: ${nameOf(table)}`});
    form.append(make("label", {for: box.id}, words.filter), box);
    const choices = table.dataset.filter.split(" ").filter(Boolean).map((column) => {
      const place = heads.findIndex((head) => head.dataset.column === column);
      const value = (row) => row.dataset[column] ?? row.cells[place].textContent;
      const said = (row) => (row.querySelector(`.${column}`) ?? row.cells[place])?.textContent.trim();
      const label = new Map(rows.map((row) => [value(row), said(row) || value(row)]));
      const select = make("select", {id: `filter-${number}-${column}`, onchange: apply}, make("option", {value: ""}, words.all));
      for (const [key, text] of label) select.append(make("option", {value: key}, text));
      form.append(make("label", {for: select.id}, heads[place].textContent.trim()), select);
      return {select, value};
    });
    form.append(shown);
    form.addEventListener("submit", (event) => event.preventDefault());
    function apply() {
      const asked = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      rows.forEach((row, i) => {
        const chosen = choices.every(({select, value}) => !select.value || select.value === value(row));
        row.hidden = !(chosen && asked.every((word) => texts[i].includes(word)));
      });
      shown.textContent = fill(words.rows, {shown: rows.filter((row) => !row.hidden).length, count: rows.length});
    }
    apply();
    table.closest(".scroll").before(form);
  }

  const nameOf = (table) => table.caption?.querySelector("strong")?.textContent ?? "";

  // ---- explore: a row of weights as bars, and its measures ----

  const CHART = {width: 400, height: 180, left: 40, right: 4, top: 8, bottom: 18};

  // The round number next above: the axis fits weights of any size.
  function roundUp(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 4, 10].find((step) => step * power >= value) * power;
  }

  function chart(weights, low, high, count, n_keys) {
    const {width, height, left, right, top, bottom} = CHART;
    const most = roundUp(Math.min(1, Math.max(...high, ...weights)));
    const step = (width - left - right) / count;
    const y = (value) => top + (1 - value / most) * (height - top - bottom);
    const svg = make("svg", {viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", class: "bars"});
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      svg.append(make("path", {class: "grid", d: `M${left} ${y(share * most)}H${width - right}`}));
      svg.append(make("text", {class: "scale", x: left - 5, y: y(share * most) + 3}, String(Number((share * most).toPrecision(3)))));
    }
    for (let rank = 1; rank <= count; rank++) {
      const [mean, from, to] = [weights, low, high].map((values) => values[rank - 1] ?? 0);
      const x = left + (rank - 1) * step;
      const tip = make("title", {}, `${rank}: ${mean} (${from} – ${to})`);
      svg.append(make("rect", {class: "bar", x: x + 0.15 * step, width: 0.7 * step, y: y(mean), height: y(0) - y(mean)}, tip));
      svg.append(make("path", {class: "whisker", d: `M${x + step / 2} ${y(from)}V${y(to)}`}));
      svg.append(make("text", {class: "rank", x: x + step / 2, y: height - 5}, String(rank)));
    }
    svg.append(make("path", {class: "even", d: `M${left} ${y(1 / n_keys)}H${width - right}`}));
    return svg;
  }

  async function offerExploring(panel) {
    const data = JSON.parse(await unpack(document.getElementById("explore-data").textContent));
    const form = panel.querySelector("form");
    const width = document.getElementById("explore-d_k");
    function show() {
      const [i, j, k] = [Number(width.value), Number(form.elements.n_keys.value), Number(form.elements.scaling.value)];
      const cell = (i * data.n_keys.length + j) * data.scalings.length + k;
      const [d_k, n_keys] = [data.d_k[i], data.n_keys[j]];
      width.setAttribute("aria-valuetext", String(d_k));
      panel.querySelector("output").textContent = d_k;
      const parts = [data.weights, data.low, data.high].map((all) => all[cell]);
      document.getElementById("explore-chart").replaceChildren(chart(...parts, Math.min(n_keys, data.ranks), n_keys));
      const said = {d_k, n_keys, scaling: data.scalings[k], largest: data.largest[cell], rest: data.rest[cell], ranks: data.ranks};
      document.getElementById("explore-shown").textContent = fill(data.rest[cell] ? data.words.shown : data.words.shown_all, said);
      panel.querySelectorAll("[data-measure]").forEach((place, m) => { place.textContent = data.measures[cell][m] || "–"; });
    }
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    show();
    panel.hidden = false;
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.body.append(status);
    offerThemes();
    offerSources();
    document.querySelectorAll("table[data-filter]").forEach(offerFilter);
    const panel = document.getElementById("explore-panel");
    // A browser that cannot unpack the numbers keeps the figure below.
    if (panel) offerExploring(panel).catch(() => {});
  });
})();
