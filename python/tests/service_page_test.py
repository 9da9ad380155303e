"""The page of the job service in Chromium (by Playwright; skipped without): at
two widths, by keyboard alone, and while it trains."""

import shutil
import unittest

from entry import main
from service_case import ServiceCase

try:
    from playwright.sync_api import sync_playwright
    MISSING = "" if shutil.which("chromium") else "Chromium is not installed"
except ImportError:
    MISSING = "Playwright is not installed"
try:
    from axe_playwright_python.sync_playwright import Axe
except ImportError:
    Axe = None


@unittest.skipIf(MISSING, MISSING)
class Page(ServiceCase):
    step_s = 0.2

    def setUp(self):
        super().setUp()
        self.start()
        self.playwright = sync_playwright().start()
        self.addCleanup(self.playwright.stop)
        self.browser = self.playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        self.addCleanup(self.browser.close)
        self.wrong, self.foreign = [], []

    def page(self, width, scheme="light"):
        page = self.browser.new_page(
            viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.set_default_timeout(60_000)
        page.on("console", lambda said: self.wrong.append(said.text)
                if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", lambda asked: self.foreign.append(asked.url)
                if not asked.url.startswith((self.url, "data:")) else None)
        return page

    def check(self, page):
        width = page.evaluate("document.documentElement.scrollWidth")
        self.assertLessEqual(width, page.viewport_size["width"])
        if Axe is not None:
            found = [one for one in Axe().run(page).response["violations"]
                     if one["impact"] in ("serious", "critical")]
            self.assertEqual(found, [])

    def test_it_shows_a_job_while_it_trains(self):
        job = self.client().submit("A training", {"epochs": 10_000})["id"]
        for width, scheme in ((1280, "light"), (400, "light"), (400, "dark")):
            page = self.page(width, scheme)
            page.goto(f"{self.url}/#{self.token}")
            page.get_by_role("link", name="A training").wait_for()
            self.assertNotIn(self.token, page.url)
            page.locator(".chip.running").wait_for()
            self.check(page)
            page.goto(f"{self.url}/#/job/{job}")
            page.get_by_role("heading", name="A training").wait_for()
            page.locator("svg.chart").first.wait_for()
            page.get_by_role("log").get_by_text("begins afresh").wait_for()
            self.check(page)
            page.close()
        self.assertEqual((self.wrong, self.foreign), ([], []))

    def test_it_is_used_by_keyboard_alone(self):
        page = self.page(1280)
        page.goto(f"{self.url}/#{self.token}")
        page.get_by_role("button", name="New training").wait_for()
        self.tab_to(page, "New training")
        page.keyboard.press("Enter")
        page.keyboard.type("By keyboard")
        self.tab_to(page, "Queue the training")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="By keyboard").wait_for()
        page.locator(".chip.running").wait_for()
        self.tab_to(page, "Cancel")
        page.keyboard.press("Enter")
        page.locator(".chip.cancelled").wait_for()
        self.tab_to(page, "Resume")
        page.keyboard.press("Enter")
        page.locator(".chip.running").wait_for()
        self.assertEqual((self.wrong, self.foreign), ([], []))

    def tab_to(self, page, text):
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == text:
                return
        self.fail(f"no Tab reaches '{text}'")

    def test_a_wrong_token_asks_for_another_one(self):
        page = self.page(400)
        page.goto(f"{self.url}/#{'x' * 43}")
        page.get_by_text("This token is not known here.").wait_for()
        page.get_by_label("Token").fill(self.token)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Trainings").wait_for()
        self.check(page)


if __name__ == "__main__":
    main()
