"""A headless Chromium for pages of reports, and what a test must know of a page in it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import need

# Rows that a reader sees, in the order in which they stand.
_ROWS = """
return [...document.querySelectorAll('table.figures tbody tr')]
  .filter((row) => row.checkVisibility()).map((row) => row.id.slice(4));
"""


class Browser:
    """One browser with one page at a time."""

    def __init__(self) -> None:
        """Start the browser; skip the test where it or its driver is not there."""
        need("selenium")
        programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
        absent = [name for name, path in programs.items() if path is None]
        if absent:
            pytest.skip(f"needs {' and '.join(absent)} (Debian: chromium chromium-driver)")
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = programs["chromium"] or ""
        for option in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(option)
        if os.geteuid() == 0:
            options.add_argument("--no-sandbox")  # which root cannot have
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver: Any = webdriver.Chrome(options, Service(programs["chromedriver"]))

    def open(self, page: Path, part: str = "", width: int = 1280, theme: str = "light") -> None:
        """Load a page afresh."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        scheme = {"name": "prefers-color-scheme", "value": theme}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get("about:blank")
        for log in ("browser", "performance"):
            self.driver.get_log(log)
        self.driver.get(page.as_uri() + part)

    def script(self, text: str, *arguments: object) -> Any:
        """Run a script in the page and return what it returns."""
        return self.driver.execute_script(text, *arguments)

    def find(self, query: str) -> Any:
        """Return the first element of a query."""
        return self.driver.find_element("css selector", query)

    def rows(self) -> list[str]:
        """Return the numbers of the rows that are seen, in order."""
        shown: list[str] = self.script(_ROWS)
        return shown

    def complaints(self) -> list[str]:
        """Return what the page wrote to the console since it was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return what the page asked for since it was opened, itself aside."""
        events = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        asked = [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]
        own = self.script("return location.href.split('#')[0]")
        return [url for url in asked if url.split("#")[0] != own and not url.startswith("data:")]

    def close(self) -> None:
        """End the browser."""
        self.driver.quit()
