import pytest

from tests.view import chromium


@pytest.fixture(scope="session")
def browser():
    if chromium.BINARY is None:
        pytest.skip("no Chromium: install Debian's `chromium` to look at the page")
    opened = chromium.Chromium()
    yield opened
    opened.close()
