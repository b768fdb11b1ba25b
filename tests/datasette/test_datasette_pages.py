"""The pages, in a real browser and without one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest
from houses import cookies

from wheelmem import demo, load_plugins, open_wheel
from wheelmem.conclusions import conclude

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MIRA = f"/-/memory/people/{quote(demo.MIRA, safe='')}"
ASKED = "/-/memory?" + urlencode({"q": demo.QUESTION, "circle_id": demo.ORCHARD})


# --- without a browser, and so without JavaScript -------------------------------------------------------------------


@pytest.fixture
async def owner(wheel_file: Path, make: Any) -> Any:
    ds = make([wheel_file])
    await ds.invoke_startup()

    async def get(path: str, **options: Any) -> Any:
        return await ds.client.get(path, cookies=cookies(ds, id="root"), **options)

    return get


async def test_a_question_in_the_address_is_answered(owner: Any) -> None:
    page = (await owner(ASKED)).text
    assert "4 ceremonies, 11 records, 2 voices" in page
    assert "<mark>lantern</mark>" in page
    assert "Tomas Lindqvist" in page
    assert "Yuki" not in page
    assert 'href="/-/memory/ceremonies/ceremony%3Ademo%3Ao2#beat%3Ademo%3A4"' in page
    assert 'href="/hearth/beats/' in page


async def test_search_and_about(owner: Any) -> None:
    found = (await owner("/-/memory?" + urlencode({"verb": "search", "q": "lantern", "circle_id": demo.ORCHARD}))).text
    assert "<mark>lantern</mark>" in found
    said = (await owner("/-/memory?" + urlencode({"verb": "about", "person": "mira oyelaran", "circle_id": demo.ORCHARD}))).text
    assert "Mira agrees" in said
    assert "Tomas answers" not in said


async def test_the_reach_is_shown_before_anything_is_asked(owner: Any) -> None:
    page = (await owner("/-/memory?" + urlencode({"q": demo.QUESTION, "circle_id": demo.ORCHARD, "go": "reach"}))).text
    assert "4 ceremonies, 11 records, 2 voices" in page
    assert "<mark>" not in page
    assert "nothing would be asked" in (await owner("/-/memory")).text


async def test_what_does_not_fit_is_said_beside_the_question(owner: Any) -> None:
    response = await owner("/-/memory?go=answer&verb=ask")
    assert response.status_code == 400
    assert 'role="alert">question must be some words' in response.text
    assert (await owner("/-/memory?" + urlencode({"q": "x" * 10_001, "circle_id": demo.ORCHARD}))).status_code == 400


async def test_the_picker_finds_by_name(owner: Any) -> None:
    page = (await owner("/-/memory?go=find&find=kitchen")).text
    assert f'name="circle_id" value="{demo.KITCHEN}"' in page
    found = (await owner("/-/memory/pick?find=kitchen")).json()
    assert found["circle_id"] == [{"id": demo.KITCHEN, "name": "Winter Kitchen"}]
    assert "Nothing here is called" in (await owner("/-/memory?go=find&find=zzzz")).text


async def test_pages_of_a_ceremony_and_of_a_person(owner: Any) -> None:
    page = (await owner("/-/memory/ceremonies/ceremony%3Ademo%3Ao2")).text
    for shown in ("Orchard Circle", "Mira asks", "Tomas answers", "prepare harvest night", "ceremony%3Ademo%3Ao2c"):
        assert shown in page
    page = (await owner(MIRA)).text
    for shown in ("Mira Oyelaran", "opening · 2026-03-01 · Orchard Circle", "The buds are late"):
        assert shown in page
    for missing in ("/-/memory/ceremonies/none", "/-/memory/people/none"):
        assert (await owner(missing)).status_code == 404


async def test_markup_in_records_and_questions_is_text(wheel_file: Path, make: Any) -> None:
    evil = "<script>alert(1)</script>\"'><img src=x>"
    with open_wheel(wheel_file, plugins=load_plugins()) as wheel:
        wheel.put("node", {"id": demo.MIRA, "type": "human", "name": evil})
        wheel.put("node", {"id": demo.ORCHARD, "type": "circle", "name": evil})
        wheel.put(
            "beat", {"id": "beat:evil", "title": f"lantern {evil}", "ceremonies": ["ceremony:demo:o2"], "speaker": demo.MIRA}
        )
    ds = make([wheel_file])
    await ds.invoke_startup()
    for path in (
        ASKED,
        f"/-/memory?{urlencode({'q': evil, 'find': evil, 'person': evil, 'ceremonies': evil})}",
        MIRA,
        "/-/memory/ceremonies/ceremony%3Ademo%3Ao2",
    ):
        page = (await ds.client.get(path, cookies=cookies(ds, id="root"))).text
        assert "<script>alert" not in page, path
        assert "<img src=x" not in page, path


async def test_pages_cannot_be_framed_and_load_nothing_from_elsewhere(owner: Any) -> None:
    response = await owner("/-/memory")
    assert response.headers["x-frame-options"] == "DENY"
    assert "default-src 'self'" in response.headers["content-security-policy"]
    for attribute in ('src="http', 'href="http', "url(http", "@import"):
        found = [
            part for part in response.text.split(attribute)[1:] if not part.startswith(("s://datasette.io", "://datasette.io"))
        ]
        assert not found, attribute


async def test_a_link_from_elsewhere_may_be_followed_and_nothing_else(owner: Any) -> None:
    away = {"sec-fetch-site": "cross-site"}
    assert (await owner(ASKED, headers={**away, "sec-fetch-mode": "navigate"})).status_code == 200
    for mode in ("no-cors", "cors"):
        response = await owner(ASKED, headers={**away, "sec-fetch-mode": mode})
        assert response.status_code == 403
        assert "Tomas" not in response.text


async def test_the_menu_has_a_link_for_those_who_may_ask(wheel_file: Path, other_file: Path, make: Any) -> None:
    ds = make([wheel_file, other_file])
    await ds.invoke_startup()
    assert 'href="/-/memory"' in (await ds.client.get("/apples", cookies=cookies(ds, id="root"))).text
    assert 'href="/-/memory"' not in (await ds.client.get("/apples")).text


async def test_below_another_address(wheel_file: Path, make: Any) -> None:
    ds = make([wheel_file], settings={"base_url": "/house/"})
    await ds.invoke_startup()
    page = (await ds.client.get(ASKED, cookies=cookies(ds, id="root"))).text
    assert 'action="/house/-/memory"' in page
    assert 'href="/house/-/static-plugins/wheelmem/wheelmem.css"' in page
    assert 'href="/house/-/memory/ceremonies/' in page


# --- in a browser ---------------------------------------------------------------------------------------------------


@pytest.fixture
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium here; the pages are not looked at in a browser")
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


def open_page(browser: Any, house: Any, troubles: list[str], **options: Any) -> Any:
    """A page of the owner's; what goes wrong on it is added to ``troubles``."""
    context = browser.new_context(**options)
    context.add_cookies([{"name": "ds_actor", "value": house.cookie, "url": house.url}])
    page = context.new_page()
    page.on("console", lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith((house.url, "data:")) else troubles.append(request.url))
    return page


