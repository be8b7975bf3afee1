"""Links of earlier versions: each leads to the state it led to when it was recorded, and nonsense in it is named.

`old_links.json` holds the links as they were written then, the URL to which the page brought each, and the values of
which it said that it could not take them. A page may say more today, never less. Where it writes the same state
otherwise today, the URL is today's: `set=train.accumulate=3` has become `accumulate=3`, and `stop=late` goes unsaid.
"""

import json
from pathlib import Path

import pytest
from page_models import open_page, texts

from pages.shared.wording import plain

LINKS = json.loads((Path(__file__).parent / "old_links.json").read_text(encoding="utf-8"))

pytestmark = pytest.mark.usefixtures("two_seeds", "measurements")


def _name(link: dict) -> str:
    own = [name for name in link["link"] if name not in ("model", "text")]
    return f"{link['page']}-{'-'.join(own[:4])}"


@pytest.mark.parametrize("link", LINKS, ids=_name)
def test_an_old_link_leads_where_it_led(link):
    at = open_page(link["page"], **link["link"])
    url = dict(at.query_params)
    assert url == link["url"]
    refused = "\n".join(line for line in texts(at).splitlines() if ":material/error:" in line)
    for value in link["refused"]:
        assert plain(value) in refused
