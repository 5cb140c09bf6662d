"""Live: pick a user, record an event, and the list changes."""

from __future__ import annotations

import re

import httpx
from playwright.sync_api import Page, Route, expect


def choose(page: Page, place: str, typed: str, option: str) -> None:
    page.locator(f"{place} input").fill(typed)
    page.locator(f"{place} [role=option] .name").get_by_text(option).first.click()


def events(api: httpx.Client, user: str) -> int:
    return int(api.get(f"/v1/users/{user}").json()["events"])


def test_a_click_posts_the_event_and_the_list_changes(page: Page, api: httpx.Client) -> None:
    page.goto("/")
    choose(page, "#live-user", "12", "12")
    expect(page).to_have_url(re.compile("#/live/12$"))
    rows = page.locator("#recommended li")
    expect(rows).to_have_count(10)
    answer = api.get("/v1/users/12/recommendations", params={"why": True}).json()["items"]
    expect(rows.first).to_contain_text(answer[0]["title"])
    expect(rows.first.locator(".why")).to_contain_text(answer[0]["why"][0]["text"])
    said = answer[0]["why"][0]
    whole = rows.first.locator(".why > span").first.get_attribute("title") or ""
    assert whole.startswith(said["text"])  # the line may be cut
    assert all(item["id"] in whole for item in said["items"])
    expect(rows.first.locator(".tag")).to_have_text(answer[0]["tags"][0])
    before = events(api, "12")
    expect(page.locator("#history-count")).to_have_text(re.compile(rf"^{before} events"))

    rows.nth(3).locator("button").click()
    expect(page.locator("#click-to-list")).to_have_text(re.compile(r"^[\d.,]+ ms$"))
    shown = answer[3]["title"] or answer[3]["id"]  # another test may have posted an item without a title
    expect(page.locator("#history li").first).to_contain_text(shown)
    expect(page.locator("#history li time").first).to_have_text("just now")
    expect(page.locator("#history-count")).to_have_text(re.compile(rf"^{before + 1} events"))
    assert events(api, "12") == before + 1
    moved = page.locator("#recommended .moved").all_text_contents()
    assert all(re.fullmatch(r"[▲▼] \d+|·|new", text) for text in moved)
    assert len(moved) == 10


def test_a_new_user_becomes_known(page: Page) -> None:
    page.goto("/")
    page.locator("#live-stranger").click()
    expect(page.locator("#live-for")).to_have_text("for a user without history")
    expect(page.locator("#history")).to_contain_text("No events yet")
    choose(page, "#live-item", "blue", "in blue")  # a word inside the title
    expect(page.locator("#history li")).to_have_count(1)
    expect(page.locator("#live-for")).to_have_text("")
    expect(page.locator("#timing")).to_contain_text("from click to updated list")


def test_filters(page: Page) -> None:
    page.goto("/#/live/7")
    expect(page.locator("#recommended li")).to_have_count(10)
    page.locator("#live-tag").fill("red")
    page.keyboard.press("Enter")
    expect(page.locator("#recommended .tag", has_text="blue")).to_have_count(0)
    expect(page.locator("#recommended .tag", has_text="red")).to_have_count(10)
    page.locator("#live-tag").fill("green")
    page.keyboard.press("Enter")
    expect(page.locator("#recommended")).to_contain_text("no item matches these filters")


def test_items_with_the_same_title_can_be_told_apart(page: Page) -> None:
    def retitle(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        for item in body["items"][:3]:
            item["title"] = "Milk"
        route.fulfill(response=answer, json=body)

    page.route("**/v1/users/*/recommendations*", retitle)
    page.goto("/#/live/12")
    rows = page.locator("#recommended li")
    expect(rows).to_have_count(10)
    ids = [str(rows.nth(at).get_attribute("data-id")) for at in range(10)]
    shown = [rows.nth(at).locator(".name bdi").inner_text() for at in range(10)]
    assert shown[:3] == [f"Milk ({one})" for one in ids[:3]]
    assert not any(f"({one})" in name for one, name in zip(ids[3:], shown[3:], strict=True))


def test_the_keyboard_is_enough(page: Page, api: httpx.Client) -> None:
    page.goto("/")
    expect(page.locator("#recommended li")).to_have_count(10)
    page.locator("#live-user input").focus()
    page.keyboard.type("20")
    expect(page.locator("#live-user [role=option]").first).to_contain_text("20")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#live-user [aria-selected=true]")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/live/20"))
    before = events(api, "20")
    expect(page.locator("#history-count")).to_have_text(re.compile(rf"^{before} events"))
    while not page.locator("#recommended li button").first.evaluate("node => node === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#click-to-list")).to_be_visible()
    expect(page.locator("#recommended li button").first).to_be_focused()
    assert events(api, "20") == before + 1


