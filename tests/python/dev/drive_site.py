"""Drives the site in Chromium, opened from disk, and prints what it saw as JSON; runs in .venv-browser, for
test_site_browser.py: python -m tests.python.dev.drive_site CHROMIUM FOLDER [SHOTS]. With SHOTS it leaves screenshots in that folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from ..browser.pages import DESK, SERIOUS, Seen, audit, looks, opened, started, width

PHONE = 360  # pixels
LOOKS = looks(PHONE, 740, "dark")
TABLE = "variants/index.html"
PAGES = ("index.html", TABLE, "variants/linformer.html", "variants/nsa.html", "variants/mamba2.html", "docs/guide.html", "results/performance.html",
         "results/reproductions.html", "results/reference/index.html", "CONTRIBUTING.html")  # fmt: skip
SEARCHES = ("linformer", "gated deltanet", "Wang", "velickovic", "2006.04768", "arXiv:2006.04768", "noise floor", "4·n²·d FLOPs (causal", "nothing has zqx")


class Site:
    """A browser on the site's folder. What a page complains of or asks the network for goes to `faults`."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self.browser, self.folder, self.faults = browser, folder, list[str]()

    def page(self, name: str, **options: Any) -> Page:
        return opened(self.browser, self.address(name), self.faults, **options)

    def go(self, page: Page, name: str) -> None:
        page.goto(self.address(name))

    def address(self, name: str) -> str:
        path, _, place = name.partition("#")
        return (self.folder / path).resolve().as_uri() + (f"#{place}" if place else "")

    def name(self, page: Page) -> str:
        return page.url.removeprefix(self.folder.resolve().as_uri() + "/")


def found(page: Page, words: str) -> Seen:
    page.fill("#search-words", words)
    page.wait_for_timeout(100)
    links = page.locator("#search-found a")
    return {"titles": links.all_text_contents(), "count": page.text_content("#search-count")}


def search(site: Site) -> Seen:
    page = site.page("docs/guide.html", viewport=DESK)
    page.click("#search-open")
    page.wait_for_function("window.siteIndex")
    seen: Seen = {"found": {words: found(page, words) for words in SEARCHES}}
    page.keyboard.press("Escape")
    seen["closed"] = not page.locator("#search").is_visible()
    page.keyboard.press("/")
    page.keyboard.type("linformer")
    page.wait_for_timeout(100)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    seen["second"] = page.evaluate("document.activeElement === document.querySelectorAll('#search-found a')[1]")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    seen["back in the field"] = page.evaluate("document.activeElement.id")
    page.keyboard.press("Enter")
    page.wait_for_url("**/linformer.html")
    seen["heading"] = page.text_content("h1")
    return seen


def shown(page: Page) -> list[list[str]]:
    """The cells of the rows that are shown."""
    return page.evaluate("[...document.querySelectorAll('#catalogue tbody tr')].filter(r => !r.hidden).map(r => [...r.cells].map(c => c.textContent))")


def table(site: Site) -> Seen:
    page = site.page(TABLE, viewport=DESK)
    seen: Seen = {"all": shown(page), "count": page.text_content("#count")}
    for key in ("name", "family", "year", "time"):
        page.click(f"#catalogue th[data-sort={key}] button")
        rising = shown(page)
        page.click(f"#catalogue th[data-sort={key}] button")
        seen[f"by {key}"] = rising, shown(page)
    seen["aria"] = page.get_attribute("#catalogue th[data-sort=time]", "aria-sort")
    page.select_option("[name=family]", "low rank")
    seen["low rank"] = shown(page)
    page.check("[name=trait][value=causal]")
    seen["causal low rank"], seen["few"], seen["address"] = shown(page), page.text_content("#count"), site.name(page)
    page.click("text=Show all")
    page.wait_for_timeout(50)
    seen["reset"] = len(shown(page)), site.name(page)
    page.select_option("[name=from]", "2024")
    page.select_option("[name=to]", "2025")
    seen["years"] = shown(page)
    page.click("text=Show all")
    page.fill("[name=words]", "child 2019")
    seen["words"] = shown(page)
    for trait in page.eval_on_selector_all("[name=trait]", "all => all.map(b => b.value)"):
        page.click("text=Show all")
        page.wait_for_timeout(20)
        page.check(f"[name=trait][value={trait}]")
        seen.setdefault("traits", {})[trait] = [row[0] for row in shown(page)]
    kept = site.page(seen["address"], viewport=DESK)
    seen["kept"] = shown(kept), kept.get_attribute("#catalogue th[data-sort=time]", "aria-sort")
    page.reload()
    page.click("text=Show all")
    page.locator("#catalogue th[data-sort=year] button").focus()
    page.keyboard.press("Enter")
    seen["by key"] = shown(page)
    page.locator("#catalogue tbody a").first.click()
    seen["heading"] = page.text_content("h1")
    page.locator("main a", has_text=seen["by key"][0][1]).first.click()  # its family
    page.wait_for_selector("#catalogue tbody tr:not([hidden])")
    seen["of its family"] = shown(page)
    return seen


