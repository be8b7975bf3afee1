"""Opens the badges of a page and counts what their checks say."""

from page_models import checked, open_page, texts


def proved(page, *badges, **parameters):
    """The page with these badges open."""
    at = open_page(page, **parameters)
    for badge in badges:
        at.session_state[badge] = True
    return checked(at.run())


def verdicts(at):
    """How many checks hold and how many fail, over all open badges."""
    said = texts(at)
    return said.count(":green[:material/check:]"), said.count(":red[:material/close:]")