def test_a_late_history_is_not_shown_for_another_user(page: Page, api: httpx.Client) -> None:
    waiting: list[Route] = []
    first, second = (user["id"] for user in api.get("/v1/users", params={"sample": True, "limit": 2}).json()["users"])
    page.route(f"**/v1/users/{first}", lambda route: waiting.append(route))
    page.goto(f"/#/live/{first}")
    expect(page.locator("#recommended li")).to_have_count(10)
    page.goto(f"/#/live/{second}")
    shown = re.compile(rf"^{events(api, second)} events")
    expect(page.locator("#history-count")).to_have_text(shown)
    with page.expect_response(f"**/v1/users/{first}"):
        waiting.pop().continue_()
    page.wait_for_timeout(100)
    expect(page.locator("#history-count")).to_have_text(shown)


def test_a_late_suggestion_does_not_replace_the_choice(page: Page) -> None:
    waiting: list[Route] = []
    page.route("**/v1/users?*sample=true*", lambda route: waiting.append(route))
    page.goto("/")
    page.locator("#live-stranger").click()
    expect(page.locator("#live-for")).to_have_text("for a user without history")
    with page.expect_response("**/v1/users?*sample=true*"):
        waiting.pop().continue_()
    page.wait_for_timeout(200)
    expect(page.locator("#live-user input")).to_have_value(re.compile("^visitor-"))


def test_enter_chooses_what_was_typed_not_an_earlier_result(page: Page, api: httpx.Client) -> None:
    page.goto("/#/live/31")
    expect(page.locator("#recommended li")).to_have_count(10)
    before = events(api, "31")
    field = page.locator("#live-item input")
    field.focus()
    expect(page.locator("#live-item [role=option]")).to_have_count(12)  # before anything is typed
    field.press_sequentially("Song")
    field.press("Enter")  # many match: the first is marked, none is chosen
    expect(page.locator("#live-item [aria-selected=true]")).to_have_count(1)
    assert events(api, "31") == before
    field.fill("")
    field.press_sequentially("Song 17 in")
    field.press("Enter")
    expect(page.locator("#history li").first).to_contain_text("Song 17 in blue")
    assert events(api, "31") == before + 1


def test_back_returns_to_the_previous_user(page: Page) -> None:
    page.goto("/#/live/7")
    for user in ("12", "20"):
        choose(page, "#live-user", user, user)
        expect(page).to_have_url(re.compile(f"#/live/{user}$"))
    page.get_by_role("link", name="Map").click()
    page.get_by_role("link", name="Live", exact=True).click()
    expect(page).to_have_url(re.compile("#/live/20$"))
    page.go_back()
    page.go_back()
    page.go_back()
    expect(page).to_have_url(re.compile("#/live/12$"))
    expect(page.locator("#live-user input")).to_have_value("12")


def test_names_and_tags_of_all_kinds(page: Page, api: httpx.Client) -> None:
    name = "\u202e" + "<b>" + "a long name without any space".replace(" ", "-") * 4
    api.post("/v1/interactions", json={"user": "odd", "item": "odd-item"}).raise_for_status()
    api.put("/v1/items/odd-item", json={"title": name, "tags": ["Sci-Fi, Fantasy"]}).raise_for_status()
    page.goto("/#/live/odd")
    expect(page.locator("#history li bdi")).to_have_text(name)
    expect(page.locator("#history time")).to_have_attribute("datetime", re.compile(r"^20\d\d-.*Z$"))
    page.locator("#live-tag").fill("Sci-Fi, Fantasy")
    page.keyboard.press("Enter")
    expect(page.locator("#recommended li")).to_have_count(1)
    page.locator("#recommended button").click()
    expect(page.locator("#timing bdi")).to_have_text(name)
    expect(page.locator("#recommended button")).to_have_attribute("aria-label", re.compile(r"^1: .*, score "))
    assert page.locator("html").evaluate("html => html.scrollWidth") <= 1280
    api.delete("/v1/items/odd-item").raise_for_status()