def colours(site: Site) -> Seen:
    background = "getComputedStyle(document.body).backgroundColor"
    seen: Seen = {}
    for look, options in LOOKS.items():
        page = site.page("index.html", **options)
        seen[look] = page.evaluate(background)
    page.select_option("#theme", "light")
    seen["chosen"] = page.evaluate(background)
    site.go(page, "docs/guide.html")
    seen["kept"] = page.evaluate(background), page.input_value("#theme")
    page.select_option("#theme", "auto")
    seen["auto"] = page.evaluate(background)
    return seen


def widths(site: Site, names: tuple[str, ...]) -> Seen:
    """How wide each page is on a phone."""
    page = site.page("index.html", **LOOKS["phone"])
    seen = {}
    for name in names:
        site.go(page, name)
        seen[name] = width(page)
    return seen


def phone(site: Site) -> Seen:
    page = site.page("variants/linformer.html", **LOOKS["phone"])
    seen: Seen = {"hidden": not page.locator("#nav").is_visible()}
    page.click("#menu")
    seen["opened"] = page.locator("#nav").is_visible(), page.get_attribute("#menu", "aria-expanded")
    page.get_by_role("link", name="Variants", exact=True).click()
    seen["heading"] = page.text_content("h1")
    page.click("#search-open")
    page.wait_for_function("window.siteIndex")
    seen["found"] = found(page, "2006.04768")["titles"]
    seen["width"] = width(page)
    return seen


def report(site: Site) -> Seen:
    page = site.page("index.html", viewport=DESK)
    page.get_by_role("link", name="Report", exact=True).click()
    seen: Seen = {"title": page.text_content("h1"), "width": width(page)}
    chart = page.locator("#speed figure:first-of-type .chart")
    chart.first.scroll_into_view_if_needed()
    page.wait_for_selector("#speed figure:first-of-type .chart .main-svg", timeout=60_000)
    page.locator("header a").click()
    seen["back"] = page.text_content("h1")
    return seen


def audits(site: Site) -> list[str]:
    faults = []
    for look, options in LOOKS.items():
        for name in ("index.html", TABLE, "variants/linformer.html"):
            page = site.page(name, **options)
            faults += [f"{name}, {look}: {fault}" for fault in audit(page, SERIOUS)]
    return faults


def shots(site: Site, folder: Path) -> None:
    for look, options in LOOKS.items():
        for name in (TABLE, "variants/full.html", "variants/linformer.html", "variants/nsa.html"):
            page = site.page(name, **options)
            page.screenshot(path=folder / f"{Path(name).parent.name}-{Path(name).stem}-{look}.png", full_page=name != TABLE)
        page.click("#search-open")
        page.wait_for_function("window.siteIndex")
        found(page, "wang")
        page.screenshot(path=folder / f"search-{look}.png")


def main(chromium: str, folder: str, pictures: str = "") -> None:
    with started(chromium) as browser:
        site = Site(browser, Path(folder))
        if pictures:
            shots(site, Path(pictures))
            every = tuple(sorted(str(p.relative_to(folder)) for p in Path(folder).rglob("*.html")))
            print(json.dumps([name for name, pixels in widths(site, every).items() if pixels > PHONE]))
        else:
            seen = {"search": search(site), "table": table(site), "colours": colours(site), "widths": widths(site, PAGES), "phone": phone(site)}
            print(json.dumps(seen | {"report": report(site), "audits": audits(site), "faults": site.faults}))


if __name__ == "__main__":
    main(*sys.argv[1:])
