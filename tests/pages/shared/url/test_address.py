"""Addresses of pages with and without a base path."""

import pytest
from streamlit.config import get_option, set_option

from pages.shared.url.address import link_to
from pages.shared.url.base_path import base_path, home_of, page_of


@pytest.fixture(params=["", "lab", "/course/lab/"])
def base(request):
    before = get_option("server.baseUrlPath")
    set_option("server.baseUrlPath", request.param)
    yield "/" + request.param.strip("/") if request.param else ""
    set_option("server.baseUrlPath", before)


def test_pages_know_their_addresses_under_any_base_path(base):
    host = "https://school.example"
    assert base_path() == base
    for end, page in (("/", "home"), ("/?text=a/b", "home"), ("/masks?text=a", "masks"), ("", "home")):
        address = f"{host}{base}{end}"
        assert home_of(address) == f"{host}{base}" and page_of(address) == page, address
        assert link_to(address, "attention", {"model": "m"}) == f"{host}{base}/attention?model=m"
        assert link_to(address, "home", {"model": "m"}) == f"{host}{base}/?model=m"
