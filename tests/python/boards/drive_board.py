"""Drives a board in Chromium and prints what it saw as JSON; runs in .venv-browser, for test_board_browser.py:
python -m tests.python.boards.drive_board CHROMIUM INDEX.html ARCHIVE.html HOSTILE.html [FOLDER]. It leaves screenshots in FOLDER, where one is named."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from playwright.sync_api import Browser, Page

from ..browser.pages import DESK, Seen, audit, looks, open_details, opened, started, width

LOOKS = looks(360, 740)
# Of each thing that takes the focus: its outline, which must be there.
OUTLINE = "(() => { const s = getComputedStyle(document.activeElement); return [document.activeElement.tagName, s.outlineStyle, parseFloat(s.outlineWidth)]; })()"
# Seconds from a choice until the page is painted with it.
CHOSEN = """async () => {
  const select = document.getElementById('choose-length'), begin = performance.now();
  select.selectedIndex = 1;
  select.dispatchEvent(new Event('change'));
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  return (performance.now() - begin) / 1000;
}"""


def column(page: Page, measure: str, head: str) -> list[str]:
    heads = page.eval_on_selector_all(f"#table-{measure} th", "all => all.map(h => h.textContent.replace(/ [\\u25b4\\u25be]$/, ''))")
    number = heads.index(head) + 1
    return page.eval_on_selector_all(f"#table-{measure} tbody td:nth-child({number})", "all => all.map(c => c.textContent)")


def count(page: Page, measure: str) -> str:
    return page.locator(f"#table-{measure} p[role=status]").text_content() or ""


def blocks(page: Page) -> list[str]:
    return page.locator("#blocks summary").all_text_contents()


def filtered(browser: Browser, file: str, faults: list[str]) -> Seen:
    page = opened(browser, file, faults, viewport=DESK)
    seen: Seen = {"ready": page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd / 1000")}
    seen["options"] = {name: page.locator(f"#choose-{name} option").all_text_contents() for name in ("set", "protocol", "mode", "length", "task", "family", "state")}
    seen["first"] = [count(page, m) for m in ("speed", "scores", "memory")]
    seen["times told"] = page.evaluate("document.body.innerText.match(/\\d ?(\\u00b5s|ms|ns)\\b/g)")
    seen["all blocks"] = blocks(page)
    seen["lines"] = page.locator("#blocks details").first.locator("tbody tr").evaluate_all("all => all.map(r => [...r.cells].map(c => c.textContent))")
    page.get_by_label("Instruction set", exact=True).select_option("neon")
    page.get_by_label("Length", exact=True).select_option("4096")
    page.get_by_label("Mode", exact=True).select_option("train")
    seen["speed"] = {h: sorted(set(column(page, "speed", h))) for h in ("mode", "length")}
    seen["speed count"], seen["blocks"] = count(page, "speed"), blocks(page)
    page.get_by_label("Verification", exact=True).select_option("verified")
    seen["marks of verified"] = sorted(set(column(page, "speed", "marks")))
    seen["verified blocks"] = blocks(page)
    page.get_by_label("Verification", exact=True).select_option("unverified")
    seen["unverified"] = column(page, "speed", "ratio")[:5], sorted(set(column(page, "speed", "verification")))
    page.get_by_label("Verification", exact=True).select_option("")
    page.get_by_label("Family", exact=True).select_option("kernel")
    seen["family"] = sorted(set(column(page, "speed", "variant")))
    page.get_by_label("Length", exact=True).select_option("")
    page.get_by_label("Task", exact=True).select_option("copy")
    seen["task"] = sorted(set(column(page, "scores", "task")))
    page.get_by_label("Words of the statement").fill("AMBER team")
    seen["statement"] = page.eval_on_selector_all("#bundles tbody tr:not([hidden]) td.statement", "all => all.map(c => c.textContent)")
    page.get_by_label("Length", exact=True).select_option("4096")
    page.locator("#table-speed th button").nth(1).click()
    rising = column(page, "speed", "ratio")
    page.locator("#table-speed th button").nth(1).click()
    seen["sorted"] = [rising, column(page, "speed", "ratio"), page.locator("#table-speed th").nth(1).get_attribute("aria-sort")]
    seen["chosen"] = page.locator("#chosen").text_content()
    seen["link"] = page.evaluate("location.href")
    other = opened(browser, seen["link"], faults, viewport=DESK)
    seen["linked"] = [column(other, "speed", "ratio"), other.locator("#chosen").text_content(), other.locator("#table-speed th").nth(1).get_attribute("aria-sort")]
    other.get_by_role("button", name="Show all").click()
    seen["reset"] = [[count(other, m) for m in ("speed", "scores", "memory")], other.evaluate("location.hash")]
    old = opened(browser, seen["link"].partition("#")[0] + "#set=vax&protocol=none&length=7&sort=speed:99:1", faults, viewport=DESK)
    seen["old link"] = [count(old, m) for m in ("speed", "scores", "memory")]
    old.get_by_role("link", name="Scores").click()
    seen["jumped"] = [old.evaluate("document.activeElement.id"), [count(old, m) for m in ("speed", "scores", "memory")]]
    seen["redraw"] = old.evaluate(CHOSEN)
    return seen


def by_keyboard(browser: Browser, file: str, faults: list[str]) -> Seen:
    """Without a mouse: through the controls to a number, which opens, is copied and closes again."""
    page = opened(browser, file, faults, viewport=DESK)
    seen: Seen = {"outlines": []}
    page.keyboard.press("Tab")
    seen["skip"] = page.evaluate("[document.activeElement.textContent, document.activeElement.getBoundingClientRect().left >= 0]")
    page.keyboard.press("Enter")
    seen["skipped to"] = page.evaluate("document.activeElement.id")
    for _ in range(60):
        page.keyboard.press("Tab")
        seen["outlines"].append(page.evaluate(OUTLINE))
        if page.evaluate("document.activeElement.id") == "choose-mode":
            page.keyboard.press("ArrowDown")
            page.keyboard.press("ArrowDown")
            seen["mode"] = page.evaluate("location.hash")
        if page.evaluate("document.activeElement.className") == "opens":
            break
    number = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    told = page.locator("dialog[open]")
    seen["dialog"] = {"number": number, "text": told.inner_text(), "focus": page.evaluate("document.activeElement.id")}
    seen["dialog"]["href"] = told.locator("a").get_attribute("href")
    told.get_by_role("button", name="Copy commands").press("Enter")
    page.wait_for_timeout(100)
    seen["dialog"]["copied"] = page.evaluate("navigator.clipboard.readText()")
    page.keyboard.press("Escape")
    seen["closed"] = page.evaluate("[document.querySelector('dialog').open, document.activeElement.className]")
    page.locator("#table-speed").get_by_role("button", name="Copy as CSV").click()
    page.wait_for_timeout(100)
    seen["csv"] = page.evaluate("navigator.clipboard.readText()").splitlines()[:400]
    return seen


def each_look(browser: Browser, files: dict[str, str], faults: list[str], folder: Path | None) -> Seen:
    seen: Seen = {}
    for name, options in LOOKS.items():
        for kind, file in files.items():
            page = opened(browser, file, faults, **options)
            page.wait_for_timeout(100)
            if folder:
                page.screenshot(path=folder / f"{kind}-{name}.png", full_page=kind != "archive")
            own = {"page": page.evaluate("getComputedStyle(document.body).backgroundColor"), "width": width(page)}
            open_details(page)
            own["open width"] = width(page)
            own["audit"] = audit(page)
            if kind == "index" and page.locator(".opens").count():
                page.locator(".opens").first.click()
                own["dialog width"] = page.evaluate("document.querySelector('dialog').getBoundingClientRect().right")
                own["dialog audit"] = audit(page)
                if folder:
                    page.screenshot(path=folder / f"dialog-{name}.png")
            seen[f"{kind} {name}"] = own
    page = opened(browser, files["index"], faults, viewport=DESK, color_scheme="dark")
    page.emulate_media(media="print")
    seen["paper"] = page.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.getElementById('filters')).display]")
    if folder:
        page.pdf(path=folder / "board.pdf", format="A4")
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    seen["rows on paper"] = page.locator("#table-speed tbody tr").count()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    seen["rows after"] = page.locator("#table-speed tbody tr").count()
    return seen


def hostile(browser: Browser, file: str, faults: list[str]) -> Seen:
    page = opened(browser, file, faults, viewport=DESK)
    open_details(page)
    page.locator("#table-speed").get_by_role("button", name="Copy as CSV").click()
    page.wait_for_timeout(100)
    csv = page.evaluate("navigator.clipboard.readText()")
    page.locator(".opens").first.click()
    return {
        "csv": csv,
        "title": page.title(),
        "elements": page.locator("img, iframe, main script, dialog script, svg, object, embed, form[action]").count(),
        "links": page.eval_on_selector_all("a", "all => all.map(a => a.getAttribute('href'))"),
        "text": page.locator("body").inner_text(),
        "handlers": page.evaluate("[...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => a.name.startsWith('on'))).length"),
    }


def main(chromium: str, index: str, archive: str, hostile_index: str, folder: str = "") -> None:
    faults: list[str] = []
    begin = time.monotonic()
    with started(chromium) as browser:
        seen: Seen = {"filtered": filtered(browser, index, faults), "keyboard": by_keyboard(browser, index, faults)}
        seen["looks"] = each_look(browser, {"index": index, "archive": archive}, faults, Path(folder) if folder else None)
        seen["hostile"] = hostile(browser, hostile_index, faults)
    print(json.dumps({**seen, "faults": faults, "seconds": time.monotonic() - begin}))


if __name__ == "__main__":
    main(*sys.argv[1:])
