"""Interactive drawings that Streamlit lacks: tokens, lines between them, the grid of heads. No iframes.

Each is a Streamlit component of its own with its script and styles beside it. Tokens reach the page as text only.
"""

from pages.shared.components.head_grid import head_grid
from pages.shared.components.token_chips import token_chips
from pages.shared.components.token_lines import token_lines

__all__ = ["head_grid", "token_chips", "token_lines"]
