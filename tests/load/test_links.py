"""Checks that the links that the load driver opens are varied and lead to every page."""

import random

from links import PAGES, random_link

from pages.shared.registry import PAGES as REGISTERED


def test_links_lead_to_every_page():
    assert set(PAGES) == {page.url for page in REGISTERED}
    links = [random_link(random.Random(seed)) for seed in range(400)]
    assert {page for page, _ in links} == set(PAGES)
    assert len({parameters["text"] for _, parameters in links}) == 400
