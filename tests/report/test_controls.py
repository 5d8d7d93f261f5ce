"""What the script adds: copying, saving, filters, theme, slider, contents and finding, by mouse and by keyboard."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import example
import pytest

from sqrtdk.claims.catalogue import CLAIMS

pytestmark = pytest.mark.browser

CLIPBOARD = ["clipboard-read", "clipboard-write"]
FIGURE = "#fig-variance-law"


@pytest.fixture
def page(visit, report):
    """The page with a clipboard."""
    opened = visit(report, permissions=CLIPBOARD)
    yield opened.page
    assert opened.messages == []
    assert opened.requests[:1] == [opened.url]
    assert all(url.startswith("blob:") for url in opened.requests[1:])


def files(report: Path, name: str) -> str:
    return (report.parent / "figures" / name).read_text(encoding="utf-8")


def unfold(page, part: str) -> None:
    """Open the folds of a part, and those around it."""
    page.evaluate(
        """part => {
        const found = document.querySelector(part);
        for (let fold = found.closest('details'); fold; fold = fold.parentElement.closest('details')) fold.open = true;
        found.querySelectorAll('details').forEach(fold => { fold.open = true; });
    }""",
        part,
    )


def copied(page, label: str, part: str = FIGURE) -> str:
    """Press a button and return what is in the clipboard once the page says so."""
    page.evaluate("navigator.clipboard.writeText('nothing')")
    unfold(page, part)
    page.locator(part).get_by_role("button", name=label, exact=True).click()
    page.locator("#status:not(:empty)").wait_for()
    return page.evaluate("navigator.clipboard.readText()")


def saved(page, label: str, part: str = FIGURE) -> tuple[str, str]:
    """Press a button and return name and text of the file that it saves."""
    unfold(page, part)
    with page.expect_download() as download:
        page.locator(part).get_by_role("button", name=label, exact=True).click()
    return download.value.suggested_filename, Path(download.value.path()).read_text(encoding="utf-8")


@pytest.mark.parametrize(("kind", "suffix"), [("BibTeX", "bib"), ("LaTeX", "tex"), ("CSV", "csv")])
def test_a_figures_sources_are_copied_and_saved_as_they_are(page, report, kind, suffix):
    name = f"fig-variance-law.{suffix}"
    text = files(report, name)
    assert len(text) > 10
    assert copied(page, f"Copy {kind}").rstrip("\n") == text.rstrip("\n")
    assert saved(page, f"Save {kind}") == (name, text)


def test_a_figures_link_is_its_permalink(page):
    assert copied(page, "Copy link") == page.evaluate("location.href") + FIGURE
    assert page.locator("#status").inner_text() == "Copied: link of Figure 2"


def test_the_reports_entry_is_copied(page):
    assert copied(page, "Copy BibTeX", "#citing") == page.locator("#citing pre").first.inner_text()


def test_copying_works_where_there_is_no_clipboard(page):
    # What is selected can be copied even where a page may not write to the clipboard.
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')); }")
    unfold(page, FIGURE)
    page.locator(FIGURE).get_by_role("button", name="Copy link").click()
    page.locator("#status:not(:empty)").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").endswith(FIGURE)
    page.evaluate("() => { document.execCommand = () => false; }")
    page.locator(FIGURE).get_by_role("button", name="Copy BibTeX").click()
    page.get_by_text("The browser does not allow it").wait_for()


def test_a_saved_figure_stands_alone(page, visit, tmp_path):
    name, text = saved(page, "Save SVG")
    assert name == "fig-variance-law.svg"
    root = ET.fromstring(text.encode())
    parts = {child.tag.rpartition("}")[2]: child.text for child in root}
    assert parts["title"]
    assert parts["desc"].startswith("Log-log plot")
    assert "creativecommons.org/licenses/by/4.0" in parts["metadata"]
    assert page.url + FIGURE in parts["metadata"]
    assert "style" not in text
    (tmp_path / name).write_text(text, encoding="utf-8")
    alone = visit(tmp_path / name)
    assert alone.messages == []
    ink, box = alone.page.evaluate("""() => [getComputedStyle(document.querySelector('text')).fill,
        document.documentElement.getBoundingClientRect().width]""")
    assert ink == "rgb(26, 26, 26)"
    assert box > 400


def test_filter_shows_the_rows_that_hold_every_word(page):
    unfold(page, "#atlas-factor")
    table = page.locator("#tab-scale-rules")
    rows = table.locator("tbody tr")
    search = table.get_by_role("searchbox", name="Filter")
    assert search.is_visible()
    search.fill("SQRT d_k")
    shown = [row.inner_text() for row in rows.all() if row.is_visible()]
    assert 0 < len(shown) < rows.count()
    assert all("sqrt" in text.lower() for text in shown)
    assert table.locator("output").inner_text() == f"{len(shown)} of {rows.count()} rows"
    page.emulate_media(media="print")
    assert all(row.is_visible() for row in rows.all())
    assert not search.is_visible()


LEDGER = """<div class="table" id="tab-claims"><div class="scroll"><table data-filter="verdict source">
<caption><strong>Table 0.</strong></caption>
<thead><tr><th>Claim</th><th data-column="source">Source</th><th data-column="verdict">Verdict</th></tr></thead>
<tbody>
<tr data-verdict="holds" data-source="one"><th>C1</th><td>First</td><td>it holds</td></tr>
<tr data-verdict="fails" data-source="one"><th>C2</th><td>First</td><td>it fails</td></tr>
<tr data-verdict="holds" data-source="two"><th>C3 &lt;b&gt;</th><td>Second</td><td>it holds</td></tr>
</tbody></table></div></div>"""


def test_a_table_may_name_columns_to_choose_from(visit, report, tmp_path):
    text = (
        report.read_text(encoding="utf-8")
        .replace('<div class="table', LEDGER + '<div class="table', 1)
        .replace('id="tab-claims"', 'id="tab-other"')
        .replace('id="tab-other"', 'id="tab-claims"', 1)
    )
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    page = visit(tmp_path / "report.html").page
    unfold(page, "#tab-claims")
    table = page.locator("#tab-claims")
    verdict, source = (table.get_by_label(name, exact=True) for name in ("Verdict", "Source"))
    assert verdict.locator("option").all_inner_texts() == ["all", "it holds", "it fails"]

    def shown():
        return [row.locator("th").inner_text() for row in table.locator("tbody tr").all() if row.is_visible()]

    verdict.select_option(label="it holds")
    assert shown() == ["C1", "C3 <b>"]
    source.select_option(label="Second")
    assert shown() == ["C3 <b>"]
    source.select_option(label="First")
    table.get_by_role("searchbox").fill("qxzzy")
    assert shown() == []
    assert table.locator("output").inner_text() == "0 of 3 rows"


def test_claims_are_chosen_by_verdict_and_groups_without_one_go(page):
    unfold(page, "#claims")
    table = page.locator("#tab-claims")
    rows = table.locator("tr[id]")
    verdict = table.get_by_label("Verdict and evidence", exact=True)
    assert "✗ fails" in verdict.locator("option").all_inner_texts()
    verdict.select_option("opinion")
    shown = [row.get_attribute("id") for row in rows.all() if row.is_visible()]
    assert sorted(shown) == sorted(f"claim-{name}" for name, claim in CLAIMS.items() if claim.opinion)
    # A group's head is there as long as one of its rows is.
    heads = table.evaluate("""table => [...table.querySelectorAll('tbody .group')].map(head => {
        const rows = [];
        for (let row = head.nextElementSibling; row && !row.classList.contains('group'); row = row.nextElementSibling)
            rows.push(row);
        return [head, rows.some(row => row.checkVisibility())].map(one => one === head ? head.checkVisibility() : one);
    })""")
    assert len(heads) > 2
    assert {True, False} == {some for _, some in heads}
    assert [visible for visible, _ in heads] == [some for _, some in heads]
    assert table.locator("output").inner_text() == f"{len(shown)} of {len(CLAIMS)} rows"
    page.emulate_media(media="print")
    assert all(row.is_visible() for row in table.locator("tbody tr").all())


@pytest.mark.parametrize(("system", "chosen"), [("light", "dark"), ("dark", "light")])
def test_theme_is_the_systems_until_another_is_chosen_and_is_kept(visit, report, system, chosen):
    page = visit(report, color_scheme=system).page

    def ground() -> str:
        (red, *_) = map(int, page.evaluate("getComputedStyle(document.body).backgroundColor")[4:-1].split(","))
        return "light" if red > 127 else "dark"

    group = page.get_by_role("group", name="Colours")
    assert ground() == system
    group.get_by_role("button", name=chosen).press("Enter")
    assert ground() == chosen
    assert group.get_by_role("button", pressed=True).inner_text() == chosen
    page.reload()
    assert ground() == chosen
    group.get_by_role("button", name="as the system").click()
    assert ground() == system


def test_page_works_where_nothing_may_be_kept(visit, report):
    opened = visit(report)
    opened.page.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new Error('no'); }})")
    opened.page.reload()
    opened.page.get_by_role("button", name="dark").click()
    assert opened.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert opened.messages == []


@pytest.fixture
def hero(page):
    return page.locator("#fig-hero")


def heights(hero) -> list[list[float]]:
    """Return the weights that the bars of each row show."""
    return hero.evaluate("""figure => [...figure.querySelectorAll('.drawn svg')].map(
        svg => [...svg.querySelectorAll('rect')].map(bar => Number(bar.getAttribute('height')) / 88))""")


@pytest.mark.parametrize(("d_k", "n_keys"), [(64, 16), (1, 16), (4096, 64), (16, 64)])
def test_the_slider_shows_what_the_results_hold(page, hero, d_k, n_keys):
    table = example.frames()["one_query"]
    widths = sorted(table["d_k"].unique())
    slider = hero.get_by_role("slider", name="Width of the head")
    slider.fill(str(widths.index(d_k)))
    hero.get_by_role("radio", name=str(n_keys), exact=True).check()
    assert slider.get_attribute("aria-valuetext") == f"d_k = {d_k}"
    assert hero.locator("output").inner_text() == f"dk = {d_k}"
    for rule, drawn, said in zip(
        ("none", "1/sqrt(d_k)"), heights(hero), hero.locator(".said").all_inner_texts(), strict=True
    ):
        rows = table[(table["d_k"] == d_k) & (table["n_keys"] == n_keys) & (table["scaling"] == rule)].sort_values(
            "key"
        )
        assert drawn == pytest.approx(rows["weight"].clip(lower=1.2 / 88).tolist(), abs=2e-3)
        first = rows.iloc[0]
        spread, weight, keys = map(float, re.findall(r"[\d.]+", said))
        assert spread == pytest.approx(first["logit_std"], rel=0.06)
        assert weight == pytest.approx(first["largest_weight"], abs=0.0051)
        assert keys == pytest.approx(first["effective_keys"], rel=0.06)


def test_the_slider_is_worked_by_keys_and_moves_only_the_upper_row(page, hero):
    before = heights(hero)
    hero.get_by_role("slider").press("End")
    assert hero.locator("output").inner_text() == "dk = 4096"
    after = heights(hero)
    assert after[0] != before[0]
    assert after[1] == before[1]


def test_contents_follow_the_reader(page):
    page.set_viewport_size({"width": 1280, "height": 800})
    current = page.locator("nav a[aria-current]")
    assert current.all_inner_texts() == ["The answer"]
    page.locator("#chapter-factor").scroll_into_view_if_needed()
    page.evaluate("document.getElementById('chapter-factor').scrollIntoView()")
    page.locator("nav a[aria-current]", has_text="Why the root?").wait_for()
    assert current.count() == 1


def test_the_drawer_closes_on_choice_and_on_escape(page):
    page.set_viewport_size({"width": 390, "height": 844})
    drawer, summary = page.locator("#contents"), page.locator("#contents summary")
    summary.click()
    assert drawer.get_attribute("open") is not None
    page.keyboard.press("Escape")
    assert drawer.get_attribute("open") is None
    summary.click()
    drawer.get_by_role("link", name="Check your model").click()
    assert drawer.get_attribute("open") is None
    assert page.url.endswith("#check")


@pytest.mark.parametrize(
    ("asked", "anchor"),
    [
        ("vanish", "chapter-gradients"),
        ("low rank mean", "question-low-rank"),
        ("what is low rank?", "question-low-rank"),
        ("C36", "claim-C36"),
        ("128k", "question-keys"),
        ("error bar", "methods-sampling"),
        ("my model", "check"),
    ],
)
def test_what_is_asked_for_is_found_and_shown(page, asked, anchor):
    page.set_viewport_size({"width": 1280, "height": 800})
    page.get_by_role("searchbox", name="Find on this page").fill(asked)
    links = page.locator(".find li a")
    hrefs = [link.get_attribute("href") for link in links.all()]
    assert any(href.startswith(f"#{anchor}") for href in hrefs), hrefs
    page.locator(f".find li a[href^='#{anchor}']").first.click()
    assert page.locator(f"#{anchor}").is_visible()
    page.get_by_role("searchbox", name="Find on this page").fill("qxzzy")
    assert page.locator(".find").inner_text().strip().endswith("Nothing found")


ASKED = {
    "误差怎么算": "methods-sampling",
    "怎么引用一个数": "citing",
    "为什么不是dk": "chapter-factor",
    "点积方差": "chapter-scores",
    "混合精度": "question-precision",
    "微调": "chapter-heads",
}


def test_what_is_asked_in_chinese_without_spaces_is_found_first(visit, report_in):
    page = visit(report_in("zh")).page
    page.set_viewport_size({"width": 1280, "height": 800})
    box, links = page.locator("#find"), page.locator(".find li a")
    found = {}
    for asked in ASKED:
        box.fill(asked)
        found[asked] = [link.get_attribute("href") for link in links.all()[:3]]
    assert {asked: hrefs for asked, hrefs in found.items() if f"#{ASKED[asked]}" not in " ".join(hrefs)} == {}


def test_a_number_is_copied_by_a_click_and_says_its_error(page):
    fact = page.locator(".cards .fact").first
    fact.click()
    page.locator("#status:not(:empty)").wait_for()
    name = page.evaluate("navigator.clipboard.readText()")
    assert name == "\\sqrtdkLogitStdUnscaled"
    assert page.locator(f"#number-{name.removeprefix(chr(92) + 'sqrtdk')}").count() == 1
    full = fact.evaluate("e => getComputedStyle(e, '::after').content")
    assert fact.get_attribute("data-full") in full


def test_all_folds_are_opened_and_closed(page):
    button = page.get_by_role("button", name="Open all folds")
    button.click()
    assert page.evaluate("[...document.querySelectorAll('main details:not(.under details)')].every(e => e.open)")
    page.get_by_role("button", name="Close all folds").click()
    assert page.locator("main details[open]").count() == 0
