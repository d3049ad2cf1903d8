"""A page in Debian's Chromium, without a window: what it shows, what it says, what it asks for; and what the tests of all pages check."""
import contextlib
import json
import os
import shutil
import statistics
import time

import pytest

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys
except ImportError:
    webdriver = ActionChains = Keys = None

PROGRAM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
MISSING = None if PROGRAM and DRIVER and webdriver else "needs chromium, chromium-driver, python3-selenium (make deps-check)"
needs_browser = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


PHONE = (360, 740)


@contextlib.contextmanager
def chromium(width=1440, height=900):
    options = webdriver.ChromeOptions()
    options.binary_location = PROGRAM
    for argument in ("--headless=new", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
                     "--disable-background-networking", "--disable-component-update", "--no-first-run",
                     f"--window-size={width},{height}", *(["--no-sandbox"] if os.getuid() == 0 else [])):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service(DRIVER), options=options)
    try:
        yield Browser(driver)
    finally:
        driver.quit()


class Browser:
    def __init__(self, driver):
        self.driver = driver

    def open(self, path, fragment=""):
        """Loads the file anew."""
        self.driver.get("about:blank")
        self.drain()
        self.driver.get(f"file://{path}{fragment}")
        return self

    def run(self, script, *args):
        return self.driver.execute_script(script, *args)

    def drain(self):
        return self.driver.get_log("browser"), self.driver.get_log("performance")

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """Addresses that were asked for since open, by the browser's own account."""
        out = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                out.append(message["params"]["request"]["url"])
        return out

    def resize(self, width, height, mobile=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile})

    def prefer(self, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def press(self, *keys):
        ActionChains(self.driver).send_keys(*keys).perform()

    def hover(self, element):
        ActionChains(self.driver).move_to_element(element).perform()

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def picture(self, path):
        self.driver.save_screenshot(str(path))

    def contrasts(self):
        """Of every text that is drawn, with its background: the lowest."""
        return self.run("""
            const rgb = c => c.match(/[\\d.]+/g).map(Number);
            const light = c => { const [r, g, b] = c.map(x => (x /= 255) <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
                                 return .2126 * r + .7152 * g + .0722 * b; };
            const behind = e => { const [r, g, b, a = 1] = e ? rgb(getComputedStyle(e).backgroundColor) : [255, 255, 255];
                                  if (a === 1) return [r, g, b];
                                  const under = behind(e.parentElement);
                                  return [r, g, b].map((x, i) => a * x + (1 - a) * under[i]); };
            const out = [];
            for (const e of document.querySelectorAll('body *')) {
                if (!e.checkVisibility() || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || e.closest('svg')) continue;
                const a = light(rgb(getComputedStyle(e).color).slice(0, 3)), b = light(behind(e));
                out.push([(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.className + ' ' + e.textContent.slice(0, 30)]);
            }
            return out.sort((a, b) => a[0] - b[0])""")

    def in_scheme(self, scheme):
        self.prefer(scheme)
        until(lambda: self.run("return document.documentElement.dataset.theme") == scheme)

    def is_readable(self, texts):
        """Every text that is drawn, and so many are, has WCAG's contrast."""
        found = self.contrasts()
        assert len(found) > texts and found[0][0] >= 4.5, found[:3]

    def other_theme(self, scheme):
        """The key t leads to the other theme, where is_readable can fail."""
        self.press("t")
        assert self.run("return document.documentElement.dataset.theme") != scheme
        self.run("document.documentElement.style.setProperty('--text', '#808080')")
        assert self.contrasts()[0][0] < 4.5, "the check can fail"

    def nameless(self):
        """Controls that a screen reader has no name for."""
        return self.run("""return [...document.querySelectorAll('button, input, select')].filter(e =>
            !(e.textContent.trim() && e.matches('button')) && !e.labels?.length && !e.ariaLabel).map(e => e.outerHTML)""")

    def fits_a_phone(self, *ids):
        """On a small screen these elements stand one below another, and nothing is wider than it."""
        assert self.run("return document.documentElement.scrollWidth") <= PHONE[0]
        boxes = self.run("""return arguments[0].map(i => { const b = document.getElementById(i).getBoundingClientRect();
                            return [b.left, b.right, b.top, b.bottom] })""", ids)
        assert all(0 <= left and right <= PHONE[0] for left, right, _, _ in boxes)
        assert all(a[3] <= b[2] + 1 for a, b in zip(boxes, boxes[1:]))

    def seconds_to(self, mark, path, times):
        """The median of so many loads: until the page says that it is there."""
        seconds = []
        for _ in range(times):
            self.open(path)
            seconds.append(until(lambda: self.run("return performance.getEntriesByName(arguments[0])[0]?.startTime", mark)) / 1000)
        return statistics.median(seconds)

    def can_complain(self, path):
        """The check of requests and complaints finds some where there are some."""
        self.open(path)
        self.run("console.error('oh'); const i = new Image(); i.src = 'https://example.invalid/x'; document.body.append(i)")
        time.sleep(0.2)
        with pytest.raises(AssertionError):
            self.quiet(path)

    def quiet(self, path):
        """It asked for nothing but itself, and did not complain."""
        assert self.complaints() == []
        assert {address.split("#")[0] for address in self.requests()} == {f"file://{path}"}
        assert self.run("return performance.getEntriesByType('resource').length") == 0


def until(condition, seconds=5):
    end = time.time() + seconds
    while not (found := condition()):
        assert time.time() < end, "it did not happen"
        time.sleep(0.02)
    return found


@pytest.fixture(scope="module")
def browser():
    with chromium() as b:
        yield b


def fresh(browser, path):
    """For a fixture: the page, loaded anew, in light colours. Afterwards: it asked for nothing but itself, and did not complain."""
    browser.resize(1440, 900)
    browser.prefer("light")
    yield browser.open(path)
    browser.quiet(path)


def is_whole(path):
    """The file is UTF-8, and no data ended an element."""
    raw = path.read_bytes()
    raw.decode()
    assert raw.count(b"<script") == raw.count(b"</script>")
    return raw
