"""The pages in a real browser, with a server and fitted models."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dpplearn as dl
from dpplearn.datasets import make_registries
from dpplearn.pipeline.fit_all import result_of
from helpers.browser import browser, violations
from helpers.service import Server, server
from helpers.stores import edit_category, write_models

SIZES = {"desk": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
VIEWS = [f"{size}-{scheme}" for size in SIZES for scheme in ("light", "dark")]
SHOTS = Path(os.environ.get("DPPLEARN_SCREENSHOTS", Path(__file__).parents[2] / "build" / "screenshots"))
KEY = "a key for the pages"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    baskets = {name: make_registries(name, 1500, rng=0) for name in ("safety", "carseats")}
    models = {name: dl.fit(each, segments=2, max_iter=160, rng=0).model for name, each in baskets.items()}
    store = write_models(tmp_path_factory.mktemp("pages") / "store", models, {"safety": 0.6, "carseats": 0.4})
    for name, model in models.items():
        edit_category(store, name, result=result_of(model, None, None, baskets[name]))
    return store


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Server]:
    with server(folder, folder.with_name("log")) as found:
        yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as found:
        yield found


class Tab:
    """A page of its own; an error in its scripts, or a request to anywhere else, fails the test."""

    def __init__(self, chromium: Any, served: Server, view: str = "desk-light") -> None:
        size, scheme = view.split("-")
        self.page, self.view = chromium.new_page(viewport=SIZES[size], color_scheme=scheme), view
        self.page.set_default_timeout(15_000)
        self.url, self.wrong = served.url, list[str]()
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self._look(request.url))

    def _look(self, url: str) -> None:
        if not url.startswith((self.url, "data:")):
            self.wrong.append(f"asks {url}")

    def open(self, path: str, until: str) -> None:
        self.page.goto(self.url + path)
        self.page.wait_for_selector(until)

    def shot(self, name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{self.view}-{name}.png", full_page=True)

    def check(self, name: str) -> None:
        """Nothing is wider than the screen, and axe finds nothing."""
        self.shot(name)
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.page.viewport_size["width"]
        assert violations(self.page) == []

    def texts(self, selector: str) -> list[str]:
        return [text.strip() for text in self.page.locator(selector).all_inner_texts()]

    def after(self, action: Any) -> None:
        """Do something, and wait until the suggestions are those of the new basket."""
        with self.page.expect_response(lambda response: response.url.endswith("/v1/recommend")):
            action()
        self.page.wait_for_function("() => document.getElementById('status').textContent.includes('suggestions')")

    def add(self, words: str) -> str:
        """The first product that a search finds."""
        self.page.fill("#search", words)
        self.page.wait_for_function("w => document.getElementById('found').dataset.search === w", arg=words)
        found = self.texts("#found .name")[0].split("\n")[0]
        self.after(lambda: self.page.click("#found button"))
        return found


@pytest.fixture
def tab(request: pytest.FixtureRequest, chromium: Any, served: Server) -> Iterator[Tab]:
    found = Tab(chromium, served, getattr(request, "param", "desk-light"))
    yield found
    assert found.wrong == []
    found.page.close()


def test_with_a_video_monitor_no_second_one_is_suggested_first(tab: Tab) -> None:
    tab.open("/", "#suggested li")
    tab.after(lambda: tab.page.select_option("#category", "safety"))
    assert "video monitor" in tab.texts("#suggested .name")[0]  # the most wanted product of all
    chosen = tab.add("video monitor")
    tab.page.wait_for_function("t => !document.querySelector('#suggested .name').innerText.includes(t)", arg="video")
    assert "video monitor" not in tab.texts("#suggested .name")[0]
    assert f"as likely with {chosen}" in " ".join(tab.texts("#suggested .why"))
    tab.shot("video-monitor")


def test_a_basket_is_filled_to_ten_different_items_and_emptied_again(tab: Tab) -> None:
    tab.open("/", "#suggested li")
    first = tab.add("monitor")
    tab.after(lambda: tab.page.click("#fill"))
    names = [text.split("\n")[0] for text in tab.texts("#basket .name")]
    assert len(set(names)) == len(names) == 10
    assert names[0] == first
    assert tab.page.is_disabled("#fill")
    tab.shot("filled")
    tab.after(lambda: tab.page.click(f'button[aria-label="Remove {first}"]'))
    assert len(tab.texts("#basket > li")) == 9
    tab.after(lambda: tab.page.click("#clear"))
    assert tab.texts("#basket > li") == []


def test_an_item_is_compared_and_swapped(tab: Tab) -> None:
    tab.open("/", "#suggested li")
    chosen = tab.add("video monitor")
    tab.page.click("#basket button")
    tab.page.wait_for_selector("#about:not([hidden]) #substitutes button")
    assert "monitor" in tab.texts("#substitutes .name")[0]
    tab.shot("compare")
    other = tab.texts("#substitutes .name")[0].split("\n")[0]
    tab.after(lambda: tab.page.click("#substitutes button"))
    assert [text.split("\n")[0] for text in tab.texts("#basket .name")] == [other]
    assert other != chosen


def test_everything_can_be_done_by_keyboard(tab: Tab) -> None:
    tab.open("/", "#suggested li")
    tab.page.focus("#suggested button")
    tab.after(lambda: tab.page.keyboard.press("Enter"))
    tab.page.focus("#basket button.remove")
    tab.after(lambda: tab.page.keyboard.press("Enter"))
    assert tab.page.evaluate("document.activeElement.id") == "search"  # and not lost with the button


@pytest.mark.parametrize("tab", VIEWS, indirect=True)
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(tab: Tab) -> None:
    tab.open("/", "#suggested li")
    tab.add("video monitor")
    tab.page.click("#basket button")
    tab.page.wait_for_selector("#about:not([hidden]) #substitutes button")
    tab.check("basket")
    tab.open("/analyst", "#calibration svg")
    tab.check("analyst")


def test_the_analyst_sees_every_category(tab: Tab) -> None:
    tab.open("/analyst", "#calibration svg")
    assert [text.split("\t")[0] for text in tab.texts("#scores tbody tr")] == ["Safety", "Carseats"]
    assert len(tab.texts("#segments > li")) == 2
    assert any("video monitor" in text for text in tab.texts("#substitutes tbody tr"))
    tab.page.select_option("#category", "carseats")
    tab.page.wait_for_function("() => document.getElementById('status').textContent.includes('Carseats')")
    assert tab.page.locator("#map rect").count() > 9


def test_the_page_shows_one_probability_per_item(tab: Tab) -> None:
    """The same definition in suggestions and explanations, none in the search, whose models have another base."""
    tab.open("/", "#suggested li")
    assert not any("%" in text for text in tab.texts("#found > li"))
    shown = [text.split("%")[0].split()[-1] for text in tab.texts("#suggested .tag")]
    assert shown == [text.split("%")[0].split()[-1] for text in tab.texts("#suggested .why")]  # for an empty basket


def test_a_key_is_asked_for_and_used(chromium: Any, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(KEY)
    with server(folder, tmp_path / "log", "--key-file", tmp_path / "keys") as served:
        tab = Tab(chromium, served)
        tab.open("/", "#key-form:not([hidden])")
        tab.page.fill("#key", KEY)
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("#suggested li")
        tab.page.close()
