"""The live page in a browser: what it shows, and that it sends requests only to the driver."""

import json
import urllib.error
import urllib.request

import numpy as np
import pytest

pytest.importorskip("uvicorn")
from tests.driver import test_run_permits
from tests.driver.oip.served import SIDE, server
from tests.view import chromium
from tightship.driver.client.client import Client
from tightship.driver.oip.http.tables import page

BODY = {
    "inputs": [
        {"name": name, "datatype": "INT32", "shape": [1, 16], "data": [1] * 16}
        for name in ("INPUT0", "INPUT1")
    ]
}


@pytest.fixture(scope="module")
def served():
    with server("shm", "types") as served:
        yield served


@pytest.fixture(scope="module")
def browser():
    if chromium.BINARY is None:
        pytest.skip("no Chromium: install Debian's `chromium` to look at the page")
    opened = chromium.Chromium()
    yield opened
    opened.close()


def get(served, path, **headers):
    request = urllib.request.Request(f"http://{served.http}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return response.headers, response.read()


def post(served, path, body):
    data = json.dumps(body).encode()
    urllib.request.urlopen(f"http://{served.http}{path}", data, timeout=30).close()


def until(browser, expression):
    """Wait for the page to show something; its own alarm, and the browser's patience, end it."""
    return browser.evaluate(
        f"""new Promise((done, fail) => {{
            const stop = Date.now() + 30000;
            const look = () => {{
                if ({expression}) done(true);
                else if (Date.now() > stop) fail(new Error(document.body.innerText));
                else setTimeout(look, 50);
            }};
            look();
        }})"""
    )


def text_of(browser, element):
    return browser.evaluate(f"document.getElementById('{element}').innerText")


def test_it_shows_models_and_their_requests(browser, served):
    browser.open(f"http://{served.http}/")
    until(browser, "document.querySelector('#models tbody tr')")
    post(served, "/v2/models/simple/infer", BODY)
    until(
        browser,
        "[...document.querySelectorAll('#models tbody tr')].some(row => "
        "row.cells[0].innerText === 'simple' && row.cells[4].innerText === '1')",
    )
    post(served, "/v2/repository/models/identity_INT8/unload", {})
    until(browser, "document.getElementById('models').innerText.includes('unavailable: unloaded')")


def test_it_shows_what_clients_of_the_socket_hold(browser, served):
    browser.open(f"http://{served.http}/")
    with Client(served.socket) as client, client.segment(1 << 20) as segment:
        model = client.prepare_named("open")
        x, y = segment.place((2, 4), "f4"), segment.place((2, 4), "f4")
        model.execute([x], [y])
        until(browser, "document.getElementById('clients').innerText.includes('ashmem')")
        assert "1.00 MiB" in text_of(browser, "clients")
    until(
        browser, "document.getElementById('clients').innerText.includes('No client is connected')"
    )


def test_it_draws_memory_over_time(browser, served):
    browser.open(f"http://{served.http}/")
    until(browser, "document.querySelectorAll('#chart path').length === 3")
    until(browser, "document.querySelector('#chart .resident').getAttribute('d').includes('L')")
    points = browser.evaluate("document.querySelector('#chart .resident').getAttribute('d')")
    assert "NaN" not in points
    assert "resident now" in browser.evaluate(
        "document.getElementById('chart').getAttribute('aria-label')"
    )


def test_it_draws_the_requests_of_each_model_over_time(browser, served):
    browser.open(f"http://{served.http}/")
    row = "[data-label='simple']"
    for _ in range(3):  # models with requests are shown first
        post(served, "/v2/models/simple/infer", BODY)
    until(browser, f'document.querySelectorAll("{row} svg .area").length === 4')
    first = browser.evaluate(f'document.querySelector("{row} b").innerText')
    until(
        browser,
        f"parseFloat(document.querySelector(\"{row} b\").innerText.split('most ')[1]) > 0",
    )
    captions = browser.evaluate(f'document.querySelector("{row}").innerText')
    for name in ("requests a second", "waiting", "requests in a run", "planned"):
        assert name in captions, (first, captions)
    paths = browser.evaluate("document.getElementById('histories').innerHTML")
    assert "NaN" not in paths
    assert "undefined" not in paths
    labels = browser.evaluate(
        "[...document.querySelectorAll('.history')].map(row => row.dataset.label)"
    )
    assert labels[0] == "simple"
    assert len(labels) <= 12


def test_what_is_new_since_a_time_is_all_that_is_asked_for_again(browser, served):
    browser.open(f"http://{served.http}/")
    until(browser, "document.querySelector('#chart path')")
    whole = json.loads(get(served, "/status")[1])
    last = whole["samples"][-1][0]
    rest = json.loads(get(served, f"/status?since={last}")[1])
    assert all(row[0] > last for row in rest["samples"])
    assert all(row[0] > last for rows in rest["histories"].values() for row in rows)
    assert set(rest["histories"]) == set(whole["histories"])
    asked = [each["request"]["url"] for each in browser.methods("Network.requestWillBeSent")]
    assert any(url.endswith("/status?since=0") for url in asked)


def test_it_sends_requests_only_to_the_driver_and_meets_no_error(browser, served):
    browser.open(f"http://{served.http}/")
    until(browser, "document.querySelector('#models tbody tr')")
    asked = [each["request"]["url"] for each in browser.methods("Network.requestWillBeSent")]
    assert {url.split("/")[2] for url in asked if not url.startswith("data:")} == {served.http}
    assert browser.methods("Runtime.exceptionThrown") == []
    assert browser.methods("Log.entryAdded") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_light_and_dark(browser, served, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.call("Emulation.setEmulatedMedia", features=features)
    browser.open(f"http://{served.http}/")
    until(browser, "document.querySelector('#models tbody tr')")
    until(browser, "document.querySelector('#chart text')")
    for element in (
        "h1",
        ".facts",
        "#models td",
        "#models th",
        "#totals b",
        "#chart text",
        "h3",
        "figcaption span",
    ):
        assert contrast(browser, element) >= 4.5, element
    browser.call("Emulation.setEmulatedMedia", features=[])


def contrast(browser, element):
    """Return the contrast of a text with its background, by the rule of the web's guidelines."""
    colours = browser.evaluate(
        f"""(() => {{
            const numbers = (text) => text.match(/[0-9.]+/g).slice(0, 3).map(Number);
            const found = document.querySelector("{element}");
            const style = getComputedStyle(found);
            let behind = found.closest("section") ?? document.body;
            return [numbers(found.closest("svg") ? style.fill : style.color),
                    numbers(getComputedStyle(behind).backgroundColor)];
        }})()"""
    )
    shares = np.array(colours) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    darker, lighter = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return (lighter + 0.05) / (darker + 0.05)


def test_a_driver_that_is_gone_is_said_to_be(browser):
    with server() as served:
        browser.open(f"http://{served.http}/")
        until(browser, "document.querySelector('#models tbody tr')")
    until(browser, "!document.getElementById('alarm').hidden")
    assert "does not answer" in text_of(browser, "alarm")


def test_names_are_text_in_it_and_no_markup():
    assert b"innerHTML" not in page()
    assert b"http://" not in page().replace(b"http://www.w3.org/2000/svg", b"")
    assert b"https://" not in page()


def test_the_status_counts_what_is_there(served):
    status = json.loads(get(served, "/status")[1])
    assert {each["name"] for each in status["models"]} >= {"simple", "open"}
    simple = next(each for each in status["models"] if each["name"] == "simple")
    assert simple["state"] == "ready"
    slow = next(each for each in status["models"] if each["name"] == "slow")
    assert slow["run_bytes"] >= 4 * SIDE * SIDE
    assert slow["success_count"] == slow["pending_count"] == 0
    assert status["regions"] == []
    times = [sample[0] for sample in status["samples"]]
    assert times == sorted(times)
    assert all(sample[1] > 0 for sample in status["samples"])


def test_pages_of_others_may_not_ask(served):
    origins = ({"Origin": "http://example.org"}, {"Origin": "null"})
    for headers in (*origins, {"Host": "example.org"}, {"Host": "example.org:80"}):
        with pytest.raises(urllib.error.HTTPError) as caught:
            get(served, "/status", **headers)
        assert caught.value.code == 403
        caught.value.close()
    assert get(served, "/status", Origin=f"http://{served.http}")[1]


def test_what_the_process_holds_is_there_for_prometheus(served):
    def lines():
        return get(served, "/metrics")[1].decode().splitlines()

    test_run_permits.until(
        lambda: any(line.startswith("tightship_") for line in lines())
    )  # sampled
    values = dict(line.split() for line in lines() if line.startswith("tightship_"))
    assert int(values["tightship_resident_bytes"]) > 1 << 20
    assert values["tightship_region_count"] == values["tightship_region_bytes"] == "0"
