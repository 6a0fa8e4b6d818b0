"""Drives reports in Chromium and prints what it saw as JSON; runs in .venv-browser, for test_report_browser.py and open_report.py:
python -m tests.python.reports.drive_report CHROMIUM FOLDER PAGE.html EVERYTHING.html MANY.html HOSTILE.html TIMED.html...
which leaves screenshots in FOLDER, or, to open each page so often and do nothing else: CHROMIUM --times COUNT TIMED.html..."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from playwright.sync_api import Browser, Page

from ..browser.pages import DESK, SERIOUS, Seen, audit, looks, open_details, opened, started, width

LOOKS = looks(390, 844)  # as the golden pictures have them
SPEED = "#speed figure:first-of-type .chart"
TABLE = "details[data-table=overtakes]"
# The first picture's lines: name, points, and what each point tells.
RATIOS = f"""() => document.querySelector('{SPEED}').data.filter(t => t.customdata).map(t => [
  t.hovertext[0].split(',')[0], t.customdata.map(([, p]) => [p[0], p[1], p[2], p[3]])])"""
# Seconds from a variant that is hidden until the page is painted without it.
REDRAWN = """async () => {
  const box = document.querySelectorAll('#choose-variants input')[1], begin = performance.now();
  box.click();
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  return (performance.now() - begin) / 1000;
}"""


def drawn(page: Page, chart: str = SPEED) -> None:
    page.locator(chart).first.scroll_into_view_if_needed()
    page.wait_for_selector(f"{chart} .main-svg", timeout=60_000)
    page.wait_for_timeout(150)


def walk(page: Page) -> None:
    """Through the whole page, so that every picture is drawn."""
    for name in page.eval_on_selector_all("main section", "found => found.map(s => s.id)"):
        charts = page.locator(f"#{name} figure:not([hidden]) .chart")
        for i in range(charts.count()):
            charts.nth(i).scroll_into_view_if_needed()
            charts.nth(i).locator(".main-svg").first.wait_for(timeout=60_000)


def column(page: Page, table: str, number: int) -> list[str]:
    return page.eval_on_selector_all(f"{table} tbody tr td:nth-child({number})", "all => all.map(c => c.textContent)")


def traces(page: Page) -> int:
    return page.evaluate(f"document.querySelector('{SPEED}').data.filter(t => t.customdata).length")


def copied(page: Page, form: str) -> str:
    page.locator(TABLE).get_by_role("button", name=f"Copy as {form}").click()
    page.wait_for_timeout(100)
    return page.evaluate("navigator.clipboard.readText()")


def explore(browser: Browser, file: str, faults: list[str]) -> Seen:
    seen: Seen = {}
    page = opened(browser, file, faults, viewport=DESK, color_scheme="light")
    drawn(page)
    seen["all"] = traces(page)
    seen["title"] = page.evaluate(f"document.querySelector('{SPEED}').layout.yaxis.title.text")
    mark = page.locator(f"{SPEED} .scatterlayer .trace").first.locator(".point").nth(1)
    mark.hover(force=True)
    page.wait_for_timeout(200)
    seen["hovered"] = page.locator("#speed .detail").first.text_content()
    seen["label"] = page.locator(f"{SPEED} .hoverlayer .hovertext").first.text_content()
    page.locator(SPEED).first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    seen["stepped"] = page.locator("#speed .detail").first.text_content()
    page.keyboard.press("Enter")
    seen["dialog"] = page.locator("dialog[open] .cell").first.text_content()
    page.keyboard.press("Escape")

    page.locator("#settings > summary").click()
    page.locator("#choose-variants > summary").click()
    page.get_by_label("linear", exact=True).uncheck()
    page.locator("#choose-panels > summary").click()
    figures = "document.querySelectorAll('#speed figure:not([hidden])').length"
    before = page.evaluate(figures)
    page.locator("fieldset[data-facet=mask]").get_by_label("not causal", exact=True).uncheck()
    seen["figures"] = [before, page.evaluate(figures)]
    page.locator("fieldset[data-facet=mask]").get_by_label("not causal", exact=True).check()
    drawn(page)
    seen["chosen"] = traces(page)
    seen["variants"] = sorted(set(column(page, TABLE, 2)))
    page.get_by_label("Values").select_option("truncated")
    drawn(page)
    seen["to any"] = page.evaluate(f"document.querySelector('{SPEED}').layout.yaxis.title.text")
    seen["ratios"] = page.evaluate(RATIOS)
    page.get_by_label("Values").select_option("exact")
    page.get_by_label("Vertical axes").select_option("linear")
    drawn(page)
    seen["relative"] = page.evaluate(f"document.querySelector('{SPEED}').layout.yaxis.title.text")
    seen["axis"] = page.evaluate(f"document.querySelector('{SPEED}').layout.yaxis.type")
    head = page.locator(f"{TABLE} th button").nth(2)
    head.click()
    seen["sorted"] = column(page, TABLE, 3)
    head.click()
    seen["reversed"] = column(page, TABLE, 3)
    seen["aria"] = page.locator(f"{TABLE} th").nth(2).get_attribute("aria-sort")
    page.locator("#filter-overtakes").fill("performer backward")
    seen["filtered"] = list(zip(column(page, TABLE, 1), column(page, TABLE, 2)))
    seen["copies"] = {form: copied(page, form) for form in ("CSV", "Markdown", "LaTeX")}
    page.locator("#contents > summary").click()
    page.get_by_role("link", name="Accuracy", exact=True).click()
    seen["link"] = page.evaluate("location.href")

    other = opened(browser, seen["link"], faults, viewport=DESK, color_scheme="light")
    drawn(other, "#accuracy .chart")
    seen["linked top"] = other.evaluate("document.getElementById('accuracy').getBoundingClientRect().top")
    drawn(other)
    seen["linked"] = {
        "traces": traces(other),
        "relative": other.evaluate(f"document.querySelector('{SPEED}').layout.yaxis.title.text"),
        "rows": list(zip(column(other, TABLE, 1), column(other, TABLE, 2))),
        "sort": other.locator(f"{TABLE} th").nth(2).get_attribute("aria-sort"),
    }
    other.locator("#settings > summary").click()
    other.get_by_role("button", name="Reset").click()
    drawn(other)
    seen["reset"] = traces(other)
    return seen


def each_look(browser: Browser, file: str, faults: list[str]) -> Seen:
    """Light, dark, phone and paper."""
    seen: Seen = {"audits": {}}
    for name, options in LOOKS.items():
        page = opened(browser, file, faults, **options)
        walk(page)
        seen[name] = {
            "page": page.evaluate("getComputedStyle(document.body).backgroundColor"),
            "plot": page.evaluate(f"document.querySelector('{SPEED}').layout.paper_bgcolor"),
            "width": width(page),
        }
        open_details(page)
        page.wait_for_timeout(300)
        seen[name]["open width"] = width(page)
        seen["audits"][name] = audit(page, SERIOUS)
    page = opened(browser, file, faults, viewport=DESK, color_scheme="dark")
    drawn(page)
    page.evaluate("addEventListener('beforeprint', () => { window.printed = ["
                  "document.documentElement.dataset.theme, document.querySelectorAll('.chart .main-svg').length,"
                  "document.querySelectorAll('figure:not([hidden])').length,"
                  "document.querySelector('#speed .legend line').getAttribute('stroke')]; })")
    seen["pdf"] = len(page.pdf(format="A4"))
    seen["printed"] = page.evaluate("window.printed")
    page.wait_for_timeout(100)
    seen["after print"] = page.evaluate("document.documentElement.dataset.theme")
    return seen


def timed(browser: Browser, file: str, faults: list[str]) -> Seen:
    page = opened(browser, file, faults, viewport=DESK)
    ready = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd / 1000")
    begin = time.monotonic()
    drawn(page)
    picture = time.monotonic() - begin
    page.locator("#settings > summary").click()
    page.locator("#choose-variants > summary").click()
    return {"open": ready, "first picture": picture, "redraw": page.evaluate(REDRAWN)}


def zoomed(browser: Browser, file: str, faults: list[str]) -> Seen:
    """By dragging, by keys, and back."""
    page = opened(browser, file, faults, viewport=DESK)
    drawn(page)
    axis = f"document.querySelector('{SPEED}').layout.xaxis"
    seen: Seen = {"whole": page.evaluate(f"{axis}.range")}
    box = page.locator(f"{SPEED} .nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.7 * box["height"], steps=5)
    page.mouse.up()
    page.wait_for_timeout(400)
    seen["dragged"] = page.evaluate(f"{axis}.range")
    seen["ticks"] = page.evaluate(f"{axis}.tickvals")
    page.locator(SPEED).first.focus()
    page.keyboard.press("0")
    page.wait_for_timeout(200)
    seen["back"] = page.evaluate(f"{axis}.range")
    page.keyboard.press("+")
    page.wait_for_timeout(200)
    seen["pressed"] = page.evaluate(f"{axis}.range")
    return seen


def pictures(browser: Browser, file: str, folder: Path, faults: list[str]) -> list[str]:
    """Screenshots of the top and of two pictures in each look, for the golden pictures."""
    names = []
    for look, options in LOOKS.items():
        page = opened(browser, file, faults, **options)
        page.wait_for_timeout(200)
        page.screenshot(path=folder / f"top-{look}.png")
        for name, chart in (("speed", SPEED), ("accuracy", "#accuracy figure:first-of-type .chart")):
            drawn(page, chart)
            page.locator(chart).first.screenshot(path=folder / f"{name}-{look}.png")
            names.append(f"{name}-{look}")
        names.append(f"top-{look}")
    return names


def many(browser: Browser, file: str, faults: list[str]) -> Seen:
    """Of sixty variants: how many lines are drawn in full, and what is named."""
    page = opened(browser, file, faults, viewport=DESK)
    seen: Seen = {}
    page.locator("#settings > summary").click()
    for name, choice in (("best", ""), ("group", "kernel (1 of 2)"), ("all", "all")):
        page.get_by_label("Lines in colour").select_option(choice)
        drawn(page)
        seen[name] = [
            page.evaluate(f"document.querySelector('{SPEED}').data.filter(t => t.customdata && t.mode === 'lines+markers').length"),
            page.locator("#speed .legend li").all_text_contents(),
        ]
    seen["link"] = page.evaluate("location.hash")
    page.locator("#choose-variants > summary").click()
    page.get_by_label("Only those with").fill("low rank")
    page.keyboard.press("Enter")
    drawn(page)
    seen["only"] = page.locator("#speed .legend li").all_text_contents()
    return seen


def sections(browser: Browser, file: str, faults: list[str]) -> Seen:
    page = opened(browser, file, faults, viewport=DESK)
    walk(page)
    parts = "document.querySelector('#parts .chart')"
    return {
        "ids": page.eval_on_selector_all("main section", "all => all.map(s => s.id)"),
        "stacked": page.evaluate(f"{parts}.data.filter(t => t.type === 'bar').map(t => t.x[0])"),
        "patterns": page.evaluate(f"{parts}.data.filter(t => t.type === 'bar').map(t => t.marker.pattern.shape)"),
        "rings": page.evaluate("document.querySelector('#history .chart').data.filter(t => t.marker && t.marker.symbol === 'circle-open').length"),
        "runs": page.evaluate("document.querySelector('#history .chart').layout.xaxis.ticktext"),
        "heads": page.eval_on_selector_all("details[data-table^=equal-cost-points]", "all => all.map(t => [...t.querySelectorAll('th')].map(h => h.textContent))"),
        "peers": page.evaluate("document.querySelector('#peers .chart').layout.yaxis.ticktext"),
    }


def repeatedly(chromium: str, times: int, *files: str) -> None:
    """Opens each page in a fresh browser that often."""
    faults: list[str] = []
    seen: dict[str, list[Seen]] = {}
    for _ in range(times):
        for file in files:
            with started(chromium) as browser:
                seen.setdefault(Path(file).stem, []).append(timed(browser, file, faults))
    print(json.dumps(seen))


def main(chromium: str, folder: str, file: str, everything: str, crowd: str, hostile: str, *others: str) -> None:
    faults: list[str] = []
    with started(chromium) as browser:
        seen: Seen = {"version": browser.version}
        seen["explored"], seen["looks"] = explore(browser, file, faults), each_look(browser, everything, faults)
        seen["pictures"] = pictures(browser, file, Path(folder), faults)
        seen["many"] = many(browser, crowd, faults)
        seen["zoomed"] = zoomed(browser, file, faults)
        seen["sections"] = sections(browser, everything, faults)
        page = opened(browser, hostile, faults, viewport=DESK)
        walk(page)
        open_details(page)
        page.wait_for_timeout(300)
        page.locator("details[data-table=no-number] td button").first.click()
        labels = "[...document.querySelectorAll('.chart')].flatMap(c => c.data || []).flatMap(t => t.hovertext || [])"
        seen["hostile"] = {
            "labels": page.evaluate(labels),
            "title": page.title(),
            "elements": page.locator("img, main script, dialog script, iframe").count(),
            "shown": page.locator("dialog[open]").text_content(),
        }
        seen["times"] = {Path(f).stem: timed(browser, f, faults) for f in others}
    print(json.dumps({**seen, "faults": faults}))


if __name__ == "__main__":
    if sys.argv[2] == "--times":
        repeatedly(sys.argv[1], int(sys.argv[3]), *sys.argv[4:])
    else:
        main(*sys.argv[1:])
