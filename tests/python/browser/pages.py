"""What the modules that drive Chromium share: its start, pages that tell their faults, widths, the audit by axe-core. Runs in .venv-browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

DESK = {"width": 1280, "height": 900}
SERIOUS = ("serious", "critical")  # impacts of violations, as axe-core grades them
Seen = dict[str, Any]


def looks(width: int, height: int, scheme: str = "light") -> dict[str, dict[str, Any]]:
    """Options of a page by the name of its look; the arguments are those of the phone."""
    phone = {"viewport": {"width": width, "height": height}, "color_scheme": scheme, "has_touch": True, "is_mobile": True}
    return {"light": {"viewport": DESK, "color_scheme": "light"}, "dark": {"viewport": DESK, "color_scheme": "dark"}, "phone": phone}


@contextmanager
def started(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


def opened(browser: Browser, address: str | Path, faults: list[str], **options: Any) -> Page:
    """A page of its own, of a file or of an address file:...; whatever it complains of or asks the network for goes to `faults`."""
    page = browser.new_context(permissions=["clipboard-read", "clipboard-write"], **options).new_page()

    def tell(fault: str) -> None:
        faults.append(f"{page.url}: {fault}")

    page.on("console", lambda m: m.type in ("error", "warning") and tell(f"{m.type}: {m.text}"))
    page.on("pageerror", lambda e: tell(f"exception: {e}"))
    page.on("dialog", lambda d: (tell(f"dialog: {d.message}"), d.dismiss()))
    page.on("request", lambda r: r.url.startswith("http") and tell(f"request: {r.url}"))
    page.goto(address if str(address).startswith("file:") else Path(address).resolve().as_uri())
    return page


def width(page: Page) -> int:
    """Returns the width of the page in pixels. It scrolls sideways where this is more than the width that it was opened with. The two
    widths cannot be compared with each other: on a phone the window grows with the page."""
    return page.evaluate("Math.max(document.documentElement.scrollWidth, innerWidth)")


def open_details(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")


def audit(page: Page, only: tuple[str, ...] = (), within: str | None = None) -> list[str]:
    """What axe-core finds wrong in the page, or in what the selector `within` names: of the impacts in `only`, or of any. Of each table ten
    rows stay, since its rows are alike; what passes is 22 MB of answers, and is not asked for."""
    page.evaluate("document.querySelectorAll('tbody').forEach(t => [...t.rows].slice(10).forEach(r => r.remove()))")
    found = Axe().run(page, context=within, options={"resultTypes": ["violations"], "preload": False}).response["violations"]
    return [f"{v['impact']} {v['id']}: {v['help']}: {v['nodes'][0]['html'][:160]}" for v in found if not only or v["impact"] in only]
