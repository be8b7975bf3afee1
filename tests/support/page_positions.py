"""The Positions page on an untrained model, and what is drawn there, for the tests."""

import json

from page_models import CLASSIC, PRONOUNS, open_page

from pages.shared.components.frontend import unpacked_arrays


def positions(popovers=(), **parameters):
    """The page with these choices."""
    return open_page("positions", popovers=popovers, **{"model": PRONOUNS, "text": CLASSIC, **parameters})


def figure(at, index=0):
    """One of its plotly figures."""
    return json.loads(at.get("plotly_chart")[index].proto.spec)


def canvases(at):
    """(header, arrays) of every canvas of tables or curves on the page."""
    return [unpacked_arrays(element.proto.bytes) for element in at.get("bidi_component") if element.proto.bytes]


def tables(at):
    """The numbers of the tables that are drawn."""
    (arrays,) = (arrays for header, arrays in canvases(at) if "panels" in header)
    return arrays


def curves(at):
    """The names of the curves that are drawn."""
    ((header, _),) = (found for found in canvases(at) if "series" in found[0])
    return [series["name"] for series in header["series"]]


def shapes(at):
    """The sizes of the tables."""
    return [table.shape for table in tables(at)]


def cells(at, index=1):
    """A table of the page, by default the first after the vocabulary behind More."""
    return at.dataframe[index].value.astype(str).to_string()
