"""The double keeps to what the official SDK expects, and to what was measured on a running server."""

from __future__ import annotations

import httpx
import pytest
from double import Double
from honcho import Honcho


@pytest.fixture
def sdk(double: Double) -> Honcho:
    return Honcho(base_url=double.url, workspace_id="medicine-wheel", max_retries=0)


@pytest.fixture
def http(double: Double) -> httpx.Client:
    with httpx.Client(base_url=double.url + "/v3") as client:
        yield client


def test_the_sdk_seats_peers_and_posts_messages_in_order(double: Double, sdk: Honcho) -> None:
    ana = sdk.peer("ana", metadata={"wheel_id": "node:human:1:ana"})
    session = sdk.session("circle-1", metadata={"wheel_id": "circle:1"})
    session.add_peers([ana])
    session.add_messages([ana.message(f"word {n}", metadata={"wheel_id": f"beat:{n}"}) for n in range(5)])
    assert [m.content for m in session.messages()] == [f"word {n}" for n in range(5)]
    assert [p.id for p in session.peers()] == ["ana"]
    assert session.get_metadata() == {"wheel_id": "circle:1"}
    assert [
        m.metadata["wheel_id"]
        for m in session.messages(filters={"metadata": {"wheel_id": {"in": ["beat:3"]}}})
    ] == ["beat:3"]


def test_the_sdk_searches_within_sessions(double: Double, sdk: Honcho) -> None:
    ana = sdk.peer("ana")
    for name in ("one", "two"):
        sdk.session(name).add_messages(
            [ana.message(f"the lantern of {name}"), ana.message(f"bread of {name}")]
        )
    found = sdk.search("lantern", filters={"session_id": {"in": ["one"]}}, limit=10)
    assert [m.content for m in found] == ["the lantern of one", "bread of one"], "filler follows what matches"
    assert sdk.search("lantern", filters={"session_id": {"in": []}}) == []
    assert len(sdk.search("lantern", filters={"session_id": {"in": ["*"]}})) == 4, (
        "a star in the list reads as everything"
    )


def test_the_sdk_reasons_within_sessions(double: Double, sdk: Honcho) -> None:
    ana = sdk.peer("ana")
    for name in ("one", "two"):
        sdk.session(name).add_messages([ana.message(f"the lantern of {name}")])
    answer = ana.chat("lantern?", sessions=["one"])
    assert "lantern of one" in answer
    assert "lantern of two" not in answer
    assert "lantern of two" in ana.representation(sessions=["two"])
    assert ana.chat("lantern?", sessions=["nowhere"]) == "I have nothing to answer from."
    assert "".join(ana.chat_stream("lantern?", sessions=["one"])) == answer


def test_an_older_server_reasons_over_everything_whatever_the_filter(make_double) -> None:
    double = make_double(filters=False)
    sdk = Honcho(base_url=double.url, workspace_id="w", max_retries=0)
    ana = sdk.peer("ana")
    sdk.session("one").add_messages([ana.message("the lantern of one")])
    sdk.session("two").add_messages([ana.message("the lantern of two")])
    assert "lantern of two" in ana.chat("lantern?", sessions=["one"])
    options = httpx.get(double.url + "/openapi.json").json()["components"]["schemas"]["DialecticOptions"]
    assert "filters" not in options["properties"]


def test_a_card_is_in_the_prompt_unless_the_workspace_says_otherwise(double: Double, sdk: Honcho) -> None:
    ana = sdk.peer("ana")
    sdk.session("one").add_messages([ana.message("bread")])
    ana.set_card(["Ana is secretly a baker"])
    assert "secretly" in ana.chat("bread?", sessions=["one"])
    assert "secretly" in ana.chat("bread?", sessions=["none"])
    httpx.put(
        double.url + "/v3/workspaces/medicine-wheel", json={"configuration": {"peer_card": {"use": False}}}
    )
    assert "secretly" not in ana.chat("bread?", sessions=["one"])
    assert "secretly" not in ana.representation(sessions=["one"])
    httpx.put(
        double.url + "/v3/workspaces/medicine-wheel", json={"configuration": {"peer_card": {"create": False}}}
    )
    assert "secretly" in ana.chat("bread?", sessions=["one"]), "a key's value is replaced whole"


