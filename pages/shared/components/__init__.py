"""Interactive drawings that Streamlit lacks: tokens, lines between them, the grid of heads. No iframes.

Each is a Streamlit component of its own with its script and styles in this folder. Tokens reach the page as text only.
"""
