"""Pages end with links to the experiments about what they show."""

import pytest
from page_models import PRONOUNS, open_page

from pages.shared.registry import PAGES
from transformer.experiments.paper import listed


def test_every_shipped_experiment_is_linked_from_a_page_and_no_other():
    assert {name for page in PAGES for name in page.asks} == {experiment.name for experiment in listed()}


@pytest.mark.usefixtures("untrained_models")
def test_a_page_links_its_experiments_and_the_lab_opens_on_them():
    links = [link.proto for link in open_page("heads", model=PRONOUNS).get("page_link")]
    opened = {link.label: link.query_string for link in links}
    (label,) = (label for label in opened if "Does attention find the source word" in label)
    assert "experiment=alignment" in opened[label]