def test_the_sdk_lists_what_was_concluded(double: Double, sdk: Honcho) -> None:
    ana = sdk.peer("ana")
    sdk.session("one").add_messages([ana.message("bread")])
    assert [c.content for c in ana.conclusions.list(session="one", filters={"level": "explicit"})] == [
        "said: bread"
    ]
    ana.conclusions.create([{"content": "Ana bakes", "session_id": "one"}])
    assert [c.content for c in ana.conclusions.list()] == ["said: bread", "Ana bakes"]


def test_get_or_create_answers_what_is_stored(double: Double, http: httpx.Client) -> None:
    first = http.post(
        "/workspaces", json={"id": "w", "configuration": {"peer_card": {"use": False}}, "metadata": {"a": 1}}
    )
    again = http.post(
        "/workspaces", json={"id": "w", "configuration": {"peer_card": {"use": True}}, "metadata": {"a": 2}}
    )
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["configuration"] == {"peer_card": {"use": False}}
    assert again.json()["metadata"] == {"a": 1}
    for name in ("", "{}", "null"):
        http.put("/workspaces/w", content='{"configuration": ' + (name or "{}") + "}")
    assert double.workspaces["w"].configuration == {"peer_card": {"use": False}}
    assert http.post("/workspaces/w/peers", json={"id": "p", "metadata": {"a": 1}}).status_code == 201
    http.post("/workspaces/w/peers", json={"id": "p", "metadata": {"a": 2}})
    assert double.workspaces["w"].peers["p"]["metadata"] == {"a": 2}
    assert http.put("/workspaces/new", json={}).status_code == 200


def test_a_message_too_long_refuses_the_whole_batch(double: Double, http: httpx.Client) -> None:
    longest = {"content": "é" * 25_000, "peer_id": "a"}
    assert (
        http.post(
            "/workspaces/w/sessions/s/messages", json={"messages": [longest, {"content": "", "peer_id": "a"}]}
        ).status_code
        == 201
    )
    refused = http.post(
        "/workspaces/w/sessions/s/messages",
        json={"messages": [longest, {"content": "x" * 25_001, "peer_id": "a"}]},
    )
    assert refused.status_code == 422
    assert refused.json()["detail"][0]["input"] == "x" * 25_001
    assert len(double.messages("s", "w")) == 2
    many = [{"content": "x", "peer_id": "a"}] * 101
    assert http.post("/workspaces/w/sessions/s/messages", json={"messages": many}).status_code == 422
    assert (
        http.post(
            "/workspaces/w/sessions/s/messages", json={"messages": [{"content": "a\0b", "peer_id": "a"}]}
        ).json()[0]["content"]
        == "ab"
    )
    double.violations.clear()  # the refused requests do not fit the description, as they should not


def test_what_chat_refuses(double: Double, http: httpx.Client) -> None:
    many = {"session_id": {"in": [f"s{n}" for n in range(1001)]}}
    for filters in (many, {"session_id": {"in": ["*"]}}, {"peer_id": "a"}):
        refused = http.post("/workspaces/w/peers/p/chat", json={"query": "what", "filters": filters})
        assert (refused.status_code, type(refused.json()["detail"])) == (422, str)
    assert http.post("/workspaces/w/peers/p/representation", json={"filters": many}).status_code == 422
    assert http.post("/workspaces/w/search", json={"query": "what", "filters": many}).json() == []
    assert (
        http.post(
            "/workspaces/w/search", json={"query": "what", "filters": {"session_id": {"in": ["s"] * 65_000}}}
        ).status_code
        == 500
    )
    assert http.post("/workspaces/w/search", json={"query": "水" * 9_000}).status_code == 422
    assert http.post("/workspaces/w/peers/q/chat", json={"query": "what"}).status_code == 200
    assert "q" in double.workspaces["w"].peers, "asking an unknown peer creates it"
    assert http.post("/workspaces/w/peers/q/chat", json={"query": "what", "target": "who"}).status_code == 404
    assert http.post("/workspaces/w/peers/r/representation", json={}).json() == {"representation": ""}
    assert "r" not in double.workspaces["w"].peers