def test_ask_pick_follow_and_judge(house: Any, browser: Any) -> None:
    with open_wheel(house.wheel, plugins=load_plugins()) as wheel:
        conclude(wheel, about=demo.MIRA, content="Likes red lanterns", kind="preference", source_event_ids=["beat:demo:5"])
    troubles: list[str] = []
    page = open_page(browser, house, troubles)
    page.goto(f"{house.url}/-/memory")
    page.get_by_label("Find people, circles").press_sequentially("orchard")
    page.get_by_label("Orchard Circle", exact=True).check()
    page.get_by_role("button", name="Show the reach").click()
    assert "4 ceremonies, 11 records, 2 voices" in page.get_by_role("status").inner_text()
    page.get_by_label("Your question").fill(demo.QUESTION)
    page.get_by_role("button", name="Ask", exact=True).click()
    assert page.locator(".wm-card").count() >= 2
    assert "circle_id=" in page.url
    assert page.locator(".wm-wheel .wm-cited").count() >= 1
    page.get_by_role("radio", name="Search").check()
    page.get_by_label("Your question").fill("buds rope")
    page.get_by_role("button", name="Ask", exact=True).click()
    assert "buds" in page.locator(".wm-card mark").all_inner_texts()
    page.get_by_role("link", name="its ceremony").first.click()
    assert page.locator("h1").inner_text().startswith("Opening · 2026-03-01")
    page.get_by_role("link", name="Mira Oyelaran").first.click()
    assert page.locator("h1").inner_text() == "Mira Oyelaran"
    page.get_by_role("button", name="Confirm: Likes red lanterns").click()
    assert page.locator(".wm-confirmed").inner_text() == "confirmed"
    assert "by root" in page.locator(".wm-card").first.inner_text()
    assert page.get_by_role("button", name="Confirm").is_disabled()
    assert not troubles


