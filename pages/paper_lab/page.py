"""Paper lab: the claims of the paper as experiments, each with its result, its verdict and a button that runs it."""

from pages.paper_lab.choices import PAGE, fit
from pages.paper_lab.overview import choose_experiment
from pages.paper_lab.results import render_results
from pages.paper_lab.running import render_run_here
from pages.shared.context import say

experiment = choose_experiment(PAGE.follow_url())
if experiment is not None:
    chosen = fit(experiment)
say(*PAGE.said())
if experiment is not None:
    render_results(experiment, chosen)
    render_run_here(experiment)
PAGE.write_url()
