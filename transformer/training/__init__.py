"""Training as a generator of events: loop, step, state, loss, schedule, evaluation, devices."""