def test_it_works_without_javascript(house: Any, browser: Any) -> None:
    page = open_page(browser, house, [], java_script_enabled=False)
    page.goto(f"{house.url}/-/memory")
    page.get_by_label("Find people, circles").fill("ferry")
    page.get_by_role("button", name="Find").click()
    page.get_by_label("Ferry Circle", exact=True).check()
    page.get_by_label("Your question").fill("What colour is the lantern?")
    page.get_by_role("button", name="Ask", exact=True).click()
    assert "green" in page.locator(".wm-cards").inner_text()


def test_it_works_with_the_keyboard_alone(house: Any, browser: Any) -> None:
    page = open_page(browser, house, [])
    page.goto(house.url + ASKED)
    page.locator("#wm-q").focus()
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent.trim() || document.activeElement.name"))
        if reached[-1] == "Ask":
            break
    assert "Ask" in reached
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.locator(".wm-card").count() >= 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_fit_for_everybody(house: Any, browser: Any, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    troubles: list[str] = []
    page = open_page(browser, house, troubles, color_scheme=scheme, viewport={"width": width, "height": 850})
    for path in ("/-/memory", ASKED, "/-/memory?go=find&find=lan", "/-/memory/ceremonies/ceremony%3Ademo%3Ao2", MIRA):
        page.goto(house.url + path)
        # Datasette 1.0's own search box hides a method that axe needs.
        page.evaluate("document.querySelector('navigation-search')?.remove()")
        violations = axe.run(page).response["violations"]
        serious = [
            (one["id"], [node["html"][:200] for node in one["nodes"]])
            for one in violations
            if one["impact"] in ("serious", "critical")
        ]
        assert not serious, path
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    assert not troubles


def test_another_sites_form_judges_nothing(house: Any) -> None:
    with open_wheel(house.wheel, plugins=load_plugins()) as wheel:
        node = conclude(wheel, about=demo.MIRA, content="Likes lanterns", kind="preference", source_event_ids=["beat:demo:5"])
        for headers in ({}, {"origin": "https://elsewhere.example"}, {"sec-fetch-site": "cross-site"}):
            if not headers and "1.0" in __import__("datasette").__version__:
                continue  # 1.0 goes by what browsers say of where a form stood, and no browser says nothing.
            response = httpx.post(
                f"{house.url}/-/memory/conclusions/{quote(node['id'], safe='')}",
                data={"status": "confirmed"},
                cookies={"ds_actor": house.cookie},
                headers=headers,
            )
            assert response.status_code == 403
        kept = wheel.get("node", node["id"])
        assert kept is not None
        assert kept["metadata"]["status"] == "inferred"