def test_lists_come_in_pages(double: Double, http: httpx.Client) -> None:
    for n in range(120):
        http.post("/workspaces/w/peers", json={"id": f"p{n}"})
    page = http.post("/workspaces/w/peers/list?page=3", json={}).json()
    assert (len(page["items"]), page["total"], page["pages"], page["size"]) == (20, 120, 3, 50)
    assert http.post("/workspaces/w/peers/list?size=101", json={}).status_code == 422
    wanted = http.post(
        "/workspaces/w/peers/list", json={"filters": {"id": {"in": ["p7", "p9", "none"]}}}
    ).json()
    assert [peer["id"] for peer in wanted["items"]] == ["p7", "p9"]


def test_with_the_model_down(double: Double, http: httpx.Client) -> None:
    double.model_down = True
    assert (
        http.post(
            "/workspaces/w/sessions/s/messages", json={"messages": [{"content": "x", "peer_id": "p"}]}
        ).status_code
        == 201
    )
    assert http.post("/workspaces/w/peers/p/representation", json={}).json() == {"representation": ""}
    assert http.post("/workspaces/w/peers/p/chat", json={"query": "x"}).status_code == 500
    with httpx.Client(base_url=double.url) as fresh:
        assert fresh.post("/v3/workspaces/w/search", json={"query": "x"}).status_code == 500


def test_a_session_that_is_being_deleted_cannot_be_had(make_double) -> None:
    double = make_double(deletion=0.2)
    with httpx.Client(base_url=double.url + "/v3/workspaces/w") as http:
        http.post("/sessions/s/messages", json={"messages": [{"content": "x", "peer_id": "p"}]})
        assert http.delete("/sessions/s").status_code == 202
        assert http.post("/sessions", json={"id": "s"}).status_code == 404
        import time

        time.sleep(0.25)
        assert http.post("/sessions", json={"id": "s"}).status_code == 201
        assert double.messages("s", "w") == []


@pytest.mark.parametrize("kind", ["close", "half", "hang", "html", "slow", "status"])
@pytest.mark.parametrize("after", [False, True])
def test_faults(double: Double, kind: str, after: bool) -> None:
    url = double.url + "/v3/workspaces/w/sessions/s/messages"
    body = {"messages": [{"content": "x", "peer_id": "p"}]}
    with double.fault(kind, "POST .*/messages", times=1, after=after) as fault:
        try:
            answer = httpx.post(url, json=body, timeout=1)
            outcome = f"{answer.status_code} {answer.headers['content-type'][:9]}"
        except httpx.HTTPError as error:
            outcome = type(error).__name__
    assert fault.hit == 1
    assert (
        outcome
        in {
            "close": ("RemoteProtocolError", "ReadError"),
            "half": ("RemoteProtocolError", "ReadError"),
            "hang": ("ReadTimeout",),
            "html": ("200 text/html",),
            "slow": ("201 applicati",),
            "status": ("500 applicati",),
        }[kind]
    )
    assert len(double.messages("s", "w")) == (1 if after or kind == "slow" else 0)
    assert httpx.post(url, json=body).status_code == 201


def test_the_double_goes_away_and_comes_back(double: Double) -> None:
    httpx.post(double.url + "/v3/workspaces", json={"id": "w"})
    double.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(double.url + "/health")
    double.start()
    assert httpx.post(double.url + "/v3/workspaces", json={"id": "w"}).status_code == 200
