"""The cause of a run: a control of the page, or a look, which a fragment's timer asks for, and no visitor.

Streamlit knows both and tells no page. The browser takes over a URL at once and paints the fields that came with it a
little later, so what a look says of a field may be from before that, even where its URL is the last.
"""

from dataclasses import replace
from functools import wraps

from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests, ScriptRequestType

_NAME = "attention_lab_is_look"


def is_look() -> bool:
    """Tells whether this run is a look. One that a press was folded into is none."""
    context = get_script_run_ctx(suppress_warning=True)
    return bool(context and context.fragment_ids_this_run and getattr(context, _NAME, False))


def is_by_control() -> bool:
    """Tells whether a control was used: a link, a reload and the back button change no field. To be asked before the
    run draws any field: one that was not there before counts as used. There is no public name for that."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return False
    state = context.session_state._state
    return any(state._widget_changed(field) for field in tuple(state._new_widget_state))


def tell_looks_apart() -> None:
    """Notes of each run whether a timer asked for it; harmless to repeat. There is no public name for that.

    A server at work folds requests into one, which Streamlit takes for the last of them.
    """
    run, request = ScriptRunner._run_script, ScriptRequests._request_rerun_locked
    if hasattr(run, "__wrapped__"):
        return

    @wraps(run)
    def run_noted(self: ScriptRunner, asked: RerunData) -> None:
        setattr(get_script_run_ctx(suppress_warning=True), _NAME, asked.is_auto_rerun)
        run(self, asked)

    @wraps(request)
    def request_folded(self: ScriptRequests, asked: RerunData) -> bool:
        is_pressed = self._state is ScriptRequestType.RERUN and not self._rerun_data.is_auto_rerun
        is_taken = request(self, asked)
        if is_pressed:
            self._rerun_data = replace(self._rerun_data, is_auto_rerun=False)
        return is_taken

    ScriptRunner._run_script = run_noted  # type: ignore[method-assign]
    ScriptRequests._request_rerun_locked = request_folded  # type: ignore[method-assign]
