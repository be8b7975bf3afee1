"""Lessons: ten of them, each a few steps of predicting, doing and comparing with a real model."""

from pages.learn.browser import keep_progress
from pages.learn.choices import PAGE, SUMMARY
from pages.learn.overview import render_overview
from pages.learn.step_section import render_step
from pages.learn.summary import render_summary
from pages.shared.context import say
from pages.shared.url.session import session

chosen = PAGE.follow_url()
keep_progress()
chosen = PAGE.now
say(*PAGE.said())
if (shown := chosen.shown) is not None:
    render_step(*shown, chosen)
elif chosen.lesson == SUMMARY:
    render_summary(chosen)
else:
    render_overview(chosen)
PAGE.write_url()
session().lesson = PAGE.now.parameters() if PAGE.now.shown else {}
