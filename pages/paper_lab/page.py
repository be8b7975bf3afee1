"""Paper lab: the claims of the paper as experiments, each with its result, its verdict and a button that runs it."""

from pages.paper_lab.choices import PAGE
from pages.paper_lab.overview import choose_experiment
from pages.paper_lab.results import render_results
from pages.paper_lab.running import render_run_here
from pages.shared.context import say

chosen = PAGE.follow_url()
experiment = choose_experiment(chosen)
say(*PAGE.said())
if experiment is not None:
    render_results(experiment, chosen)
    render_run_here(experiment)
PAGE.write_url()
