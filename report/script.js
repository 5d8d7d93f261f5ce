// What a browser adds to the page: the opening's slider, contents that follow, a box that finds, a theme, buttons that
// copy and save, filters of long tables.
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
    document.querySelector("footer").append(group);
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
    const [about, description] = ["metadata", "desc"].map((tag) => document.createElementNS(SVG, tag));
    about.textContent = source;
    description.textContent = document.getElementById(svg.getAttribute("aria-describedby")).textContent;
    file.removeAttribute("aria-describedby");
    file.querySelector("title").after(description, about);
    return `<?xml version="1.0" encoding="utf-8"?>\n${new XMLSerializer().serializeToString(file)}`;
  }

  const address = (id) => `${location.href.split("#")[0]}#${id}`;

  // A text of the page that can be copied and saved: its kind and file name, and how to get it.
  function sourcesIn(part) {
    return [...part.querySelectorAll("[data-kind]")].map((element) => ({
      element,
      kind: element.dataset.kind,
      file: element.dataset.file,
      text: async () => element.href ? unpack(element.href.split(",")[1]) : element.textContent,
    }));
  }

  function offer(part, name, {id, svg, only}) {
    const tools = make("div", {class: "tools", role: "group", "aria-label": name});
    const button = (label, kind, act) => tools.append(
      make("button", {type: "button", onclick: () => act().catch(() => tell(words.failed))}, fill(label, {what: kind})),
    );
    const sources = sourcesIn(part).filter((source) => !only || source.element === only);
    if (id && !svg) button(words.copy, words.link, () => copy(address(id), {what: words.link, name}));
    for (const {kind, text} of sources) button(words.copy, kind, async () => copy(await text(), {what: kind, name}));
    if (svg) {
      const about = [address(id), document.querySelector("footer p").innerText, document.querySelector("[rel=license]").href];
      button(words.save, "SVG", () => save(standalone(svg, about.join("\n")), `${id}.svg`, "image/svg+xml", {what: "SVG", name}));
    }
    for (const {kind, file, text} of sources.filter((source) => source.file)) {
      button(words.save, kind, async () => save(await text(), file, "text/plain", {what: kind, name}));
    }
    return tools;
  }

  function offerSources() {
    for (const figure of document.querySelectorAll("figure[data-name]")) {
      const name = figure.dataset.name, svg = figure.querySelector("svg");
      const [data, download, cite] = figure.querySelectorAll(".under > details");
      data.append(offer(data, name, {}));
      download.append(offer(download, name, {id: figure.id, svg}));
      cite.append(offer(cite, name, {id: figure.id}));
    }
    for (const part of document.querySelectorAll("#check pre[data-kind]")) part.after(offer(part.parentElement, words.report, {only: part}));
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

  // ---- the opening: one query over the same keys, in a head of any width ----

  const round = (value, digits) => (value < 0.995 ? value.toFixed(2) : Number(value.toPrecision(digits)).toString());
  function spelled(value) {
    return value >= 0.995 && value < 10 ? value.toFixed(1) : round(value, 2);
  }

  function softmax(logits) {
    const most = Math.max(...logits), shares = logits.map((logit) => Math.exp(logit - most));
    const sum = shares.reduce((a, b) => a + b);
    return shares.map((share) => share / sum);
  }

  function bars(weights) {
    const svg = make("svg", {viewBox: "0 0 400 90", preserveAspectRatio: "none", "aria-hidden": "true"});
    const step = 400 / weights.length;
    weights.forEach((weight, i) => svg.append(make("rect", {
      x: (i + 0.1) * step, width: 0.8 * step, y: 88 * (1 - weight), height: Math.max(88 * weight, 1.2), fill: "currentColor",
    })));
    svg.append(make("path", {d: "M0 89H400", stroke: "currentColor", "stroke-width": "0.7"}));
    return svg;
  }

  function offerWidths(figure) {
    const data = JSON.parse(document.getElementById("one-query").textContent);
    const rows = ["none", "scaled"].map((rule) => {
      const drawn = make("div", {class: "drawn"}), said = make("div", {class: "said"});
      const head = make("p", {class: "rule"});
      head.innerHTML = data.words[rule];
      return {rule, drawn, said, part: make("div", {class: `row ${rule}`}, head, drawn, said)};
    });
    const slider = make("input", {type: "range", id: "width", min: 0, max: data.d_k.length - 1, value: data.d_k.indexOf(data.start), oninput: show});
    const output = make("output", {for: "width"});
    const keys = make("fieldset", {onchange: show}, make("legend", {}, data.words.keys));
    for (const n of Object.keys(data.logits)) {
      const radio = make("input", {type: "radio", name: "keys", value: n});
      radio.checked = n === Object.keys(data.logits)[0];
      keys.append(make("label", {}, radio, ` ${n}`));
    }
    const form = make("form", {class: "slide", onsubmit: (event) => event.preventDefault()},
      make("label", {for: "width"}, data.words.width), slider, output, keys);
    function show() {
      const d_k = data.d_k[slider.value], z = data.logits[form.elements.keys.value];
      slider.setAttribute("aria-valuetext", `d_k = ${d_k}`);
      output.replaceChildren(make("i", {}, "d"), make("sub", {}, "k"), ` = ${d_k}`);
      for (const {rule, drawn, said} of rows) {
        const logits = z.map((one) => one * (rule === "none" ? Math.sqrt(d_k) : 1));
        const weights = softmax(logits);
        const spread = Math.sqrt(logits.reduce((sum, one) => sum + one * one, 0) / logits.length);
        drawn.replaceChildren(bars(weights));
        const told = {
          spread: spelled(spread), weight: round(Math.max(...weights), 2), shared: spelled(1 / weights.reduce((sum, p) => sum + p * p, 0)),
        };
        said.replaceChildren(...Object.entries(told).map(([name, value]) => make("p", {}, make("b", {}, value), ` ${data.words[name]}`)));
      }
    }
    figure.querySelector(".plot").replaceChildren(...rows.map(({part}) => part));
    figure.querySelector(".plot").after(form);
    show();
  }

  // ---- contents that follow, and a box that finds ----

  const nav = () => document.querySelector("nav");

  function followContents() {
    const links = new Map([...nav().querySelectorAll("a[href]")].map((link) => [link.hash.slice(1), link]));
    const parts = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
    function mark() {
      const here = parts.filter((part) => part.getBoundingClientRect().top < innerHeight / 3).at(-1) ?? parts[0];
      for (const [id, link] of links) {
        if (id === here.id) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }
    let waiting = false;
    addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; mark(); });
    }, {passive: true});
    const drawer = document.getElementById("contents");
    drawer.addEventListener("click", (event) => { if (event.target.closest("a")) drawer.open = false; });
    drawer.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      drawer.open = false;
      drawer.querySelector("summary").focus();
    });
    mark();
  }

  // What can be found: headings, questions, captions, claims, rows of tables, each with the id nearest above it.
  const FOUND = [
    "h2, h3, summary",
    "figcaption, caption, .finding, .claims tr[id], .numbers tbody tr, .said tbody tr, .numbers-quoted tr[id]",
    "p, li, .practice tbody tr",
  ];
  const MOST = 12;
  const plain = (text) => text.normalize("NFKC").toLowerCase().replaceAll("_", "").replace(/\s+/g, " ").trim();

  // What is asked, in terms: phrases that mean the same are one, Chinese goes in pairs of signs, words that say little are left out.
  function termsOf(asked) {
    const terms = [], runs = (text) => text.match(/\p{Script=Han}+|[^\p{Script=Han}\s]+/gu) ?? [];
    let rest = ` ${asked} `;
    for (const group of words.alike.split(/[;；]/).map((one) => one.split(/[,，]/).map(plain))) {
      const phrase = group.find((one) => rest.includes(one));
      if (phrase) terms.push(group);
      if (phrase) rest = rest.replaceAll(phrase, " ");
    }
    for (const word of plain(words.little).split(" ")) rest = rest.replaceAll(/\p{Script=Han}/u.test(word) ? word : ` ${word} `, " ");
    for (const run of runs(rest)) {
      const pairs = /\p{Script=Han}{3}/u.test(run) ? [...run].slice(1).map((sign, i) => [...run][i] + sign) : [run];
      terms.push(...pairs.map((pair) => [pair]));
    }
    return terms.length ? terms : runs(asked).map((run) => [run]);
  }

  function offerFind() {
    // Captions come after headings, running text after both.
    const places = FOUND.flatMap((kind) => [...document.querySelectorAll(`main :is(${kind})`)]).filter((part) => !part.closest(".under") && part.closest("[id]"));
    const texts = places.map((part) => part.textContent.replace(/\s+/g, " ").trim()), sought = texts.map(plain);
    const list = make("ul", {}), said = make("p", {role: "status"});
    const box = make("input", {type: "search", id: "find", placeholder: words.find, oninput: show});
    const form = make("form", {class: "tools find", role: "search", onsubmit: (event) => {
      event.preventDefault();
      list.querySelector("a")?.click();
    }}, make("label", {for: "find", class: "of"}, words.find), box, said, list);
    function show() {
      const asked = plain(box.value), terms = asked ? termsOf(asked) : [];
      const held = sought.map((text) => terms.filter((group) => group.some((one) => text.includes(one))).length + text.includes(asked));
      const hits = [...held.keys()].filter((i) => asked && 2 * held[i] >= Math.max(terms.length, 1)).sort((a, b) => held[b] - held[a]);
      list.replaceChildren(...hits.slice(0, MOST).map((i) => {
        const id = (places[i].id ? places[i] : places[i].closest("[id]")).id;
        const text = texts[i].replace(/ ?#$/, "");
        return make("li", {}, make("a", {href: `#${id}`, onclick: () => reveal(places[i])}, text.length > 80 ? `${text.slice(0, 80)}…` : text));
      }));
      said.textContent = asked && !hits.length ? words.nothing : "";
    }
    document.getElementById("contents").querySelector("summary").after(form);
  }

  function reveal(part) {
    for (let fold = part.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  }

  // ---- folds: all open or all closed, for reading and for print ----

  function offerFolds() {
    const folds = () => [...document.querySelectorAll("main details:not(.under details)")];
    const button = make("button", {type: "button", onclick: () => {
      const open = button.textContent === words.open;
      folds().forEach((fold) => { fold.open = open; });
      button.textContent = open ? words.close : words.open;
    }}, words.open);
    document.querySelector("#atlas h2").after(make("div", {class: "tools"}, button));
  }

  // A number that is quoted is copied by a click, with its full spelling.
  function offerFacts() {
    for (const fact of document.querySelectorAll("a.fact")) {
      const macro = `\\sqrtdk${fact.hash.slice("#number-".length)}`;
      fact.addEventListener("click", (event) => {
        event.preventDefault();
        fact.focus();
        copy(macro, {what: macro, name: fact.dataset.full});
      });
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.body.append(status);
    offerFind();
    followContents();
    offerThemes();
    offerFolds();
    offerSources();
    offerFacts();
    document.querySelectorAll("table[data-filter]").forEach(offerFilter);
    const hero = document.getElementById("fig-hero");
    if (hero && document.getElementById("one-query")) offerWidths(hero);
  });
})();
